"""A generated fleet, replayed through the assignors' Python interface: tables that do not depend on Spark."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from kafka_assignors import Group, LagBasedAssignor, Member, balance_score
from kafka_assignors.assignors import by_name
from kafka_assignors.lag import partition_lag
from kafka_assignors.spark.fleet import FleetOptions, SynthGroup

if TYPE_CHECKING:
    from kafka_assignors.spark.fleet import MembershipEvent

Rows = list[dict[str, Any]]
STRATEGIES = ("observed", "range", "sticky", "lag")


def tables(options: FleetOptions) -> dict[str, Rows]:
    """`rebalances`, `assignments` and `lags`, and the columns of `membership_events` that a report reads."""
    found: dict[str, Rows] = {"rebalances": [], "assignments": [], "lags": [], "membership_events": []}
    for number in range(options.groups):
        group = SynthGroup(options, number)
        key = {"cluster": options.cluster, "group_id": group.group_id}
        lags = [
            {"ts": each.ts, "topic": each.topic, "partition": at, "lag": partition_lag(begin, end, commit)}
            for each in group.offsets()
            for at, (begin, end, commit) in enumerate(
                zip(each.begin.tolist(), each.end.tolist(), each.committed.tolist(), strict=True)
            )
        ]
        found["lags"] += [key | lag for lag in lags]
        found["membership_events"] += [key | event._asdict() for event in group.events]
        for strategy in STRATEGIES:
            _replay(group, strategy, key, lags, found)
    return found


def _replay(group: SynthGroup, strategy: str, key: dict[str, str], lags: Rows, found: dict[str, Rows]) -> None:
    topics = {topic.name: topic for topic in group.topics}
    observed: dict[int, dict[str, dict[str, list[int]]]] = {}
    for row in group.observed():
        observed.setdefault(row.generation, {}).setdefault(row.member_id, {})[row.topic] = row.partitions
    members: dict[str, MembershipEvent] = {}
    owned: dict[str, dict[str, list[int]]] = {}
    owners: dict[tuple[str, int], str] = {}
    for seq, step in groupby(group.events, key=lambda event: event.seq):
        for event in step:
            ts = event.ts
            if event.kind == "leave":
                del members[event.member_id]
                continue
            for old in [
                each for each in members.values() if event.instance_id and each.instance_id == event.instance_id
            ]:
                owned[event.member_id] = owned.pop(old.member_id, {})
                del members[old.member_id]
            members[event.member_id] = event
        if not members:
            owners = {}
            continue
        counts = {name: topics[name].count_at(ts) for each in members.values() for name in each.topics}
        known = {(lag["topic"], lag["partition"]): lag["lag"] for lag in lags if lag["ts"] <= ts}
        of_topics = {name: [known.get((name, at), 0) for at in range(count)] for name, count in counts.items()}
        state = Group(
            counts, [Member(each.member_id, each.topics, owned.get(each.member_id)) for each in members.values()]
        )
        least = by_name("sticky").assign(state)
        if strategy == "observed":
            plan = {member: observed.get(seq, {}).get(member, {}) for member in members}
        elif strategy == "lag":
            plan = LagBasedAssignor().assign(state, lags=of_topics).assignment
        else:
            plan = by_name(strategy).assign(state).assignment
        after, needed = (_owners(each, members) for each in (plan, least.assignment))
        there = {place: owner for place, owner in owners.items() if place[1] < counts.get(place[0], 0)}
        loads = [sum(map(len, share.values())) for share in plan.values()]
        carried = [
            sum(of_topics[name][at] for name, shares in share.items() for at in shares) for share in plan.values()
        ]
        mean = sum(carried) / len(carried)
        moment = key | {"strategy": strategy, "seq": seq, "ts": ts, "generation": seq}
        found["rebalances"].append(
            moment
            | {
                "cause": "members",
                "members": len(members),
                "partitions": sum(counts.values()),
                "assigned": sum(loads),
                "min_count": min(loads),
                "max_count": max(loads),
                "balance_score": balance_score(loads),
                "moved": sum(after.get(place) != owner for place, owner in there.items()),
                "moved_needed": sum(needed.get(place) != owner for place, owner in there.items()),
                "max_lag": max(carried),
                "mean_lag": mean,
                "lag_skew": max(carried) / mean if mean else 1.0,
                "copartition_violations": 0,
                "kernel_ns": 1_000,
                "error": None,
            }
        )
        found["assignments"] += [
            moment | {"member_id": member, "topic": name, "partitions": shares}
            for member, share in plan.items()
            for name, shares in share.items()
        ]
        owned, owners = plan, after


def _owners(plan: dict[str, dict[str, list[int]]], members: dict[str, MembershipEvent]) -> dict[tuple[str, int], str]:
    """The owner of each partition: the instance of a static member, else the member."""
    return {
        (name, at): members[member].instance_id or member
        for member, share in plan.items()
        for name, shares in share.items()
        for at in shares
    }
