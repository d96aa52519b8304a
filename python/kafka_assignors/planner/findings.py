"""The rules for plans and groups, and findings: a rule that is not met, with the obstacle."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kafka_assignors.cluster import ClassicMember
from kafka_assignors.planner.observed_group import Finding
from kafka_assignors.printable import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kafka_assignors.cluster import GroupMember

__all__ = [
    "RULES",
    "of_empty",
    "of_impossible",
    "of_loads",
    "of_members",
    "of_missing",
    "of_record",
    "of_unassigned",
    "of_uncommitted",
]

RULES: dict[str, str] = {
    "one-owner": "a partition belongs to one member",
    "one-claim": "no two members claim one partition",
    "readable-bytes": "the bytes of members can be read",
    "declared-topics": "subscriptions hold the topics that they declare",
    "topic-exists": "the topics that members subscribe to exist",
    "partition-exists": "the partitions that members have exist",
    "every-partition-read": "every partition of a subscribed topic has an owner",
    "somebody-reads": "a group in which records wait has members",
    "every-member-works": "every member has a partition",
    "even-shares": "members' numbers of partitions differ by one at most",
    "least-balance-score": "no other plan has a smaller balance score (KIP-54)",
    "fewest-moves": "no other plan with this balance score moves fewer partitions",
    "own-rack": "members read from replicas in their own rack (KIP-881)",
    "same-partition-counts": "the topics of a stream join have the same number of partitions (KIP-315)",
    "work-limit": "searches end within their limit of steps",
    "known-lags": "the lag of every partition is known",
    "record-limit": "the group's record fits into the broker's limit",
    "stable": "the group is Stable",
    # Notes only: no finding of these is a warning.
    "committed": "the group has a commit of every partition",
    "broker-assigned": "the broker assigns, not the members (KIP-848)",
    "pattern": "members subscribe by name",
    "two-phases": "a cooperative rebalance hands out in one step",
    "known-order": "the order of the member ids is known, where the plan depends on it",
    "heaviest-lag": "no member has more lag than the heaviest had",
    "keys-stay": "records with one key stay in one partition",
}
"""Every rule that a finding may name."""

_NEAR = 0.9
# The first topic of a subscription is behind the version and the number of topics.
_TOPICS_AT = 6


def of_record(size: int | None, limit: int, of_cluster: bool) -> list[Finding]:
    """A record that does not fit the broker's limit, or hardly fits (docs/operations.md)."""
    if size is None or size < _NEAR * limit:
        return []
    whose = "this cluster accepts" if of_cluster else "brokers accept by default"
    over = "and the group cannot form" if size > limit else "and beyond that the group cannot form"
    return [
        Finding(
            "record-limit",
            f"the group's record has about {size:,} bytes of the {limit:,} that {whose}, {over}: raise "
            "max.message.bytes of __consumer_offsets, or use fewer partitions",
        )
    ]


def of_missing(missing: Mapping[str, Sequence[str]], names: Mapping[str, str]) -> list[Finding]:
    """Subscribed topics that do not exist."""
    return [
        Finding("topic-exists", f"topic {topic!r} does not exist, or cannot be seen; {some(members, names)} subscribe")
        for topic, members in missing.items()
    ]


def of_unassigned(topics: Mapping[str, Sequence[int]], reasons: Mapping[str, str]) -> list[Finding]:
    """Partitions of subscribed topics without an owner."""
    return [
        Finding("every-partition-read", f"no member owns {topic} {ranges(numbers)}{reasons.get(topic, '')}")
        for topic, numbers in topics.items()
        if numbers
    ]


def of_impossible(partitions: Mapping[str, Mapping[str, Sequence[int]]], names: Mapping[str, str]) -> list[Finding]:
    """Assigned partitions that do not exist.

    Args:
        partitions: by member and topic, the numbers that do not exist.
        names: members' names for people.
    """
    return [
        Finding("partition-exists", f"{names[member]} has {partitions_text(topics)}, which {_does(topics)} not exist")
        for member, topics in partitions.items()
    ]


def of_empty(lags: Mapping[str, Sequence[int | None]]) -> list[Finding]:
    """Records that wait in the topics of a group without members."""
    waiting = {topic: sum(lag for lag in of_topic if lag) for topic, of_topic in lags.items()}
    waiting = {topic: lag for topic, lag in waiting.items() if lag > 0}
    if not waiting:
        return []
    most = max(waiting, key=lambda topic: waiting[topic])
    where = most if len(waiting) == 1 else f"{len(waiting)} topics, most of them in {most} ({waiting[most]:,})"
    return [Finding("somebody-reads", f"the group is Empty, and {sum(waiting.values()):,} records wait in {where}")]


def of_uncommitted(partitions: Mapping[str, Sequence[int]], records: int | None, reset: str) -> list[Finding]:
    """Partitions without a commit, and the effect of each reset on their records.

    Args:
        partitions: by topic.
        records: how many records they have; None if that is not known.
        reset: the reset that the lags of this answer use.
    """
    count = sum(map(len, partitions.values()))
    if not count:
        return []
    what = "the records" if records is None else f"the {records:,} records"
    latest = f"auto.offset.reset=latest passes over {what} that they have{' (counted here)' * (reset == 'latest')}"
    earliest = f"earliest reads them{' (counted here)' * (reset != 'latest')}"
    have = "1 partition has" if count == 1 else f"{count:,} partitions have"
    text = f"{have} no commit: {partitions_text(partitions)}; {latest}, {earliest}"
    return [Finding("committed", text, warning=False)]


def of_members(members: Iterable[GroupMember], names: Mapping[str, str]) -> list[Finding]:
    """Members with bytes that cannot be read."""
    found = []
    for member in members:
        short = _short_of_topics(member.subscription) if isinstance(member, ClassicMember) else None
        if short is not None:
            declared, held = short
            found.append(
                Finding(
                    "declared-topics",
                    f"the subscription of {names[member.id]} declares {declared:,} topics, and holds {held:,}: "
                    "brokers of Kafka 4.3 fail the join of the whole group while it is a member; stop it, or replace "
                    "its client",
                )
            )
        found += [
            Finding("readable-bytes", f"{names[member.id]}: {fault}")
            for fault in member.faults
            if short is None or not fault.startswith("subscription:")
        ]
    return found


def _short_of_topics(subscription: bytes) -> tuple[int, int] | None:
    """How many topics a subscription declares, and how many it holds; None if it holds all of them.

    >>> _short_of_topics(bytes.fromhex("0003 00000002 000174")), _short_of_topics(bytes.fromhex("0003 00000001 000174"))
    ((2, 1), None)
    """
    if len(subscription) < _TOPICS_AT:
        return None
    declared = int.from_bytes(subscription[2:_TOPICS_AT], signed=True)
    at, held = _TOPICS_AT, 0
    while held < declared and at + 2 <= len(subscription):
        length = int.from_bytes(subscription[at : at + 2], signed=True)
        if length < 0 or at + 2 + length > len(subscription):
            break
        at, held = at + 2 + length, held + 1
    return (declared, held) if held < declared else None


def of_loads(
    loads: Mapping[str, int],
    subscriptions: Mapping[str, Sequence[str]],
    counts: Mapping[str, int],
    names: Mapping[str, str],
    *,
    wanted: str = "",
) -> list[Finding]:
    """Members without a partition, and numbers of partitions that differ by more than one, with the obstacle.

    Args:
        loads: partitions by member.
        subscriptions: topics by member.
        counts: partitions by topic.
        names: members' names for people.
        wanted: why the strategy wants uneven numbers, for people; then they are no warning.
    """
    findings = []
    readers = Counter(topic for topics in subscriptions.values() for topic in set(topics))
    idle = [member for member, load in loads.items() if load == 0]
    if idle:
        least = min(idle, key=lambda member: sum(counts.get(topic, 0) for topic in subscriptions[member]))
        partitions = sum(counts.get(topic, 0) for topic in subscriptions[least])
        rivals = max((readers[topic] for topic in subscriptions[least]), default=0)
        if not subscriptions[least]:
            text = "it subscribes to no topic"
        elif partitions < rivals:
            text = f"{partitions} partitions of {_topics(subscriptions[least])} for {rivals} members"
        else:
            text = wanted or f"{_topics(subscriptions[least])} went to others"
        findings.append(Finding("every-member-works", f"{some(idle, names)} {_have(idle)} no partition: {text}"))
    if loads and max(loads.values()) - min(loads.values()) > 1:
        low, high = min(loads, key=lambda each: loads[each]), max(loads, key=lambda each: loads[each])
        if wanted:
            text = wanted
        elif set(subscriptions[low]) != set(subscriptions[high]):
            text = f"one subscribes to {_topics(subscriptions[low])}, the other to {_topics(subscriptions[high])}"
        else:
            text = "both subscribe to the same"
        findings.append(
            Finding(
                "even-shares",
                f"members have {loads[low]} to {loads[high]} partitions ({names[low]} and {names[high]}): {text}",
                warning=not wanted,
            )
        )
    return findings


def ranges(numbers: Iterable[int]) -> str:
    """Partition numbers for people.

    >>> ranges([0, 1, 2, 5])
    '0-2, 5'
    """
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def partitions_text(partitions: Mapping[str, Iterable[int]], most: int = 5) -> str:
    """Partitions of the first topics, for people.

    >>> partitions_text({"orders": [0, 1, 2], "payments": [4]})
    'orders 0-2; payments 4'
    """
    return listed((f"{topic} {ranges(numbers)}" for topic, numbers in partitions.items()), most, separator="; ")


def some(members: Sequence[str], names: Mapping[str, str], most: int = 5) -> str:
    """The names of the first members, for people."""
    return listed((names[member] for member in members), most)


def _does(topics: Mapping[str, Sequence[int]]) -> str:
    return "does" if sum(map(len, topics.values())) == 1 else "do"


def _have(members: Sequence[str]) -> str:
    return "has" if len(members) == 1 else "have"


def _topics(topics: Sequence[str], most: int = 5) -> str:
    return listed(topics, most) or "nothing"
