"""A member process: `python -m stream_join.member NAME GROUP STRATEGY BOOTSTRAP WINDOW_MS`.

It joins what it is assigned and emits the results to the topic `joined-GROUP`, until told to stop. The output
topic tells a new owner what its predecessor had emitted but not committed: no click is matched twice. Where the
broker has transactions, they do that.
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
# Short, since the example waits for the group to notice that a member is dead; long enough for a busy machine.
SESSION_MS = 6000
HEARTBEAT_MS = 300


def say(event: Event) -> None:
    print(dump(event), flush=True)


class Expulsions(ConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python is untyped
    """An ordinary listener, which remembers that the membership had been lost."""

    def __init__(self) -> None:
        self.lost = False

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Nothing is lost by that."""

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Nothing is lost by that."""

    def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None:
        self.lost = True


class Changes(RebalanceDiffListener):
    """Keeps what came and went until the member's own loop gets to it: reading state again takes longer than a
    callback should."""

    def __init__(self, listener: Expulsions) -> None:
        super().__init__(listener)
        self.pending: list[tuple[bool, list[TopicPartition]]] = []

    def on_partitions_gained(self, partitions: list[TopicPartition]) -> None:
        self.pending.append((True, partitions))

    def on_partitions_given_up(self, partitions: list[TopicPartition]) -> None:
        self.pending.append((False, partitions))


class Member:
    """A consumer, the state of the numbers that it holds, and a producer of results."""

    def __init__(self, name: str, group: str, strategy: str, bootstrap: str, window_ms: int) -> None:
        self._name = name
        self._output = f"joined-{group}"
        self._bootstrap = bootstrap
        self._window = window_ms
        self._states: dict[int, NumberJoin] = {}
        self._expulsions = Expulsions()
        self._changes = Changes(self._expulsions)
        self._held: list[int] = []
        self._generation = -1
        self._cooperative = strategy.startswith("cooperative")
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
        """Drops the state of what went and rebuilds that of what came, before anything of it is joined."""
        held = sorted({partition.partition for partition in self._consumer.assignment()})
        generation = self._consumer.group_metadata().generation_id
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
        continuous = not self._expulsions.lost and (self._cooperative or generation - self._generation <= 1)
        self._expulsions.lost = False
        self._held, self._generation = held, generation
        if sorted(self._states) != held:
            raise RuntimeError(f"it holds the numbers {held} and the state of {sorted(self._states)}")
        say(Changed(self._name, generation, continuous, held, gained, given_up, records))

    def _rebuild(self, partitions: list[TopicPartition]) -> int:
        """Reads from the start of the window to where the group has committed; returns how many records that were."""
        wanted = {}
        for partition in partitions:
            state = self._states.setdefault(partition.partition, NumberJoin(self._window))
            until = self._consumer.committed(partition, metadata=True)
            # The members write the time that a topic has reached beside their offsets.
            wanted[partition] = (0, 0) if until is None else (until.offset, int(until.metadata))
        starts: dict[TopicPartition, int] = {}
        for number in {partition.partition for partition in partitions}:
            topics = IMPRESSIONS, CLICKS
            times = {topic: wanted.get(TopicPartition(topic, number), (0, 0))[1] for topic in topics}
            state = self._states[number]
            starts |= {TopicPartition(topic, number): state.start_of(topic, times) for topic in topics}
            # What was emitted without being committed has a click that is not older than the slower topic.
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
        # What cannot be committed now is read again, by this member or the next owner, and not emitted again.
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
