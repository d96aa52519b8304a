"""A Kafka for tests and demos: one address, no JVM, no installation.

kafka-python, aiokafka and confluent-kafka use it with their default settings: producers (idempotent ones too),
consumers, groups of several members in one process or many, and their admin clients. Groups behave as on a real broker:
joins in two steps, generations, static members, the vote on the protocol, session expiry, fenced commits. Records are
kept in memory, as the producers sent them. There are no transactions and no security.

Groups of the new protocol (KIP-848, `group.protocol=consumer`) are planned by the broker's own assignors, `uniform` and
`range`, partition by partition as a broker of 4.3 does it: epochs, partitions that change hands only after they are
given up, static members, regular expressions, fenced commits. The first such member converts a classic group, where a
broker would, and the last one that leaves makes it classic again; meanwhile the group has members of both protocols.

>>> from kafka_assignors.embedded import EmbeddedKafka
>>> with EmbeddedKafka(topics={"orders": 12}) as kafka:
...     kafka.bootstrap_servers.startswith("127.0.0.1:")
...     kafka.topics()
True
{'orders': 12}

`python -m kafka_assignors.embedded --create-topic orders=12` runs it alone; the pytest fixture is `embedded_kafka`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self

from kafka_assignors import _core
from kafka_assignors.embedded.server import API_KEYS, Fault, Server
from kafka_assignors.errors import EmbeddedKafkaError

__all__ = ["ConsumerGroupView", "ConsumerMemberView", "EmbeddedKafka", "GroupView", "MemberView"]

GroupStateName = Literal["Empty", "PreparingRebalance", "CompletingRebalance", "Stable"]
MigrationPolicyName = Literal["bidirectional", "upgrade", "downgrade", "disabled"]
ConsumerGroupStateName = Literal["Empty", "Assigning", "Reconciling", "Stable"]


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member of a group in its current state on the broker."""

    member_id: str
    instance_id: str | None
    client_id: str
    joining: bool
    """Whether its JoinGroup is not answered yet."""
    syncing: bool
    """Whether its SyncGroup is not answered yet."""
    assignment: bytes
    """Its assignment, as ConsumerProtocolAssignment bytes."""


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group in its current state on the broker."""

    group_id: str
    state: GroupStateName
    generation: int
    protocol_type: str | None
    protocol: str | None
    leader: str | None
    members: dict[str, MemberView]
    """By member id."""


@dataclass(frozen=True, slots=True)
class ConsumerMemberView:
    """A member of a KIP-848 group in its current state on the broker."""

    member_id: str
    instance_id: str | None
    client_id: str
    epoch: int
    """The last epoch that the member received; -2 for a static member that has left and is expected back."""
    assigned: dict[str, list[int]]
    """Its partitions, by topic."""
    pending: dict[str, list[int]]
    """The partitions that the member has to give up and has not given up yet, by topic."""
    target: dict[str, list[int]]
    """The partitions that the last plan assigns to the member, by topic."""
    classic: bool = False
    """Whether it speaks the classic protocol."""


@dataclass(frozen=True, slots=True)
class ConsumerGroupView:
    """A KIP-848 group in its current state on the broker."""

    group_id: str
    state: ConsumerGroupStateName
    epoch: int
    """It rises with every change of members, subscriptions or topics."""
    assignment_epoch: int
    """The epoch of the last plan."""
    assignor: str
    """`uniform` or `range`."""
    members: dict[str, ConsumerMemberView]
    """By member id."""


class EmbeddedKafka:
    """A Kafka cluster in this process, served from a thread of its own until it is closed.

    Settings of groups have Kafka's names and meanings; times are milliseconds.

    Args:
        topics: The first topics, and their partition counts.
        host: The address to listen on.
        port: The port to listen on; 0 takes a free one.
        racks: The rack of each broker. Three racks are three brokers, with the node ids 1, 2 and 3 and one address.
        auto_create_topics: Whether a request for the metadata of a missing topic creates it.
        default_partitions: The partition count of a topic that is created without one.
        initial_rebalance_delay_ms: How long the first member of an empty group waits for others. Kafka has 3,000.
        min_session_timeout_ms: The shortest session a member may ask for. Kafka has 6,000.
        max_session_timeout_ms: The longest session a member may ask for.
        max_group_size: How many members a group may have; None is no limit.
        max_record_bytes: The largest record of a group: `max.message.bytes` of `__consumer_offsets`.
        consumer_heartbeat_interval_ms: How often members of KIP-848 groups send a heartbeat. Kafka has 5,000.
        consumer_session_timeout_ms: After how long without a heartbeat such a member is removed.
        consumer_assignors: The assignors for which such members may vote, the default one first.
        consumer_migration_policy: Which groups change their protocol while they have members, as
            `group.consumer.migration.policy`: "bidirectional", "upgrade", "downgrade" or "disabled".
    """

    def __init__(
        self,
        topics: Mapping[str, int] | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        racks: Sequence[str] = (),
        auto_create_topics: bool = False,
        default_partitions: int = 1,
        initial_rebalance_delay_ms: int = 0,
        min_session_timeout_ms: int = 1_000,
        max_session_timeout_ms: int = 1_800_000,
        max_group_size: int | None = None,
        max_record_bytes: int = 1_048_588,
        consumer_heartbeat_interval_ms: int = 500,
        consumer_session_timeout_ms: int = 45_000,
        consumer_assignors: Sequence[str] = ("uniform", "range"),
        consumer_migration_policy: MigrationPolicyName = "bidirectional",
    ) -> None:
        if default_partitions < 1:
            raise EmbeddedKafkaError(f"default_partitions is {default_partitions}: give at least 1")
        _check_count("consumer_heartbeat_interval_ms", consumer_heartbeat_interval_ms)
        _check_count("consumer_session_timeout_ms", consumer_session_timeout_ms)
        if not consumer_assignors:
            raise EmbeddedKafkaError("consumer_assignors is empty: give 'uniform', 'range' or both")
        self._broker = _core.EmbeddedBroker(
            cluster_id="embedded-kafka",
            racks=list(racks),
            auto_create_topics=auto_create_topics,
            default_partitions=default_partitions,
            initial_rebalance_delay_ms=initial_rebalance_delay_ms,
            min_session_timeout_ms=min_session_timeout_ms,
            max_session_timeout_ms=max_session_timeout_ms,
            max_group_size=max_group_size,
            max_record_bytes=max_record_bytes,
            consumer_heartbeat_interval_ms=consumer_heartbeat_interval_ms,
            consumer_session_timeout_ms=consumer_session_timeout_ms,
            consumer_assignors=list(consumer_assignors),
            consumer_migration_policy=consumer_migration_policy,
            seed=0,
        )
        for name, partitions in (topics or {}).items():
            self.create_topic(name, partitions)
        self._server = Server(self._broker, host, port)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<EmbeddedKafka {self.bootstrap_servers}>"

    @property
    def host(self) -> str:
        """The address that clients connect to."""
        return self._server.host

    @property
    def port(self) -> int:
        """The port that clients connect to."""
        return self._server.port

    @property
    def bootstrap_servers(self) -> str:
        """The value for a client's `bootstrap_servers` or `bootstrap.servers`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def close(self) -> None:
        """Closes every connection and the port, and drops all data. A second call does nothing."""
        self._server.close()

    # ---- topics ----

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication_factor: int = 1,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Creates a topic.

        Raises:
            EmbeddedKafkaError: The name, a count or a setting is not valid, or the topic exists.
        """
        _check_count("partitions", partitions)
        _check_count("replication_factor", replication_factor, 2**15 - 1)
        self._broker.create_topic(name, partitions, replication_factor, list((config or {}).items()))

    def grow_topic(self, name: str, partitions: int) -> None:
        """Raises the partition count of a topic to `partitions`. Clients see the new ones with their next metadata."""
        _check_count("partitions", partitions)
        self._broker.grow_topic(name, partitions)

    def delete_topic(self, name: str) -> None:
        """Deletes a topic, its records and the offsets committed for it."""
        self._broker.delete_topic(name)

    def topics(self) -> dict[str, int]:
        """The topics and their partition counts, in order of name."""
        return dict(self._broker.topics())

    def offsets(self, topic: str) -> list[tuple[int, int]]:
        """The first and the next offset of each partition of a topic."""
        return self._broker.offsets(topic)

    # ---- groups ----

    def groups(self) -> dict[str, GroupView]:
        """The classic groups in their current state, by id."""
        views = {}
        for group_id, state, generation, protocol_type, protocol, leader, rows in self._broker.groups():
            members = {row[0]: MemberView(*row) for row in rows}
            views[group_id] = GroupView(group_id, state, generation, protocol_type, protocol, leader, members)
        return views

    def consumer_groups(self) -> dict[str, ConsumerGroupView]:
        """The KIP-848 groups in their current state, by id."""
        views = {}
        for group_id, state, epoch, assignment_epoch, assignor, rows in self._broker.consumer_groups():
            members = {row[0]: ConsumerMemberView(*row) for row in rows}
            views[group_id] = ConsumerGroupView(group_id, state, epoch, assignment_epoch, assignor, members)
        return views

    # ---- faults ----

    def inject_fault(
        self,
        api: str,
        *,
        error: str | None = None,
        delay: float = 0,
        close: Literal["before", "after"] | None = None,
        times: int = 1,
    ) -> None:
        """Makes the next `times` requests of one kind fail, of any client.

        Faults queue up per kind of request. An `error` cannot be combined with `delay` or `close`, and has a queue of
        its own.

        Args:
            api: Kafka's name of the request, such as `"JoinGroup"`.
            error: The request is not served but answered with this error, by Kafka's name: `"NOT_COORDINATOR"`.
            delay: The request is served only after so many seconds.
            close: The connection is closed without an answer: "before" or "after" the request is served. The client
                cannot know which.
            times: How many requests.

        Raises:
            EmbeddedKafkaError: There is no such request or error, or no fault is given.
        """
        if api not in API_KEYS:
            raise EmbeddedKafkaError(f"api {api!r} is not served: give one of {', '.join(API_KEYS)}")
        _check_count("times", times)
        if error is not None:
            if delay or close:
                raise EmbeddedKafkaError("error comes alone: inject the delay or the close as a fault of its own")
            self._broker.inject(api, error, times)
        elif delay < 0 or not (delay or close):
            raise EmbeddedKafkaError("nothing to happen: give an error, a delay in seconds, or close")
        else:
            self._server.add_fault(api, Fault(delay, close, times))

    def drop_connections(self) -> None:
        """Closes every connection, as a broker that restarts would; clients may connect again at once."""
        self._server.drop_connections()


def _check_count(what: str, count: int, most: int = 2**31 - 1) -> None:
    if not 1 <= count <= most:
        raise EmbeddedKafkaError(f"{what} is {count}: give 1 to {most}")
