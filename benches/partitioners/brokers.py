"""Real brokers for the benchmarks: one, or three, of which one is behind a proxy that delays its responses."""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.broker import ApacheKafka

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["cpu_seconds", "one_broker", "three_brokers", "with_benches"]

_CONTROLLER = "CONTROLLER"


def with_benches() -> dict[str, str]:
    """The environment of a process that imports this package."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}


def cpu_seconds(*brokers: ApacheKafka) -> float:
    """The processor time of the running brokers so far, user and system."""
    ticks = 0
    for broker in brokers:
        # The name of the process, in brackets, may contain spaces. The fields after it do not.
        fields = Path(f"/proc/{broker.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / 100


@cache
def one_broker() -> ApacheKafka:
    """A broker that serves only the benchmark, so that its processor time is the load's.

    The benchmarks share it, since a JVM needs time to compile its code. It ends with the process.
    """
    stack = contextlib.ExitStack()
    directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-partitioners-"))
    # Registered after the directory: at exit the last function runs first, and the broker must end before its files go.
    atexit.register(stack.close)
    return stack.enter_context(ApacheKafka(Path(directory) / "broker"))


class _Follower(ApacheKafka):
    """A broker without a controller, in the cluster of another broker."""

    def __init__(self, first: ApacheKafka, number: int, directory: Path, **config: str | int) -> None:
        assert first._ports is not None, "the first broker has not been started"
        super().__init__(
            directory,
            first.version,
            process_roles="broker",
            node_id=number,
            controller_quorum_voters=f"1@{first.address(_CONTROLLER)}",
            **config,
        )

    def _prepare(self) -> None:
        self.config["listeners"] = f"PLAINTEXT://{self.address('PLAINTEXT')}"
        super()._prepare()
        # The directory was formatted by the first broker.
        properties = self.directory / "data" / "meta.properties"
        text = properties.read_text().replace("node.id=1", f"node.id={self.config['node.id']}")
        lines = [line for line in text.splitlines() if not line.startswith("directory.id")]
        properties.write_text("\n".join(lines) + "\n")

    def _wait_until_ready(self) -> None:
        """A broker is ready when the cluster lists it; `three_brokers` waits for that."""


@contextlib.contextmanager
def three_brokers(hold: float) -> Iterator[tuple[ApacheKafka, ApacheKafka, ApacheKafka]]:
    """A cluster of three. The last one answers clients through a proxy that delays each response by this time.

    The proxy is a separate process, so that it does not slow down the producer's process.
    """
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-partitioners-")))
        first = stack.enter_context(ApacheKafka(directory / "1"))
        second = stack.enter_context(_Follower(first, 2, directory / "2"))
        proxy = stack.enter_context(_Proxy(hold))
        third = _Follower(first, 3, directory / "3", advertised_listeners=f"PLAINTEXT://127.0.0.1:{proxy.port}")
        stack.enter_context(third)
        proxy.forward(third.address("PLAINTEXT"))
        deadline = time.monotonic() + 60
        while len(first.admin.list_topics(timeout=15).brokers) < 3:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the cluster did not come to have three brokers; their logs are in {directory}")
            time.sleep(0.05)
        yield first, second, third


class _Proxy:
    def __init__(self, hold: float) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "partitioners.proxy", str(hold)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=with_benches(),
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def forward(self, address: str) -> None:
        """Sets the address of the broker. Before, the proxy accepts no connections."""
        assert self._process.stdin is not None
        self._process.stdin.write(address + "\n")
        self._process.stdin.flush()

    def __enter__(self) -> _Proxy:
        return self

    def __exit__(self, *_: Any) -> None:
        self._process.kill()
        self._process.communicate()
