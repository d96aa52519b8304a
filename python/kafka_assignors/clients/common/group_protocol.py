"""The settings `group_protocol` and `group_remote_assignor` of the consumers of kafka-python and aiokafka (KIP-848)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from kafka_assignors.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_assignors.member.config import GroupProtocol

__all__ = ["CLASSIC_ONLY", "DEFAULTS", "broker_expression", "read_group_protocol"]

DEFAULTS = {"group_protocol": "classic", "group_remote_assignor": None}
"""The settings, and their defaults."""

CLASSIC_ONLY = (
    "partition_assignment_strategy",
    "session_timeout_ms",
    "heartbeat_interval_ms",
    "rebalance_timeout_ms",
    "on_broker_assignor",
)
"""The settings that `group_protocol="consumer"` refuses. Java refuses its settings of the same names."""

_REMEDIES = {
    "partition_assignment_strategy": "the broker plans; vote for one of its assignors with group_remote_assignor",
    "session_timeout_ms": "it is the broker's or the group's setting consumer.session.timeout.ms",
    "heartbeat_interval_ms": "it is the broker's or the group's setting consumer.heartbeat.interval.ms",
    "rebalance_timeout_ms": "the broker waits for max_poll_interval_ms",
    "on_broker_assignor": "the broker's assignor is what was asked for",
}


def read_group_protocol(protocol: Any, remote_assignor: Any, chosen: Iterable[str]) -> tuple[GroupProtocol, str | None]:
    """Reads the two settings.

    Args:
        protocol: `classic` or `consumer`, in any case of letters.
        remote_assignor: the name of one of the broker's assignors, or None.
        chosen: the names of the settings that the user gave.

    Raises:
        OptionError: a bad value, or a setting that belongs to the other protocol.
    """
    name = protocol.lower() if isinstance(protocol, str) else None
    if name == "classic":
        if remote_assignor is not None:
            raise OptionError(
                f"group_remote_assignor is {remote_assignor!r}, which needs group_protocol='consumer'; in the classic "
                "protocol give partition_assignment_strategy"
            )
        return "classic", None
    if name != "consumer":
        raise OptionError(f"group_protocol is {protocol!r}; give 'classic' or 'consumer'")
    for setting in chosen:
        if setting in CLASSIC_ONLY:
            raise OptionError(
                f"{setting} cannot be set when group_protocol is 'consumer': {_REMEDIES[setting]}; leave it out"
            )
    if remote_assignor is not None and not (isinstance(remote_assignor, str) and remote_assignor):
        raise OptionError(f"group_remote_assignor is {remote_assignor!r}; give the name of a broker's assignor or None")
    return "consumer", remote_assignor


def broker_expression(pattern: str | re.Pattern[str]) -> str:
    """The expression for the broker that matches the same names as `re.match`: the broker compares whole names.

    >>> broker_expression("orders-")
    '(?:orders-).*'
    >>> broker_expression(re.compile("orders-", re.IGNORECASE))
    '(?i)(?:orders-).*'
    """
    if isinstance(pattern, str):
        return f"(?:{pattern}).*"
    return ("(?i)" if pattern.flags & re.IGNORECASE else "") + f"(?:{pattern.pattern}).*"
