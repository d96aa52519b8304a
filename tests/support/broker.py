"""A real Apache Kafka for the tests: one process, broker and controller, ready about two seconds after it starts."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import threading
import time
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from support import jars, jvm

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

OFFSETS_TOPIC = "__consumer_offsets"
DEFAULT_RECORD_LIMIT = 1_048_588

_READY = re.compile(r"Kafka Server started")
_START_TIMEOUT = 120.0
_STOP_TIMEOUT = 60.0
_ADMIN_TIMEOUT = 60.0
_CLUSTER_ID = "kAssignorsTestCluster0"
_CONTROLLER = "CONTROLLER"
_LOG_TIMES = ("-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS")


@dataclass(frozen=True)
class GroupDescription:
    """An answer to DescribeGroups: ``assignment`` is by member id, then by topic."""

    state: str
    assignor: str
    assignment: dict[str, dict[str, list[int]]]
    coordinator: int


class Kafka:
    """A Kafka that runs already: its address, and the administration that tests need."""

    def __init__(self, bootstrap_servers: str, version: str, replicas: int = 1) -> None:
        """``replicas``: the number of replicas of each new topic."""
        self.bootstrap_servers = bootstrap_servers
        self.version = version
        self.replicas = replicas
        self._admin: AdminClient | None = None
        self._making_admin = threading.Lock()

    @property
    def admin(self) -> AdminClient:
        """An admin client of confluent-kafka, which is not under test here."""
        # Without the lock, each of several threads makes a client; all but the last are destroyed with their requests.
        with self._making_admin:
            if self._admin is None:
                self._admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
            return self._admin

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str] | None = None) -> str:
        """Create a topic and wait until the metadata shows it; returns its name."""
        new = NewTopic(name, num_partitions=partitions, replication_factor=self.replicas, config=dict(config or {}))
        for first in (True, False):
            try:
                _done(self.admin.create_topics([new]))
                break
            except KafkaException as error:
                # A broker that has just started may have older metadata than the others. librdkafka then drops
                # each broker that this metadata does not list, and with it the broker's answer to this request. The
                # topic may exist all the same.
                code = error.args[0].code()
                if first and code == KafkaError._DESTROY_BROKER:
                    continue
                if not first and code == KafkaError.TOPIC_ALREADY_EXISTS:
                    break
                raise
        self._wait_for_partitions(name, partitions)
        return name

    def grow_topic(self, name: str, partitions: int) -> None:
        """Raise a topic's partition count to ``partitions`` in total."""
        _done(self.admin.create_partitions([NewPartitions(name, partitions)]))
        self._wait_for_partitions(name, partitions)

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        _done(self.admin.delete_topics([name]))

    def set_topic_config(self, topic: str, **config: str | int) -> None:
        """Set entries of a topic's configuration: ``set_topic_config(t, max_message_bytes=5)``; others stay."""
        entries = [
            ConfigEntry(name.replace("_", "."), str(value), incremental_operation=AlterConfigOpType.SET)
            for name, value in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        _done(self.admin.incremental_alter_configs([resource]))
        deadline = time.monotonic() + _ADMIN_TIMEOUT
        while any(self.topic_config(topic).get(entry.name) != entry.value for entry in entries):
            if time.monotonic() > deadline:
                msg = f"the configuration of {topic} did not become {config} within {_ADMIN_TIMEOUT} s"
                raise TimeoutError(msg)
            time.sleep(0.02)

    def topic_config(self, topic: str) -> dict[str, str]:
        """A topic's whole configuration, defaults included."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entries = _done(self.admin.describe_configs([resource]))[resource]
        return {name: entry.value for name, entry in entries.items()}

    def set_record_limit(self, limit: int | None) -> None:
        """How large a group's record may be: ``max.message.bytes`` of the offsets topic; ``None`` is the default."""
        self.set_topic_config(OFFSETS_TOPIC, max_message_bytes=DEFAULT_RECORD_LIMIT if limit is None else limit)

    def describe_topics(self) -> dict[str, int]:
        """Every topic and its number of partitions, internal ones included."""
        topics = self.admin.list_topics(timeout=_ADMIN_TIMEOUT).topics
        return {name: len(topic.partitions) for name, topic in topics.items()}

    def describe_group(self, group_id: str) -> GroupDescription:
        """State and assignment of a group as its coordinator sees it."""
        found = _done(self.admin.describe_consumer_groups([group_id], request_timeout=_ADMIN_TIMEOUT))[group_id]
        assignment: dict[str, dict[str, list[int]]] = {}
        for member in found.members:
            share = assignment.setdefault(member.member_id, {})
            for partition in member.assignment.topic_partitions if member.assignment else ():
                share.setdefault(partition.topic, []).append(partition.partition)
            for partitions in share.values():
                partitions.sort()
        state: ConsumerGroupState = found.state
        return GroupDescription(state.name, found.partition_assignor, assignment, found.coordinator.id)

    def _wait_for_partitions(self, name: str, partitions: int) -> None:
        deadline = time.monotonic() + _ADMIN_TIMEOUT
        while self.describe_topics().get(name) != partitions:
            if time.monotonic() > deadline:
                msg = f"topic {name} did not reach {partitions} partitions within {_ADMIN_TIMEOUT} s"
                raise TimeoutError(msg)
            time.sleep(0.02)


class ApacheKafka(Kafka):
    """A single-node Apache Kafka in a process of its own, with its data and logs below ``directory``.

    Use it as a context manager, or call `start` and `stop`. The address stays the same over restarts. Everything the
    broker printed is in `log_path`, and every error here names that file.
    """

    listeners: Mapping[str, str] = MappingProxyType({"PLAINTEXT": "PLAINTEXT"})
    """Names of the listeners for clients, with their security protocols. The first one is `bootstrap_servers`."""

    def __init__(self, directory: Path, version: str = jars.DEFAULT_VERSION, **config: str | int) -> None:
        """``config``: further broker settings, ``group_max_size=3`` for ``group.max.size=3``."""
        super().__init__("", version)
        self.directory = directory
        self.log_path = directory / "broker.log"
        self.config = {name.replace("_", "."): str(value) for name, value in config.items()}
        self._ports: dict[str, int] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        # A shutdown takes half a second of a processor, and would save data that are not read again.
        self.kill()

    @property
    def pid(self) -> int | None:
        """The broker's process id while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        """Start the broker and wait until it serves groups: its offsets topic exists and has a leader."""
        if self.pid is not None:
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        fresh = self._ports is None
        for attempt in range(3):
            if self._ports is None:
                names = (*self.listeners, _CONTROLLER)
                self._ports = dict(zip(names, _free_ports(len(names)), strict=True))
                self._prepare()
            try:
                self._launch()
                break
            except _PortTakenError:
                # Another process may take a free port before the broker opens it.
                if not fresh or attempt == 2:
                    raise
                self._ports = None
        self.bootstrap_servers = self.address(next(iter(self.listeners)))
        self._wait_until_ready()

    def address(self, listener: str) -> str:
        """The address of a listener. The broker must have been started before."""
        assert self._ports is not None, "the broker has not been started"
        return f"127.0.0.1:{self._ports[listener]}"

    def stop(self) -> None:
        """Shut down cleanly; data and logs stay."""
        self._end(kill=False)

    def kill(self) -> None:
        """End the process with SIGKILL, without a shutdown; data and logs stay."""
        self._end(kill=True)

    def restart(self) -> None:
        """Stop and start again at the same address with the same data."""
        self.stop()
        self.start()

    def _prepare(self) -> None:
        listening = [f"{name}://{self.address(name)}" for name in self.listeners]
        protocols = [f"{name}:{protocol}" for name, protocol in {**self.listeners, _CONTROLLER: "PLAINTEXT"}.items()]
        settings = _SETTINGS | {
            "listeners": ",".join([*listening, f"{_CONTROLLER}://{self.address(_CONTROLLER)}"]),
            "advertised.listeners": ",".join(listening),
            "listener.security.protocol.map": ",".join(protocols),
            "controller.quorum.voters": f"1@{self.address(_CONTROLLER)}",
            "log.dirs": str(self.directory / "data"),
        }
        settings |= self.config
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        (self.directory / "server.properties").write_text(text)
        data = self.directory / "data"
        shutil.rmtree(data, ignore_errors=True)
        shutil.copytree(_formatted(self.version), data)

    def _launch(self) -> None:
        properties = self.directory / "server.properties"
        command = _java(self.version, "-Xmx512m", f"-Dkafka.logs.dir={self.directory}", *_LOG_TIMES)
        with self.log_path.open("ab") as log:
            before = log.tell()
            self._process = subprocess.Popen(
                [*command, "kafka.Kafka", str(properties)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
            )
        deadline = time.monotonic() + _START_TIMEOUT
        while True:
            text = self._log_since(before)
            if _READY.search(text):
                return
            if self._process.poll() is not None:
                self._process = None
                if "BindException" in text or "Address already in use" in text:
                    raise _PortTakenError(self._failure("could not bind its port"))
                raise RuntimeError(self._failure("ended while it started"))
            if time.monotonic() > deadline:
                self.kill()
                raise TimeoutError(self._failure(f"did not start within {_START_TIMEOUT} s"))
            time.sleep(0.02)

    def _wait_until_ready(self) -> None:
        # The broker creates its offsets topic when the first request for a coordinator arrives.
        deadline = time.monotonic() + _START_TIMEOUT
        probe = f"readiness-{uuid.uuid4()}"
        while True:
            try:
                self.describe_group(probe)
                return
            except (KafkaException, TimeoutError) as error:
                # Since 4.0 (KIP-1043) the coordinator of an unknown group answers with this error, before with "Dead".
                if isinstance(error, KafkaException) and error.args[0].name() == "GROUP_ID_NOT_FOUND":
                    return
                if time.monotonic() > deadline:
                    raise TimeoutError(self._failure(f"has no group coordinator: {error}")) from error
            time.sleep(0.02)

    def _end(self, *, kill: bool) -> None:
        process, self._process, self._admin = self._process, None, None
        if process is None:
            return
        if kill:
            process.kill()
        else:
            process.terminate()
        try:
            process.wait(_STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_STOP_TIMEOUT)
            raise TimeoutError(self._failure(f"did not stop within {_STOP_TIMEOUT} s and was killed")) from None

    def _log_since(self, position: int) -> str:
        with self.log_path.open("rb") as log:
            log.seek(position)
            return log.read().decode(errors="replace")

    def _failure(self, what: str) -> str:
        tail = "\n".join(self._log_since(0).splitlines()[-25:])
        return f"Apache Kafka {self.version} {what}; its log is {self.log_path}, which ends:\n{tail}"


class _PortTakenError(RuntimeError):
    """The address was in use when the broker started."""


# Each internal topic has one partition, and a group's first rebalance has no delay, so that tests wait less.
# `controller.quorum.voters` instead of the newer bootstrap servers: the formatted log directory then contains no port,
# so that one copy of it serves every start.
_SETTINGS: dict[str, str] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": _CONTROLLER,
    "inter.broker.listener.name": "PLAINTEXT",
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "num.network.threads": "2",
    "num.io.threads": "2",
    "log.cleaner.dedupe.buffer.size": "16777216",
    # The controller writes no no-op records: they cost half of the processor time of an idle broker.
    "metadata.max.idle.interval.ms": "0",
}


def _java(version: str, *options: str) -> list[str]:
    return [jars.tool("java"), *jvm.kafka_options(version), *options, "-cp", jars.classpath(jars.libs(version))]


def _formatted(version: str) -> Path:
    """A freshly formatted log directory of this release. Formatting takes more than a second, a copy almost none."""

    def make(target: Path) -> None:
        target.mkdir()
        properties = target / "format.properties"
        settings = _SETTINGS | {
            "listeners": f"PLAINTEXT://127.0.0.1:1,{_CONTROLLER}://127.0.0.1:2",
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,{_CONTROLLER}:PLAINTEXT",
            "controller.quorum.voters": "1@127.0.0.1:2",
            "log.dirs": str(target),
        }
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        command = (*_java(version), "kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(properties))
        jars.run(command, f"formatting the storage of Apache Kafka {version}")
        properties.unlink()

    jars.libs(version)  # before the lock of made_once, which does not nest
    return jars.made_once(version, "formatted", make)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _done(futures: Mapping[Any, Any]) -> dict[Any, Any]:
    return {key: future.result(timeout=_ADMIN_TIMEOUT) for key, future in futures.items()}


def unique(name: str) -> str:
    """A name for a topic or group that no other test uses."""
    return f"{name}-{uuid.uuid4().hex[:12]}"


def external() -> Kafka | None:
    """The broker of ``KAFKA_BOOTSTRAP``, if the variable is set. ``KAFKA_VERSION`` may give its release."""
    address = os.environ.get("KAFKA_BOOTSTRAP")
    if not address:
        return None
    return Kafka(address, os.environ.get("KAFKA_VERSION", "unknown"))
