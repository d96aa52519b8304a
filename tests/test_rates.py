"""RateSource: smoothed rates from readings of the end offsets; and the readings themselves."""

from __future__ import annotations

import contextlib
import math
import threading
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors import (
    Group,
    LagError,
    Member,
    OptionError,
    RateSource,
    WeightedAssignor,
    WeightError,
    WeightSource,
)
from kafka_assignors.lag.reader import ClusterLagSource, Deadline, TopicEnds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

BRIEF = 0.001


class Looks:
    """A cluster that returns one reading after the other, and then the last one again and again."""

    def __init__(self, *looks: TopicEnds) -> None:
        self.left = list(looks)
        self.asked: list[tuple[tuple[str, ...], bool]] = []

    def look(self, topics: Iterable[str], *, sizes: bool = False) -> TopicEnds:
        self.asked.append((tuple(topics), sizes))
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


def look(at: float, *ends: int | None, **more: Any) -> TopicEnds:
    known = {("t", number): end for number, end in enumerate(ends) if end is not None}
    return TopicEnds(at, {"t": len(ends)}, known, **more)


def rates(source: RateSource) -> list[float | None]:
    return source.weights(["t"])["t"]


def test_two_looks_make_a_rate_and_later_ones_are_smoothed() -> None:
    cluster = Looks(look(100, 0, 50), look(110, 1_000, 50), look(120, 1_000, 1_050), look(130, 1_000, 2_050))
    source = RateSource(cluster, interval=BRIEF, half_life=10)
    assert isinstance(source, WeightSource)
    assert rates(source) == [100.0, 0.0]
    assert cluster.asked == [(("t",), False)] * 2
    # One reading for each further call; after a half-life the old rate counts half.
    assert rates(source) == [50.0, 50.0]
    assert rates(source) == [25.0, 75.0]
    assert len(cluster.asked) == 4


def test_a_look_too_near_the_last_one_changes_nothing() -> None:
    cluster = Looks(look(100, 0), look(110, 100), look(110 + BRIEF / 2, 900))
    source = RateSource(cluster, interval=BRIEF)
    assert [rates(source), rates(source)] == [[10.0], [10.0]]


def test_partitions_that_are_new_went_back_or_have_no_leader_have_no_rate() -> None:
    cluster = Looks(look(100, 50, 50, 50), look(110, 60, 10, None, 70), look(120, 70, 20, 60, 80))
    source = RateSource(cluster, interval=BRIEF, half_life=1e-9)
    assert rates(source) == [1.0, None, None, None]
    assert rates(source) == [1.0, 1.0, None, 1.0]


def test_bytes_are_rates_times_the_mean_size() -> None:
    sizes = {("t", 0): 10.0, ("t", 1): 100.0}
    cluster = Looks(look(100, 0, 0, 0, 0, sizes={}), look(110, 50, 50, 50, 0, sizes=sizes))
    source = RateSource(cluster, unit="bytes", interval=BRIEF)
    # Partition 2 grows, but its size is unknown, and so is its rate. Partition 3 does not grow: its rate is 0.
    assert rates(source) == [50.0, 500.0, None, 0.0]
    assert cluster.asked == [(("t",), True)] * 2


def test_without_sizes_the_reason_is_in_the_report_and_counts_decide() -> None:
    cluster = Looks(look(100, 0, 0, refusal="CLUSTER_AUTHORIZATION_FAILED"))
    source = RateSource(cluster, unit="bytes", interval=BRIEF)
    assignor = WeightedAssignor(source)
    group = Group({"t": 2}, [Member("a", ["t"]), Member("b", ["t"])])
    with pytest.raises(WeightError, match="CLUSTER_AUTHORIZATION_FAILED; use unit='records'"):
        assignor.assign(group)
    with pytest.raises(WeightError, match="RateSource has no cluster"):
        RateSource().weights(["t"])


def test_rates_are_weights() -> None:
    cluster = Looks(look(100, 0, 0, 0), look(110, 90, 50, 40))
    group = Group({"t": 3}, [Member("a", ["t"]), Member("b", ["t"])])
    plan = WeightedAssignor(RateSource(cluster, interval=BRIEF)).assign(group)
    assert plan.load_by_member == {"a": 9.0, "b": 9.0}


def test_a_source_takes_one_cluster() -> None:
    first, second = Looks(look(1, 0)), Looks(look(1, 0))
    source = RateSource(unit="bytes", interval=2, half_life=3)
    tied = source.of(first)
    assert (source.cluster, tied.cluster, tied.of(second)) == (None, first, tied)
    assert (tied.unit, tied.interval, tied.half_life) == ("bytes", 2, 3)


@pytest.mark.parametrize(
    "options",
    [
        {"unit": "bits"},
        *({name: value} for name in ("interval", "half_life") for value in (0, -1, math.nan, math.inf, True, "1")),
    ],
)
def test_options_that_cannot_be_used(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(OptionError, match=f"{name} is "):
        RateSource(**options)


# ---- reading ------


class Refused(Exception):  # noqa: N818
    """An error of a client. It is temporary if its text contains "passes"."""


class Reader:
    """An `OffsetReader` of one topic."""

    def __init__(self, ends: dict[int, int], failures: list[Refused], logs: Any = None) -> None:
        self.ends = ends
        self.failures = failures
        self.questions: list[str] = []
        if logs is not None:
            self.log_bytes = lambda topics: logs(topics)

    def partition_counts(self, topics: Sequence[str]) -> Mapping[str, int]:
        self.questions.append("counts")
        return {topic: len(self.ends) for topic in topics if topic == "t"}

    def committed(self, group_id: str, partitions: Sequence[tuple[str, int]]) -> Any:
        raise AssertionError("nobody asks for commits")

    def next_offsets(self, partitions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
        self.questions.append(f"ends of {len(partitions)}")
        if self.failures:
            raise self.failures.pop()
        return {each: self.ends[each[1]] for each in partitions}

    def first_offsets(self, partitions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
        self.questions.append(f"beginnings of {len(partitions)}")
        return dict.fromkeys(partitions, 0)


class Source(ClusterLagSource):
    """The source that reads with a `Reader`."""

    _errors = (Refused,)

    def __init__(self, reader: Reader) -> None:
        super().__init__({}, timeout=60)
        self.reader = reader

    @contextlib.contextmanager
    def _connect(self, deadline: Deadline) -> Iterator[Any]:
        yield self.reader

    def _is_passing(self, error: Any) -> bool:
        return "passes" in str(error)


def test_a_look_is_few_questions() -> None:
    reader = Reader({0: 7, 1: 9}, [Refused("it passes")])
    found = Source(reader).look(["u", "t", "t"])
    assert (found.counts, found.ends, found.sizes, found.refusal) == ({"t": 2}, {("t", 0): 7, ("t", 1): 9}, None, None)
    assert reader.questions == ["counts", "ends of 2"] * 2
    assert Source(reader).look([]).counts == {}
    many = Reader(dict.fromkeys(range(25_000), 1), [])
    assert len(Source(many).look(["t"]).ends) == 25_000
    assert many.questions == ["counts", "ends of 10000", "ends of 10000", "ends of 5000"]


def test_an_error_that_stays_is_the_reason() -> None:
    with pytest.raises(LagError, match="the end offsets could not be read: Refused"):
        Source(Reader({0: 7}, [Refused("for ever")])).look(["t"])


def test_sizes_are_of_records() -> None:
    reader = Reader({0: 10, 1: 0, 2: 5}, [], lambda topics: {(topic, n): 1_000 for topic in topics for n in range(2)})
    assert Source(reader).look(["t"], sizes=True).sizes == {("t", 0): 100.0}
    refused = Source(Reader({0: 1}, [])).look(["t"], sizes=True)
    assert (refused.sizes, refused.refusal) == (None, "this client does not ask for them (DescribeLogDirs)")

    def denied(_: Any) -> Any:
        raise Refused("no right")

    assert "no right" in str(Source(Reader({0: 1}, [], denied)).look(["t"], sizes=True).refusal)
    silent = Source(Reader({0: 1}, [], lambda _: {})).look(["t"], sizes=True)
    assert "the ACL Describe on the cluster" in str(silent.refusal)


def test_threads_share_a_source() -> None:
    cluster = Looks(look(100, 0), look(110, 100), *(look(110 + 10 * i, 100 + 100 * i) for i in range(1, 9)))
    source = RateSource(cluster, interval=BRIEF)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(rates(source))) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [[10.0]] * 8
