"""The strategies of a replay, as the core takes them."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, TypeAlias

from kafka_assignors.assignors import Assignor, LagBasedAssignor, by_name
from kafka_assignors.errors import OptionError
from kafka_assignors.own import CustomAssignor, PlanOf
from kafka_assignors.strategies import OPTIONS, parse_strategy, split_strategies, strategy_text

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["OBSERVED", "STRATEGIES", "KernelOptions", "kernel_options"]

STRATEGIES = ("range", "roundrobin", "sticky", "cooperative-sticky", "sticky-join", "lag")
"""The strategies of a replay by default: each of them with its default options."""

OBSERVED = "observed"
"""The value of the column `strategy` in rows about the assignments that the group really had."""

KernelOptions: TypeAlias = tuple[str, tuple[str, str, str] | tuple[str, int | None, int | None] | tuple[bool, PlanOf]]


def kernel_options(strategies: str | Iterable[str | Assignor]) -> list[KernelOptions]:
    """Strategies as the core takes them, each with its text.

    Args:
        strategies: texts as for [`parse_strategy`][kafka_assignors.strategies.parse_strategy], with commas in one
            string or one by one, or assignors.

    Raises:
        OptionError: no strategy, an unknown one, one that is given twice, or an option that does not count in a replay.
    """
    if isinstance(strategies, str):
        strategies = split_strategies(strategies)
    found: dict[str, KernelOptions] = {}
    for each in strategies:
        assignor = each if isinstance(each, Assignor) else parse_strategy(each)
        _check_counting(assignor)
        name = strategy_text(assignor)
        if name in found:
            raise OptionError(f"strategy {name!r} is given twice; name each once")
        found[name] = (name, _options(assignor))
    if not found:
        raise OptionError(f"no strategy is given; give some of {', '.join(STRATEGIES)}")
    return list(found.values())


def _options(assignor: Assignor) -> tuple[str, str, str] | tuple[str, int | None, int | None] | tuple[bool, PlanOf]:
    if isinstance(assignor, LagBasedAssignor):
        return assignor._lag_options()
    if isinstance(assignor, CustomAssignor):
        return bool(assignor.cooperative), PlanOf(assignor)
    return assignor._options()


def _check_counting(assignor: Assignor) -> None:
    """Refuses a changed option without effect: the tables have no racks, and the lags come from a table."""
    if isinstance(assignor, CustomAssignor):
        assignor._checked()
        return
    default = by_name(assignor.name)
    counting = {*OPTIONS.get(assignor.name, ()), "protocol"} - {"racks"}
    for field in fields(default):  # type: ignore[arg-type]
        if field.name not in counting and getattr(assignor, field.name) != getattr(default, field.name):
            raise OptionError(
                f"strategy {assignor.name!r}: {field.name} does not count in a replay, whose racks and lags are those "
                "of its tables; leave it at its default"
            )
