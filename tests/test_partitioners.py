"""The partitioners as Python programs and their clients use them: KIP-480, KIP-794, round robin, keys."""

import re
import sys
import threading
from collections import Counter
from typing import Any

import confluent_kafka
import kafka.partitioner.default
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_assignors import (
    AdaptivePartitioner,
    DefaultPartitioner,
    KafkaAssignorsError,
    MissingDependencyError,
    OptionError,
    Partitioner,
    PartitionerError,
    PartitionerTypeError,
    RoundRobinPartitioner,
    UniformStickyPartitioner,
    murmur2,
)
from kafka_assignors.partitioners import murmur2_column

VECTORS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
    b"": 275646681,
}

# The choices of seed 42 among 6 partitions.
SEQUENCE_42 = [4, 2, 5, 0, 3, 2, 5, 1, 4, 1, 2, 5]

Ours = DefaultPartitioner | UniformStickyPartitioner | AdaptivePartitioner | RoundRobinPartitioner
ALL: list[type[Ours]] = [
    DefaultPartitioner,
    UniformStickyPartitioner,
    AdaptivePartitioner,
    RoundRobinPartitioner,
]
every = pytest.mark.parametrize("kind", ALL)


class Asked:
    """A cluster of no client in particular: two methods, whose calls it counts."""

    def __init__(self, all_: int | set[int] | None, available: set[int] | None = None) -> None:
        self.all = set(range(all_)) if isinstance(all_, int) else all_
        self.available = self.all if available is None else available
        self.calls = Counter[str]()

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        self.calls["all"] += 1
        return self.all and set(self.all)

    def available_partitions_for_topic(self, topic: str) -> set[int] | None:
        self.calls["available"] += 1
        return self.available and set(self.available)


class Metadata(Asked):
    """A cluster that keeps its metadata as kafka-python and aiokafka do: `update` replaces it, `move` changes it."""

    def __init__(self, all_: int) -> None:
        super().__init__(all_)
        self.update(all_)

    def update(self, all_: int, topic: str = "t") -> None:
        self._partitions = {topic: {partition: {"leader": 1} for partition in range(all_)}}

    def move(self, partition: int, leader: int, topic: str = "t") -> None:
        self._partitions[topic][partition]["leader"] = leader

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        self.calls["all"] += 1
        return set(self._partitions[topic]) if topic in self._partitions else None

    def available_partitions_for_topic(self, topic: str) -> set[int] | None:
        self.calls["available"] += 1
        if topic not in self._partitions:
            return None
        return {partition for partition, data in self._partitions[topic].items() if data["leader"] != -1}


def ask(partitioner: Partitioner, cluster: Any, key: Any = None, value: Any = b"value", topic: str = "t") -> int:
    return partitioner.partition(topic, key, key, value, value, cluster)


def refuses(error: type[Exception], message: str) -> "pytest.RaisesExc[Exception]":
    return pytest.raises(error, match=re.escape(message))


# ---- keys -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "expected"), VECTORS.items())
def test_murmur2_is_javas(key: bytes, expected: int) -> None:
    for buffer in (key, bytearray(key), memoryview(key)):
        assert murmur2(buffer) == expected


@given(st.binary(max_size=60))
def test_murmur2_is_what_the_clients_compute(key: bytes) -> None:
    ours = murmur2(key)
    assert ours & 0xFFFFFFFF == kafka.partitioner.default.murmur2(key)
    assert (ours & 0x7FFFFFFF) % 1000 == confluent_kafka.murmur2(key, 1000)


@given(st.binary(max_size=60), st.integers(1, 40), st.sets(st.integers(0, 39)))
def test_keys_go_where_kafka_python_puts_them(key: bytes, count: int, available: set[int]) -> None:
    cluster: Any = Asked(count, available & set(range(count)))
    cluster.topics = lambda: {"t"}
    theirs = kafka.partitioner.default.DefaultPartitioner()
    expected = theirs.partition("t", key, key, None, None, cluster)
    assert ask(DefaultPartitioner(), cluster, key) == ask(AdaptivePartitioner(), cluster, key) == expected


def test_an_empty_key_is_a_key() -> None:
    partitioner, cluster = DefaultPartitioner(), Asked(10, {4})
    assert [ask(partitioner, cluster, key) for key in (b"", None)] == [1, 4]


def test_what_counts_is_the_serialized_key() -> None:
    partitioner, cluster = DefaultPartitioner(), Asked(10, {4})
    assert partitioner.partition("t", "foobar", None, None, None, cluster) == 4
    assert partitioner.partition("t", None, b"foobar", None, None, cluster) == 6


@every
def test_a_partition_that_the_record_names_wins(kind: type[Ours]) -> None:
    partitioner, cluster = kind(), Asked(3, {0})
    assert partitioner.partition("t", b"k", b"k", None, None, cluster, partition=2) == 2
    assert partitioner.partition("t", None, None, None, None, cluster, partition=1) == 1
    for outside in (-1, 3, 2**40):
        with pytest.raises(PartitionerError, match=f'partition {outside} of topic "t" does not exist; .*: give 0 to 2'):
            partitioner.partition("t", None, None, None, None, cluster, partition=outside)


KEYS = [*VECTORS, None, b"\xff" * 70]
HASHES = [key if key is None else murmur2(key) for key in KEYS]
SLICED = slice(1, -1)

BINARY = [pyarrow.binary(), pyarrow.large_binary(), pyarrow.binary_view()]
STRINGS = [pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()]


@pytest.mark.parametrize("kind", BINARY, ids=str)
def test_a_column_of_any_binary_type(kind: Any) -> None:
    array = pyarrow.array(KEYS, kind)
    for column, hashes in (
        (array, HASHES),
        (array[SLICED], HASHES[SLICED]),
        (pyarrow.chunked_array([array, array[:0], array[SLICED]]), HASHES + HASHES[SLICED]),
        (pyarrow.chunked_array([], kind), []),
        (array[:0], []),
    ):
        hashed = murmur2_column(column)
        assert (hashed.type, hashed.to_pylist()) == (pyarrow.int32(), hashes)


@pytest.mark.parametrize("kind", STRINGS, ids=str)
def test_a_column_of_strings_is_hashed_as_utf8(kind: Any) -> None:
    texts = ["foobar", None, "", "żółć", "€" * 20]
    hashes = [text if text is None else murmur2(text.encode()) for text in texts]
    assert murmur2_column(pyarrow.array(texts, kind)).to_pylist() == hashes


def test_columns_of_other_kinds() -> None:
    sequences: list[Any] = [KEYS, tuple(KEYS), iter(KEYS)]
    for keys in sequences:
        assert murmur2_column(keys).to_pylist() == HASHES
    assert murmur2_column([bytearray(b"abc"), memoryview(b"21")]).to_pylist() == [VECTORS[b"abc"], VECTORS[b"21"]]
    fixed = pyarrow.array([b"abc", None], pyarrow.binary(3))
    assert murmur2_column(fixed).to_pylist() == [VECTORS[b"abc"], None]
    assert murmur2_column(pyarrow.nulls(2)).to_pylist() == [None, None]


@given(st.lists(st.none() | st.binary(max_size=12)))
def test_a_column_is_its_keys(keys: list[bytes | None]) -> None:
    expected = [key if key is None else murmur2(key) for key in keys]
    assert murmur2_column(keys).to_pylist() == expected
    assert murmur2_column(pyarrow.array(keys, pyarrow.binary())).to_pylist() == expected


def test_columns_that_are_none() -> None:
    with refuses(PartitionerTypeError, "keys has type Int64; give the serialized keys, an Arrow array of binary"):
        murmur2_column(pyarrow.array([1, 2]))
    with refuses(PartitionerTypeError, "keys[1] is of type str; give bytes or None"):
        murmur2_column([b"a", "b"])
    for keys in (b"abc", "abc", 7, None):
        with refuses(PartitionerTypeError, f"keys is of type {type(keys).__name__}; give an Arrow array of binary"):
            murmur2_column(keys)


def test_a_column_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with refuses(MissingDependencyError, "columns of keys need pyarrow: pip install kafka-assignors[arrow]"):
        murmur2_column([b"a"])


# ---- sticky ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cluster", [Asked(6), Metadata(6)])
@pytest.mark.parametrize("kind", [DefaultPartitioner, UniformStickyPartitioner])
def test_a_seed_gives_the_same_partitions_on_every_machine(kind: type[DefaultPartitioner], cluster: Asked) -> None:
    partitioner, seen = kind(seed=42), []
    for _ in range(12):
        seen.append(ask(partitioner, cluster))
        assert ask(partitioner, cluster) == seen[-1]
        partitioner.on_new_batch("t", cluster, seen[-1])
    assert seen == SEQUENCE_42


def test_without_a_seed_runs_differ() -> None:
    cluster = Asked(1_000)
    assert len({ask(DefaultPartitioner(), cluster) for _ in range(20)}) > 1


def test_a_stale_notice_does_nothing() -> None:
    partitioner, cluster = DefaultPartitioner(seed=1), Metadata(6)
    sticky = ask(partitioner, cluster)
    cluster.calls.clear()
    for stale in (-1, (sticky + 1) % 6, 77):
        partitioner.on_new_batch("t", cluster, stale)
        assert ask(partitioner, cluster) == sticky
    assert cluster.calls.total() == 0


def test_a_keyed_record_that_opens_a_batch_moves_the_sticky_partition_only_if_it_was_there() -> None:
    partitioner, cluster = DefaultPartitioner(seed=1), Metadata(6)
    sticky = ask(partitioner, cluster)
    elsewhere = next(key for n in range(99) if ask(partitioner, cluster, key := b"%d" % n) != sticky)
    there = next(key for n in range(99) if ask(partitioner, cluster, key := b"%d" % n) == sticky)
    partitioner.on_new_batch("t", cluster, ask(partitioner, cluster, elsewhere))
    assert ask(partitioner, cluster) == sticky
    partitioner.on_new_batch("t", cluster, ask(partitioner, cluster, there))
    assert ask(partitioner, cluster) != sticky


def test_a_partition_without_leader_is_left_at_the_next_batch() -> None:
    partitioner, cluster = DefaultPartitioner(seed=3), Metadata(4)
    sticky = ask(partitioner, cluster)
    cluster.move(sticky, -1)
    assert ask(partitioner, cluster) == sticky
    for _ in range(50):
        partitioner.on_new_batch("t", cluster, ask(partitioner, cluster))
        assert ask(partitioner, cluster) != sticky
    cluster.move(sticky, 2)
    seen = set()
    for _ in range(50):
        partitioner.on_new_batch("t", cluster, ask(partitioner, cluster))
        seen.add(ask(partitioner, cluster))
    assert seen == {0, 1, 2, 3}


def test_one_available_one_only_and_none() -> None:
    partitioner = DefaultPartitioner(seed=3)
    for cluster, only in ((Asked(5, {2}), 2), (Asked(1), 0)):
        for _ in range(5):
            partitioner.on_new_batch("t", cluster, ask(partitioner, cluster))
            assert ask(partitioner, cluster) == only
    nobody, seen = Asked(5, set()), set()
    for _ in range(60):
        seen.add(ask(partitioner, nobody))
        partitioner.on_new_batch("t", nobody, ask(partitioner, nobody))
    assert seen == {0, 1, 2, 3, 4}


def test_topics_have_nothing_to_do_with_each_other() -> None:
    partitioner, cluster = DefaultPartitioner(seed=5), Asked(50)
    first = {topic: ask(partitioner, cluster, topic=topic) for topic in "abcdef"}
    partitioner.on_new_batch("a", cluster, first["a"])
    second = {topic: ask(partitioner, cluster, topic=topic) for topic in "abcdef"}
    assert {topic for topic in first if first[topic] != second[topic]} == {"a"}


def test_uniform_sticky_ignores_keys() -> None:
    partitioner, cluster = UniformStickyPartitioner(seed=1), Metadata(16)
    assert len({ask(partitioner, cluster, b"%d" % n) for n in range(50)}) == 1
    partitioner.on_new_batch("t", cluster, before := ask(partitioner, cluster, b"k"))
    assert ask(partitioner, cluster, b"k") != before


@pytest.mark.parametrize(("kind", "key"), [(DefaultPartitioner, None), (UniformStickyPartitioner, b"%d")])
def test_over_time_records_spread_evenly(kind: type[DefaultPartitioner], key: bytes | None) -> None:
    partitioner, cluster, counts = kind(seed=11), Metadata(16), Counter[int]()
    for n in range(16_000):
        counts[partition := ask(partitioner, cluster, key and key % n)] += 1
        partitioner.on_new_batch("t", cluster, partition)
    chi_squared = sum((counts[partition] - 1_000) ** 2 / 1_000 for partition in range(16))
    assert chi_squared < 37.7, "15 degrees of freedom; more happens once in 1,000 seeds, and the seed is fixed"


def test_threads_that_race_agree() -> None:
    """All tell of the same batch at once; whoever wins, all go on with one partition, and it is another one."""
    partitioner, cluster, threads, rounds = DefaultPartitioner(), Metadata(64), 4, 200
    barrier, histories = threading.Barrier(threads), [[ask(partitioner, cluster)] for _ in range(threads)]

    def work(history: list[int]) -> None:
        for _ in range(rounds):
            barrier.wait()
            partitioner.on_new_batch("t", cluster, history[-1])
            history.append(ask(partitioner, cluster))
            barrier.wait()

    workers = [threading.Thread(target=work, args=(history,)) for history in histories]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(history == histories[0] for history in histories)
    assert all(before != after for before, after in zip(histories[0], histories[0][1:], strict=False))


# ---- metadata -------------------------------------------------------------------------------------------------------


@every
def test_a_clients_metadata_is_read_when_it_is_replaced(kind: type[Ours]) -> None:
    partitioner, cluster = kind(), Metadata(4)
    for _ in range(100):
        ask(partitioner, cluster)
        ask(partitioner, cluster, b"key")
    assert cluster.calls["all"] == 1
    cluster.update(4)
    ask(partitioner, cluster)
    assert cluster.calls["all"] == 2
    cluster.update(1)
    assert ask(partitioner, cluster) == ask(partitioner, cluster, b"key") == 0
    # In place, as no client does: a partition more is seen too.
    cluster._partitions["t"][1] = {"leader": 1}
    before = cluster.calls["all"]
    ask(partitioner, cluster)
    assert cluster.calls["all"] == before + 1


@every
def test_any_other_cluster_is_asked_each_time(kind: type[Ours]) -> None:
    partitioner, cluster = kind(), Asked(8)
    ask(partitioner, cluster)
    cluster.all = cluster.available = {5}
    assert ask(partitioner, cluster) == ask(partitioner, cluster, b"key") == 5
    cluster.all = cluster.available = None
    with pytest.raises(PartitionerError, match='topic "t" is not in the cluster'):
        ask(partitioner, cluster)


@every
def test_two_clusters_may_share_a_partitioner(kind: type[Ours]) -> None:
    partitioner, small, large = kind(), Metadata(2), Metadata(50)
    for n in range(50):
        assert ask(partitioner, small, b"%d" % n) < 2
        assert ask(partitioner, large, b"%d" % n) < 50


# ---- adaptive -------------------------------------------------------------------------------------------------------


def filled(partitioner: AdaptivePartitioner, cluster: Asked, rounds: int) -> Counter[int]:
    """How often each partition was chosen, each left after twice its bytes."""
    return Counter(ask(partitioner, cluster, value=b"x" * 40) for _ in range(rounds))


def test_adaptive_goes_by_bytes() -> None:
    partitioner, cluster = AdaptivePartitioner(batch_size=1_000, seed=2), Metadata(100)
    # 100 bytes each with what a batch adds: the 21st record finds 2,000 of them.
    seen = [ask(partitioner, cluster, value=b"x" * 92) for _ in range(60)]
    assert [len(set(seen[at : at + 20])) for at in (0, 20, 40)] == [1, 1, 1]
    assert len({seen[0], seen[20], seen[40]}) == 3


def test_adaptive_waits_for_the_batch() -> None:
    partitioner, cluster = AdaptivePartitioner(batch_size=1_000, seed=2), Metadata(100)
    first = ask(partitioner, cluster, value=b"x" * 892)
    partitioner.on_new_batch("t", cluster, first)
    assert ask(partitioner, cluster, value=b"x" * 892) == first, "the batch is opened for this record, not left"
    assert ask(partitioner, cluster, value=b"x" * 92) == first
    partitioner.on_new_batch("t", cluster, first)
    assert ask(partitioner, cluster, value=b"x" * 92) == first, "960 bytes are not 1,000"
    assert ask(partitioner, cluster) == first, "more than 1,000, but the batch is not finished"
    partitioner.on_new_batch("t", cluster, first)
    assert ask(partitioner, cluster) != first


def test_adaptive_prefers_short_queues() -> None:
    partitioner, cluster = AdaptivePartitioner(batch_size=0, seed=4), Metadata(5)
    partitioner.update_load("t", {0: 5, 2: 3, 4: 1})
    counts = filled(partitioner, cluster, 21_000)
    chi_squared = sum((counts[p] - 1_000 * w) ** 2 / (1_000 * w) for p, w in enumerate((1, 6, 3, 6, 5)))
    assert chi_squared < 18.5, "4 degrees of freedom; more happens once in 1,000 seeds, and the seed is fixed"
    partitioner.update_load("t", [0, 0, 0, 0, 0], unavailable=[1, 3])
    assert set(filled(partitioner, cluster, 200)) == {0, 2, 4}
    cluster.update(5)
    cluster.move(0, -1)
    assert set(filled(partitioner, cluster, 200)) == {2, 4}
    partitioner.update_load("t", (), range(5))
    assert set(filled(partitioner, cluster, 200)) == {1, 2, 3, 4}, "none is left, so all with a leader"
    partitioner.update_load("t", None)
    assert set(filled(partitioner, cluster, 200)) == {1, 2, 3, 4}


def test_adaptive_hashes_keys_unless_told_not_to() -> None:
    cluster = Metadata(10)
    keyed, ignoring = AdaptivePartitioner(seed=1), AdaptivePartitioner(ignore_keys=True, seed=1)
    keys = [b"%d" % n for n in range(50)]
    assert [ask(keyed, cluster, key) for key in keys] == [(murmur2(key) & 0x7FFFFFFF) % 10 for key in keys]
    assert len({ask(ignoring, cluster, key) for key in keys}) == 1


# ---- round robin ----------------------------------------------------------------------------------------------------


def test_round_robin_takes_each_in_turn() -> None:
    partitioner, cluster = RoundRobinPartitioner(), Metadata(4)
    assert [ask(partitioner, cluster, key) for key in (None, b"k", b"", None, None)] == [0, 1, 2, 3, 0]
    assert ask(partitioner, Asked(4, {2}), topic="u") == 2


def test_round_robin_skips_nothing_when_a_client_asks_twice() -> None:
    partitioner, cluster, sent = RoundRobinPartitioner(), Metadata(4), []
    for _ in range(8):
        partitioner.on_new_batch("t", cluster, ask(partitioner, cluster))
        sent.append(ask(partitioner, cluster))
    assert sent == [0, 1, 2, 3, 0, 1, 2, 3]


def test_round_robin_repeats_for_the_thread_that_was_told() -> None:
    partitioner, cluster, others = RoundRobinPartitioner(), Metadata(4), []
    partitioner.on_new_batch("t", cluster, ask(partitioner, cluster))
    thread = threading.Thread(target=lambda: others.append(ask(partitioner, cluster)))
    thread.start()
    thread.join()
    assert (others, ask(partitioner, cluster), ask(partitioner, cluster)) == ([1], 0, 2)


def test_round_robin_sees_leaders_that_moved_within_a_round() -> None:
    partitioner, cluster = RoundRobinPartitioner(), Metadata(4)
    ask(partitioner, cluster)
    cluster.move(2, -1)
    for _ in range(4):
        partitioner.on_new_batch("t", cluster, ask(partitioner, cluster))
        ask(partitioner, cluster)
    assert {ask(partitioner, cluster) for _ in range(8)} == {0, 1, 3}


# ---- one's own ------------------------------------------------------------------------------------------------------


class Own(Partitioner):
    def partition(self, topic: str, key: object, *_: Any) -> int:
        return 7


def test_a_partitioner_of_ones_own() -> None:
    assert ask(Own(), None) == 7
    assert [kind.__mro__.index(Partitioner) > 0 for kind in ALL] == [True] * 4
    Own().on_new_batch("t", Asked(1), 0)
    with pytest.raises(TypeError, match="abstract"):
        Partitioner()  # type: ignore[abstract]


@every
def test_ours_may_be_subclassed(kind: type[Ours]) -> None:
    class Mine(kind):  # type: ignore[misc,valid-type]
        def __init__(self, region: str, *, strict: bool = False) -> None:
            super().__init__()
            self.region = region

        def partition(self, topic: str, key: object, *rest: Any) -> int:
            return 0 if key == self.region else int(super().partition(topic, key, *rest))

    mine = Mine("eu", strict=True)
    assert mine.partition("t", "eu", None, None, None, None) == 0
    assert ask(mine, Asked(5, {3})) in {3, 4}
    mine.on_new_batch("t", Asked(5), 3)


# ---- bad input ------------------------------------------------------------------------------------------------------


@every
def test_topics_without_partitions(kind: type[Ours]) -> None:
    partitioner: Any = kind()
    for key in (None, b"k"):
        with refuses(PartitionerError, 'topic "t" is not in the cluster\'s metadata; create it, check its name'):
            ask(partitioner, Asked(None), key)
        with refuses(PartitionerError, 'topic "t" has 0 partitions in the cluster\'s metadata'):
            ask(partitioner, Asked(set()), key)


@every
def test_a_new_batch_of_a_topic_that_has_gone_is_no_error(kind: type[Ours]) -> None:
    """A producer calls it on its way to send, where nobody expects an error of a partitioner."""
    partitioner: Any = kind()
    partitioner.on_new_batch("x", Metadata(3), 0)
    left = ask(partitioner, Asked(3))
    for gone in (Asked(None), Asked(set())):
        partitioner.on_new_batch("t", gone, left)
    # It comes back, and goes on.
    partitioner.on_new_batch("t", Asked(3), left)
    assert ask(partitioner, Asked(3)) in {0, 1, 2}


@every
def test_arguments_of_the_wrong_type(kind: type[Ours]) -> None:
    partitioner: Any = kind()
    with refuses(PartitionerTypeError, "topic is of type bytes; give a string"):
        ask(partitioner, Asked(3), topic=b"t")  # type: ignore[arg-type]
    with refuses(PartitionerError, "topic cannot be represented"):
        ask(partitioner, Asked(3), topic="\ud800")
    with refuses(PartitionerTypeError, "cluster is of type NoneType; give an object with partitions_for_topic(topic)"):
        ask(partitioner, None)
    with refuses(PartitionerTypeError, "prev_partition is of type str; give an integer"):
        partitioner.on_new_batch("t", Asked(3), "0")
    with refuses(PartitionerTypeError, "partition is of type str; give an integer"):
        partitioner.partition("t", None, None, None, None, Asked(3), partition="0")
    with refuses(PartitionerError, "partition cannot be represented"):
        partitioner.partition("t", None, None, None, None, Asked(3), partition=2**70)
    odd: Any = {"0"}
    with refuses(PartitionerTypeError, "a partition in what cluster.partitions_for_topic gave is of type str"):
        ask(partitioner, Asked(odd))
    with refuses(PartitionerError, "what cluster.partitions_for_topic gave has partition -4; partitions are numbered"):
        ask(partitioner, Asked({-4}))
    with pytest.raises(TypeError, match="argument"):
        partitioner.partition("t")


@pytest.mark.parametrize("kind", [DefaultPartitioner, AdaptivePartitioner])
def test_keys_and_values_of_the_wrong_type(kind: type[DefaultPartitioner]) -> None:
    for key in ("text", 7, ["k"]):
        with refuses(PartitionerTypeError, f"serialized_key is of type {type(key).__name__}; give bytes"):
            ask(kind(), Asked(3), key)
    with refuses(PartitionerTypeError, "serialized_value is of type str; give bytes"):
        ask(AdaptivePartitioner(), Asked(3), value="text")
    with refuses(PartitionerTypeError, "key is of type str; give bytes"):
        murmur2("text")  # type: ignore[arg-type]


def test_a_load_that_is_none() -> None:
    update: Any = AdaptivePartitioner().update_load
    with refuses(PartitionerError, "queue_lengths[1] is -2; give 0 to 2147483647"):
        update("t", [0, -2])
    with refuses(PartitionerError, "queue_lengths[3] is 2147483648; give 0 to 2147483647"):
        update("t", {3: 2**31})
    with refuses(PartitionerError, "a partition in queue_lengths cannot be represented"):
        update("t", {2**80: 1})
    with refuses(PartitionerError, "a partition in unavailable is -1; give 0 to"):
        update("t", {}, [-1])
    with refuses(PartitionerTypeError, "queue_lengths[0] is of type float; give an integer"):
        update("t", [0.5])
    with refuses(PartitionerTypeError, "queue_lengths is of type int; give a mapping of partition to batches, or a"):
        update("t", 7)
    with refuses(PartitionerTypeError, "queue_lengths is of type str; give a mapping"):
        update("t", "12")
    with refuses(PartitionerTypeError, "unavailable is of type int; give the numbers of partitions"):
        update("t", {}, 3)
    with refuses(PartitionerError, "unavailable is given, but queue_lengths is None"):
        update("t", None, [1])
    with refuses(PartitionerTypeError, "topic is of type int; give a string"):
        update(3, {})


def test_a_load_of_partitions_that_there_are_not_does_no_harm() -> None:
    partitioner, cluster = AdaptivePartitioner(batch_size=0, seed=1), Metadata(3)
    partitioner.update_load("t", {2**31 - 1: 2**31 - 1, 1: 1}, [77])
    assert set(filled(partitioner, cluster, 300)) == {0, 1, 2}


def test_options() -> None:
    anything: Any = AdaptivePartitioner
    for size in (-1, 2**31, "16384", 1.5, True):
        with refuses(OptionError, f"batch_size is {size!r}; give the producer's batch size in bytes"):
            anything(batch_size=size)
    with refuses(OptionError, "ignore_keys is 'no'; give True or False"):
        anything(ignore_keys="no")
    for kind in (AdaptivePartitioner, DefaultPartitioner, UniformStickyPartitioner):
        with refuses(OptionError, "seed is 'x'; give an integer"):
            kind(seed="x")  # type: ignore[arg-type]
        kind(seed=-(2**90))


def test_errors_are_what_callers_expect() -> None:
    with pytest.raises(ValueError, match="not in the cluster"):
        ask(DefaultPartitioner(), Asked(None))
    with pytest.raises(TypeError, match="give bytes"):
        ask(DefaultPartitioner(), Asked(3), "text")
    with pytest.raises(KafkaAssignorsError):
        ask(DefaultPartitioner(), Asked(None))


def test_what_a_cluster_raises_arrives() -> None:
    class Broken(Asked):
        def partitions_for_topic(self, topic: str) -> set[int] | None:
            raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        ask(DefaultPartitioner(), Broken(3))
