"""A child process of an example: told what to do line by line, and listened to line by line."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Child:
    """`python ARGUMENTS…`, and the thread that listens to it.

    Args:
        arguments: What the interpreter is given.
        heard: Called on that thread with each line of the child's standard output.
        failed: Called with what went wrong when the child ends unasked, or does not end when asked.
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
        """Ends it with no goodbye: its group has to find out by itself."""
        self._asked_to_end = True
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Tells it to stop."""
        self._asked_to_end = True
        self.tell("stop")

    def join(self, seconds: float) -> None:
        """Waits until it has ended and everything that it said was heard."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._failed("did not stop when asked to")
        self._listener.join()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            # A process that was killed may have been in the middle of a line.
            if line.endswith("\n"):
                self._heard(line)
        if not self._asked_to_end:
            self._errors.seek(0)
            self._failed("ended by itself: " + self._errors.read()[-2000:])
        self._errors.close()
