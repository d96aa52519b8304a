"""The consumers of the member's tests: every data path, with an eager and a cooperative strategy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kafka_assignors.embedded import EmbeddedKafka
from support.broker import Kafka
from support.data_paths import DATA_PATHS, Readers
from support.needs import rest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def embedded() -> Iterator[Kafka]:
    """The embedded Kafka."""
    with EmbeddedKafka() as kafka:
        yield Kafka(kafka.bootstrap_servers, "embedded")


@pytest.fixture(params=DATA_PATHS)
def data_path(request: pytest.FixtureRequest) -> str:
    """The name of a data path."""
    return str(request.param)


@pytest.fixture(params=["cooperative-sticky", *rest("sticky")])
def readers(request: pytest.FixtureRequest, embedded: Kafka, data_path: str) -> Iterator[Readers]:
    """A group of this data path's consumers, without any member yet."""
    with Readers(embedded, DATA_PATHS[data_path], request.param) as readers:
        yield readers


@pytest.fixture
def eager(embedded: Kafka, data_path: str) -> Iterator[Readers]:
    """As `readers`, with the eager strategy only."""
    with Readers(embedded, DATA_PATHS[data_path], "sticky") as readers:
        yield readers


@pytest.fixture(params=["in place", "by public methods"])
def access(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How our consumer on aiokafka changes the partitions that the client reads."""
    if request.param == "by public methods":
        from kafka_assignors.clients.aiokafka import _internals

        monkeypatch.setattr(_internals, "table_of", lambda *_: None)
        monkeypatch.setattr(_internals, "last_get", lambda _: None)
    return str(request.param)
