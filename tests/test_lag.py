"""The lag-based assignor: KAFKA-5337's formula and rule, the options, sources of lags, and lags that are wrong."""

import logging
import pickle
import random
import re
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from kafka_assignors import (
    Group,
    GroupError,
    GroupTypeError,
    LagBasedAssignor,
    LagError,
    Member,
    MemberState,
    OptionError,
    Plan,
    RangeAssignor,
    StickyAssignor,
)
from kafka_assignors.lag import Lags, LagSource, lag_by_member, partition_lag
from kafka_assignors.userdata import Assignment, StickyUserData, Subscription
from support.logs import records_of_the_package

README = Group({"t0": 3}, [Member("C0", ["t0"]), Member("C1", ["t0"])])
README_LAGS = {"t0": [100_000, 50_000, 60_000]}


def refuses(error: type[Exception], message: str) -> "pytest.RaisesExc[Exception]":
    return pytest.raises(error, match=re.escape(message))


def shares(plan: Plan) -> dict[str, list[str]]:
    return {
        member: [f"{topic}p{number}" for topic, numbers in topics.items() for number in numbers]
        for member, topics in plan.assignment.items()
    }


def one_topic(partitions: int, *members: str) -> Group:
    return Group({"t": partitions}, [Member(member, ["t"]) for member in members])


class Told:
    """A source that returns all lags. It keeps the arguments of its calls."""

    def __init__(self, lags: Lags) -> None:
        self.known = lags
        self.asked: list[tuple[list[str], str]] = []

    def lags(self, topics: Iterable[str], group_id: str) -> Lags:
        self.asked.append((list(topics), group_id))
        return self.known


@pytest.mark.parametrize(
    ("committed", "reset", "lag"),
    [
        (6_500, "latest", 2_500),
        (9_500, "latest", 0),
        (500, "latest", 8_500),
        (0, "latest", 9_000),
        (None, "latest", 0),
        (-1, "LATEST", 0),
        (None, "earliest", 8_000),
        (None, "none", 8_000),
        (None, "by_duration:PT1H", 8_000),
    ],
)
def test_lag_of_a_partition(committed: int | None, reset: str, lag: int) -> None:
    assert partition_lag(1_000, 9_000, committed, reset) == lag


def test_lag_where_offsets_are_unknown() -> None:
    assert partition_lag(None, 9_000, None, "earliest") == 9_000
    assert partition_lag(1_000, None, 500) == 0
    assert partition_lag(1_000, None, None, "earliest") == 0
    with refuses(GroupTypeError, "end is of type float; give an offset, or None"):
        partition_lag(0, 1.5, None)  # type: ignore[arg-type]
    with refuses(GroupTypeError, "reset is of type NoneType; give the consumer's auto_offset_reset"):
        partition_lag(0, 1, None, None)  # type: ignore[arg-type]


def test_the_published_example_against_range() -> None:
    plan = LagBasedAssignor().assign(README, lags=README_LAGS)
    assert shares(plan) == {"C0": ["t0p0"], "C1": ["t0p1", "t0p2"]}
    assert plan.lag_by_member == lag_by_member(plan, README_LAGS) == {"C0": 100_000, "C1": 110_000}
    assert lag_by_member(RangeAssignor().assign(README), README_LAGS) == {"C0": 150_000, "C1": 60_000}
    assert (plan.lag_bound, plan.lag_bound_limited) == (105_000, None)
    plan.verify()


@pytest.mark.parametrize(
    ("topics", "members", "given", "totals"),
    [
        (
            {"t": [360, 359, 230, 118, 444, 122, 65, 111, 455_000, 424_000]},
            {"m1": "t", "m2": "t", "m3": "t"},
            {"m1": "t2 t7 t8", "m2": "t1 t3 t9", "m3": "t0 t4 t5 t6"},
            [455_341, 424_477, 991],
        ),
        (
            {"t": [700, 700, 40, 3], "u": [9_000, 500]},
            {"m1": "tu", "m2": "t"},
            {"m1": "t0 t2 u0 u1", "m2": "t1 t3"},
            [10_240, 703],
        ),
        ({"t": [0] * 7}, {"m1": "t", "m2": "t"}, {"m1": "t0 t2 t4 t6", "m2": "t1 t3 t5"}, [0, 0]),
        ({"t": [10] * 5}, {"m1": "t", "m2": "t"}, {"m1": "t0 t2 t4", "m2": "t1 t3"}, [30, 20]),
        (
            {"t": [1_000, *[100] * 7]},
            {"m1": "t", "m2": "t"},
            {"m1": "t0 t3 t5 t7", "m2": "t1 t2 t4 t6"},
            [1_300, 400],
        ),
    ],
)
def test_golden_cases(topics: Lags, members: dict[str, str], given: dict[str, str], totals: list[int]) -> None:
    """The cases of the Java assignor, compared as sets: Java's lists are in the order of placement."""
    group = Group(
        {topic: len(lags) for topic, lags in topics.items()}, [Member(name, list(own)) for name, own in members.items()]
    )
    plan = LagBasedAssignor().assign(group, lags=topics)
    expected = {member: {(entry[0], int(entry[1:])) for entry in entries.split()} for member, entries in given.items()}
    assert {m: {(t, n) for t, ns in share.items() for n in ns} for m, share in plan.assignment.items()} == expected
    assert plan.lag_by_member == lag_by_member(plan, topics) == dict(zip(members, totals, strict=True))
    plan.verify()


def word_by_word(group: Group, lags: Lags) -> dict[str, dict[str, list[int]]]:
    """The rule in its simplest form, without any optimization."""
    result: dict[str, dict[str, list[int]]] = {member.id: {} for member in group.members}
    for topic in group.topics:
        counts = {member.id: (0, 0) for member in group.members if topic in member.topics}
        for number in sorted(range(len(lags[topic])), key=lambda number: (-lags[topic][number], number)):
            if counts:
                least = min(counts, key=lambda member: (*counts[member], member))
                counts[least] = counts[least][0] + 1, counts[least][1] + lags[topic][number]
                result[least].setdefault(topic, []).append(number)
    return {member: {topic: sorted(got) for topic, got in topics.items()} for member, topics in result.items()}


@pytest.mark.parametrize("seed", range(100))
def test_random_groups_as_the_rule_says(seed: int) -> None:
    rng = random.Random(seed)
    topics = {f"t{i}": rng.randrange(9) for i in range(4)}
    members = [Member(f"m{i}", rng.sample(sorted(topics), rng.randrange(5))) for i in range(rng.randrange(7))]
    lags = {topic: [rng.choice([0, 1, 5, 5, 1_000]) for _ in range(count)] for topic, count in topics.items()}
    group = Group(topics, members)
    plan = LagBasedAssignor().assign(group, lags=lags)
    assert plan.assignment == word_by_word(group, lags)
    assert plan.lag_by_member == lag_by_member(plan, lags)
    rng.shuffle(members)
    assert LagBasedAssignor().assign(Group(topics, members), lags=lags).assignment == plan.assignment


def test_scope_and_skew() -> None:
    many = Group(
        {f"t{i:02}": 1 for i in range(100)}, [Member(f"m{i}", [f"t{n:02}" for n in range(100)]) for i in range(10)]
    )
    ones = {topic: [7] for topic in many.topics}
    assert len(LagBasedAssignor().assign(many, lags=ones)["m0"]) == 100
    by_group = LagBasedAssignor(scope="group").assign(many, lags=ones)
    assert by_group.lag_by_member == {f"m{i}": 70 for i in range(10)}
    one_heavy = {"t": [1_000, *[100] * 7]}
    totals = {
        skew: LagBasedAssignor(max_skew=skew).assign(one_topic(8, "m1", "m2"), lags=one_heavy).lag_by_member
        for skew in (0, 2, None)
    }
    assert totals == {
        0: {"m1": 1_300, "m2": 400},
        2: {"m1": 1_200, "m2": 500},
        None: {"m1": 1_000, "m2": 700},
    }


def test_owners_keep_what_does_not_pay() -> None:
    members = [
        Member("m0", ["t"], owned={"t": [0, 1]}, generation=4),
        Member("m1", ["t"], owned={"t": [2, 3]}, generation=4),
    ]
    lags = {"t": [50, 40, 30, 20]}
    group = Group({"t": 4}, members)
    assert LagBasedAssignor().assign(group, lags=lags).moved == 2
    kept = LagBasedAssignor(keep="owners", threshold=20).assign(group, lags=lags)
    assert (kept.moved, kept.lag_by_member) == (0, {"m0": 90, "m1": 50})
    swapped = LagBasedAssignor(keep="owners", threshold=19).assign(group, lags=lags)
    assert (swapped.moved, swapped.lag_by_member) == (2, {"m0": 70, "m1": 70})


@pytest.mark.parametrize(
    ("lags", "error", "message"),
    [
        ({}, GroupError, 'lags has no topic "t"; give its 2 lags, one per partition'),
        ({"t": [1]}, GroupError, 'lags["t"] has 1 lags, but the topic 2 partitions; give one per partition'),
        ({"t": [1, 2, 3]}, GroupError, 'lags["t"] has 3 lags, but the topic 2 partitions; give one per partition'),
        ({"t": [1, -5]}, GroupError, 'lags["t"][1] is -5; a lag cannot be negative: give 0 or more'),
        ({"t": [1, float("nan")]}, GroupTypeError, 'lags["t"][1] is of type float; give an integer that fits 64 bits'),
        ({"t": [True, 1]}, GroupTypeError, 'lags["t"][0] is of type bool; give an integer that fits 64 bits'),
        ({"t": [None, 1]}, GroupTypeError, 'lags["t"][0] is of type NoneType; give an integer that fits 64 bits'),
        ({"t": [2**63, 1]}, GroupError, 'lags["t"][0] cannot be represented'),
        ({"t": "12"}, GroupTypeError, 'lags["t"] is of type str; give a list of integers, one per partition'),
        ({"t": {0: 1, 1: 1}}, GroupTypeError, 'lags["t"] is of type dict; give a list of integers, one per partition'),
        ({"t": 7}, GroupTypeError, 'lags["t"] is of type int; give a list of integers, one per partition'),
        ([1, 2], GroupTypeError, "lags is of type list; give a mapping of topic to lags"),
    ],
)
def test_bad_lags(lags: Any, error: type[Exception], message: str) -> None:
    with refuses(error, message):
        LagBasedAssignor().assign(one_topic(2, "m0"), lags=lags)


def test_a_sequence_that_lies_about_its_length() -> None:
    class Short:
        def __len__(self) -> int:
            return 2

        def __iter__(self) -> Iterator[int]:
            return iter([1])

    with refuses(GroupError, 'lags["t"] ends early, after 1 of 2 lags'):
        LagBasedAssignor().assign(one_topic(2, "m0"), lags={"t": Short()})  # type: ignore[dict-item]


def test_what_lags_may_have_besides() -> None:
    group = Group({"t": 1, "empty": 0}, [Member("m0", ["t", "empty"])])
    assert LagBasedAssignor().assign(group, lags={"t": (3,), "unknown": [-1]}).lag_by_member == {"m0": 3}
    largest = 2**63 - 1
    plan = LagBasedAssignor().assign(one_topic(3, "m0"), lags={"t": [largest] * 3})
    assert (plan.lag_by_member, plan.lag_bound) == ({"m0": 3 * largest}, 3 * largest)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scope": "all"}, "scope is 'all'; give one of 'topic', 'group'"),
        ({"keep": "all"}, "keep is 'all'; give one of 'none', 'owners'"),
        ({"max_skew": -1}, "max_skew is -1; give an integer from 0 to 4294967295"),
        ({"max_skew": 1.0}, "max_skew is 1.0; give an integer from 0 to 4294967295"),
        ({"keep": "owners", "threshold": -1}, "threshold is -1; give an integer from 0 to 18446744073709551615"),
        ({"threshold": 5}, "threshold is 5, but keep is 'none'; a threshold is for keep='owners'"),
        ({"deadline": 0}, "deadline is 0; give a positive number of seconds"),
        ({"deadline": float("nan")}, "deadline is nan; give a positive number of seconds"),
        ({"group_id": None}, "group_id is None; give the group's name, or '' if it does not matter"),
        ({"lags": 7}, "lags is of type int; give a mapping of topic to lags, a LagSource, or a function"),
    ],
)
def test_unknown_options(options: dict[str, Any], message: str) -> None:
    with refuses(OptionError, message):
        LagBasedAssignor(**options)


def test_totals_of_plans_that_lags_do_not_fit() -> None:
    plan = StickyAssignor().assign(one_topic(2, "m0"))
    with refuses(GroupError, "lags has no topic 't', of which member 'm0' has partitions; give them"):
        lag_by_member(plan, {})
    with refuses(GroupError, "lags['t'] has 1 lags, but member 'm0' has partition 1; give one lag per partition"):
        lag_by_member(plan, {"t": [3]})
    assert (plan.lag_by_member, plan.lag_bound) == (None, None)


def test_planning_without_any_lags() -> None:
    with refuses(LagError, "there are no lags; give them to assign(), or a source of them"):
        LagBasedAssignor().assign(README)


def test_an_assignor_is_a_value() -> None:
    one = LagBasedAssignor(lags={"t": [1]}, scope="group", max_skew=None)
    assert pickle.loads(pickle.dumps(one)) == one
    assert hash(one) == hash(LagBasedAssignor(scope="group", max_skew=None))


# ---- bytes to bytes -------------------------------------------------------------------------------------------------


def joined(assignor: LagBasedAssignor, owned: dict[str, dict[str, list[int]]]) -> list[tuple[str, bytes]]:
    return [
        (member, assignor.metadata(["t"], MemberState(owned=held, generation=3 if held else None)))
        for member, held in owned.items()
    ]


def given(assignments: dict[str, bytes]) -> dict[str, list[int]]:
    return {
        member: [number for numbers in Assignment.decode(share).partitions.values() for number in numbers]
        for member, share in assignments.items()
    }


def test_members_send_what_they_own_in_the_sticky_form() -> None:
    sent = LagBasedAssignor().metadata(["t"], MemberState({"t": [1]}, 3))
    assert sent == StickyAssignor().metadata(["t"], MemberState({"t": [1]}, 3))
    user_data = Subscription.decode(sent).user_data
    assert StickyUserData.decode(user_data) == StickyUserData({"t": [1]}, 3)


@pytest.mark.parametrize("kind", ["mapping", "source", "function"])
def test_a_leader_asks_its_source(kind: str) -> None:
    told = Told({"t": [1, 2, 300, 4]})
    assert isinstance(told, LagSource)
    lags: Any = {"mapping": told.known, "source": told, "function": told.lags}[kind]
    assignor = LagBasedAssignor(lags=lags, group_id="g", max_skew=None)
    assignments, plan = assignor.plan_assignment(joined(assignor, {"m0": {}, "m1": {}}), {"t": 4}, generation=9)
    assert given(assignments) == {"m0": [2], "m1": [0, 1, 3]}
    assert plan.lag_by_member == {"m0": 300, "m1": 7}
    assert Assignment.decode(assignments["m0"]).generation == 9
    assert told.asked == ([] if kind == "mapping" else [(["t"], "g")])


def failing(topics: Iterable[str], group_id: str) -> Lags:
    raise ConnectionError("no broker")


SOURCES: list[tuple[Any, str]] = [
    (failing, "the lag source failed: ConnectionError('no broker')"),
    (Told({}), 'lags has no topic "t"; give its 4 lags, one per partition'),
    (Told({"t": [1, 2, 3]}), 'lags["t"] has 3 lags, but the topic 4 partitions'),
    (Told({"t": [1, 2, 3, 4, 5]}), 'lags["t"] has 5 lags, but the topic 4 partitions'),
    (Told({"t": [1, 2, 3, 2**63]}), 'lags["t"][3] cannot be represented'),
    (Told({"t": [1, 2, 3, -1]}), 'lags["t"][3] is -1; a lag cannot be negative'),
    (Told({"t": [1, 2, 3, float("nan")]}), 'lags["t"][3] is of type float'),  # type: ignore[list-item]
    (Told([1]), "the lag source answered with a list; it must give topic to lags"),  # type: ignore[arg-type]
    ({"u": [1]}, 'lags has no topic "t"'),
    (None, "there are no lags"),
]


@pytest.mark.parametrize(("source", "reason"), SOURCES)
def test_a_rebalance_goes_on_without_lags(source: Any, reason: str, caplog: pytest.LogCaptureFixture) -> None:
    assignor = LagBasedAssignor(lags=source, group_id="g")
    members = iter(joined(assignor, {"m0": {"t": [0, 1]}, "m1": {"t": [2]}, "m2": {}}))
    with caplog.at_level(logging.WARNING, logger="kafka_assignors"):
        assignments, plan = assignor.plan_assignment(members, {"t": 4})
    assert given(assignments) == {"m0": [0, 1], "m1": [2], "m2": [3]}
    assert (plan.moved, plan.lag_by_member, plan.lag_bound) == (0, None, None)
    [message] = [record.message for record in records_of_the_package(caplog)]
    assert message.startswith("the lags of group 'g' are not known (")
    assert reason in message


def test_a_late_source_is_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    release = threading.Event()
    asked_by: list[threading.Thread] = []

    def slow(topics: Iterable[str], group_id: str) -> Lags:
        asked_by.append(threading.current_thread())
        release.wait()
        return {"t": [1]}

    assignor = LagBasedAssignor(lags=slow, deadline=0.05)
    try:
        assignments = assignor.perform_assignment(joined(assignor, {"m0": {"t": [0]}, "m1": {}}), {"t": 1})
        assert given(assignments) == {"m0": [0], "m1": []}
        assert "the lag source did not answer within 0.05 s" in caplog.text
        with refuses(LagError, "the lag source did not answer within 0.05 s"):
            assignor.assign(one_topic(1, "m0"))
    finally:
        release.set()
    for thread in asked_by:
        assert thread is not threading.current_thread()
        thread.join()


def test_what_is_wrong_beside_the_lags_stays_an_error(caplog: pytest.LogCaptureFixture) -> None:
    assignor = LagBasedAssignor(lags={"t": [1]})
    with refuses(GroupError, 'topic "t" has -1 partitions'):
        assignor.perform_assignment([], {"t": -1})
    with refuses(GroupTypeError, "members[0] is of type str"):
        assignor.perform_assignment(["m0"], {"t": 1})  # type: ignore[list-item]
    assert records_of_the_package(caplog) == []


def test_what_a_member_was_given_is_what_it_claims_next() -> None:
    assignor = LagBasedAssignor(lags={"t": [5, 4, 3]}, keep="owners", threshold=100)
    states = {member: MemberState() for member in ("m0", "m1")}
    for generation, lags in enumerate(([5, 4, 3], [50, 40, 30], [0, 9, 9]), 1):
        assignor = LagBasedAssignor(lags={"t": lags}, keep="owners", threshold=100)
        members = [(member, assignor.metadata(["t"], state)) for member, state in states.items()]
        for member, share in assignor.perform_assignment(members, {"t": 3}, generation=generation).items():
            assignor.on_assignment(share, generation, states[member])
    assert states == {"m0": MemberState({"t": [0]}, 3), "m1": MemberState({"t": [1, 2]}, 3)}
