"""Standard output of the commands: characters that it cannot encode are escaped, and a closed pipe ends a command."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["OutputError", "guarded"]

_BAD_OUTPUT = 2


class OutputError(Exception):
    """Standard output cannot be written. Not an `OSError`: typer and rich have exit statuses of their own for those."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(cause.strerror)
        self.reader_gone = cause.errno in (errno.EPIPE, errno.ESHUTDOWN)


class _Output(io.TextIOWrapper):
    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError as error:
            raise OutputError(error) from error

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            raise OutputError(error) from error


class _Closed(io.TextIOBase):
    """Standard output of a process that was started without one (`>&-`): only a command that writes to it fails."""

    def write(self, text: str, /) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() takes a str, not {type(text).__name__}")
        if text:
            raise OutputError(OSError(errno.EBADF, os.strerror(errno.EBADF)))
        return 0


@contextmanager
def guarded() -> Iterator[None]:
    """Runs a command and flushes its output, so that an error of the last bytes is not lost.

    If the reader closes the pipe, SIGPIPE ends the process, as it ends other programs. Any other error is one sentence
    on standard error, and exit status 2. A stream that is no file, such as the stream of a test, is not replaced.
    """
    original = sys.stdout
    if original is None:
        sys.stdout = _Closed()
    elif isinstance(original, io.TextIOWrapper):
        encoding, line_buffering = original.encoding, original.line_buffering
        sys.stdout = _Output(original.detach(), encoding, "backslashreplace", line_buffering=line_buffering)
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OutputError as error:
        if isinstance(sys.stdout, _Output):
            _discard(sys.stdout)
        if error.reader_gone:
            _end_by_signal()
        print(f"kafka-assignors: standard output cannot be written: {error}", file=sys.stderr)
        sys.exit(_BAD_OUTPUT)


def _discard(output: _Output) -> None:
    """Empties the buffer into the null device: the interpreter flushes it at its end, and would print an error."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, output.fileno())
    os.close(null)


def _end_by_signal() -> NoReturn:
    if sys.platform != "win32":
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)
    sys.exit(_BAD_OUTPUT)
