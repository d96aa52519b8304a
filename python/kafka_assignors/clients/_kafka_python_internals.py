"""What kafka-python keeps to itself and a plug-in has to know."""

from __future__ import annotations

from typing import Any

__all__ = ["refreshed_ms"]


def refreshed_ms(cluster: Any) -> float | None:
    """When the cluster's metadata was last replaced, in milliseconds of `time.monotonic`; None if it is not told."""
    told = getattr(cluster, "_last_successful_refresh_ms", None)
    return told if isinstance(told, int | float) else None
