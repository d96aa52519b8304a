"""The weighted assignor: partitions of different weight, members of different capacity.

>>> from kafka_assignors import Group, Member
>>> group = Group({"orders": 4}, [Member("a", ["orders"]), Member("b", ["orders"])])
>>> plan = WeightedAssignor(weights={"orders": [90, 40, 30, 20]}).assign(group)
>>> plan.assignment
{'a': {'orders': [0]}, 'b': {'orders': [1, 2, 3]}}
>>> plan.load_by_member, plan.worst_load, plan.load_bound
({'a': 90.0, 'b': 90.0}, 90.0, 90.0)
"""

from __future__ import annotations

import logging
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from kafka_assignors import _core
from kafka_assignors.assignor import known_generation, warn_of_record_size
from kafka_assignors.assignors import register
from kafka_assignors.errors import GroupTypeError, KafkaAssignorsError, OptionError
from kafka_assignors.group import Group, Plan, Topic, checked_topics
from kafka_assignors.options import check_choice, check_seconds
from kafka_assignors.own import CustomAssignor, described, pass_on
from kafka_assignors.printable import SENTENCE, listed, printable
from kafka_assignors.weights import check_weights, gathered

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kafka_assignors.assignor import EarlierPlans, JoinedMember
    from kafka_assignors.weights import WeightFunction, Weights, WeightSource

__all__ = ["WeightedAssignor", "decode_capacity", "encode_capacity"]

logger = logging.getLogger("kafka_assignors")

CAPACITIES = (0.001, 1_000_000.0)
"""The least and the largest capacity of a member."""
MOST_TOLERANCE = 10.0

_CAPACITY = struct.Struct(">hd")


def encode_capacity(capacity: float) -> bytes:
    """The data of a member of the weighted strategy: version 0 as INT16, and its capacity as FLOAT64.

    >>> encode_capacity(2.5).hex()
    '00004004000000000000'
    """
    return _CAPACITY.pack(0, capacity)


def decode_capacity(data: bytes) -> float:
    """The capacity in a member's data; a newer version begins with the same fields. Without data it is 1.

    Raises:
        OptionError: the bytes are no capacity, or one that is out of bounds.

    >>> decode_capacity(b""), decode_capacity(encode_capacity(2.5))
    (1.0, 2.5)
    """
    if not data:
        return 1.0
    if len(data) < _CAPACITY.size:
        raise OptionError(f"its data has {len(data)} bytes, and a capacity has {_CAPACITY.size}")
    version, capacity = _CAPACITY.unpack_from(data)
    if version < 0:
        raise OptionError(f"its data has version {version}")
    return _capacity(capacity)


def _capacity(capacity: object) -> float:
    least, most = CAPACITIES
    if isinstance(capacity, bool) or not isinstance(capacity, int | float) or not least <= capacity <= most:
        raise OptionError(f"capacity is {capacity!r}; give a number from {least:g} to {most:,.0f}")
    return float(capacity)


@dataclass(frozen=True)
class WeightedAssignor(CustomAssignor):
    """Balances weights instead of numbers of partitions, over members of different capacity.

    The objective, in this order: the load of the most loaded member relative to its capacity, the fewest moves, the
    evenness of the rest. A worst load of at most `tolerance` above a proven lower bound counts as the least: unless the
    worst load is higher, nothing moves for balance's sake. With equal weights and capacities the plan is that of
    `StickyAssignor`, exactly. Otherwise the problem is bin packing: the plan says how far it may be from the best one
    (`Plan.worst_load`, `Plan.load_bound`), and `Plan.verify()` repeats the proof of the bound. In fresh groups with
    equal capacities and subscriptions the worst load is at most 4/3 of the bound.

    Args:
        weights: topic to the weight of each partition by number, in any unit, or to one for all of them; or a
            `WeightSource` such as `RateSource`; or a function of topic names. None weighs all partitions equally. An
            unknown weight is the mean of the known ones of its topic, or of all topics. If all are 0, each is 1.
        capacity: the load that this member can take, relative to the others. It travels in the member's metadata; the
            other options count at the leader only.
        tolerance: how far the worst relative load may be above the bound, as a part of the bound, from 0 to 10.
        protocol: `"eager"`, on the wire `weighted`; or `"cooperative"`, on the wire `cooperative-weighted`.
        deadline: how many seconds a leader waits for a source of weights. If they are not there in time, or are no
            weights, all partitions weigh the same, and the report has the reason as a warning.

    Raises:
        OptionError: a value that cannot be used.
    """

    weights: Weights | WeightSource | WeightFunction | None = None
    capacity: float = 1.0
    tolerance: float = 0.1
    protocol: Literal["eager", "cooperative"] = "eager"
    deadline: float = 5.0

    def __post_init__(self) -> None:
        check_weights(self.weights)
        _capacity(self.capacity)
        if isinstance(self.tolerance, bool) or not isinstance(self.tolerance, int | float):
            raise OptionError(f"tolerance is {self.tolerance!r}; give a number from 0 to {MOST_TOLERANCE:g}")
        if not 0 <= self.tolerance <= MOST_TOLERANCE:
            raise OptionError(f"tolerance is {self.tolerance!r}; give a number from 0 to {MOST_TOLERANCE:g}")
        check_choice("protocol", self.protocol, ("eager", "cooperative"))
        check_seconds("deadline", self.deadline)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The wire name, which depends on the protocol."""
        return "cooperative-weighted" if self.cooperative else "weighted"

    @property
    def cooperative(self) -> bool:  # type: ignore[override]
        """Whether members keep their partitions during a rebalance."""
        return self.protocol == "cooperative"

    def member_data(self) -> bytes:
        """The member's capacity; nothing for a capacity of 1."""
        return b"" if self.capacity == 1 else encode_capacity(self.capacity)

    def plan(self, group: Group) -> Plan:
        """The plan with the final owners, as `CustomAssignor.plan`."""
        return self._planned(group, None, cooperative=False)

    def assign(self, group: Group, *, generation: int | None = None) -> Plan:
        """Plans a group. The capacities are those in the members' `data`: see `encode_capacity`.

        Args:
            group: the members and the topics.
            generation: as for every assignor.

        Raises:
            GroupError: weights that are negative or not finite; and as for every assignor.
            GroupTypeError: weights that are no numbers; and as for every assignor.
            OptionError: a member's data that is no capacity.
            WeightError: the source failed, was late, or returned values that are no weights.
        """
        if not isinstance(group, Group):
            raise GroupTypeError(f"group is of type {type(group).__name__}; give a Group")
        plan = self._planned(group, generation, cooperative=self.cooperative)
        warn_of_record_size(plan)
        return plan

    def _planned(self, group: Group, generation: int | None, *, cooperative: bool) -> Plan:
        capacities: dict[str, float] = {}
        for member in group.members:
            try:
                capacities[member.id] = decode_capacity(member.data)
            except OptionError as error:
                raise OptionError(f"data of member {printable(member.id)!r}: {error}") from None
        topics = dict(group.topics)
        weights = self._gathered(topics)
        opened = _core.open_group(cooperative, topics, group.members, known_generation(generation))
        _, core, unknown = opened.finish_weighted(weights, capacities, self.tolerance)
        return Plan(core, warnings=tuple(_gaps(unknown)))

    def _gathered(self, topics: Mapping[str, int | Topic]) -> dict[str, list[float | None]] | None:
        if self.weights is None or not topics:
            return None
        counts = {name: each.partitions if isinstance(each, Topic) else each for name, each in topics.items()}
        return gathered(self.weights, counts, self.deadline)

    def _plan_assignment(
        self,
        members: Iterable[JoinedMember],
        partitions: Mapping[str, int | Topic],
        generation: int | None,
        earlier: EarlierPlans | None = None,
        seconds: float | None = None,
    ) -> tuple[dict[str, bytes], Plan]:
        topics = partitions if isinstance(partitions, dict) else checked_topics(partitions)
        opened = _core.open_joined(self.cooperative, list(members), topics, known_generation(generation), earlier)
        capacities, warnings = _capacities(opened.data())
        try:
            weights = self._gathered(topics)
            assignments, core, unknown = opened.finish_weighted(weights, capacities, self.tolerance, seconds)
        # Not only this package's errors: the weights are objects of the user's, which may raise anything.
        except BaseException as error:
            pass_on(error)
            # If the error is not about the weights, the same error is raised again here.
            assignments, core, unknown = opened.finish_weighted(None, capacities, self.tolerance, seconds)
            reason = printable(error, SENTENCE) if isinstance(error, KafkaAssignorsError) else described(error)
            warnings.append(f"the weights are not known ({reason}); all partitions weigh the same")
        assert assignments is not None, "a group that was read from bytes is written as bytes"
        for each in warnings:
            if self._watch.first(each):
                logger.warning("%s: %s", self.name, each)
        return assignments, Plan(core, warnings=(*warnings, *_gaps(unknown)))

    def _loads(self, made: object) -> tuple[float, float] | None:
        return made._core.worst_load() if isinstance(made, Plan) else None

    def _checked(self) -> None:
        """Nothing to check: both names are this package's own."""

    def __getstate__(self) -> Any:
        return {name: value for name, value in self.__dict__.items() if name != "_seen"}


def _capacities(sent: list[tuple[str, bytes]]) -> tuple[dict[str, float], list[str]]:
    """The capacities of the members that sent one, and a warning of those that cannot be read and count as 1."""
    found, wrong = {}, []
    for member, data in sent:
        try:
            found[member] = decode_capacity(data)
        except OptionError as error:
            wrong.append(f"{printable(member)} ({error})")
    if not wrong:
        return found, []
    return found, [f"the capacity of {len(wrong)} members cannot be read and counts as 1: {listed(wrong)}"]


def _gaps(unknown: int) -> list[str]:
    if not unknown:
        return []
    return [
        f"the weights of {unknown} partitions are not known; each counts as the mean of its topic, or of all topics"
    ]


register(WeightedAssignor(), "WeightedAssignor")
register(WeightedAssignor(protocol="cooperative"))
