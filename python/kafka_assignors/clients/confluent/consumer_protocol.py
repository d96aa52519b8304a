"""`group.protocol=consumer`: librdkafka's own member of the group (KIP-848), in place of this package's."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import confluent_kafka

from kafka_assignors.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["is_asked_for", "librdkafkas"]

logger = logging.getLogger("kafka_assignors")

_REMEDIES = {
    "on_rebalance": "give on_assign and on_revoke to subscribe",
    "on_broker_assignor": "the broker's assignor is what was asked for",
    "partition.assignment.strategy": "the broker plans; vote for one of its assignors with group.remote.assignor",
}


def is_asked_for(config: Mapping[str, Any]) -> bool:
    """Whether the settings ask for the protocol."""
    value = config.get("group.protocol")
    return isinstance(value, str) and value.lower() == "consumer"


def librdkafkas(config: Mapping[str, Any]) -> confluent_kafka.Consumer:
    """The client's own consumer, and a line in the log that says so.

    Raises:
        OptionError: a setting of this package's membership, which this consumer does not use.
        KafkaException: as the client.
    """
    for name, remedy in _REMEDIES.items():
        if config.get(name) is not None:
            raise OptionError(f"{name} cannot be set when group.protocol is 'consumer': {remedy}; leave it out")
    made = confluent_kafka.Consumer(dict(config))
    logger.warning(
        "group %r: group.protocol is 'consumer', which librdkafka speaks itself; this is its own consumer, without "
        "assignors and reports of this package",
        config.get("group.id"),
    )
    return made
