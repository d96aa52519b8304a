"""The object in a consumer's `_coordinator` while our member runs the group, and the task that takes its turns.

The client calls its `check_errors` at the beginning of each get, and its `close` in `stop`. Frameworks read the
member's id and generation there.
"""

from __future__ import annotations

import asyncio
import logging
import time
import weakref
from typing import TYPE_CHECKING, Any

from kafka_assignors.member.data_path import Position
from kafka_assignors.member.turn import Arrivals

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kafka_assignors.clients.aiokafka.commits import Committing
    from kafka_assignors.clients.aiokafka.data_path import AiokafkaPath

__all__ = ["GroupSlot"]

logger = logging.getLogger("kafka_assignors")

_running: set[asyncio.Task[None]] = set()


class GroupSlot:
    """The group as the client's coordinator shows it. It is made on the running loop, and begins to take turns.

    Attributes:
        group_id: the group.
        native: the coordinator that the client made for a consumer without a group: it starts partitions without a
            commit by the client's reset rule.
    """

    def __init__(self, native: Any, path: AiokafkaPath, committing: Committing) -> None:
        self._open: Any | None = None
        self.put_upon(native)
        self.group_id = path.config.group_id
        self._path = path
        self._side = path.side
        self._committing = committing
        self._arrivals = path.arrivals = Arrivals()
        self._is_over = False
        name = f"kafka-assignors-turns-{self.group_id}"
        self._turns = asyncio.create_task(_take_turns(weakref.ref(self), self._arrivals), name=name)
        # An event loop keeps weak references to its tasks only.
        _running.add(self._turns)
        self._turns.add_done_callback(_running.discard)
        weakref.finalize(self, self._arrivals.ring)

    def __getattr__(self, name: str) -> Any:
        if name == "native":
            raise AttributeError(name)
        return getattr(self.native, name)

    # The methods that the client and frameworks call.

    @property
    def member_id(self) -> str:
        """Of the current membership; empty without one."""
        member = self._side.member
        return "" if member is None else member.identity[0]

    @property
    def generation(self) -> int:
        """Of the current membership; -1 without one."""
        member = self._side.member
        return -1 if member is None else member.identity[1]

    def check_errors(self) -> None:
        """Raises the group's error that the application has not received yet."""
        self._path.asked()
        self.native.check_errors()

    def start_commit_offsets_refresh_task(self, _: Any) -> None:
        """`assign` calls it. The membership fetches commits."""

    def maybe_leave_group(self) -> None:
        """`unsubscribe` calls it. The membership leaves by itself."""

    async def commit_offsets(self, _: Any, offsets: Mapping[Any, Any]) -> None:
        """Commits; each value has an offset and metadata."""
        await self._committing.commit(
            {(each.topic, each.partition): Position(at.offset, -1, at.metadata) for each, at in offsets.items()}
        )

    async def fetch_committed_offsets(self, partitions: Iterable[Any]) -> dict[Any, Any]:
        """The group's commits of partitions."""
        return await self._committing.committed(partitions)

    async def close(self) -> None:
        """Commits, leaves the group, and ends. `stop` calls it, and may do so again."""
        if self._is_over:
            return
        self._is_over = True
        self._path.end_listener()
        self._arrivals.ring()
        # Within the listener, leaving would wait for itself: the task leaves when the turn is over.
        if asyncio.current_task() is not self._turns:
            await asyncio.wait([self._turns])
            await self._leave()
        self._path.end()
        await self.close_native()

    async def close_native(self) -> None:
        """Closes the client's coordinator, once."""
        native, self._open = self._open, None
        if native is not None:
            await native.close()

    def put_upon(self, native: Any) -> None:
        """Takes the place of another coordinator of the client."""
        self.native = self._open = native

    # Turns.

    @property
    def patience(self) -> float | None:
        """For how many seconds no turn has anything to do; None if only an arrival begins one."""
        if not self._side.subscribed:
            # There is nothing to commit, and no turn would set the next time.
            return None
        due = self._side.next_commit - time.monotonic()
        return None if due == float("inf") else max(0.0, due)

    async def take_turn(self) -> bool:
        """Takes a turn. Returns False after the last one."""
        if not self._is_over:
            asks = self._path.asks
            try:
                await self._side.attend_on_loop(self._arrivals, can_raise=asks)
            except Exception:
                logger.exception("a turn of group %r failed", self.group_id)
            if asks and self._side.mailbox:
                # An error ended the turn, and the rest of the mailbox follows.
                self._arrivals.ring()
        if self._is_over:
            await self._leave()
        return not self._is_over

    async def _leave(self) -> None:
        if not self._side.has_left:
            try:
                await self._side.close_on_loop(self._arrivals)
            except Exception:
                logger.exception("group %r: leaving failed", self.group_id)


async def _take_turns(of: weakref.ref[GroupSlot], arrivals: Arrivals) -> None:
    """The task of the turns. Between two turns it does not hold the slot, so a consumer without `stop` is collected."""
    goes_on = True
    while goes_on:
        slot = of()
        if slot is None:
            return
        patience = slot.patience
        del slot
        await arrivals.wait(patience)
        slot = of()
        goes_on = slot is not None and await slot.take_turn()
        del slot
