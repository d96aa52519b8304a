"""Timelines of a group on one axis: the same rebalances and partitions; without a rebalance the owners stay."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from kafka_assignors.report import timelines
from kafka_assignors.report.model import Ownership
from kafka_assignors.report.timelines import aligned, codes, most_moved

if TYPE_CHECKING:
    import pytest

T0, T1, T2 = (("t", number) for number in range(3))


def test_both_have_the_rebalances_and_partitions_of_either() -> None:
    one = Ownership("observed", [10, 30], ["a", "b"], [T0, T2], [[0, 0], [0, 1]], [0, 1])
    other = Ownership("sticky", [10, 20, 30], ["b", "a"], [T0, T1], [[1, 1], [1, -1], [0, -1]], [0, 1, 1])
    first, second = aligned([one, other])
    assert first == Ownership(
        "observed", [10, 20, 30], ["a", "b"], [T0, T1, T2], [[0, -1, 0], [0, -1, 0], [0, -1, 1]], [0, 0, 1]
    )
    assert second == Ownership(
        "sticky", [10, 20, 30], ["b", "a"], [T0, T1, T2], [[1, 1, -1], [1, -1, -1], [0, -1, -1]], [0, 1, 1]
    )


def test_before_its_first_rebalance_nobody_owns_anything() -> None:
    late = Ownership("late", [20], ["a"], [T0], [[0]], [0])
    early = Ownership("early", [10, 20], ["a"], [T0], [[0], [0]], [0, 0])
    assert aligned([late, early])[0].owners == [[-1], [0]]


def test_of_two_rebalances_at_one_time_the_last_is_that_of_the_members() -> None:
    """A change of partition counts comes before the events of its time. Observed histories do not have the change."""
    observed = Ownership("observed", [10, 20], ["a", "b"], [T0], [[0], [1]], [0, 1])
    sticky = Ownership("sticky", [10, 20, 20], ["a", "b"], [T0], [[0], [0], [1]], [0, 0, 1])
    first, second = aligned([observed, sticky])
    assert first.times == second.times == [10, 20, 20]
    assert first.owners == second.owners == [[0], [0], [1]]
    assert first.moved == [0, 0, 1]


def test_of_a_long_history_the_end_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timelines, "COLUMNS_SHOWN", 3)
    long = Ownership("long", [*range(10)], ["a"], [T0], [[0]] * 10, [*range(10)])
    short = Ownership("short", [0, 8], ["a", "b"], [T0], [[1], [0]], [0, 1])
    first, second = aligned([long, short])
    assert (first.times, first.moved) == ([7, 8, 9], [7, 8, 9])
    assert (second.owners, second.moved) == ([[1], [0], [0]], [0, 1, 0])


def test_partitions_that_change_owner_most_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timelines, "PARTITIONS_SHOWN", 2)
    line = Ownership("x", [1, 2, 3], ["a", "b"], [T0, T1, T2], [[0, 0, 0], [0, 1, 1], [0, 0, 1]], [0, 2, 1])
    assert most_moved(aligned([line])) == [1, 2]
    assert most_moved([]) == []


def test_members_have_the_same_letters_in_all_timelines() -> None:
    names = [f"m{number}" for number in range(30)]
    found = codes([Ownership("x", [], names, [], [], []), Ownership("y", [], ["new", *names], [], [], [])])
    assert [found[each] for each in ("m0", "m25", "m26", "m27", "new")] == ["A", "Z", "AA", "AB", "AE"]
    assert len(set(found.values())) == len(found) == 31
    assert list(itertools.islice(found, 1)) == ["m0"]
