"""The events of the three groups, and their processes."""

from __future__ import annotations

import threading
import time
from itertools import chain
from queue import Empty, SimpleQueue
from string import ascii_uppercase
from typing import TYPE_CHECKING

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from processes import Child
from stream_join.ads import CLICKS, IMPRESSIONS, campaign
from stream_join.books import Account, Row, wrong
from stream_join.events import Failed, load
from stream_join.view import View

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_assignors.embedded import EmbeddedKafka
    from stream_join.ads import Record
    from stream_join.events import Event

STRATEGIES = ("range", "sticky-join", "cooperative-sticky-join")
OURS = STRATEGIES[1:]
# After the start: one leaves, one joins, one crashes, one joins.
EVENTS = 4
# The time limit for the groups to become stable, and to join the remaining records.
PATIENCE_SECONDS = 30.0
# The duration of the production of a batch.
BATCH_SECONDS = 1.5


class StoryError(Exception):
    """The example could not be played to its end."""


class Story:
    """Plays the same events on three groups at once.

    Args:
        kafka: the broker of the topics.
        partitions: the partitions of each topic: more than `members`, so that every member has some at any time.
        members: the number of members of each group at the start; at least 2.
        impressions: the number of impressions.
        seed: the seed of the data.
    """

    def __init__(self, kafka: EmbeddedKafka, partitions: int, members: int, impressions: int, seed: int) -> None:
        self._kafka = kafka
        self._names = list(ascii_uppercase[:members])
        self._newcomers = iter(ascii_uppercase[members:])
        self._events: SimpleQueue[tuple[str, Event]] = SimpleQueue()
        self._children: dict[tuple[str, str], Child] = {}
        self._leaving: list[Child] = []
        self._campaign = campaign(seed, impressions, EVENTS + 1)
        self._partitions = partitions
        for topic in (IMPRESSIONS, CLICKS, *map(_output, STRATEGIES)):
            kafka.create_topic(topic, partitions)
        self._producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, linger_ms=5)
        self.accounts = {strategy: Account(strategy, partitions) for strategy in STRATEGIES}
        self.results: dict[str, int] = dict.fromkeys(STRATEGIES, 0)
        self.wrong: dict[str, int] = dict.fromkeys(STRATEGIES, 0)
        self.view = View(list(self.accounts.values()))

    def play(self) -> list[str]:
        """Plays the whole example. Returns the problems.

        Raises:
            StoryError: A group did not settle or did not get through its records, or a member failed.
        """
        batches = iter(self._campaign.batches)
        with self.view:
            try:
                self.view.say(f"{', '.join(self._names)} join each of the three groups", "bold")
                for name in self._names:
                    self._start(name)
                self._settle()
                for account in self.accounts.values():
                    account.counting = True
                self._feed(next(batches))
                self._drain()
                leaver, victim = self._names[-1], self._names[-2]
                for text, act in (
                    (f"{leaver} leaves", lambda: self._end(leaver, "left")),
                    ("another joins", lambda: self._start(next(self._newcomers))),
                    (f"{victim} crashes", lambda: self._end(victim, "crashed")),
                    ("another joins", lambda: self._start(next(self._newcomers))),
                ):
                    self._happen(text, act, next(batches))
                self._drain()
            finally:
                self._stop()
        return self._check()

    def _happen(self, text: str, act: Callable[[], object], batch: list[Record]) -> None:
        """One event in all groups while a batch is produced."""
        before = {name: each.figures for name, each in self.accounts.items()}
        self.view.say(text, "bold")
        feeding = threading.Thread(target=self._feed, args=(batch,), daemon=True)
        feeding.start()
        act()
        self._settle()
        feeding.join()
        self._drain()
        for name, account in self.accounts.items():
            self.view.settled(account, *(now - then for now, then in zip(account.figures, before[name], strict=True)))

    def _start(self, name: str) -> None:
        for strategy in STRATEGIES:
            self.accounts[strategy].rows[name] = Row(name)
            self._children[strategy, name] = self._child(strategy, name)

    def _child(self, strategy: str, name: str) -> Child:
        window = str(self._campaign.window_ms)
        return Child(
            ["-m", "stream_join.member", name, strategy, strategy, self._kafka.bootstrap_servers, window],
            lambda line: self._events.put((strategy, load(line))),
            lambda error: self._events.put((strategy, Failed(name, error))),
        )

    def _end(self, name: str, status: str) -> None:
        for strategy in STRATEGIES:
            child = self._children.pop((strategy, name))
            if status == "crashed":
                child.kill()
            else:
                child.stop()
                self._leaving.append(child)
        for account in self.accounts.values():
            account.gone(name, status)

    def _stop(self) -> None:
        for child in self._children.values():
            child.stop()
        for child in (*self._leaving, *self._children.values()):
            child.join(PATIENCE_SECONDS)
        self._producer.close()

    def _settle(self) -> None:
        self._watch(lambda: all(account.settled for account in self.accounts.values()), "every number to have an owner")

    def _drain(self) -> None:
        ends = {
            (topic, number): end
            for topic in (IMPRESSIONS, CLICKS)
            for number, (_, end) in enumerate(self._kafka.offsets(topic))
        }
        self._watch(
            lambda: all(account.drained(ends) for account in self.accounts.values()), "all records to be joined"
        )

    def _watch(self, done: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not done():
            if time.monotonic() > deadline:
                raise StoryError(f"waited {PATIENCE_SECONDS:.0f} s for {what} in vain")
            try:
                strategy, event = self._events.get(timeout=0.1)
            except Empty:
                continue
            if isinstance(event, Failed):
                raise StoryError(f"{strategy}, {event.member}: {event.error}")
            self.accounts[strategy].take(event)

    def _feed(self, batch: list[Record]) -> None:
        """Produces a batch, evenly over a while. The producer chooses the same partition for a key as Java's."""
        started = time.monotonic()
        sent = []
        for place, record in enumerate(batch):
            ahead = started + BATCH_SECONDS * place / len(batch) - time.monotonic()
            if ahead > 0.02:
                time.sleep(ahead)
            sent.append(self._producer.send(record.topic, record.value, record.key, timestamp_ms=record.timestamp))
        self._producer.flush()
        for each in sent:
            each.get(timeout=PATIENCE_SECONDS)

    def _check(self) -> list[str]:
        faults = []
        for strategy in STRATEGIES:
            results = self._read(_output(strategy))
            expected = self._campaign.matches.items()
            self.results[strategy] = len(results)
            self.wrong[strategy] = len(set(results) ^ set(expected)) + len(results) - len(set(results))
            faults += wrong(strategy, results, self._campaign.matches)
            if strategy in OURS:
                faults += self.accounts[strategy].faults()
                ours, theirs = self.accounts[strategy], self.accounts["range"]
                if ours.rebuilt >= theirs.rebuilt:
                    faults.append(f"{strategy}: {ours.rebuilt} partitions rebuilt, range only {theirs.rebuilt}")
        return faults

    def _read(self, topic: str) -> list[tuple[str, str]]:
        reader = KafkaConsumer(bootstrap_servers=self._kafka.bootstrap_servers, group_id=None)
        try:
            reader.assign([TopicPartition(topic, number) for number in range(self._partitions)])
            reader.seek_to_beginning()
            wanted = sum(end for _, end in self._kafka.offsets(topic))
            results: list[tuple[str, str]] = []
            while len(results) < wanted:
                for message in chain.from_iterable(reader.poll(timeout_ms=1000).values()):
                    results.append((message.value.decode().split()[0], message.key.decode()))
            return results
        finally:
            reader.close()


def _output(strategy: str) -> str:
    return f"joined-{strategy}"
