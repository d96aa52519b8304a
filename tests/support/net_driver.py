"""Drives connections of `kafka_assignors.net` in the test's thread."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors.net import Address, ClientConfig, Closed, Connection, Poller, Ready, Received

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_assignors.net import ConnectionEvent

TIMEOUT = 60.0


class Driver:
    """A poller with one connection at a time. Its calls wait for the events."""

    def __init__(self, **settings: Any) -> None:
        names = {name if name == "oauth_cb" else name.replace("_", "."): each for name, each in settings.items()}
        self.poller = Poller(ClientConfig.from_confluent({"bootstrap.servers": "unused"} | names))
        self.events: list[ConnectionEvent] = []

    def connect(self, host: str, port: int) -> Connection:
        return self.poller.connect(Address(host, port))

    def next(self) -> ConnectionEvent:
        """The next event."""
        deadline = time.monotonic() + TIMEOUT
        while not self.events:
            assert time.monotonic() < deadline, "no event"
            self.events += self.poller.poll(0.2)
        return self.events.pop(0)

    def ready(self, host: str, port: int) -> Connection:
        connection = self.connect(host, port)
        event = self.next()
        assert event == Ready(connection), event
        return connection

    def frame(self) -> bytes:
        event = self.next()
        assert isinstance(event, Received), event
        return event.frame

    def closed(self) -> Exception:
        event = self.next()
        assert isinstance(event, Closed), event
        assert event.connection.is_closed
        assert event.connection.error is event.error
        return event.error


@pytest.fixture
def drive() -> Iterator[Any]:
    """Make drivers: ``drive(sasl_mechanism="PLAIN", …)``."""
    made: list[Driver] = []

    def make(**settings: Any) -> Driver:
        made.append(Driver(**settings))
        return made[-1]

    yield make
    for driver in made:
        driver.poller.close()
