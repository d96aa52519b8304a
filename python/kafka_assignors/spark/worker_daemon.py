"""Spark's daemon for Python workers, which treats a socket that the JVM has closed as the normal end of a worker.

The JVM closes the socket of a worker that is idle for a minute, or whose session ends. Over TCP the worker's last
write seems to succeed; over a Unix domain socket it fails at once, and Spark's own daemon prints a traceback for every
worker. No data is lost: the JVM closes a socket only after it has read the whole answer of the task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["quiet"]


def quiet(worker: Callable[[Any, bool], int]) -> Callable[[Any, bool], int]:
    """The daemon's function that serves one socket; it returns when the JVM has closed the socket."""

    def serve(sock: Any, authenticated: bool) -> int:
        try:
            return worker(sock, authenticated)
        except (BrokenPipeError, ConnectionResetError):
            # Not 0, which would let the daemon use the closed socket again.
            return 1

    return serve


if __name__ == "__main__":
    from pyspark import daemon

    served: Any = daemon
    served.worker = quiet(daemon.worker)
    served.manager()
