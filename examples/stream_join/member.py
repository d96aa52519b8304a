"""A member process: `python -m stream_join.member NAME GROUP STRATEGY BOOTSTRAP WINDOW_MS`.

It joins the records of its assigned partitions and writes the results to the topic `joined-GROUP`, until a line arrives
on its standard input. A new owner reads from the output topic the results that its predecessor wrote but did not
commit: otherwise a click could be matched twice. On a broker with transactions, a transaction would prevent that.
"""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import CommitFailedError, RebalanceInProgressError
from kafka.structs import OffsetAndMetadata

from kafka_assignors.clients.kafka_python import RebalanceDiffListener, StickyStreamJoinAssignor
from stream_join.ads import CLICKS, IMPRESSIONS
from stream_join.events import Changed, Failed, Read, dump
from stream_join.joiner import NumberJoin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stream_join.events import Event

STRATEGIES: dict[str, Callable[[], Any]] = {
    "range": RangePartitionAssignor,
    "sticky-join": StickyStreamJoinAssignor,
    "cooperative-sticky-join": partial(StickyStreamJoinAssignor, protocol="cooperative"),
}
# Short, since the example waits until the session of a crashed member expires. Long enough for a busy machine.
SESSION_MS = 6000
HEARTBEAT_MS = 300


def say(event: Event) -> None:
    print(dump(event), flush=True)


class Gaps(ConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python is untyped
    """An ordinary listener. It remembers that other members may have had this member's partitions: the member was
    expelled, or an eager group formed a generation without it.
    """

    def __init__(self, cooperative: bool) -> None:
        self.found = False
        self.consumer: Any = None
        self._cooperative = cooperative
        self._generation = -1

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """A revocation is no gap."""

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        generation = self.consumer.group_metadata().generation_id
        self.found |= not self._cooperative and generation - self._generation > 1
        self._generation = generation

    def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None:
        self.found = True


class Changes(RebalanceDiffListener):
    """Keeps the gained and the lost partitions for the member's own loop. Reading state again takes too long for a
    callback.
    """

    def __init__(self, listener: Gaps) -> None:
        super().__init__(listener)
        self.pending: list[tuple[bool, list[TopicPartition]]] = []

    def on_partitions_gained(self, partitions: list[TopicPartition]) -> None:
        self.pending.append((True, partitions))

    def on_partitions_given_up(self, partitions: list[TopicPartition]) -> None:
        self.pending.append((False, partitions))


class Member:
    """A consumer, the state of its partition numbers, and a producer of results."""

    def __init__(self, name: str, group: str, strategy: str, bootstrap: str, window_ms: int) -> None:
        self._name = name
        self._output = f"joined-{group}"
        self._bootstrap = bootstrap
        self._window = window_ms
        self._states: dict[int, NumberJoin] = {}
        self._gaps = Gaps(strategy.startswith("cooperative"))
        self._changes = Changes(self._gaps)
        self._held: list[int] = []
        self._producer = KafkaProducer(bootstrap_servers=bootstrap)
        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            client_id=name,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            max_poll_records=200,
            partition_assignment_strategy=[STRATEGIES[strategy]()],
        )
        self._gaps.consumer = self._consumer
        self._consumer.subscribe([IMPRESSIONS, CLICKS], listener=self._changes)

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            # Not shorter: a poll that ends while a join is in flight can make kafka-python drop out of the group.
            records = self._consumer.poll(timeout_ms=1000)
            self._settle()
            if records:
                self._join(records)
        self._consumer.close()
        self._producer.close()

    def _settle(self) -> None:
        """Drops the state of given-up partitions, and rebuilds that of gained ones before their records are joined."""
        held = sorted({partition.partition for partition in self._consumer.assignment()})
        if not self._changes.pending and held == self._held:
            return
        gained = given_up = records = 0
        for came, partitions in self._changes.pending:
            if came:
                gained += len(partitions)
                records += self._rebuild(partitions)
            else:
                given_up += len(partitions)
                for partition in partitions:
                    self._states.pop(partition.partition, None)
        self._changes.pending.clear()
        continuous, self._gaps.found = not self._gaps.found, False
        self._held = held
        if sorted(self._states) != held:
            raise RuntimeError(f"it holds the numbers {held} and the state of {sorted(self._states)}")
        generation = self._consumer.group_metadata().generation_id
        say(Changed(self._name, generation, continuous, held, gained, given_up, records))

    def _rebuild(self, partitions: list[TopicPartition]) -> int:
        """Reads from the start of the window to the group's commit. Returns the number of records."""
        wanted = {}
        for partition in partitions:
            state = self._states.setdefault(partition.partition, NumberJoin(self._window))
            until = self._consumer.committed(partition, metadata=True)
            # The members commit the time that a topic has reached as metadata of their offsets.
            wanted[partition] = (0, 0) if until is None else (until.offset, int(until.metadata))
        starts: dict[TopicPartition, int] = {}
        for number in {partition.partition for partition in partitions}:
            topics = IMPRESSIONS, CLICKS
            times = {topic: wanted.get(TopicPartition(topic, number), (0, 0))[1] for topic in topics}
            state = self._states[number]
            starts |= {TopicPartition(topic, number): state.start_of(topic, times) for topic in topics}
            # The click of a result that was emitted but not committed is not older than the slower topic.
            starts[TopicPartition(self._output, number)] = min(times.values())
            state.times |= times
        reader = KafkaConsumer(bootstrap_servers=self._bootstrap, group_id=None, enable_auto_commit=False)
        try:
            return self._read_again(reader, starts, {partition: end for partition, (end, _) in wanted.items()})
        finally:
            reader.close()

    def _read_again(self, reader: Any, starts: dict[TopicPartition, int], ends: dict[TopicPartition, int]) -> int:
        reader.assign(list(starts))
        results = [partition for partition in starts if partition.topic == self._output]
        ends |= reader.end_offsets(results)
        count = 0
        left = set()
        for partition, found in reader.offsets_for_times(starts).items():
            if found is not None and found.offset < ends[partition]:
                reader.seek(partition, found.offset)
                left.add(partition)
        reader.pause(*(starts.keys() - left))
        while left:
            for partition, messages in reader.poll(timeout_ms=1000).items():
                state = self._states[partition.partition]
                for message in messages:
                    if message.offset >= ends[partition]:
                        continue
                    if partition.topic == self._output:
                        state.emitted(message.value.decode().split()[0], message.timestamp)
                    else:
                        count += 1
                        state.take(partition.topic, message.key.decode(), message.value.decode(), message.timestamp)
                if messages[-1].offset >= ends[partition] - 1:
                    left.discard(partition)
                    reader.pause(partition)
        return count

    def _join(self, records: dict[TopicPartition, list[Any]]) -> None:
        commits = {}
        for partition, messages in records.items():
            state = self._states[partition.partition]
            for message in messages:
                key, value = message.key.decode(), message.value.decode()
                for match in state.take(partition.topic, key, value, message.timestamp):
                    self._producer.send(
                        self._output,
                        key=match.impression.encode(),
                        value=f"{match.click} {match.ad}".encode(),
                        partition=partition.partition,
                        timestamp_ms=match.timestamp,
                    )
            commits[partition] = OffsetAndMetadata(messages[-1].offset + 1, str(state.times[partition.topic]), -1)
        self._producer.flush()
        # If the commit fails, the next owner or this member reads the records again. Their results are not written
        # again.
        with suppress(CommitFailedError, RebalanceInProgressError):
            self._consumer.commit(commits)
            for number in {partition.partition for partition in commits}:
                self._states[number].committed()
            positions = [(partition.topic, partition.partition, each.offset) for partition, each in commits.items()]
            say(Read(self._name, positions))


def main() -> None:
    name, group, strategy, bootstrap, window_ms = sys.argv[1:]
    stop = threading.Event()

    def listen() -> None:
        sys.stdin.readline()
        stop.set()

    threading.Thread(target=listen, daemon=True).start()
    try:
        Member(name, group, strategy, bootstrap, int(window_ms)).run(stop)
    except Exception as error:
        say(Failed(name, repr(error)))
        raise


if __name__ == "__main__":
    main()
