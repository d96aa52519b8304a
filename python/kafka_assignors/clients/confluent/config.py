"""The settings of a consumer: those of the membership, and those that librdkafka gets for the data path.

| Kind of setting | Where it is read |
| --- | --- |
| connections | `kafka_assignors.net.config`, and librdkafka |
| `MEMBERSHIP` | here |
| `REFUSED` | here: an error with a remedy |
| `DATA_PATH_ONLY` | librdkafka |
| unknown | librdkafka, which refuses it |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from confluent_kafka import KafkaError, KafkaException

from kafka_assignors.clients.confluent import times
from kafka_assignors.clients.confluent.assignors import strategies_of
from kafka_assignors.errors import OptionError
from kafka_assignors.member.config import ON_BROKER_ASSIGNOR, MemberConfig
from kafka_assignors.net.config import ClientConfig
from kafka_assignors.net.oauth import with_issuer
from kafka_assignors.net.settings import TypedSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["DATA_PATH_ONLY", "MEMBERSHIP", "REFUSED", "ConsumerConfig", "Reset"]

Reset: TypeAlias = Literal["earliest", "latest", "error"]

_RESETS: dict[str, Reset] = {
    "smallest": "earliest",
    "earliest": "earliest",
    "beginning": "earliest",
    "largest": "latest",
    "latest": "latest",
    "end": "latest",
    "error": "error",
}

MEMBERSHIP = frozenset(
    (
        "group.id",
        "group.instance.id",
        "partition.assignment.strategy",
        "session.timeout.ms",
        "heartbeat.interval.ms",
        "max.poll.interval.ms",
        "client.rack",
        "auto.offset.reset",
        "enable.auto.commit",
        "auto.commit.interval.ms",
        "enable.auto.offset.store",
        "enable.partition.eof",
        "topic.metadata.refresh.interval.ms",
        "retry.backoff.ms",
        "retry.backoff.max.ms",
        "allow.auto.create.topics",
        "statistics.interval.ms",
        "stats_cb",
        "on_commit",
        "on_rebalance",
        "on_broker_assignor",
    )
)
"""The settings that are read here."""

REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "group.protocol": (
        ("classic",),
        "librdkafka speaks that protocol itself; use confluent_kafka.Consumer, or leave it at classic",
    ),
    "group.remote.assignor": ((), "it is for group.protocol=consumer; give partition.assignment.strategy"),
    "group.protocol.type": (("consumer",), "leave it at consumer"),
    "topic.blacklist": ((), "leave the topics out of the subscription; a regular expression can exclude them"),
    "offset.store.method": (("broker",), "offsets are stored on the broker"),
    "auto.commit.enable": ((), "it is the legacy name; give enable.auto.commit"),
    "test.mock.num.brokers": (
        ("0",),
        "librdkafka's mock cluster will not do; see kafka_assignors.embedded",
    ),
}
"""The settings that cannot be honoured: their harmless values, and a remedy for the others."""

DATA_PATH_ONLY = frozenset(
    (
        "api.version.fallback.ms",
        "api.version.request.timeout.ms",
        "background_event_cb",
        "broker.address.ttl",
        "broker.version.fallback",
        "builtin.features",
        "check.crcs",
        "closesocket_cb",
        "connect_cb",
        "connections.max.idle.ms",
        "consume.callback.max.messages",
        "consume_cb",
        "coordinator.query.interval.ms",
        "debug",
        "default_topic_conf",
        "enable.metrics.push",
        "enable.random.seed",
        "enabled_events",
        "error_cb",
        "fetch.error.backoff.ms",
        "fetch.max.bytes",
        "fetch.message.max.bytes",
        "fetch.min.bytes",
        "fetch.queue.backoff.ms",
        "fetch.wait.max.ms",
        "https.ca.location",
        "https.ca.pem",
        "interceptors",
        "internal.termination.signal",
        "isolation.level",
        "log.connection.close",
        "log.queue",
        "log.thread.name",
        "log_cb",
        "log_level",
        "max.in.flight",
        "max.in.flight.requests.per.connection",
        "max.partition.fetch.bytes",
        "max.poll.records",
        "message.copy.max.bytes",
        "message.max.bytes",
        "metadata.max.age.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "offset.store.path",
        "offset.store.sync.interval.ms",
        "oauthbearer_token_refresh_cb",
        "offset_commit_cb",
        "opaque",
        "open_cb",
        "plugin.library.paths",
        "queued.max.messages.kbytes",
        "queued.min.messages",
        "rebalance_cb",
        "reconnect.backoff.jitter.ms",
        "resolve_cb",
        "share.acknowledgement.mode",
        "socket.blocking.max.ms",
        "socket.max.fails",
        "socket_cb",
        "throttle_cb",
        "topic.metadata.propagation.max.ms",
        "topic.metadata.refresh.fast.cnt",
        "topic.metadata.refresh.fast.interval.ms",
        "topic.metadata.refresh.sparse",
    )
)
"""The settings of reading, of logs and of callbacks of librdkafka, which do not concern the group."""


@dataclass(frozen=True, kw_only=True)
class ConsumerConfig(MemberConfig):
    """The settings of a consumer: those of its membership, and further ones.

    Attributes:
        reset: the start of a partition without a commit.
        tells_end: whether the end of a partition is reported (`enable.partition.eof`).
        create_topics: whether a subscription may create a missing topic.
        on_commit: the user's callback for the result of a commit.
        stats_cb: the user's callback for statistics.
        stats_interval: the user's interval of `stats_cb` in seconds; 0 is never.
        data_path: the settings for librdkafka, without `stats_cb`.
    """

    reset: Reset
    tells_end: bool
    create_topics: bool
    on_commit: Callable[..., object] | None
    stats_cb: Callable[[str], object] | None
    stats_interval: float
    data_path: dict[str, Any]

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> ConsumerConfig:
        """Reads a dictionary as `confluent_kafka.Consumer` takes it, and our own settings in it.

        Raises:
            ValueError: there is no `group.id`; confluent-kafka raises it too.
            KafkaException: an unknown strategy, or intervals that contradict each other, as in confluent-kafka.
            OptionError: a setting that cannot be honoured; the message has a remedy.
        """
        defaults = config.get("default.topic.config")
        settings = TypedSettings({**defaults, **config} if isinstance(defaults, dict) else config)
        group_id = settings.text("group.id")
        if group_id is None:
            raise ValueError("Failed to create consumer: group.id must be set")
        _refuse(settings)
        stats_interval = settings.integer("statistics.interval.ms", 0, 86_400_000, 0)
        max_poll_interval = settings.integer("max.poll.interval.ms", 1, 86_400_000, 300_000)
        backoff = settings.integer("retry.backoff.ms", 1, 300_000, 100)
        refresh = settings.integer("topic.metadata.refresh.interval.ms", -1, 3_600_000, 300_000)
        read = cls(
            client=ClientConfig.from_confluent(with_issuer(config)),
            group_id=group_id,
            group_instance_id=settings.text("group.instance.id"),
            assignors=strategies_of(settings.raw("partition.assignment.strategy")),
            rack=settings.text("client.rack"),
            session_timeout_ms=settings.integer("session.timeout.ms", 1, 3_600_000, 45_000),
            heartbeat_interval_ms=settings.integer("heartbeat.interval.ms", 1, 3_600_000, 3_000),
            max_poll_interval_ms=max_poll_interval,
            # With a value below 1 librdkafka never refreshes.
            metadata_refresh_ms=refresh if refresh > 0 else 2**31 - 1,
            retry_backoff_ms=backoff,
            retry_backoff_max_ms=max(backoff, settings.integer("retry.backoff.max.ms", 1, 300_000, 1_000)),
            reset=_RESETS[settings.choice("auto.offset.reset", tuple(_RESETS), "largest")],
            auto_commit=_auto_commit(settings),
            auto_commit_interval=settings.milliseconds("auto.commit.interval.ms", 0, 86_400_000, 5_000),
            auto_store=settings.boolean("enable.auto.offset.store", default=True),
            tells_end=settings.boolean("enable.partition.eof", default=False),
            create_topics=settings.boolean("allow.auto.create.topics", default=False),
            on_commit=_on_commit(settings),
            on_rebalance=_function(settings, "on_rebalance"),
            stats_cb=_function(settings, "stats_cb"),
            stats_interval=stats_interval / 1000,
            on_broker_assignor=ON_BROKER_ASSIGNOR[
                ON_BROKER_ASSIGNOR.index(settings.choice("on_broker_assignor", ON_BROKER_ASSIGNOR, "fail"))
            ],
            data_path=_data_path(config, stats_interval, max_poll_interval),
        )
        if max_poll_interval < read.session_timeout_ms:
            raise _invalid("`max.poll.interval.ms`must be >= `session.timeout.ms`")
        if read.heartbeat_interval_ms >= read.session_timeout_ms:
            raise OptionError(
                f"heartbeat.interval.ms is {read.heartbeat_interval_ms}, not below session.timeout.ms "
                f"({read.session_timeout_ms}); give at most a third of it"
            )
        return read


def _invalid(reason: str) -> KafkaException:
    return KafkaException(KafkaError(KafkaError._INVALID_ARG, f"Failed to create consumer: {reason}"))


def _refuse(settings: TypedSettings) -> None:
    for name, (harmless, remedy) in REFUSED.items():
        value = settings.text(name)
        if value is not None and value.lower() not in harmless:
            raise OptionError(f"{name} is not supported by this consumer: {remedy}")


def _function(settings: TypedSettings, name: str) -> Any:
    value = settings.raw(name)
    if value is not None and not callable(value):
        raise TypeError(f"{name} expects a callable")
    return value


def _on_commit(settings: TypedSettings) -> Any:
    value = settings.raw("on_commit")
    if value is not None and not callable(value):
        raise KafkaException(KafkaError(KafkaError._INVALID_ARG, "on_commit requires a callable object"))
    return value


def _auto_commit(settings: TypedSettings) -> bool:
    # librdkafka does not get the user's value, so it cannot refuse an empty one.
    if "enable.auto.commit" in settings and settings.text("enable.auto.commit") is None:
        raise OptionError("enable.auto.commit is empty; give true or false")
    return settings.boolean("enable.auto.commit", default=True)


def _data_path(config: Mapping[str, Any], stats_interval: int, max_poll_interval: int) -> dict[str, Any]:
    ours = {
        "partition.assignment.strategy",
        "group.instance.id",
        "on_rebalance",
        "on_broker_assignor",
        "stats_cb",
        "sasl.scram.max.iterations",
    }
    kept = {name: value for name, value in config.items() if name not in ours}
    # librdkafka would commit without a member id. A broker accepts that while the group is empty.
    kept["enable.auto.commit"] = False
    # The callback for statistics also reports that a blocked application polls: in time for `max.poll.interval.ms`.
    kept["statistics.interval.ms"] = max(1, min(stats_interval or times.STATISTICS_MS, max_poll_interval // 4))
    return kept
