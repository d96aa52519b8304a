"""Consumers in processes of their own, Java's and ours, which a test can command, freeze and kill.

A member reads commands from its standard input, one per line. After each it writes an event ``<command>-done``:

- ``subscribe t1,t2``: subscribe, or change the subscription. The first one starts the polling;
- ``stall ms``: do not poll for so long. The client's background work goes on;
- ``hold ms``: for our consumer of confluent-kafka only: a native call that keeps the interpreter's lock for so long;
- ``commit``: commit the positions; ``close``: leave the group and end.

It writes events to its standard output, one JSON object per line. Each has ``at``, in microseconds since the epoch:

- ``started``;
- ``planned``: the leader has planned (Java only);
- ``synced``: the assigned partitions of a generation, and whether this member planned the generation;
- ``assigned``, ``revoked``, ``lost``: the calls of the rebalance listener;
- ``closing``: the member leaves, and its client does not call the listener;
- ``consumed``: ranges of offsets; with ``more`` if the next line has further ones of the same records;
- ``error``.

All events of a test go to one `Trace`. The last event of each member there is ``ended``.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from support import jars, jvm
from support.jars import DEFAULT_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from support.broker import Kafka
    from support.trace import Event, Trace

Strategy = Literal["sticky", "cooperative-sticky", "consumer"]
"""The strategy of members; `consumer` is the consumer protocol (KIP-848), in which the broker plans."""

JAVA_ASSIGNORS = {
    "sticky": "Member$TracedStickyAssignor",
    "cooperative-sticky": "Member$TracedCooperativeStickyAssignor",
}

# Long enough for a busy machine with two cores, short enough for a test that waits for its end.
SESSION_MS = 4000
HEARTBEAT_MS = 300
METADATA_AGE_MS = 500

_CLOSE_TIMEOUT = 60.0


class Member:
    """A consumer process. The subclasses start one."""

    def __init__(
        self,
        trace: Trace,
        name: str,
        command: Sequence[str],
        log_directory: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.trace = trace
        self.name = name
        self.log_path = log_directory / f"{name}.log"
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=log_directory,
                env=environment,
            )
        self._reader = threading.Thread(target=self._read, name=f"events of {name}", daemon=True)
        self._reader.start()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def alive(self) -> bool:
        """Whether the process runs. A frozen process runs, too."""
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """None while the process runs."""
        return self._process.poll()

    def send(self, command: str) -> None:
        """Send a command without a wait for its event."""
        assert self._process.stdin is not None
        self._process.stdin.write(command.encode() + b"\n")
        self._process.stdin.flush()

    def subscribe(self, *topics: str) -> None:
        """Subscribe. The first subscription makes the member join its group."""
        self.trace.record(self.name, {"event": "subscribe", "topics": topics, "at": _now()})
        self.send(f"subscribe {','.join(topics)}")

    def stall(self, milliseconds: int) -> None:
        """Stop polling for so long. The client's heartbeats go on until ``max.poll.interval.ms`` is over."""
        self.trace.record(self.name, {"event": "stall", "at": _now()})
        self.send(f"stall {milliseconds}")

    def hold(self, milliseconds: int) -> None:
        """Keep the interpreter's lock for so long: no Python thread of the process runs. Wait for the end."""
        since = len(self.trace.events)
        self.trace.record(self.name, {"event": "stall", "at": _now()})
        self.send(f"hold {milliseconds}")
        self.wait_for("hold-done", 20.0 + milliseconds / 1000, since=since)

    def commit(self, timeout: float = 15.0) -> None:
        """Commit the positions and wait for the answer."""
        since = len(self.trace.events)
        self.send("commit")
        self.wait_for("commit-done", timeout, since=since)

    def close(self) -> None:
        """Leave the group, and wait for the process to end.

        Raises:
            RuntimeError: it failed, or had failed before; the text has the end of its log.
        """
        # The pipe of a process that has ended is broken. `wait_closed` reports its exit code, which explains more.
        with contextlib.suppress(BrokenPipeError):
            self.send("close")
        self.wait_closed()

    def wait_closed(self, timeout: float = _CLOSE_TIMEOUT) -> None:
        """Wait for the end of a member that received the command `close`."""
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError(self.failure(f"did not close within {timeout} s")) from None
        self._finish()
        if code != 0:
            raise RuntimeError(self.failure(f"ended with exit code {code}"))

    def kill(self) -> None:
        """SIGKILL: the member does not leave the group."""
        if self.alive:
            self.trace.record(self.name, {"event": "killed", "at": _now()})
            self._process.kill()
            self._process.wait()
        self._finish()

    def freeze(self) -> None:
        """SIGSTOP: the whole process stops, heartbeats included."""
        self.trace.record(self.name, {"event": "frozen", "at": _now()})
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT: the process goes on, with the state that it had when it was frozen."""
        self.trace.record(self.name, {"event": "thawed", "at": _now()})
        self._process.send_signal(signal.SIGCONT)

    def wait_for(self, event: str, timeout: float = 20.0, *, since: int = 0, **fields: object) -> Event:
        """The first event of that kind whose fields have these values, at or after position ``since`` of the trace."""

        def found(events: list[Event]) -> Event | None:
            for one in events[since:]:
                if one.member == self.name and one.kind == event and fields.items() <= one.fields.items():
                    return one
                if one.member == self.name and one.kind == "ended":
                    raise RuntimeError(self.failure(f"ended without {event} {fields or ''}"))
            return None

        return self.trace.wait_until(found, timeout, lambda: self.failure(f"no {event} {fields or ''}"))

    def failure(self, what: str) -> str:
        """A message with the end of the member's log and of its events."""
        log = "\n".join(self.log_path.read_text(errors="replace").splitlines()[-15:])
        return f"{self.name} {what}; its log is {self.log_path}, which ends:\n{log}\n{self.trace.tail()}"

    def _finish(self) -> None:
        # After this, the trace has everything that the process wrote.
        self._reader.join(_CLOSE_TIMEOUT)
        if self._process.stdin is not None and not self._process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self.trace.record(self.name, json.loads(line))
        self.trace.record(self.name, {"event": "ended", "at": _now()})


class JavaMember(Member):
    """A Java consumer with Kafka's own assignor.

    ``assignor`` names another class of its class path, or several, separated by commas. `JAVA_ASSIGNORS` are Kafka's
    own assignors that also write ``synced`` events. `Trace.settle` waits for these events of every member. With the
    protocol ``consumer`` (KIP-848) the broker assigns.
    """

    def __init__(
        self,
        trace: Trace,
        name: str,
        kafka: Kafka,
        group: str,
        log_directory: Path,
        *,
        strategy: Strategy = "sticky",
        assignor: str | None = None,
        protocol: Literal["classic", "consumer"] = "classic",
        **config: object,
    ) -> None:
        settings = _common(kafka.bootstrap_servers, group, name) | {"group.protocol": protocol}
        if protocol == "classic":
            settings["partition.assignment.strategy"] = assignor or JAVA_ASSIGNORS[strategy]
        else:
            # In this protocol they are settings of the broker.
            del settings["session.timeout.ms"], settings["heartbeat.interval.ms"]
        settings |= {key.replace("_", "."): value for key, value in config.items()}
        version = kafka.version if kafka.version[0].isdigit() else DEFAULT_VERSION
        classpath = jars.classpath(jars.libs(version), jars.member_classes(version))
        command = [jars.tool("java"), *jvm.kafka_options(version), "-Xmx128m", "-cp", classpath, "Member"]
        super().__init__(trace, name, [*command, *(f"{key}={value}" for key, value in settings.items())], log_directory)


class _PythonMember(Member):
    program = "python_member"
    client: str
    further: ClassVar[dict[str, Any]] = {}

    def __init__(
        self,
        trace: Trace,
        name: str,
        kafka: Kafka,
        group: str,
        log_directory: Path,
        *,
        strategy: Strategy = "sticky",
        **config: object,
    ) -> None:
        common = _common(kafka.bootstrap_servers, group, name)
        settings = {key.replace(".", "_"): value for key, value in (common | self.further).items()} | config
        if strategy == "consumer":
            # In this protocol they are settings of the broker.
            del settings["session_timeout_ms"], settings["heartbeat_interval_ms"]
        tests = jars.ROOT / "tests"
        path = os.pathsep.join(filter(None, [str(tests), os.environ.get("PYTHONPATH")]))
        command = [sys.executable, "-P", "-m", f"support.{self.program}", self.client, strategy]
        command += (f"{key}={json.dumps(value)}" for key, value in settings.items())
        super().__init__(trace, name, command, log_directory, os.environ | {"PYTHONPATH": path})


class KafkaPythonMember(_PythonMember):
    """A consumer of kafka-python with our assignor."""

    client = "kafka-python"


class AiokafkaMember(_PythonMember):
    """A consumer of aiokafka with our assignor."""

    client = "aiokafka"


class KafkaPythonDropInMember(KafkaPythonMember):
    """Our consumer for kafka-python."""

    program = "drop_in_member"
    # By default the client waits for up to 30 seconds after a few failures to connect, and its constructor gives up.
    further: ClassVar[dict[str, Any]] = {"reconnect.backoff.max.ms": 1000}


class AiokafkaDropInMember(AiokafkaMember):
    """Our consumer for aiokafka."""

    program = "drop_in_member"


class ConfluentMember(_PythonMember):
    """Our consumer for confluent-kafka."""

    client = "confluent"
    further: ClassVar[dict[str, Any]] = {"topic.metadata.refresh.interval.ms": METADATA_AGE_MS}


class LibrdkafkaMember(ConfluentMember):
    """confluent-kafka's own consumer, with librdkafka's own ``cooperative-sticky``."""

    client = "librdkafka"


def _common(bootstrap_servers: str, group: str, name: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap_servers,
        "group.id": group,
        "client.id": name,
        "session.timeout.ms": SESSION_MS,
        "heartbeat.interval.ms": HEARTBEAT_MS,
        "metadata.max.age.ms": METADATA_AGE_MS,
        "auto.offset.reset": "earliest",
    }


def _now() -> int:
    return time.time_ns() // 1000
