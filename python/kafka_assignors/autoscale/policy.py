"""Policies of autoscalers: the parameters of KEDA's Kafka scaler and of a HorizontalPodAutoscaler, by their own names.

    keda(lagThreshold=500, maxReplicaCount=20)
    calm=keda(lagThreshold=500, cooldownPeriod=900, scaleDown.stabilizationWindowSeconds=900)
    hpa(averageValue=500, minReplicas=2, maxReplicas=20, scaleUp.policies=Pods:2:60)
    fixed(replicas=6)

The parameters of `keda`, besides those of `hpa`'s behaviour, are from the pages of KEDA 2.15: its Kafka scaler
(keda.sh/docs/2.15/scalers/apache-kafka) and its ScaledObject (keda.sh/docs/2.15/reference/scaledobject-spec). Those of
`hpa` are from kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale, and from `autoscaling/v2`.

| Parameter of `keda` | Default | |
|---|---|---|
| `lagThreshold` | none | the records of lag for each replica; KEDA's page and its source have different defaults |
| `activationLagThreshold` | 0 | the trigger is active while the lag is more than that |
| `pollingInterval` | 30 | seconds between two polls of KEDA, which only decides on scaling to and from 0 |
| `cooldownPeriod` | 300 | seconds without an active trigger before KEDA scales to 0 |
| `allowIdleConsumers` | false | whether there may be more replicas than partitions |
| `limitToPartitionsWithLag` | false | whether there may be at most as many replicas as partitions with lag |
| `ensureEvenDistributionOfPartitions` | false | whether the number of replicas divides that of the partitions |
| `minReplicaCount` | 0 | at 0 KEDA scales to 0 |
| `maxReplicaCount` | 100 | |
| `idleReplicaCount` | none | 0: KEDA scales to 0 without an active trigger, and else to `minReplicaCount` at least |

| Parameter of `hpa` | Default | |
|---|---|---|
| `averageValue` | none | the records of lag for each replica |
| `minReplicas`, `maxReplicas` | 1, none | |
| `syncPeriod` | 15 | seconds between two decisions; also of the HPA that KEDA makes, as the parameters below |
| `tolerance` | 0.1 | how far the lag for each replica may be from the threshold without a change |
| `scaleUp.stabilizationWindowSeconds` | 0 | the lowest recommendation within so many seconds counts |
| `scaleDown.stabilizationWindowSeconds` | 300 | the highest recommendation within so many seconds counts |
| `scaleUp.policies` | `Percent:100:15+Pods:4:15` | the most added replicas in so many seconds, as type:value:seconds |
| `scaleDown.policies` | `Percent:100:15` | the most removed replicas |
| `scaleUp.selectPolicy`, `scaleDown.selectPolicy` | `Max` | `Max`, `Min` or `Disabled` |
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from kafka_assignors.errors import OptionError

__all__ = ["MOST_REPLICAS", "Policy", "ScalingPolicy", "ScalingRules", "parse_policy"]

MOST_REPLICAS = 10_000
"""The most replicas of a policy. More members do not fit a group's record."""

_TEXT = re.compile(r"\s*(?:([\w.-]+)\s*=\s*)?(keda|hpa|fixed)\s*\(([^()]*)\)\s*")
_LONGEST_S = 7 * 86_400


@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    """The most that an HPA changes in a period.

    Attributes:
        kind: `"Pods"` or `"Percent"`.
        value: how many replicas, or how many percent of those at the beginning of the period.
        period_ms: the period in milliseconds.
    """

    kind: Literal["Pods", "Percent"]
    value: int
    period_ms: int


@dataclass(frozen=True, slots=True)
class ScalingRules:
    """How an HPA changes the number of replicas in one direction.

    Attributes:
        window_ms: the stabilisation window in milliseconds.
        policies: the limits of the change.
        select: which of them counts: `"Max"` the one that allows the largest change, `"Min"` the smallest,
            `"Disabled"` no change at all.
    """

    window_ms: int
    policies: tuple[ScalingPolicy, ...]
    select: Literal["Max", "Min", "Disabled"] = "Max"


_UP = ScalingRules(0, (ScalingPolicy("Percent", 100, 15_000), ScalingPolicy("Pods", 4, 15_000)))
_DOWN = ScalingRules(300_000, (ScalingPolicy("Percent", 100, 15_000),))


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy; the text of [`parse_policy`][kafka_assignors.autoscale.parse_policy] has the parameters' own names.

    Attributes:
        name: its name in answers.
        kind: `"keda"`, `"hpa"` or `"fixed"`, which never changes the number of replicas.
        threshold: the records of lag for each replica; 0 if the number is fixed.
        least: the fewest replicas; 0 allows KEDA to scale to 0.
        most: the most replicas.
        activation: the trigger is active while the lag is more than that.
        polling_ms: the milliseconds between two polls of KEDA.
        cooldown_ms: the milliseconds without an active trigger before KEDA scales to 0.
        allow_idle: whether there may be more replicas than partitions.
        limit_to_lagging: whether there may be at most as many replicas as partitions with lag.
        even: whether the number of replicas is a divisor of that of the partitions.
        to_zero: whether KEDA scales to 0 without an active trigger.
        tolerance: how far the lag for each replica may be from the threshold, as a share of it.
        sync_ms: the milliseconds between two decisions of the HPA.
        up: how it adds replicas.
        down: how it removes them.
    """

    name: str
    kind: Literal["keda", "hpa", "fixed"]
    threshold: int = 0
    least: int = 1
    most: int = 100
    activation: int = 0
    polling_ms: int = 30_000
    cooldown_ms: int = 300_000
    allow_idle: bool = False
    limit_to_lagging: bool = False
    even: bool = False
    to_zero: bool = False
    tolerance: float = 0.1
    sync_ms: int = 15_000
    up: ScalingRules = field(default=_UP)
    down: ScalingRules = field(default=_DOWN)


def parse_policy(text: str) -> Policy:
    """Reads a policy.

    Args:
        text: `keda(…)`, `hpa(…)` or `fixed(replicas=N)` with parameters as in the tables of this module; a name may
            stand in front, as in `calm=keda(lagThreshold=500)`. Without one the text is the name.

    Raises:
        OptionError: another form, an unknown parameter, one that is missing or given twice, or a value out of range.

    >>> parse_policy("keda(lagThreshold=500, cooldownPeriod=60)").cooldown_ms
    60000
    """
    found = _TEXT.fullmatch(text)
    if found is None:
        raise OptionError(
            f"policy {text!r} is none; give keda(lagThreshold=500, …), hpa(averageValue=500, maxReplicas=10, …) or "
            "fixed(replicas=6)"
        )
    name, kind, inside = found[1], found[2], found[3]
    given: dict[str, str] = {}
    for part in filter(None, map(str.strip, inside.split(","))):
        parameter, equals, value = (each.strip() for each in part.partition("="))
        if not equals or not value:
            raise OptionError(f"policy {text!r}: {part!r} has no value; give it as {parameter or 'lagThreshold'}=500")
        if parameter in given:
            raise OptionError(f"policy {text!r}: {parameter} is given twice; give it once")
        given[parameter] = value
    read = _Read(text, given)
    make = {"keda": _keda, "hpa": _hpa, "fixed": _fixed}[kind]
    policy = make(read, name or re.sub(r"\s+", " ", text.strip()))
    read.end(kind)
    if policy.least > policy.most:
        raise OptionError(
            f"policy {text!r}: the fewest replicas are {policy.least}, the most {policy.most}; give fewer, or more"
        )
    return policy


class _Read:
    """The parameters of one text. A parameter that is never taken is an unknown one: `end` raises an error."""

    def __init__(self, text: str, given: dict[str, str]) -> None:
        self._text = text
        self._given = given
        self._known: list[str] = []

    def wrong(self, name: str, value: str, remedy: str) -> OptionError:
        return OptionError(f"policy {self._text!r}: {name} is {value!r}; give {remedy}")

    def take(self, name: str) -> str | None:
        self._known.append(name)
        return self._given.pop(name, None)

    def number(self, name: str, least: int, most: int, default: int | None) -> int:
        value = self.take(name)
        if value is None:
            if default is None:
                raise OptionError(f"policy {self._text!r}: {name} is missing, and has no default; give {name}=N")
            return default
        if not (value.isascii() and value.isdigit() and len(value) <= 15 and least <= int(value) <= most):
            raise self.wrong(name, value, f"a whole number from {least} to {most}")
        return int(value)

    def seconds(self, name: str, default: int, least: int = 0) -> int:
        """A parameter in seconds, as milliseconds."""
        return 1000 * self.number(name, least, _LONGEST_S, default)

    def boolean(self, name: str) -> bool:
        value = self.take(name)
        if value not in (None, "true", "false"):
            raise self.wrong(name, str(value), "true or false")
        return value == "true"

    def fraction(self, name: str, default: float) -> float:
        value = self.take(name)
        if value is None:
            return default
        if not re.fullmatch(r"[0-9]{0,6}(\.[0-9]{1,6})?", value) or not 0 <= float(value) < 1:
            raise self.wrong(name, value, "a number from 0 to below 1, such as 0.1")
        return float(value)

    def rules(self, direction: str, default: ScalingRules) -> ScalingRules:
        window = self.number(f"{direction}.stabilizationWindowSeconds", 0, 3_600, default.window_ms // 1000)
        name = f"{direction}.policies"
        value = self.take(name)
        policies = default.policies if value is None else tuple(self._policy(name, each) for each in value.split("+"))
        chosen: Any = self.take(f"{direction}.selectPolicy") or default.select
        if chosen not in ("Max", "Min", "Disabled"):
            raise self.wrong(f"{direction}.selectPolicy", chosen, "Max, Min or Disabled")
        return ScalingRules(1000 * window, policies, chosen)

    def _policy(self, name: str, text: str) -> ScalingPolicy:
        found = re.fullmatch(r"\s*(Pods|Percent):([0-9]{1,6}):([0-9]{1,4})\s*", text)
        if found is None or not int(found[2]) or not 1 <= int(found[3]) <= 1_800:
            raise self.wrong(name, text, "type:value:seconds with up to 1800 seconds, such as Pods:4:60+Percent:10:60")
        kind: Any = found[1]
        return ScalingPolicy(kind, int(found[2]), 1000 * int(found[3]))

    def end(self, kind: str) -> None:
        if self._given:
            name = next(iter(self._given))
            raise OptionError(
                f"policy {self._text!r}: {kind} has no parameter {name!r} here; it has {', '.join(self._known)}"
            )


def _behaviour(read: _Read) -> dict[str, Any]:
    return {
        "tolerance": read.fraction("tolerance", 0.1),
        "sync_ms": read.seconds("syncPeriod", 15, 1),
        "up": read.rules("scaleUp", _UP),
        "down": read.rules("scaleDown", _DOWN),
    }


def _keda(read: _Read, name: str) -> Policy:
    threshold = read.number("lagThreshold", 1, 10**12, None)
    least = read.number("minReplicaCount", 0, MOST_REPLICAS, 0)
    idle = read.take("idleReplicaCount")
    if idle is not None and (idle != "0" or least == 0):
        raise read.wrong("idleReplicaCount", idle, "0, the only value that KEDA supports, and a larger minReplicaCount")
    policy = Policy(
        name,
        "keda",
        threshold,
        least,
        read.number("maxReplicaCount", 1, MOST_REPLICAS, 100),
        activation=read.number("activationLagThreshold", 0, 10**12, 0),
        polling_ms=read.seconds("pollingInterval", 30, 1),
        cooldown_ms=read.seconds("cooldownPeriod", 300),
        allow_idle=read.boolean("allowIdleConsumers"),
        limit_to_lagging=read.boolean("limitToPartitionsWithLag"),
        even=read.boolean("ensureEvenDistributionOfPartitions"),
        to_zero=least == 0 or idle is not None,
        **_behaviour(read),
    )
    if policy.allow_idle and (policy.limit_to_lagging or policy.even):
        raise read.wrong(
            "allowIdleConsumers",
            "true",
            "false: KEDA allows no idle consumers with limitToPartitionsWithLag or ensureEvenDistributionOfPartitions",
        )
    return policy


def _hpa(read: _Read, name: str) -> Policy:
    return Policy(
        name,
        "hpa",
        read.number("averageValue", 1, 10**12, None),
        read.number("minReplicas", 1, MOST_REPLICAS, 1),
        read.number("maxReplicas", 1, MOST_REPLICAS, None),
        allow_idle=True,
        **_behaviour(read),
    )


def _fixed(read: _Read, name: str) -> Policy:
    count = read.number("replicas", 1, MOST_REPLICAS, None)
    return Policy(name, "fixed", 0, count, count)
