"""A replay with the weighted strategy, as text and as an object: it equals the replay by hand. Effects of weights."""

from __future__ import annotations

import pickle
from typing import Any

from kafka_assignors import WeightedAssignor, _core
from kafka_assignors.spark.strategies import kernel_options
from support.histories import ByHand, batch, drawn

UNLIKE = {"cluster", "group_id", "strategy", "kernel_ns", "error"}
LOADS = {"worst_load", "load_bound"}


def rows(options: Any, histories: dict[Any, Any]) -> list[dict[str, Any]]:
    # Pickled, as Spark sends the options to its workers.
    found: list[dict[str, Any]] = _core.Replay(pickle.loads(pickle.dumps(options))).run(batch(histories)).to_pylist()
    return found


def weigh(topics: Any) -> dict[str, list[float]]:
    """Larger weights for the first partitions of a topic."""
    return {topic: [100.0 / (1 + number) for number in range(50)] for topic in topics}


def test_without_weights_it_is_the_sticky_strategy() -> None:
    histories = {f"g{seed}": drawn(seed) for seed in range(40)}
    found = rows(kernel_options(["weighted", "sticky"]), histories)
    ours, sticky = ([row for row in found if row["strategy"] == each] for each in ("weighted", "sticky"))
    assert [{k: v for k, v in row.items() if k not in UNLIKE | LOADS} for row in ours] == [
        {k: v for k, v in row.items() if k not in UNLIKE | LOADS} for row in sticky
    ]
    # Each partition weighs 1, and each member can take 1.
    assert all(row["worst_load"] == row["max_count"] >= row["load_bound"] for row in ours)
    assert sum(row["load_bound"] > row["max_count"] - 1 for row in ours) > len(ours) / 2
    assert all(row["worst_load"] is row["load_bound"] is None for row in sticky)
    assert sum(row["moved"] > 0 for row in ours) > 10
    assert all(row["error"] is None for row in ours)


def test_with_weights_it_is_as_by_hand() -> None:
    histories = {f"g{seed}": drawn(seed) for seed in range(40)}
    assignor = WeightedAssignor(weigh, tolerance=0)
    found = rows(kernel_options([assignor]), histories)
    for group_id, history in histories.items():
        ours = [{k: v for k, v in row.items() if k not in UNLIKE} for row in found if row["group_id"] == group_id]
        assert ours == ByHand(history, assignor).rows(), group_id
    assert {row["strategy"] for row in found} == {"weighted(tolerance=0)"}
    assert sum(row["worst_load"] > row["load_bound"] > 0 for row in found) > 20
    assert sum(row["worst_load"] == row["load_bound"] > 0 for row in found) > 20


def test_a_cooperative_plan_carries_what_it_does_in_the_end() -> None:
    histories = {f"g{seed}": drawn(seed) for seed in range(20)}
    both = [WeightedAssignor(weigh), WeightedAssignor(weigh, protocol="cooperative")]
    found = rows(kernel_options(both), histories)
    names = ("group_id", "seq", "moved", *sorted(LOADS))
    eager, cooperative = (
        [[row[name] for name in names] for row in found if row["strategy"] == each.name] for each in both
    )
    assert eager == cooperative


def test_weights_that_cannot_be_used_have_no_loads() -> None:
    def wrong(topics: Any) -> dict[str, float]:
        return dict.fromkeys(topics, -1.0)

    found = _core.Replay(kernel_options([WeightedAssignor(wrong)])).run(batch({"g": drawn(3)})).to_pylist()
    assert all("is -1" in row["error"] and row["max_count"] > 0 for row in found)
    assert {row[name] for row in found for name in LOADS} == {None}
