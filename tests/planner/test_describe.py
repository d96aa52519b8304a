"""Descriptions, comparisons, costs and decoded bytes, from snapshots, without a broker."""

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_assignors import (
    CooperativeStickyAssignor,
    GroupError,
    LagBasedAssignor,
    OptionError,
    RangeAssignor,
    StickyAssignor,
    UserDataError,
    WeightedAssignor,
    by_name,
)
from kafka_assignors.assignors import Assignor
from kafka_assignors.cluster import (
    ClassicMember,
    ConsumerMember,
    GroupSnapshot,
    Snapshot,
    TopicSnapshot,
    record_bytes,
)
from kafka_assignors.planner.change import Situation, parse_change
from kafka_assignors.planner.claims import claims_of, conflicts_of
from kafka_assignors.planner.compare import compare
from kafka_assignors.planner.cost import deployment, rebalance_cost, rolling_restart, scaling
from kafka_assignors.planner.decode import bytes_of, decode, decode_group
from kafka_assignors.planner.describe import DescribedGroup, describe
from kafka_assignors.planner.findings import RULES
from kafka_assignors.planner.observed_group import ObservedGroup
from kafka_assignors.planner.plan import plan_change
from kafka_assignors.planner.strategies import STANDARD
from kafka_assignors.strategies import strategy_text
from kafka_assignors.userdata import Assignment, StickyUserData, StreamJoinUserData, Subscription
from support.snapshots import by_broker, classic, orders, random_snapshot, snapshot, topic


def situation(taken: Snapshot, **change: list[str]) -> Situation:
    return Situation(ObservedGroup(taken), parse_change(**change))


def broken_rules(found: DescribedGroup) -> list[str]:
    assert {finding.rule for finding in found.findings} <= set(RULES)
    return [finding.rule for finding in found.warnings]


# ---- describe ----


def test_a_group_that_is_well() -> None:
    found = describe(ObservedGroup(orders()))
    assert (found.state, found.strategy, found.protocol) == ("Stable", "sticky", "classic")
    assert (found.balance_score, found.least_balance_score, found.spread, found.idle) == (0, 0, (6, 6), ())
    assert [(member.name, member.count, member.lag) for member in found.members] == [
        (f"c{n}", 6, 300) for n in range(3)
    ]
    assert found.lag == 900
    assert found.topics[1].owners == ("c0", "c0", "c1", "c1", "c2", "c2")
    assert (broken_rules(found), found.record_limit_told) == ([], True)


def test_what_is_wrong_is_named() -> None:
    members = [
        classic("a", ["x", "gone"], {"x": [0, 1]}, claimed={"x": [0, 1]}, generation=4),
        classic("b", ["x"], {"x": [1]}, claimed={"x": [1]}, generation=3),
        classic("c", ["x"], {}, claimed={"x": [0]}, generation=4),
    ]
    found = describe(ObservedGroup(snapshot({"x": 4}, members)))
    assert broken_rules(found) == [
        "topic-exists",
        "one-owner",
        "one-claim",
        "every-partition-read",
        "every-member-works",
        "even-shares",
        "least-balance-score",
    ]
    assert found.shared == (("x", 1, ("a", "b")),)
    assert [(each.partition, each.claims, each.winner) for each in found.conflicts] == [
        (0, (("a", 4), ("c", 4)), None),
        (1, (("a", 4), ("b", 3)), "a"),
    ]
    assert found.idle == ("c",)


def test_groups_without_an_assignment() -> None:
    moving = GroupSnapshot(state="PreparingRebalance", members=(ClassicMember("a"),))
    found = describe(ObservedGroup(Snapshot("t", 0, {}, {"g": moving})))
    assert broken_rules(found) == ["stable"]
    assert (found.least_balance_score, found.record_bytes, found.record_limit, found.record_limit_told) == (
        None,
        None,
        1_048_588,
        False,
    )
    empty = describe(ObservedGroup(Snapshot("t", 0, {}, {"g": GroupSnapshot(state="Empty")})))
    assert (broken_rules(empty), empty.spread, empty.lag) == ([], None, 0)


def test_a_group_that_the_broker_assigns() -> None:
    found = describe(ObservedGroup(by_broker()))
    assert (found.protocol, found.strategy, broken_rules(found)) == ("consumer", "uniform", [])
    assert [finding.rule for finding in found.findings] == ["committed", "broker-assigned"]
    by_pattern = ConsumerMember("m", topics=("x",), topic_regex="x.*", owned={"x": (0,)})
    group = GroupSnapshot("consumer", "Stable", "uniform", epoch=1, members=(by_pattern,))
    described = describe(ObservedGroup(Snapshot("t", 0, {"x": topic(1)}, {"g": group})))
    assert [finding.rule for finding in described.findings] == ["committed", "broker-assigned", "pattern"]


def test_lags_need_offsets() -> None:
    members = [classic("a", ["x"], {"x": [0, 1]})]
    taken = snapshot({"x": 2}, members, committed={"x": [40]})
    assert describe(ObservedGroup(taken)).lag == 60
    assert describe(ObservedGroup(taken), reset="earliest").lag == 160
    unknown = snapshot({"x": topic(2, end=None)}, members)
    assert describe(ObservedGroup(unknown)).lag is None
    assert describe(ObservedGroup(unknown)).topics[0].lags == (None, None)


def test_partitions_without_a_commit_are_counted_and_named() -> None:
    members = [classic("a", ["x"], {"x": [0, 1]}), classic("b", ["x"], {"x": [2, 3]})]
    taken = snapshot({"x": 4}, members, committed={"x": [40, None]})
    found = describe(ObservedGroup(taken))
    assert found.topics[0].committed == (40, None, None, None)
    assert found.topics[0].lags == (60, None, None, None)
    assert (found.lag, found.uncommitted, broken_rules(found)) == (60, 3, [])
    assert [(member.lag, member.uncommitted) for member in found.members] == [(60, 1), (None, 2)]
    (note,) = found.findings
    assert note.text == (
        "3 partitions have no commit: x 1-3; auto.offset.reset=latest passes over the 300 records that they have "
        "(counted here), earliest reads them"
    )
    earliest = describe(ObservedGroup(taken), reset="earliest")
    assert earliest.topics[0].lags == (60, 100, 100, 100)
    assert (earliest.lag, earliest.uncommitted) == (360, 3)
    assert [(member.lag, member.uncommitted) for member in earliest.members] == [(160, 0), (200, 0)]
    assert earliest.findings[0].text.endswith("that they have, earliest reads them (counted here)")
    nothing = describe(ObservedGroup(snapshot({"x": 4}, members)))
    assert (nothing.lag, nothing.uncommitted) == (None, 4)


def test_a_topic_tells_an_unknown_lag_from_one_without_a_commit() -> None:
    """With `earliest`, a partition without a commit has a lag. Without the partition's first offset it is unknown."""
    counted = topic(2, end=10)
    taken = snapshot({"t": counted}, [classic("a", ["t"], {"t": [0, 1]})], committed={"t": [7, None]})
    (latest,) = describe(ObservedGroup(taken)).topics
    assert (latest.lag, latest.lags, latest.uncommitted) == (3, (3, None), (1,))
    (earliest,) = describe(ObservedGroup(taken), reset="earliest").topics
    assert (earliest.lag, earliest.lags, earliest.uncommitted) == (13, (3, 10), ())
    unknown = dataclasses.replace(counted, begin=None)
    taken = snapshot({"t": unknown}, [classic("a", ["t"], {"t": [0, 1]})], committed={"t": [7, None]})
    (earliest,) = describe(ObservedGroup(taken), reset="earliest").topics
    assert (earliest.lag, earliest.lags, earliest.uncommitted) == (None, (3, None), ())


def test_an_empty_group_has_the_topics_of_its_commits() -> None:
    topics = {"orders": topic(2, end=400_000), "payments": topic(1, end=None), "other": topic(9)}
    group = GroupSnapshot(state="Empty", committed={"orders": (316_996, 0), "payments": (7,), "deleted": (1,)})
    found = describe(ObservedGroup(Snapshot("t", 0, topics, {"g": group})))
    assert [(each.name, each.subscribers, each.owners) for each in found.topics] == [
        ("orders", 0, (None, None)),
        ("payments", 0, (None,)),
    ]
    assert [(finding.rule, finding.text) for finding in found.warnings] == [
        ("somebody-reads", "the group is Empty, and 483,004 records wait in orders")
    ]
    read = GroupSnapshot(state="Empty", committed={"orders": (400_000, 400_000)})
    done = describe(ObservedGroup(Snapshot("t", 0, topics, {"g": read})))
    assert (done.lag, done.warnings) == (0, ())


@pytest.mark.parametrize("number", [-7, -1, 4, 2**31 - 1])
def test_partitions_that_do_not_exist(number: int) -> None:
    """The bytes of an assignment may contain any number."""
    members = [classic("a", ["x"], {"x": [0, 1, number]}), classic("b", ["x"], {"x": [2, 3]})]
    found = describe(ObservedGroup(snapshot({"x": 4}, members, committed={"x": [0, 0, 0, 40]})))
    assert broken_rules(found) == ["partition-exists"]
    assert found.warnings[0].text == f"a has x {number}, which does not exist"
    assert [member.lag for member in found.members] == [None, 160]
    assert (found.lag, found.spread) == (360, (2, 2))


def test_a_group_has_a_largest_size() -> None:
    """A few bytes of a file can claim to have any number of partitions."""
    taken = snapshot({"x": TopicSnapshot(50_000_000), "y": 4}, [classic("a", ["x", "y"])])
    with pytest.raises(GroupError, match=r"have 50,000,004 partitions, 'x' alone 50,000,000; up to 1,000,000 are"):
        describe(ObservedGroup(taken))
    taken = snapshot({"x": TopicSnapshot(600_000), "y": TopicSnapshot(600_000)}, [classic("a", ["x"])])
    with pytest.raises(GroupError, match=r"have 1,200,000 partitions"):
        plan_change(situation(taken, subscribe=["a=x,y"]))


def test_the_records_size_is_that_of_the_plan_of_the_same_bytes() -> None:
    """The core allows 64 bytes for the group's id, and 23 for the longest name of a strategy."""
    taken = orders()
    group = taken.groups["billing"]
    joined = [
        (member.id, member.instance_id, member.subscription) for member in group.members if member.kind == "classic"
    ]
    assignments, plan = StickyAssignor().plan_assignment(joined, {"orders": 12, "payments": 6}, generation=5)
    members = tuple(
        dataclasses.replace(member, assignment=assignments[member.id])
        for member in group.members
        if isinstance(member, ClassicMember)
    )
    size = record_bytes("billing", dataclasses.replace(group, members=members))
    assert size == plan.record_bytes - (64 - len("billing")) - (23 - len("sticky"))
    known = [dataclasses.replace(member, client_id="x" * 20, client_host="/10.0.0.1") for member in members]
    exact = record_bytes("billing", dataclasses.replace(group, members=tuple(known)))
    assert exact is not None
    assert size is not None
    assert exact - size == 3 * (20 - 24 + 9 - 16)


# ---- compare ----


@pytest.mark.parametrize("seed", range(6))
def test_strategies_side_by_side(seed: int) -> None:
    found = situation(random_snapshot(seed), join=["1"])
    compared = compare(found)
    rows = {row.strategy: row for row in compared.strategies}
    assert list(rows) == [strategy_text(each) for each in STANDARD]
    sticky = rows["sticky"]
    assert sticky.moved == sticky.least_moved
    assert all(
        row.balance_score >= sticky.balance_score for row in compared.strategies if row.strategy != "sticky-join"
    )
    assert all(row.moves == row.forced + row.moved for row in compared.strategies)
    assert rows["sticky-join"].split_numbers in (0, None)
    assert compared.now.moves == 0
    assert all(row.error is None for row in compared.strategies)


def test_what_the_heaviest_member_carries_side_by_side() -> None:
    def weigh(topics: Any) -> dict[str, list[float]]:
        return {name: [1.0 / (1 + number) for number in range(100)] for name in topics}

    weighted, plain = compare(situation(orders(), join=["1"]), [WeightedAssignor(weigh), StickyAssignor()]).strategies
    planned = plan_change(situation(orders(), join=["1"]), WeightedAssignor(weigh))
    assert (weighted.load, weighted.load_bound) == (planned.load, planned.load_bound)
    assert weighted.load is not None
    assert weighted.load_bound is not None
    assert weighted.load >= weighted.load_bound > 0
    assert plain.load is plain.load_bound is None


def test_co_location_and_lag_skew() -> None:
    members = [classic("a", ["x", "y"], {"x": [0, 1], "y": [0]}), classic("b", ["x", "y"], {"y": [1]})]
    taken = snapshot({"x": 2, "y": 2}, members, committed={"x": [0, 0], "y": [0, 0]})
    row = compare(situation(taken), [StickyAssignor()]).now
    assert (row.split_numbers, row.numbers, row.least_lag, row.most_lag, row.lag_skew) == (1, 2, 100, 300, 1.5)


def test_a_strategy_that_cannot_plan_says_so() -> None:
    taken = snapshot({"x": topic(1, end=None)}, [classic("a", ["x"], {"x": [0]})])
    rows = compare(situation(taken), [LagBasedAssignor(), RangeAssignor()]).strategies
    assert "the lag of x-0 is not known" in (rows[0].error or "")
    assert rows[1].error is None


# ---- the cost of a change ----


COST_STRATEGIES: tuple[Assignor, ...] = (StickyAssignor(), CooperativeStickyAssignor(), RangeAssignor())


def test_a_rolling_restart() -> None:
    found = situation(orders())
    events = rolling_restart(found)
    assert [event.text for event in events[:2]] == ["c0 stops", "c0 is back"]
    told: list[tuple[int, int]] = []
    cost = rebalance_cost(found, events, COST_STRATEGIES, progress=lambda done, total: told.append((done, total)))
    sticky, cooperative, ranged = cost.strategies
    # Each stop frees 6 partitions. Each return takes 6 from the others.
    assert (sticky.moves, sticky.forced, sticky.most_moves, sticky.rebalances) == (36, 18, 6, 6)
    assert (cooperative.moves, cooperative.rebalances) == (36, 9)
    assert sticky.stopped == 3 * 12 + 3 * 18
    assert cooperative.stopped == 18
    assert ranged.moves >= sticky.moves
    assert (sticky.fewest, sticky.most) == (6, 6)
    assert told[-1] == (18, 18)
    assert len(sticky.steps) == 6


def test_static_members_restart_for_nothing() -> None:
    members = [classic("a", ["x"], {"x": [0]}, instance_id="i"), classic("b", ["x"], {"x": [1]})]
    found = situation(snapshot({"x": 2}, members))
    events = rolling_restart(found)
    assert [event.leave for event in events] == [("b",), ()]
    assert rebalance_cost(found, events, COST_STRATEGIES).static == 1
    alone = situation(snapshot({"x": 1}, [classic("a", ["x"], {"x": [0]})]))
    assert [row.moves for row in rebalance_cost(alone, rolling_restart(alone), COST_STRATEGIES).strategies] == [1, 1, 1]


def test_scaling() -> None:
    found = situation(orders())
    more = rebalance_cost(found, scaling(found, 3), COST_STRATEGIES).strategies[0]
    assert (more.rebalances, more.fewest, more.most, more.forced) == (3, 3, 3, 0)
    at_once = rebalance_cost(found, scaling(found, 3, at_once=True), COST_STRATEGIES).strategies[0]
    assert (at_once.rebalances, at_once.moves) == (1, 9)
    fewer = rebalance_cost(found, scaling(found, -2), COST_STRATEGIES).strategies[0]
    assert (fewer.fewest, fewer.most, fewer.moves, fewer.forced) == (18, 18, 15, 15)
    assert [event.leave for event in scaling(found, -2)] == [("c2",), ("c1",)]
    for by in (0, -3, -4):
        with pytest.raises(OptionError, match="--scale"):
            scaling(found, by)


def by_range(members: int) -> Snapshot:
    """Each member has the partitions that range assigns to it."""
    names = [f"app-{2 * row}" for row in range(members)]
    return snapshot(
        {"x": 12 * members},
        [
            classic(name, ["x"], {"x": list(range(12 * row, 12 * row + 12))}, assignor="range")
            for row, name in enumerate(names)
        ],
        assignor="range",
    )


def test_costs_of_strategies_that_go_by_ids_are_ranges() -> None:
    """For a joiner, all places in the order of ids are tried, as in `plan`; for restarts, real ids and some places."""
    found = situation(by_range(4))
    (row, sticky) = rebalance_cost(found, scaling(found, 1), [RangeAssignor(), StickyAssignor()]).strategies
    planned = plan_change(situation(by_range(4), join=["1"]), RangeAssignor())
    assert (row.least_moves, row.most_moves_in_all) == planned.moves_by_order
    assert row.least_moves < row.most_moves_in_all
    assert (sticky.least_moves, sticky.most_moves_in_all) == (sticky.moves, sticky.moves)
    (restarted,) = rebalance_cost(found, rolling_restart(found), [RangeAssignor()]).strategies
    assert restarted.least_moves < restarted.moves < restarted.most_moves_in_all
    (fewer,) = rebalance_cost(found, scaling(found, -1), [RangeAssignor()]).strategies
    assert fewer.least_moves == fewer.moves == fewer.most_moves_in_all


def test_static_members_come_first_wherever_a_joiner_sorts() -> None:
    members = [classic(name, ["x"], {"x": [row]}, instance_id=name) for row, name in enumerate("abc")]
    found = situation(snapshot({"x": 3}, members, assignor="range"))
    (row,) = rebalance_cost(found, scaling(found, 1), [RangeAssignor()]).strategies
    assert (row.least_moves, row.most_moves_in_all, row.moves) == (0, 0, 0)


def test_deployments() -> None:
    found = situation(orders())
    new_first = rebalance_cost(found, deployment(found, 2), COST_STRATEGIES).strategies[0]
    old_first = rebalance_cost(found, deployment(found, 2, order="old-first"), COST_STRATEGIES).strategies[0]
    assert new_first.rebalances == old_first.rebalances == 4
    assert new_first.moves < old_first.moves
    for count in (0, 4):
        with pytest.raises(OptionError, match="--deploy"):
            deployment(found, count)


def test_strategies_by_lag_need_lags_for_costs_too() -> None:
    taken = snapshot({"x": topic(2, end=None)}, [classic("a", ["x"], {"x": [0]}), classic("b", ["x"], {"x": [1]})])
    found = situation(taken)
    cost = rebalance_cost(found, rolling_restart(found), [LagBasedAssignor(), StickyAssignor()])
    assert [row.error is None for row in cost.strategies] == [False, True]


# ---- decode ----

VECTORS: list[tuple[str, str, dict[str, Any]]] = [
    ("0000000100017400000002000000000000000200000005", "sticky", {"partitions": {"t": (0, 2)}, "generation": 5}),
    ("00000001000174000000020000000000000002", "sticky", {"partitions": {"t": (0, 2)}, "generation": None}),
    ("00010000000100017400000002000000000000000200000005", "sticky", {"partitions": {"t": (0, 2)}, "generation": 5}),
    ("00000007", "cooperative-sticky", {"generation": 7}),
    ("00000002000000000000000300000007", "sticky-join", {"numbers": (0, 3), "generation": 7}),
    ("000300000001000174ffffffff00000000ffffffffffff", "subscription", {"topics": ("t",), "version": 3}),
    ("000000000002000161000174000000020102", "subscription", {"topics": ("a", "t"), "version": 0}),
    (
        "0003000000020001740000000200000002000000000001610000000100000001ffffffff",
        "assignment",
        {"partitions": {"a": (1,), "t": (0, 2)}},
    ),
    (b'{"assignment": []}'.hex(), "json", {"other": {"assignment": []}}),
]


@pytest.mark.parametrize(("text", "kind", "fields"), VECTORS)
def test_bytes_are_recognized(text: str, kind: str, fields: dict[str, Any]) -> None:
    found = decode(bytes_of(text))
    assert found.kind == kind
    assert {name: getattr(found, name) for name in fields} == fields
    assert decode(bytes.fromhex(text), kind).kind == kind


def test_user_data_inside_is_read_too() -> None:
    metadata = Subscription(["t"], StickyUserData({"t": [1]}, 9).encode()).encode()
    inner = decode(metadata).inner
    assert inner is not None
    assert (inner.kind, inner.partitions, inner.generation) == ("sticky", {"t": (1,)}, 9)
    join = decode(Subscription(["t"], StreamJoinUserData([2], 3).encode()).encode(), assignor="sticky-join").inner
    assert join is not None
    assert (join.kind, join.numbers) == ("sticky-join", (2,))
    faust = decode(Subscription(["t"], json.dumps({"url": "http://x"}).encode()).encode()).inner
    assert faust is not None
    assert faust.other == {"url": "http://x"}
    assert decode(Assignment({"t": [0]}, bytes([0, 0, 0, 8])).encode()).generation == 8


@pytest.mark.parametrize(
    ("text", "form"),
    [("AAM=", "auto"), ("AAM=", "base64"), ("0003", "auto"), ("0x0003", "hex"), ("00:03", "auto"), ("00 03\n", "hex")],
)
def test_bytes_have_several_forms(text: str, form: str) -> None:
    assert bytes_of(text, form) == b"\0\3"


def test_what_is_no_bytes_or_none_known() -> None:
    for text, form in (("xyz!", "auto"), ("0", "hex"), ("AAM", "base64"), ("00", "octal")):
        with pytest.raises(OptionError):
            bytes_of(text, form)
    with pytest.raises(OptionError, match="the kind is 'other'"):
        decode(b"", "other")
    for data in (b"", b"\xff", b"\xff" * 9):
        with pytest.raises(UserDataError, match="are none of"):
            decode(data)
    with pytest.raises(UserDataError):
        decode(b"\xff\xff", "subscription")


def test_a_groups_bytes() -> None:
    members = [
        classic("a", ["x"], {"x": [0]}, claimed={"x": [0, 1]}, generation=4),
        classic("b", ["x"], {"x": [1]}, claimed={"x": [1]}, generation=5),
        ClassicMember("z", subscription=b"\xff", assignment=b"\1"),
    ]
    found = decode_group(ObservedGroup(snapshot({"x": 2}, members)))
    assert [member.claim and member.claim.generation for member in found.members] == [4, 5, None]
    assert [(each.partition, each.winner) for each in found.conflicts] == [(1, "b")]
    broken = found.members[2]
    assert (broken.subscription, broken.assignment, len(broken.faults)) == (None, None, 2)
    described = decode_group(ObservedGroup(by_broker()))
    assert described.members[0].assignment is not None
    assert described.members[0].assignment.generation == 7


@pytest.mark.parametrize(
    ("assignor", "source", "generation"),
    [
        ("sticky", "user data", 4),
        ("lag", "user data", 4),
        ("cooperative-sticky", "owned partitions", 4),
        ("sticky-join", "user data", 4),
        ("cooperative-sticky-join", "user data", 4),
    ],
)
def test_claims_are_read_as_the_strategy_reads_them(assignor: str, source: str, generation: int) -> None:
    member = classic("a", ["x"], {"x": [1]}, assignor=assignor, generation=generation)
    (claim,) = claims_of([member], assignor)
    assert ({name: tuple(of) for name, of in claim.partitions.items()}, claim.generation, claim.source) == (
        {"x": (1,)},
        generation,
        source,
    )
    older = classic("b", ["x"], {"x": [1]}, assignor=assignor, generation=3)
    (conflict,) = conflicts_of(ObservedGroup(snapshot({"x": 2}, [older, member], assignor=assignor)))
    assert (conflict.claims, conflict.winner) == ((("a", 4), ("b", 3)), "a")


def settled_by_a_leader(taken: Snapshot, assignor: str) -> dict[tuple[str, int], str | None]:
    """The owners of all partitions before a leader plans this group, from the leader's plan."""
    counts = {name: of.partitions for name, of in taken.topics.items()}
    members = [
        (member.id, member.subscription)
        for member in taken.groups["billing"].members
        if isinstance(member, ClassicMember)
    ]
    _, plan = by_name(assignor)._plan_assignment(members, counts, None)
    owners: dict[tuple[str, int], str | None] = {
        (topic, number): member
        for member, topics in plan.assignment.items()
        for topic, numbers in topics.items()
        for number in numbers
    }
    return owners | {(move.topic, move.partition): move.source for move in plan.moves}


@pytest.mark.parametrize("assignor", ["sticky", "lag", "sticky-join"])
@given(
    claims=st.lists(
        st.tuples(
            st.sets(st.sampled_from(["x", "y", "gone"]), min_size=1),
            st.dictionaries(st.sampled_from(["x", "y", "gone"]), st.sets(st.integers(0, 3), min_size=1)),
            st.sampled_from([-1, 3, 4, 5, 2**31 - 1]),
        ),
        min_size=2,
        max_size=5,
    )
)
def test_the_claims_that_count_are_those_of_a_leader(
    assignor: str, claims: list[tuple[set[str], dict[str, set[int]], int]]
) -> None:
    members = []
    for number, (topics, claimed, generation) in enumerate(claims):
        owned = {name: sorted(numbers) for name, numbers in claimed.items()}
        numbers = sorted(set().union(*claimed.values()))
        data = (
            StreamJoinUserData(numbers, generation).encode()
            if assignor == "sticky-join"
            else StickyUserData(owned, generation).encode()
        )
        members.append(ClassicMember(f"m{number}", subscription=Subscription(sorted(topics), data).encode()))
    taken = snapshot({"x": 4, "y": 3}, members, assignor=assignor)
    owners = settled_by_a_leader(taken, assignor)
    for conflict in conflicts_of(ObservedGroup(taken)):
        assert conflict.winner == owners.get((conflict.topic, conflict.partition)), conflict


def test_members_without_bytes_claim_nothing() -> None:
    assert claims_of([ClassicMember("a"), ClassicMember("b", subscription=b"\xff")], "sticky") == []
    with pytest.raises(GroupError):
        Situation(ObservedGroup(Snapshot("t", 0, {}, {"g": GroupSnapshot(state="Empty")})))
