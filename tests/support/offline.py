"""Members of both clients without a network. The clients' own coordinators call the plug-in.

A member goes through the steps of its client: `metadata` (JoinGroup), `joined`, on the leader `lead`, and `complete`
(SyncGroup). `Group` takes several members through a whole rebalance.
"""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol

from aiokafka import AIOKafkaConsumer
from aiokafka.consumer.group_coordinator import CoordinatorGroupRebalance, GroupCoordinator
from aiokafka.errors import KafkaConnectionError
from aiokafka.structs import PartitionMetadata as AioPartition
from kafka import KafkaConsumer
from kafka.coordinator.base import Generation
from kafka.net.compat import KafkaNetClient
from kafka.protocol.consumer import JoinGroupResponse
from kafka.protocol.metadata import MetadataResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Joined = list[tuple[str, str | None, bytes]]


class Member(Protocol):
    id: str
    instance_id: str | None

    def metadata(self) -> bytes: ...
    def joined(self, generation: int) -> None: ...
    def lead(self, members: Joined) -> dict[str, bytes]: ...
    def complete(self, assignment: bytes) -> None: ...
    def held(self) -> set[tuple[str, int]]: ...
    def expel(self) -> None: ...
    def close(self) -> None: ...


class OfflineKafkaClient(KafkaNetClient):  # type: ignore[misc]
    """kafka-python's client, without any connection to a broker."""

    def __init__(self, **config: Any) -> None:
        super().__init__(**config)
        self._manager.cluster.start_refresh_loop = lambda: None


class KafkaPythonMember:
    """A consumer of kafka-python without a broker."""

    def __init__(
        self,
        member_id: str,
        strategies: Sequence[Any],
        topics: Mapping[str, int],
        *,
        subscribed: Iterable[str] | None = None,
        listener: Any = None,
        instance_id: str | None = None,
        racks: Mapping[int, str] | None = None,
    ) -> None:
        self.id = member_id
        self.instance_id = instance_id
        self.consumer = KafkaConsumer(
            bootstrap_servers="127.0.0.1:1",
            api_version=(3, 0),
            kafka_client=OfflineKafkaClient,
            group_id="g",
            enable_auto_commit=False,
            partition_assignment_strategy=strategies,
        )
        self.coordinator = self.consumer._coordinator
        (self.assignor,) = self.coordinator._assignors.values()
        self.consumer.subscribe(sorted(topics if subscribed is None else subscribed), listener=listener)
        self.know(topics, racks or {0: ""})

    def know(self, topics: Mapping[str, int], racks: Mapping[int, str] | None = None) -> None:
        """Sets the cluster's metadata. The only replica of partition p is on broker p modulo the number of brokers."""
        racks = racks or {0: ""}
        partition = MetadataResponse.MetadataResponseTopic.MetadataResponsePartition
        cluster = self.consumer._cluster
        cluster._brokers = {
            node: MetadataResponse.MetadataResponseBroker(node, "h", 9092, rack or None) for node, rack in racks.items()
        }
        cluster._partitions = {
            name: {
                number: partition(
                    error_code=0,
                    partition_index=number,
                    leader_id=0,
                    leader_epoch=0,
                    replica_nodes=[number % len(racks)],
                    isr_nodes=[],
                    offline_replicas=[],
                )
                for number in range(count)
            }
            for name, count in topics.items()
        }

    def refreshed(self) -> None:
        """The cluster has answered another metadata request, without a change."""
        self.consumer._cluster._last_successful_refresh_ms = time.monotonic() * 1000

    def metadata(self) -> bytes:
        net, coordinator = self.coordinator._net, self.coordinator
        if not coordinator.rejoining:
            generation = coordinator._generation
            net.run(coordinator._on_join_prepare_async, generation.generation_id, generation.member_id)
            coordinator.rejoining = True
        (told,) = net.run(_call, coordinator.group_protocols)
        return told[1] if isinstance(told[1], bytes) else bytes(told[1].encode())

    def joined(self, generation: int) -> None:
        self.coordinator._generation = Generation(generation, self.id, self.assignor.name)

    def lead(self, members: Joined) -> dict[str, bytes]:
        listed = [
            JoinGroupResponse.JoinGroupResponseMember(member_id=name, group_instance_id=instance, metadata=metadata)
            for name, instance, metadata in members
        ]
        coordinator = self.coordinator
        assigned = coordinator._net.run(_call, coordinator._perform_assignment, self.id, self.assignor.name, listed)
        return {name: each if isinstance(each, bytes) else bytes(each.encode()) for name, each in assigned.items()}

    def complete(self, assignment: bytes) -> None:
        coordinator = self.coordinator
        coordinator.rejoining = coordinator.rejoin_needed = False
        generation = coordinator._generation
        coordinator._net.run(
            coordinator._on_join_complete_async, generation.generation_id, self.id, self.assignor.name, assignment
        )

    def held(self) -> set[tuple[str, int]]:
        return {(each.topic, each.partition) for each in self.consumer.assignment()}

    def wants_another(self) -> bool:
        """Whether the client asked for a follow-up rebalance."""
        return bool(self.coordinator.rejoin_needed)

    def expel(self) -> None:
        self.coordinator.reset_generation()

    def close(self) -> None:
        self.consumer.close(autocommit=False)


async def _call(function: Any, *arguments: Any) -> Any:
    return function(*arguments)


class AiokafkaMember:
    """A consumer of aiokafka without a broker. Its event loop runs only during calls."""

    def __init__(
        self,
        member_id: str,
        strategies: Sequence[Any],
        topics: Mapping[str, int],
        *,
        subscribed: Iterable[str] | None = None,
        listener: Any = None,
        attach: bool = False,
    ) -> None:
        self.id = member_id
        self.instance_id: str | None = None
        self.assignor = strategies[0]
        self._loop = asyncio.new_event_loop()
        self._subscribed = sorted(topics if subscribed is None else subscribed)
        self._assignment: Any = None
        self._loop.run_until_complete(self._build(strategies, listener, attach))
        self.know(topics)

    async def _build(self, strategies: Sequence[Any], listener: Any, attach: bool) -> None:
        self.consumer = AIOKafkaConsumer(
            group_id="g", enable_auto_commit=False, partition_assignment_strategy=strategies
        )
        if attach:
            self.assignor.attach(self.consumer)
        client = self.consumer._client
        client.set_topics = lambda topics: None
        client._maybe_wait_metadata = _nothing
        self.consumer.subscribe(self._subscribed, listener=listener)
        self.coordinator = GroupCoordinator(
            client, self.consumer._subscription, group_id="g", enable_auto_commit=False, assignors=strategies
        )
        self.coordinator.start_commit_offsets_refresh_task = lambda assignment: None
        # The task would connect to a broker. Here the test calls its steps one by one.
        self.coordinator._coordination_task.cancel()
        await asyncio.wait([self.coordinator._coordination_task])
        self.consumer._coordinator = self.coordinator

    def know(self, topics: Mapping[str, int]) -> None:
        self.consumer._client.cluster._partitions = {
            name: {number: AioPartition(name, number, 0, [0], [0], 0) for number in range(count)}
            for name, count in topics.items()
        }

    def metadata(self) -> bytes:
        return self._loop.run_until_complete(self._metadata())

    async def _metadata(self) -> bytes:
        coordinator = self.coordinator
        if not coordinator._performed_join_prepare:
            await coordinator._on_join_prepare(self._assignment)
            coordinator._performed_join_prepare = True
        sent: list[bytes] = []

        async def send(request: Any) -> None:
            sent.append(request._group_protocols[0][1])
            raise KafkaConnectionError("no broker here")

        coordinator._send_req = send
        rebalance = CoordinatorGroupRebalance(
            coordinator, "g", 0, self.consumer._subscription.subscription, coordinator._assignors, 10_000, 100
        )
        await rebalance.perform_group_join()
        return sent[0]

    def joined(self, generation: int) -> None:
        self.coordinator.generation = generation
        self.coordinator.member_id = self.id

    def lead(self, members: Joined) -> dict[str, bytes]:
        response: Any = SimpleNamespace(API_VERSION=5, group_protocol=self.assignor.name, members=members)
        assigned = self._loop.run_until_complete(self.coordinator._perform_assignment(response))
        return {name: each if isinstance(each, bytes) else each.encode() for name, each in assigned.items()}

    def complete(self, assignment: bytes) -> None:
        self._loop.run_until_complete(self._complete(assignment))

    async def _complete(self, assignment: bytes) -> None:
        coordinator = self.coordinator
        await coordinator._on_join_complete(coordinator.generation, self.id, self.assignor.name, assignment)
        self._assignment = self.consumer._subscription.subscription.assignment
        coordinator._performed_join_prepare = False

    def held(self) -> set[tuple[str, int]]:
        return {(each.topic, each.partition) for each in self.consumer.assignment()}

    def expel(self) -> None:
        self.coordinator.reset_generation()

    def close(self) -> None:
        self._loop.run_until_complete(self._close())
        self._loop.close()

    async def _close(self) -> None:
        self.consumer._coordinator = None
        self.coordinator._closing.set_result(None)
        await self.consumer.stop()


def set_session(member: Any, milliseconds: int) -> None:
    """Gives a member another session timeout."""
    if isinstance(member, KafkaPythonMember):
        member.coordinator.config["session_timeout_ms"] = milliseconds
    else:
        member.coordinator._session_timeout_ms = milliseconds


async def _nothing() -> None:
    return None


class Group:
    """Takes members through rebalances. The first member is the leader."""

    def __init__(self, generation: int = 0) -> None:
        self.generation = generation
        self.sent: dict[str, bytes] = {}

    def rebalance(self, *members: Member, others: Joined = ()) -> dict[str, bytes]:  # type: ignore[assignment]
        """One generation. `others` are members of other clients: id, instance id and metadata."""
        self.generation += 1
        self.sent = {member.id: member.metadata() for member in members}
        for member in members:
            member.joined(self.generation)
        joined = [(member.id, member.instance_id, self.sent[member.id]) for member in members]
        assigned = members[0].lead([*joined, *others])
        for member in members:
            member.complete(assigned[member.id])
        return assigned
