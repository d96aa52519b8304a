"""One scene on a Kafka: a group whose members are polled in turn until each has its partitions of the same plan."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kafka_assignors.clients.confluent import Consumer
from own_assignors.scenes import Joins

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from kafka_assignors import Plan
    from kafka_assignors.clients import RebalanceReport
    from own_assignors.scenes import Assigned, Leaves, Scene

PATIENCE = 60.0


class SceneError(Exception):
    """The members did not have the partitions of one plan in time."""


class Troupe:
    """The members of one scene. One thread polls all of them; only the consumers have further threads."""

    def __init__(self, bootstrap: str, scene: Scene) -> None:
        self._bootstrap = bootstrap
        self._scene = scene
        self._consumers: dict[str, Consumer] = {}
        self._reports: dict[str, list[RebalanceReport]] = {}
        self.members: dict[str, Joins] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for consumer in self._consumers.values():
            consumer.close()

    def play(self) -> Iterator[tuple[Joins | Leaves, Plan]]:
        """Yields each step with the plan after it. Between two steps `assigned` returns the partitions of a member."""
        for step in self._scene.steps:
            if isinstance(step, Joins):
                self._join(step)
            else:
                del self.members[step.name]
                self._consumers.pop(step.name).close()
            yield step, self._settled()

    def assigned(self, name: str) -> Assigned:
        assigned: Assigned = {}
        for each in sorted(self._consumers[name].assignment(), key=lambda each: (each.topic, each.partition)):
            assigned.setdefault(each.topic, []).append(each.partition)
        return assigned

    def _join(self, step: Joins) -> None:
        reports = self._reports[step.name] = []
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": step.assignor.name,
                "client.id": step.name,
                "partition.assignment.strategy": [step.assignor],
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 200,
                "on_rebalance": reports.append,
                **({} if step.rack is None else {"client.rack": step.rack}),
            }
        )
        consumer.subscribe(list(self._scene.topics))
        self._consumers[step.name], self.members[step.name] = consumer, step

    def _settled(self) -> Plan:
        """Waits until every member has its partitions of one plan."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            for consumer in self._consumers.values():
                consumer.poll(0.02)
            latest = [self._reports[name][-1] for name in self._consumers if self._reports[name]]
            plan = next((report.plan for report in latest if report.plan is not None), None)
            if plan is None or len({report.generation for report in latest}) > 1:
                continue
            planned = sorted(map(str, plan.assignment.values()))
            withheld = any("revokes it" in each.reason for each in plan.unassigned)
            if planned == sorted(str(self.assigned(name)) for name in self._consumers) and not withheld:
                return plan
        raise SceneError(f"{self._scene.title}: no common plan within {PATIENCE:g} s")
