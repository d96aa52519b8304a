"""The decisions of KEDA and of the HorizontalPodAutoscaler, as their pages describe them.

KEDA reads the lag every `pollingInterval`, and decides about 0 replicas only: from 0 to 1 (or to `minReplicaCount`) as
soon as the trigger is active, and back to 0 when it has not been active for longer than `cooldownPeriod`. All else is
decided by an HPA, which asks KEDA for the lag at each decision (keda.sh/docs/2.15/concepts/scaling-deployments).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_assignors.autoscale.policy import Policy, ScalingPolicy

__all__ = ["Autoscaler", "kafka_metric"]


def kafka_metric(policy: Policy, lags: Sequence[int]) -> int:
    """The lag that the scaler returns, in records: that of all partitions, cut so that no consumer is idle.

    An HPA without KEDA gets the plain sum.

    Args:
        policy: the policy.
        lags: of each partition, in records.
    """
    total = sum(lags)
    if policy.kind != "keda" or policy.allow_idle:
        return total
    most = len(lags)
    if policy.even and lags:
        wanted = next((each for each in _divisors(most) if each * policy.threshold >= total), most)
        total = wanted * policy.threshold
    if policy.limit_to_lagging:
        most = sum(lag > 0 for lag in lags)
    return min(total, most * policy.threshold) if total // policy.threshold > most else total


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]


class Autoscaler:
    """A policy at work. Times are milliseconds; `now` never goes back.

    Args:
        policy: the policy.
        start: the time of the first poll. The cooldown begins then: the trigger counts as active until `start`.
    """

    def __init__(self, policy: Policy, start: int) -> None:
        self._policy = policy
        self._last_active = start
        self._recommended: deque[tuple[int, int]] = deque()
        self._added: deque[tuple[int, int]] = deque()
        self._removed: deque[tuple[int, int]] = deque()

    def poll(self, now: int, replicas: int, lags: Sequence[int]) -> int:
        """One poll of KEDA. Returns the number of replicas after it."""
        policy = self._policy
        active = sum(lags) > policy.activation
        if active:
            self._last_active = now
            return replicas or max(1, policy.least)
        if policy.to_zero and replicas and now > self._last_active + policy.cooldown_ms:
            return 0
        return replicas

    def decide(self, now: int, replicas: int, lags: Sequence[int]) -> int:
        """One decision of the HPA. Returns the number of replicas after it; 0 replicas stay 0."""
        policy = self._policy
        least = max(1, policy.least)
        if replicas == 0:
            return 0
        if replicas > policy.most or replicas < least:
            wanted = min(max(replicas, least), policy.most)
        else:
            metric = kafka_metric(policy, lags)
            ratio = metric / (policy.threshold * replicas)
            within = 1.0 - policy.tolerance <= ratio <= 1.0 + policy.tolerance
            wanted = replicas if within else -(-metric // policy.threshold)
            wanted = self._limited(now, replicas, self._stabilised(now, replicas, wanted))
        if wanted > replicas:
            self._added.append((now, wanted - replicas))
        elif wanted < replicas:
            self._removed.append((now, replicas - wanted))
        return wanted

    def _stabilised(self, now: int, replicas: int, wanted: int) -> int:
        """The replicas: raised to the lowest recommendation of the `up` window, or reduced to the highest of `down`."""
        up, down = self._policy.up.window_ms, self._policy.down.window_ms
        while self._recommended and self._recommended[0][0] <= now - max(up, down):
            self._recommended.popleft()
        lowest = min((each for at, each in self._recommended if at > now - up), default=wanted)
        highest = max((each for at, each in self._recommended if at > now - down), default=wanted)
        self._recommended.append((now, wanted))
        return min(max(replicas, min(lowest, wanted)), max(highest, wanted))

    def _limited(self, now: int, replicas: int, wanted: int) -> int:
        """`wanted`, limited by the policies of the behaviour and by the fewest and the most replicas."""
        policy = self._policy
        if wanted > replicas:
            rules = policy.up
            if rules.select == "Disabled":
                return replicas
            limits = [self._up_to(now, replicas, each) for each in rules.policies]
            limit = max(replicas, (min if rules.select == "Min" else max)(limits))
            return min(wanted, limit, policy.most)
        if wanted < replicas:
            rules = policy.down
            if rules.select == "Disabled":
                return replicas
            limits = [self._down_to(now, replicas, each) for each in rules.policies]
            limit = min(replicas, (max if rules.select == "Min" else min)(limits))
            return max(wanted, limit, max(1, policy.least))
        return replicas

    def _up_to(self, now: int, replicas: int, limit: ScalingPolicy) -> int:
        began = self._at_beginning(now, replicas, limit.period_ms)
        # Rounded up: otherwise one replica and 10 % would never become two.
        return began + limit.value if limit.kind == "Pods" else -(-began * (100 + limit.value) // 100)

    def _down_to(self, now: int, replicas: int, limit: ScalingPolicy) -> int:
        began = self._at_beginning(now, replicas, limit.period_ms)
        return began - limit.value if limit.kind == "Pods" else began * max(0, 100 - limit.value) // 100

    def _at_beginning(self, now: int, replicas: int, period_ms: int) -> int:
        """The replicas at the beginning of the period that ends now."""
        for events in (self._added, self._removed):
            # `parse_policy` accepts periods of half an hour at most: older events are in no period.
            while events and events[0][0] <= now - 1_800_000:
                events.popleft()
        added = sum(count for at, count in self._added if at > now - period_ms)
        removed = sum(count for at, count in self._removed if at > now - period_ms)
        return replicas - added + removed
