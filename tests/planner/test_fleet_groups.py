"""All groups at once, from snapshots: verdicts, growth, seconds of lag, moves of the next join, KIP-848, order."""

from __future__ import annotations

import dataclasses
import random
from array import array
from typing import TYPE_CHECKING

import pytest

from kafka_assignors import OptionError, ServerSideGroup, SnapshotError
from kafka_assignors.cluster import Ages, ClassicMember, ConsumerMember, GroupSnapshot, Look, Missing, Snapshot
from kafka_assignors.planner.change import Change, Join, Situation
from kafka_assignors.planner.findings import RULES
from kafka_assignors.planner.fleet import FLEET_RULES, VERDICTS, Fleet, FleetGroup, Limits, fleet
from kafka_assignors.planner.fleet_looks import movement
from kafka_assignors.planner.fleet_query import FIELDS, chosen, parse_condition, sorted_by
from kafka_assignors.planner.kip848 import readiness
from kafka_assignors.planner.observed_group import ObservedGroup
from kafka_assignors.planner.plan import plan_change
from support.fleets import bare, cluster, of_broker, troubled
from support.snapshots import classic, group, random_snapshot, snapshot

if TYPE_CHECKING:
    from kafka_assignors.server_side import ServerSideName


def by_id(found: Fleet) -> dict[str, FleetGroup]:
    return {each.group_id: each for each in found.groups}


def one(
    before: list[int | None], now: list[int | None], ends_before: list[int], ends_now: list[int], seconds: float = 60
) -> FleetGroup:
    """A group of one member, before and now."""

    def at(commits: list[int | None], ends: list[int], taken_ms: int) -> Snapshot:
        owned = classic("a", ["t"], {"t": list(range(len(ends)))})
        return cluster({"t": ends}, {"g": group([owned], committed={"t": commits})}, taken_ms=taken_ms)

    later = at(now, ends_now, 10**12 + int(seconds * 1000))
    return fleet(Look(later), at(before, ends_before, 10**12)).groups[0]


# ---- verdicts ----


def test_every_kind_of_trouble_has_its_verdict_and_the_worst_come_first() -> None:
    found = fleet(Look(troubled(later=True)), troubled())
    assert {each.group_id: each.verdict for each in found.groups} == {
        "fine": "ok",
        "dead": "dead",
        "stuck": "stuck",
        "behind": "behind",
        "unread": "unread",
        "idle": "idle",
        "costly": "ok",
        "by-lag": "ok",
        "moving": "rebalancing",
        "new-protocol": "ok",
    }
    places = [list(VERDICTS).index(each.verdict) for each in found.groups]
    assert places == sorted(places)
    assert found.verdicts == {
        "dead": 1, "stuck": 1, "unread": 1, "behind": 1, "rebalancing": 1, "idle": 1, "ok": 4,
    }  # fmt: skip
    assert found.wrong
    assert (found.seconds, found.notes) == (60, ())
    rules = {finding.rule for each in found.groups for finding in each.findings}
    assert rules <= {*RULES, *FLEET_RULES}


def test_with_one_look_nothing_that_needs_two_is_told() -> None:
    found = by_id(fleet(Look(troubled())))
    assert {each.verdict for each in found.values()} == {"dead", "unread", "idle", "rebalancing", "ok"}
    for each in found.values():
        assert (each.growth, each.arrivals, each.commits, each.stuck, each.rebalances) == (None,) * 5
    assert found["behind"].lag == 2 * 8_000
    assert found["behind"].lag_seconds is None
    assert found["fine"].lag_seconds == 0


def test_a_fleet_that_is_well_is_not_wrong() -> None:
    well = troubled()
    groups = {name: well.groups[name] for name in ("fine", "new-protocol")}
    found = fleet(Look(dataclasses.replace(well, groups=groups)))
    assert not found.wrong
    assert fleet(Look(Snapshot("c", 0))).groups == ()
    assert fleet(Look(Snapshot("c", 0), missing=(Missing("group", "g", "no right"),))).wrong
    assert not fleet(Look(Snapshot("c", 0), missing=(Missing("gone", "g", "deleted"),))).wrong


def test_a_group_that_no_broker_can_have_costs_only_itself() -> None:
    taken = troubled()
    huge = cluster({}, {"huge": group([classic("h", ["huge"])])})
    topics = {
        **taken.topics,
        "huge": dataclasses.replace(taken.topics["idle"], partitions=2_000_000, begin=None, end=None),
    }
    both = dataclasses.replace(taken, topics=topics, groups={**taken.groups, **huge.groups})
    found = by_id(fleet(Look(both)))
    assert found["huge"].verdict == "faulty"
    assert "2,000,000" in found["huge"].findings[0].text
    assert found["fine"].verdict == "ok"


# ---- two readings ----


def test_growth_is_the_difference_of_the_lags_by_the_time() -> None:
    found = one([0, 0], [60, 0], [100, 0], [400, 0])
    assert (found.growth, found.arrivals, found.commits) == (4.0, 5.0, 1.0)
    assert (found.verdict, found.lag) == ("behind", 340)
    # 300 records in 60 s: the record at offset 60 of 400 was written 68 s ago.
    assert found.lag_seconds == 68.0
    shrinking = one([0], [300], [400], [460])
    assert (shrinking.growth, shrinking.verdict) == (-4.0, "ok")


def test_a_lag_that_is_worked_off_within_a_commit_interval_is_not_behind() -> None:
    assert one([995], [1590], [1000], [1600]).verdict == "ok"
    assert one([995], [1000], [1000], [1600]).verdict == "behind"


@pytest.mark.parametrize(
    ("before", "now", "ends_before", "ends_now", "stuck"),
    [
        ([50], [50], [100], [160], 1),
        # The end offset stands still as well: no member reads the waiting records.
        ([50], [50], [100], [100], 1),
        # The only record is one that no consumer sees, such as the mark of a transaction.
        ([99], [99], [100], [100], 0),
        ([99], [99], [100], [130], 1),
        # At the first reading, no record was unread.
        ([100], [100], [100], [160], 0),
        ([50], [51], [100], [160], 0),
        ([50, 80], [50, 80], [100, 90], [160, 90], 2),
        ([None], [None], [100], [160], 0),
    ],
)
def test_stuck(
    before: list[int | None], now: list[int | None], ends_before: list[int], ends_now: list[int], stuck: int
) -> None:
    found = one(before, now, ends_before, ends_now)
    assert found.stuck == stuck
    assert (found.verdict == "stuck") == (stuck > 0)
    # Clients commit every five seconds: two readings that are only five seconds apart prove nothing.
    assert one(before, now, ends_before, ends_now, seconds=5).stuck is None


def test_counters_that_go_back() -> None:
    found = one([90], [10], [100], [100])
    assert (found.verdict, found.commits) == ("rewound", round(-80 / 60, 3))
    assert "the commits of 1 partition went back" in found.findings[-1].text
    remade = one([90], [5], [100], [20])
    assert (remade.verdict, remade.growth, remade.arrivals, remade.lag_seconds) == ("ok", None, None, None)
    assert any("made anew" in finding.text and not finding.warning for finding in remade.findings)


def test_clocks_that_run_apart_give_no_rate() -> None:
    for before, after in ((troubled(later=True), troubled()), (troubled(), troubled())):
        found = fleet(Look(after), before)
        assert found.seconds is None
        assert "the clocks differ" in found.notes[0]
        assert {(each.growth, each.stuck) for each in found.groups} == {(None, None)}
    # One process that reads twice measures `seconds` with its monotonic clock, which cannot be set.
    assert fleet(Look(troubled()), troubled(), seconds=30).seconds == 30
    assert "5 s apart" in fleet(Look(troubled()), troubled(), seconds=5).notes[0]


def test_groups_that_come_and_go() -> None:
    before, now = troubled(), troubled(later=True)
    fewer = dataclasses.replace(now, groups={name: each for name, each in now.groups.items() if name != "idle"})
    assert fleet(Look(fewer), before).notes == ("1 group is gone since: idle",)
    assert fleet(Look(now), dataclasses.replace(fewer, taken_ms=0)).notes == ("1 group is new since: idle",)
    unread = Look(fewer, missing=(Missing("group", "idle", "no right"),))
    assert fleet(unread, before).notes == ()
    with pytest.raises(SnapshotError, match="is of cluster 'other'"):
        fleet(Look(now), dataclasses.replace(before, cluster="other"))


def test_rebalances() -> None:
    found = by_id(fleet(Look(troubled(later=True)), troubled()))
    assert found["new-protocol"].rebalances == 2
    assert found["fine"].rebalances == 0

    def count(before: GroupSnapshot, now: GroupSnapshot) -> int | None:
        earlier, later = [ObservedGroup(cluster({"t": [1, 1]}, {"g": each})) for each in (before, now)]
        return movement(later, earlier, 60).rebalances

    def classics(generation: int | None, *shares: list[int]) -> GroupSnapshot:
        members = [classic(f"m{n}", ["t"], {"t": share}, generation=generation or 0) for n, share in enumerate(shares)]
        return group(members if generation is not None else [bare(member) for member in members])

    assert count(classics(4, [0], [1]), classics(9, [0], [1])) == 5
    assert count(classics(9, [0], [1]), classics(2, [0], [1])) == 1
    assert count(classics(None, [0], [1]), classics(None, [0], [1])) == 0
    assert count(classics(None, [0], [1]), classics(None, [0, 1])) == 1
    assert count(classics(None, [0], [1]), of_broker({"m0": {"t": [0, 1]}}, {})) == 1
    moving = GroupSnapshot(state="PreparingRebalance", members=(ClassicMember("m0"),))
    assert count(moving, moving) is None
    assert count(classics(None, [0], [1]), moving) == 1


# ---- seconds ----


def test_ages_are_interpolated_between_the_times() -> None:
    ages = Ages(1_000_000, (100_000, 900_000, 940_000), {"t": [array("q", each) for each in ([10], [50], [90])]})
    for committed, seconds in ((120, 0), (110, 20), (90, 60), (70, 80), (50, 100), (30, 500), (10, 900), (5, 900)):
        assert ages.of("t", 0, committed, 120) == seconds
    assert ages.of("t", 1, 5, 10) is None
    assert ages.of("u", 0, 5, 10) is None
    unknown = Ages(1_000_000, (100_000,), {"t": [array("q", [-1])]})
    assert unknown.of("t", 0, 5, 10) is None
    # A producer whose clock is ahead: its records are not younger than now.
    assert Ages(1_000, (2_000,), {"t": [array("q", [0])]}).of("t", 0, 5, 10) == 0


def test_the_oldest_unread_record_of_a_group_counts() -> None:
    taken = cluster({"t": [100, 100]}, {"g": group([classic("a", ["t"], {"t": [0, 1]})], committed={"t": [100, 60]})})
    ages = Ages(taken.taken_ms, (taken.taken_ms - 100_000,), {"t": [array("q", [0, 0])]})
    assert fleet(Look(taken, ages)).groups[0].lag_seconds == 40.0
    late = fleet(Look(taken, ages), limits=Limits(seconds=30)).groups[0]
    assert (late.verdict, late.findings[0].text) == ("late", "a record has waited 40 s; the limit is 30 s")
    assert fleet(Look(taken, ages), limits=Limits(seconds=50, records=40)).groups[0].verdict == "ok"
    assert fleet(Look(taken, ages), limits=Limits(records=39)).groups[0].verdict == "late"


# ---- moves ----


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky", "lag", "sticky-join"])
@pytest.mark.parametrize("seed", range(25))
def test_moves_of_the_next_join_are_those_of_a_plan(seed: int, assignor: str) -> None:
    taken = random_snapshot(seed, assignor=assignor)
    found = fleet(Look(taken)).groups[0]
    situation = Situation(ObservedGroup(taken), Change(join=(Join(1),)))
    planned = plan_change(situation)
    # `moves` of a plan also contains partitions that had no owner.
    moved = sum(len(situation.before.get((move.topic, move.partition), ())) == 1 for move in planned.moves)
    assert found.moves == moved
    if assignor == "sticky":
        assert found.moves == found.least_moves


@pytest.mark.parametrize("assignor", ["uniform", "range"])
@pytest.mark.parametrize("seed", range(20))
def test_moves_of_a_group_that_the_broker_assigns_are_the_brokers(seed: int, assignor: ServerSideName) -> None:
    draw = random.Random(seed)
    topics = {f"t{number}": draw.randint(1, 12) for number in range(4)}
    group = ServerSideGroup(assignor)
    for topic, partitions in topics.items():
        group.grow(topic, partitions)
    subscribed = draw.sample(sorted(topics), draw.randint(1, 3))
    for number in range(draw.randint(1, 5)):
        group.join(f"m{number}", subscribed)
    before = owners(group)
    described = of_broker(group.target, {})
    members = [
        dataclasses.replace(member, topics=tuple(subscribed))
        for member in described.members
        if isinstance(member, ConsumerMember)
    ]
    described = dataclasses.replace(described, assignor=assignor, members=tuple(members))
    taken = cluster({topic: [10] * partitions for topic, partitions in topics.items()}, {"g": described})
    found = fleet(Look(taken)).groups[0]
    ((joined, its_topics),) = Situation(ObservedGroup(taken), Change(join=(Join(1),))).joined.items()
    group.join(joined, its_topics)
    after = owners(group)
    assert found.moves == sum(after[each] != owner for each, owner in before.items())


def owners(group: ServerSideGroup) -> dict[tuple[str, int], str]:
    return {
        (topic, number): member
        for member, target in group.target.items()
        for topic, numbers in target.items()
        for number in numbers
    }


def test_a_broker_with_an_assignor_of_its_own_has_no_known_moves() -> None:
    custom = dataclasses.replace(troubled().groups["new-protocol"], assignor="my-own")
    (found,) = fleet(Look(cluster({"new": [300] * 2}, {"g": custom}))).groups
    assert (found.moves, found.least_moves) == (None, 0)


def test_who_runs_a_strategy_that_costs_moves() -> None:
    found = by_id(fleet(Look(troubled())))
    costly = found["costly"]
    assert (costly.moves, costly.least_moves) == (3, 1)
    # Two members own one partition each: none moves to a third member.
    assert (found["new-protocol"].moves, found["new-protocol"].least_moves) == (0, 0)
    assert (found["dead"].moves, found["dead"].least_moves) == (None, None)
    assert (found["moving"].moves, found["moving"].least_moves) == (None, None)
    unknown = fleet(Look(snapshot({"t": 2}, [classic("a", ["t"], {"t": [0, 1]})], assignor="sticky")))
    assert unknown.groups[0].moves == 1
    custom = dataclasses.replace(troubled().groups["fine"], assignor="my-own")
    other = fleet(Look(cluster({"fine": [1_000] * 4}, {"g": custom}))).groups[0]
    assert (other.moves, other.least_moves, other.kip848) == (None, 1, "blocked")


# ---- KIP-848 ----


def test_who_can_be_moved_to_kip_848() -> None:
    found = by_id(fleet(Look(troubled())))
    assert {name: each.kip848 for name, each in found.items()} == {
        "fine": "ready",
        "dead": "ready",
        "stuck": "blocked",
        "behind": "blocked",
        "unread": "blocked",
        "idle": "blocked",
        "costly": "ready",
        "by-lag": "blocked",
        "moving": "unknown",
        "new-protocol": "moved",
    }
    assert found["by-lag"].kip848_reasons == (
        "the assignments of 'lag' carry user data, which the upgrade would lose",
        "brokers have no assignor that does what 'lag' does",
    )
    connect = GroupSnapshot(protocol_type="connect", assignor="default")
    assert readiness(ObservedGroup(cluster({}, {"g": connect}))).reasons == (
        "its members are no consumers, but of type 'connect'",
    )
    broken = group([dataclasses.replace(classic("a", ["t"]), subscription=b"\xff")])
    assert "the bytes of a cannot be read" in readiness(ObservedGroup(cluster({}, {"g": broken}))).reasons
    mixed = GroupSnapshot("consumer", members=(ConsumerMember("a", classic=True), ConsumerMember("b", classic=False)))
    assert readiness(ObservedGroup(cluster({}, {"g": mixed}))).state == "moving"


# ---- choosing and sorting ----


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("lag>=500", {"stuck", "behind"}),
        ("lag >= 0.5k", {"stuck", "behind"}),
        ("verdict=dead", {"dead"}),
        ("verdict != ok", {"dead", "unread", "idle", "moving"}),
        ("group~^(fi|id)", {"fine", "idle"}),
        ("group!~i", {"stuck"}),
        ("rules~every-member", {"idle"}),
        ("kip848=moved", {"new-protocol"}),
        ("saved>0", {"costly"}),
        ("growth>0", set()),
        ("members=1", {"unread", "moving"}),
    ],
)
def test_filters(text: str, fits: set[str]) -> None:
    groups = fleet(Look(troubled())).groups
    found = {each.group_id for each in chosen(groups, [parse_condition(text)])}
    assert found >= fits
    if text != "group!~i":
        assert found == fits


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lag", "give a field, a comparison and a value"),
        ("size>3", "'size', which no group has; give one of group, verdict"),
        ("lag>many", "'many' is not a number; give one such as 500, 10k or 5min"),
        ("lag~3", "lag is a number, which has no regular expression"),
        ("group>a", "group is a text"),
        ("group~(", "is no regular expression"),
    ],
)
def test_conditions_that_cannot_be(text: str, said: str) -> None:
    with pytest.raises(OptionError, match=r"--filter") as caught:
        parse_condition(text)
    assert said in str(caught.value)


@pytest.mark.parametrize("field", FIELDS)
def test_groups_are_sorted_by_any_field_with_what_is_unknown_last(field: str) -> None:
    groups = fleet(Look(troubled(later=True)), troubled()).groups
    for reverse in (False, True):
        values = [FIELDS[field](each) for each in sorted_by(groups, field, reverse=reverse)]
        known = [value for value in values if value is not None]
        assert values == known + [None] * (len(values) - len(known))
        down = isinstance(known[0], str) == reverse
        assert known == sorted(known, reverse=down)
    with pytest.raises(OptionError, match="--sort names 'size'"):
        sorted_by(groups, "size")


def test_units() -> None:
    assert parse_condition("lag>1.5M").value == 1_500_000
    assert parse_condition("lag_seconds>5min").value == 300
    assert parse_condition("lag_seconds<=2h").value == 7_200
