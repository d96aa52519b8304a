"""The setting `partition.assignment.strategy`, with confluent-kafka's errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException

from kafka_assignors.member import strategies

if TYPE_CHECKING:
    from kafka_assignors.assignors import Assignor

__all__ = ["strategies_of"]

_DEFAULT = "range,roundrobin"


def strategies_of(value: Any) -> tuple[Assignor, ...]:
    """Reads `partition.assignment.strategy`: strategies as text with commas, an assignor, or a list of both.

    Raises:
        KafkaException: a name is unknown; confluent-kafka raises it too.
        OptionError: a value is neither a name nor an assignor, a name comes twice, or only a broker runs the assignor.
    """
    return strategies.strategies_of(value, _DEFAULT, _unsupported)


def _unsupported(why: str) -> KafkaException:
    reason = f"Failed to create consumer: Unsupported partition.assignment.strategy: {why}"
    return KafkaException(KafkaError(KafkaError._INVALID_ARG, reason))
