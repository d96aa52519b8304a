"""The event loop of the consumers that need one, in a thread."""

from __future__ import annotations

import asyncio
import threading
from functools import cache
from typing import TYPE_CHECKING, Any

from support.threads import TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


LOOP = "the tests' event loop"


class RunningLoop:
    """An event loop in a thread, for all consumers of this process. `longest` is how long it was ever blocked."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, name=LOOP, daemon=True).start()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Runs a coroutine there, and waits for its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(2 * TIMEOUT)

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Calls a function there."""

        async def called() -> Any:
            return function(*args)

        return self.run(called())


@cache
def running_loop() -> RunningLoop:
    """The event loop of all consumers of this process."""
    return RunningLoop()
