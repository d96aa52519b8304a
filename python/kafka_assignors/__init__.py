"""Exact, fast and sticky partition assignment for Kafka consumer groups."""

from kafka_assignors._core import __version__

__all__ = ["__version__"]
