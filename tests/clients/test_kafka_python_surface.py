"""Our consumer on kafka-python has all methods and settings of the client's own; which settings it refuses."""

from __future__ import annotations

import inspect
import pickle
from functools import partial
from typing import TYPE_CHECKING, Any

import kafka
import pytest
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaConfigurationError

from kafka_assignors import (
    CooperativeStickyAssignor,
    LagBasedAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    errors,
)
from kafka_assignors.clients import kafka_python
from kafka_assignors.clients.common import connection, strategy_setting
from kafka_assignors.clients.kafka_python import KafkaConsumer
from kafka_assignors.clients.kafka_python.config import ADDED, MEMBERSHIP, REFUSED, ConsumerConfig
from kafka_assignors.clients.kafka_python.errors import OptionError, client_error, commit_error
from kafka_assignors.member.data_path import CommitOutcome, Position
from support.data_paths import Readers
from support.readers.on_kafka_python import KafkaPythonReader

if TYPE_CHECKING:
    from support.broker import Kafka

IS_VERSION_3 = hasattr(kafka, "AsyncConsumerRebalanceListener")
NATIVE = kafka.KafkaConsumer
SPECIAL = {"__init__", "__iter__", "__next__", "__enter__", "__exit__"}
PUBLIC = sorted({each for each in dir(NATIVE) if not each.startswith("_")} | (SPECIAL & set(dir(NATIVE))))

# Settings that only concern fetching, or the objects of the client.
DATA_PATH_ONLY = {
    "api_version",
    "api_version_auto_timeout_ms",
    "bootstrap_timeout_ms",
    "check_crcs",
    "connections_max_idle_ms",
    "consumer_timeout_ms",
    "enable_incremental_fetch_sessions",
    "fetch_max_bytes",
    "fetch_max_wait_ms",
    "fetch_min_bytes",
    "isolation_level",
    "kafka_client",
    "key_deserializer",
    "max_in_flight_requests_per_connection",
    "max_partition_fetch_bytes",
    "max_poll_records",
    "metric_group_prefix",
    "metric_reporters",
    "metrics_enabled",
    "metrics_num_samples",
    "metrics_sample_window_ms",
    "receive_message_max_bytes",
    "sasl_kerberos_domain_name",
    "sasl_kerberos_name",
    "sasl_kerberos_service_name",
    "selector",
    "sock_chunk_buffer_count",
    "sock_chunk_bytes",
    "value_deserializer",
}


def read(**settings: Any) -> ConsumerConfig:
    config = ConsumerConfig.read({"group_id": "g", **settings})
    assert config is not None
    return config


@pytest.mark.parametrize("name", PUBLIC)
def test_every_member_of_the_client_is_there(name: str) -> None:
    theirs, ours = getattr(NATIVE, name), getattr(KafkaConsumer, name)
    if not callable(theirs):
        assert ours is theirs
        return
    expected, found = inspect.signature(theirs).parameters, inspect.signature(ours).parameters
    # In the client's order, since a call may give them by position. Parameters of newer releases follow.
    assert list(found)[: len(expected)] == [*expected] or name in ("__exit__", "__init__")
    for parameter, each in zip(expected.values(), found.values(), strict=False):
        assert (each.kind, each.default) == (parameter.kind, parameter.default), parameter
    if IS_VERSION_3:
        assert len(expected) == len(found)
    if ours is not theirs and name not in SPECIAL:
        assert inspect.getdoc(ours)


def test_it_is_a_consumer_of_the_client() -> None:
    assert issubclass(KafkaConsumer, NATIVE)
    assert KafkaConsumer.__name__ == NATIVE.__name__
    assert {each for each in dir(KafkaConsumer) if not each.startswith("_")} - set(PUBLIC) == {"plan"}


def test_every_setting_of_the_client_has_its_place() -> None:
    """No setting is ignored: each is read, refused, or used by the client alone."""
    sources = inspect.getsource(ConsumerConfig) + inspect.getsource(connection)
    settings = set(NATIVE.DEFAULT_CONFIG)
    read_here = {each for each in settings if f'"{each}"' in sources or each in MEMBERSHIP | ADDED | REFUSED.keys()}
    assert settings - read_here - DATA_PATH_ONLY == set()
    assert not read_here & DATA_PATH_ONLY


def test_defaults_are_the_clients() -> None:
    config, defaults = read(), NATIVE.DEFAULT_CONFIG
    assert config.session_timeout_ms == defaults["session_timeout_ms"]
    assert config.heartbeat_interval_ms == defaults["heartbeat_interval_ms"]
    assert config.max_poll_interval_ms == defaults["max_poll_interval_ms"]
    assert config.metadata_refresh_ms == defaults["metadata_max_age_ms"]
    assert config.retry_backoff_ms == defaults["retry_backoff_ms"]
    assert config.auto_commit_interval * 1000 == defaults["auto_commit_interval_ms"]
    assert (config.auto_commit, config.reset, config.rack) == (True, "latest", None)
    assert config.client.client_id == defaults["client_id"]
    names = [each.name for each in defaults["partition_assignment_strategy"]]
    assert [each.name for each in config.assignors] == names
    # kafka-python 2.2 and 2.3 need a larger limit for responses: test_kafka_python_releases.py.
    limit = {"receive_message_max_bytes"} & config.data_path.keys()
    assert config.data_path.keys() - limit == {"group_id", "enable_auto_commit"}
    assert (config.data_path["group_id"], config.data_path["enable_auto_commit"]) == (None, False)
    assert ConsumerConfig.read({}) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("sticky", [StickyAssignor()]),
        ("cooperative-sticky , sticky", [CooperativeStickyAssignor(), StickyAssignor()]),
        ("lag(scope=group)", [LagBasedAssignor(scope="group")]),
        (StickyAssignor(mode="fair"), [StickyAssignor(mode="fair")]),
        ([StickyAssignor, "range"], [StickyAssignor(), RangeAssignor()]),
        ([RangePartitionAssignor, RoundRobinPartitionAssignor], [RangeAssignor(), RoundRobinAssignor()]),
        ((RangePartitionAssignor,), [RangeAssignor()]),
        (None, [RangeAssignor(), RoundRobinAssignor()]),
    ],
)
def test_strategies(value: Any, expected: list[Any]) -> None:
    assert list(read(partition_assignment_strategy=value).assignors) == expected


class Mine(RangePartitionAssignor):  # type: ignore[misc]
    name = "mine"


class Renamed(RangePartitionAssignor):  # type: ignore[misc]
    """A subclass may plan otherwise than the client's assignor with the same name."""


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ([], "is empty"),
        ("none-such", "none-such"),
        (["sticky", "sticky(mode=fair)"], "give each name once"),
        ([3], "has a builtins.int"),
        ([Mine], "Mine \\('mine'\\), which only kafka-python's own consumer can call"),
        ([Renamed], "Renamed \\('range'\\), which only"),
        ("uniform", "uniform"),
    ],
)
def test_strategies_that_are_refused(value: Any, complaint: str) -> None:
    with pytest.raises(errors.OptionError, match=complaint):
        read(partition_assignment_strategy=value)


def test_the_clients_sticky_is_ours_only_where_it_writes_the_same_bytes() -> None:
    if not IS_VERSION_3:
        assert read(partition_assignment_strategy=[StickyPartitionAssignor]).assignors == (StickyAssignor(),)
        return
    with pytest.raises(errors.OptionError, match="writes its history in another form"):
        read(partition_assignment_strategy=[StickyPartitionAssignor])
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor as Theirs

    assert read(partition_assignment_strategy=[Theirs]).assignors == (CooperativeStickyAssignor(),)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"sasl_mechanism": "GSSAPI", "security_protocol": "SASL_SSL"}, "GSSAPI"),
        ({"legacy_iterator": True}, "legacy_iterator is not supported"),
        ({"on_rebalance": 3}, "on_rebalance is a int; give a function"),
        ({"on_broker_assignor": "maybe"}, "on_broker_assignor is 'maybe'"),
        ({"group_instance_id": ""}, "group_instance_id is ''"),
        ({"heartbeat_interval_ms": 60_000}, "heartbeat_interval_ms is 60000, not below session_timeout_ms"),
        ({"partition_assignment_strategy": "none-such"}, "partition_assignment_strategy: .*none-such"),
    ],
)
def test_the_constructor_refuses_by_name(settings: dict[str, Any], complaint: str) -> None:
    """The constructor refuses before it connects: no broker listens at this address."""
    with pytest.raises(KafkaConfigurationError, match=complaint) as refused:
        KafkaConsumer("t", bootstrap_servers="127.0.0.1:1", group_id="g", **settings)
    assert isinstance(refused.value, errors.OptionError)
    again = pickle.loads(pickle.dumps(refused.value))
    assert (type(again), str(again)) == (OptionError, str(refused.value))


def test_an_unknown_setting_is_the_clients_error() -> None:
    with pytest.raises(KafkaConfigurationError, match=r"Unrecognized configs: .*no_such"):
        KafkaConsumer("t", group_id="g", no_such=1)


def test_the_settings_are_shown_as_they_were_given(embedded: Kafka) -> None:
    with Readers(embedded, KafkaPythonReader, "sticky") as readers:
        further = {"client_rack": "a", "group_instance_id": "one"}
        config = readers.add(auto_commit=True, further=further).consumer.config  # type: ignore[attr-defined]
        assert config["group_id"] == readers.group
        assert (config["enable_auto_commit"], config["client_rack"], config["group_instance_id"]) == (True, "a", "one")
        assert config["partition_assignment_strategy"] == "sticky"


def test_errors_of_a_group_have_the_clients_classes() -> None:
    asked = {("t", 0): Position(1)}
    assert commit_error(CommitOutcome(asked)) is None
    expected = {
        22: kafka.errors.CommitFailedError,
        25: kafka.errors.CommitFailedError,
        27: kafka.errors.RebalanceInProgressError,
        7: kafka.errors.KafkaTimeoutError,
        30: kafka.errors.GroupAuthorizationFailedError,
    }
    assert {code: type(commit_error(CommitOutcome(asked, code))) for code in expected} == expected
    refused = CommitOutcome(asked, refused={("t", 0): 12})
    assert isinstance(commit_error(refused), kafka.errors.OffsetMetadataTooLargeError)
    assert isinstance(commit_error(CommitOutcome(asked, dropped=frozenset(asked))), kafka.errors.CommitFailedError)
    assert isinstance(commit_error(None), kafka.errors.KafkaTimeoutError)
    assert "\\x1b" in str(client_error(29, "evil \x1b[31m"))


def plug_ins() -> None:
    given = read(partition_assignment_strategy=[partial(kafka_python.StickyAssignor, rack="a"), RangePartitionAssignor])
    assert (given.assignors, given.rack) == ((StickyAssignor(), RangeAssignor()), "a")
    hear: list[Any] = []
    plug_in = kafka_python.LagBasedAssignor(scope="group", on_rebalance=hear.append)
    assert read(partition_assignment_strategy=plug_in).on_rebalance == hear.append
    assert read(partition_assignment_strategy=plug_in).assignors == (LagBasedAssignor(scope="group"),)
    assert read(partition_assignment_strategy=plug_in, client_rack="b").rack == "b"
    racks = [kafka_python.StickyAssignor(rack="a"), kafka_python.CooperativeStickyAssignor(rack="b")]
    with pytest.raises(errors.OptionError, match="different racks; give client_rack"):
        read(partition_assignment_strategy=racks)

    class Derived(kafka_python.StickyAssignor):
        pass

    with pytest.raises(errors.OptionError, match="a subclass of a plug-in"):
        read(partition_assignment_strategy=[Derived])


if IS_VERSION_3:
    test_plug_ins_are_taken_by_what_they_plug_in = plug_ins


def test_the_setting_is_described_for_any_client() -> None:
    own = strategy_setting.OwnAssignors("the client", "elsewhere", "range", frozenset())
    with pytest.raises(errors.OptionError, match="which only the client's own consumer can call"):
        strategy_setting.read_strategies([RangePartitionAssignor], own)
    assert issubclass(RangePartitionAssignor, AbstractPartitionAssignor)
