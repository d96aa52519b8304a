"""The description of a group: its state, its members and their partitions, lags, and the rules that are not met."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_assignors.assignors import StickyAssignor
from kafka_assignors.cluster import record_bytes
from kafka_assignors.errors import GroupError
from kafka_assignors.group import balance_score
from kafka_assignors.planner import findings as rules
from kafka_assignors.planner.change import Situation
from kafka_assignors.planner.claims import Conflict, conflicts_of
from kafka_assignors.planner.observed_group import Finding
from kafka_assignors.planner.rates import rate_of, total_rate
from kafka_assignors.planner.solve import solve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_assignors.cluster import GroupMember
    from kafka_assignors.planner.observed_group import ObservedGroup
    from kafka_assignors.planner.rates import Rates

__all__ = ["DescribedGroup", "DescribedMember", "DescribedTopic", "describe"]


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """A member.

    Attributes:
        id: its id.
        name: its name for people.
        instance_id: `group.instance.id`; None for a dynamic member.
        client_id: its client id; None if the snapshot does not have it.
        client_host: its host; None if the snapshot does not have it.
        rack: the rack where it runs.
        topics: the topics that it subscribes to.
        partitions: topic to its partitions.
        count: how many partitions it has.
        lag: its lag; None if it is not known, or if none of its partitions has a lag.
        uncommitted: how many of its partitions have no lag for lack of a commit.
        rate: how many records a second are written to its partitions; None if that is not known.
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
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    """A topic of the group.

    Attributes:
        name: its name.
        partitions: how many it has.
        subscribers: how many members subscribe to it.
        owners: by partition number, its owner; None without one, the first by id of several.
        lags: by partition number; None if it is not known, or without a commit if the reset is `latest`.
        committed: the committed offset by partition number; None without one.
        uncommitted: the numbers of the partitions without a lag for lack of a commit; none if the reset is `earliest`.
        rates: by partition number, how many records a second are written to it; None where that is not known.
    """

    name: str
    partitions: int
    subscribers: int
    owners: tuple[str | None, ...]
    lags: tuple[int | None, ...]
    committed: tuple[int | None, ...]
    uncommitted: tuple[int, ...]
    rates: tuple[float | None, ...] = ()

    @property
    def lag(self) -> int | None:
        """The total; None if a lag is not known, or if no partition has a lag."""
        without = frozenset(self.uncommitted)
        return _total([(lag, number in without) for number, lag in enumerate(self.lags)])


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """A group.

    Attributes:
        group_id: its id.
        taken_ms: the time of the snapshot, in milliseconds since 1970.
        protocol: `classic`, if a member assigns, or `consumer`, if the broker does (KIP-848).
        state: Kafka's name of its state.
        strategy: the strategy, or the broker's assignor.
        members: by id.
        topics: by name.
        lag: the total; None if a lag is not known, or if no partition has a lag.
        uncommitted: how many partitions have no commit.
        balance_score: the balance score (KIP-54).
        least_balance_score: the least possible one; None if it is not known.
        spread: the fewest and the most partitions of a member; None without members.
        idle: the members without a partition, by id.
        shared: partitions that several members own, as topic, number and members.
        conflicts: partitions that several members claimed when they last joined.
        record_bytes: the size of the group's record on the broker; None where there is none.
        record_limit: the largest record that the broker accepts.
        record_limit_told: whether this limit was read from the cluster; else it is Kafka's default.
        findings: the rules that are not met, and notes.
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


def describe(observed: ObservedGroup, *, reset: str = "latest", rates: Rates | None = None) -> DescribedGroup:
    """Describes a group. O(partitions), and the time of one plan, for the least balance score.

    Args:
        observed: the group.
        reset: the consumers' `auto_offset_reset`, on which the lag of partitions without a commit depends.
        rates: of the topics' partitions, from `rates_between`; None where there is one snapshot only.
    """
    lags = observed.lags(reset)
    loads = observed.loads()
    uncommitted = observed.uncommitted()
    # With `earliest` the lag of a partition without a commit is the number of all its records.
    without = {topic: frozenset(numbers) for topic, numbers in uncommitted.items()} if reset == "latest" else {}
    members = tuple(_member(observed, member, lags, without, rates) for member in observed.members)
    topics = tuple(
        DescribedTopic(
            name,
            topic.partitions,
            sum(name in subscribed for subscribed in observed.subscriptions.values()),
            tuple((observed.owners.get((name, number)) or (None,))[0] for number in range(topic.partitions)),
            tuple(None if number in without.get(name, ()) else lag for number, lag in enumerate(lags[name])),
            _padded(observed.group.committed.get(name, ()), topic.partitions),
            tuple(sorted(without.get(name, ()))),
            tuple(rate_of(rates or {}, name, number) for number in range(topic.partitions)),
        )
        for name, topic in observed.topics.items()
    )
    every = [
        (lag, number in without.get(name, ())) for name, of_topic in lags.items() for number, lag in enumerate(of_topic)
    ]
    conflicts = tuple(conflicts_of(observed))
    shared = tuple((*partition, owners) for partition, owners in sorted(observed.owners.items()) if len(owners) > 1)
    size = record_bytes(observed.group_id, observed.group)
    score = balance_score(loads)
    least = _least_score(observed)
    return DescribedGroup(
        group_id=observed.group_id,
        taken_ms=observed.snapshot.taken_ms,
        protocol=observed.group.protocol,
        state=observed.group.state,
        strategy=observed.group.assignor,
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
        record_limit=observed.record_limit,
        record_limit_told=observed.snapshot.record_limit is not None,
        findings=tuple(_findings(observed, topics, shared, conflicts, loads, size, (score, least), reset)),
    )


def _padded(committed: Sequence[int | None], partitions: int) -> tuple[int | None, ...]:
    """One entry for each partition: the topic may have more partitions than commits."""
    return (*committed[:partitions], *[None] * (partitions - len(committed)))


def _total(lags: Sequence[tuple[int | None, bool]]) -> int | None:
    """The sum of lags; None if one is not known, or if no partition has a lag.

    Args:
        lags: for each partition its lag, and whether it has none for lack of a commit.
    """
    counted = [lag for lag, without in lags if not without]
    if None in counted or (lags and not counted):
        return None
    return sum(lag for lag in counted if lag is not None)


def _member(
    observed: ObservedGroup,
    member: GroupMember,
    lags: Mapping[str, list[int | None]],
    without: Mapping[str, frozenset[int]],
    rates: Rates | None,
) -> DescribedMember:
    partitions = observed.owned[member.id]
    # A leader may assign a partition that does not exist. Its lag is not known.
    own = [
        (lags[topic][number] if _exists(observed, topic, number) else None, number in without.get(topic, ()))
        for topic, numbers in partitions.items()
        for number in numbers
    ]
    return DescribedMember(
        id=member.id,
        name=observed.names[member.id],
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rack=member.rack,
        topics=member.topics,
        partitions=partitions,
        count=sum(map(len, partitions.values())),
        lag=_total(own),
        uncommitted=sum(lacks for _, lacks in own),
        rate=total_rate(rates, partitions),
    )


def _exists(observed: ObservedGroup, topic: str, number: int) -> bool:
    """Whether the partition exists."""
    return topic in observed.topics and 0 <= number < observed.topics[topic].partitions


def _least_score(observed: ObservedGroup) -> int | None:
    """The least balance score of any plan for these members."""
    try:
        situation = Situation(observed)
    except GroupError:
        return None
    return solve(situation, StickyAssignor(), {}).certificate.balance_score_bound


def _findings(
    observed: ObservedGroup,
    topics: tuple[DescribedTopic, ...],
    shared: tuple[tuple[str, int, tuple[str, ...]], ...],
    conflicts: tuple[Conflict, ...],
    loads: Mapping[str, int],
    size: int | None,
    scores: tuple[int, int | None],
    reset: str,
) -> list[Finding]:
    names = observed.names
    found = rules.of_members(observed.members, names)
    if observed.group.state not in ("Stable", "Empty"):
        found.append(Finding("stable", f"the group is in state {observed.group.state}: what is shown may soon change"))
    missing: dict[str, list[str]] = {}
    for member_id, subscribed in observed.subscriptions.items():
        for topic in subscribed:
            if topic not in observed.snapshot.topics:
                missing.setdefault(topic, []).append(member_id)
    found += rules.of_missing(missing, names)
    found += rules.of_impossible(_impossible(observed), names)
    if not observed.members and observed.group.state == "Empty":
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
    if observed.members and observed.group.state == "Stable":
        unowned = {
            topic.name: [number for number, owner in enumerate(topic.owners) if owner is None]
            for topic in topics
            if topic.subscribers
        }
        found += rules.of_unassigned(unowned, {})
        counts = {topic.name: topic.partitions for topic in topics}
        found += rules.of_loads(loads, observed.subscriptions, counts, names)
        score, least = scores
        if least is not None and score > least:
            found.append(
                Finding("least-balance-score", f"the balance score is {score}; {least} is possible, with sticky")
            )
    found += rules.of_record(size, observed.record_limit, observed.snapshot.record_limit is not None)
    uncommitted = observed.uncommitted()
    found += rules.of_uncommitted(uncommitted, observed.records(uncommitted), reset)
    return found + observed.notes()


def _impossible(observed: ObservedGroup) -> dict[str, dict[str, list[int]]]:
    """Assigned partitions that do not exist although their topic does."""
    found: dict[str, dict[str, list[int]]] = {}
    for member_id, partitions in observed.owned.items():
        for topic, numbers in partitions.items():
            wrong = [number for number in numbers if topic in observed.topics and not _exists(observed, topic, number)]
            if wrong:
                found.setdefault(member_id, {})[topic] = wrong
    return found
