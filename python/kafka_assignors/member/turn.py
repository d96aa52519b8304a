"""How the steps of a turn are driven: by a thread, or by a task on an event loop.

The rules of a rebalance are written once, as generators. They yield each step that may block, and a driver carries the
step out: the thread waits for it, the task awaits it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from kafka_assignors.member.data_path import DataPath, ListenerEvent, Partition
    from kafka_assignors.member.membership import Mailbox, MemberThread

__all__ = ["Arrivals", "Call", "LoopReply", "Steps", "Wait", "WaitForThread", "drive", "drive_on_loop"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """Calls the listener. The result is not used; an exception of the listener is raised at the `yield`."""

    listener: Any
    event: ListenerEvent
    partitions: frozenset[Partition]


@dataclass(frozen=True, slots=True)
class Wait:
    """Waits for work in the mailbox. The result is whether there is any."""

    seconds: float


@dataclass(frozen=True, slots=True)
class WaitForThread:
    """Waits for the end of a member's thread."""

    member: MemberThread
    seconds: float


Steps: TypeAlias = Generator[Call | Wait | WaitForThread, Any, T]


def drive(steps: Steps[T], path: DataPath, mailbox: Mailbox) -> T:
    """Takes the steps on this thread."""

    def perform(step: Call | Wait | WaitForThread) -> Any:
        match step:
            case Call():
                return path.call(step.listener, step.event, step.partitions)
            case Wait():
                return mailbox.wait(step.seconds)
            case WaitForThread():
                return step.member.join(step.seconds)

    try:
        step = next(steps)
        while True:
            try:
                result = perform(step)
            except BaseException as error:  # an interrupt too: the generator decides where it is raised
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as end:
        value: T = end.value
        return value


async def drive_on_loop(steps: Steps[T], path: DataPath, mailbox: Mailbox, arrivals: Arrivals) -> T:
    """Takes the steps in this task. The loop is never blocked."""

    async def perform(step: Call | Wait | WaitForThread) -> Any:
        match step:
            case Call():
                result = path.call(step.listener, step.event, step.partitions)
                return await result if inspect.isawaitable(result) else result
            case Wait():
                return bool(mailbox) or await arrivals.wait(step.seconds)
            case WaitForThread():
                return await asyncio.to_thread(step.member.join, step.seconds)

    try:
        step = next(steps)
        while True:
            try:
                result = await perform(step)
            except BaseException as error:  # a cancellation too
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as end:
        value: T = end.value
        return value


class Arrivals:
    """Lets a task of an event loop wait for the mailbox, which other threads fill. It is made on the running loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def ring(self) -> bool:
        """Ends the wait. Any thread may call it, for example `DataPath.wake`. Returns False if the loop is closed."""
        try:
            self._loop.call_soon_threadsafe(self._event.set)
        except RuntimeError:
            return False
        return True

    async def wait(self, seconds: float | None) -> bool:
        """Waits for `ring`. Returns False if it does not come in time.

        The mailbox is not checked, since work that no turn can do yet may stay there.
        """
        try:
            await asyncio.wait_for(self._event.wait(), seconds)
        except TimeoutError:
            return False
        self._event.clear()
        return True


class LoopReply:
    """The place of one answer of the membership, for a task of an event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[Any] = self._loop.create_future()

    def set(self, value: Any) -> None:
        """Puts the answer in place. The membership's thread calls it."""
        try:
            self._loop.call_soon_threadsafe(self._put, value)
        except RuntimeError:
            # The loop is closed, so no task waits.
            return

    def _put(self, value: Any) -> None:
        if not self._future.done():
            self._future.set_result(value)

    async def wait(self, timeout: float | None) -> Any | None:
        """The answer; None if it does not come in time."""
        try:
            return await asyncio.wait_for(asyncio.shield(self._future), timeout)
        except TimeoutError:
            return None
