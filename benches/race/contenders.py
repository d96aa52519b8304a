"""The contenders (ours, the codec floor, the peers), and the command that starts each."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from support import jars

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CONTENDERS", "FLOORS", "OURS", "PEERS", "Contender", "MissingPeerError", "available", "version"]

HERE = Path(__file__).parent
# The limit of a contender's memory; of Java's it is the heap.
MEMORY_GB = 6
# The defaults of a JVM on a server, but with the heap allocated from the start.
JVM_OPTIONS = ("-Xms1g", f"-Xmx{MEMORY_GB}g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off")
# Go's archive is installed here, and not on PATH.
GO = "/usr/local/go/bin/go"


class MissingPeerError(RuntimeError):
    """A peer cannot be measured on this machine; the message says why."""


@dataclass(frozen=True)
class Contender:
    """One assignor of one client.

    Attributes:
        name: Its name in the tables.
        strategy: The name of its strategy in the protocol. A peer is compared with ours of the same name.
        worker: The process that runs it.
        call: The strategy in the request to that process.
        beside: The strategy of the calls that are measured in turns with its own; empty for none.
        warm: The seconds of warm-up before calls count.
        limited: Whether its address space is limited. A JVM reserves more than it uses, so it is not.
    """

    name: str
    strategy: str
    worker: str
    call: str
    beside: str = ""
    warm: float = 0.2
    limited: bool = True

    @property
    def cooperative(self) -> bool:
        return self.strategy.startswith("cooperative")


EAGER, COOPERATIVE = "sticky", "cooperative-sticky"

FLOORS = [Contender(f"codec floor {each}", each, "ours", f"floor {each}") for each in (EAGER, COOPERATIVE)]
OURS = [
    Contender(f"kafka-assignors {each.strategy}", each.strategy, "ours", each.strategy, each.call) for each in FLOORS
]
PEERS = [
    Contender("kafka-python sticky", EAGER, "kafka-python", EAGER, warm=0),
    Contender("kafka-python cooperative-sticky", COOPERATIVE, "kafka-python", COOPERATIVE, warm=0),
    Contender("aiokafka sticky", EAGER, "aiokafka", EAGER, warm=0),
    Contender("Java StickyAssignor", EAGER, "java", EAGER, warm=2.0, limited=False),
    Contender("Java CooperativeStickyAssignor", COOPERATIVE, "java", COOPERATIVE, warm=2.0, limited=False),
    Contender("franz-go sticky", EAGER, "franz-go", EAGER, warm=0.5, limited=False),
    Contender("franz-go cooperative-sticky", COOPERATIVE, "franz-go", COOPERATIVE, warm=0.5, limited=False),
    Contender("Sarama sticky", EAGER, "sarama", EAGER, warm=0.5),
    Contender("Sarama cooperative-sticky", COOPERATIVE, "sarama", COOPERATIVE, warm=0.5),
    Contender("librdkafka cooperative-sticky", COOPERATIVE, "librdkafka", COOPERATIVE, warm=0),
]
CONTENDERS = [*FLOORS, *OURS, *PEERS]


def _python(package: str, *arguments: str) -> Callable[[], list[str]]:
    def command() -> list[str]:
        if find_spec(package) is None:
            raise MissingPeerError(f"the package {package} is not installed")
        return [sys.executable, "-P", "-m", *arguments]

    return command


def _java() -> list[str]:
    source = HERE / "java" / "Race.java"
    kafka = jars.DEFAULT_VERSION
    try:
        libraries = jars.libs(kafka)

        def compile_harness(target: Path) -> None:
            target.mkdir()
            options = ("-Xlint:all,-classfile,-processing", "-Werror", "--release", "17", "-proc:none")
            command = (jars.tool("javac"), *options, "-cp", f"{libraries}/*", "-d", target, source)
            jars.run(command, "compiling Race.java")

        classes = jars.made_once(kafka, f"race-{_digest(source)}", compile_harness)
        return [jars.tool("java"), *JVM_OPTIONS, "-cp", jars.classpath(classes, libraries), "Race"]
    except (jars.ToolMissingError, RuntimeError, OSError) as error:
        raise MissingPeerError(str(error)) from error


def _go(client: str) -> Callable[[], list[str]]:
    def command() -> list[str]:
        go = shutil.which("go") or (GO if Path(GO).exists() else None)
        if go is None:
            raise MissingPeerError(f"go is not on PATH: the harness of {client} needs Go, version 1.26 or newer")
        sources = [HERE / "go" / name for name in ("main.go", "franz_go.go", "sarama.go", "go.mod", "go.sum")]
        program = jars.CACHE / f"race-go-{_digest(*sources)}"
        with jars.locked(jars.CACHE / "race-go.lock"):
            if not program.exists():
                unfinished = program.with_suffix(f".{os.getpid()}")
                try:
                    # Without these options a build takes a quarter of its processor time for the collection of garbage,
                    # and an eighth for debug information and for the parts of Go's library that are written in C.
                    lean = ("-ldflags=-w", "-gcflags=all=-dwarf=false")
                    go_build = ("env", "GOGC=off", "CGO_ENABLED=0", go, "build", "-C", HERE / "go", *lean)
                    command = (*go_build, "-o", unfinished, ".")
                    jars.run(command, "building the Go harness", 600)
                    unfinished.rename(program)
                except (RuntimeError, OSError) as error:
                    raise MissingPeerError(str(error)) from error
                finally:
                    unfinished.unlink(missing_ok=True)
        return [str(program), client]

    return command


def _digest(*paths: Path) -> str:
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()[:12]


_COMMANDS: dict[str, Callable[[], list[str]]] = {
    "ours": _python("kafka_assignors", "race.worker", "ours"),
    "kafka-python": _python("kafka", "race.worker", "kafka-python"),
    "aiokafka": _python("aiokafka", "race.worker", "aiokafka"),
    "java": _java,
    "franz-go": _go("franz-go"),
    "sarama": _go("sarama"),
    "librdkafka": _python("confluent_kafka", "race.librdkafka"),
}


@cache
def available(worker: str) -> tuple[str, ...]:
    """The command that starts a worker. A program is built if necessary.

    Raises:
        MissingPeerError: it is not installed, or cannot be built.
    """
    return tuple(_COMMANDS[worker]())


def version(worker: str) -> str:
    """The release of a contender."""
    match worker:
        case "ours":
            return metadata.version("kafka-assignors")
        case "java":
            return f"kafka-clients {jars.DEFAULT_VERSION}"
        case "franz-go" | "sarama":
            module = {"franz-go": "github.com/twmb/franz-go", "sarama": "github.com/IBM/sarama"}[worker]
            lines = (HERE / "go" / "go.mod").read_text().splitlines()
            return next(line.split()[-1] for line in lines if line.split()[:1] == [module])
        case "librdkafka":
            from confluent_kafka import libversion

            return str(libversion()[0])
        case _:
            return metadata.version(worker)


if __name__ == "__main__":
    # Builds the programs of the peers, which are otherwise built when the first race needs them.
    for peer in ("java", "franz-go"):
        try:
            available(peer)
        except MissingPeerError as missing:
            print(missing)
