"""Plans of changes: every move has a true reason, no partition is lost, and broken rules are named."""

import dataclasses

import pytest

from kafka_assignors import (
    CooperativeStickyAssignor,
    GroupError,
    LagBasedAssignor,
    OptionError,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    StickyStreamJoinAssignor,
)
from kafka_assignors.assignors import Assignor
from kafka_assignors.cluster import ClassicMember, GroupSnapshot, Snapshot
from kafka_assignors.planner.change import Change, Situation, parse_change
from kafka_assignors.planner.findings import RULES
from kafka_assignors.planner.observed_group import ObservedGroup, member_names
from kafka_assignors.planner.plan import PlannedGroup, default_strategy, plan_change, solve
from kafka_assignors.planner.reasons import KINDS
from kafka_assignors.planner.strategies import STANDARD
from kafka_assignors.strategies import parse_strategy, strategy_text
from support.snapshots import by_broker, classic, orders, random_snapshot, snapshot, topic

STRATEGIES = (*STANDARD, StickyAssignor(mode="fair"), StickyAssignor(mode="sticky-yet-fair"))


def situation(taken: Snapshot, **change: list[str]) -> Situation:
    return Situation(ObservedGroup(taken), parse_change(**change))


def rules(planned: PlannedGroup, *, warning: bool = True) -> list[str]:
    return [finding.rule for finding in planned.findings if finding.warning is warning]


# ---- every plan ----


CHANGES: tuple[dict[str, list[str]], ...] = ({}, {"join": ["1"]}, {"join": ["2=t0"]}, {"partitions": ["t0=12"]})


@pytest.mark.parametrize("strategy", STRATEGIES, ids=strategy_text)
@pytest.mark.parametrize("seed", range(12))
def test_moves_are_what_changes_and_reasons_hold(seed: int, strategy: Assignor) -> None:
    taken = random_snapshot(seed)
    change = dict(CHANGES[seed % len(CHANGES)])
    members = sorted(taken.groups["billing"].members, key=lambda each: each.id)
    if seed % 3 == 1 and len(members) > 1:
        change["leave"] = [members[0].id]
    if seed % 3 == 2:
        change["subscribe"] = [f"{members[-1].id}=t0"]
    found = situation(taken, **change)
    planned = plan_change(found, strategy)
    after = {
        (name, number): member.id
        for member in planned.members
        for name, numbers in member.partitions.items()
        for number in numbers
    }
    before = {partition: owners[0] for partition, owners in found.before.items()}
    moves = {(move.topic, move.partition): move for move in planned.moves}
    every = {(name, number) for name, each in found.topics.items() for number in range(each.partitions)}
    assert {partition for partition in every if before.get(partition) != after.get(partition)} == set(moves)
    assert planned.kept == len(set(after) - set(moves))
    assert (planned.forced, planned.moved) == tuple(
        sum(move.forced is forced for move in planned.moves) for forced in (True, False)
    )
    if not isinstance(strategy, StickyStreamJoinAssignor):
        # The core's certificate counts the moves by code of its own.
        assert planned.moved == solve(found, strategy, found.lags("latest")).certificate.moved
    kept_now = {member.id: 0 for member in planned.members}
    for (name, _), owner in before.items():
        kept_now[owner] += name in found.subscriptions.get(owner, ())
    gets = {member.id: member.after for member in planned.members}
    for (name, number), move in moves.items():
        assert move.reason
        assert (move.source, move.target) == (before.get((name, number)), after.get((name, number)))
        source, old = move.source, taken.topics.get(name)
        subscribed = found.subscriptions.get(source or "", ())
        holds = {
            "new-partition": old is None or number >= old.partitions,
            "owner-left": source in found.left,
            "owner-unsubscribed": source in found.subscriptions and name not in subscribed,
            "no-subscriber": not any(name in topics for topics in found.subscriptions.values()),
            "not-assigned": move.target is None,
            "claims-conflict": False,
            "no-owner": source is None,
            "join": isinstance(strategy, StickyStreamJoinAssignor),
            "owner-over-share": isinstance(strategy, StickyStreamJoinAssignor)
            or (source is not None and kept_now[source] > gets[source]),
            "lag": isinstance(strategy, LagBasedAssignor),
            "rack": False,
            "exchange": isinstance(strategy, StickyAssignor | CooperativeStickyAssignor) and strategy.mode != "fair",
            "strategy": not isinstance(strategy, StickyAssignor | CooperativeStickyAssignor) or strategy.mode == "fair",
        }
        assert set(holds) == set(KINDS)
        assert holds[move.kind], move
        if not move.forced:
            assert name in subscribed
    assert {finding.rule for finding in planned.findings} <= set(RULES)
    if isinstance(strategy, StickyAssignor) and strategy.mode == "fair-yet-sticky":
        assert (planned.moved, planned.balance_score) == (planned.least_moved, planned.least_balance_score)
    # A second plan moves nothing.
    assert plan_change(found, strategy) == planned


def test_an_equal_group_that_grows() -> None:
    planned = plan_change(situation(orders(), join=["1"]))
    assert (planned.strategy, planned.spread, planned.moved, planned.least_moved) == ("sticky", (4, 5), 4, 4)
    assert {move.kind for move in planned.moves} == {"owner-over-share"}
    assert planned.moves[0].reason.endswith("had 6 partitions, and the plan gives it 5") or planned.moves[
        0
    ].reason.endswith("had 6 partitions, and the plan gives it 4")
    assert planned.lag_spread == (200, 250)
    assert planned.changes == ("1 member joins",)
    assert not planned.warnings
    assert [member.change for member in planned.members] == ["stays"] * 3 + ["joins"]


def test_a_cooperative_plan_is_shown_as_it_ends() -> None:
    planned = plan_change(situation(orders(), join=["1"]), CooperativeStickyAssignor())
    assert (planned.withheld, planned.spread) == (4, (4, 5))
    assert rules(planned, warning=False) == ["two-phases"]


def test_exchanges_between_different_subscriptions() -> None:
    """c has too many partitions of y, but b reads only x. So a gives its partitions of x to b, and gets some of y."""
    members = [
        classic("a", ["x", "y"], {"x": [0, 1]}),
        classic("b", ["x"]),
        classic("c", ["y"], {"y": [0, 1, 2, 3]}),
    ]
    planned = plan_change(situation(snapshot({"x": 2, "y": 4}, members)))
    assert (planned.spread, planned.moved, planned.least_moved) == ((2, 2), 4, 4)
    kinds = {(move.topic, move.kind) for move in planned.moves}
    assert kinds == {("x", "exchange"), ("y", "owner-over-share")}
    (first, _) = [move for move in planned.moves if move.topic == "x"]
    gained = next(move for move in planned.moves if move.target == "a")
    instead = f"{gained.topic}-{gained.partition}"
    gains = "b had 0 partitions, and the plan gives it 2"
    assert first.reason == f"a passes it on to b ({gains}), and gets {instead} instead"


def test_racks_are_reasons() -> None:
    nearby = topic(4, racks=[{"r1"}, {"r1"}, {"r2"}, {"r2"}])
    members = [
        classic("a", ["x"], {"x": [2, 3]}, rack="r1"),
        classic("b", ["x"], {"x": [0, 1]}, rack="r2"),
    ]
    planned = plan_change(situation(snapshot({"x": nearby}, members)))
    assert [move.kind for move in planned.moves] == ["rack"] * 4
    assert planned.moves[0].reason == "rack r1 of a has a replica, r2 of b has not"
    stuck = snapshot({"x": nearby}, [classic("a", ["x"], {"x": [0, 1, 2, 3]}, rack="r1")])
    assert "own-rack" in rules(plan_change(situation(stuck)))


def test_several_owners_are_none() -> None:
    members = [classic("a", ["x"], {"x": [0, 1]}), classic("b", ["x"], {"x": [0]})]
    planned = plan_change(situation(snapshot({"x": 2}, members)))
    (move,) = planned.moves
    assert (move.source, move.target, move.kind, move.forced) == (None, "b", "claims-conflict", True)
    assert "one-owner" in rules(planned)


def test_lag_is_a_reason() -> None:
    members = [classic("a", ["x"], {"x": [0, 1]}, assignor="lag"), classic("b", ["x"], {"x": [2, 3]}, assignor="lag")]
    taken = snapshot({"x": 4}, members, assignor="lag", committed={"x": [0, 10, 95, 96]})
    planned = plan_change(situation(taken), LagBasedAssignor(scope="group", max_skew=None, keep="owners"))
    assert planned.lag_spread == (95, 104) or planned.lag_spread is not None
    assert all(move.kind == "lag" for move in planned.moves if move.source == "a")
    assert planned.moves
    reason = next(move.reason for move in planned.moves if move.source == "a")
    assert reason.startswith("a had a lag of 190 records, ")


def test_lags_that_are_not_known() -> None:
    members = [classic("a", ["x"], {"x": [0]})]
    taken = snapshot({"x": topic(1, end=None)}, members)
    planned = plan_change(situation(taken))
    assert (planned.lag_spread, rules(planned, warning=False)) == (None, ["known-lags", "committed"])
    with pytest.raises(GroupError, match=r"the lag of x-0 is not known"):
        plan_change(situation(taken), LagBasedAssignor())


# ---- rules that cannot be met ----


def test_every_rule_that_is_broken_is_named() -> None:
    idle = plan_change(situation(snapshot({"x": 1}, [classic("a", ["x"], {"x": [0]}), classic("b", ["x"])])))
    assert rules(idle) == ["every-member-works"]
    assert idle.warnings[0].text == "b has no partition: 1 partitions of x for 2 members"
    narrow = snapshot({"x": 1, "y": 5}, [classic("a", ["x"], {"x": [0]}), classic("b", ["x", "y"])])
    assert rules(plan_change(situation(narrow))) == ["even-shares"]
    missing = snapshot({"x": 1}, [classic("a", ["x", "gone"], {"x": [0]})])
    assert rules(plan_change(situation(missing))) == ["topic-exists"]
    alone = plan_change(situation(orders(), subscribe=["c0=orders", "c1=orders", "c2=orders"]))
    assert rules(alone) == ["every-partition-read"]
    assert {move.kind for move in alone.moves if move.topic == "payments"} == {"no-subscriber"}
    assert "fewest-moves" in rules(plan_change(situation(orders(), join=["1"]), RoundRobinAssignor()))
    two = [classic("a", ["x", "y"], {"x": [0, 1], "y": [0, 1]}), classic("b", ["x", "y"], {"x": [2], "y": [2]})]
    assert "least-balance-score" in rules(plan_change(situation(snapshot({"x": 3, "y": 3}, two)), RangeAssignor()))
    uneven = situation(orders())
    join = plan_change(uneven, StickyStreamJoinAssignor())
    assert rules(join) == ["every-partition-read", "same-partition-counts"]
    tight = orders()
    tight = Snapshot(tight.cluster, tight.taken_ms, tight.topics, tight.groups, record_limit=500)
    assert rules(plan_change(situation(tight))) == ["record-limit"]
    broken = ClassicMember("z", subscription=b"\xff\xff", assignment=b"")
    taken = snapshot({"x": 1}, [classic("a", ["x"], {"x": [0]}), broken])
    assert rules(plan_change(situation(taken))) == ["readable-bytes", "every-member-works"]
    assert rules(plan_change(situation(orders(), partitions=["orders=14"])), warning=False) == ["keys-stay"]


def test_a_group_that_the_broker_assigns_is_planned_as_an_observer() -> None:
    planned = plan_change(situation(by_broker(), join=["1"]))
    assert (planned.observer, planned.strategy, rules(planned)) == (True, "sticky", [])
    assert rules(planned, warning=False) == ["committed", "broker-assigned"]


# ---- changes that cannot be planned ----


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"leave": ["c9"]}, r"has no member 'c9'; it has c0, c1, c2"),
        ({"leave": ["c"]}, r"'c' begins the ids of 3 members"),
        ({"leave": ["c0,c1,c2"]}, r"would have no member; give --join N"),
        ({"leave": ["c0"], "subscribe": ["c0=orders"]}, r"cannot both leave and subscribe anew"),
        ({"subscribe": ["c0=other"]}, r"topic 'other' is not known; .* --partitions other=12"),
        ({"join": ["1=other"]}, r"topic 'other' is not known"),
        ({"partitions": ["orders=11"]}, r"it has 12, and Kafka takes no partitions away"),
    ],
)
def test_changes_that_are_none(change: dict[str, list[str]], said: str) -> None:
    with pytest.raises((OptionError, GroupError), match=said):
        situation(orders(), **change)


@pytest.mark.parametrize(
    "change",
    [
        {"join": ["x"]},
        {"join": ["0"]},
        {"join": ["2="]},
        {"join": ["-1"]},
        {"leave": ["c0", "c0"]},
        {"partitions": ["orders"]},
        {"partitions": ["orders=many"]},
        {"partitions": ["orders=1", "orders=2"]},
        {"partitions": ["orders=99999999999"]},
        {"subscribe": ["c0"]},
        {"subscribe": ["c0=x", "c0=y"]},
    ],
)
def test_changes_that_cannot_be_read(change: dict[str, list[str]]) -> None:
    with pytest.raises(OptionError, match=r"^--"):
        parse_change(**change)


def test_new_topics_come_with_their_partitions() -> None:
    planned = plan_change(situation(orders(), partitions=["audit=2"], subscribe=["c0=orders,payments,audit"]))
    assert {move.kind for move in planned.moves if move.topic == "audit"} == {"new-partition"}
    assert planned.changes == ("audit has 2 partitions, as a new topic", "c0 subscribes to orders, payments, audit")


def test_who_joins_subscribes_as_most_do() -> None:
    members = [classic("a", ["x"]), classic("b", ["x"]), classic("new-1", ["x", "y"])]
    found = situation(snapshot({"x": 4, "y": 1}, members), join=["2"])
    assert found.joined == {"new-2": ("x",), "new-3": ("x",)}
    empty = Snapshot("t", 0, {"x": topic(2)}, {"g": GroupSnapshot(state="Empty", committed={"x": (1, 2)})})
    assert Situation(ObservedGroup(empty), parse_change(join=["1"])).joined == {"new-1": ("x",)}


def test_members_are_found_as_people_name_them() -> None:
    uuid = "0f3b2c1d-1111-4222-8333-444455556666"
    members = [
        ClassicMember(f"app-{uuid}", subscription=b"", client_id="app"),
        ClassicMember("static-1", instance_id="billing-1"),
    ]
    found = ObservedGroup(Snapshot("t", 0, {}, {"g": GroupSnapshot(members=tuple(members))}))
    for text in (f"app-{uuid}", "app-0f3b2c1d", "app", "app-0f3"):
        assert found.find(text) == f"app-{uuid}"
    assert found.find("billing-1") == found.find("stat") == "static-1"
    assert member_names([("x", "i"), ("y", "i"), ("z", None)]) == {"x": "x", "y": "y", "z": "z"}


def test_groups_that_cannot_be_planned() -> None:
    moving = Snapshot("t", 0, {}, {"g": GroupSnapshot(state="PreparingRebalance")})
    with pytest.raises(GroupError, match="is in state PreparingRebalance"):
        Situation(ObservedGroup(moving), Change())
    connect = Snapshot("t", 0, {}, {"g": GroupSnapshot(protocol_type="connect")})
    with pytest.raises(GroupError, match="is of type 'connect'"):
        Situation(ObservedGroup(connect), Change())
    foreign = Snapshot("t", 0, {}, {"g": GroupSnapshot(assignor="mine", members=orders().groups["billing"].members)})
    with pytest.raises(OptionError, match="uses the strategy 'mine', which is not known here; say with --strategy"):
        default_strategy(Situation(ObservedGroup(foreign)))
    two = Snapshot("t", 0, {}, {"g": GroupSnapshot(), "h": GroupSnapshot()})
    with pytest.raises(OptionError, match=r"has 2 groups \(g, h\); say which with --group"):
        ObservedGroup(two)
    with pytest.raises(OptionError, match="has no group 'x'"):
        ObservedGroup(two, "x")


# ---- strategies as text ----


@pytest.mark.parametrize("assignor", STRATEGIES, ids=strategy_text)
def test_strategies_are_texts(assignor: Assignor) -> None:
    assert parse_strategy(strategy_text(assignor)) == assignor


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("best", "the strategy is 'best'"),
        ("range(mode=fair)", "'mode=fair' is no option of range; it takes none"),
        ("sticky(mode)", "'mode' is no option of sticky; give mode, racks, each with its value"),
        ("sticky(mode=best)", "mode is 'best'"),
        ("lag(threshold=x)", "threshold is 'x'; give a number"),
        ("sticky:mode=fair", r"options stand in parentheses: 'sticky\(mode=fair\)'"),
    ],
)
def test_strategies_that_are_none(text: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        parse_strategy(text)


# ---- figures that depend on unknown ids ----


def ranged(members: int = 4, partitions: int = 40) -> Snapshot:
    """Members with ids as Kafka generates them, with the assignment of range."""
    names = [f"app-{'2468ace'[row]}" for row in range(members)]
    share = partitions // members
    return snapshot(
        {"x": partitions},
        [
            classic(name, ["x"], {"x": list(range(share * row, share * row + share))}, assignor="range")
            for row, name in enumerate(names)
        ],
        assignor="range",
        committed={"x": [100] * partitions},
    )


@pytest.mark.parametrize("assignor", [RangeAssignor(), RoundRobinAssignor()])
def test_strategies_that_go_by_ids_tell_the_figures_for_other_ids(assignor: Assignor) -> None:
    taken = ranged()
    planned = plan_change(situation(taken, join=["1"]), assignor)
    # Computed by hand for several ids of the new member: the number of moves.
    counted = set()
    for name in ("a", "app-3", "app-5", "app-7", "z"):
        members = [*taken.groups["billing"].members, classic(name, ["x"], assignor="range")]
        grown = dataclasses.replace(
            taken, groups={"billing": dataclasses.replace(taken.groups["billing"], members=tuple(members))}
        )
        counted.add(len(plan_change(situation(grown), assignor).moves))
    assert planned.moves_by_order == (min(counted), max(counted))
    assert len(planned.moves) in counted
    if min(counted) < max(counted):
        (note,) = [finding for finding in planned.findings if finding.rule == "known-order"]
        assert note.text.endswith(f": {min(counted)} to {max(counted)} partitions move")
        assert not note.warning


def test_range_moves_more_the_farther_in_front_the_joiner_sorts() -> None:
    planned = plan_change(situation(ranged(), join=["1"]), RangeAssignor())
    assert planned.moves_by_order is not None
    assert planned.moves_by_order[0] < planned.moves_by_order[1]


def test_other_strategies_and_changes_do_not_hang_on_ids() -> None:
    for assignor, change in ((StickyAssignor(), {"join": ["1"]}), (RangeAssignor(), {"leave": ["app-2"]})):
        planned = plan_change(situation(ranged(), **change), assignor)
        assert planned.moves_by_order is None
        assert "known-order" not in {finding.rule for finding in planned.findings}


def test_a_heavier_heaviest_member_is_told_with_the_options_that_do_not_make_one() -> None:
    """Topic by topic, the default assigns the largest lag of each topic to the same member."""
    topics = {f"t{number}": topic(2, end=1000) for number in range(4)}
    committed = {name: [1000 - 100, 1000 - 10] for name in topics}
    owned = {"a": {name: [row % 2] for row, name in enumerate(topics)}}
    owned["b"] = {name: [1 - row % 2] for row, name in enumerate(topics)}
    members = [classic(name, sorted(topics), owned[name], assignor="lag") for name in owned]
    taken = snapshot(topics, members, assignor="lag", committed=committed)
    planned = plan_change(situation(taken), LagBasedAssignor())
    assert (planned.heaviest_lag_before, planned.lag_spread) == (220, (40, 400))
    (note,) = [finding for finding in planned.findings if finding.rule == "heaviest-lag"]
    assert note.text == (
        "the heaviest member has 400 to read, up from 220: lag(keep=owners) (heaviest 220) and "
        "lag(scope=group, max_skew=none) (heaviest 220) and lag(scope=group, max_skew=none, keep=owners) (heaviest "
        "220) do not"
    )
    calm = plan_change(situation(taken), LagBasedAssignor(keep="owners"))
    assert "heaviest-lag" not in {finding.rule for finding in calm.findings}
    assert "heaviest-lag" not in {finding.rule for finding in plan_change(situation(taken), RangeAssignor()).findings}
