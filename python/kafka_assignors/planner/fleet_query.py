"""Which groups of a fleet are shown, and in which order: conditions and sort keys as text."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafka_assignors.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kafka_assignors.planner.fleet import FleetGroup

__all__ = ["FIELDS", "Condition", "chosen", "parse_condition", "sorted_by"]

FIELDS: dict[str, Callable[[FleetGroup], Any]] = {
    "group": lambda group: group.group_id,
    "verdict": lambda group: group.verdict,
    "state": lambda group: group.state,
    "protocol": lambda group: group.protocol,
    "strategy": lambda group: group.strategy,
    "kip848": lambda group: group.kip848,
    "rules": lambda group: " ".join(dict.fromkeys(finding.rule for finding in group.warnings)),
    "warnings": lambda group: len(group.warnings),
    "members": lambda group: group.members,
    "idle": lambda group: group.idle,
    "topics": lambda group: group.topics,
    "partitions": lambda group: group.partitions,
    "unowned": lambda group: group.unowned,
    "spread": lambda group: None if group.most is None or group.fewest is None else group.most - group.fewest,
    "balance_score": lambda group: group.balance_score,
    "lag": lambda group: group.lag,
    "lag_seconds": lambda group: group.lag_seconds,
    "growth": lambda group: group.growth,
    "arrivals": lambda group: group.arrivals,
    "commits": lambda group: group.commits,
    "uncommitted": lambda group: group.uncommitted,
    "stuck": lambda group: group.stuck,
    "rebalances": lambda group: group.rebalances,
    "moves": lambda group: group.moves,
    "least_moves": lambda group: group.least_moves,
    "saved": lambda group: (
        None if group.moves is None or group.least_moves is None else group.moves - group.least_moves
    ),
}
"""The values of a group that can be compared and sorted by. `saved` is the difference of `moves` and `least_moves`."""

_TEXTS = frozenset(("group", "verdict", "state", "protocol", "strategy", "kip848", "rules"))
_COMPARED = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}
_GRAMMAR = re.compile(r"\s*(?P<field>\w+)\s*(?P<compared><=|>=|!=|!~|<|>|=|~)\s*(?P<value>.*?)\s*", re.DOTALL)
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "s": 1, "min": 60, "h": 3_600, "d": 86_400}
_NUMBER = re.compile(r"(?P<number>-?\d{1,20}(?:\.\d{1,6})?)\s*(?P<unit>k|M|G|s|min|h|d|)")


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a group.

    Attributes:
        field: one of `FIELDS`.
        compared: `=`, `!=`, `<`, `<=`, `>`, `>=`, or for texts `~` and `!~`, which search a regular expression.
        value: the text, number or compiled expression to compare with.
    """

    field: str
    compared: str
    value: Any

    def holds(self, group: FleetGroup) -> bool:
        """Whether the group meets the condition. An unknown value meets only `!=`."""
        found = FIELDS[self.field](group)
        if self.compared in ("~", "!~"):
            return (self.value.search(found) is not None) == (self.compared == "~")
        if found is None:
            return self.compared == "!="
        return bool(_COMPARED[self.compared](found, self.value))


def parse_condition(text: str) -> Condition:
    """Reads a condition, such as `lag>10k`, `verdict=stuck`, `lag_seconds>=5min` or `group~^billing`.

    Args:
        text: a field, a comparison and a value. A number may have a unit: `k`, `M`, `G`, `s`, `min`, `h`, `d`.

    Raises:
        OptionError: it is no condition, no group has this field, or the field cannot be compared like this.

    >>> parse_condition("lag > 10k")
    Condition(field='lag', compared='>', value=10000)
    """
    found = _GRAMMAR.fullmatch(text)
    if found is None:
        raise OptionError(f"--filter is {text!r}; give a field, a comparison and a value, such as 'lag>10k'")
    field = _field("--filter", found["field"])
    compared, value = found["compared"], found["value"]
    if field not in _TEXTS:
        if compared in ("~", "!~"):
            raise OptionError(f"--filter is {text!r}; {field} is a number, which has no regular expression")
        number = _NUMBER.fullmatch(value)
        if number is None:
            raise OptionError(f"--filter is {text!r}; {value!r} is not a number; give one such as 500, 10k or 5min")
        exact = float(number["number"]) * _UNITS[number["unit"]]
        return Condition(field, compared, int(exact) if exact == int(exact) else exact)
    if compared in ("~", "!~"):
        try:
            return Condition(field, compared, re.compile(value))
        except re.error as error:
            raise OptionError(f"--filter is {text!r}; {value!r} is no regular expression: {error}") from error
    if compared not in ("=", "!="):
        raise OptionError(f"--filter is {text!r}; {field} is a text: compare it with =, !=, ~ or !~")
    return Condition(field, compared, value)


def chosen(groups: Iterable[FleetGroup], conditions: Sequence[Condition]) -> list[FleetGroup]:
    """The groups that fit all conditions, in their order."""
    return [group for group in groups if all(condition.holds(group) for condition in conditions)]


def sorted_by(groups: Iterable[FleetGroup], field: str, *, reverse: bool = False) -> list[FleetGroup]:
    """The groups by one value: the largest number or the first text first, unknown values last.

    Args:
        groups: in the order that groups with equal values keep.
        field: one of `FIELDS`.
        reverse: the smallest number or the last text first; unknown values stay last.

    Raises:
        OptionError: no group has this field.
    """
    value = FIELDS[_field("--sort", field)]
    every = list(groups)
    known = [group for group in every if value(group) is not None]
    known.sort(key=value, reverse=(field not in _TEXTS) != reverse)
    return known + [group for group in every if value(group) is None]


def _field(option: str, name: str) -> str:
    if name not in FIELDS:
        raise OptionError(f"{option} names {name!r}, which no group has; give one of {', '.join(FIELDS)}")
    return name
