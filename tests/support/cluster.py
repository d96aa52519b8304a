"""Three real brokers in processes of their own, each a voter of the quorum: the cluster survives the loss of one."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from confluent_kafka import KafkaError, KafkaException

from support.broker import _CONTROLLER, ApacheKafka, Kafka, _free_ports, _PortTakenError

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 3

_TIMEOUT = 60.0


class Cluster(Kafka):
    """A cluster in which every topic has a replica on each broker, the offsets topic included.

    Attributes:
        brokers: by node id, from 1.
    """

    def __init__(self, directory: Path, version: str) -> None:
        super().__init__("", version, replicas=SIZE)
        self.brokers = {node: _Node(directory / str(node), version, node) for node in range(1, SIZE + 1)}

    def __enter__(self) -> Self:
        for attempt in range(3):
            try:
                self._start()
                break
            except _PortTakenError:
                # Another process may take a free port before the broker opens it.
                self.stop()
                if attempt == 2:
                    raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends all brokers."""
        with ExitStack() as stack:
            for broker in self.brokers.values():
                # Without a majority of the quorum a broker cannot shut down cleanly.
                stack.callback(broker.kill)

    def coordinator(self, group: str) -> ApacheKafka:
        """The broker that is the coordinator of a group."""
        return self.brokers[self.describe_group(group).coordinator]

    def wait_for(self, alive: int) -> None:
        """Waits until the metadata list `alive` brokers, and every replica on these brokers is in sync."""
        deadline = time.monotonic() + _TIMEOUT
        while not self._is_in_order(alive):
            if time.monotonic() > deadline:
                logs = [str(each.log_path) for each in self.brokers.values()]
                raise TimeoutError(f"the cluster did not come to have {alive} brokers in order; their logs are {logs}")
            time.sleep(0.1)

    def _is_in_order(self, alive: int) -> bool:
        try:
            metadata = self.admin.list_topics(timeout=_TIMEOUT)
        except KafkaException as error:
            # A broker that has just started may answer before it knows any broker, itself included.
            if error.args[0].code() == KafkaError._PARTIAL:
                return False
            raise
        partitions = [each for topic in metadata.topics.values() for each in topic.partitions.values()]
        return len(metadata.brokers) == alive and all(
            each.leader in metadata.brokers and len(each.isrs) == alive for each in partitions
        )

    def _start(self) -> None:
        ports = iter(_free_ports(2 * SIZE))
        for broker in self.brokers.values():
            broker.reserve({"PLAINTEXT": next(ports), _CONTROLLER: next(ports)})
        voters = ",".join(f"{node}@{broker.address(_CONTROLLER)}" for node, broker in self.brokers.items())
        for broker in self.brokers.values():
            broker.config["controller.quorum.voters"] = voters
            broker._prepare()
        self.bootstrap_servers = ",".join(each.address("PLAINTEXT") for each in self.brokers.values())
        # A broker becomes ready only after a second one has started; therefore they start at the same time.
        with ThreadPoolExecutor(SIZE) as pool:
            for started in [pool.submit(each.start) for each in self.brokers.values()]:
                started.result()
        self.wait_for(SIZE)


class _Node(ApacheKafka):
    """One broker of the cluster."""

    def __init__(self, directory: Path, version: str, node: int) -> None:
        super().__init__(
            directory,
            version,
            node_id=node,
            offsets_topic_replication_factor=SIZE,
            offsets_topic_num_partitions=SIZE,
            transaction_state_log_replication_factor=SIZE,
            transaction_state_log_min_isr=2,
            # The controller fences a broker so many milliseconds after its last heartbeat.
            broker_session_timeout_ms=6000,
            broker_heartbeat_interval_ms=1000,
        )
        self.node = node

    def reserve(self, ports: dict[str, int]) -> None:
        """Sets the ports of the listeners."""
        self._ports = ports

    def _prepare(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        super()._prepare()
        # The data directory is a copy of the formatted one, which has the node id of the first broker.
        properties = self.directory / "data" / "meta.properties"
        lines = [line for line in properties.read_text().splitlines() if not line.startswith("directory.id")]
        text = "\n".join(lines).replace("node.id=1", f"node.id={self.node}")
        properties.write_text(text + "\n")

    def _wait_until_ready(self) -> None:
        """Does nothing: one broker alone is never ready. `Cluster.wait_for` waits for all of them."""
