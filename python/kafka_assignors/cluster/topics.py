"""The reader of topics: their partitions, and the first and the next offsets of these.

An answer to Metadata or ListOffsets takes several times the memory of the values that are kept. So no answer outlives
the function that asked, offsets are kept in arrays, and a request names a few thousand partitions.

`kafka_assignors.lag.reader` is the other reader of offsets; its docstring explains why the two stay apart.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from kafka_assignors.cluster.questions import Question, Questions
from kafka_assignors.errors import ClusterError
from kafka_assignors.lag.reader import FIRST_OFFSET, ISOLATION_LEVELS, NEXT_OFFSET
from kafka_assignors.net import Address

__all__ = [
    "NO_RECORD",
    "Ask",
    "Progress",
    "ReadTopic",
    "broker_address",
    "brokers_of",
    "known",
    "progress_after",
    "read_offsets_at",
    "read_topics",
]

Progress: TypeAlias = Callable[[str, int, int], object]
"""Called with the kind of the values, the number of answers so far, and the number of all."""

Ask: TypeAlias = Callable[[list[Question], Callable[[int], object]], list[Any]]
"""Asks for offsets, and calls the function with the number of answers. A missing answer is one without partitions."""

_NO_LEADER = -1
_UNKNOWN_TOPIC = 3
_UNKNOWN = -1
NO_RECORD = -2
"""The value in place of an offset if no record of the partition is as new as the time."""
# Partitions that one request for offsets asks for.
_OFFSETS_AT_ONCE = 5_000
# Requests for offsets that one broker has at once.
_BATCHES_AT_ONCE = 4
# No cluster has more brokers; an answer with more is not believed.
_MOST_BROKERS = 10_000


@dataclass(frozen=True, slots=True)
class ReadTopic:
    """A topic that exists.

    Attributes:
        name: its name.
        topic_id: its id, as Kafka prints it; None before Kafka 2.8.
        racks: for each partition the racks of its replicas; None where no broker has a rack.
        begin: for each partition the offset of its first record; -1 where no leader answers with one.
        end: for each partition the offset that its next record gets; -1 where no leader answers with one.
    """

    name: str
    topic_id: str | None
    racks: tuple[frozenset[str], ...] | None
    begin: array[int]
    end: array[int]


def read_topics(
    questions: Questions,
    names: Iterable[str] | None,
    isolation_level: str,
    progress: Progress = lambda *_: None,
    ask: Ask | None = None,
    refused: Callable[[str, int], object] = lambda *_: None,
) -> tuple[str, list[ReadTopic]]:
    """The topics with these names, or all but Kafka's own, with their offsets.

    A topic that does not exist or may not be read is left out: any member may subscribe to any name. If a partition has
    no leader, its offsets are -1; the others are still read.

    Args:
        questions: asks the brokers.
        names: of the topics; None for all.
        isolation_level: the end of a partition: `"read_committed"` stops at the first open transaction.
        progress: called with the progress.
        ask: asks for offsets; by default a broker that does not answer is an error.
        refused: called with each topic that is left out although it may exist, and the error code.

    Returns:
        The cluster's id, and the topics by name.

    Raises:
        ClusterError: the cluster does not answer, or refuses to.
        NetworkError: it cannot be reached.
    """
    cluster, found, brokers = _shapes(questions, names, refused)
    isolation = ISOLATION_LEVELS[isolation_level]
    # The first offsets come first: records that are written or deleted in between make a lag larger, never negative.
    ask = ask or questions.ask_all
    led = _by_leader(
        (at, number, leader) for at, shape in enumerate(found) for number, leader in enumerate(shape.leaders)
    )
    begin = _offsets(ask, found, led, brokers, FIRST_OFFSET, isolation, progress)
    end = _offsets(ask, found, led, brokers, NEXT_OFFSET, isolation, progress)
    return cluster, [
        ReadTopic(shape.name, shape.topic_id, shape.racks, begin[at], end[at])
        for at, shape in sorted(enumerate(found), key=lambda each: each[1].name)
    ]


def read_offsets_at(
    questions: Questions,
    partitions: Mapping[str, Collection[int]],
    times_ms: Iterable[int],
    isolation_level: str,
    progress: Progress = lambda *_: None,
    ask: Ask | None = None,
) -> dict[str, list[array[int]]]:
    """The offsets that partitions had at some times, by the timestamps of their records.

    Args:
        questions: asks the brokers.
        partitions: by topic.
        times_ms: the times, in milliseconds since 1970.
        isolation_level: as in `read_topics`.
        progress: called with the progress.
        ask: as in `read_topics`.

    Returns:
        By topic, for each time an array by partition number: the offset of the first record that is not older,
        `NO_RECORD` where no record is as new, -1 where it was not asked for and where no leader answers.
    """
    _, shapes, brokers = _shapes(questions, partitions)
    wanted = {name: frozenset(numbers) for name, numbers in partitions.items()}
    led = _by_leader(
        (at, number, leader)
        for at, shape in enumerate(shapes)
        for number, leader in enumerate(shape.leaders)
        if number in wanted[shape.name]
    )
    found: dict[str, list[array[int]]] = {shape.name: [] for shape in shapes}
    for time_ms in times_ms:
        offsets = _offsets(
            ask or questions.ask_all, shapes, led, brokers, time_ms, ISOLATION_LEVELS[isolation_level], progress
        )
        for shape, of_topic in zip(shapes, offsets, strict=True):
            found[shape.name].append(of_topic)
    return found


def brokers_of(metadata: Mapping[str, Any]) -> dict[int, Mapping[str, Any]]:
    """The brokers of an answer to Metadata, by their ids.

    Raises:
        ClusterError: there are more than any cluster has.
    """
    if len(metadata["brokers"]) > _MOST_BROKERS:
        raise ClusterError(
            f"the answer to Metadata names {len(metadata['brokers'])} brokers; at most {_MOST_BROKERS} are believed: "
            "check bootstrap.servers"
        )
    return {broker["node_id"]: broker for broker in metadata["brokers"]}


def broker_address(broker: Mapping[str, Any]) -> Address:
    """The address of a broker in an answer."""
    return Address(broker["host"], broker["port"])


def known(offsets: array[int]) -> tuple[int | None, ...]:
    """Offsets with None for those that are not known."""
    return tuple(None if offset < 0 else offset for offset in offsets)


def progress_after(progress: Progress, kind: str, before: int, total: int) -> Callable[[int], object]:
    """A function that reports the answers to one batch of requests; `before` answers came before the batch."""
    return lambda answered: progress(kind, before + answered, total)


@dataclass(frozen=True, slots=True)
class _Shape:
    """A topic without its offsets; `leaders` has the node id of each partition's leader."""

    name: str
    topic_id: str | None
    leaders: array[int]
    racks: tuple[frozenset[str], ...] | None


def _shapes(
    questions: Questions, names: Iterable[str] | None, refused: Callable[[str, int], object] = lambda *_: None
) -> tuple[str, list[_Shape], dict[int, Address]]:
    """The cluster's id, the topics, and the brokers' addresses by id."""
    metadata = questions.ask("Metadata", None if names is None else sorted(names))
    nodes = brokers_of(metadata)
    racks = _Racks({node: broker["rack"] for node, broker in nodes.items() if broker["rack"]})
    shapes: dict[str, _Shape] = {}
    for topic in metadata["topics"]:
        if topic["error_code"] not in (0, _UNKNOWN_TOPIC):
            refused(topic["name"], topic["error_code"])
        if topic["error_code"] != 0 or (names is None and topic["name"].startswith("__")):
            continue
        count = len(topic["partitions"])
        leaders = array("i", [_NO_LEADER]) * count
        sets = [racks.of(())] * count if racks else None
        for partition in topic["partitions"]:
            number = partition["partition_index"]
            if number in range(count):
                leaders[number] = partition["leader_id"]
                if sets is not None:
                    sets[number] = racks.of(partition["replica_nodes"])
        shape = _Shape(topic["name"], topic["topic_id"], leaders, None if sets is None else tuple(sets))
        shapes[shape.name] = shape
    return metadata["cluster_id"] or "", list(shapes.values()), {id: broker_address(each) for id, each in nodes.items()}


def _offsets(
    ask: Ask,
    topics: list[_Shape],
    by_leader: Mapping[int, _Led],
    brokers: Mapping[int, Address],
    timestamp: int,
    isolation: int,
    progress: Progress,
) -> list[array[int]]:
    """The first or the next offsets of each topic, or those at a time."""
    found = [array("q", [_UNKNOWN]) * len(shape.leaders) for shape in topics]
    place = {shape.name: offsets for shape, offsets in zip(topics, found, strict=True)}
    lanes = [(brokers[node], led) for node, led in by_leader.items() if node in brokers]
    kind = {FIRST_OFFSET: "first offsets", NEXT_OFFSET: "next offsets"}.get(timestamp, "offsets by time")
    done, total = 0, sum(-(-len(led.numbers) // _OFFSETS_AT_ONCE) for _, led in lanes)
    waiting = [_requests(topics, leader, led, timestamp, isolation) for leader, led in lanes]
    while batch := [each for lane in waiting for each in itertools.islice(lane, _BATCHES_AT_ONCE)]:
        answers = ask(batch, progress_after(progress, kind, done, total))
        done += len(batch)
        for answer in answers:
            for row in answer["partitions"]:
                offsets = place.get(row["topic"])
                number = row["partition_index"]
                if offsets is not None and row["error_code"] == 0 and number in range(len(offsets)):
                    offsets[number] = row["offset"] if row["offset"] >= 0 else NO_RECORD
    return found


class _Racks:
    """Sets of racks; partitions with the same racks have the same set object."""

    def __init__(self, of_node: Mapping[int, str]) -> None:
        self._of_node = of_node
        self._sets: dict[frozenset[str], frozenset[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._of_node)

    def of(self, nodes: Iterable[int]) -> frozenset[str]:
        found = frozenset(self._of_node[node] for node in nodes if node in self._of_node)
        return self._sets.setdefault(found, found)


@dataclass(frozen=True, slots=True)
class _Led:
    """The partitions that one broker leads: places of topics, and the partition number of each."""

    topics: array[int]
    numbers: array[int]


def _by_leader(partitions: Iterable[tuple[int, int, int]]) -> dict[int, _Led]:
    """The partitions of each leader; they are given as index of the topic, partition number and leader."""
    found: dict[int, _Led] = {}
    for at, number, leader in partitions:
        if leader not in found:
            found[leader] = _Led(array("i"), array("i"))
        found[leader].topics.append(at)
        found[leader].numbers.append(number)
    return found


def _requests(topics: list[_Shape], leader: Address, led: _Led, timestamp: int, isolation: int) -> Iterator[Question]:
    for start in range(0, len(led.numbers), _OFFSETS_AT_ONCE):
        span = slice(start, start + _OFFSETS_AT_ONCE)
        asked: dict[str, list[tuple[int, int, int]]] = {}
        for topic, number in zip(led.topics[span], led.numbers[span], strict=True):
            asked.setdefault(topics[topic].name, []).append((number, timestamp, -1))
        yield Question(leader, "ListOffsets", (list(asked.items()), isolation))
