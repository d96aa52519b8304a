"""The jars of an Apache Kafka release, the Java test member and Spark's Kafka connector, in a cache inside the clone.

Everything below ``.cache/kafka-<version>/`` is made once, under a lock between processes. It is made in a directory of
its own, which is renamed when it is complete: an interrupted test run leaves nothing incomplete behind.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

DEFAULT_VERSION = "4.3.1"

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"
JAVA_SOURCES = ROOT / "tests" / "java"

_FETCH_TIMEOUT = 900
_TOOL_TIMEOUT = 600


OLDEST_CONSUMER_PROTOCOL = "4.0.2"
"""In 3.9 the protocol is a preview."""


def versions() -> list[str]:
    """The releases of Apache Kafka for this run: ``KAFKA_VERSIONS``, or the newest."""
    named = [version.strip() for version in os.environ.get("KAFKA_VERSIONS", "").split(",")]
    return [version for version in named if version] or [DEFAULT_VERSION]


def consumer_protocol_version() -> str:
    """The release for tests of the consumer protocol (KIP-848): the first of this run that has it, or the oldest."""
    found = [version for version in versions() if int(version.partition(".")[0]) >= 4]
    return found[0] if found else OLDEST_CONSUMER_PROTOCOL


class ToolMissingError(RuntimeError):
    """Java or Maven is not installed. The broker tests need both, and fail without them."""


@cache
def tool(name: str) -> str:
    """The path of ``java``, ``javac`` or ``mvn``."""
    path = shutil.which(name)
    if path is None:
        msg = (
            f"{name} is not on PATH: the tests against a real Apache Kafka need a Java development kit, version 17 or "
            "newer, and Maven (Debian: apt-get install openjdk-17-jdk-headless maven)"
        )
        raise ToolMissingError(msg)
    return path


def run(command: Sequence[str | Path], what: str, timeout: float = _TOOL_TIMEOUT) -> str:
    """Run a program to its end and return its output. If the program fails, the error contains all of the output."""
    done = subprocess.run(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        check=False,
    )
    if done.returncode != 0:
        msg = f"{what} failed with exit code {done.returncode}:\n{done.stdout[-8000:]}"
        raise RuntimeError(msg)
    return done.stdout


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on ``path`` against every other process. The kernel releases it if this process dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def home(version: str) -> Path:
    """The cache directory of one Kafka release."""
    return CACHE / f"kafka-{version}"


def libs(version: str) -> Path:
    """The directory with all jars of Apache Kafka ``version``: the broker, its tools and the Java client."""
    pom = JAVA_SOURCES / "pom.xml"

    def fetch(target: Path) -> None:
        goal = (tool("mvn"), "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", "-DincludeScope=runtime")
        run(
            (*goal, f"-Dkafka.version={version}", f"-DoutputDirectory={target}"),
            f"fetching Apache Kafka {version} with Maven",
            _FETCH_TIMEOUT,
        )

    return made_once(version, f"libs-{_digest(pom)}", fetch)


def member_classes(version: str) -> Path:
    """The compiled Java test member, for the client of ``version``."""
    return program_classes(version, "Member")


def program_classes(version: str, name: str) -> Path:
    """The compiled program ``name`` of tests/java, for the jars of ``version``."""
    source = JAVA_SOURCES / f"{name}.java"
    jars = libs(version)

    def compile_program(target: Path) -> None:
        target.mkdir()
        command = (tool("javac"), "-Xlint:all,-classfile,-processing", "-Werror", "--release", "17", "-proc:none")
        run((*command, "-cp", f"{jars}/*", "-d", target, source), f"compiling {source.name}")

    return made_once(version, f"{name.lower()}-{_digest(source)}", compile_program)


def spark_connector() -> list[Path]:
    """The jars of Spark's Kafka connector, in the versions that the package pins."""
    pom = ROOT / "python" / "kafka_assignors" / "spark" / "connector.pom.xml"

    def fetch(target: Path) -> None:
        goal = (tool("mvn"), "-q", "-B", "-f", str(pom), "dependency:copy-dependencies")
        run((*goal, f"-DoutputDirectory={target}"), "fetching Spark's Kafka connector with Maven", _FETCH_TIMEOUT)

    return sorted(made_once(DEFAULT_VERSION, f"spark-{_digest(pom)}", fetch).glob("*.jar"))


def classpath(*entries: Path) -> str:
    """A class path: directories, and every jar of ``libs`` directories, in a fixed order."""
    parts: list[str] = []
    for entry in entries:
        jars = sorted(str(jar) for jar in entry.glob("*.jar"))
        parts += jars or [str(entry)]
    return os.pathsep.join(parts)


def made_once(version: str, name: str, make: Callable[[Path], None]) -> Path:
    """The directory or file ``name`` in the cache of ``version``. ``make`` builds it if it does not exist."""
    target = home(version) / name
    if not target.exists():
        with locked(CACHE / f"kafka-{version}.lock"):
            if not target.exists():
                unfinished = home(version) / f"{name}.{os.getpid()}.unfinished"
                unfinished.parent.mkdir(parents=True, exist_ok=True)
                try:
                    make(unfinished)
                    unfinished.rename(target)
                finally:
                    shutil.rmtree(unfinished, ignore_errors=True)
    return target


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


if __name__ == "__main__":
    # `make jars`. Only the standard library is used, so that it can run while the package is being built.
    for release in versions():
        member_classes(release)
        program_classes(release, "ServerSide")
    spark_connector()
