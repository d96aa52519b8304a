"""The values of `partition_assignment_strategy` in our consumers for kafka-python and aiokafka.

| Value | Read as |
| --- | --- |
| text: `"sticky"`, `"cooperative-sticky,range"`, `"lag(scope=group)"` | the strategies of that name |
| an assignor of `kafka_assignors` | itself |
| an assignor of the client's own, as a class or an instance | ours by the same `name`, if both write the same bytes |
| one of our plug-ins, as a class, an instance or a factory | the strategy that it plugs in, with its options |
| a list or tuple of these | several in order of preference, for rolling upgrades |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from kafka_assignors.assignors import Assignor
from kafka_assignors.clients.common.adapter import ClientAdapter, Unplugged
from kafka_assignors.errors import OptionError
from kafka_assignors.member.strategies import strategies_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kafka_assignors.member.config import OnBrokerAssignor
    from kafka_assignors.member.rebalance_report import RebalanceReport

__all__ = ["ChosenStrategies", "OwnAssignors", "read_strategies"]

T = TypeVar("T")

SETTING = "partition_assignment_strategy"


@dataclass(frozen=True, slots=True)
class OwnAssignors:
    """The assignors that a client brings.

    Attributes:
        client: its name, for errors.
        package: the name of its package, in which their classes are.
        default: the strategies of a consumer that chooses none, as text.
        same: the names under which this package writes the same bytes.
        refused: other names, each with the reason and a remedy.
    """

    client: str
    package: str
    default: str
    same: frozenset[str]
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChosenStrategies:
    """A value of the setting.

    Attributes:
        assignors: in order of preference; at least one, each name once.
        rack: the rack that a plug-in was given, or None.
        on_rebalance: the callback that a plug-in was given, or None.
        on_broker_assignor: `migrate` if a plug-in was given that, or None.
    """

    assignors: tuple[Assignor, ...]
    rack: str | None = None
    on_rebalance: Callable[[RebalanceReport], object] | None = None
    on_broker_assignor: OnBrokerAssignor | None = None


def read_strategies(value: Any, own: OwnAssignors) -> ChosenStrategies:
    """Reads the setting.

    Args:
        value: as the user gave it; None for the client's default.
        own: the client's assignors.

    Raises:
        OptionError: a strategy is unknown, comes twice, or writes other bytes than this package does; or two plug-ins
            were given different racks or callbacks.
    """
    given = list(value) if isinstance(value, list | tuple) else [value]
    if value is not None and not given:
        raise OptionError(f"{SETTING} is empty; give at least one strategy, such as 'sticky'")
    parts: list[Any] = []
    unplugged: list[Unplugged] = []
    for each in given:
        made = _made(each)
        if isinstance(made, ClientAdapter):
            found = _of_plug_in(made)
            unplugged.append(found)
            parts.append(found.assignor)
        elif made is None or isinstance(made, str | Assignor):
            parts.append(made)
        else:
            parts.append(_name_of(made, own))
    assignors = strategies_of(None if value is None else parts, own.default, _unknown, SETTING)
    return ChosenStrategies(
        assignors,
        _only([each.rack for each in unplugged], "racks", "client_rack"),
        _only([each.on_rebalance for each in unplugged], "callbacks on_rebalance", "on_rebalance"),
        "migrate" if any(each.on_broker_assignor == "migrate" for each in unplugged) else None,
    )


def _unknown(why: str) -> OptionError:
    return OptionError(f"{SETTING}: {why}")


def _made(part: Any) -> Any:
    """The result of a call, if the part is a class of ours or a factory without a `name`; else the part itself."""
    if isinstance(part, type):
        return part() if issubclass(part, ClientAdapter | Assignor) else part
    if callable(part) and not hasattr(part, "name"):
        return part()
    return part


def _of_plug_in(plug_in: ClientAdapter) -> Unplugged:
    kind = type(plug_in)
    if not kind.__module__.startswith("kafka_assignors."):
        raise OptionError(
            f"{SETTING} has {kind.__module__}.{kind.__qualname__}, a subclass of a plug-in, whose methods no client "
            f"would call here; give an assignor of kafka_assignors instead"
        )
    return plug_in._unplugged()


def _name_of(part: Any, own: OwnAssignors) -> str:
    """The name of an assignor of the client's own."""
    kind = part if isinstance(part, type) else type(part)
    name = getattr(part, "name", None)
    where = f"{kind.__module__}.{kind.__qualname__}"
    if not isinstance(name, str):
        raise OptionError(f"{SETTING} has a {where}; give names or assignors of kafka_assignors")
    if kind.__module__.partition(".")[0] == own.package:
        if name in own.same:
            return name
        if name in own.refused:
            raise OptionError(f"{SETTING} has {own.client}'s {where}: {own.refused[name]}")
    raise OptionError(
        f"{SETTING} has {where} ({name!r}), which only {own.client}'s own consumer can call; give names or assignors "
        f"of kafka_assignors, or use it with {own.client}'s consumer"
    )


def _only(given: list[T | None], what: str, setting: str) -> T | None:
    """The one value that several plug-ins were given."""
    values = [each for each in given if each is not None]
    if any(each != values[0] for each in values):
        raise OptionError(f"{SETTING} has plug-ins with different {what}; give {setting} to the consumer instead")
    return values[0] if values else None
