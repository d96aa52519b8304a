"""The values that describe a group: their fields, comparison, copies and pickles."""

import copy
import pickle

import pytest

from kafka_assignors import Group, GroupError, Member, MemberState, Move, Topic, Unassigned, balance_score

VALUES = [
    Topic(2, racks=[{"a", "b"}, {"b"}]),
    Member("c0", ["t"], owned={"t": [1, 0]}, generation=3, instance_id="i", rack="a"),
    Group({"t": Topic(1), "u": 3}, [Member("c0", ["t"]), Member("c1", ["t", "u"])]),
    MemberState({"t": [0]}, 4, "a"),
    Move("t", 0, None, "c0"),
    Unassigned("t", 0, "no subscriber"),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_survive_copying_and_pickling(value: object) -> None:
    assert copy.copy(value) == value
    assert copy.deepcopy(value) == value
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(value, protocol)) == value


def test_what_is_described_does_not_change_with_what_it_was_made_of() -> None:
    owned = {"t": [0]}
    topics = {"t": 2}
    members = [Member("c0", ["t"], owned=owned)]
    group = Group(topics, members)
    owned["t"].append(1)
    owned["u"] = [0]
    topics["t"] = 7
    members.clear()
    assert group == Group({"t": 2}, [Member("c0", ["t"], owned={"t": [0]})])


@pytest.mark.parametrize("value", VALUES[:3], ids=lambda value: type(value).__name__)
def test_descriptions_are_frozen(value: object) -> None:
    name = next(iter(type(value).__dataclass_fields__))  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        setattr(value, name, None)


def test_the_order_of_a_subscription_carries_no_meaning() -> None:
    of_iterator = Member("c0", iter(["a", "b"]))  # type: ignore[arg-type]
    assert Member("c0", ["b", "a", "b"]) == Member("c0", {"a", "b"}) == of_iterator


def test_any_iterable_of_partitions_is_taken() -> None:
    lists = [[0, 1], (0, 1), range(2), {0: "", 1: ""}.keys()]
    assert {str(Member("c0", ["t"], owned={"t": numbers}).owned) for numbers in lists} == {"{'t': [0, 1]}"}


def test_state_forgets_but_for_the_rack() -> None:
    state = MemberState({"t": [0]}, 4, "a")
    state.forget()
    assert state == MemberState(rack="a")


def test_states_share_nothing() -> None:
    first, second = MemberState(), MemberState()
    first.owned["t"] = [0]
    assert second.owned == {}


@pytest.mark.parametrize(
    ("loads", "score"),
    [([], 0), ([5], 0), ([1, 2, 3], 4), ({"a": 0, "b": 6}, 6), (iter([3, 0]), 3), ([2**40] * 3 + [0], 3 * 2**40)],
)
def test_balance_score(loads: list[int], score: int) -> None:
    assert balance_score(loads) == score


def test_balance_score_is_the_sum_over_pairs() -> None:
    loads = [9, 1, 4, 4, 0, 12]
    assert balance_score(loads) == sum(abs(a - b) for i, a in enumerate(loads) for b in loads[i:])


@pytest.mark.parametrize("loads", [[-1], [2**64], [1.5], ["1"], [True]])
def test_balance_score_refuses_what_is_no_count(loads: list[int]) -> None:
    with pytest.raises(GroupError, match="a load is"):
        balance_score(loads)
