"""The settings of a consumer: those of the membership, and those that kafka-python gets for the data path.

| Kind of setting | Where it is read |
| --- | --- |
| connections | `clients/common/connection.py`, and kafka-python |
| `MEMBERSHIP`, `ADDED` | here |
| `REFUSED` | here: an error with a remedy |
| all others | kafka-python, which refuses unknown ones |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import kafka

from kafka_assignors.clients.common.connection import client_config, text_of
from kafka_assignors.clients.common.group_protocol import DEFAULTS, read_group_protocol
from kafka_assignors.clients.common.strategy_setting import OwnAssignors, read_strategies
from kafka_assignors.clients.kafka_python._internals import frame_limit
from kafka_assignors.errors import OptionError
from kafka_assignors.member.config import ON_BROKER_ASSIGNOR, MemberConfig
from kafka_assignors.options import check_choice

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["ADDED", "MEMBERSHIP", "REFUSED", "ConsumerConfig", "without_membership"]

MEMBERSHIP = frozenset(
    (
        "group_id",
        "group_instance_id",
        "partition_assignment_strategy",
        "enable_auto_commit",
    )
)
"""The settings that the client does not get, since it would join or commit by itself."""

ADDED = frozenset((*DEFAULTS, "on_rebalance", "on_broker_assignor", "client_rack", "group_instance_id"))
"""Settings of ours, and those of newer releases of the client that concern the membership only."""

REFUSED: Mapping[str, tuple[tuple[Any, ...], str]] = {
    "legacy_iterator": ((False, None), "it reads past the group; leave it out"),
}
"""The settings that cannot be honoured: their harmless values, and a remedy for the others."""

# The shortest session timeout that brokers allow with KIP-848, unless their own bounds were changed.
_SESSION_MS = 45_000


def _own_assignors() -> OwnAssignors:
    same = {"range", "roundrobin", "cooperative-sticky"}
    refused = {}
    try:
        # Up to version 2 the user data are not this class but a bare struct, as in Java.
        from kafka.coordinator.assignors.sticky.sticky_assignor import StickyAssignorUserDataV1  # noqa: F401

        same.add("sticky")
    except ImportError:
        refused["sticky"] = (
            "it writes its history in another form than Java and this package, and neither reads the other's; give "
            "'sticky' once no member of the group runs kafka-python's own"
        )
    return OwnAssignors("kafka-python", "kafka", "range,roundrobin", frozenset(same), refused)


_OWN = _own_assignors()


@dataclass(frozen=True, kw_only=True)
class ConsumerConfig(MemberConfig):
    """The settings of a consumer: those of its membership, and further ones.

    Attributes:
        default_offset_commit_callback: the client's callback for commits without one of their own.
        reset: `earliest`, `latest`, or another text, with which a partition without a position is an error.
        create_topics: whether a subscription creates a missing topic, if the broker allows it.
        with_internal: whether a pattern may match Kafka's internal topics.
        data_path: the settings for the client.
        shown: the settings that the client does not get, and that its attribute `config` shows.
    """

    default_offset_commit_callback: Callable[..., object]
    reset: str
    create_topics: bool
    with_internal: bool
    data_path: dict[str, Any]
    shown: dict[str, Any]

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> ConsumerConfig | None:
        """Reads the keyword arguments of `kafka.KafkaConsumer`, and our own among them.

        Returns:
            None without a group: then there is no membership, and the client does everything by itself.

        Raises:
            OptionError: a setting that cannot be honoured; the message has a remedy.
        """
        settings = {**kafka.KafkaConsumer.DEFAULT_CONFIG, **DEFAULTS, **given}
        group_id = settings["group_id"]
        if group_id is None:
            return None
        for name, (harmless, remedy) in REFUSED.items():
            if settings.get(name) not in harmless:
                raise OptionError(f"{name} is not supported by this consumer: {remedy}")
        protocol, remote = read_group_protocol(settings["group_protocol"], settings["group_remote_assignor"], given)
        chosen = read_strategies(given.get("partition_assignment_strategy"), _OWN)
        on_rebalance = settings.get("on_rebalance") or chosen.on_rebalance
        if on_rebalance is not None and not callable(on_rebalance):
            raise OptionError(f"on_rebalance is a {type(on_rebalance).__name__}; give a function")
        instance_id = settings.get("group_instance_id")
        if instance_id is not None and not (isinstance(instance_id, str) and instance_id):
            raise OptionError(f"group_instance_id is {instance_id!r}; give a non-empty str")
        on_broker_assignor = settings.get("on_broker_assignor", chosen.on_broker_assignor or "fail")
        check_choice("on_broker_assignor", on_broker_assignor, ON_BROKER_ASSIGNOR)
        backoff = int(settings["retry_backoff_ms"])
        reset = {"smallest": "earliest", "largest": "latest"}.get(*2 * (settings["auto_offset_reset"],))
        return cls(
            client=client_config(settings, client="kafka-python"),
            group_id=text_of(group_id),
            group_instance_id=instance_id,
            assignors=chosen.assignors,
            rack=settings.get("client_rack") or chosen.rack,
            session_timeout_ms=_SESSION_MS if protocol == "consumer" else int(settings["session_timeout_ms"]),
            heartbeat_interval_ms=int(settings["heartbeat_interval_ms"]),
            max_poll_interval_ms=int(settings["max_poll_interval_ms"]),
            metadata_refresh_ms=max(1, int(settings["metadata_max_age_ms"])),
            retry_backoff_ms=backoff,
            retry_backoff_max_ms=max(backoff, 1_000),
            auto_commit=bool(settings["enable_auto_commit"]),
            # With 0 the client commits in every poll.
            auto_commit_interval=max(1, int(settings["auto_commit_interval_ms"])) / 1000,
            on_rebalance=on_rebalance,
            on_broker_assignor=on_broker_assignor,
            tells_every_rebalance=True,
            group_protocol=protocol,
            group_remote_assignor=remote,
            default_offset_commit_callback=settings["default_offset_commit_callback"],
            reset=text_of(reset),
            create_topics=bool(settings.get("allow_auto_create_topics", True)),
            with_internal=not settings["exclude_internal_topics"],
            data_path=_data_path(given),
            shown={name: settings[name] for name in sorted(MEMBERSHIP | ADDED) if name in settings},
        )

    def checked(self) -> ConsumerConfig:
        """These settings, if the heartbeat interval is shorter than the session timeout.

        Raises:
            OptionError: the heartbeat interval is not shorter.
        """
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise OptionError(
                f"heartbeat_interval_ms is {self.heartbeat_interval_ms}, not below session_timeout_ms "
                f"({self.session_timeout_ms}); give at most a third of it"
            )
        return self


def without_membership(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings for a consumer of the client without a group.

    Without strategies, since the client would check them although it does not use them.
    """
    known = kafka.KafkaConsumer.DEFAULT_CONFIG
    return {
        name: value
        for name, value in given.items()
        if name != "partition_assignment_strategy" and (name not in ADDED or name in known)
    }


def _data_path(given: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in without_membership(given).items() if name not in MEMBERSHIP}
    limit = frame_limit({**kafka.KafkaConsumer.DEFAULT_CONFIG, **given})
    if limit is not None:
        kept["receive_message_max_bytes"] = limit
    # With a group the client would look for its coordinator in each poll, and commit without a member id.
    return {**kept, "group_id": None, "enable_auto_commit": False}
