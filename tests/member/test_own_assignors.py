"""A user's own assignor in a group of each client's consumers: given as an object, and by a text that names it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors import CustomAssignor
from support.data_paths import DATA_PATHS, Readers
from support.logs import records_of_the_package

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_assignors import Group
    from support.broker import Kafka


class Stubborn(CustomAssignor):
    """Fails `failures` times, without a fallback. Then it assigns every partition to the last member."""

    name = "stubborn"
    fallback = None

    def __init__(self, failures: int) -> None:
        self.failures = failures

    def plan(self, group: Group) -> Any:
        self.failures -= 1
        if self.failures >= 0:
            raise ZeroDivisionError("a bug of the user's")
        return {group.members[-1].id: {topic: range(group.partitions(topic)) for topic in group.topics}}


class First(CustomAssignor):
    """Assigns every partition to the first member in the order of ids. Fails while `fails` is set."""

    name = "first"
    fails = False

    def plan(self, group: Group) -> Any:
        if self.fails:
            raise ZeroDivisionError("a bug of the user's")
        return {group.members[0].id: {topic: range(group.partitions(topic)) for topic in group.topics}}


@pytest.fixture
def assignor() -> First:
    return First()


@pytest.fixture
def own(embedded: Kafka, data_path: str, assignor: First) -> Iterator[Readers]:
    with Readers(embedded, DATA_PATHS[data_path], assignor) as readers:
        yield readers


def sizes(readers: Readers) -> list[int]:
    return sorted(len(each.held) for each in readers.all)


def test_its_plan_is_followed_and_a_bug_in_it_stops_no_group(own: Readers, assignor: First) -> None:
    topic, _ = own.topic(6)
    for _ in range(2):
        own.add().follow(topic)
    own.until(lambda: sizes(own) == [0, 6], "one member has everything")
    assignor.fails = True
    own.add().follow(topic)
    own.until(lambda: sizes(own) == [2, 2, 2], "the fallback plans for three")


@pytest.mark.parametrize(
    ("text", "expected"), [("support.own:Sparing(most=2)", [2, 2]), ("support.own:Gathering", [0, 6])]
)
def test_a_text_names_it(embedded: Kafka, data_path: str, text: str, expected: list[int]) -> None:
    with Readers(embedded, DATA_PATHS[data_path], text) as readers:
        topic, _ = readers.topic(6)
        for _ in range(2):
            readers.add().follow(topic)
        readers.until(lambda: sizes(readers) == expected, "the plan is that of the class in the text")


def test_without_a_fallback_the_rebalance_is_tried_again(
    embedded: Kafka, data_path: str, caplog: pytest.LogCaptureFixture
) -> None:
    assignor = Stubborn(2)
    with Readers(embedded, DATA_PATHS[data_path], assignor) as readers:
        topic, _ = readers.topic(4)
        readers.add().follow(topic)
        readers.until(lambda: sizes(readers) == [4], "the third attempt gives everything")
        # Two attempts failed, the third planned, and its plan was made twice.
        assert assignor.failures == -2
    # aiokafka's consumers also log the errors that they raise.
    errors = [each for each in records_of_the_package(caplog) if each.levelno == logging.ERROR and each.exc_info]
    assert ["the rebalance is tried again" in each.getMessage() for each in errors] == [True, True]


def test_a_list_serves_a_rolling_upgrade(embedded: Kafka, data_path: str, assignor: First) -> None:
    with Readers(embedded, DATA_PATHS[data_path], "sticky") as readers:
        topic, _ = readers.topic(6)
        for _ in range(2):
            readers.add().follow(topic)
        readers.until(lambda: sizes(readers) == [3, 3], "the old strategy plans")
        readers.strategy = [assignor, "sticky"]
        readers.add().follow(topic)
        readers.until(lambda: sizes(readers) == [2, 2, 2], "the old one, which all have")
        readers.add().follow(topic)
        for _ in range(2):
            readers.all.pop(0).close()
        readers.until(lambda: sizes(readers) == [0, 6], "the new one, once all have it")
