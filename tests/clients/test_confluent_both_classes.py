"""Scripts of the same calls to confluent-kafka's consumer and to ours, with the same results, errors and callbacks."""

from __future__ import annotations

import pickle
from functools import partial
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from kafka_assignors import errors
from kafka_assignors.clients.confluent import Consumer, OptionError, Producer
from support.both_classes import BASE, BOTH_WAYS, CLASSES, made, outcome, same
from support.broker import Kafka, unique

if TYPE_CHECKING:
    from support.both_classes import Script


# The constructor.


@pytest.mark.parametrize(
    "setting",
    [
        {"auto.offset.reset": "now"},
        {"enable.auto.commit": "maybe"},
        {"enable.auto.commit": None},
        {"enable.auto.commit": ""},
        {"enable.auto.commit": 2},
        {"enable.auto.offset.store": "x"},
        {"allow.auto.create.topics": "x"},
        {"auto.commit.interval.ms": -1},
        {"auto.commit.interval.ms": "x"},
        {"session.timeout.ms": 0},
        {"session.timeout.ms": True},
        {"heartbeat.interval.ms": 0},
        {"max.poll.interval.ms": 10_000},
        {"statistics.interval.ms": -1},
        {"retry.backoff.ms": 0},
        {"retry.backoff.max.ms": 0},
        {"topic.metadata.refresh.interval.ms": -2},
        {"socket.timeout.ms": 1},
        {"reconnect.backoff.ms": -1},
        {"receive.message.max.bytes": 1},
        {"security.protocol": "foo"},
        {"security.protocol": "sasl_ssl"},
        {"security.protocol": "sasl_plaintext", "sasl.mechanism": "FOO"},
        {"broker.address.family": "x"},
        {"client.dns.lookup": "x"},
        {"group.protocol": "foo"},
        {"partition.assignment.strategy": "foo"},
        {"partition.assignment.strategy": 3},
        {"partition.assignment.strategy": []},
        {"default.topic.config": {"auto.offset.reset": "now"}},
        {"on_commit": 3},
        {"stats_cb": 3},
        {"error_cb": 3},
        {"foo": "bar"},
        {3: "bar"},
    ],
    ids=str,
)
def test_a_bad_value_of_a_setting(setting: dict[Any, Any]) -> None:
    theirs, ours = made(BASE | setting)
    assert ours == theirs
    assert theirs in [("KafkaException", "_INVALID_ARG"), ("TypeError",)]


@pytest.mark.parametrize("given", [(), ({},), ([],), (None,), ("x",), (BASE, BASE), (BASE, 3)], ids=str)
def test_no_settings_and_what_are_none(given: tuple[Any, ...]) -> None:
    # The call has `**{}`: in a call without keywords the client does not check `group.id`. Our class in Python cannot
    # distinguish the two calls, and always checks it.
    nothing: dict[str, Any] = {}
    theirs, ours = made(*given, **nothing)
    assert ours == theirs
    assert theirs == (("ValueError",) if given in [(), ({},)] else ("TypeError",))


def test_the_error_of_a_setting_is_ours_and_the_clients() -> None:
    with pytest.raises(errors.OptionError, match=r"^auto\.offset\.reset is 'now'; give one of smallest") as refused:
        Consumer(BASE | {"auto.offset.reset": "now"})
    error = refused.value
    assert isinstance(error, OptionError)
    assert isinstance(error, KafkaException | ValueError)
    assert type(error).__name__ == "OptionError"
    assert error.args[0].code() == KafkaError._INVALID_ARG
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (OptionError, str(error))
    with pytest.raises(KafkaException, match=r"linger\.ms is 'soon'; give a number") as also:
        Producer({"bootstrap.servers": "127.0.0.1:1", "linger.ms": "soon"}, partitioner=lambda *_: 0)
    assert outcome(also.value) == ("KafkaException", "_INVALID_ARG")


@pytest.mark.parametrize("names", ["range,", "range,,roundrobin", "range, range"])
def test_names_of_strategies_that_say_nothing(names: str) -> None:
    for kind in CLASSES.values():
        kind(BASE | {"partition.assignment.strategy": names}).close()


# Commits.


def test_metadata_of_commits(any_kafka: Kafka) -> None:
    def play(script: Script) -> None:
        script.make("orders", 2, 5)
        part = script.consumer(enable_auto_commit=False, enable_auto_offset_store=False)
        part.subscribe("orders")
        script.reads(part, 10)
        for metadata in ("note", "", "é" * 40):
            part.called("commit", offsets=[script.at("orders", 0, 3, metadata)], asynchronous=False)
        part.called("commit", offsets=[script.at("orders", 1, 4, "later")])
        script.until(lambda: part.told("on_commit"), "on_commit is called")
        part.called("store_offsets", offsets=[script.at("orders", 1, 5, "kept")])
        part.called("commit", asynchronous=False)

    log = same(any_kafka, play)
    assert ("", "on_commit", None, [("orders", 1, 4, "later", None)]) in log


@pytest.mark.parametrize("subscribed", [True, False])
def test_metadata_is_read_to_its_end_and_no_further(any_kafka: Kafka, subscribed: bool) -> None:
    """The metadata of any client: librdkafka's bindings write a NUL after it, other clients do not."""
    topic, group = any_kafka.create_topic(unique("orders"), 3), unique("group")
    settings = {"bootstrap.servers": any_kafka.bootstrap_servers, "group.id": group, "log_level": 0}
    written = ["note", "a", "x" * 7, "é" * 12]

    def told(consumer: confluent_kafka.Consumer) -> list[tuple[int, int, str | None]]:
        asked = [TopicPartition(topic, number) for number in (2, 0, 1, 0)]
        return [(each.partition, each.offset, each.metadata) for each in consumer.committed(asked, timeout=10)]

    with Consumer(settings) as ours, confluent_kafka.Consumer(settings) as theirs:
        if subscribed:
            ours.subscribe([topic])
            while not ours.assignment():
                ours.poll(0.1)
        assert told(ours) == [(2, -1001, None), (0, -1001, None), (1, -1001, None), (0, -1001, None)]
        for text in written * 5:
            ours.commit(offsets=[TopicPartition(topic, 0, 3, text)], asynchronous=False)
            assert told(ours) == [(2, -1001, None), (0, 3, text), (1, -1001, None), (0, 3, text)]
        ours.unsubscribe()
        while ours.assignment():
            ours.poll(0.1)
    with Consumer(settings) as ours, confluent_kafka.Consumer(settings) as theirs:
        for text in [*written, ""]:
            theirs.commit(offsets=[TopicPartition(topic, 1, 4, text)], asynchronous=False)
            assert told(ours)[2] == (1, 4, text)
        theirs.commit(offsets=[TopicPartition(topic, 1, 5)], asynchronous=False)
        assert told(ours)[2] == (1, 5, None)


def _committed(partitions: Any, consumer: confluent_kafka.Consumer) -> object:
    return consumer.committed(partitions, timeout=0.1)


def test_what_committed_refuses() -> None:
    for wrong in (3, [3]):
        theirs, ours = made(BASE, then=partial(_committed, wrong))
        assert ours == theirs == ("TypeError",)
    theirs, ours = made(BASE, then=partial(_committed, [TopicPartition("t", 0)]))
    assert ours == theirs == ("KafkaException", "_TIMED_OUT")
    with Consumer(BASE) as closed:
        assert closed.committed([], timeout=0.1) == []
    with pytest.raises(RuntimeError, match="Consumer closed"):
        closed.committed([])


@BOTH_WAYS
def test_a_commit_of_what_does_not_exist(any_kafka: Kafka, strategy: str) -> None:
    def play(script: Script) -> None:
        script.make("orders", 2, 1)
        part = script.consumer(strategy, enable_auto_commit=False)
        part.subscribe("orders")
        script.reads(part, 2)
        there, missing, nowhere = script.at("orders", 0, 1), script.at("orders", 77, 1), script.at("nowhere", 0, 1)
        for offsets in ([missing], [nowhere], [there, missing]):
            part.called("commit", offsets=offsets, asynchronous=False)
        part.called("commit", offsets=[missing])
        script.until(lambda: part.told("on_commit"), "on_commit is called")

    log = same(any_kafka, play)
    refused = ("", "commit", ("KafkaException", "UNKNOWN_TOPIC_OR_PART"))
    assert log.count(refused) == 3
    assert log[-1] == (
        "",
        "on_commit",
        "UNKNOWN_TOPIC_OR_PART",
        [("orders", 77, 1, None, "UNKNOWN_TOPIC_OR_PART")],
    )
