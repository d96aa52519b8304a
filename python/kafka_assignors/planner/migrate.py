"""The migration of groups to the protocol in which the broker assigns (KIP-848): obstacles, steps and effects."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from kafka_assignors.assignors import by_name
from kafka_assignors.errors import GroupError, OptionError
from kafka_assignors.planner import cost
from kafka_assignors.planner.change import Situation
from kafka_assignors.planner.clients_named import ClientHint, client_hints
from kafka_assignors.planner.kip848 import POLICY, Obstacle, broker_obstacles, obstacles, readiness
from kafka_assignors.planner.observed_group import ObservedGroup
from kafka_assignors.planner.switch import Switch, switch
from kafka_assignors.printable import listed
from kafka_assignors.report.names import natural
from kafka_assignors.server_side import BROKER, ServerSideRangeAssignor, UniformAssignor

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.cluster import Missing, NewProtocol, Snapshot
    from kafka_assignors.planner.cost import StrategyCost
    from kafka_assignors.server_side import ServerSideName

__all__ = ["WAYS", "EventCost", "MigratedGroup", "Migration", "Way", "migrate"]

Way: TypeAlias = Literal["moved", "moving", "online", "empty", "offline", "blocked", "unknown"]

WAYS: dict[Way, str] = {
    "moved": "the group has the new protocol",
    "moving": "the group has the new protocol, and members of the classic one",
    "online": "the group can be moved member by member, while it works",
    "empty": "the group has no members: the first one of the new protocol converts it",
    "offline": "the group can be moved only while it is empty",
    "blocked": "the group cannot be moved",
    "unknown": "the group rebalances, and brokers do not return the subscriptions meanwhile",
}
"""The ways of a migration, each with its meaning."""

# Members that are named in one sentence.
_NAMED = 8
# Strategies that keep the same number of every topic with one member, as the broker's `range` does.
_CO_LOCATING = ("range", "sticky-join", "cooperative-sticky-join")


@dataclass(frozen=True, slots=True)
class EventCost:
    """The cost of one kind of event, as the group is now and after it has moved to the new protocol.

    Attributes:
        event: the event in words.
        now: with the group's strategy; None if it is not one of this package, or if the group has no leader.
        then: with the broker's assignor.
    """

    event: str
    now: StrategyCost | None
    then: StrategyCost


@dataclass(frozen=True, slots=True)
class MigratedGroup:
    """The migration of one group.

    Attributes:
        group_id: the group.
        way: `moved`, `moving`, `online`, `empty`, `offline`, `blocked` or `unknown`; docs/kip-848.md explains them.
        state: Kafka's name of its state.
        strategy: the strategy, or the broker's assignor.
        members: how many it has.
        classic: how many of these use the classic protocol; None if the broker does not return it.
        assignor: the broker's assignor that it is to have.
        in_the_way: the obstacles, with their remedies.
        unknown: facts that cannot be read from outside, a sentence each.
        clients: hints about the client libraries of its members.
        order: the steps of the migration.
        back: the steps of the migration back.
        change: the effect of the move; None if it cannot be computed.
        events: the cost of later events; empty if there are several groups.
        notes: remarks about the figures.
    """

    group_id: str
    way: Way
    state: str
    strategy: str
    members: int
    classic: int | None
    assignor: str
    in_the_way: tuple[Obstacle, ...]
    unknown: tuple[str, ...]
    clients: tuple[ClientHint, ...]
    order: tuple[str, ...]
    back: tuple[str, ...]
    change: Switch | None
    events: tuple[EventCost, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Migration:
    """The migrations of groups.

    Attributes:
        cluster: the cluster's id; empty where it has none.
        taken_ms: the time of the reading, in milliseconds since 1970.
        broker: the release whose plans are simulated.
        groups: by id.
        missing: the parts of the cluster that could not be read.
    """

    cluster: str
    taken_ms: int
    broker: str
    groups: tuple[MigratedGroup, ...]
    missing: tuple[Missing, ...] = ()

    @property
    def wrong(self) -> bool:
        """Whether a group has an obstacle, or something could not be read."""
        return any(group.in_the_way for group in self.groups) or any(each.kind != "gone" for each in self.missing)

    @property
    def ways(self) -> dict[Way, int]:
        """The number of groups by way, in the order of `WAYS`; a way without a group is left out."""
        counts = Counter(group.way for group in self.groups)
        return {way: counts[way] for way in WAYS if counts[way]}


def migrate(
    snapshot: Snapshot,
    group_id: str | None = None,
    *,
    brokers: NewProtocol | None = None,
    assignor: ServerSideName | None = None,
    broker: str = BROKER,
    missing: tuple[Missing, ...] = (),
    progress: Callable[[int, int], object] | None = None,
) -> Migration:
    """The migration of one group, or of all groups of a snapshot.

    Args:
        snapshot: the groups.
        group_id: the group; None takes all. The cost of later events is computed for a single group only.
        brokers: the releases and settings of the brokers; None if they were not read.
        assignor: the broker's assignor; None takes `range` for a group with a strategy that co-locates, else `uniform`.
        broker: the release whose plans are simulated.
        missing: the parts of the cluster that could not be read.
        progress: called with the number of groups that are done, and of all.

    Raises:
        OptionError: there is no such group or assignor, or a release that is not known.
    """
    UniformAssignor(broker=broker)
    if assignor not in (None, "uniform", "range"):
        raise OptionError(f"--assignor is {assignor!r}; the broker has 'uniform', 'range'")
    chosen = [ObservedGroup(snapshot, group_id)] if group_id is not None else _all(snapshot)
    found = []
    for done, observed in enumerate(chosen, 1):
        found.append(_group(observed, brokers, assignor, broker, alone=len(chosen) == 1))
        if progress is not None:
            progress(done, len(chosen))
    return Migration(snapshot.cluster, snapshot.taken_ms, broker, tuple(found), missing)


def _all(snapshot: Snapshot) -> list[ObservedGroup]:
    return [ObservedGroup(snapshot, group_id) for group_id in sorted(snapshot.groups)]


def _group(
    observed: ObservedGroup, brokers: NewProtocol | None, wanted: ServerSideName | None, broker: str, *, alone: bool
) -> MigratedGroup:
    group, notes = observed.group, []
    chosen: ServerSideName = wanted or ("range" if group.assignor in _CO_LOCATING else "uniform")
    if observed.by_broker and wanted is None and group.assignor in ("uniform", "range"):
        chosen = "range" if group.assignor == "range" else "uniform"
    in_the_way = obstacles(observed)
    if brokers is not None and not observed.by_broker and not any(each.rule == "consumers-only" for each in in_the_way):
        in_the_way = [*broker_obstacles(brokers, observed, chosen), *in_the_way]
    way = _way(observed, in_the_way)
    classic: int | None = len(observed.members)
    if observed.by_broker:
        flags = [getattr(member, "classic", None) for member in observed.members]
        classic = None if None in flags else flags.count(True)
    change: Switch | None = None
    events: tuple[EventCost, ...] = ()
    if way in ("online", "offline", "moving"):
        try:
            change = switch(observed, chosen, broker)
            events = _events(observed, chosen, broker) if alone else ()
        except (GroupError, OptionError) as error:
            notes.append(f"what would change cannot be computed: {error}")
    if change is not None and not change.exact:
        notes.append(
            "the number of partitions that move is the broker's; which partitions they are depends on orders that no "
            "API returns"
        )
    return MigratedGroup(
        group_id=observed.group_id,
        way=way,
        state=group.state,
        strategy=group.assignor,
        members=len(observed.members),
        classic=classic,
        assignor=chosen,
        in_the_way=tuple(in_the_way),
        unknown=tuple(_unknown(observed, brokers, way)),
        clients=tuple(client_hints(observed.members) if way not in ("moved", "blocked") else ()),
        order=tuple(_order(observed, way, chosen)),
        back=tuple(_back(observed, brokers, way)),
        change=change,
        events=events,
        notes=tuple(notes),
    )


def _way(observed: ObservedGroup, in_the_way: list[Obstacle]) -> Way:
    state = readiness(observed).state
    if state in ("moved", "moving"):
        return "moved" if state == "moved" else "moving"
    if any(each.blocks == "always" for each in in_the_way):
        return "blocked"
    if state == "unknown":
        return "unknown"
    if not observed.members:
        return "empty"
    return "offline" if any(each.blocks == "online" for each in in_the_way) else "online"


def _unknown(observed: ObservedGroup, brokers: NewProtocol | None, way: Way) -> list[str]:
    if way in ("moved", "blocked"):
        return []
    found = []
    if brokers is None:
        found.append(
            f"what the brokers allow: their release, group.version, {POLICY}, group.consumer.assignors; a file does "
            "not have it, ask the cluster with --bootstrap-server"
        )
    elif brokers.unread:
        who = "the broker" if brokers.brokers == 1 else f"{len(brokers.unread)} of {brokers.brokers} brokers"
        reason = next(iter(brokers.unread.values()))
        found.append(
            f"the settings of {who}, {POLICY} among them: {reason}; the user needs DESCRIBE_CONFIGS on the cluster"
        )
    if observed.members:
        found.append("the release of each client library: no API returns it, and a client id is only a hint")
    least = _least_session(brokers)
    found += [
        "settings of clients that the new protocol refuses: partition.assignment.strategy, session.timeout.ms, "
        f"heartbeat.interval.ms; a session is {least} at least, set on the broker or for the group",
        "patterns: the broker matches them in the syntax of RE2, by the whole name; and code that calls assign() in a "
        "callback, or enforceRebalance()",
        "whether each member's user may DESCRIBE every topic that it names: else the broker refuses its heartbeats",
    ]
    return found


def _least_session(brokers: NewProtocol | None) -> str:
    timeouts = () if brokers is None else brokers.settings.get("group.consumer.min.session.timeout.ms", ())
    numbers = [int(each) for each in timeouts if each.isdigit()]
    return f"{max(numbers) / 1000:g} s" if numbers else "45 s"


def _order(observed: ObservedGroup, way: Way, assignor: ServerSideName) -> list[str]:
    vote = f" and group.remote.assignor={assignor}" if assignor == "range" else ""
    ask = f"`kafka-assignors migrate --group {observed.group_id}`"
    named = sorted(observed.members, key=lambda each: (each.instance_id is None, natural(observed.names[each.id])))
    names = [observed.names[each.id] for each in named]
    static = sum(each.instance_id is not None for each in named)
    keep_out = (
        f"set {POLICY}=disabled on the brokers if stray classic members are to stay out; that closes the way back, too"
    )
    if way == "moving":
        rest = [observed.names[each.id] for each in observed.members if getattr(each, "classic", None)]
        return [
            "restart the members of the classic protocol with group.protocol=consumer, one after the other, each when "
            f"the group is Stable again: {listed(rest, _NAMED)}",
            f"go on until {ask} says `moved`",
            keep_out,
        ]
    if way == "online":
        if static:
            first, *names = names
            begin = (
                f"restart {first} with group.protocol=consumer{vote} and its group.instance.id: it takes its place "
                "over, moves nothing, and its first heartbeat converts the group"
            )
        else:
            begin = (
                f"start one more member, with group.protocol=consumer{vote}, while all others stay: its first "
                "heartbeat converts the group"
            )
        steps = [begin, f"see that {ask} says `moving`"]
        if names:
            steps.append(
                "restart the others in the same way, one after the other, each when the group is Stable again: "
                + listed(names, _NAMED)
            )
        if static:
            steps.append("never run two new processes with one group.instance.id: the second one is refused")
        return [*steps, f"see that {ask} says `moved`: no member of the classic protocol is left", keep_out]
    if way == "offline":
        return [
            "clear away what is in the way, as said there, and ask again; or, while nobody reads:",
            f"stop all members, and wait until {ask} says `empty`",
            f"start them with group.protocol=consumer{vote}: commits stay",
        ]
    if way == "empty":
        return [f"start the members with group.protocol=consumer{vote}: the first one converts the group, commits stay"]
    return []


def _back(observed: ObservedGroup, brokers: NewProtocol | None, way: Way) -> list[str]:
    if way not in ("moved", "moving", "online"):
        return []
    policies = () if brokers is None else brokers.settings.get(POLICY, ())
    if any(policy.lower() not in ("bidirectional", "downgrade") for policy in policies):
        return [
            f"{POLICY} is {listed(policies)}: stop all members, and start them with group.protocol=classic; or set it "
            "to bidirectional on every broker first"
        ]
    return [
        "restart the members with group.protocol=classic and their old settings, one after the other",
        "before the last one of the new protocol stops, see that the group is Stable: a member that has not followed "
        "it loses its partitions, and reads again what it has not committed",
        "when the last member of the new protocol has left, the group is classic again, and rebalances",
    ]


def _events(observed: ObservedGroup, assignor: ServerSideName, broker: str) -> tuple[EventCost, ...]:
    situation = Situation(observed)
    server = UniformAssignor(broker=broker) if assignor == "uniform" else ServerSideRangeAssignor(broker=broker)
    asked: list[Assignor] = [server]
    # The cost of a user's own strategy is not computed: `by_name` refuses its name.
    with contextlib.suppress(OptionError):
        if observed.strategy_in_use is not None:
            asked = [by_name(observed.strategy_in_use), server]
    kinds = [("a member joins", cost.scaling(situation, 1))]
    if len(observed.members) > 1:
        kinds.append(("a member leaves", cost.scaling(situation, -1)))
    kinds.append(("a rolling restart", cost.rolling_restart(situation)))
    found = []
    for text, events in kinds:
        rows = cost.rebalance_cost(situation, events, asked, scenario=text).strategies
        found.append(EventCost(text, rows[0] if len(rows) > 1 else None, rows[-1]))
    return tuple(found)
