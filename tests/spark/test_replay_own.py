"""A replay with users' own assignors, pickled as for a worker: it equals the replay by hand. And failing assignors."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from kafka_assignors import OptionError, _core
from kafka_assignors.spark.strategies import kernel_options
from kafka_assignors.strategies import parse_strategy
from support.histories import ByHand, batch, drawn

UNLIKE = {"cluster", "group_id", "strategy", "kernel_ns", "error"}


def rows(options: Any, histories: dict[Any, Any]) -> list[dict[str, Any]]:
    # Pickled, as Spark sends the options to its workers.
    found: list[dict[str, Any]] = _core.Replay(pickle.loads(pickle.dumps(options))).run(batch(histories)).to_pylist()
    return found


@pytest.mark.parametrize("text", ["support.own:Sparing(most=3)", "support.own:Gathering"])
def test_equals_a_replay_by_hand(text: str) -> None:
    histories = {f"g{seed}": drawn(seed) for seed in range(60)}
    found = rows(kernel_options([text]), histories)
    for group_id, history in histories.items():
        ours = [{k: v for k, v in row.items() if k not in UNLIKE} for row in found if row["group_id"] == group_id]
        assert ours == ByHand(history, parse_strategy(text)).rows(), group_id
    assert {row["strategy"] for row in found} == {text}
    assert all(row["error"] is None for row in found)
    assert sum(row["moved"] > 0 for row in found) > 20


def test_one_that_fails_has_errors_and_the_figures_of_sticky() -> None:
    histories = {f"g{seed}": drawn(seed) for seed in range(10)}
    found = rows(kernel_options(["support.own:Failing", "sticky"]), histories)
    failed, sticky = ([row for row in found if row["strategy"] == each] for each in ("support.own:Failing", "sticky"))
    planned = [row for row in failed if row["members"] is not None]
    assert planned
    assert all("it never plans" in row["error"] for row in planned)
    unlike = UNLIKE | {"error"}
    assert [{k: v for k, v in row.items() if k not in unlike} for row in failed] == [
        {k: v for k, v in row.items() if k not in unlike} for row in sticky
    ]


def test_assignments_of_own_ones_come_on_the_replays_thread() -> None:
    replay = _core.Replay(kernel_options([parse_strategy("support.own:Sparing")]))
    shares = [row for part in replay.assignments(batch({"g": drawn(3)})) for row in part.to_pylist()]
    of_members: dict[Any, int] = {}
    for row in shares:
        key = row["seq"], row["ts"], row["member_id"]
        of_members[key] = of_members.get(key, 0) + len(row["partitions"])
    assert of_members
    assert max(of_members.values()) <= 2


def test_a_name_that_is_taken_is_refused() -> None:
    assignor = parse_strategy("support.own:Sparing")
    object.__setattr__(assignor, "name", "sticky")
    with pytest.raises(OptionError, match="taken"):
        kernel_options([assignor])
