"""The features of the installed release of a client, for tests of features that some releases lack.

`make matrix` runs the clients' tests on every supported release. A test with the mark `release_has(feature, ...)` is
left out, not skipped, where the release lacks a feature: then there is nothing to test. The project's own environment
has the newest releases and therefore every feature; a test checks this.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FEATURES", "has", "release_has"]


def _kafka_python(name: str) -> bool:
    import kafka

    return hasattr(kafka, name)


def _admin_lists_offsets() -> bool:
    import kafka.admin

    return hasattr(kafka.admin, "OffsetSpec")


def _confluent(name: str) -> bool:
    import confluent_kafka

    return hasattr(confluent_kafka.Producer, name)


def _confluent_stub() -> bool:
    import confluent_kafka

    # Before 2.16 the stub lacks methods that the producer has.
    stub = Path(confluent_kafka.__file__).with_name("cimpl.pyi")
    return stub.exists() and "def close" in stub.read_text().partition("class Producer")[2].partition("\nclass ")[0]


def _confluent_aio() -> bool:
    from importlib.util import find_spec

    return find_spec("confluent_kafka.aio") is not None or find_spec("confluent_kafka.experimental") is not None


def _lingering_batches() -> bool:
    from aiokafka.producer.message_accumulator import MessageBatch

    return hasattr(MessageBatch, "remaining_linger")


FEATURES: dict[str, Callable[[], bool]] = {
    # Cooperative rebalancing, coroutines as listeners, partitioners that receive the topic, and kafka.net.
    "kafka-python 3": lambda: _kafka_python("AsyncConsumerRebalanceListener"),
    "offsets by the admin client": _admin_lists_offsets,
    "produce_batch": lambda: _confluent("produce_batch"),
    "Producer.close": lambda: _confluent("close"),
    "all in cimpl.pyi": _confluent_stub,
    "AIOConsumer": _confluent_aio,
    "batches that linger": _lingering_batches,
}
"""Each feature, and whether the installed release has it."""


@cache
def has(feature: str) -> bool:
    """Whether the installed release has a feature."""
    return FEATURES[feature]()


def release_has(*features: str, of: str = "") -> pytest.MarkDecorator:
    """Marks a test for releases with these features. With `of`, only the tests whose name contains it need them."""
    return pytest.mark.release_has(*features, of=of)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the tests of features that the release lacks."""
    left_out = [item for item in items if not all(has(name) for name in _wanted(item))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def _wanted(item: pytest.Item) -> set[str]:
    marks = [mark for mark in item.iter_markers("release_has") if mark.kwargs.get("of", "") in item.name]
    return {name for mark in marks for name in mark.args}
