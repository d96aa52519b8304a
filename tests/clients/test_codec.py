"""The encoders, compared with the clients' own encoders and with the golden vectors."""

import pytest
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from kafka_assignors.clients.common.codec import SubscriptionWriter, encode_assignment

names = st.text(min_size=1, max_size=9)
partitions = st.lists(st.integers(0, 2**31 - 1), max_size=5)
holdings = st.lists(st.tuples(names, partitions), max_size=4)
user_data = st.none() | st.binary(max_size=9)


@given(
    st.integers(0, 3),
    st.lists(names, max_size=4),
    user_data,
    holdings,
    st.integers(-1, 2**31 - 1),
    st.none() | st.text(max_size=4),
)
def test_a_subscription_is_what_kafka_python_writes(
    version: int,
    topics: list[str],
    data: bytes | None,
    owned: list[tuple[str, list[int]]],
    generation: int,
    rack: str | None,
) -> None:
    theirs = ConsumerProtocolSubscription(
        version=version,
        topics=topics,
        user_data=data,
        owned_partitions=[ConsumerProtocolSubscription.TopicPartition(topic=t, partitions=p) for t, p in owned],
        generation_id=generation,
        rack_id=rack,
    )
    writer = SubscriptionWriter()
    for _ in range(2):
        assert writer.write(version, topics, data, owned, generation, rack) == theirs.encode()
        assert writer.topics == set(topics)


@given(st.lists(names, max_size=4), user_data)
def test_version_0_is_what_aiokafka_writes(topics: list[str], data: bytes | None) -> None:
    assert SubscriptionWriter().write(0, topics, data) == ConsumerProtocolMemberMetadata(0, topics, data).encode()


@given(st.integers(0, 3), holdings, user_data)
def test_an_assignment_is_what_kafka_python_writes(
    version: int, assigned: list[tuple[str, list[int]]], data: bytes | None
) -> None:
    assert encode_assignment(version, assigned, data) == ConsumerProtocolAssignment(version, assigned, data).encode()


@pytest.mark.parametrize(
    ("read", "golden"),
    [
        (SubscriptionWriter().write(0, ["a", "t"], b"\1\2"), "000000000002000161000174000000020102"),
        (
            SubscriptionWriter().write(9, ["a", "t"], b"\1\2", [("a", [1]), ("t", [0, 2])], 5, "r1"),
            "0003000000020001610001740000000201020000000200016100000001000000010001740000000200000000000000020000000500027231",
        ),
        (SubscriptionWriter().write(3, ["t"], None), "000300000001000174ffffffff00000000ffffffffffff"),
        (
            encode_assignment(3, [("t", [2, 0]), ("a", [1])], None),
            "0003000000020001740000000200000002000000000001610000000100000001ffffffff",
        ),
    ],
)
def test_golden_bytes(read: bytes, golden: str) -> None:
    assert read.hex() == golden


def test_many_subscriptions_in_a_row_do_not_mix() -> None:
    lists = [["a", "t"], ["a", "t"], ["t"], ["t", "a"], [], ["a", "t"]]
    writer = SubscriptionWriter()
    for topics in lists:
        written = ConsumerProtocolSubscription.decode(writer.write(3, topics, None, [("t", [1])], 4, "t"))
        assert (written.topics, written.owned_partitions[0].topic, written.rack_id) == (topics, "t", "t")
    assert writer.topics == {"a", "t"}
