"""A group without changes: its members join once, with our sticky assignor, and then send nothing."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from kafka_assignors import MemberState, StickyAssignor
from support.raw_group import NONE, RawGroup

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


@contextmanager
def standing_group(
    bootstrap_servers: str, group: str, topics: Mapping[str, int], clients: Sequence[str]
) -> Iterator[dict[str, dict[str, tuple[int, ...]]]]:
    """The assigned partitions of each member, by member id."""
    assignor = StickyAssignor()
    metadata = assignor.metadata(sorted(topics), MemberState())
    with RawGroup(bootstrap_servers, group, clients) as raw:
        leader = raw.join(dict.fromkeys(clients, metadata))
        assignments, plan = assignor.plan_assignment(leader.members, dict(topics), generation=leader.generation)
        answers = raw.sync(assignments)
        assert {error for error, _ in answers.values()} == {NONE}
        yield {
            member: {topic: tuple(numbers) for topic, numbers in share.items()}
            for member, share in plan.assignment.items()
        }


def commit(bootstrap_servers: str, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Commits offsets of a group without members."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    partitions = [TopicPartition(topic, number, offset) for (topic, number), offset in offsets.items()]
    asked = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, partitions)])
    for each in asked[group].result(15).topic_partitions:
        assert each.error is None, each.error
