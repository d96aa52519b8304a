"""A child process of an example: it reads commands from its standard input and writes events to its output, by line."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Child:
    """`python ARGUMENTS…`, and a thread that reads its standard output.

    Args:
        arguments: The interpreter's arguments.
        heard: Called on that thread with each line of the child's standard output.
        failed: Called with the reason if the child ends by itself, or does not end after `stop`.
    """

    def __init__(self, arguments: list[str], heard: Callable[[str], object], failed: Callable[[str], object]) -> None:
        self._heard = heard
        self._failed = failed
        self._asked_to_end = False
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (the listener closes it)
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def tell(self, command: str) -> None:
        """Writes a line to the child's standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """Kills the process. Its member sends no LeaveGroup: the group keeps the member until its session expires."""
        self._asked_to_end = True
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Writes the command `stop`."""
        self._asked_to_end = True
        self.tell("stop")

    def join(self, seconds: float) -> None:
        """Waits until the process has ended and all of its lines were passed to `heard`."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._failed("did not stop when asked to")
        self._listener.join()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            # The last line of a killed process may be incomplete.
            if line.endswith("\n"):
                self._heard(line)
        if not self._asked_to_end:
            self._errors.seek(0)
            self._failed("ended by itself: " + self._errors.read()[-2000:])
        self._errors.close()
