"""The real Kafka of the tests serves, restarts, and keeps its data and settings. Other tests rely on this."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from support import jars
from support.broker import DEFAULT_RECORD_LIMIT, OFFSETS_TOPIC, ApacheKafka, Kafka, external, unique

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_serves_records_and_groups(any_kafka: Kafka) -> None:
    topic = any_kafka.create_topic(unique("orders"), 3)
    group = unique("readers")
    with KafkaProducer(bootstrap_servers=any_kafka.bootstrap_servers) as producer:
        for partition in range(3):
            producer.send(topic, b"%d" % partition, partition=partition).get(timeout=60)
    with KafkaConsumer(
        topic, bootstrap_servers=any_kafka.bootstrap_servers, group_id=group, auto_offset_reset="earliest"
    ) as consumer:
        read: set[tuple[int, bytes]] = set()
        deadline = time.monotonic() + 60
        while len(read) < 3 and time.monotonic() < deadline:
            for records in consumer.poll(timeout_ms=5000).values():
                read |= {(record.partition, record.value) for record in records}
        assert read == {(0, b"0"), (1, b"1"), (2, b"2")}
        assert consumer.assignment() == {TopicPartition(topic, partition) for partition in range(3)}
        described = any_kafka.describe_group(group)
        assert (described.state, described.assignor) == ("STABLE", "range")
        assert list(described.assignment.values()) == [{topic: [0, 1, 2]}]


def test_topics_are_created_grown_and_deleted(any_kafka: Kafka) -> None:
    topic = any_kafka.create_topic(unique("orders"), 2, {"retention.ms": "60000"})
    assert any_kafka.describe_topics()[topic] == 2
    assert any_kafka.topic_config(topic)["retention.ms"] == "60000"
    any_kafka.grow_topic(topic, 5)
    assert any_kafka.describe_topics()[topic] == 5
    any_kafka.set_topic_config(topic, retention_ms=1000, max_message_bytes=2000)
    config = any_kafka.topic_config(topic)
    assert (config["retention.ms"], config["max.message.bytes"]) == ("1000", "2000")
    any_kafka.delete_topic(topic)
    deadline = time.monotonic() + 60
    while topic in any_kafka.describe_topics():
        assert time.monotonic() < deadline, "the topic is still there"


def test_every_process_of_a_test_run_uses_the_same_broker(
    kafka_broker: Kafka, kafka_of_version: Callable[[str], Kafka]
) -> None:
    if external() is None:
        again = kafka_of_version(kafka_broker.version)
        assert again is kafka_broker
    host, port = kafka_broker.bootstrap_servers.split(",")[0].rsplit(":", 1)
    socket.create_connection((host, int(port)), timeout=5).close()


def test_data_settings_and_address_survive_a_restart_and_a_kill(start_kafka: Callable[..., ApacheKafka]) -> None:
    # After a kill, the controller accepts the broker again only when the old session of the broker has expired.
    kafka = start_kafka(group_max_size=7, broker_session_timeout_ms=2000, broker_heartbeat_interval_ms=500)
    address, first = kafka.bootstrap_servers, kafka.pid
    topic = kafka.create_topic(unique("orders"), 1)
    assert kafka.topic_config(OFFSETS_TOPIC)["max.message.bytes"] == str(DEFAULT_RECORD_LIMIT)
    kafka.set_record_limit(5_000_000)
    with KafkaProducer(bootstrap_servers=address) as producer:
        producer.send(topic, b"kept", partition=0).get(timeout=60)

    kafka.restart()
    assert kafka.bootstrap_servers == address
    assert kafka.pid not in (first, None)
    assert kafka.describe_topics()[topic] == 1
    assert kafka.topic_config(OFFSETS_TOPIC)["max.message.bytes"] == "5000000"

    kafka.kill()
    assert kafka.pid is None
    kafka.start()
    kafka.set_record_limit(None)
    assert kafka.topic_config(OFFSETS_TOPIC)["max.message.bytes"] == str(DEFAULT_RECORD_LIMIT)
    with KafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        records = consumer.poll(timeout_ms=10_000)
        assert [record.value for part in records.values() for record in part] == [b"kept"]
    assert "group.max.size = 7" in kafka.log_path.read_text()


@pytest.mark.needs("broker")
def test_a_broker_that_cannot_start_says_why_and_where_its_log_is(tmp_path: Path) -> None:
    kafka = ApacheKafka(tmp_path, node_id="not-a-number")
    with pytest.raises(RuntimeError, match=r"(?s)ended while it started; its log is .*broker\.log.*not-a-number"):
        kafka.start()
    assert kafka.pid is None


def test_without_java_or_maven_the_tests_fail_and_name_the_remedy() -> None:
    program = "from support import jars; jars.tool('mvn')"
    environment = os.environ | {"PATH": "", "PYTHONPATH": str(jars.ROOT / "tests")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ToolMissingError: mvn is not on PATH" in done.stderr
    assert "apt-get install" in done.stderr


def test_what_the_cache_holds_is_made_once_even_by_many_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars, "CACHE", tmp_path)
    made: list[Path] = []

    def make(target: Path) -> None:
        made.append(target)
        target.mkdir()
        time.sleep(0.05)
        (target / "jar").write_text("x")

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: (jars.made_once("1", "libs", make) / "jar").read_text(), range(8)))
    assert found == ["x"] * 8
    assert len(made) == 1

    def fail(target: Path) -> None:
        target.mkdir()
        msg = "disk full"
        raise OSError(msg)

    with pytest.raises(OSError, match="disk full"):
        jars.made_once("1", "other", fail)
    assert sorted(path.name for path in (tmp_path / "kafka-1").iterdir()) == ["libs"]
