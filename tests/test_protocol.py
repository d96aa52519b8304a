"""Requests as bytes and responses as dicts, compared with kafka-python's codecs, which follow Kafka's definitions."""

import uuid
from typing import Any

import pytest
from kafka.protocol.admin import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from kafka.protocol.consumer import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from kafka_assignors import _core
from kafka_assignors.errors import KafkaAssignorsError, ProtocolError

CORRELATION = 77

# ApiVersions is flexible, too, but the header of its response is not.
FLEXIBLE = {
    SaslAuthenticateResponse: 2,
    MetadataResponse: 9,
    FindCoordinatorResponse: 3,
    ListOffsetsResponse: 6,
    DescribeGroupsResponse: 5,
    ListGroupsResponse: 3,
    OffsetFetchResponse: 6,
    DescribeConfigsResponse: 4,
}


def versions(name: str) -> range:
    _, least, most = _core.protocol_versions()[name]
    # OffsetFetch 10 has ids of topics instead of names; only members of the core send it.
    return range(least, min(most, 9 if name == "OffsetFetch" else most) + 1)


def asked(request: Any, version: int) -> bytes:
    """The frame of a kafka-python request, without its length."""
    request.with_header(correlation_id=CORRELATION, client_id="c")
    return bytes(request.encode(version=version, header=True))


def written(response: Any, version: int) -> bytes:
    """The frame of a kafka-python response, without its length. Flexible ones have tagged fields behind the id."""
    tags = b"\0" if version >= FLEXIBLE.get(type(response), 99) else b""
    return CORRELATION.to_bytes(4, "big") + tags + bytes(response.encode(version=version, header=False))


def unframed(frame: bytes) -> bytes:
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    return frame[4:]


def each(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("name", "version"), [(name, version) for name in names for version in versions(name)]
    )


def their_request(name: str, version: int) -> Any:
    if name == "ApiVersions":
        return ApiVersionsRequest(version=version, client_software_name="lib", client_software_version="1")
    if name == "SaslHandshake":
        return SaslHandshakeRequest(version=version, mechanism="PLAIN")
    if name == "SaslAuthenticate":
        return SaslAuthenticateRequest(version=version, auth_bytes=b"\0a\0b")
    if name == "Metadata":
        topic = MetadataRequest.MetadataRequestTopic(name="t")
        return MetadataRequest(version=version, topics=[topic], allow_auto_topic_creation=False)
    if name == "FindCoordinator":
        return FindCoordinatorRequest(version=version, key="g", key_type=0, coordinator_keys=["g"])
    if name == "ListOffsets":
        of_topic = ListOffsetsRequest.ListOffsetsTopic
        partition = of_topic.ListOffsetsPartition(partition_index=3, current_leader_epoch=5, timestamp=-1)
        topics = [of_topic(name="t", partitions=[partition])]
        return ListOffsetsRequest(version=version, replica_id=-1, isolation_level=1, topics=topics)
    if name == "DescribeGroups":
        return DescribeGroupsRequest(version=version, groups=["g", "h"], include_authorized_operations=False)
    if name == "ListGroups":
        return ListGroupsRequest(version=version, states_filter=["Stable"])
    assert name == "OffsetFetch"
    old = OffsetFetchRequest.OffsetFetchRequestTopic(name="t", partition_indexes=[1, 2])
    of_group = OffsetFetchRequest.OffsetFetchRequestGroup
    new = of_group.OffsetFetchRequestTopics(name="t", partition_indexes=[1, 2])
    return OffsetFetchRequest(
        version=version,
        group_id="g",
        topics=[old],
        groups=[of_group(group_id="g", topics=[new])],
        require_stable=version >= 7,
    )


def our_request(name: str, version: int) -> bytes:
    head = (version, CORRELATION, "c")
    if name == "ApiVersions":
        return _core.encode_api_versions(*head, "lib", "1")
    if name == "SaslHandshake":
        return _core.encode_sasl_handshake(*head, "PLAIN")
    if name == "SaslAuthenticate":
        return _core.encode_sasl_authenticate(*head, b"\0a\0b")
    if name == "Metadata":
        return _core.encode_metadata(*head, ["t"])
    if name == "FindCoordinator":
        return _core.encode_find_coordinator(*head, "g")
    if name == "ListOffsets":
        return _core.encode_list_offsets(*head, [("t", [(3, -1, 5)])], 1)
    if name == "DescribeGroups":
        return _core.encode_describe_groups(*head, ["g", "h"])
    if name == "ListGroups":
        return _core.encode_list_groups(*head, ["Stable"])
    return _core.encode_offset_fetch(*head, [("g", [("t", [1, 2])])], version >= 7)


NAMES = (
    "ApiVersions",
    "SaslHandshake",
    "SaslAuthenticate",
    "Metadata",
    "FindCoordinator",
    "ListOffsets",
    "DescribeGroups",
    "ListGroups",
    "OffsetFetch",
)


@each(*NAMES)
def test_requests_are_kafka_pythons(name: str, version: int) -> None:
    assert unframed(our_request(name, version)) == asked(their_request(name, version), version)


def test_all_topics() -> None:
    for version in versions("Metadata"):
        theirs = MetadataRequest(version=version, topics=[] if version == 0 else None, allow_auto_topic_creation=False)
        ours = _core.encode_metadata(version, CORRELATION, "c", None)
        assert unframed(ours) == asked(theirs, version)


@each("ApiVersions")
def test_api_versions(name: str, version: int) -> None:
    theirs = ApiVersionsResponse(
        version=version,
        error_code=0,
        api_keys=[ApiVersionsResponse.ApiVersion(api_key=11, min_version=2, max_version=9)],
        throttle_time_ms=7,
    )
    read = _core.decode_api_versions(version, CORRELATION, written(theirs, version))
    assert read == {"error_code": 0, "api_keys": {11: (2, 9)}, "throttle_time_ms": 7 if version else 0, "features": {}}


def test_a_broker_too_old_for_the_version_answers_version_0() -> None:
    kinds = [ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=2)]
    frame = written(ApiVersionsResponse(version=0, error_code=35, api_keys=kinds), 0)
    read = _core.decode_api_versions(3, CORRELATION, frame)
    assert read == {"error_code": 35, "api_keys": {18: (0, 2)}, "throttle_time_ms": 0, "features": {}}
    # Without that error, an answer in version 0 does not answer a request in version 3.
    with pytest.raises(ProtocolError):
        _core.decode_api_versions(3, CORRELATION, written(ApiVersionsResponse(version=0, api_keys=kinds), 0))


@each("SaslHandshake")
def test_sasl_handshake(name: str, version: int) -> None:
    theirs = SaslHandshakeResponse(version=version, error_code=33, mechanisms=["PLAIN"])
    read = _core.decode_sasl_handshake(version, CORRELATION, written(theirs, version))
    assert read == {"error_code": 33, "mechanisms": ["PLAIN"]}


@each("SaslAuthenticate")
def test_sasl_authenticate(name: str, version: int) -> None:
    theirs = SaslAuthenticateResponse(
        version=version, error_code=58, error_message="no", auth_bytes=b"\1\2", session_lifetime_ms=3_600_000
    )
    read = _core.decode_sasl_authenticate(version, CORRELATION, written(theirs, version))
    assert read == {
        "error_code": 58,
        "error_message": "no",
        "auth_bytes": b"\1\2",
        "session_lifetime_ms": 3_600_000 if version else 0,
    }


@each("Metadata")
def test_metadata(name: str, version: int) -> None:
    of_topic = MetadataResponse.MetadataResponseTopic
    partition = of_topic.MetadataResponsePartition(
        error_code=0, partition_index=2, leader_id=1, leader_epoch=6, replica_nodes=[1, 2], isr_nodes=[1]
    )
    topic_id = uuid.UUID(int=1)
    topics = [of_topic(error_code=0, name="t", topic_id=topic_id, is_internal=True, partitions=[partition])]
    brokers = [MetadataResponse.MetadataResponseBroker(node_id=1, host="h", port=9092, rack="a")]
    theirs = MetadataResponse(version=version, brokers=brokers, cluster_id="x", controller_id=1, topics=topics)
    assert _core.decode_metadata(version, CORRELATION, written(theirs, version)) == {
        "throttle_time_ms": 0,
        "brokers": [{"node_id": 1, "host": "h", "port": 9092, "rack": "a" if version >= 1 else None}],
        "cluster_id": "x" if version >= 2 else None,
        "controller_id": 1 if version >= 1 else -1,
        "topics": [
            {
                "error_code": 0,
                "name": "t",
                "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ" if version >= 10 else None,
                "is_internal": version >= 1,
                "partitions": [
                    {
                        "error_code": 0,
                        "partition_index": 2,
                        "leader_id": 1,
                        "leader_epoch": 6 if version >= 7 else -1,
                        "replica_nodes": [1, 2],
                        "isr_nodes": [1],
                        "offline_replicas": [],
                    }
                ],
            }
        ],
    }


@each("FindCoordinator")
def test_find_coordinator(name: str, version: int) -> None:
    found = {"node_id": 4, "host": "h", "port": 9092, "error_code": 15, "error_message": "no"}
    old = found if version < 4 else {}
    new = [FindCoordinatorResponse.Coordinator(key="g", **found)] if version >= 4 else []
    theirs = FindCoordinatorResponse(version=version, coordinators=new, **old)
    read = _core.decode_find_coordinator(version, CORRELATION, written(theirs, version))
    assert read == {"throttle_time_ms": 0, **found, "error_message": "no" if version >= 1 else None}


@each("ListOffsets")
def test_list_offsets(name: str, version: int) -> None:
    of_topic = ListOffsetsResponse.ListOffsetsTopicResponse
    partition = of_topic.ListOffsetsPartitionResponse(
        partition_index=3, error_code=6, timestamp=-1, offset=1 << 40, leader_epoch=5
    )
    theirs = ListOffsetsResponse(version=version, topics=[of_topic(name="t", partitions=[partition])])
    read = _core.decode_list_offsets(version, CORRELATION, written(theirs, version))
    row = {"topic": "t", "partition_index": 3, "error_code": 6, "timestamp": -1, "offset": 1 << 40}
    assert read["partitions"] == [row | {"leader_epoch": 5 if version >= 4 else -1}]


@each("DescribeGroups")
def test_describe_groups(name: str, version: int) -> None:
    of_group = DescribeGroupsResponse.DescribedGroup
    member = of_group.DescribedGroupMember(
        member_id="m",
        group_instance_id="i",
        client_id="c",
        client_host="/h",
        member_metadata=b"\1",
        member_assignment=b"\2",
    )
    state = {"group_id": "g", "group_state": "Stable", "protocol_type": "consumer", "protocol_data": "sticky"}
    theirs = DescribeGroupsResponse(version=version, groups=[of_group(error_code=0, members=[member], **state)])
    read = _core.decode_describe_groups(version, CORRELATION, written(theirs, version))
    row = {
        "member_id": "m",
        "group_instance_id": "i" if version >= 4 else None,
        "client_id": "c",
        "client_host": "/h",
        "member_metadata": b"\1",
        "member_assignment": b"\2",
    }
    assert read == {"throttle_time_ms": 0, "groups": [{"error_code": 0, **state, "members": [row]}]}


@each("ListGroups")
def test_list_groups(name: str, version: int) -> None:
    listed = {"group_id": "g", "protocol_type": "consumer", "group_state": "Stable", "group_type": "classic"}
    theirs = ListGroupsResponse(version=version, error_code=0, groups=[ListGroupsResponse.ListedGroup(**listed)])
    read = _core.decode_list_groups(version, CORRELATION, written(theirs, version))
    expected = listed | {"group_state": "Stable" if version >= 4 else "", "group_type": "classic" * (version >= 5)}
    assert read == {"throttle_time_ms": 0, "error_code": 0, "groups": [expected]}


@each("OffsetFetch")
def test_offset_fetch(name: str, version: int) -> None:
    kind: Any = OffsetFetchResponse.OffsetFetchResponseTopic
    partition_kind: Any = kind.OffsetFetchResponsePartition
    group_kind: Any = OffsetFetchResponse.OffsetFetchResponseGroup
    if version >= 8:
        kind = group_kind.OffsetFetchResponseTopics
        partition_kind = kind.OffsetFetchResponsePartitions
    partition = partition_kind(
        partition_index=3, committed_offset=1 << 40, committed_leader_epoch=5, metadata="note", error_code=0
    )
    topics = [kind(name="t", partitions=[partition])]
    groups = [group_kind(group_id=each, topics=topics, error_code=0) for each in "gh"] if version >= 8 else []
    theirs = OffsetFetchResponse(version=version, topics=topics if version < 8 else [], groups=groups)
    read = _core.decode_offset_fetch(version, CORRELATION, written(theirs, version))
    row = {"topic": "t", "partition_index": 3, "committed_offset": 1 << 40, "metadata": "note", "error_code": 0}
    row["committed_leader_epoch"] = 5 if version >= 5 else -1
    # Before version 8 the answer is of one group, and does not name it.
    named = ["g", "h"] if version >= 8 else [""]
    found = [{"group_id": each, "error_code": 0, "partitions": [row]} for each in named]
    assert read == {"throttle_time_ms": 0, "groups": found}


def test_groups_that_the_broker_assigns() -> None:
    """kafka-python lacks the message. The bytes are of Java's kafka-clients 4.3.1, like those in the core's tests."""
    head = CORRELATION.to_bytes(4, "big") + b"\0"
    body = bytes.fromhex(
        "0000000302000000026707537461626c65000000080000000708756e69666f726d02026d02690272000000070263032f6802027404742e2a"
        "020102030405060708090a0b0c0d0e0f100274030000000000000002000001000100000000090000"
    )
    read = _core.decode_consumer_group_describe(1, CORRELATION, head + body)
    assert read == {
        "throttle_time_ms": 3,
        "groups": [
            {
                "error_code": 0,
                "error_message": None,
                "group_id": "g",
                "group_state": "Stable",
                "group_epoch": 8,
                "assignment_epoch": 7,
                "assignor_name": "uniform",
                "members": [
                    {
                        "member_id": "m",
                        "instance_id": "i",
                        "rack_id": "r",
                        "member_epoch": 7,
                        "client_id": "c",
                        "client_host": "/h",
                        "subscribed_topic_names": ["t"],
                        "subscribed_topic_regex": "t.*",
                        "assignment": [("t", [0, 2])],
                        "target_assignment": [],
                        "member_type": 1,
                    }
                ],
            }
        ],
    }
    for version in versions("ConsumerGroupDescribe"):
        frame = unframed(_core.encode_consumer_group_describe(version, CORRELATION, "c", ["g", "h"]))
        assert frame.endswith(bytes.fromhex("03026702680000"))
        assert frame[:4] == (69).to_bytes(2, "big") + version.to_bytes(2, "big")


@each("DescribeConfigs")
def test_settings_of_a_topic(name: str, version: int) -> None:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=2, resource_name="t", configuration_keys=["max.message.bytes"]
    )
    theirs = DescribeConfigsRequest(
        version=version, resources=[resource], include_synonyms=False, include_documentation=False
    )
    ours = _core.encode_describe_configs(version, CORRELATION, "c", 2, "t", ["max.message.bytes"])
    assert unframed(ours) == asked(theirs, version)
    of = DescribeConfigsResponse.DescribeConfigsResult
    config = of.DescribeConfigsResourceResult(
        name="max.message.bytes", value="5", read_only=False, is_default=False, config_source=1, is_sensitive=False
    )
    result = of(error_code=0, error_message=None, resource_type=2, resource_name="t", configs=[config])
    frame = written(DescribeConfigsResponse(version=version, results=[result]), version)
    read = _core.decode_describe_configs(version, CORRELATION, frame)
    assert read == {
        "throttle_time_ms": 0,
        "error_code": 0,
        "error_message": None,
        "configs": {"max.message.bytes": "5"},
    }


def test_what_cannot_be_read_or_written_is_refused() -> None:
    frame = written(SaslHandshakeResponse(version=1, error_code=0, mechanisms=["PLAIN"]), 1)
    with pytest.raises(ProtocolError, match="correlation id 77, expected 78"):
        _core.decode_sasl_handshake(1, CORRELATION + 1, frame)
    for length in range(len(frame)):
        with pytest.raises(ProtocolError):
            _core.decode_sasl_handshake(1, CORRELATION, frame[:length])
    with pytest.raises(ProtocolError, match="1 bytes behind"):
        _core.decode_sasl_handshake(1, CORRELATION, frame + b"\0")
    with pytest.raises(ProtocolError, match="length 2147483647 is impossible"):
        _core.decode_sasl_handshake(1, CORRELATION, frame[:6] + b"\x7f\xff\xff\xff")
    with pytest.raises(ProtocolError, match="Metadata version 13 is not spoken here: use 0 to 12"):
        _core.encode_metadata(13, 1, None, None)
    with pytest.raises(ProtocolError, match="shorten it"):
        _core.encode_sasl_handshake(1, 1, None, "x" * 40_000)
    with pytest.raises(ProtocolError, match="name the topics"):
        _core.encode_offset_fetch(1, 1, None, [("g", None)], False)
    with pytest.raises(ProtocolError, match="stable offsets only: use 7"):
        _core.encode_offset_fetch(6, 1, None, [("g", None)], True)
    with pytest.raises(ProtocolError, match="version 7 asks for one group, not for 2: use 8 or above"):
        _core.encode_offset_fetch(7, 1, None, [("g", None), ("h", None)], False)
    assert issubclass(ProtocolError, KafkaAssignorsError)


def test_codes_have_kafkas_names() -> None:
    assert _core.error_name(16) == "NOT_COORDINATOR"
    assert _core.error_name(31_000) is None
    assert _core.protocol_versions()["OffsetCommit"] == (8, 2, 10)
