"""The partitioners in Python programs and in their clients: KIP-480, KIP-794 and round robin."""

import threading
from collections import Counter
from typing import Any

import pytest

from kafka_assignors import (
    AdaptivePartitioner,
    DefaultPartitioner,
    Partitioner,
    PartitionerError,
    PartitionerTypeError,
    RoundRobinPartitioner,
    UniformStickyPartitioner,
    murmur2,
)
from kafka_assignors.partitioners import register_cluster_type
from support.partitioning import ALL, Asked, Metadata, Ours, ask, every, filled

# The choices of seed 42 among 6 partitions.
SEQUENCE_42 = [4, 2, 5, 0, 3, 2, 5, 1, 4, 1, 2, 5]


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
    """All threads report the same batch at once. All must then get the same partition, and another one than before."""
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
    # No client changes the dictionary in place, as here; the new partition is found even then.
    cluster.topics["t"][1] = {"leader": 1}
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
def test_a_type_is_registered_without_its_subclasses(kind: type[Ours]) -> None:
    class Plain(Metadata):
        """Its base class is registered."""

    class Renamed(Metadata):
        """Has the dictionary in another attribute."""

        @property
        def mine(self) -> dict[str, dict[int, dict[str, int]]]:
            return self.topics

    def calls(cluster: Metadata) -> int:
        partitioner = kind()
        for _ in range(10):
            ask(partitioner, cluster)
        return cluster.calls["all"]

    assert calls(Plain(4)) == calls(Renamed(4)) == 10
    register_cluster_type(Renamed, "nothing")
    assert calls(Renamed(4)) == 10, "no such attribute"
    register_cluster_type(Renamed, "mine")
    assert calls(Renamed(4)) == 1
    assert calls(Plain(4)) == 10
    register_cluster_type(Renamed, "calls")
    assert calls(Renamed(4)) == 10, "a Counter has no dictionary of partitions"


def test_a_registration_from_an_attribute_and_from_other_threads_waits_for_nobody() -> None:
    """The lock of the registered types is released before the attribute is read: a property may register a type."""

    class Late(Metadata):
        @property
        def mine(self) -> dict[str, dict[int, dict[str, int]]]:
            register_cluster_type(type("Other", (), {}), "x")
            thread = threading.Thread(target=register_cluster_type, args=(Late, "mine"))
            thread.start()
            thread.join(60)
            assert not thread.is_alive()
            return self.topics

    register_cluster_type(Late, "mine")
    cluster, partitioner = Late(4), DefaultPartitioner(seed=1)
    assert len({ask(partitioner, cluster) for _ in range(5)}) == 1
    assert cluster.calls["all"] == 1


def test_what_cannot_be_registered() -> None:
    register: Any = register_cluster_type
    with pytest.raises(PartitionerTypeError, match="cluster_type is of type Asked; give a class"):
        register(Asked(3), "topics")
    with pytest.raises(PartitionerTypeError, match="attribute is of type int; give an attribute's name"):
        register(Asked, 3)
    with pytest.raises(PartitionerError, match="attribute cannot be represented"):
        register(Asked, "\ud800")
    cluster = Asked(3)
    for _ in range(5):
        ask(DefaultPartitioner(), cluster)
    assert cluster.calls["all"] == 5


@every
def test_two_clusters_may_share_a_partitioner(kind: type[Ours]) -> None:
    partitioner, small, large = kind(), Metadata(2), Metadata(50)
    for n in range(50):
        assert ask(partitioner, small, b"%d" % n) < 2
        assert ask(partitioner, large, b"%d" % n) < 50


# ---- adaptive -------------------------------------------------------------------------------------------------------


def test_adaptive_goes_by_bytes() -> None:
    partitioner, cluster = AdaptivePartitioner(batch_size=1_000, seed=2), Metadata(100)
    # Each record takes 100 bytes with the overhead of a batch. The 21st record changes the partition, which has 2,000
    # bytes: twice `batch_size`.
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


# ---- the user's own -------------------------------------------------------------------------------------------------


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
