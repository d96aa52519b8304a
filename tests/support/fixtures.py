"""Fixtures that give a test a Kafka: a real broker, or the embedded and the real one in turn.

The whole test run shares one real broker of each release, also when pytest-xdist has several processes. Therefore a
test uses names of its own for topics and groups (`support.broker.unique`) and does not change the broker's settings. A
test that has to change or stop its broker starts one with `start_kafka`.

- ``KAFKA_BOOTSTRAP`` gives these fixtures a broker that already runs.
- ``KAFKA_VERSIONS`` lists the releases to run, separated by commas. `kafka_broker` uses the first. The
  default is the newest release alone.
"""

from __future__ import annotations

import json
import os
import signal
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, TypeVar

import pytest

from kafka_assignors.embedded import EmbeddedKafka
from support import jars
from support.broker import ApacheKafka, Kafka, external
from support.jars import consumer_protocol_version, versions
from support.members import Member
from support.secured import SecuredKafka
from support.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path

M = TypeVar("M", bound=Member)


def kafkas() -> list[str]:
    """The parameters of `any_kafka`."""
    return ["embedded", "external"] if external() else ["embedded", *(f"apache-{version}" for version in versions())]


@pytest.fixture(scope="session")
def kafka_of_version(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Kafka]]:
    """The broker of a release. The first use starts it, and the whole run shares it."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    brokers: dict[str, _SharedBroker] = {}

    def give(version: str) -> Kafka:
        if version not in brokers:
            broker = _SharedBroker(shared / f"kafka-{version}", version)
            broker.acquire()
            brokers[version] = broker
        return brokers[version].kafka

    yield give
    for broker in brokers.values():
        broker.release()


@pytest.fixture(scope="session")
def kafka_broker(kafka_of_version: Callable[[str], Kafka]) -> Kafka:
    """A real Apache Kafka."""
    return external() or kafka_of_version(versions()[0])


@pytest.fixture(scope="session")
def consumer_protocol_kafka(kafka_of_version: Callable[[str], Kafka]) -> Kafka:
    """A real Apache Kafka that speaks the consumer protocol (KIP-848): in `make test-long` the oldest."""
    return external() or kafka_of_version(consumer_protocol_version())


@pytest.fixture(scope="session", params=kafkas())
def any_kafka(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    """The embedded Kafka and the real one, in turn. A test must not see a difference between them."""
    which: str = request.param
    if which == "embedded":
        with EmbeddedKafka() as kafka:
            yield Kafka(kafka.bootstrap_servers, "embedded")
    else:
        of_version: Callable[[str], Kafka] = request.getfixturevalue("kafka_of_version")
        yield external() or of_version(which.removeprefix("apache-"))


@pytest.fixture(params=["embedded", *versions()])
def own_kafka(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    """As `any_kafka`, but for one test alone. The test may change the broker's settings."""
    if request.param == "embedded":
        with EmbeddedKafka() as kafka:
            yield Kafka(kafka.bootstrap_servers, "embedded")
    else:
        start: Callable[..., ApacheKafka] = request.getfixturevalue("start_kafka")
        yield start(request.param)


@pytest.fixture
def start_kafka(tmp_path: Path) -> Iterator[Callable[..., ApacheKafka]]:
    """Start an Apache Kafka for one test: ``start_kafka(version, group_max_size=3)``."""
    started: list[ApacheKafka] = []

    def start(version: str | None = None, **config: str | int) -> ApacheKafka:
        kafka = ApacheKafka(tmp_path / f"kafka-{len(started)}", version or versions()[0], **config)
        started.append(kafka)
        kafka.start()
        return kafka

    yield start
    for kafka in started:
        kafka.stop()


@pytest.fixture(scope="session")
def secured_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    """A real Apache Kafka with TLS and SASL. Its tests are in the group `secured`, so that it starts once."""
    with SecuredKafka(tmp_path_factory.mktemp("secured") / "kafka", versions()[0]) as kafka:
        yield kafka


@pytest.fixture
def trace() -> Trace:
    """The trace of all members that this test starts."""
    return Trace()


class StartMember(Protocol):
    """Start a consumer process. ``config`` are settings of its client; their names have underscores for dots."""

    def __call__(self, kind: Callable[..., M], name: str, kafka: Kafka, group: str, **config: Any) -> M: ...


@pytest.fixture
def start_member(trace: Trace, tmp_path: Path) -> Iterator[StartMember]:
    """Start consumer processes that end with the test."""
    with ExitStack() as started:

        def start(kind: Callable[..., M], name: str, kafka: Kafka, group: str, **config: Any) -> M:
            member = kind(trace, name, kafka, group, tmp_path, **config)
            started.callback(member.kill)
            return member

        yield start


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Name the broker's log in the report of a test that failed."""
    report = yield
    if report.failed:
        for kafka in getattr(item, "funcargs", {}).values():
            if isinstance(kafka, ApacheKafka | _Attached):
                report.sections.append((f"Apache Kafka {kafka.version}", f"its log: {kafka.log_path}"))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Figures that tests report, also when they pass."""
    for report in (*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")):
        for name, value in report.user_properties:
            if name == "figures":
                terminalreporter.write_line(f"{report.nodeid}: {value}")


# The brokers that this process started for the whole run. They may outlive the tests of this process; a Popen object
# that is deleted while its process runs gives a warning.
_STARTED: list[ApacheKafka] = []


class _Attached(Kafka):
    """The broker of the whole test run. Any of the run's processes may have started it."""

    def __init__(self, bootstrap_servers: str, version: str, log_path: Path) -> None:
        super().__init__(bootstrap_servers, version)
        self.log_path = log_path


class _State(TypedDict):
    broker: int
    bootstrap_servers: str
    users: list[int]


class _SharedBroker:
    """One broker for several processes. The first process starts it; the last one that releases it stops it.

    No process waits for the others, since their tests may run longer than the time limit of a test. A file beside the
    broker contains its address and the processes that use it. A lock guards the file. A process that died before it
    called `release` does not count as a user.
    """

    kafka: Kafka

    def __init__(self, directory: Path, version: str) -> None:
        self.directory = directory
        self.version = version
        self._lock = directory.with_suffix(directory.suffix + ".lock")
        self._state = directory / "shared.json"

    def acquire(self) -> None:
        with jars.locked(self._lock):
            state = self._read()
            if state is None or not _alive(state["broker"]):
                own = ApacheKafka(self.directory, self.version)
                own.start()
                assert own.pid is not None
                _STARTED.append(own)
                state = {"broker": own.pid, "bootstrap_servers": own.bootstrap_servers, "users": []}
            self.kafka = _Attached(state["bootstrap_servers"], self.version, self.directory / "broker.log")
            state["users"].append(os.getpid())
            self._write(state)

    def release(self) -> None:
        with jars.locked(self._lock):
            state = self._read()
            if state is None:
                return
            state["users"].remove(os.getpid())
            self._write(state)
            if not any(_alive(pid) for pid in state["users"]):
                self._state.unlink()
                with suppress(ProcessLookupError):
                    os.kill(state["broker"], signal.SIGTERM)

    def _read(self) -> _State | None:
        try:
            state: _State = json.loads(self._state.read_text())
        except FileNotFoundError:
            return None
        return state

    def _write(self, state: _State) -> None:
        self._state.write_text(json.dumps(state))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
