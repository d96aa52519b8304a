"""Members of a consumer group that send JoinGroup and SyncGroup with any bytes that a test needs.

The broker does not parse the metadata or the assignments of a group. A group of these members can therefore have topics
and partitions that do not exist.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from kafka_assignors.userdata import Subscription

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from kafka_assignors.embedded import EmbeddedKafka
    from support.broker import Kafka

JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP = 11, 13, 14
NONE, UNKNOWN_SERVER_ERROR, REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED = 0, -1, 27, 79

_TIMEOUT = 30.0
# These members send no heartbeats: a shorter session would expel them on a busy machine.
_SESSION_MS = 120_000
_REBALANCE_MS = 20_000


@dataclass(frozen=True)
class Joined:
    """An answer to JoinGroup. Only the leader's has ``members``: the ids and metadata of all members."""

    error: int
    generation: int
    leader: str
    member_id: str
    members: tuple[tuple[str, bytes], ...]


class RawMember:
    """One member, with one connection to its coordinator."""

    def __init__(
        self,
        bootstrap_servers: str,
        group: str,
        client_id: str,
        strategy: str = "sticky",
        *,
        session_ms: int = _SESSION_MS,
    ) -> None:
        host, port = bootstrap_servers.split(",")[0].rsplit(":", 1)
        self.group, self.client_id, self.strategy, self.session_ms = group, client_id, strategy, session_ms
        self.member_id = ""
        self.joined: Joined | None = None
        self._socket = socket.create_connection((host, int(port)), timeout=_TIMEOUT)
        self._correlation = 0

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        """Close the connection without LeaveGroup."""
        self._socket.close()

    def send_join(self, metadata: bytes) -> None:
        """Send JoinGroup version 5. `receive_join` reads the answer."""
        self._send(
            JOIN_GROUP,
            5,
            _string(self.group)
            + struct.pack(">ii", self.session_ms, _REBALANCE_MS)
            + _string(self.member_id)
            + _string(None)
            + _string("consumer")
            + struct.pack(">i", 1)
            + _string(self.strategy)
            + _bytes(metadata),
        )

    def receive_join(self) -> Joined:
        reader = self._receive()
        error, generation = reader.take(">4xhi")
        reader.string()
        leader, member_id = reader.string(), reader.string()
        members = []
        for _ in range(reader.take(">i")[0]):
            ident = reader.string()
            reader.string()
            members.append((ident, reader.bytes()))
        self.member_id = member_id
        self.joined = Joined(error, generation, leader, member_id, tuple(members))
        return self.joined

    def send_sync(self, assignments: Mapping[str, bytes]) -> None:
        """Send SyncGroup version 3. Only the leader sends assignments."""
        assert self.joined is not None
        parts = [_string(ident) + _bytes(assignment) for ident, assignment in assignments.items()]
        self._send(
            SYNC_GROUP,
            3,
            _string(self.group)
            + struct.pack(">i", self.joined.generation)
            + _string(self.member_id)
            + _string(None)
            + struct.pack(">i", len(parts))
            + b"".join(parts),
        )

    def receive_sync(self) -> tuple[int, bytes]:
        reader = self._receive()
        return reader.take(">4xh")[0], reader.bytes()

    def remove(self, member_id: str) -> None:
        """Send LeaveGroup version 1 for a member of the group, and check the answer."""
        self._send(LEAVE_GROUP, 1, _string(self.group) + _string(member_id))
        (error,) = self._receive().take(">4xh")
        assert error == NONE, f"LeaveGroup of {member_id} failed with error {error}"

    def _send(self, api: int, version: int, body: bytes) -> None:
        self._correlation += 1
        header = struct.pack(">hhi", api, version, self._correlation) + _string(self.client_id)
        self._socket.sendall(struct.pack(">i", len(header) + len(body)) + header + body)

    def _receive(self) -> _Reader:
        (size,) = struct.unpack(">i", self._exactly(4))
        reader = _Reader(self._exactly(size))
        (correlation,) = reader.take(">i")
        assert correlation == self._correlation, "an answer to another request"
        return reader

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self._socket.recv(min(size - len(data), 1 << 20))
            if not part:
                raise ConnectionError(f"{self.client_id}: the broker closed the connection")
            data += part
        return bytes(data)


class RawGroup:
    """Members of one group that go through its rebalances together; a context manager."""

    def __init__(self, bootstrap_servers: str, group: str, client_ids: Iterable[str], strategy: str = "sticky") -> None:
        self.members = [RawMember(bootstrap_servers, group, client_id, strategy) for client_id in client_ids]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.close()

    def join(self, metadata: Mapping[str, bytes]) -> Joined:
        """All members join, with metadata by client id. Returns the leader's answer, which lists all members."""
        for member in self.members:
            member.send_join(metadata[member.client_id])
        waiting = set(self.members)
        leader: Joined | None = None
        incomplete = -1
        while waiting or leader is None:
            readable, _, _ = select.select(list(waiting), [], [], _TIMEOUT)
            assert readable, f"no answer to JoinGroup for {[member.client_id for member in waiting]}"
            for member in readable:
                answer = member.receive_join()
                if answer.error == MEMBER_ID_REQUIRED:
                    member.send_join(metadata[member.client_id])
                    continue
                assert answer.error == NONE, f"JoinGroup of {member.client_id} failed with error {answer.error}"
                waiting.discard(member)
                if len(answer.members) == len(self.members):
                    leader = answer
                elif answer.leader == answer.member_id:
                    incomplete = max(incomplete, answer.generation)
            # A generation may have begun without some of the members. The members in it then join again.
            for member in self.members:
                if member not in waiting and member.joined is not None and member.joined.generation <= incomplete:
                    member.send_join(metadata[member.client_id])
                    waiting.add(member)
        return leader

    def sync(self, assignments: Mapping[str, bytes]) -> dict[str, tuple[int, bytes]]:
        """All members send SyncGroup. Returns error code and assignment by client id."""
        for member in self.members:
            assert member.joined is not None
            member.send_sync(assignments if member.joined.leader == member.member_id else {})
        return {member.client_id: member.receive_sync() for member in self.members}


def expel(kafka: EmbeddedKafka, group: str) -> None:
    """Removes the only member of a group, which learns it from the answer to its next heartbeat: UNKNOWN_MEMBER_ID.

    An injected error would expel the member on one side only: Kafka would keep it until its session ends, and the new
    member would wait for that.
    """
    (member_id,) = kafka.groups()[group].members
    sender = RawMember(kafka.bootstrap_servers, group, "expels")
    try:
        sender.remove(member_id)
    finally:
        sender.close()


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, layout: str) -> tuple[int, ...]:
        values = struct.unpack_from(layout, self.data, self.at)
        self.at += struct.calcsize(layout)
        return values

    def string(self) -> str:
        (size,) = self.take(">h")
        self.at += max(size, 0)
        return self.data[self.at - max(size, 0) : self.at].decode()

    def bytes(self) -> bytes:
        (size,) = self.take(">i")
        self.at += max(size, 0)
        return self.data[self.at - max(size, 0) : self.at]


def _string(text: str | None) -> bytes:
    if text is None:
        return struct.pack(">h", -1)
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _bytes(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


@contextlib.contextmanager
def waiting_for_a_dead_member(
    kafka: Kafka, group: str, topic: str, strategy: str, poll: Callable[[float], object]
) -> Iterator[None]:
    """Keeps a group in a rebalance, in which the group waits for a member that sends no further request.

    Args:
        kafka: the brokers of the group.
        group: a group that has other members already.
        topic: the topic of the two raw members.
        strategy: the assignor of the group.
        poll: polls the other members for so many seconds.
    """
    names = ("dead", "newcomer")
    # The rebalance ends when the session of the dead member expires. A consumer that is closed may wait for that.
    others = [RawMember(kafka.bootstrap_servers, group, name, strategy, session_ms=20_000) for name in names]
    metadata = Subscription([topic]).encode()
    for other in others:
        other.send_join(metadata)
        if other.receive_join().error == MEMBER_ID_REQUIRED:
            other.send_join(metadata)
        poll(1.5)
        if other.client_id == "dead":
            assert other.receive_join().error == NONE
    assert kafka.describe_group(group).state == "PREPARING_REBALANCING"
    yield
    for other in others:
        other.close()
