"""Whether the brokers of a cluster serve the protocol of KIP-848, and their settings of it. Read-only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafka_assignors.cluster.live import brokers_in
from kafka_assignors.cluster.questions import Question, Questions, named
from kafka_assignors.cluster.topics import broker_address, brokers_of
from kafka_assignors.errors import KafkaAssignorsError
from kafka_assignors.lag import check_reading
from kafka_assignors.printable import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SETTINGS", "NewProtocol", "read_new_protocol"]

_HEARTBEAT = 68
_BROKER_RESOURCE = 4
_NAME, _VERSION = "kafka-assignors", "1"

SETTINGS = (
    "group.consumer.migration.policy",
    "group.consumer.assignors",
    "group.consumer.max.size",
    "group.consumer.heartbeat.interval.ms",
    "group.consumer.session.timeout.ms",
    "group.consumer.min.session.timeout.ms",
    "group.consumer.max.session.timeout.ms",
)
"""The settings of brokers on which the new protocol depends."""


@dataclass(frozen=True, slots=True)
class NewProtocol:
    """The support for the new protocol on the brokers of a cluster, and their settings of it.

    Attributes:
        brokers: how many brokers the cluster has.
        heartbeat: the highest version of ConsumerGroupHeartbeat that all brokers serve; -1 if one of them has none.
        group_version: the finalized level of the feature `group.version`; 0 without one.
        settings: for each name of `SETTINGS`, the different values that brokers returned.
        unread: by broker, why its settings could not be read; empty if all were read.
    """

    brokers: int
    heartbeat: int
    group_version: int
    settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)


def read_new_protocol(config: Mapping[str, Any], *, timeout: float = 30.0) -> NewProtocol:
    """Asks every broker. A user without the right to read settings gets an answer without them.

    Args:
        config: settings as for `confluent_kafka`, `bootstrap.servers` among them.
        timeout: the seconds that all requests together may take.

    Raises:
        ClusterError: the cluster does not answer.
        NetworkError: it cannot be reached.
        OptionError: a setting that cannot be used.
    """
    check_reading("read_uncommitted", timeout)
    with Questions(config, timeout) as questions:
        brokers_in(questions)
        found = brokers_of(questions.ask("Metadata", []))
        addresses = {node: broker_address(broker) for node, broker in found.items()}
        versions = questions.ask_all([Question(each, "ApiVersions", (_NAME, _VERSION)) for each in addresses.values()])
        heartbeat = min(each["api_keys"].get(_HEARTBEAT, (0, -1))[1] for each in versions)
        level = min(each["features"].get("group.version", 0) for each in versions)
        settings: dict[str, set[str]] = {}
        unread: dict[str, str] = {}
        asked = [
            Question(address, "DescribeConfigs", (_BROKER_RESOURCE, str(node), list(SETTINGS)))
            for node, address in addresses.items()
        ]
        for node, answer in zip(addresses, questions.ask_each(asked, questions.left), strict=True):
            if isinstance(answer, KafkaAssignorsError):
                unread[str(node)] = printable(answer)
            elif answer["error_code"]:
                unread[str(node)] = named(answer["error_code"])
            else:
                for name, value in answer["configs"].items():
                    if value is not None:
                        settings.setdefault(name, set()).add(value)
        values = {name: tuple(sorted(settings[name])) for name in SETTINGS if name in settings}
        return NewProtocol(len(addresses), heartbeat, level, values, unread)
