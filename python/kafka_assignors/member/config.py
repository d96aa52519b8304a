"""The settings of a membership. Each client reads its own dictionary or arguments into them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.member.rebalance_report import RebalanceReport
    from kafka_assignors.net.config import ClientConfig

__all__ = ["ON_BROKER_ASSIGNOR", "GroupProtocol", "MemberConfig", "OnBrokerAssignor"]

OnBrokerAssignor: TypeAlias = Literal["fail", "carry-on", "migrate"]
ON_BROKER_ASSIGNOR: tuple[OnBrokerAssignor, ...] = ("fail", "carry-on", "migrate")
"""The reactions to a group that the broker plans.

`fail` reports an error. `carry-on` follows the broker's plan. `migrate` does so too, and a leader's assignments let the
broker convert the group.
"""
GroupProtocol: TypeAlias = Literal["classic", "consumer"]


@dataclass(frozen=True, kw_only=True)
class MemberConfig:
    """The settings of a membership; the defaults are Java's. Times that end in `_ms` are milliseconds, others seconds.

    Attributes:
        client: how to connect.
        group_id: the group.
        assignors: in order of preference.
        group_instance_id: set for static members (KIP-345).
        rack: of this consumer, or None.
        session_timeout_ms: how long the group waits for a heartbeat.
        heartbeat_interval_ms: between two heartbeats.
        max_poll_interval_ms: the longest time between two polls of the application.
        rebalance_timeout_ms: how long the group waits for this member in a rebalance; None is `max_poll_interval_ms`.
        metadata_refresh_ms: between two requests for the topics' metadata; never below 1.
        retry_backoff_ms: the first pause before a request is tried again.
        retry_backoff_max_ms: the longest.
        auto_commit: whether positions are committed automatically.
        auto_commit_interval: between two automatic commits; 0 commits only at revocations.
        auto_store: whether positions are committed. If not, only offsets that the application stores are committed.
        on_rebalance: the user's callback for a `RebalanceReport`.
        on_broker_assignor: the reaction to a group that the broker assigns (KIP-848), and whether a leader's
            assignments keep a broker from converting the group: all but `migrate` do.
        tells_every_rebalance: whether the listener is called in each eager rebalance, even if no partition is revoked,
            as in the first one.
        group_protocol: `consumer` for a group that the broker plans (KIP-848). Then `assignors`, `on_broker_assignor`,
            `rebalance_timeout_ms` and `heartbeat_interval_ms` have no effect, and after `session_timeout_ms` without
            an answer the member counts its partitions as lost.
        group_remote_assignor: the broker's assignor for which the member votes; None for no vote.
    """

    client: ClientConfig
    group_id: str
    assignors: tuple[Assignor, ...]
    group_instance_id: str | None = None
    rack: str | None = None
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    rebalance_timeout_ms: int | None = None
    metadata_refresh_ms: int = 300_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    auto_commit: bool = True
    auto_commit_interval: float = 5.0
    auto_store: bool = True
    on_rebalance: Callable[[RebalanceReport], object] | None = None
    on_broker_assignor: OnBrokerAssignor = "fail"
    tells_every_rebalance: bool = False
    group_protocol: GroupProtocol = "classic"
    group_remote_assignor: str | None = None
