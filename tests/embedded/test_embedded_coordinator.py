"""The coordinator of the embedded Kafka, with requests in kafka-python's own encoding."""

from typing import Any

import pytest
from kafka.protocol.admin import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
from kafka.protocol.consumer import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse

from kafka_assignors._core import EmbeddedBroker
from kafka_assignors.errors import EmbeddedKafkaError

Replies = list[tuple[int, bytes]]


def broker(**settings: Any) -> EmbeddedBroker:
    defaults: dict[str, Any] = {
        "cluster_id": "c",
        "racks": [],
        "auto_create_topics": False,
        "default_partitions": 1,
        "initial_rebalance_delay_ms": 0,
        "min_session_timeout_ms": 1_000,
        "max_session_timeout_ms": 1_800_000,
        "max_group_size": None,
        "max_record_bytes": 1_048_588,
        "consumer_heartbeat_interval_ms": 500,
        "consumer_session_timeout_ms": 45_000,
        "consumer_assignors": ["uniform", "range"],
        "consumer_migration_policy": "bidirectional",
        "seed": 0,
    }
    return EmbeddedBroker(**(defaults | settings))


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


def handle(kafka: EmbeddedBroker, now_ms: int, connection: int, request: bytes) -> Replies:
    """The answers that are due now, without their lengths. A parked request has no answer yet."""
    parked, replies = kafka.handle(now_ms, connection, request)
    assert parked == (connection not in dict(replies))
    return [(to, reply[4:]) for to, reply in replies]


def only(replies: Replies, connection: int = 1) -> bytes:
    ((to, reply),) = replies
    assert to == connection
    return reply


def stable(kafka: EmbeddedBroker) -> str:
    """Takes a group of one member to its assignment; returns the member's id."""
    member_id: str = JoinGroupResponse.decode(only(handle(kafka, 0, 1, join())), version=7, header=True).member_id
    joined = JoinGroupResponse.decode(only(handle(kafka, 0, 1, join(member_id))), version=7, header=True)
    assert (joined.error_code, joined.generation_id, joined.leader) == (0, 1, member_id)
    assert joined.members[0].metadata == b"subscription"
    synced = SyncGroupResponse.decode(only(handle(kafka, 0, 1, sync(member_id, 1))), version=3, header=True)
    assert (synced.error_code, synced.assignment) == (0, b"share")
    return member_id


def heartbeat_code(kafka: EmbeddedBroker, now_ms: int, member_id: str, connection: int = 1) -> int:
    reply = only(handle(kafka, now_ms, connection, heartbeat(member_id, 1)), connection)
    code: int = HeartbeatResponse.decode(reply, version=3, header=True).error_code
    return code


def committed(kafka: EmbeddedBroker, group_id: str) -> dict[tuple[str, int], tuple[int, int, str]]:
    request = OffsetFetchRequest(version=5, group_id=group_id, topics=None)
    read = OffsetFetchResponse.decode(only(handle(kafka, 0, 9, frame(request, 5)), 9), version=5, header=True)
    return {
        (topic.name, one.partition_index): (one.committed_offset, one.committed_leader_epoch, one.metadata)
        for topic in read.topics
        for one in topic.partitions
    }


def set_record_limit(kafka: EmbeddedBroker, limit: int) -> None:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    setting = resource.AlterableConfig(name="max.message.bytes", config_operation=0, value=str(limit))
    offsets_topic = resource(resource_type=2, resource_name="__consumer_offsets", configs=[setting])
    request = IncrementalAlterConfigsRequest(version=0, resources=[offsets_topic], validate_only=False)
    reply = only(handle(kafka, 0, 9, frame(request, 0)), 9)
    (answer,) = IncrementalAlterConfigsResponse.decode(reply, version=0, header=True).responses
    assert answer.error_code == 0


def test_a_member_joins_syncs_lives_and_expires() -> None:
    kafka = broker(seed=3)
    member_id = stable(kafka)
    assert member_id.startswith("python-")
    assert heartbeat_code(kafka, 4_000, member_id) == 0
    assert kafka.next_deadline() == 14_000
    member = (member_id, None, "python", False, False, b"share")
    assert kafka.groups() == [("g", "Stable", 1, "consumer", "sticky", member_id, [member])]
    assert kafka.tick(14_000) == []
    assert kafka.groups()[0][1] == "Empty"
    assert kafka.next_deadline() is None


def test_a_parked_join_is_answered_by_another_call_or_forgotten_with_its_connection() -> None:
    kafka = broker()
    first = stable(kafka)
    reply = only(handle(kafka, 0, 2, join()), 2)
    second = JoinGroupResponse.decode(reply, version=7, header=True).member_id
    assert kafka.handle(0, 2, join(second)) == (True, [])
    assert heartbeat_code(kafka, 0, first) == 27
    replies = handle(kafka, 0, 1, join(first))
    assert sorted(connection for connection, _ in replies) == [1, 2]
    assert kafka.handle(1, 2, sync(second, 2)) == (True, [])
    assert kafka.disconnect(2, 2) == []
    # No request of the member is parked any more.
    assert heartbeat_code(kafka, 2, second, 2) == 22


def test_commits_injected_codes_and_limits() -> None:
    kafka = broker(max_record_bytes=1_000_000)
    member_id = stable(kafka)
    kafka.inject("Heartbeat", "NOT_COORDINATOR", times=2)
    assert [heartbeat_code(kafka, 0, member_id) for _ in range(3)] == [16, 16, 0]
    with pytest.raises(EmbeddedKafkaError, match="SaslHandshake is not served here"):
        kafka.inject("SaslHandshake", "NOT_COORDINATOR", times=1)

    kafka.create_topic("t", 4, 1, [])
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
    only(handle(kafka, 0, 1, frame(request, 7)))
    assert committed(kafka, "g") == {("t", 3): (9, 2, "note")}
    assert committed(kafka, "nothing") == {}

    set_record_limit(kafka, 100)
    assert handle(kafka, 0, 1, join(member_id)) != []
    synced = SyncGroupResponse.decode(only(handle(kafka, 0, 1, sync(member_id, 2))), version=3, header=True)
    assert synced.error_code == -1


def test_every_api_is_listed_with_its_versions() -> None:
    reply = only(handle(broker(), 0, 1, frame(ApiVersionsRequest(), 0)))
    read = ApiVersionsResponse.decode(reply, version=0, header=True)
    versions = {each.api_key: (each.min_version, each.max_version) for each in read.api_keys}
    assert versions[8] == (2, 10)
    assert versions[9] == (1, 10)
    assert versions[11] == (0, 9)
    assert set(versions) >= {8, 9, 11, 12, 13, 14, 15, 16, 42, 68, 69}


@pytest.mark.parametrize("bad", [b"", b"\x00\x0b", join()[:-1], frame(HeartbeatRequest(), 3)[:3]])
def test_frames_that_cannot_be_read_raise_and_change_nothing(bad: bytes) -> None:
    kafka = broker()
    with pytest.raises(ValueError, match="cannot read"):
        kafka.handle(0, 1, bad)
    assert kafka.groups() == []
    assert handle(kafka, 0, 1, join()) != [], "nothing is parked on the connection"


def test_bytes_behind_a_body_do_not_count() -> None:
    """As on real brokers: a client with a newer minor version may send fields that are unknown here."""
    assert handle(broker(), 0, 1, join() + b"\x00") == handle(broker(), 0, 1, join()) != []
