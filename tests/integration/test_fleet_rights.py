"""A user without rights to some groups and topics, on a real broker with its own authorizer. The command and the
exporter show the rest of the fleet, and name the missing parts."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from kafka_assignors.cli.app import app
from kafka_assignors.cluster import Missing, read_fleet
from kafka_assignors.metrics.exporter import Exporter, Settings
from support.broker import ApacheKafka
from support.planned_group import commit, standing_group

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# One broker for all tests of this module, in one process.
pytestmark = [pytest.mark.needs("broker"), pytest.mark.xdist_group("guarded"), pytest.mark.timeout(180)]

_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_LISTENER = "listener.name.sasl_plaintext"
NOT_A_GROUP = "it cannot be described: GROUP_AUTHORIZATION_FAILED (30)"
NOT_A_TOPIC = "it cannot be described, and its lag is not known: TOPIC_AUTHORIZATION_FAILED (29)"


class GuardedKafka(ApacheKafka):
    """A user without a login has all rights; alice has the rights that rules give her."""

    listeners = MappingProxyType({"PLAINTEXT": "PLAINTEXT", "SASL_PLAINTEXT": "SASL_PLAINTEXT"})

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.config |= {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            f"{_LISTENER}.sasl.enabled.mechanisms": "PLAIN",
            f"{_LISTENER}.plain.sasl.jaas.config": f'{_MODULE} required user_alice="alice-secret";',
        }

    def alice(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.address("SASL_PLAINTEXT"),
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": "alice-secret",
        }

    def allow(self, kind: ResourceType, name: str) -> None:
        rule = AclBinding(
            kind,
            name,
            ResourcePatternType.LITERAL,
            "User:alice",
            "*",
            AclOperation.DESCRIBE,
            AclPermissionType.ALLOW,
        )
        for done in self.admin.create_acls([rule]).values():
            done.result(15)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKafka]:
    """Alice may describe the cluster, the groups `mine` and `both`, and the topic `t`; `both` reads `u` as well."""
    with GuardedKafka(tmp_path_factory.mktemp("guarded")) as kafka:
        for topic in ("t", "u"):
            kafka.create_topic(topic, 2)
        for group in ("mine", "other"):
            commit(kafka.bootstrap_servers, group, {("t", 0): 0})
        kafka.allow(ResourceType.BROKER, "kafka-cluster")
        for group in ("mine", "both"):
            kafka.allow(ResourceType.GROUP, group)
        kafka.allow(ResourceType.TOPIC, "t")
        with standing_group(kafka.bootstrap_servers, "both", {"t": 2, "u": 2}, ["m"]):
            yield kafka


def test_the_fleet_is_what_the_user_may_see(guarded: GuardedKafka) -> None:
    look = read_fleet(guarded.alice(), stable_within=0.3)
    assert set(look.snapshot.groups) == {"mine", "both"}
    assert set(look.snapshot.topics) == {"t"}
    assert set(look.missing) == {Missing("group", "other", NOT_A_GROUP), Missing("topic", "u", NOT_A_TOPIC)}


def test_the_command_says_what_is_missing(guarded: GuardedKafka, tmp_path: Path) -> None:
    config = tmp_path / "alice.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in guarded.alice().items()))
    command = ["fleet", "--config", str(config)]
    text = CliRunner().invoke(app, command, env={"COLUMNS": "200"})
    assert text.exit_code == 3, (text.output, text.exception)
    assert f"not read: group other: {NOT_A_GROUP}" in text.stdout
    assert f"not read: topic u: {NOT_A_TOPIC}" in text.stdout
    values = json.loads(CliRunner().invoke(app, [*command, "--format", "json"]).stdout)
    assert {each["group_id"] for each in values["groups"]} == {"mine", "both"}
    assert {(each["kind"], each["name"]) for each in values["missing"]} == {("group", "other"), ("topic", "u")}


def test_the_exporter_counts_what_is_missing(guarded: GuardedKafka) -> None:
    exporter = Exporter(Settings(guarded.alice()))
    assert exporter.look()
    families = {family.name: family for family in text_string_to_metric_families(exporter.page.plain.decode())}
    missing = {each.labels["kind"]: each.value for each in families["kafka_assignors_missing"].samples}
    assert missing == {"broker": 0, "group": 1, "gone": 0, "offsets": 0, "topic": 1}
    seen = {each.labels["group"] for each in families["kafka_assignors_group_members"].samples}
    assert seen == {"mine", "both"}


def test_a_wrong_password_is_one_sentence(guarded: GuardedKafka) -> None:
    settings = {**guarded.alice(), "sasl.password": "wrong"}
    command = ["fleet", "--timeout", "5", "--bootstrap-server", settings.pop("bootstrap.servers")]
    given = [part for name, value in settings.items() for part in ("-X", f"{name}={value}")]
    result = CliRunner().invoke(app, [*command, *given])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.output
