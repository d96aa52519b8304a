"""`python -m race.worker WHO`: the contenders in Python, with ours, each from bytes to bytes."""

from __future__ import annotations

import sys
import warnings
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from race.measure import answer, clocked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from race.measure import Loaded

__all__ = ["WORKERS"]


def _ours(point: Loaded, call: str) -> Callable[[], Mapping[str, bytes]]:
    from kafka_assignors import CooperativeStickyAssignor, RecordSizeWarning, StickyAssignor, Topic
    from race.points import Group

    # The warning is about the size of a group's record on a broker, and there is no broker.
    warnings.simplefilter("ignore", RecordSizeWarning)
    members = point.members
    partitions = Group(point.topics, {}, {}, dict.fromkeys(point.racks, "")).partitions
    if call.startswith("floor "):
        from floors import codec_floor

        options = (call.removeprefix("floor "), "fair-yet-sticky", "before-stickiness")
        # The floor does not plan, so it does not use racks.
        counts: dict[str, int | Topic] = dict(point.topics)
        return lambda: codec_floor(*options, members, counts)
    assignor = {each.name: each for each in (StickyAssignor, CooperativeStickyAssignor)}[call]()
    return lambda: assignor.perform_assignment(members, partitions)


def _kafka_python(point: Loaded, call: str) -> Callable[[], Mapping[str, bytes]]:
    from kafka.cluster import ClusterMetadata
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from kafka.protocol.consumer.group import JoinGroupResponse
    from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

    cluster = _cluster(ClusterMetadata, point.topics)
    assignor_class = {"sticky": StickyPartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor}[call]
    members = point.members
    if call == "sticky":
        members = [(member, _prefixed(metadata)) for member, metadata in members]

    def perform() -> dict[str, bytes]:
        joined = [
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=member, group_instance_id=None, metadata=ConsumerProtocolSubscription.decode(metadata)
            )
            for member, metadata in members
        ]
        plan = assignor_class().assign(cluster, joined)
        return {member: assignment.encode() for member, assignment in plan.items()}

    return perform


def _prefixed(metadata: bytes) -> bytes:
    """The same metadata with an INT16 before the user data. kafka-python reads user data in this form only."""
    count, at = int.from_bytes(metadata[2:6], "big"), 6
    for _ in range(count):
        at += 2 + int.from_bytes(metadata[at : at + 2], "big")
    size = int.from_bytes(metadata[at : at + 4], "big", signed=True)
    if size < 0:
        return metadata
    return metadata[:at] + (size + 2).to_bytes(4, "big") + b"\0\1" + metadata[at + 4 :]


def _aiokafka(point: Loaded, call: str) -> Callable[[], Mapping[str, bytes]]:
    from aiokafka.cluster import ClusterMetadata
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from aiokafka.coordinator.protocol import ConsumerProtocol

    if call != "sticky":
        raise KeyError(call)
    cluster = _cluster(ClusterMetadata, point.topics)

    def perform() -> dict[str, bytes]:
        joined = {member: ConsumerProtocol.METADATA.decode(metadata) for member, metadata in point.members}
        plan = StickyPartitionAssignor.assign(cluster, joined)
        return {member: assignment.encode() for member, assignment in plan.items()}

    return perform


def _cluster(metadata_class: Any, topics: Mapping[str, int]) -> Any:
    """The part of a client's cluster metadata that its assignor reads."""
    numbers = {name: set(range(count)) for name, count in topics.items()}

    class Cluster(metadata_class):  # type: ignore[misc]
        def topics(self, *_: object) -> set[str]:
            return set(numbers)

        def partitions_for_topic(self, topic: str) -> set[int] | None:
            return numbers.get(topic)

    return Cluster()


WORKERS = {"ours": _ours, "kafka-python": _kafka_python, "aiokafka": _aiokafka}

if __name__ == "__main__":
    worker = WORKERS[sys.argv[1]]
    answer(lambda point, call: nullcontext(clocked(worker(point, call))))
