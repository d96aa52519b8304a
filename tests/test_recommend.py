"""The rules by which a group is told what to use."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_assignors import OptionError
from kafka_assignors.report.model import GroupFigures, StrategyFigures
from kafka_assignors.report.recommend import KEEP, Limits, recommend, saved, tally, today


def strategy(
    moved: int = 0, *, score: float = 4.0, skew: float = 1.2, lag: int = 0, torn: int = 0, error: str | None = None
) -> StrategyFigures:
    return StrategyFigures(0 if error else 20, moved, min(moved, 40), score / 4, score, skew, lag, torn, error)


def group(members: int = 8, joined: bool = False, **strategies: StrategyFigures) -> GroupFigures:
    named = {name.replace("_", "-"): figures for name, figures in strategies.items()}
    return GroupFigures("c", "g", members, 100, named, joined)


def test_a_strategy_that_moves_less_is_recommended() -> None:
    figures = group(observed=strategy(400), range=strategy(400), sticky=strategy(40), cooperative_sticky=strategy(40))
    found = recommend(figures)
    # Of equals, the one that lets members work on.
    assert (found.strategy, found.rule) == ("cooperative-sticky", "sticky")
    assert found.reason == "moves 40 partitions in 20 rebalances where it moved 400 (90% less), and is as even"
    assert saved(figures, found) == 360


def test_balance_comes_before_moves() -> None:
    figures = group(range=strategy(10, score=40.0), sticky=strategy(60, score=4.0))
    found = recommend(figures)
    assert found.strategy == "sticky"
    assert "moves 60 partitions in 20 rebalances where range moves 10 (500% more)" in found.reason
    assert "differ by 1.0 partitions instead of 10.0" in found.reason
    assert saved(figures, found) == -50


@pytest.mark.parametrize(("moved", "wanted"), [(100, KEEP), (109, KEEP), (130, "sticky")])
def test_a_small_gain_is_not_worth_a_change(moved: int, wanted: str) -> None:
    figures = group(observed=strategy(moved), sticky=strategy(100), range=strategy(500))
    assert recommend(figures).strategy == wanted
    assert saved(figures, recommend(figures)) == (0 if wanted == KEEP else moved - 100)


def test_a_group_where_nothing_moves_keeps_what_it_has() -> None:
    found = recommend(group(observed=strategy(0), range=strategy(0), sticky=strategy(0)))
    assert (found.strategy, found.rule) == (KEEP, "keep")


def test_one_member_needs_no_strategy() -> None:
    assert recommend(group(members=1, range=strategy(9), sticky=strategy(0))).rule == "alone"


def test_a_join_keeps_its_numbers_together() -> None:
    strategies: dict[str, Any] = {
        "range": strategy(400, torn=0),
        "sticky": strategy(40, torn=90),
        "sticky_join": strategy(50),
    }
    assert recommend(group(joined=False, **strategies)).strategy == "sticky"
    found = recommend(group(joined=True, **strategies))
    assert (found.strategy, found.rule) == ("sticky-join", "joined")
    assert found.reason.endswith("50 partitions moved; numbers torn apart by others: sticky 90")


def test_a_heavy_member_calls_for_lag() -> None:
    strategies: dict[str, Any] = {
        "sticky": strategy(40, skew=4.0, lag=90_000),
        "lag": strategy(200, skew=1.1, lag=20_000),
    }
    found = recommend(group(**strategies))
    assert (found.strategy, found.rule) == ("lag", "lag")
    assert "1.1 times the mean lag instead of 4.0 times with sticky (up to 90,000 records)" in found.reason
    # A lag that is nobody's trouble; a skew that is small; a strategy that does not help.
    assert recommend(group(**strategies), Limits(lag=100_000)).strategy == "sticky"
    assert recommend(group(**strategies), Limits(lag_skew=5)).strategy == "sticky"
    assert recommend(group(**(strategies | {"lag": strategy(9, skew=3.9, lag=89_000)}))).rule != "lag"


def test_options_of_a_strategy_are_part_of_its_name() -> None:
    figures = GroupFigures(
        "c", "g", 8, 100, {"sticky": strategy(1, skew=9, lag=10**6), "lag(scope=group)": strategy(5, skew=1)}
    )
    assert recommend(figures).strategy == "lag(scope=group)"


def test_strategies_that_failed_do_not_count() -> None:
    found = recommend(group(range=strategy(100), sticky=strategy(error="boom")))
    assert found.strategy in ("range", KEEP)
    found = recommend(group(range=strategy(error="no"), sticky=strategy(error="boom")))
    assert (found.strategy, found.rule, found.reason) == (None, "unknown", "boom")
    assert recommend(group(observed=strategy(5))).rule == "unknown"
    assert today(group(observed=strategy(error="x"), range=strategy(3))) == "range"


def test_only_strategies_for_joins() -> None:
    assert recommend(group(sticky_join=strategy(3))).strategy == KEEP


def test_recommendations_are_counted() -> None:
    found = [recommend(group(range=strategy(400), sticky=strategy(4))) for _ in range(2)]
    assert tally([*found, recommend(group(members=1, sticky=strategy())), recommend(group())]) == {
        "sticky": 2,
        "keep": 1,
        "none": 1,
    }


@pytest.mark.parametrize("options", [{"lag_skew": 0}, {"lag": -1}, {"gain": 1.5}, {"gain": float("nan")}])
def test_limits_that_cannot_be(options: dict[str, float]) -> None:
    with pytest.raises(OptionError, match="give a"):
        Limits(**options)  # type: ignore[arg-type]
