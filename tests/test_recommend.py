"""The rules for the recommendation of a strategy to a group."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_assignors import OptionError
from kafka_assignors.report.model import GroupFigures, StrategyFigures
from kafka_assignors.report.recommend import KEEP, Limits, recommend, saved, tally, today


def strategy(
    moved: int = 0,
    *,
    score: float = 4.0,
    skew: float = 1.2,
    lag: int = 0,
    torn: int = 0,
    error: str | None = None,
    unassigned: int = 0,
) -> StrategyFigures:
    rebalances, needed, spread = 0 if error else 20, min(moved, 40), score / 4
    return StrategyFigures(
        rebalances, moved, needed, spread, score, skew, lag, torn, error, 2_000 - unassigned, unassigned
    )


def group(
    members: int = 8,
    joined: bool = False,
    running: str | None = None,
    by_broker: bool = False,
    **strategies: StrategyFigures,
) -> GroupFigures:
    named = {name.replace("_", "-"): figures for name, figures in strategies.items()}
    return GroupFigures("c", "g", members, 100, named, joined, running, by_broker)


def test_a_strategy_that_moves_less_is_recommended() -> None:
    figures = group(observed=strategy(400), range=strategy(400), sticky=strategy(40), cooperative_sticky=strategy(40))
    found = recommend(figures)
    # Both are equally good. The cooperative one does not stop the members during a rebalance.
    assert (found.strategy, found.rule) == ("cooperative-sticky", "sticky")
    assert found.reason == "moves 40 partitions in 20 rebalances where it moved 400 (90% less), and is as even"
    assert saved(figures, found) == 360


def test_balance_comes_before_moves() -> None:
    figures = group(running="range", range=strategy(10, score=40.0), sticky=strategy(60, score=4.0))
    found = recommend(figures)
    assert found.strategy == "sticky"
    assert "moves 60 partitions in 20 rebalances where range moves 10 (500% more)" in found.reason
    assert "differ by 1.0 partitions instead of 10.0" in found.reason
    assert saved(figures, found) == -50


@pytest.mark.parametrize(("moved", "wanted"), [(100, KEEP), (109, KEEP), (111, KEEP), (112, "sticky"), (130, "sticky")])
def test_a_small_gain_is_not_worth_a_change(moved: int, wanted: str) -> None:
    figures = group(observed=strategy(moved), sticky=strategy(100), range=strategy(500))
    assert recommend(figures).strategy == wanted
    assert saved(figures, recommend(figures)) == (0 if wanted == KEEP else moved - 100)


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    # Nine moves saved are too few, and ten are enough. Five percent saved are too few, and more are enough.
    [(19, 10, KEEP), (20, 10, "sticky"), (10_000, 9_501, KEEP), (10_000, 9_500, KEEP), (10_000, 9_499, "sticky")],
)
def test_no_limit_makes_a_saving_under_ten_moves_or_five_percent_worth_a_change(
    before: int, after: int, wanted: str
) -> None:
    found = recommend(group(observed=strategy(before), sticky=strategy(after)), Limits(gain=0.000_1))
    assert found.strategy == wanted


def test_a_little_more_even_is_not_worth_a_change() -> None:
    """Nor is it worth more moves. Otherwise a group that runs sticky under another name would be advised to change."""
    figures = group(observed=strategy(10, score=2.0), sticky=strategy(16, score=1.0))
    found = recommend(figures)
    assert (found.strategy, found.rule, saved(figures, found)) == (KEEP, "keep", 0)


def test_what_was_never_observed_nor_captured_is_not_today() -> None:
    """A client's default is no observation: the group may run any strategy."""
    figures = group(range=strategy(3_447), sticky=strategy(40))
    found = recommend(figures)
    assert today(figures) is None
    assert saved(figures, found) == 0
    assert found.strategy == "sticky"
    assert found.reason.endswith("; what the group runs today is not in the tables")
    known = group(running="range", range=strategy(3_447), sticky=strategy(40))
    assert today(known) == "range"
    assert saved(known, recommend(known)) == 3_407
    # The strategy that the group runs was not replayed.
    assert today(group(running="com.example.Own", range=strategy(3_447))) is None


def test_a_group_that_the_broker_assigns_is_compared_with_nothing_that_it_never_ran() -> None:
    for running in (None, "uniform", "range"):
        figures = group(by_broker=True, running=running, range=strategy(3_447), sticky=strategy(40))
        found = recommend(figures)
        assert (found.strategy, found.rule, today(figures), saved(figures, found)) == (KEEP, "broker", None, 0)
        assert "range" not in found.reason
    # An observed strategy counts in such a group, too.
    seen = group(by_broker=True, running="range", observed=strategy(400), range=strategy(9), sticky=strategy(40))
    assert recommend(seen).reason.startswith("moves 9 partitions in 20 rebalances where it moved 400")


@pytest.mark.parametrize("running", ["sticky", "cooperative-sticky", "range", "roundrobin", "lag", "sticky-join"])
def test_nobody_is_told_to_change_to_what_it_runs(running: str) -> None:
    for best in ("sticky", "cooperative-sticky", "range", "roundrobin", "lag", "sticky-join"):
        names = ("sticky", "cooperative-sticky", "range", "roundrobin", "lag", "sticky-join")
        replayed = {name.replace("-", "_"): strategy(900, skew=9.0, lag=10**6, torn=5) for name in names}
        replayed[best.replace("-", "_")] = strategy(40, torn=0)
        for joined in (True, False):
            for seen in ([], [("observed", strategy(950, skew=9.0, lag=10**6, torn=5))]):
                named: dict[str, Any] = {**dict(seen), **replayed}
                found = recommend(group(joined=joined, running=running, **named))
                assert found.strategy != running, (best, joined, found)
    options = GroupFigures(
        "c", "g", 8, 100, {"lag(scope=group)": strategy(4), "observed": strategy(400)}, running="lag"
    )
    assert recommend(options).strategy == KEEP


def test_what_leaves_partitions_without_a_reader_is_not_recommended() -> None:
    unread: dict[str, Any] = {"sticky": strategy(400, torn=9), "sticky_join": strategy(4, score=0.0, unassigned=1_960)}
    for joined in (True, False):
        assert recommend(group(joined=joined, running="sticky", **unread)).strategy == KEEP
        assert recommend(group(joined=joined, **unread)).strategy == "sticky"
        assert recommend(group(joined=joined, observed=strategy(900), **unread)).strategy == "sticky"
    # The strategy may be recommended if as many partitions have no reader today.
    today_unread = strategy(900, torn=9, unassigned=1_960)
    assert recommend(group(joined=True, observed=today_unread, **unread)).strategy == "sticky-join"
    assert unread["sticky_join"].unassigned_share == 0.98


def test_a_join_that_is_whole_is_changed_for_moves_only() -> None:
    strategies: dict[str, Any] = {"range": strategy(60), "sticky": strategy(4, torn=90), "sticky_join": strategy(55)}
    found = recommend(group(joined=True, running="range", **strategies))
    assert (found.strategy, found.rule) == (KEEP, "joined")
    torn = strategies | {"range": strategy(60, torn=1)}
    assert recommend(group(joined=True, running="range", **torn)).strategy == "sticky-join"


def test_a_heavy_member_of_today_counts_and_not_that_of_a_strategy_nobody_runs() -> None:
    strategies: dict[str, Any] = {"sticky": strategy(40, skew=9.0, lag=10**6), "lag": strategy(200, skew=1.1, lag=9)}
    assert recommend(group(**strategies)).rule == "lag"
    even = strategy(45, skew=1.1, lag=9)
    assert recommend(group(observed=even, **strategies)).strategy == KEEP


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
    # Not for a lag below its limit, a skew below its limit, or a strategy that improves neither.
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
    assert today(group(running="range", observed=strategy(error="x"), range=strategy(3))) == "range"


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
