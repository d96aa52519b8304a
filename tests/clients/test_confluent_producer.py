"""The confluent producer compared with the client's own: the same members, arguments and errors."""

from __future__ import annotations

import ast
import inspect
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException

from kafka_assignors import (
    AdaptivePartitioner,
    DefaultPartitioner,
    KafkaAssignorsError,
    OptionError,
    Partitioner,
    PartitionerError,
    PartitionerTypeError,
    StateError,
)
from kafka_assignors.clients import confluent
from kafka_assignors.clients.confluent import Producer, SerializingProducer
from kafka_assignors.clients.confluent.topic_metadata import TopicMetadataError
from kafka_assignors.embedded import EmbeddedKafka
from support.features import release_has

if TYPE_CHECKING:
    from collections.abc import Iterator

Settings = dict[str, Any]

# No broker listens at this address, so that records stay in the queue.
OFFLINE: Settings = {"bootstrap.servers": "localhost:1", "log_level": 0}


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(topics={"orders": 4}) as kafka:
        yield kafka


@pytest.fixture
def online(kafka: EmbeddedKafka) -> Settings:
    return {
        "bootstrap.servers": kafka.bootstrap_servers,
        "topic.metadata.propagation.max.ms": 200,
        "log_level": 0,
        "linger.ms": 60_000,
    }


def discard(producer: confluent_kafka.Producer) -> None:
    producer.purge()
    producer.flush(10)


# ---- the same members and signatures --------------------------------------------------------------------------------


def stub() -> ast.ClassDef:
    path = Path(confluent_kafka.__file__).with_name("cimpl.pyi")
    found = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]
    return next(node for node in found if node.name == "Producer")


@release_has("Producer.close")
def test_every_member_of_the_client_s_class_is_there() -> None:
    assert set(dir(confluent_kafka.Producer)) <= set(dir(Producer))
    assert issubclass(Producer, confluent_kafka.Producer)
    ours = {name for name in vars(Producer) if not name.startswith("_")}
    assert ours == {"produce", "produce_batch", "flush", "close", "set_sasl_credentials"}, (
        "whatever else is overridden has to be compared as well"
    )


@pytest.mark.parametrize("name", ["produce", "produce_batch", "flush", "close"])
@release_has("all in cimpl.pyi")
def test_arguments_have_the_client_s_names_order_and_defaults(name: str) -> None:
    theirs = next(node for node in stub().body if isinstance(node, ast.FunctionDef) and node.name == name)
    names = [argument.arg for argument in theirs.args.args]
    defaults = [ast.literal_eval(default) for default in theirs.args.defaults]
    ours = inspect.signature(getattr(Producer, name)).parameters.values()
    assert [each.name for each in ours] == names
    assert [each.default for each in ours if each.default is not inspect.Parameter.empty] == defaults
    assert {each.kind for each in ours} == {inspect.Parameter.POSITIONAL_OR_KEYWORD}


def test_the_serializing_producer_is_the_client_s() -> None:
    assert set(dir(confluent_kafka.SerializingProducer)) <= set(dir(SerializingProducer))
    assert SerializingProducer.produce is confluent_kafka.SerializingProducer.produce
    assert issubclass(SerializingProducer, Producer)


def test_the_package_gives_its_classes_when_asked() -> None:
    assert confluent.Producer is Producer
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        confluent.Nonsense  # noqa: B018


# ---- the same behaviour without a partitioner of ours ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        (("orders", b"v", b"k", 3, None, None, 5, [("a", b"b")]), {}),
        (("orders",), {"value": "text", "key": "text", "headers": {"a": "b"}}),
        (("orders",), {"partition": True}),
        ((5,), {}),
        ((None,), {}),
        (("orders", 5), {}),
        (("orders",), {"key": 5}),
        (("orders",), {"key": bytearray(b"k")}),
        (("orders",), {"key": "\ud800"}),
        (("orders",), {"partition": None}),
        (("orders",), {"partition": 2.0}),
        (("orders",), {"partition": 2**31}),
        (("orders",), {"timestamp": None}),
        (("orders",), {"headers": 5}),
        (("orders",), {"nonsense": 5}),
    ],
)
@pytest.mark.parametrize("partitioner", [None, "murmur2_random"])
def test_produce_takes_and_refuses_what_the_client_does(args: Any, kwargs: Any, partitioner: str | None) -> None:
    def outcome(producer: confluent_kafka.Producer) -> tuple[object, int]:
        result: object
        try:
            result = producer.produce(*args, **kwargs)  # type: ignore[func-returns-value]
        except Exception as error:
            result = type(error)
        before = len(reports)
        discard(producer)
        return result, len(reports) - before

    reports: list[object] = []
    settings = OFFLINE | {"on_delivery": lambda *report: reports.append(report)}
    if partitioner is not None:
        settings["partitioner"] = partitioner
    assert outcome(Producer(settings)) == outcome(confluent_kafka.Producer(settings))


BATCHES: list[list[Any]] = [
    [],
    [{"value": b"1", "key": b"k", "partition": 1}, {"value": "text", "key": "text"}, {}],
    [{"value": b"1"}, {"value": 5}],
    [{"value": b"1"}, {"key": 5}],
    [{"value": b"1"}, {"partition": "1"}],
    [{"value": b"1"}, 5],
    [{"value": b"1"}, {"timestamp": 3}],
]


@pytest.mark.parametrize("messages", BATCHES)
@pytest.mark.parametrize("ours", [None, "murmur2_random", "partitioner"])
@release_has("produce_batch")
def test_produce_batch_takes_and_refuses_what_the_client_does(
    messages: list[Any], ours: str | None, online: Settings
) -> None:
    def outcome(producer: confluent_kafka.Producer) -> tuple[object, int, list[Any]]:
        mine = [dict(message) if isinstance(message, dict) else message for message in messages]
        result: object
        try:
            result = producer.produce_batch("orders", mine)
        except Exception as error:
            result = type(error), str(error)
        queued = len(producer)
        discard(producer)
        return result, queued, mine

    partitioner = DefaultPartitioner() if ours == "partitioner" else ours
    expected = outcome(confluent_kafka.Producer(online))
    assert outcome(Producer(online if ours is None else online | {"partitioner": partitioner})) == expected


@pytest.mark.parametrize("messages", [(), None, "text", {"value": b""}])
@release_has("produce_batch")
def test_produce_batch_wants_a_list(messages: Any, online: Settings) -> None:
    with pytest.raises(TypeError, match="messages must be a list"):
        Producer(online, partitioner=DefaultPartitioner()).produce_batch("orders", messages)


def test_without_a_partitioner_of_ours_nobody_is_asked() -> None:
    for producer in (Producer(OFFLINE), Producer(OFFLINE, partitioner=None), Producer(OFFLINE, partitioner="fnv1a")):
        assert producer._partitioning is None
    with pytest.raises(KafkaException, match="partitioner"):
        Producer(OFFLINE, partitioner="nonsense")


@pytest.mark.parametrize("args", [(), (5,), (OFFLINE, OFFLINE)])
def test_arguments_that_the_client_refuses_are_refused(args: Any) -> None:
    with pytest.raises(TypeError) as theirs:
        confluent_kafka.Producer(*args)
    with pytest.raises(TypeError, match=str(theirs.value)):
        Producer(*args)


def test_the_configuration_given_is_left_alone() -> None:
    partitioner = DefaultPartitioner()
    settings = OFFLINE | {"partitioner": partitioner}
    Producer(settings)
    assert settings == OFFLINE | {"partitioner": partitioner}
    with pytest.raises(KafkaException, match="No such configuration property"):
        Producer(settings, nonsense=1)


def test_a_partitioner_by_keyword_wins() -> None:
    producer = Producer(OFFLINE | {"partitioner": "random"}, partitioner=DefaultPartitioner())
    assert producer._partitioning is not None


@release_has("Producer.close")
def test_each_producer_needs_a_partitioner_of_its_own() -> None:
    partitioner = DefaultPartitioner()
    producer = Producer(OFFLINE, partitioner=partitioner)
    with pytest.raises(StateError, match="given to two producers"):
        Producer(OFFLINE, partitioner=partitioner)
    assert producer.close()
    with Producer(OFFLINE, partitioner=partitioner), pytest.raises(StateError):
        SerializingProducer(OFFLINE | {"partitioner": partitioner})
    with SerializingProducer(OFFLINE | {"partitioner": partitioner}):
        pass
    Producer(OFFLINE, partitioner=partitioner)
    function = partitioner.partition
    for other in [Producer(OFFLINE, partitioner=function), Producer(OFFLINE, partitioner=function)]:
        assert other._partitioning is not None


def test_a_logger_is_passed_on(online: Settings, caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("test_confluent_producer")
    for producer in (
        Producer(online | {"debug": "broker", "log_level": 7}, logger=logger),
        Producer(online | {"debug": "broker", "log_level": 7}, logger=logger, partitioner=DefaultPartitioner()),
    ):
        caplog.clear()
        with caplog.at_level(logging.DEBUG, logger.name):
            producer.list_topics(timeout=10)
            producer.poll(0)
        assert any(record.name == logger.name for record in caplog.records)


def test_java_s_availability_timeout_is_understood() -> None:
    timeout = {"partitioner.availability.timeout.ms": 500}
    producer = Producer(OFFLINE | timeout, partitioner=AdaptivePartitioner())
    assert producer._partitioning is not None
    assert producer._partitioning.feedback is not None
    assert producer._partitioning.feedback._timeout == 0.5
    with pytest.raises(OptionError, match="availability"):
        Producer(OFFLINE | {"partitioner.availability.timeout.ms": "soon"}, partitioner=AdaptivePartitioner())
    with pytest.raises(KafkaException, match="No such configuration property"):
        Producer(OFFLINE | timeout)


# ---- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("partitioner", [DefaultPartitioner, 5, 2.5, ["murmur2"], b"murmur2"])
def test_what_is_no_partitioner_is_refused(partitioner: Any) -> None:
    with pytest.raises(OptionError, match="partitioner is"):
        Producer(OFFLINE, partitioner=partitioner)


class Raises(Partitioner):
    def partition(self, *_: Any) -> int:
        raise ZeroDivisionError("of all things")


class RaisesLater(Partitioner):
    def partition(self, *_: Any) -> int:
        return 0

    def on_new_batch(self, *_: Any) -> None:
        raise ZeroDivisionError("of all things")


def test_a_partitioner_that_fails_costs_one_clear_error(online: Settings) -> None:
    for partitioner in (Raises(), Raises().partition, RaisesLater()):
        producer = Producer(online, partitioner=partitioner)
        with pytest.raises(PartitionerError, match=r"'orders'.*not sent.*ZeroDivisionError: of all things") as raised:
            producer.produce("orders", b"value")
        assert isinstance(raised.value.__cause__, ZeroDivisionError)
        assert len(producer) == 0


@pytest.mark.parametrize("answer", [True, 1.0, None, "1", b"1", -1, 4, 2**70, [1]])
@release_has("produce_batch")
def test_an_answer_that_is_no_partition_costs_one_clear_error(answer: Any, online: Settings) -> None:
    answers = [answer, 2, answer]
    producer = Producer(online, partitioner=lambda *_: answers.pop(0))
    with pytest.raises(PartitionerError, match=r"lambda.* returned .* for a record to 'orders', which was not sent"):
        producer.produce("orders", b"value")
    assert len(producer) == 0
    producer.produce("orders", b"value")
    assert len(producer) == 1
    with pytest.raises(PartitionerError, match="returned"):
        producer.produce_batch("orders", [{"value": b"value"}])
    assert len(producer) == 1
    discard(producer)


def test_a_number_of_another_type_is_a_number(online: Settings) -> None:
    class Three:
        def __index__(self) -> int:
            return 3

    producer = Producer(online, partitioner=lambda *_: Three())
    producer.produce("orders", b"value")
    assert len(producer) == 1
    discard(producer)


@pytest.mark.parametrize("part", [5, 2.5, bytearray(b"k"), memoryview(b"k"), ["k"]])
@pytest.mark.parametrize("field", ["key", "value"])
def test_a_key_or_value_of_the_wrong_type_is_named(part: Any, field: str, online: Settings) -> None:
    producer = Producer(online, partitioner=DefaultPartitioner())
    with pytest.raises(PartitionerTypeError, match=f"{field} is of type {type(part).__name__}"):
        producer.produce("orders", **{field: part})
    good: dict[str, Any] = {field: b"as it should be"}
    producer.produce("orders", **good)
    assert len(producer) == 1
    discard(producer)


@pytest.mark.parametrize("topic", [None, 5, b"orders"])
def test_a_topic_of_the_wrong_type_is_named(topic: Any, online: Settings) -> None:
    producer = Producer(online, partitioner=DefaultPartitioner())
    with pytest.raises(TypeError, match="topic is of type"):
        producer.produce(topic, b"value")


@release_has("produce_batch")
def test_an_unknown_topic_is_the_kafka_exception_that_users_expect(online: Settings) -> None:
    producer = Producer(online, partitioner=DefaultPartitioner())
    for _ in range(2):
        with pytest.raises(KafkaException, match=r"'nowhere'.*not sent") as raised:
            producer.produce("nowhere", b"value")
        assert raised.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
        assert isinstance(raised.value, TopicMetadataError)
        assert isinstance(raised.value, KafkaAssignorsError)
    with pytest.raises(TopicMetadataError):
        producer.produce_batch("nowhere", [{"value": b"value"}])
    assert len(producer) == 0
    producer.produce("orders", b"value")
    assert len(producer) == 1
    discard(producer)


def test_brokers_out_of_reach_are_an_error_in_time() -> None:
    reports: list[object] = []
    config = OFFLINE | {"topic.metadata.propagation.max.ms": 1, "on_delivery": lambda *report: reports.append(report)}
    producer = Producer(config, partitioner=DefaultPartitioner())
    with pytest.raises(TopicMetadataError) as raised:
        producer.produce("orders", b"value")
    assert raised.value.args[0].code() in (KafkaError._TRANSPORT, KafkaError._TIMED_OUT)
    discard(producer)
    assert reports == []


def test_a_topic_without_partitions_is_an_error(online: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    from kafka_assignors.clients.confluent import topic_metadata

    monkeypatch.setattr(topic_metadata, "_look", lambda *_: ({}, None))
    producer = Producer(online, partitioner=DefaultPartitioner())
    with pytest.raises(TopicMetadataError, match=r"'empty' are not known.*no partitions"):
        producer.produce("empty", b"value")


def test_a_partition_that_the_record_names_out_of_range_is_the_client_s_error(online: Settings) -> None:
    producer = Producer(online, partitioner=DefaultPartitioner())
    producer.produce("orders", b"value")
    for number in (4, -2):
        with pytest.raises(KafkaException) as raised:
            producer.produce("orders", b"value", partition=number)
        assert raised.value.args[0].code() == KafkaError._UNKNOWN_PARTITION
    for nonsense in ("1", None, 1.0):
        with pytest.raises(TypeError):
            producer.produce("orders", b"value", partition=nonsense)  # type: ignore[arg-type]
    discard(producer)


@release_has("Producer.close")
def test_a_closed_producer_says_so(online: Settings) -> None:
    producer = Producer(online, partitioner=DefaultPartitioner())
    producer.close()
    with pytest.raises(RuntimeError, match="closed"):
        producer.produce("orders", b"value")


# ---- a full queue ---------------------------------------------------------------------------------------------------


def counted(producer: Producer) -> list[int]:
    assert producer._partitioning is not None
    topic = producer._partitioning.topics.known.get("orders")
    return [] if topic is None else [batch.records for batch in topic.batches if batch is not None]


@pytest.mark.parametrize("partition", [-1, 2])
def test_a_record_that_finds_the_queue_full_is_not_counted(online: Settings, partition: int) -> None:
    producer = Producer(online | {"queue.buffering.max.messages": 3}, partitioner=DefaultPartitioner())
    producer.produce("orders", b"value")
    discard(producer)
    before = sum(counted(producer))
    for _ in range(3):
        producer.produce("orders", b"value", partition=partition)
    for _ in range(5):
        with pytest.raises(BufferError):
            producer.produce("orders", b"value", partition=partition)
    assert sum(counted(producer)) == before + 3
    discard(producer)


@release_has("produce_batch")
def test_messages_of_a_batch_that_find_the_queue_full_are_not_counted(online: Settings) -> None:
    producer = Producer(online | {"queue.buffering.max.messages": 3}, partitioner=DefaultPartitioner())
    messages: list[dict[str, Any]] = [{"value": b"value"} for _ in range(5)]
    assert producer.produce_batch("orders", messages) == 3
    assert ["_error" in message for message in messages] == [False] * 3 + [True] * 2
    assert all(set(message) <= {"value", "_error"} for message in messages)
    assert messages[4]["_error"].code() == KafkaError._QUEUE_FULL
    assert counted(producer) == [3]
    discard(producer)
    assert producer.produce_batch("orders", messages) == 3
    discard(producer)


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 2**70])
@release_has("produce_batch")
def test_a_message_s_partition_that_is_no_number_of_one_refuses_all(online: Settings, number: int) -> None:
    producer = Producer(online, partitioner=DefaultPartitioner())
    with pytest.raises(PartitionerError, match=f"partition of a message is {number}"):
        producer.produce_batch("orders", [{"value": b"1"}, {"partition": number}])
    assert len(producer) == 0
    assert counted(producer) == []


@release_has("produce_batch")
def test_a_batch_that_is_refused_as_a_whole_is_not_counted(online: Settings) -> None:
    producer = Producer(online, partitioner=DefaultPartitioner())
    with pytest.raises(TypeError, match="index 1"):
        producer.produce_batch("orders", [{"value": b"1"}, {"value": 2}])
    assert len(producer) == 0
    assert counted(producer) == []


# ---- the metadata ---------------------------------------------------------------------------------------------------


def test_a_refresh_that_fails_keeps_what_was_known(online: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    from kafka_assignors.clients.confluent import topic_metadata

    producer = Producer(online, partitioner=DefaultPartitioner())
    producer.produce("orders", b"value")
    assert producer._partitioning is not None
    topics = producer._partitioning.topics
    topic = topics.known["orders"]
    for code, kept in [(KafkaError._TRANSPORT, True), (KafkaError.UNKNOWN_TOPIC_OR_PART, False)]:
        monkeypatch.setattr(topic_metadata, "_look", lambda *_, code=code: (None, KafkaError(code)))
        topic.due = 0.0
        topics._renew(producer)
        assert ("orders" in topics.known) is kept
        assert topic.due > 0.0 or not kept
    monkeypatch.undo()
    producer.produce("orders", b"value")
    assert "orders" in topics.known
    discard(producer)


@release_has("Producer.close")
def test_a_refresh_of_a_closed_producer_ends_quietly(online: Settings) -> None:
    producer = Producer(online, partitioner=DefaultPartitioner())
    producer.produce("orders", b"value")
    assert producer._partitioning is not None
    topics = producer._partitioning.topics
    discard(producer)
    producer.close()
    topics.known["orders"].due = 0.0
    topics._renew(producer)
    assert not topics._looking


@release_has("Producer.close")
def test_a_topic_that_the_broker_makes_on_demand_is_waited_for() -> None:
    with EmbeddedKafka(auto_create_topics=True, default_partitions=3) as kafka:
        reports: list[object] = []
        with Producer({"bootstrap.servers": kafka.bootstrap_servers}, partitioner=DefaultPartitioner()) as producer:
            producer.produce("new", b"value", on_delivery=lambda error, _: reports.append(error))
        assert reports == [None]
        assert kafka.topics()["new"] == 3


def test_a_delivery_report_may_write_to_a_topic_that_is_new_to_the_producer() -> None:
    """A record that failed goes to another topic, as with the client's own producer, and more reports follow."""
    reports: list[str | None] = []
    with EmbeddedKafka(topics={"orders": 4, "dead-letters": 4}) as kafka:
        producer = Producer(
            {"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0}, partitioner=DefaultPartitioner()
        )

        def report(error: KafkaError | None, message: Any) -> None:
            assert error is None
            reports.append(message.topic())
            if message.topic() == "orders":
                producer.produce("dead-letters", message.value(), on_delivery=report)

        for number in range(20):
            producer.produce("orders", str(number).encode(), on_delivery=report)
        late = time.monotonic() + 20
        while producer.flush(1) > 0 and time.monotonic() < late:
            pass
    assert (reports.count("orders"), reports.count("dead-letters")) == (20, 20)


def test_names_of_topics_that_do_not_exist_are_not_hoarded(online: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    from kafka_assignors.clients.confluent import topic_metadata

    monkeypatch.setattr(topic_metadata, "_look", lambda *_: (None, KafkaError(KafkaError.TOPIC_EXCEPTION)))
    monkeypatch.setattr(topic_metadata, "_MOST_UNKNOWN", 10)
    producer = Producer(online, partitioner=DefaultPartitioner())
    assert producer._partitioning is not None
    for number in range(25):
        with pytest.raises(TopicMetadataError):
            producer.produce(f"nowhere{number}", b"value")
        assert len(producer._partitioning.topics._unknown) <= 10
