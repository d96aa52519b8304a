"""A consumer's settings, taken apart: what the membership is made of, and what librdkafka gets for the data path.

Every setting of librdkafka is of one of these kinds: read for connections (`kafka_assignors.net.config`), read here,
refused here with a reason, or of the data path alone, where it goes as it is. A setting that is none of them is left to
librdkafka, which says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from confluent_kafka import KafkaError, KafkaException

from kafka_assignors.clients.confluent._strategies import strategies_of
from kafka_assignors.errors import OptionError
from kafka_assignors.net.config import ClientConfig
from kafka_assignors.net.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.clients._report import RebalanceReport

__all__ = ["DATA_PATH_ONLY", "MEMBERSHIP", "REFUSED", "ConsumerConfig", "OnBrokerAssignor", "Reset"]

Reset: TypeAlias = Literal["earliest", "latest", "error"]
OnBrokerAssignor: TypeAlias = Literal["fail", "carry-on"]

_RESETS: dict[str, Reset] = {
    "smallest": "earliest",
    "earliest": "earliest",
    "beginning": "earliest",
    "largest": "latest",
    "latest": "latest",
    "end": "latest",
    "error": "error",
}
_ON_BROKER_ASSIGNOR: tuple[OnBrokerAssignor, ...] = ("fail", "carry-on")
# How often a consumer that is blocked in librdkafka looks whether the group wants something, unless the user says how
# often. What lets it in there are librdkafka's statistics, of all partitions of its topics, whoever reads them: 2.3 MB
# for 3,000 of them. Beside that librdkafka 2.16 keeps a timer for each partition, in a sorted list, while they are on.
_LOOK_MS = 3_000

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
"""What is read here."""

REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "group.protocol": (("classic",), "an assignor of the client needs the classic protocol; leave it at classic"),
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
"""What cannot be honoured: the values that ask for nothing, and what to do instead."""

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
"""What concerns reading records, logs and callbacks of librdkafka, and no group."""


@dataclass(frozen=True)
class ConsumerConfig:
    """All that a consumer was told. Times ending in `_ms` are milliseconds, others seconds.

    Attributes:
        client: how to connect.
        group_id: the group.
        group_instance_id: set for static members (KIP-345).
        assignors: in order of preference.
        rack: of this consumer, or None.
        reset: where to begin without a commit.
        auto_commit: whether positions are committed without being asked.
        auto_commit_interval: how often.
        auto_store: whether what was delivered counts as stored.
        tells_end: whether reaching the end of a partition is an event (`enable.partition.eof`).
        create_topics: whether subscribing to a missing topic may create it.
        on_commit: told what became of commits.
        on_rebalance: told of every rebalance.
        stats_cb: the user's.
        stats_interval: how often the user wants it; 0: never.
        on_broker_assignor: what to do in a group that the broker's own assignor serves (KIP-848).
        data_path: what librdkafka gets, `stats_cb` aside.
    """

    client: ClientConfig
    group_id: str
    group_instance_id: str | None
    assignors: tuple[Assignor, ...]
    rack: str | None
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    metadata_refresh_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    reset: Reset
    auto_commit: bool
    auto_commit_interval: float
    auto_store: bool
    tells_end: bool
    create_topics: bool
    on_commit: Callable[..., object] | None
    on_rebalance: Callable[[RebalanceReport], object] | None
    stats_cb: Callable[[str], object] | None
    stats_interval: float
    on_broker_assignor: OnBrokerAssignor
    data_path: dict[str, Any]

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> ConsumerConfig:
        """Reads a dictionary as `confluent_kafka.Consumer` takes it, and our own settings in it.

        Raises:
            ValueError: there is no `group.id`, as confluent-kafka has it.
            KafkaException: an unknown strategy, or intervals that do not fit, likewise.
            OptionError: a setting that cannot be honoured; it says which and what to do instead.
        """
        defaults = config.get("default.topic.config")
        settings = Settings({**defaults, **config} if isinstance(defaults, dict) else config)
        group_id = settings.text("group.id")
        if group_id is None:
            raise ValueError("Failed to create consumer: group.id must be set")
        _refuse(settings)
        stats_interval = settings.integer("statistics.interval.ms", 0, 86_400_000, 0)
        max_poll_interval = settings.integer("max.poll.interval.ms", 1, 86_400_000, 300_000)
        backoff = settings.integer("retry.backoff.ms", 1, 300_000, 100)
        read = cls(
            client=ClientConfig.from_confluent(config),
            group_id=group_id,
            group_instance_id=settings.text("group.instance.id"),
            assignors=strategies_of(settings.raw("partition.assignment.strategy")),
            rack=settings.text("client.rack"),
            session_timeout_ms=settings.integer("session.timeout.ms", 1, 3_600_000, 45_000),
            heartbeat_interval_ms=settings.integer("heartbeat.interval.ms", 1, 3_600_000, 3_000),
            max_poll_interval_ms=max_poll_interval,
            metadata_refresh_ms=settings.integer("topic.metadata.refresh.interval.ms", -1, 3_600_000, 300_000),
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
            on_broker_assignor=_ON_BROKER_ASSIGNOR[
                _ON_BROKER_ASSIGNOR.index(settings.choice("on_broker_assignor", _ON_BROKER_ASSIGNOR, "fail"))
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


def _refuse(settings: Settings) -> None:
    for name, (harmless, remedy) in REFUSED.items():
        value = settings.text(name)
        if value is not None and value.lower() not in harmless:
            raise OptionError(f"{name} is not supported by this consumer: {remedy}")


def _function(settings: Settings, name: str) -> Any:
    value = settings.raw(name)
    if value is not None and not callable(value):
        raise TypeError(f"{name} expects a callable")
    return value


def _on_commit(settings: Settings) -> Any:
    value = settings.raw("on_commit")
    if value is not None and not callable(value):
        raise KafkaException(KafkaError(KafkaError._INVALID_ARG, "on_commit requires a callable object"))
    return value


def _auto_commit(settings: Settings) -> bool:
    # librdkafka does not get this setting, so it cannot refuse an empty value.
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
    # Never by librdkafka itself: it would commit without being a member, which a broker accepts while a group is empty.
    kept["enable.auto.commit"] = False
    # An application that waits there counts as polling.
    kept["statistics.interval.ms"] = max(1, min(stats_interval or _LOOK_MS, max_poll_interval // 4))
    return kept
