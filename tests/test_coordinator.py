"""The coordinator's binding, spoken to in kafka-python's own encoding."""

from typing import Any

import pytest
from kafka.protocol.consumer import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    OffsetCommitRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)

from kafka_assignors._core import Coordinator

HEARTBEAT = 12


def frame(request: Any, version: int, correlation_id: int = 1) -> bytes:
    request.with_header(correlation_id=correlation_id, client_id="python")
    return bytes(request.encode(version=version, header=True))


def join(member_id: str = "", group_id: str = "g") -> bytes:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="sticky", metadata=b"subscription")
    request = JoinGroupRequest(
        version=7,
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=30_000,
        member_id=member_id,
        group_instance_id=None,
        protocol_type="consumer",
        protocols=[protocol],
    )
    return frame(request, 7)


def sync(member_id: str, generation: int) -> bytes:
    share = SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=b"share")
    request = SyncGroupRequest(
        version=3,
        group_id="g",
        generation_id=generation,
        member_id=member_id,
        group_instance_id=None,
        assignments=[share],
    )
    return frame(request, 3)


def heartbeat(member_id: str, generation: int) -> bytes:
    request = HeartbeatRequest(
        version=3, group_id="g", generation_id=generation, member_id=member_id, group_instance_id=None
    )
    return frame(request, 3)


def only(replies: list[tuple[int, bytes]], connection: int = 1) -> bytes:
    ((to, reply),) = replies
    assert to == connection
    return reply


def stable(coordinator: Coordinator) -> str:
    """A group of one member, which has its share; gives the member's id."""
    member_id: str = JoinGroupResponse.decode(only(coordinator.handle(0, 1, join())), version=7, header=True).member_id
    joined = JoinGroupResponse.decode(only(coordinator.handle(0, 1, join(member_id))), version=7, header=True)
    assert (joined.error_code, joined.generation_id, joined.leader) == (0, 1, member_id)
    assert joined.members[0].metadata == b"subscription"
    synced = SyncGroupResponse.decode(only(coordinator.handle(0, 1, sync(member_id, 1))), version=3, header=True)
    assert (synced.error_code, synced.assignment) == (0, b"share")
    return member_id


def heartbeat_code(coordinator: Coordinator, now_ms: int, member_id: str) -> int:
    reply = only(coordinator.handle(now_ms, 1, heartbeat(member_id, 1)))
    code: int = HeartbeatResponse.decode(reply, version=3, header=True).error_code
    return code


def test_a_member_joins_syncs_lives_and_expires() -> None:
    coordinator = Coordinator(seed=3)
    member_id = stable(coordinator)
    assert member_id.startswith("python-")
    assert heartbeat_code(coordinator, 4_000, member_id) == 0
    assert coordinator.next_deadline() == 14_000
    (group,) = coordinator.groups()
    member = {
        "member_id": member_id,
        "instance_id": None,
        "client_id": "python",
        "joining": False,
        "syncing": False,
        "assignment": b"share",
    }
    assert group == {
        "group_id": "g",
        "state": "Stable",
        "generation": 1,
        "protocol_type": "consumer",
        "protocol": "sticky",
        "leader": member_id,
        "members": [member],
    }
    assert coordinator.tick(14_000) == []
    assert coordinator.groups()[0]["state"] == "Empty"
    assert coordinator.next_deadline() is None


def test_a_parked_join_is_answered_by_another_call_or_forgotten_with_its_connection() -> None:
    coordinator = Coordinator()
    first = stable(coordinator)
    reply = only(coordinator.handle(0, 2, join()), 2)
    second = JoinGroupResponse.decode(reply, version=7, header=True).member_id
    assert coordinator.handle(0, 2, join(second)) == []
    assert coordinator.is_waiting(2)
    assert heartbeat_code(coordinator, 0, first) == 27
    replies = coordinator.handle(0, 1, join(first))
    assert sorted(connection for connection, _ in replies) == [1, 2]
    assert coordinator.handle(1, 2, sync(second, 2)) == []
    assert coordinator.disconnect(2, 2) == []
    assert not coordinator.is_waiting(2)


def test_commits_injected_codes_and_limits() -> None:
    coordinator = Coordinator(max_record_bytes=1_000_000)
    member_id = stable(coordinator)
    coordinator.inject(HEARTBEAT, 16, times=2)
    assert [heartbeat_code(coordinator, 0, member_id) for _ in range(3)] == [16, 16, 0]
    with pytest.raises(ValueError, match="api_key 3 is not served"):
        coordinator.inject(3, 16)

    coordinator.set_topics({"t": 4})
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    partitions = [
        topic.OffsetCommitRequestPartition(
            partition_index=index, committed_offset=9, committed_leader_epoch=2, committed_metadata="note"
        )
        for index in (3, 4)
    ]
    request = OffsetCommitRequest(
        version=7,
        group_id="g",
        generation_id_or_member_epoch=1,
        member_id=member_id,
        group_instance_id=None,
        topics=[topic(name="t", partitions=partitions)],
    )
    only(coordinator.handle(0, 1, frame(request, 7)))
    assert coordinator.committed("g") == {("t", 3): (9, 2, "note")}
    assert coordinator.committed("nothing") == {}

    coordinator.set_record_limit(100)
    assert coordinator.handle(0, 1, join(member_id)) != []
    synced = SyncGroupResponse.decode(only(coordinator.handle(0, 1, sync(member_id, 2))), version=3, header=True)
    assert synced.error_code == -1


def test_every_api_is_listed_with_its_versions() -> None:
    versions = {key: (least, most) for key, least, most in Coordinator.api_versions()}
    assert versions[8] == (2, 8)
    assert versions[9] == (1, 8)
    assert versions[11] == (0, 9)
    assert set(versions) == {8, 9, 11, 12, 13, 14, 15, 16, 42}


@pytest.mark.parametrize("bad", [b"", b"\x00\x0b", join()[:-1], frame(HeartbeatRequest(), 3)[:3]])
def test_frames_that_cannot_be_read_raise_and_change_nothing(bad: bytes) -> None:
    coordinator = Coordinator()
    with pytest.raises(ValueError, match="cannot read"):
        coordinator.handle(0, 1, bad)
    assert coordinator.groups() == []
    assert not coordinator.is_waiting(1)


def test_bytes_behind_a_body_do_not_count() -> None:
    """As on brokers: a client of a newer minor version may send more than is known here."""
    assert Coordinator().handle(0, 1, join() + b"\x00") == Coordinator().handle(0, 1, join()) != []
