"""Strategies given as text."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_assignors import (
    CooperativeStickyAssignor,
    LagBasedAssignor,
    OptionError,
    RangeAssignor,
    StickyAssignor,
    StickyStreamJoinAssignor,
)
from kafka_assignors.spark.strategies import STRATEGIES, kernel_options
from kafka_assignors.strategies import parse_strategy, split_strategies, strategy_text


@pytest.mark.parametrize(
    ("text", "assignor", "name"),
    [
        ("range", RangeAssignor(), "range"),
        (" sticky ( mode = fair ) ", StickyAssignor(mode="fair"), "sticky(mode=fair)"),
        ("sticky()", StickyAssignor(), "sticky"),
        ("CooperativeStickyAssignor", CooperativeStickyAssignor(), "cooperative-sticky"),
        ("sticky-join", StickyStreamJoinAssignor(), "sticky-join"),
        ("cooperative-sticky-join", StickyStreamJoinAssignor(protocol="cooperative"), "cooperative-sticky-join"),
        ("lag(max_skew=2)", LagBasedAssignor(max_skew=2), "lag(max_skew=2)"),
        (
            "lag(max_skew=None,scope=group)",
            LagBasedAssignor(max_skew=None, scope="group"),
            "lag(scope=group, max_skew=none)",
        ),
        (
            "lag(keep=owners, threshold=1000)",
            LagBasedAssignor(keep="owners", threshold=1_000),
            "lag(keep=owners, threshold=1000)",
        ),
        ("lag(max_skew=0)", LagBasedAssignor(), "lag"),
    ],
)
def test_texts(text: str, assignor: Any, name: str) -> None:
    assert (parse_strategy(text), strategy_text(parse_strategy(text))) == (assignor, name)
    assert parse_strategy(name) == assignor


def test_what_the_core_is_given() -> None:
    assert kernel_options("range,lag(scope=group, max_skew=none, keep=owners)") == [
        ("range", ("range", "fair-yet-sticky", "before-stickiness")),
        ("lag(scope=group, max_skew=none, keep=owners)", ("group", None, 0)),
    ]
    assert [name for name, _ in kernel_options(STRATEGIES)] == list(STRATEGIES)
    assert kernel_options([StickyAssignor(mode="fair")])[0][0] == "sticky(mode=fair)"
    assert split_strategies("a(b=1,c=2), d,,e") == ["a(b=1,c=2)", "d", "e"]


@pytest.mark.parametrize(
    ("strategies", "message"),
    [
        ([], "no strategy is given"),
        (["sticky", "StickyAssignor"], "strategy 'sticky' is given twice"),
        (["best"], "the strategy is 'best'; give one of 'sticky'"),
        (["sticky(mode=fair"], "give a name, or one with options"),
        ([5], "the strategy is 5"),
        (["range(mode=fair)"], "'mode=fair' is no option of range; it takes none"),
        (["sticky(mode)"], "'mode' is no option of sticky; give mode, racks, each with its value"),
        (["sticky(mode=best)"], "mode is 'best'; give one of"),
        (["lag(max_skew=-1)"], "max_skew is '-1'; give a number"),
        (["lag(max_skew=99999999999)"], "max_skew is 99999999999; give an integer"),
        (["lag(threshold=5)"], "a threshold is for keep='owners'"),
        (["lag(deadline=1)"], "'deadline=1' is no option of lag"),
        (["sticky(racks=after-stickiness)"], "racks does not count in a replay"),
        ([StickyAssignor(racks="after-stickiness")], "racks does not count in a replay"),
        ([LagBasedAssignor(lags={"t": [1]})], "lags does not count in a replay"),
    ],
)
def test_bad_ones(strategies: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message.replace("(", r"\(")):
        kernel_options(strategies)
