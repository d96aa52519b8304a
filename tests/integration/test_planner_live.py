"""The planner on live groups: embedded and real brokers, both group protocols, TLS and SASL."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import confluent_kafka
import pytest
from typer.testing import CliRunner, Result

from kafka_assignors import MemberState, StickyAssignor
from kafka_assignors.cli.app import app
from kafka_assignors.cluster import (
    ConsumerMember,
    Snapshot,
    list_groups,
    questions,
    read_snapshot,
    record_bytes,
)
from kafka_assignors.embedded import EmbeddedKafka
from kafka_assignors.errors import ClusterError, NetworkError, OptionError, SecurityError
from kafka_assignors.planner.observed_group import ObservedGroup
from support.broker import Kafka, unique
from support.clocks import PausesAtOnce
from support.jars import DEFAULT_VERSION
from support.planned_group import commit, standing_group
from support.raw_group import RawGroup
from support.secured import PASSWORD, USER, SecuredKafka

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CLIENTS = ("c0", "c1", "c2")


def run(*arguments: str | Path, status: int = 0) -> Result:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == status, (result.output, result.exception)
    return result


def at(kafka: Kafka) -> dict[str, str]:
    return {"bootstrap.servers": kafka.bootstrap_servers}


def produce(kafka: Kafka, topic: str, partition: int, count: int) -> None:
    producer = confluent_kafka.Producer({**at(kafka), "log_level": 0})
    for number in range(count):
        producer.produce(topic, str(number), partition=partition)
    assert producer.flush(30) == 0


def test_a_group_is_read_as_it_is(any_kafka: Kafka, tmp_path: Path) -> None:
    topics = {any_kafka.create_topic(unique("orders"), 6): 6, any_kafka.create_topic(unique("payments"), 3): 3}
    orders, payments = topics
    group = unique("billing")
    produce(any_kafka, orders, 0, 7)
    commit(any_kafka.bootstrap_servers, group, {(orders, 0): 3, (payments, 2): 0})
    told: list[tuple[str, int, int]] = []
    with standing_group(any_kafka.bootstrap_servers, group, topics, CLIENTS) as shares:
        taken = read_snapshot(at(any_kafka), [group], clients=True, progress=lambda *step: told.append(step))
        found = taken.groups[group]
        assert (found.protocol, found.state, found.assignor, found.protocol_type) == (
            "classic",
            "Stable",
            "sticky",
            "consumer",
        )
        assert {member.id: dict(member.owned) for member in found.members} == shares
        assert {member.client_id for member in found.members} == set(CLIENTS)
        assert all(member.topics == tuple(sorted(topics)) for member in found.members)
        assert found.committed == {orders: (3, None, None, None, None, None), payments: (None, None, 0)}
        assert (taken.topics[orders].begin, taken.topics[orders].end) == ((0,) * 6, (7, 0, 0, 0, 0, 0))
        assert taken.record_limit is not None
        assert taken.record_limit >= 1_000_000
        assert set(taken.topics) == set(topics)
        assert {"groups", "commits", "first offsets", "next offsets"} <= {what for what, _, _ in told}
        # With the client ids, the size of the record is exact. A snapshot without client ids keeps this size.
        discreet = read_snapshot(at(any_kafka), [group])
        assert all(member.client_id is None for member in discreet.groups[group].members)
        assert discreet.groups[group].record_bytes == found.record_bytes == record_bytes(group, found)
        assert ObservedGroup(taken).lags("latest")[orders] == [4, 0, 0, 0, 0, 0]
        assert group in {each.group_id for each in list_groups(at(any_kafka))}
        arguments = ("--bootstrap-server", any_kafka.bootstrap_servers, "--group", group)
        described = json.loads(run("describe", *arguments, "--format", "json").stdout)
        assert (described["lag"], described["spread"], described["warnings"]) == (4, [3, 3], 0)
        path = tmp_path / "billing.json"
        run("snapshot", *arguments, "-o", path)
        assert Snapshot.load(path).groups[group].members == discreet.groups[group].members
        changes = ("--join", "1", "--leave", "c2", "--partitions", f"{orders}=12", "--format", "json")
        live = json.loads(run("plan", *arguments, *changes).stdout)
        assert live == json.loads(run("plan", "--snapshot", path, *changes).stdout)
        assert live["least_moved"] == live["moved"]
        for member in shares:
            assert member[:11] in run("decode", *arguments).stdout
        assert "roundrobin" in run("compare", *arguments).stdout
        assert "rolling restart" in run("rebalance-cost", *arguments, "--rolling-restart").stdout


def test_topics_that_nobody_subscribes_to_yet(any_kafka: Kafka) -> None:
    topic, later = any_kafka.create_topic(unique("a"), 2), any_kafka.create_topic(unique("b"), 5)
    group = unique("g")
    arguments = ("--bootstrap-server", any_kafka.bootstrap_servers, "--group", group)
    with standing_group(any_kafka.bootstrap_servers, group, {topic: 2}, CLIENTS[:1]):
        planned = json.loads(run("plan", *arguments, "--subscribe", f"c0={topic},{later}", "--format", "json").stdout)
        assert planned["spread"] == [7, 7]
        missing = run("plan", *arguments, "--subscribe", f"c0={topic},{unique('none')}", status=2)
        assert "is not known; give its number of partitions as well" in missing.stderr


def test_groups_that_do_not_exist(any_kafka: Kafka) -> None:
    with pytest.raises(ClusterError, match=r"group 'none-.*' does not exist"):
        read_snapshot(at(any_kafka), [unique("none")])
    result = run("describe", "--bootstrap-server", any_kafka.bootstrap_servers, "--group", unique("none"), status=2)
    assert "does not exist" in result.stderr


def test_a_group_that_rebalances_is_waited_for() -> None:
    """A member has joined and not synced: until the generation is complete, its subscription is unknown."""
    with EmbeddedKafka(topics={"x": 2}) as kafka, RawGroup(kafka.bootstrap_servers, "g", ["c0"]) as raw:
        raw.join({"c0": StickyAssignor().metadata(["x"], MemberState())})
        config = {"bootstrap.servers": kafka.bootstrap_servers}
        taken = read_snapshot(config, ["g"], stable_within=0.3)
        assert taken.groups["g"].state == "CompletingRebalance"
        arguments = ("--bootstrap-server", kafka.bootstrap_servers, "--group", "g", "--timeout", "8")
        assert "state CompletingRebalance" in run("plan", *arguments, status=2).stderr
        assert "warning: stable" in run("describe", *arguments, status=3).stdout


def test_all_groups_of_a_cluster() -> None:
    with EmbeddedKafka(topics={"x": 4}) as kafka:
        address = kafka.bootstrap_servers
        with (
            standing_group(address, "g", {"x": 4}, ["c0"]),
            standing_group(address, "h", {"x": 4}, ["d0", "d1"]),
        ):
            taken = read_snapshot({"bootstrap.servers": address}, None)
            assert {name: len(group.members) for name, group in taken.groups.items()} == {"g": 1, "h": 2}
            text = run("snapshot", "--bootstrap-server", address, "--all").stdout
            assert set(Snapshot.loads(text).groups) == {"g", "h"}
            listed = run("snapshot", "--bootstrap-server", address, "--list").stdout
            assert re.search(r"│ g +│", listed)
            assert "in every row: type classic; protocol type consumer; state Stable" in listed


def test_racks_and_faults_that_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddedKafka(topics={"x": 4}, racks=["a", "b"]) as kafka:
        config = {"bootstrap.servers": kafka.bootstrap_servers}
        with standing_group(kafka.bootstrap_servers, "g", {"x": 4}, ["c0"]):
            for api, error in (
                ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE"),
                ("DescribeGroups", "NOT_COORDINATOR"),
                ("OffsetFetch", "COORDINATOR_LOAD_IN_PROGRESS"),
            ):
                kafka.inject_fault(api, error=error)
            kafka.inject_fault("ListOffsets", close="before")
            taken = read_snapshot(config, ["g"])
            racks = taken.topics["x"].racks
            assert racks is not None
            assert frozenset().union(*racks) == {"a", "b"}
            kafka.inject_fault("DescribeGroups", error="GROUP_AUTHORIZATION_FAILED")
            with pytest.raises(ClusterError, match=r"GROUP_AUTHORIZATION_FAILED.*right to DESCRIBE"):
                read_snapshot(config, ["g"])
            kafka.inject_fault("DescribeConfigs", error="TOPIC_AUTHORIZATION_FAILED")
            assert read_snapshot(config, ["g"]).record_limit is None
            kafka.inject_fault("FindCoordinator", error="COORDINATOR_NOT_AVAILABLE", times=1000)
            monkeypatch.setattr(questions, "time", PausesAtOnce())
            with pytest.raises(ClusterError, match=r"COORDINATOR_NOT_AVAILABLE.*did not pass within 20 s"):
                read_snapshot(config, ["g"], timeout=20)


def test_what_cannot_be_read() -> None:
    with pytest.raises(NetworkError):
        read_snapshot({"bootstrap.servers": "127.0.0.1:1"}, ["g"], timeout=5)
    for options in ({"timeout": 0}, {"isolation_level": "none"}):
        with pytest.raises(OptionError):
            read_snapshot({"bootstrap.servers": "127.0.0.1:1"}, ["g"], **options)


def test_a_group_that_the_broker_assigns(kafka_of_version: Callable[[str], Kafka]) -> None:
    """Always the default release: on 3.9 the new protocol is a preview that is off."""
    kafka_broker = kafka_of_version(DEFAULT_VERSION)
    topic, group = kafka_broker.create_topic(unique("orders"), 4), unique("new")
    consumer = confluent_kafka.Consumer(
        {**at(kafka_broker), "group.id": group, "group.protocol": "consumer", "client.id": "modern", "log_level": 0}
    )
    try:
        consumer.subscribe([topic])
        deadline = time.monotonic() + 60
        while len(consumer.assignment()) < 4:
            assert time.monotonic() < deadline, "the broker assigned nothing"
            consumer.poll(0.2)
        taken = read_snapshot(at(kafka_broker), [group])
        found = taken.groups[group]
        assert (found.protocol, found.assignor) == ("consumer", "uniform")
        commit(kafka_broker.bootstrap_servers, old := unique("old"), {(topic, 0): 0})
        types = {each.group_id: each.group_type for each in list_groups(at(kafka_broker))}
        assert (types[group], types[old]) == ("consumer", "classic")
        listed = run("snapshot", "--bootstrap-server", kafka_broker.bootstrap_servers, "--list").stdout
        assert re.search(rf"│ {group} +│ consumer +│ consumer +│ Stable +│", listed)
        assert re.search(rf"│ {old} +│ classic +│", listed)
        assert found.epoch is not None
        (member,) = found.members
        assert isinstance(member, ConsumerMember)
        assert (member.topics, member.owned, member.target) == (
            (topic,),
            {topic: (0, 1, 2, 3)},
            {topic: (0, 1, 2, 3)},
        )
        arguments = ("--bootstrap-server", kafka_broker.bootstrap_servers, "--group", group)
        text = run("describe", *arguments).stdout
        assert "the broker assigns (KIP-848)" in text
        planned = json.loads(run("plan", *arguments, "--join", "1", "--format", "json").stdout)
        assert (planned["observer"], planned["moved"]) == (True, 2)
        assert [finding["rule"] for finding in planned["findings"]] == ["committed", "broker-assigned"]
    finally:
        consumer.close()


def test_an_expression_that_would_never_end_costs_describe_nothing(kafka_of_version: Callable[[str], Kafka]) -> None:
    """A backtracking engine needs time in 2**n for a topic name of n characters. Brokers match in linear time."""
    kafka_broker = kafka_of_version(DEFAULT_VERSION)
    kafka_broker.create_topic("a" * 200, 1)
    group = unique("new")
    consumer = confluent_kafka.Consumer(
        {**at(kafka_broker), "group.id": group, "group.protocol": "consumer", "log_level": 0}
    )
    try:
        consumer.subscribe(["^(([a-z0-9._-])+)+!"])
        deadline = time.monotonic() + 60
        while group not in {each.group_id for each in list_groups(at(kafka_broker)) if each.state == "Stable"}:
            assert time.monotonic() < deadline, "nobody joined"
            consumer.poll(0.2)
        arguments = ("--bootstrap-server", kafka_broker.bootstrap_servers, "--group", group, "--timeout", "5")
        done = subprocess.run(
            [sys.executable, "-P", "-m", "kafka_assignors.cli", "describe", *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (3, ""), done.stdout
        assert "has no partition: it subscribes to no topic" in done.stdout
        # The broker has the expression, and `describe` has matched it with the names of the cluster's topics.
        (member,) = read_snapshot(at(kafka_broker), [group]).groups[group].members
        assert isinstance(member, ConsumerMember)
        assert (member.topic_regex, member.owned) == ("(^(([a-z0-9._-])+)+!)", {})
    finally:
        consumer.close()


WAYS = [
    ("SSL", None),
    ("MUTUAL", None),
    ("SASL_PLAINTEXT", "PLAIN"),
    ("SASL_PLAINTEXT", "SCRAM-SHA-256"),
    ("SASL_SSL", "SCRAM-SHA-512"),
]


@pytest.mark.xdist_group("secured")
@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
def test_tls_and_sasl_as_confluent_kafka_has_them(
    secured_kafka: SecuredKafka, tmp_path: Path, listener: str, mechanism: str | None
) -> None:
    topic, group = secured_kafka.create_topic(unique("x"), 2), unique("g")
    settings = secured_kafka.settings_of(listener, mechanism)
    with standing_group(secured_kafka.bootstrap_servers, group, {topic: 2}, CLIENTS[:1]):
        options = [part for name, value in settings.items() for part in ("-X", f"{name}={value}")]
        assert "c0" in run("describe", "--group", group, *options).stdout
        config = tmp_path / "client.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        assert "c0" in run("describe", "--group", group, "--config", config).stdout


@pytest.mark.xdist_group("secured")
def test_a_wrong_password_is_said_at_once_and_not_repeated(secured_kafka: SecuredKafka) -> None:
    settings = secured_kafka.settings_of("SASL_PLAINTEXT", "PLAIN") | {"sasl.password": "not-the-password"}
    assert (settings["sasl.username"], PASSWORD) == (USER, "alice-secret")
    started = time.monotonic()
    with pytest.raises(SecurityError) as caught:
        read_snapshot(settings, ["g"], timeout=60)
    assert "not-the-password" not in str(caught.value)
    assert time.monotonic() - started < 55
