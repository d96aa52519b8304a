"""A hostile member that claims all partitions, in a group of confluent's consumers."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from kafka_assignors import CooperativeStickyAssignor, MemberState
from kafka_assignors.clients.confluent import Consumer
from kafka_assignors.embedded import EmbeddedKafka
from kafka_assignors.userdata import Assignment
from support.raw_group import NONE, REBALANCE_IN_PROGRESS, RawMember

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROUNDS = 4


class Liar(threading.Thread):
    """Joins again and again, each time with a claim to all partitions in its last generation."""

    def __init__(self, servers: str, generation: int) -> None:
        super().__init__(daemon=True)
        self._member = RawMember(servers, "g", "liar", "cooperative-sticky")
        self._generation = generation
        self.assigned: list[int] = []
        self.failed: BaseException | None = None

    def run(self) -> None:
        try:
            while len(self.assigned) < ROUNDS:
                self._round()
                time.sleep(0.5)
        except BaseException as error:
            self.failed = error
        finally:
            self._member.close()

    def _round(self) -> None:
        everything = MemberState({"t": list(range(60))}, self._generation)
        self._member.send_join(CooperativeStickyAssignor().metadata(["t"], everything))
        joined = self._member.receive_join()
        if joined.error != NONE:
            return
        self._generation = joined.generation
        self._member.send_sync({})
        error, assignment = self._member.receive_sync()
        assert error in (NONE, REBALANCE_IN_PROGRESS)
        if error == NONE:
            self.assigned.append(len(Assignment.decode(assignment).partitions.get("t", ())))


def test_a_claim_to_everything_is_assigned_no_more_than_the_others() -> None:
    with EmbeddedKafka(topics={"t": 60}) as kafka:
        settings = {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "g",
            "partition.assignment.strategy": "cooperative-sticky",
            "heartbeat.interval.ms": 200,
        }
        consumers = [Consumer(settings) for _ in range(3)]

        def until(done: Callable[[], bool], why: str) -> None:
            late = time.monotonic() + 60
            while not done():
                assert time.monotonic() < late, (why, [len(each.assignment()) for each in consumers])
                for each in consumers:
                    each.poll(0.02)

        try:
            taken: list[int] = []

            def on_revoke(_: object, partitions: Sequence[object]) -> None:
                taken.append(len(partitions))

            for each in consumers:
                each.subscribe(["t"], on_revoke=on_revoke)
            until(lambda: [len(each.assignment()) for each in consumers] == [20] * 3, "the group settles")
            before = [{tp.partition for tp in each.assignment()} for each in consumers]
            generation = kafka.groups()["g"].generation
            taken.clear()
            liar = Liar(kafka.bootstrap_servers, generation)
            liar.start()
            until(lambda: not liar.is_alive(), "the liar has had its rounds")
            assert liar.failed is None, liar.failed
            assert max(liar.assigned) <= 15, liar.assigned
            until(lambda: all(len(each.assignment()) >= 15 for each in consumers), "each has its quarter")
            assert sum(taken) == 15, "nothing was taken but what the newcomer gets, and that once"
            for was, each in zip(before, consumers, strict=True):
                assert len(was & {tp.partition for tp in each.assignment()}) == 15
        finally:
            for each in consumers:
                each.close()
