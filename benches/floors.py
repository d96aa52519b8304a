"""The floors that the benchmarks divide by: the same calls of the binding without the work in the core.

Only a wheel that was built with the feature `bench` has them: those of the Makefile, and none that is published. So the
stub of the binding does not list them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_assignors import _core

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["boundary_floor", "codec_floor", "partition_floor"]


def _floor(name: str) -> Any:
    try:
        return getattr(_core, name)
    except AttributeError:
        raise RuntimeError(
            f"the installed wheel has no {name}, since it was built without the feature `bench`: `make build`"
        ) from None


codec_floor: Callable[..., dict[str, bytes]] = _floor("codec_floor")
"""`(name, mode, racks, members, partitions)`: `_core.perform_assignment` without the planning."""

boundary_floor: Callable[..., dict[str, bytes]] = _floor("boundary_floor")
"""`(members, partitions)`: the objects that `_core.perform_assignment` takes and makes, and nothing of the core."""

partition_floor: Callable[..., int] = _floor("partition_floor")
"""The six arguments of a partitioner's `partition`: a call that does nothing."""
