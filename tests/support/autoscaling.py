"""A plain simulation of a group and its autoscaler, to compare `kafka_assignors.autoscale` with.

The simulation shares no code with that module. It keeps every event in lists, and searches the lists again at each
step. Only the plans come from the package, since these tests do not check the strategies. The simulation is slow and
simple on purpose.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING, Any

from kafka_assignors import Group, Member
from kafka_assignors.assignors import LagBasedAssignor
from kafka_assignors.autoscale import Timing, Workload, parse_policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.autoscale import Policy

UNIT = 1_000_000


@dataclass
class Pod:
    number: int
    member: str
    joins_at: int
    joined: bool = False
    gone_until: int | None = None
    removed: bool = False


class Simulation:
    """One run. `figures` returns figures of a `Replayed`, under the same names."""

    def __init__(self, load: Workload, policy: Policy, assignor: Assignor, static: bool, timing: Timing) -> None:
        self.load, self.policy, self.assignor, self.static, self.timing = load, policy, assignor, static, timing
        self.names = sorted(load.arrived)
        self.read_so_far = dict.fromkeys(self.names, 0)
        self.read_in_step = dict.fromkeys(self.names, 0)
        self.last_step = 1
        self.pods: list[Pod] = []
        self.owner: dict[tuple[str, int], str] = {}
        self.without_until = dict.fromkeys(self.names, 0)
        self.recommendations: list[tuple[int, int]] = []
        self.changes: list[tuple[int, int]] = []
        self.made = 0
        self.version = 0

    # ---- records ----

    def arrived(self, name: tuple[str, int], ts: int) -> int:
        """In millionths."""
        times, counts = self.load.times, self.load.arrived[name]
        if ts < times[0]:
            return 0
        for start, end, first, last in zip(times, times[1:], counts, counts[1:], strict=False):
            if ts <= end:
                return floor((first + Fraction(last - first) * (ts - start) / (end - start)) * UNIT)
        return counts[-1] * UNIT

    def waiting(self, name: tuple[str, int], ts: int) -> int:
        return self.arrived(name, ts) - self.read_so_far[name]

    def seen(self, ts: int) -> list[int]:
        commit = min(round(1000 * self.timing.commit), self.last_step)
        return [
            ceil(Fraction(self.waiting(name, ts) + self.read_in_step[name] * commit // self.last_step, UNIT))
            for name in self.names
        ]

    # ---- the autoscaler ----

    def metric(self, lags: Sequence[int]) -> int:
        policy, total = self.policy, sum(lags)
        if policy.kind == "hpa" or policy.allow_idle:
            return total
        bound = len(lags)
        if policy.even:
            enough = [n for n in range(1, bound + 1) if bound % n == 0 and n * policy.threshold >= total]
            total = (enough[0] if enough else bound) * policy.threshold
        if policy.limit_to_lagging:
            bound = len([lag for lag in lags if lag])
        if floor(total / policy.threshold) > bound:
            total = bound * policy.threshold
        return total

    def hpa(self, now: int, current: int, lags: Sequence[int]) -> int:
        policy = self.policy
        least, most = max(1, policy.least), policy.most
        if current > most:
            return most
        if current < least:
            return least
        metric = self.metric(lags)
        share = metric / (policy.threshold * current)
        wanted = current
        if share < 1.0 - policy.tolerance or share > 1.0 + policy.tolerance:
            wanted = ceil(Fraction(metric, policy.threshold))
        recent_up = [n for at, n in self.recommendations if at > now - policy.up.window_ms]
        recent_down = [n for at, n in self.recommendations if at > now - policy.down.window_ms]
        low, high = min([wanted, *recent_up]), max([wanted, *recent_down])
        self.recommendations.append((now, wanted))
        stable = current
        if stable < low:
            stable = low
        if stable > high:
            stable = high
        if stable == current:
            return current
        rules = policy.up if stable > current else policy.down
        if rules.select == "Disabled":
            return current
        limits = []
        for each in rules.policies:
            began = current - sum(change for at, change in self.changes if at > now - each.period_ms)
            if stable > current:
                part = Fraction(100 + each.value, 100)
                limits.append(began + each.value if each.kind == "Pods" else ceil(began * part))
            else:
                part = Fraction(max(0, 100 - each.value), 100)
                limits.append(began - each.value if each.kind == "Pods" else floor(began * part))
        widest = rules.select == "Max"
        if stable > current:
            limit = max(limits) if widest else min(limits)
            return min(stable, max(limit, current), most)
        limit = min(limits) if widest else max(limits)
        return max(stable, min(limit, current), least)

    # ---- the group ----

    def new_pod(self, number: int, joins_at: int, joined: bool = False) -> None:
        self.made += 1
        digest = hashlib.sha256(str(self.made).encode()).hexdigest()
        self.pods.append(Pod(number, "pod-" + digest[:16], joins_at, joined))

    def running(self) -> list[Pod]:
        return sorted((pod for pod in self.pods if not pod.removed), key=lambda pod: pod.number)

    def away(self) -> list[Pod]:
        return [pod for pod in self.pods if pod.gone_until is not None]

    def plan(self, now: int) -> tuple[dict[tuple[str, int], str], bool]:
        self.version += 1
        topics: dict[str, int] = {}
        for topic, number in self.names:
            topics[topic] = max(number + 1, topics.get(topic, 0))
        members = []
        for pod in self.running():
            if not pod.joined:
                continue
            owned: dict[str, list[int]] = {}
            for topic, number in self.names:
                if self.owner.get((topic, number)) == pod.member:
                    owned.setdefault(topic, []).append(number)
            instance = f"pod-{pod.number}" if self.static else None
            claim: dict[str, Any] = {"owned": owned, "generation": self.version} if owned else {}
            members.append(Member(pod.member, list(topics), instance_id=instance, **claim))
        group = Group(topics, members)
        if isinstance(self.assignor, LagBasedAssignor):
            lags = {topic: [0] * count for topic, count in topics.items()}
            for (topic, number), lag in zip(self.names, self.seen(now), strict=True):
                lags[topic][number] = lag
            plan = self.assignor.assign(group, lags=lags)
        else:
            plan = self.assignor.assign(group)
        owner = {(t, n): m for m, of in plan.assignment.items() for t, numbers in of.items() for n in numbers}
        second = False
        for move in plan.moves:
            if move.target is not None and (move.topic, move.partition) not in owner:
                owner[move.topic, move.partition] = move.target
                second = True
        return owner, second

    # ---- a run ----

    def figures(self) -> dict[str, Any]:
        policy, timing = self.policy, self.timing
        rebalance, startup, session = (
            round(1000 * each) for each in (timing.rebalance, timing.startup, timing.session)
        )
        start, end = self.load.times[0], self.load.times[-1]
        step = policy.sync_ms
        if policy.kind == "keda":
            step = max(
                each
                for each in range(1_000, step + 1, 1_000)
                if not policy.sync_ms % each and not policy.polling_ms % each
            )
        lowest = 0 if policy.to_zero else max(1, policy.least)
        replicas = max(lowest, min(self.load.members, policy.most))
        for number in range(replicas):
            self.new_pod(number, start, joined=True)
        if replicas:
            self.owner = self.plan(start)[0]
        history = [(start, replicas)]
        active_at = start
        lags = []
        rebalances = moves = late = unowned = empty = cost = 0
        deadline = ceil(Fraction(round(1000 * timing.deadline), step)) * step
        rate = round(self.load.rate * UNIT)
        now = start
        while now < end:
            dirty = False
            wanted = replicas
            told = self.seen(now)
            if policy.kind == "keda" and (now - start) % policy.polling_ms == 0:
                if sum(told) > policy.activation:
                    active_at = now
                    if wanted == 0:
                        wanted = max(1, policy.least)
                elif policy.to_zero and now - active_at > policy.cooldown_ms:
                    wanted = 0
            if policy.kind != "fixed" and (now - start) % policy.sync_ms == 0 and wanted:
                decided = self.hpa(now, wanted, told)
                if decided != wanted:
                    self.changes.append((now, decided - wanted))
                wanted = decided
            if wanted != replicas:
                history.append((now, wanted))
                for pod in self.running()[wanted:]:
                    pod.removed = True
                    if pod.joined and self.static:
                        pod.gone_until = now + session
                    elif pod.joined:
                        dirty = True
                for number in range(replicas, wanted):
                    self.new_pod(number, now + startup)
                replicas = wanted
            for pod in self.away():
                if pod.gone_until is not None and pod.gone_until <= now:
                    pod.gone_until = None
                    dirty = True
            for pod in self.running():
                if not pod.joined and pod.joins_at <= now:
                    pod.joined = True
                    same = [each for each in self.away() if each.number == pod.number]
                    if same:
                        pod.member, same[0].gone_until = same[0].member, None
                    else:
                        dirty = True
            if dirty:
                ready = max([now, *(pod.gone_until for pod in self.away() if pod.gone_until is not None)]) + rebalance
                for pod in self.away():
                    pod.gone_until = None
                before = self.owner
                if any(pod.joined for pod in self.running()):
                    self.owner, second = self.plan(now)
                    new = [name for name in self.names if name in self.owner and before.get(name) != self.owner[name]]
                    moves += len(new)
                    rebalances += 2 if second and self.assignor.cooperative else 1
                    for name in (
                        new if self.assignor.cooperative else [each for each in self.names if each in self.owner]
                    ):
                        self.without_until[name] = max(self.without_until[name], ready)
                else:
                    self.owner = {}
            lags.append(ceil(Fraction(sum(self.waiting(name, now) for name in self.names), UNIT)))
            until = min(end, now + step)
            length = until - now
            cost += replicas * length
            readers = {pod.member for pod in self.running() if pod.joined}
            nobody = not readers and not self.away()
            new_read = dict.fromkeys(self.names, 0)
            for name in self.names:
                if self.owner.get(name) in readers:
                    unowned += min(length, max(0, self.without_until[name] - now))
                elif nobody:
                    empty += length
                else:
                    unowned += length
            for member in readers:
                own = [name for name in self.names if self.owner.get(name) == member]
                there = {name: max(0, length - max(0, self.without_until[name] - now)) for name in own}
                most = {name: min(self.waiting(name, until), rate * there[name] // 1000) for name in own}
                left = rate * max(there.values(), default=0) // 1000
                open_ = sorted(own, key=lambda name: (most[name], name))
                # Reads a partition to its end if it has at most an equal part of the rate; the others share the rest.
                while open_ and most[open_[0]] <= left // len(open_):
                    new_read[open_[0]] = most[open_[0]]
                    left -= most[open_.pop(0)]
                for place, name in enumerate(open_):
                    part = left // (len(open_) - place)
                    new_read[name] = part
                    left -= part
            # `seen` adds the uncommitted records to the lag. A partition that was not read in this step has none.
            self.read_in_step, self.last_step = new_read, length
            for name in self.names:
                self.read_so_far[name] += new_read[name]
            for name in self.names:
                due, before_due = self.arrived(name, until - deadline), self.arrived(name, now - deadline)
                if until < end or length == step:
                    late += max(0, due - max(before_due, self.read_so_far[name]))
                else:
                    due = self.arrived(name, now + step - deadline) if deadline else self.arrived(name, end)
                    late += max(0, due - max(before_due, self.read_so_far[name]))
            now = until
        lags.append(ceil(Fraction(sum(self.waiting(name, end) for name in self.names), UNIT)))
        return {
            "rebalances": rebalances,
            "scalings": len(history) - 1,
            "least_replicas": min(count for _, count in history),
            "most_replicas": max(count for _, count in history),
            "member_hours": cost / 3_600_000,
            "moves": moves,
            "unowned_s": unowned / 1000,
            "empty_s": empty / 1000,
            "late": ceil(Fraction(late, UNIT)),
            "records": sum(counts[-1] for counts in self.load.arrived.values()),
            "unread": lags[-1],
            "most_lag": max(lags),
            "replicas": tuple(history),
        }


def small_group(seed: int) -> tuple[Workload, Policy, bool, Timing]:
    """A made-up group, with a policy that has something to decide."""
    draw = random.Random(seed)
    topics = {f"topic-{number}": draw.randint(2, 7) for number in range(draw.randint(1, 3))}
    start = 1_795_000_000_000 + draw.randint(0, 999)
    times = [start]
    for _ in range(draw.randint(4, 9)):
        times.append(times[-1] + draw.randint(60_000, 500_000))
    rate = draw.choice([0.05, 3.0, 17.5, 250.0])
    arrived = {}
    for topic, count in topics.items():
        for number in range(count):
            counts = [draw.choice([0, 0, draw.randint(0, int(60 * rate) + 5)])]
            for before, after in itertools.pairwise(times):
                burst = draw.choice([0.0, 0.0, 0.05, 0.4])
                counts.append(counts[-1] + int(burst * rate * (after - before) / 1000))
            arrived[topic, number] = tuple(counts)
    threshold = max(1, int(rate * draw.choice([2, 15, 60])))
    behaviour = draw.choice(
        [
            "",
            ", scaleUp.stabilizationWindowSeconds=60, scaleDown.stabilizationWindowSeconds=30",
            ", scaleUp.policies=Pods:1:60+Percent:50:30, scaleDown.policies=Pods:1:30, "
            "scaleDown.stabilizationWindowSeconds=0",
            ", scaleUp.policies=Pods:2:45+Percent:100:60, scaleUp.selectPolicy=Min, tolerance=0.3, syncPeriod=20",
            ", scaleDown.selectPolicy=Disabled, tolerance=0",
        ]
    )
    extra = draw.choice(
        [
            "",
            ", cooldownPeriod=60, pollingInterval=10",
            ", allowIdleConsumers=true, minReplicaCount=2, idleReplicaCount=0, cooldownPeriod=30",
            ", limitToPartitionsWithLag=true, activationLagThreshold=5",
            ", ensureEvenDistributionOfPartitions=true, minReplicaCount=1",
        ]
    )
    most = draw.randint(4, 12)
    keda = f"keda(lagThreshold={threshold}, maxReplicaCount={most}{extra}{behaviour})"
    hpa = f"hpa(averageValue={threshold}, minReplicas={draw.randint(1, 2)}, maxReplicas={most}{behaviour})"
    text = draw.choice([keda, keda, keda, keda, hpa, hpa, hpa, f"fixed(replicas={draw.randint(1, 4)})"])
    timing = Timing(
        rebalance=draw.choice([0.0, 3.0, 12.5, 40.0]),
        startup=draw.choice([0.0, 20.0, 47.0]),
        session=draw.choice([6.0, 45.0, 130.0]),
        commit=draw.choice([0.0, 5.0, 60.0]),
        deadline=draw.choice([0.0, 10.0, 120.0, 301.5]),
    )
    load = Workload(f"group-{seed}", tuple(times), arrived, rate, draw.randint(0, 4))
    return load, parse_policy(text), bool(seed % 2), timing
