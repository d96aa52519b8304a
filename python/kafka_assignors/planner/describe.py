"""A group as it is: its state, its members, who has what, how much there is to read, and what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_assignors.assignors import StickyAssignor
from kafka_assignors.cluster import record_bytes
from kafka_assignors.errors import GroupError
from kafka_assignors.group import balance_score
from kafka_assignors.planner import findings as rules
from kafka_assignors.planner.change import Situation
from kafka_assignors.planner.claims import Conflict, claims_of, conflicts_of
from kafka_assignors.planner.plan import solve
from kafka_assignors.planner.standing import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_assignors.cluster import GroupMember
    from kafka_assignors.planner.standing import Standing

__all__ = ["DescribedGroup", "DescribedMember", "DescribedTopic", "describe"]


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """A member.

    Attributes:
        id: its id.
        name: its name for people.
        instance_id: `group.instance.id`; None for a dynamic member.
        client_id: None where the snapshot does not have it.
        client_host: likewise.
        rack: where it runs.
        topics: what it subscribes to.
        partitions: topic to what it has.
        count: how many partitions that are.
        lag: how much it has to read; None where that is not known, or where no partition of it has a lag.
        uncommitted: how many of its partitions have no lag, since there is no commit to count from.
    """

    id: str
    name: str
    instance_id: str | None
    client_id: str | None
    client_host: str | None
    rack: str | None
    topics: tuple[str, ...]
    partitions: Mapping[str, tuple[int, ...]]
    count: int
    lag: int | None
    uncommitted: int


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    """A topic of the group.

    Attributes:
        name: its name.
        partitions: how many it has.
        subscribers: how many members subscribe to it.
        owners: by partition number, the member that has it; None where nobody has, the first by id where several have.
        lags: by partition number; None where it is not known, or where there is no commit and the reset is `latest`.
        committed: the committed offset by partition number; None without one.
    """

    name: str
    partitions: int
    subscribers: int
    owners: tuple[str | None, ...]
    lags: tuple[int | None, ...]
    committed: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """A group.

    Attributes:
        group_id: its id.
        taken_ms: when that was so, in milliseconds since 1970.
        protocol: `classic`, where a member assigns, or `consumer`, where the broker does (KIP-848).
        state: Kafka's name of it.
        strategy: the strategy, or the broker's assignor.
        members: by id.
        topics: by name.
        lag: the total; None where some of it is not known, or no partition has a lag.
        uncommitted: how many partitions have no commit.
        balance_score: KIP-54's, of the numbers of partitions.
        least_balance_score: the least possible; None where that cannot be told.
        spread: the fewest and the most partitions of a member; None without members.
        idle: the members with nothing, by id.
        shared: partitions that several members have, as topic, number and members.
        conflicts: partitions that several members claimed when they last joined.
        record_bytes: the size of the group's record on the broker; None where there is none.
        record_limit: what the broker allows.
        record_limit_told: whether the broker told that; else it is Kafka's default.
        findings: the rules that are not met, and what else is to be known.
    """

    group_id: str
    taken_ms: int
    protocol: str
    state: str
    strategy: str
    members: tuple[DescribedMember, ...]
    topics: tuple[DescribedTopic, ...]
    lag: int | None
    uncommitted: int
    balance_score: int
    least_balance_score: int | None
    spread: tuple[int, int] | None
    idle: tuple[str, ...]
    shared: tuple[tuple[str, int, tuple[str, ...]], ...]
    conflicts: tuple[Conflict, ...]
    record_bytes: int | None
    record_limit: int
    record_limit_told: bool
    findings: tuple[Finding, ...]

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The rules that are not met."""
        return tuple(finding for finding in self.findings if finding.warning)


def describe(standing: Standing, *, reset: str = "latest") -> DescribedGroup:
    """Describes a group. O(partitions), and what planning it takes.

    Args:
        standing: the group.
        reset: the consumers' `auto_offset_reset`, which counts for lags where there is no commit.
    """
    lags = standing.lags(reset)
    loads = standing.loads()
    uncommitted = standing.uncommitted()
    # With `earliest` a partition without a commit has a lag all the same: all that is in it.
    without = {topic: frozenset(numbers) for topic, numbers in uncommitted.items()} if reset == "latest" else {}
    members = tuple(_member(standing, member, lags, without) for member in standing.members)
    topics = tuple(
        DescribedTopic(
            name,
            topic.partitions,
            sum(name in subscribed for subscribed in standing.subscriptions.values()),
            tuple((standing.owners.get((name, number)) or (None,))[0] for number in range(topic.partitions)),
            tuple(None if number in without.get(name, ()) else lag for number, lag in enumerate(lags[name])),
            _padded(standing.group.committed.get(name, ()), topic.partitions),
        )
        for name, topic in standing.topics.items()
    )
    every = [
        (lag, number in without.get(name, ())) for name, of_topic in lags.items() for number, lag in enumerate(of_topic)
    ]
    conflicts = tuple(conflicts_of(claims_of(standing.members, standing.group.assignor)))
    shared = tuple((*partition, owners) for partition, owners in sorted(standing.owners.items()) if len(owners) > 1)
    size = record_bytes(standing.group_id, standing.group)
    score = balance_score(loads)
    least = _least_score(standing)
    return DescribedGroup(
        group_id=standing.group_id,
        taken_ms=standing.snapshot.taken_ms,
        protocol=standing.group.protocol,
        state=standing.group.state,
        strategy=standing.group.assignor,
        members=members,
        topics=topics,
        lag=_total(every),
        uncommitted=sum(map(len, uncommitted.values())),
        balance_score=score,
        least_balance_score=least,
        spread=(min(loads.values()), max(loads.values())) if loads else None,
        idle=tuple(member_id for member_id, load in loads.items() if load == 0),
        shared=shared,
        conflicts=conflicts,
        record_bytes=size,
        record_limit=standing.record_limit,
        record_limit_told=standing.snapshot.record_limit is not None,
        findings=tuple(_findings(standing, topics, shared, conflicts, loads, size, (score, least), reset)),
    )


def _padded(committed: Sequence[int | None], partitions: int) -> tuple[int | None, ...]:
    """One entry for each partition: a topic may have grown since."""
    return (*committed[:partitions], *[None] * (partitions - len(committed)))


def _total(lags: Sequence[tuple[int | None, bool]]) -> int | None:
    """The sum of lags; None where one is not known, or where there are only partitions that have none.

    Args:
        lags: of each partition the lag, and whether it has none for lack of a commit.
    """
    counted = [lag for lag, without in lags if not without]
    if None in counted or (lags and not counted):
        return None
    return sum(lag for lag in counted if lag is not None)


def _member(
    standing: Standing,
    member: GroupMember,
    lags: Mapping[str, list[int | None]],
    without: Mapping[str, frozenset[int]],
) -> DescribedMember:
    partitions = standing.owned[member.id]
    # A leader may assign any number. The lag of a partition that does not exist is not known.
    own = [
        (lags[topic][number] if _exists(standing, topic, number) else None, number in without.get(topic, ()))
        for topic, numbers in partitions.items()
        for number in numbers
    ]
    return DescribedMember(
        id=member.id,
        name=standing.names[member.id],
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rack=member.rack,
        topics=member.topics,
        partitions=partitions,
        count=sum(map(len, partitions.values())),
        lag=_total(own),
        uncommitted=sum(lacks for _, lacks in own),
    )


def _exists(standing: Standing, topic: str, number: int) -> bool:
    """Whether there is such a partition."""
    return topic in standing.topics and 0 <= number < standing.topics[topic].partitions


def _least_score(standing: Standing) -> int | None:
    """The best that any strategy could do with these members."""
    try:
        situation = Situation(standing)
    except GroupError:
        return None
    return solve(situation, StickyAssignor(), {}).certificate.balance_score_bound


def _findings(
    standing: Standing,
    topics: tuple[DescribedTopic, ...],
    shared: tuple[tuple[str, int, tuple[str, ...]], ...],
    conflicts: tuple[Conflict, ...],
    loads: Mapping[str, int],
    size: int | None,
    scores: tuple[int, int | None],
    reset: str,
) -> list[Finding]:
    names = standing.names
    found = rules.of_members(standing.members, names)
    if standing.group.state not in ("Stable", "Empty"):
        found.append(Finding("stable", f"the group is in state {standing.group.state}: what is shown may soon change"))
    missing: dict[str, list[str]] = {}
    for member_id, subscribed in standing.subscriptions.items():
        for topic in subscribed:
            if topic not in standing.snapshot.topics:
                missing.setdefault(topic, []).append(member_id)
    found += rules.of_missing(missing, names)
    found += rules.of_impossible(_impossible(standing), names)
    if not standing.members and standing.group.state == "Empty":
        found += rules.of_empty({topic.name: topic.lags for topic in topics})
    if shared:
        topic, number, owners = shared[0]
        found.append(
            Finding(
                "one-owner",
                f"{len(shared)} partitions have several owners, such as {topic}-{number} ({rules.some(owners, names)})",
            )
        )
    if conflicts:
        first = conflicts[0]
        who = rules.some([member for member, _ in first.claims], names)
        outcome = f"that of {names[first.winner]} counted" if first.winner else "none of them counted"
        found.append(
            Finding(
                "one-claim",
                f"{len(conflicts)} partitions were claimed by several members when they joined, such as "
                f"{first.topic}-{first.partition} ({who}): {outcome}",
            )
        )
    if standing.members and standing.group.state == "Stable":
        unowned = {
            topic.name: [number for number, owner in enumerate(topic.owners) if owner is None]
            for topic in topics
            if topic.subscribers
        }
        found += rules.of_unassigned(unowned, {})
        counts = {topic.name: topic.partitions for topic in topics}
        found += rules.of_loads(loads, standing.subscriptions, counts, names)
        score, least = scores
        if least is not None and score > least:
            found.append(
                Finding("least-balance-score", f"the balance score is {score}; {least} is possible, with sticky")
            )
    found += rules.of_record(size, standing.record_limit, standing.snapshot.record_limit is not None)
    uncommitted = standing.uncommitted()
    found += rules.of_uncommitted(uncommitted, standing.records(uncommitted), reset)
    return found + standing.notes()


def _impossible(standing: Standing) -> dict[str, dict[str, list[int]]]:
    """The numbers that members were given of topics that exist and do not have them."""
    found: dict[str, dict[str, list[int]]] = {}
    for member_id, partitions in standing.owned.items():
        for topic, numbers in partitions.items():
            wrong = [number for number in numbers if topic in standing.topics and not _exists(standing, topic, number)]
            if wrong:
                found.setdefault(member_id, {})[topic] = wrong
    return found
