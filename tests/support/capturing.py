"""A capture in a process group of its own. A test can kill all processes of the group."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from support import jars

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.broker import Kafka

_TIMEOUT = 180.0


class Capturing:
    """`python -m kafka_assignors.spark capture`. Its Java process and its Python workers are one process group."""

    def __init__(self, kafka: Kafka, out: Path, log: Path, *options: str) -> None:
        self.out = out
        self.log_path = log
        command = [sys.executable, "-P", "-m", "kafka_assignors.spark", "capture", "--out", str(out)]
        command += ["--bootstrap", kafka.bootstrap_servers, "--every", "0.5", *options]
        for jar in jars.spark_connector():
            command += ["--jar", str(jar)]
        with log.open("ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)

    @property
    def batches(self) -> dict[int, dict[str, Any]]:
        """The complete batches so far."""
        return {int(path.stem): json.loads(path.read_text()) for path in self.out.glob("_batches/*.json")}

    def wait_until(self, true: Callable[[], object], what: str) -> None:
        """Waits until `true()` holds."""
        deadline = time.monotonic() + _TIMEOUT
        while not true():
            if self._process.poll() is not None:
                raise RuntimeError(f"the capture ended before {what}:\n{self.log}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {_TIMEOUT} s: {what}; the capture's log:\n{self.log}")
            time.sleep(0.1)

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")[-6000:]

    def kill(self) -> None:
        """Sends SIGKILL to all processes of the group at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def end(self) -> int:
        """Sends SIGTERM, as an operator does; returns the exit status."""
        self._process.terminate()
        return self._process.wait(_TIMEOUT)
