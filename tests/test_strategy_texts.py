"""One grammar of strategies: a text means the same strategy in every part of the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, KafkaException

from kafka_assignors import LagBasedAssignor, OptionError, RangeAssignor, StickyAssignor
from kafka_assignors.clients.confluent.assignors import strategies_of
from kafka_assignors.planner.strategies import STANDARD
from kafka_assignors.spark.strategies import kernel_options
from kafka_assignors.strategies import parse_strategy, split_strategies, strategy_name, strategy_text

if TYPE_CHECKING:
    from kafka_assignors.assignors import Assignor

CALM = LagBasedAssignor(scope="group", max_skew=None, keep="owners", threshold=7)


@pytest.mark.parametrize(
    "assignor", [*STANDARD, StickyAssignor("sticky-yet-fair", "after-stickiness"), CALM], ids=strategy_text
)
def test_a_text_is_read_as_it_was_written(assignor: Assignor) -> None:
    text = strategy_text(assignor)
    assert parse_strategy(text) == assignor
    assert strategy_name(text) == assignor.name
    assert split_strategies(f"range, {text} ,lag") == ["range", text, "lag"]


def test_confluent_spark_and_planner_read_the_same() -> None:
    text = "sticky(mode=fair),lag( scope=group, max-skew=none, keep=owners, threshold=7 ), range"
    wanted = [StickyAssignor(mode="fair"), CALM, RangeAssignor()]
    assert list(strategies_of(text)) == wanted
    assert [parse_strategy(each) for each in split_strategies(text)] == wanted
    assert [name for name, _ in kernel_options(text)] == [strategy_text(each) for each in wanted]


@pytest.mark.parametrize("text", ["sticky:mode=fair", " sticky : mode=fair "])
def test_the_colon_is_answered_with_the_parentheses(text: str) -> None:
    with pytest.raises(OptionError, match=r"options stand in parentheses: 'sticky\(mode=fair\)'$"):
        parse_strategy(text)
    with pytest.raises(KafkaException) as raised:
        strategies_of(text)
    assert raised.value.args[0].code() == KafkaError._INVALID_ARG
    assert "'sticky(mode=fair)'" in raised.value.args[0].str()


@pytest.mark.parametrize(
    "text", ["", "sticky(", "sticky)", "sticky(mode=(fair))", "sticky(mode=fair)x", "a b", "(a=b)"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match="give a name, or one with options"):
        parse_strategy(text)
