"""The commands on a real broker: for groups that are no groups of consumers, and for a user without rights."""

from __future__ import annotations

import struct
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import confluent_kafka
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from typer.testing import CliRunner, Result

from kafka_assignors.cli.app import app
from kafka_assignors.cluster import list_groups
from support.broker import Kafka, unique
from support.jars import DEFAULT_VERSION, consumer_protocol_version
from support.planned_group import standing_group
from support.raw_group import NONE, RawMember
from support.secured import USER, SecuredKafka

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_TIMEOUT = 60.0
# The commands for one group.
COMMANDS = ("describe", "migrate", "snapshot", "compare", "plan", "rebalance-cost")


def run(command: str, bootstrap_servers: str, group: str, *further: str) -> Result:
    arguments = [command, "--bootstrap-server", bootstrap_servers, "--group", group, *further]
    if command == "rebalance-cost":
        arguments += ["--scale", "+1"]
    return CliRunner().invoke(app, arguments)


def refused(result: Result) -> str:
    """The only line of a command that fails."""
    assert (result.exit_code, result.stdout) == (2, ""), (result.output, result.exception)
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr


@contextmanager
def share_group(kafka: Kafka, topic: str) -> Iterator[str]:
    """A share group (KIP-932) with one member, librdkafka's."""
    group_id = unique("share")
    consumer = confluent_kafka.ShareConsumer(
        {"bootstrap.servers": kafka.bootstrap_servers, "group.id": group_id, "log_level": 0}
    )
    consumer.subscribe([topic])
    try:
        deadline = time.monotonic() + _TIMEOUT
        while group_id not in {each.group_id for each in list_groups({"bootstrap.servers": kafka.bootstrap_servers})}:
            consumer.poll(0.1)
            assert time.monotonic() < deadline, "the share group does not come"
        yield group_id
    finally:
        consumer.close()


@contextmanager
def streams_group(kafka: Kafka, topic: str) -> Iterator[str]:
    """A streams group (KIP-1071) of one member that has sent its first heartbeat."""
    group_id = unique("streams")
    member = _StreamsMember(kafka.bootstrap_servers, group_id, "c0")
    try:
        assert member.join(topic) == NONE
        yield group_id
    finally:
        member.close()


class _StreamsMember(RawMember):
    def join(self, topic: str) -> int:
        """Sends StreamsGroupHeartbeat version 0 with a topology of one source. Returns the error code."""
        absent, none = b"\x00", b"\x01"
        subtopology = _compact("0") + b"\x02" + _compact(topic) + none * 5 + absent
        topology = b"\x01" + struct.pack(">i", 0) + b"\x02" + subtopology + absent
        body = b"".join(
            (
                # The tags of the header.
                absent,
                _compact(self.group),
                _compact("member-0"),
                # Epochs of the member and of the endpoints; instance id, rack, rebalance timeout.
                struct.pack(">ii", 0, 0),
                absent * 2,
                struct.pack(">i", 10_000),
                topology,
                # Active, standby and warm-up tasks; process; endpoint; client tags, offsets, end offsets; no shutdown.
                none * 3,
                _compact("process-0"),
                b"\xff",
                absent * 3,
                b"\x00",
                absent,
            )
        )
        self._send(88, 0, body)
        (error,) = self._receive().take(">x4xh")
        return error


def _compact(text: str) -> bytes:
    data = text.encode()
    assert len(data) < 127
    return bytes([len(data) + 1]) + data


@pytest.mark.parametrize("kind", ["share", "streams"])
def test_groups_of_other_kinds_are_named(kafka_of_version: Callable[[str], Kafka], kind: str) -> None:
    """On the newest release: before 4.2 these groups are a preview."""
    kafka = kafka_of_version(DEFAULT_VERSION)
    topic = kafka.create_topic(unique("t"), 2)
    with (share_group if kind == "share" else streams_group)(kafka, topic) as group_id:
        for command in COMMANDS:
            said = refused(run(command, kafka.bootstrap_servers, group_id))
            assert f"group {group_id!r} is of type {kind!r}; only groups of consumers" in said, command
        # For a whole cluster, the command succeeds: each group has a row of its own.
        result = CliRunner().invoke(app, ["migrate", "--bootstrap-server", kafka.bootstrap_servers])
        assert result.exit_code in (0, 3), result.output


class _Guarded(SecuredKafka):
    """A client without SASL has all rights. Any other has only the rights that `allow` gives."""

    def __init__(self, directory: Path, version: str) -> None:
        super().__init__(
            directory,
            version,
            authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            super_users="User:ANONYMOUS",
        )

    def allow(self, kind: ResourceType, name: str, operation: AclOperation) -> None:
        """Gives `USER` a right."""
        who = (f"User:{USER}", "*", operation, AclPermissionType.ALLOW)
        binding = AclBinding(kind, name, ResourcePatternType.LITERAL, *who)
        for asked in self.admin.create_acls([binding]).values():
            asked.result(15)


@pytest.mark.needs("broker")
def test_a_user_without_rights_is_told_which_one_is_missing(tmp_path: Path) -> None:
    with _Guarded(tmp_path / "kafka", consumer_protocol_version()) as kafka:
        topic, group_id = kafka.create_topic(unique("t"), 2), unique("g")
        settings = kafka.settings_of("SASL_PLAINTEXT", "PLAIN")
        address = str(settings.pop("bootstrap.servers"))
        options = [part for name, value in settings.items() for part in ("-X", f"{name}={value}")]
        with standing_group(kafka.bootstrap_servers, group_id, {topic: 2}, ["c0"]):
            for command in COMMANDS:
                said = refused(run(command, address, group_id, *options))
                assert repr(group_id) in said, command
                assert "GROUP_AUTHORIZATION_FAILED (30); the user needs the right to DESCRIBE it" in said, command
            kafka.allow(ResourceType.GROUP, group_id, AclOperation.DESCRIBE)
            assert f"topic {topic!r} does not exist, or cannot be seen" in _said(
                "describe", address, group_id, *options
            )
            kafka.allow(ResourceType.TOPIC, topic, AclOperation.DESCRIBE)
            assert "cannot be seen" not in _said("describe", address, group_id, *options)
            # Rules that depend on the broker's settings are unknown. The other rules are checked.
            said = _said("migrate", address, group_id, *options)
            assert "CLUSTER_AUTHORIZATION_FAILED (31); the user needs DESCRIBE_CONFIGS on the cluster" in said
            assert "no-user-data" in said


def _said(command: str, bootstrap_servers: str, group: str, *further: str) -> str:
    result = run(command, bootstrap_servers, group, *further)
    assert result.exit_code in (0, 3), result.output
    return result.output
