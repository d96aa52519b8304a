"""The settings of a consumer: those of its membership, and those that the client gets for reading.

| Setting | Part that uses it |
| --- | --- |
| of connections and of security | the membership and the client |
| of the group, of its times and of automatic commits | the membership; the client only shows them |
| `client_rack` | the membership and the client; before aiokafka 0.14 the membership alone |
| `on_rebalance`, `on_broker_assignor`, `group_protocol`, `group_remote_assignor` | the membership |
| all others | the client |
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiokafka

from kafka_assignors.clients.aiokafka.tokens import asking_on
from kafka_assignors.clients.common.connection import ask_provider, client_config, text_of
from kafka_assignors.clients.common.group_protocol import CLASSIC_ONLY, DEFAULTS, read_group_protocol
from kafka_assignors.clients.common.strategy_setting import OwnAssignors, read_strategies
from kafka_assignors.errors import OptionError
from kafka_assignors.member.config import ON_BROKER_ASSIGNOR, MemberConfig
from kafka_assignors.options import check_choice

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

__all__ = ["OURS", "ConsumerConfig", "is_ours_alone", "signature"]

# The client's class is stored at import, since programs may put our class in its place later.
_Client = aiokafka.AIOKafkaConsumer
_OWN = OwnAssignors("aiokafka", "aiokafka", "roundrobin", frozenset(("range", "roundrobin", "sticky")))
# The shortest session timeout that brokers allow with KIP-848, unless their own bounds were changed.
_SESSION_MS = 45_000

OURS: Mapping[str, Any] = {"client_rack": None, "on_rebalance": None, "on_broker_assignor": "fail", **DEFAULTS}
"""The settings that the client's class lacks, at least in some releases, and their defaults."""


def is_ours_alone(name: str) -> bool:
    """Whether the client does not take this setting."""
    return name in OURS and name not in inspect.signature(_Client).parameters


def signature(*, with_self: bool = False) -> inspect.Signature:
    """The signature of the client's constructor in the installed release, with `OURS`."""
    own = inspect.signature(_Client.__init__)
    further = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        for name, default in OURS.items()
        if name not in own.parameters
    ]
    parameters = [*own.parameters.values(), *further]
    return own.replace(parameters=parameters if with_self else parameters[1:])


@dataclass(frozen=True, kw_only=True)
class ConsumerConfig(MemberConfig):
    """The settings of a consumer with a group.

    Attributes:
        reset: `auto_offset_reset`: where a partition without a commit starts.
        isolation_level: the client's.
        exclude_internal_topics: whether a pattern matches none of Kafka's internal topics.
    """

    reset: str
    isolation_level: str
    exclude_internal_topics: bool

    @classmethod
    def read(cls, settings: Mapping[str, Any], loop: asyncio.AbstractEventLoop | None) -> ConsumerConfig:
        """Reads the constructor's arguments.

        Args:
            settings: all of them, with the client's defaults.
            loop: the consumer's event loop, on which a provider of tokens is asked.

        Raises:
            OptionError: a setting that the membership cannot honour; the message has a remedy.
        """
        defaults = signature().parameters
        changed = [name for name in CLASSIC_ONLY if settings[name] != defaults[name].default]
        protocol, remote = read_group_protocol(settings["group_protocol"], settings["group_remote_assignor"], changed)
        chosen = read_strategies(settings["partition_assignment_strategy"], _OWN)
        session = _milliseconds(settings, "session_timeout_ms")
        heartbeat = _milliseconds(settings, "heartbeat_interval_ms")
        if heartbeat >= session:
            raise OptionError(
                f"heartbeat_interval_ms is {heartbeat}, not below session_timeout_ms ({session}); give at most a third "
                f"of it"
            )
        backoff = _milliseconds(settings, "retry_backoff_ms")
        reaction = settings["on_broker_assignor"]
        check_choice("on_broker_assignor", reaction, ON_BROKER_ASSIGNOR)
        if "on_broker_assignor" not in changed and chosen.on_broker_assignor is not None:
            reaction = chosen.on_broker_assignor
        callback = settings["on_rebalance"] or chosen.on_rebalance
        if callback is not None and not callable(callback):
            raise OptionError(f"on_rebalance is a {type(callback).__name__}; give a function")
        rebalance = settings["rebalance_timeout_ms"]
        token_of = ask_provider if loop is None else asking_on(loop)
        return cls(
            client=client_config(settings, client="aiokafka", token_of=token_of),
            group_id=text_of(settings["group_id"]),
            group_instance_id=settings["group_instance_id"],
            assignors=chosen.assignors,
            rack=settings["client_rack"] or chosen.rack,
            session_timeout_ms=_SESSION_MS if protocol == "consumer" else session,
            heartbeat_interval_ms=heartbeat,
            max_poll_interval_ms=_milliseconds(settings, "max_poll_interval_ms"),
            # As in the client, whose task joins: the group need not wait for a poll of the application.
            rebalance_timeout_ms=session if rebalance is None else _milliseconds(settings, "rebalance_timeout_ms"),
            metadata_refresh_ms=_milliseconds(settings, "metadata_max_age_ms"),
            retry_backoff_ms=backoff,
            retry_backoff_max_ms=max(backoff, 1_000),
            auto_commit=bool(settings["enable_auto_commit"]),
            auto_commit_interval=max(0.0, float(settings["auto_commit_interval_ms"]) / 1000),
            on_rebalance=callback,
            on_broker_assignor=reaction,
            # The client calls its listeners in the first rebalance, too, in which there is nothing to revoke.
            tells_every_rebalance=True,
            group_protocol=protocol,
            group_remote_assignor=remote,
            reset=text_of(settings["auto_offset_reset"]).lower(),
            isolation_level=text_of(settings["isolation_level"]),
            exclude_internal_topics=bool(settings["exclude_internal_topics"]),
        )


def _milliseconds(settings: Mapping[str, Any], name: str) -> int:
    value = settings[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < 2**31:
        raise OptionError(f"{name} is {value!r}; give milliseconds from 1 to {2**31 - 1}")
    return int(value)
