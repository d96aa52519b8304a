"""Spark's daemon for Python workers, for which a JVM that has hung up is no error.

A worker that is idle for a minute, or whose session ends, finds its socket closed by the JVM. Over TCP its last words
go nowhere unnoticed; over a Unix domain socket writing them fails at once, and the daemon prints a traceback for every
worker. What a task still needs is not lost: the JVM closes a socket only when it has read all that it wants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["quiet"]


def quiet(worker: Callable[[Any, bool], int]) -> Callable[[Any, bool], int]:
    """The daemon's function that serves one socket, which ends where the JVM has closed it."""

    def serve(sock: Any, authenticated: bool) -> int:
        try:
            return worker(sock, authenticated)
        except (BrokenPipeError, ConnectionResetError):
            # Not 0: the socket is of no use any more.
            return 1

    return serve


if __name__ == "__main__":
    from pyspark import daemon

    served: Any = daemon
    served.worker = quiet(daemon.worker)
    served.manager()
