"""The events of the demo, and its processes."""

from __future__ import annotations

import threading
import time
from itertools import count
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from kafka import KafkaProducer

from demo.board import Board, Row
from demo.events import Failed, load
from demo.ledger import Ledger
from demo.view import View
from processes import Child

if TYPE_CHECKING:
    from collections.abc import Callable

    from demo.events import Event

TOPICS = {"orders": 12, "payments": 7, "clicks": 5, "audit": 2}
MESSAGES_PER_SECOND = 400
# The time limit for the group to become stable, and to read the remaining messages.
PATIENCE_SECONDS = 15.0


class DemoError(Exception):
    """The demo could not be played to its end."""


class Consumer(Child):
    """A consumer process."""

    def __init__(self, name: str, settings: list[str], topics: list[str], events: SimpleQueue[Event]) -> None:
        super().__init__(
            ["-m", "demo.consumer", name, *settings, *topics],
            lambda line: events.put(load(line)),
            lambda error: events.put(Failed(name, error)),
        )


class Story:
    """Plays the demo against a broker, with a strategy in text, and watches it."""

    def __init__(self, bootstrap: str, strategy: str = "sticky") -> None:
        self._bootstrap = bootstrap
        self._strategy = strategy
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._consumers: dict[str, Consumer] = {}
        self._producing = threading.Event()
        self.board = Board(TOPICS)
        self.ledger = Ledger()
        self.view = View(self.board, self.ledger)

    def play(self) -> list[str]:
        """Plays the whole demo, in about half a minute. Returns the problems.

        Raises:
            DemoError: the group did not settle, or a consumer failed.
        """
        everything = ["orders", "payments", "clicks"]
        with self.view:
            producer = threading.Thread(target=self._produce, daemon=True)
            producer.start()
            try:
                self.view.say("three consumers join", "bold")
                for name, client in (("c1", "kafka-python"), ("c2", "aiokafka"), ("c3", "confluent-kafka")):
                    self._start(name, client, everything)
                self._settle({"c1", "c2", "c3"})
                self.view.say("c2 dies without goodbye", "bold")
                self._consumers.pop("c2").kill()
                self.board.killed("c2")
                self._settle({"c1", "c3"})
                self.view.say("two more join", "bold")
                for name, client in (("c4", "confluent-kafka"), ("c5", "aiokafka")):
                    self._start(name, client, everything)
                self._settle({"c1", "c3", "c4", "c5"})
                self.view.say("c4 changes its subscription: audit instead of clicks", "bold")
                self._consumers["c4"].tell("subscribe orders payments audit")
                self._settle({"c1", "c3", "c4", "c5"}, {"c4": {"orders", "payments", "audit"}})
                self._producing.set()
                producer.join()
                self.view.say("the producer stops; the group reads what is left", "bold")
                self._watch(lambda: self.ledger.missing == 0, "read everything that was produced", required=False)
            finally:
                self._producing.set()
                self._end()
        return self.ledger.faults()

    def _start(self, name: str, client: str, topics: list[str]) -> None:
        self.board.rows[name] = Row(name, client, topics=topics)
        self._consumers[name] = Consumer(name, [client, self._bootstrap, self._strategy], topics, self._events)

    def _settle(self, members: set[str], topics: dict[str, set[str]] | None = None) -> None:
        """Waits until all members have their assignment of one generation, and then lets them consume for a while."""

        def settled() -> bool:
            changed = all(set(self.board.rows[name].topics) == wanted for name, wanted in (topics or {}).items())
            return changed and set(self.board.settled) == members

        self._watch(settled, f"a generation of {', '.join(sorted(members))}")
        until = time.monotonic() + 2.5
        self._watch(lambda: time.monotonic() >= until, "time passing")

    def _watch(self, done: Callable[[], bool], what: str, *, required: bool = True) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not done():
            if time.monotonic() > deadline:
                if required:
                    raise DemoError(f"waited {PATIENCE_SECONDS:.0f} s for {what} in vain")
                return
            try:
                event = self._events.get(timeout=0.1)
            except Empty:
                continue
            if isinstance(event, Failed):
                raise DemoError(f"{event.member}: {event.error}")
            self._take(event)

    def _take(self, event: Event) -> None:
        self.ledger.take(event)
        rebalance = self.board.take(event)
        if rebalance is not None:
            self.view.rebalanced(rebalance)

    def _end(self) -> None:
        """Stops all consumers at once, and takes their last events."""
        for consumer in self._consumers.values():
            consumer.stop()
        for consumer in self._consumers.values():
            consumer.join(PATIENCE_SECONDS)
        while not self._events.empty():
            event = self._events.get()
            if not isinstance(event, Failed):
                self.ledger.take(event)

    def _produce(self) -> None:
        """Sends to all partitions in turn until `stop`. Acknowledged messages go into the ledger."""
        producer = KafkaProducer(bootstrap_servers=self._bootstrap, linger_ms=20)
        places = [(topic, number) for topic, partitions in TOPICS.items() for number in range(partitions)]
        pending = []
        for sequence in count():
            topic, number = places[sequence % len(places)]
            pending.append((topic, number, producer.send(topic, b"%d" % sequence, partition=number)))
            if self._producing.wait(1 / MESSAGES_PER_SECOND):
                break
            while pending and pending[0][2].is_done:
                topic, number, sent = pending.pop(0)
                sent.get()
                self.ledger.acknowledged(topic, number)
        producer.flush()
        for topic, number, sent in pending:
            sent.get(timeout=PATIENCE_SECONDS)
            self.ledger.acknowledged(topic, number)
        producer.close()
