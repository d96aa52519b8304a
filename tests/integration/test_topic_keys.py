"""Keys of live topics: the partition that each client's producer chooses."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from kafka import KafkaProducer
from typer.testing import CliRunner

from kafka_assignors import MissingDependencyError, OptionError
from kafka_assignors.cli.app import app
from kafka_assignors.clients import topic_keys
from kafka_assignors.clients.topic_keys import read_topic_keys
from kafka_assignors.errors import TopicReadError
from support.broker import Kafka, unique
from support.clocks import PausesAtOnce

if TYPE_CHECKING:
    from kafka_assignors.embedded import EmbeddedKafka

KEYS = [b"user-%d" % number for number in range(300)]


def with_librdkafka(kafka: Kafka, topic: str, keys: list[bytes | None], **settings: Any) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap_servers, **settings})
    for key in keys:
        producer.produce(topic, b"x", key)
    assert producer.flush(30) == 0


def with_kafka_python(kafka: Kafka, topic: str, keys: list[bytes]) -> None:
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        sent = [producer.send(topic, b"x", key) for key in keys]
        for each in sent:
            each.get(timeout=30)


def audit(kafka: Kafka, *topics: str, as_topics: tuple[str, ...] = ()) -> tuple[int, Any]:
    arguments = ["audit-keys", f"--bootstrap={kafka.bootstrap_servers}", "--format=json"]
    given = [*(f"--topic={topic}" for topic in topics), *(f"--as-topic={topic}" for topic in as_topics)]
    done = CliRunner().invoke(app, [*arguments, *given])
    return done.exit_code, json.loads(done.stdout) if done.stdout else done.stderr


def test_whose_topics_join(any_kafka: Kafka) -> None:
    """Java's rule, and librdkafka with its default, FNV-1a and Java's rule, on topics with equally many partitions."""
    java, default, fnv1a, as_java = (any_kafka.create_topic(unique(name), 6) for name in ("java", "crc", "fnv", "same"))
    with_kafka_python(any_kafka, java, KEYS)
    with_librdkafka(any_kafka, default, [*KEYS, None, None])
    with_librdkafka(any_kafka, fnv1a, list(KEYS), partitioner="fnv1a_random")
    with_librdkafka(any_kafka, as_java, list(KEYS), partitioner="murmur2_random")
    status, report = audit(any_kafka, java, default, fnv1a, as_java)
    assert status == 1
    hashes = {each["topic"]: each["hashes"] for each in report["placements"]}
    assert hashes == {java: ["murmur2"], default: ["crc32"], fnv1a: ["fnv1a"], as_java: ["murmur2"]}
    assert [each["keyed"] for each in report["placements"]] == [300] * 4
    assert report["placements"][1]["records"] == 302
    assert [join["topics"] for join in report["joins"] if join["joins"]] == [[java, as_java]]
    assert audit(any_kafka, java, as_java)[0] == 0
    done = CliRunner().invoke(
        app, ["audit-keys", f"--bootstrap={any_kafka.bootstrap_servers}", f"--topic={java}", f"--topic={default}"]
    )
    assert f"{java} and {default} do NOT join: they are placed with murmur2 and crc32" in done.stdout


def test_the_keys_of_a_topic_for_other_counts(any_kafka: Kafka) -> None:
    topic = any_kafka.create_topic(unique("orders"), 3)
    with_librdkafka(any_kafka, topic, list(KEYS))
    status, report = audit(any_kafka, topic, as_topics=("planned=24:murmur2", "other=24:murmur2"))
    assert (status, report["keys"], report["joins"][0]["joins"]) == (0, 300, True)
    assert {each["partitions"] for each in report["disagreements"]} == {24}


def test_the_newest_of_each_partition_are_read(any_kafka: Kafka) -> None:
    topic = any_kafka.create_topic(unique("orders"), 3)
    with KafkaProducer(bootstrap_servers=any_kafka.bootstrap_servers) as producer:
        sent = [producer.send(topic, b"x", b"%d-%d" % (p, i), partition=p) for p in (0, 2) for i in range(20)]
        for each in sent:
            each.get(timeout=30)
    config = {"bootstrap.servers": any_kafka.bootstrap_servers}
    partitions, records = read_topic_keys(config, topic, most=15)
    assert partitions == 3
    assert sorted(records) == sorted((b"%d-%d" % (p, i), p) for p in (0, 2) for i in range(15, 20))
    assert len(read_topic_keys(config, topic)[1]) == 40


def test_topics_without_keys_are_bad_input(any_kafka: Kafka) -> None:
    topic = any_kafka.create_topic(unique("empty"), 2)
    assert read_topic_keys({"bootstrap.servers": any_kafka.bootstrap_servers}, topic) == (2, [])
    status, text = audit(any_kafka, topic)
    assert status == 2
    assert "has no key to audit: none of 0 records has a key" in text
    status, text = audit(any_kafka, unique("missing"))
    assert status == 2
    assert "cannot be read" in text


@pytest.mark.parametrize("refusals", [2, 1_000])
def test_partitions_whose_leader_is_not_there_yet(
    embedded_kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch, refusals: int
) -> None:
    """The request is repeated until the time is over: a real broker lists a new topic before its leader serves it."""
    left = [refusals]

    class Electing(confluent_kafka.Consumer):
        def get_watermark_offsets(self, *args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] >= 0:
                raise confluent_kafka.KafkaException(
                    confluent_kafka.KafkaError(confluent_kafka.KafkaError.NOT_LEADER_FOR_PARTITION)
                )
            return super().get_watermark_offsets(*args, **kwargs)

    monkeypatch.setattr(confluent_kafka, "Consumer", Electing)
    monkeypatch.setattr(topic_keys, "time", PausesAtOnce())
    topic = unique("new")
    embedded_kafka.create_topic(topic, 2)
    config = {"bootstrap.servers": embedded_kafka.bootstrap_servers}
    if refusals == 2:
        assert read_topic_keys(config, topic) == (2, [])
    else:
        with pytest.raises(TopicReadError, match=f"topic '{topic}' cannot be read: .*NOT_LEADER_FOR_PARTITION"):
            read_topic_keys(config, topic, timeout=20)


def test_what_cannot_be_read(embedded_kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"bootstrap.servers": embedded_kafka.bootstrap_servers}
    with pytest.raises(OptionError, match="most is 0; give at least 1"):
        read_topic_keys(config, "t", most=0)
    with pytest.raises(OptionError, match="timeout is 0; give a positive number of seconds"):
        read_topic_keys(config, "t", timeout=0)
    with pytest.raises(TopicReadError, match="the settings for reading topic 't' are refused"):
        read_topic_keys({"no.such.setting": 1}, "t")
    embedded_kafka.close()
    with pytest.raises(TopicReadError, match="topic 't' cannot be read"):
        read_topic_keys(config, "t", timeout=0.2)
    for module in [name for name in sys.modules if name.split(".")[0] == "confluent_kafka"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=r"pip install kafka-assignors\[confluent\]"):
        read_topic_keys(config, "t")
