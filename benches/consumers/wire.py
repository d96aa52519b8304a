"""The times of the leader's JoinGroup response and SyncGroup request, for both clients.

librdkafka's times are in its debug log. In ours the two methods that handle the frames are wrapped.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from kafka_assignors.member.membership import MemberThread
from kafka_assignors.net import Connection, Received

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Watch", "planning_times"]

_LINE = re.compile(r"^%7\|(\d+\.\d+)\|.*(Received JoinGroupResponse|Sent SyncGroupRequest)")
_JOIN_GROUP, _SYNC_GROUP = 11, 14

Span = tuple[float, float]
"""The times of the response and of the request, in seconds since 1970."""


def planning_times(log: Iterable[str]) -> list[Span]:
    """The times of a librdkafka member, from its log with `debug=protocol`; a response without a request is dropped."""
    spans: list[Span] = []
    replied: float | None = None
    for line in log:
        found = _LINE.match(line)
        if found is None:
            continue
        at = float(found[1])
        if found[2].startswith("Received"):
            replied = at
        elif replied is not None:
            spans.append((replied, at))
            replied = None
    return spans


class Watch:
    """Watches the first member of ours that joins a group in this process, while its connection lasts."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._connection: Connection | None = None
        self._asked: set[bytes] = set()
        self._replied: float | None = None

    def install(self) -> None:
        """Watches from now on until the end of the process."""
        send, take = Connection.send, MemberThread._take

        def watched_send(connection: Connection, frame: bytes) -> None:
            number = int.from_bytes(frame[4:6], "big")
            if number == _JOIN_GROUP and self._connection is None:
                self._connection = connection
            if connection is self._connection:
                if number == _JOIN_GROUP:
                    self._asked.add(frame[8:12])
                elif number == _SYNC_GROUP and self._replied is not None:
                    self.spans.append((self._replied, time.time()))
                    self._replied = None
            send(connection, frame)

        def watched_take(member: MemberThread, event: Any) -> None:
            if isinstance(event, Received) and event.connection is self._connection and event.frame[:4] in self._asked:
                self._asked.discard(event.frame[:4])
                self._replied = time.time()
            take(member, event)

        Connection.send = watched_send  # type: ignore[method-assign, assignment]
        MemberThread._take = watched_take  # type: ignore[method-assign, assignment]
