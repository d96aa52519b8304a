"""The releases of the clients on which `make matrix` runs tests, and the tests that it runs for each client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["CLIENTS", "NEWEST", "Client", "Environment", "ends", "environments"]


@dataclass(frozen=True)
class Client:
    """A client with the releases that are tested, and the tests for it.

    Attributes:
        module: the name of the client's module in `kafka_assignors.clients`.
        releases: the oldest, the last of each minor release, and the newest, in this order.
        first: for each later Python the oldest release that has a wheel for it.
        last: for a release that does not work on the newest Python, the newest Python on which it works.
        tests: the files, in `tests`.
        names: pytest's expression that selects the tests of this client from these files.
    """

    module: str
    releases: tuple[str, ...]
    first: dict[str, str]
    last: dict[str, str]
    tests: tuple[str, ...]
    names: str


_SHARED: Final = (
    "member",
    "clients/test_live.py",
    "clients/test_live_listeners.py",
    "clients/test_producers.py",
    "clients/test_lag_live.py",
    "clients/test_own_live.py",
    "clients/test_rates_live.py",
)

CLIENTS: dict[str, Client] = {
    "confluent-kafka": Client(
        "confluent",
        (
            "2.3.0",
            "2.4.0",
            "2.5.3",
            "2.6.1",
            "2.7.0",
            "2.8.2",
            "2.9.0",
            "2.10.1",
            "2.11.1",
            "2.12.2",
            "2.13.2",
            "2.14.2",
            "2.15.1",
            "2.16.1",
        ),
        {"3.12": "2.3.0", "3.13": "2.6.1", "3.14": "2.12.2"},
        {},
        (
            "member",
            "clients/test_confluent_consumer.py",
            "clients/test_confluent_data_path.py",
            "clients/test_confluent_diff_listener.py",
            "clients/test_confluent_neighbours.py",
            "clients/test_confluent_polling.py",
            "clients/test_confluent_producer.py",
            "clients/test_confluent_releases.py",
            "clients/test_confluent_sessions.py",
        ),
        "confluent",
    ),
    "aiokafka": Client(
        "aiokafka",
        ("0.10.0", "0.11.0", "0.12.0", "0.13.0", "0.14.0"),
        {"3.12": "0.10.0", "3.13": "0.12.0", "3.14": "0.13.0"},
        {},
        (
            *_SHARED,
            "clients/test_aiokafka.py",
            "clients/test_aiokafka_consumer.py",
            "clients/test_aiokafka_consumer_class.py",
            "clients/test_aiokafka_consumer_offsets.py",
            "clients/test_aiokafka_consumer_start_and_stop.py",
            "clients/test_aiokafka_consumer_subscriptions.py",
        ),
        "aiokafka",
    ),
    "kafka-python": Client(
        "kafka_python",
        ("2.0.2", "2.0.6", "2.1.6", "2.2.21", "2.3.3", "3.0.8", "3.0.12"),
        {},
        {"2.0.2": "3.11", "2.0.6": "3.11"},
        (
            *_SHARED,
            "clients/test_kafka_python.py",
            "clients/test_kafka_python_consumer.py",
            "clients/test_kafka_python_consumer_listeners.py",
            "clients/test_kafka_python_consumer_offsets.py",
            "clients/test_kafka_python_internals.py",
            "clients/test_kafka_python_releases.py",
            "clients/test_kafka_python_surface.py",
        ),
        "kafka_python or kafka-python",
    ),
}

NEWEST = {package: client.releases[-1] for package, client in CLIENTS.items()}


@dataclass(frozen=True, order=True)
class Environment:
    """One release of one client on one Python."""

    package: str
    release: str
    python: str

    @property
    def name(self) -> str:
        return f"{self.package}-{self.release}-py{self.python}"


def environments(pythons: list[str]) -> list[Environment]:
    """Every release on the oldest of these Pythons; the newest, and the oldest that has a wheel, on the others."""
    found = []
    for package, client in CLIENTS.items():
        found += [Environment(package, release, pythons[0]) for release in client.releases]
        for python in pythons[1:]:
            oldest = client.first.get(python, next(each for each in client.releases if each not in client.last))
            found += [Environment(package, each, python) for each in dict.fromkeys((oldest, client.releases[-1]))]
    return found


def ends(pythons: list[str]) -> list[Environment]:
    """The oldest and the newest release of each client, on the oldest of these Pythons."""
    return [
        Environment(package, release, pythons[0])
        for package, client in CLIENTS.items()
        for release in (client.releases[0], client.releases[-1])
    ]
