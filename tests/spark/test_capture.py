"""`capture` on a real broker, while consumers of four clients join and leave: its tables equal the clients' logs."""

from __future__ import annotations

import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest

from kafka_assignors.errors import CaptureError, TableError
from kafka_assignors.report.page import write
from kafka_assignors.spark.capture import capture
from kafka_assignors.spark.captured import captured, with_matched_topics
from kafka_assignors.spark.decoding import DECODED, decode
from kafka_assignors.spark.lag import lags, offset_snapshots
from kafka_assignors.spark.offsets_source import DEPRECATED_OFFSETS
from kafka_assignors.spark.replay import replay
from kafka_assignors.spark.report import report
from kafka_assignors.spark.snapshot import snapshot, topic_names
from support.broker import OFFSETS_TOPIC, unique
from support.capturing import Capturing
from support.confluent_group import fill
from support.jars import DEFAULT_VERSION
from support.members import AiokafkaMember, ConfluentMember, JavaMember, KafkaPythonMember

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from support.broker import ApacheKafka
    from support.fixtures import StartMember
    from support.trace import Trace

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(900)]

KINDS: dict[str, Callable[..., Any]] = {
    "java": JavaMember,
    "kafka": KafkaPythonMember,
    "aio": AiokafkaMember,
    "confluent": ConfluentMember,
}
PARTITIONS = 8


def shares(table: DataFrame, group: str) -> dict[int, dict[str, set[tuple[str, int]]]]:
    """The rows of `observed_assignments` or `membership_events`, by generation and member id."""
    found: dict[int, dict[str, set[tuple[str, int]]]] = defaultdict(lambda: defaultdict(set))
    for row in table.where(table.group_id == group).collect():
        for number in row.partitions:
            assert (row.topic, number) not in found[row.generation][row.member_id]
            found[row.generation][row.member_id].add((row.topic, number))
    return found


def records(spark: SparkSession, address: str, partitions: int) -> DataFrame:
    """The offsets topic, read as a batch: a dump."""
    own = spark.newSession()
    own.conf.set(DEPRECATED_OFFSETS, "true")
    numbers = ",".join(map(str, range(partitions)))
    return (
        own.read.format("kafka")
        .option("kafka.bootstrap.servers", address)
        .option("assign", f'{{"{OFFSETS_TOPIC}": [{numbers}]}}')
        .option("kafka.isolation.level", "read_committed")
        .option("kafka.fetch.max.wait.ms", "10")
        .load()
    )


def test_tables_are_what_the_clients_logged(
    spark: SparkSession,
    start_kafka: Callable[..., ApacheKafka],
    start_member: StartMember,
    trace: Trace,
    tmp_path: Path,
) -> None:
    kafka = start_kafka(offsets_topic_num_partitions=3)
    topic, group = kafka.create_topic("orders", PARTITIONS), "billing"
    partitions = {(topic, number) for number in range(PARTITIONS)}
    fill(kafka, topic, PARTITIONS, 50)
    out = tmp_path / "capture"
    members: dict[str, Any] = {}
    with ExitStack() as running:

        def start() -> Capturing:
            started = Capturing(kafka, out, tmp_path / "capture.log", "--cluster", "c")
            running.callback(started.kill)
            return started

        def settled(*names: str) -> None:
            for name in names:
                if name not in members:
                    kind = KINDS[name.partition("-")[0]]
                    members[name] = start_member(kind, name, kafka, group)
                    members[name].subscribe(topic)
            trace.settle(names, partitions)

        first = start()
        settled("java-1")
        settled("java-1", "confluent-1")
        settled("java-1", "confluent-1", "kafka-1")
        first.wait_until(lambda: sum(each["rows"]["membership_events"] for each in first.batches.values()), "an event")
        # A member is killed during rebalances.
        members["aio-1"] = start_member(AiokafkaMember, "aio-1", kafka, group)
        members["aio-1"].subscribe(topic)
        first.kill()
        before = first.batches
        settled("java-1", "confluent-1", "kafka-1", "aio-1")
        members["java-1"].kill()
        second = start()
        settled("confluent-1", "kafka-1", "aio-1")
        snapshot({"bootstrap.servers": kafka.bootstrap_servers}, tmp_path / "early")
        members["confluent-1"].commit()
        members["kafka-1"].close()
        settled("confluent-1", "aio-1")
        second.wait_until(lambda: len(second.batches) > len(before), "a batch after the restart")
        members["aio-1"].commit()
        for name in ("confluent-1", "aio-1"):
            members[name].close()
        assert second.end() == 0, second.log
    # The records after the last batch. A second call must find no more.
    settings = {"bootstrap.servers": kafka.bootstrap_servers}
    for _ in range(2):
        last = capture(spark, settings, str(out), every=None, cluster="c")
        assert last.wait()
    tables = {name: captured(spark, str(out), name).persist() for name in DECODED}

    # Every record once, as in a dump.
    dump = records(spark, kafka.bootstrap_servers, 3).persist()
    decoded = decode(dump, cluster="c")
    for name, table in tables.items():
        own = sorted(map(str, table.collect()))
        assert own == sorted(map(str, decoded[name].select(table.columns).collect())), name
    assert tables["offset_commits"].count() > 0

    # The tables equal the members' logs in each generation.
    logged: dict[int, dict[str, set[tuple[str, int]]]] = defaultdict(dict)
    for event in trace.events:
        if event.kind == "synced":
            logged[event.generation][event.fields["member"]] = set(event.partitions)
    observed = shares(tables["observed_assignments"], group)
    present: dict[int, set[str]] = defaultdict(set)
    for row in tables["membership_events"].where("member_id is not null").collect():
        assert (row.cluster, row.group_id, row.kind, row.protocol) == ("c", group, "snapshot", "sticky")
        assert row.topics == [topic]
        present[row.generation].add(row.member_id)
    assert len(logged) >= 5
    for generation, of_members in logged.items():
        assert of_members.keys() <= present[generation]
        for member_id, share in of_members.items():
            assert observed[generation].get(member_id, set()) == share, (generation, member_id)
        if of_members.keys() == present[generation]:
            assert set().union(*of_members.values()) == partitions
    assert any(
        of_members.keys() == present[generation] and len(of_members) == 4 for generation, of_members in logged.items()
    )

    # A claim of our members and Java's equals their assignment in the generation that they name.
    claims = 0
    for row in tables["membership_events"].where("claimed is not null").collect():
        held = {(each.topic, number) for each in row.claimed for number in each.partitions}
        # aiokafka gets no generation from a leader in Java.
        if row.claimed_generation is None:
            continue
        assert held == observed[row.claimed_generation].get(row.member_id, set())
        claims += bool(held)
    assert claims >= 5

    # The captured tables are the input of the pipeline.
    counts = spark.read.parquet(str(tmp_path / "early" / "topic_partitions")).drop("ts", "cluster")
    counts = counts.selectExpr("'c' as cluster", "topic", "0L as ts", "partition_count")
    rebalances = replay(
        tables["membership_events"], counts, observed=tables["observed_assignments"], strategies=["sticky", "range"]
    ).persist()
    replayed = rebalances.collect()
    assert {row.strategy for row in replayed} == {"sticky", "range", "observed"}
    assert [row for row in replayed if row.error is not None] == []
    assert all(row.moved == row.moved_needed for row in replayed if row.strategy == "sticky")
    assert sum(row.moved for row in replayed if row.strategy == "observed") > 0

    # The lag at the end equals the one from the broker's offsets.
    snapshot(settings, tmp_path / "late", cluster="c")
    ends = spark.read.parquet(str(tmp_path / "late" / "offsets"))
    lagging = (
        lags(offset_snapshots(tables["offset_commits"], ends), "earliest").where(f"group_id = '{group}'").persist()
    )
    found = lagging.collect()
    asked = [confluent_kafka.TopicPartition(topic, number) for number in range(PARTITIONS)]
    reader = confluent_kafka.Consumer({**settings, "group.id": group, "log_level": 0})
    try:
        committed = {each.partition: each.offset for each in reader.committed(asked, timeout=30)}
    finally:
        reader.close()
    assert {row.partition: row.committed for row in found} == {
        number: offset if offset >= 0 else None for number, offset in committed.items()
    }
    assert {row.partition: row.lag for row in found} == {
        number: 50 - max(0, offset) for number, offset in committed.items()
    }

    # The page has the same figures.
    told = report(rebalances, events=tables["membership_events"], lags=lagging)
    for total in told.strategies:
        assert total.moved == sum(row.moved for row in replayed if row.strategy == total.strategy), total.strategy
    assert told.groups == len({row.group_id for row in replayed})
    html, _ = write(told, tmp_path / "page")
    assert group in Path(html).read_text()


def test_kip_848_groups_and_their_topic_names(
    spark: SparkSession, start_kafka: Callable[..., ApacheKafka], tmp_path: Path
) -> None:
    # Always the default release: 3.9 gives a member of the new protocol no partitions.
    kafka = start_kafka(version=DEFAULT_VERSION, offsets_topic_num_partitions=1)
    settings = {"bootstrap.servers": kafka.bootstrap_servers}
    topic, group = kafka.create_topic(unique("t"), 4), "next"
    fill(kafka, topic, 4, 5)
    consumers = [
        confluent_kafka.Consumer(
            {
                **settings,
                "group.id": group,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        for _ in range(2)
    ]
    try:
        consumers[0].subscribe([f"^{topic}.*"])
        while len(consumers[0].assignment()) < 4:
            consumers[0].poll(0.1)
        consumers[1].subscribe([topic])
        while [len(each.assignment()) for each in consumers] != [2, 2]:
            for each in consumers:
                each.poll(0.05)
        held = {each.memberid(): sorted(part.partition for part in each.assignment()) for each in consumers}
        mine = [confluent_kafka.TopicPartition(topic, each.partition, 1) for each in consumers[0].assignment()]
        consumers[0].commit(offsets=mine, asynchronous=False)
    finally:
        for each in consumers:
            each.close()
    snapshot(settings, tmp_path / "snapshots")
    running = capture(
        spark, settings, str(tmp_path / "out"), every=None, names=lambda: topic_names(tmp_path / "snapshots")
    )
    assert running.wait()
    assert sum(each["rows"]["offset_commits"] for each in running.batches().values()) >= 2
    tables = {name: captured(spark, str(tmp_path / "out"), name) for name in DECODED}
    cluster = running.topic.cluster
    events = with_matched_topics(tables["membership_events"], tables["topic_matches"]).orderBy("seq").collect()
    joined = {row.member_id for row in events if row.kind == "join"}
    assert joined == set(held) == {row.member_id for row in events if row.kind == "leave"}
    assert {row.cluster for row in events} == {cluster}
    named = {member: [row for row in events if row.member_id == member and topic in row.topics] for member in held}
    assert all(named.values())
    assert any(
        row.topic_regex is not None and row.kind in ("subscribe", "join") for rows in named.values() for row in rows
    )
    current: dict[str, list[int]] = {}
    for row in tables["observed_assignments"].where("source = 'current'").orderBy("src_offset").collect():
        assert row.topic == topic
        current[row.member_id] = sorted(row.partitions)
    assert current == held
    targets = tables["observed_assignments"].where("source = 'target'").collect()
    assert targets
    assert all(row.generation is not None for row in targets)
    reasons = {row.reason for row in tables["rejected_records"].collect()}
    assert reasons <= {"tombstone"}


def test_catching_up_with_a_cluster_that_never_pauses(
    spark: SparkSession, start_kafka: Callable[..., ApacheKafka], tmp_path: Path
) -> None:
    """Each trigger finds new commits. The end of the stream is never reached; the records at the call are."""
    kafka = start_kafka(offsets_topic_num_partitions=1)
    settings = {"bootstrap.servers": kafka.bootstrap_servers}
    topic = kafka.create_topic("orders", 1)
    consumer = confluent_kafka.Consumer({**settings, "group.id": "busy", "log_level": 0})
    ended = threading.Event()
    committed = 0

    def commit() -> None:
        nonlocal committed
        while not ended.is_set():
            offsets = [confluent_kafka.TopicPartition(topic, 0, committed + 1)]
            consumer.commit(offsets=offsets, asynchronous=False)
            committed += 1

    with ThreadPoolExecutor(1) as beside, ExitStack() as stopping:
        stopping.callback(consumer.close)
        writing = beside.submit(commit)
        stopping.callback(ended.set)
        running = capture(spark, settings, str(tmp_path / "out"), every=0.2)
        stopping.callback(running.stop)
        while committed < 1:
            assert not writing.done()
        for _ in range(2):
            before = committed
            running.catch_up()
            rows = captured(spark, str(tmp_path / "out"), "offset_commits").where("group_id = 'busy'")
            assert max(row.committed for row in rows.select("committed").collect()) >= before
            assert not writing.done()
        ended.set()
        writing.result()


def test_a_folder_belongs_to_one_topic(
    spark: SparkSession, start_kafka: Callable[..., ApacheKafka], tmp_path: Path
) -> None:
    kafka = start_kafka()
    settings = {"bootstrap.servers": kafka.bootstrap_servers}
    copy, out = kafka.create_topic("copy", 2), str(tmp_path / "out")
    with pytest.raises(TableError, match="holds no finished batch of a capture"):
        captured(spark, out, "offset_commits")
    producer = confluent_kafka.Producer({**settings, "log_level": 0})
    producer.produce(copy, key=b"\x00\x63junk", partition=1)
    assert producer.flush(30) == 0
    assert capture(spark, settings, out, every=None, topic=copy).wait()
    assert [row.reason for row in captured(spark, out, "rejected_records").collect()] == ["other_kind"]
    with pytest.raises(CaptureError, match="holds a capture whose topic is 'copy', not '__consumer_offsets'"):
        capture(spark, settings, out, every=None)
    kafka.delete_topic(copy)
    while copy in kafka.describe_topics():
        pass
    kafka.create_topic(copy, 2)
    with pytest.raises(CaptureError, match="the topic has been made anew: its offsets begin anew too"):
        capture(spark, settings, out, every=None, topic=copy)
    other = str(tmp_path / "other")
    assert capture(spark, settings, other, every=None, topic=copy).wait()
    # An empty topic is accepted: the tables exist, without rows.
    assert captured(spark, other, "rejected_records").collect() == []
    producer.produce(copy, key=b"\x00\x63junk", partition=0)
    assert producer.flush(30) == 0
    assert capture(spark, settings, other, every=None, topic=copy).wait()
    (tmp_path / "other" / "_checkpoint").rename(tmp_path / "gone")
    with pytest.raises(CaptureError, match="its _checkpoint is gone"):
        capture(spark, settings, other, every=None, topic=copy)
    (tmp_path / "other" / "_capture.json").unlink()
    with pytest.raises(CaptureError, match="is no capture's folder"):
        capture(spark, settings, other, every=None, topic=copy)
