"""The limits of the plug-ins in docs/clients.md: which promises hold under a client's own coordinator."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors.clients import aiokafka, kafka_python
from kafka_assignors.embedded import EmbeddedKafka
from support.broker import Kafka
from support.confluent_group import fill
from support.live import AiokafkaLive, Crew, KafkaPythonLive, LiveMember, all_of, wait

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_assignors.clients import RebalanceReport

# With these values a metadata request is nearly always under way, also while the new leader plans for the first time.
METADATA_AGE_MS, METADATA_DELAY = 100, 0.3


@pytest.fixture
def embedded() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as kafka:
        yield kafka


@pytest.fixture
def crew(embedded: EmbeddedKafka) -> Iterator[Crew]:
    made = Crew(Kafka(embedded.bootstrap_servers, "embedded"))
    yield made
    for member in made.members:
        member.leave()


def hold(members: list[LiveMember], **topics: int) -> bool:
    """Whether the members hold all partitions of these topics, each once, in one generation."""
    shares = [member.held for member in members]
    generations = {member.report and member.report.generation for member in members}
    everything = all_of(**topics)
    return (
        frozenset().union(*shares) == everything and sum(map(len, shares)) == len(everything) and len(generations) == 1
    )


@pytest.mark.parametrize(
    ("kind", "strategy"),
    [
        (KafkaPythonLive, kafka_python.StickyAssignor),
        (KafkaPythonLive, kafka_python.CooperativeStickyAssignor),
        (AiokafkaLive, aiokafka.StickyAssignor),
    ],
    ids=["kafka-python, eager", "kafka-python, cooperative", "aiokafka"],
)
def test_kip_54s_second_example(crew: Crew, embedded: EmbeddedKafka, kind: Any, strategy: Any) -> None:
    """C0 leaves. C1 then leads without metadata of t2. C2 keeps t2 all the same."""
    t0, t1, t2 = crew.topic(1), crew.topic(2), crew.topic(3)
    counts = {t0: 1, t1: 2, t2: 3}
    reports: list[RebalanceReport] = []
    c0 = crew.hire((kind, strategy), t0, metadata_max_age_ms=METADATA_AGE_MS)
    wait(lambda: hold([c0], **{t0: 1}), "C0 has its topic", crew.members)
    c1 = crew.hire((kind, strategy), t0, t1, metadata_max_age_ms=METADATA_AGE_MS)
    wait(lambda: hold([c0, c1], **{t0: 1, t1: 2}), "C1 has its topic", crew.members)
    noting = (kind, lambda: strategy(on_rebalance=reports.append))
    c2 = crew.hire(noting, t0, t1, t2, metadata_max_age_ms=METADATA_AGE_MS)
    wait(lambda: hold(crew.members, **counts), "C2 has its topic", crew.members)
    assert (c0.held, c1.held, c2.held) == (all_of(**{t0: 1}), all_of(**{t1: 2}), all_of(**{t2: 3}))
    embedded.inject_fault("Metadata", delay=METADATA_DELAY, times=1_000)
    rebalances = len(reports)
    crew.leave(c0)
    wait(lambda: c1.held == all_of(**{t0: 1, t1: 2}) and hold([c1, c2], **counts), "C1 has t0", crew.members)
    assert crew.leader() is c1
    assert c2.held == all_of(**{t2: 3})
    assert [report.lost.get(t2) for report in reports[rebalances:]] == [None] * (len(reports) - rebalances)


def read_twice(records: Counter[tuple[int, int]]) -> set[int]:
    return {partition for (partition, _), times in records.items() if times > 1}


@pytest.mark.parametrize("ours", [False, True], ids=["plug-in", "our consumer"])
def test_what_aiokafka_reads_again_is_in_the_report(embedded: EmbeddedKafka, ours: bool) -> None:
    """Without commits a consumer with the plug-in reads kept partitions again, and reports it. Ours does not."""
    import asyncio

    import aiokafka as client

    embedded.create_topic("orders", 4)
    fill(Kafka(embedded.bootstrap_servers, "embedded"), "orders", 4, 10)
    reports: list[RebalanceReport] = []

    def make(**callback: Any) -> Any:
        settings: dict[str, Any] = {
            "bootstrap_servers": embedded.bootstrap_servers,
            "group_id": "g",
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "heartbeat_interval_ms": 200,
        }
        if ours:
            return aiokafka.AIOKafkaConsumer("orders", partition_assignment_strategy="sticky", **settings, **callback)
        strategy = aiokafka.StickyAssignor(**callback)
        return client.AIOKafkaConsumer("orders", partition_assignment_strategy=[strategy], **settings)

    read: Counter[tuple[int, int]] = Counter()

    async def until_idle(consumer: Any) -> None:
        while found := await consumer.getmany(timeout_ms=1_000):
            read.update((record.partition, record.offset) for records in found.values() for record in records)

    async def main() -> None:
        async with make(on_rebalance=reports.append) as first:
            await until_idle(first)
            assert (len(read), read_twice(read)) == (40, set())
            async with make():
                await until_idle(first)
                assert len(first.assignment()) == 2

    asyncio.run(main())
    kept = reports[-1].kept
    assert len(kept["orders"]) == 2
    assert reports[-1].rewound == ({} if ours else kept)
    assert read_twice(read) == set(reports[-1].rewound.get("orders", ()))
