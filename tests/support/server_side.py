"""Random histories of groups that a broker assigns, and the plans of Kafka's own classes for them.

A history is a JSON object: `assignor`, and `events` in order. Each event has one of these keys, and `later` if it is
not to be planned at once:

| Key | Value | Beside it |
|---|---|---|
| `grow` | a topic, new or not | `id`, `partitions` |
| `delete` | a topic | |
| `join` | a member | `names` in the order of its request; `instance`, `expression` |
| `subscribe` | a member | `names`, `expression` |
| `leave` | a member | `returning` |
| `resolve` | an expression | `names`: the topics that it matches |
| `plan` | true | |

For each event there is a digest of the plan after it, or None if there was none. It covers the members in the order in
which the assignor saw them, and topics and partitions in the orders of the coordinator's maps.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_assignors import _core

from . import jars, jvm

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

History = dict[str, Any]
Plans = list["str | None"]
Written = dict[str, tuple[list[tuple[str, list[int]]], str]]

DATA = Path(__file__).resolve().parents[1] / "data"
SAMPLE = {broker: DATA / f"server-side-{broker}.jsonl" for broker in ("4.0.0", "4.3")}
"""The files with the plans of Kafka's classes, by release. Each line has a seed and its plans."""

_SAMPLED = {"4.0.0": ("4.0.0", 50), "4.3": ("4.3.1", 200)}
_EVENTS = 20
_TIMEOUT = 1800


class Draw:
    """Numbers from a seed, the same in every release of Python (SplitMix64)."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def bits(self) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) % 2**64
        mixed = self._state
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
        return mixed ^ mixed >> 31

    def below(self, bound: int) -> int:
        return self.bits() % bound

    def between(self, least: int, most: int) -> int:
        return least + self.below(most - least + 1)

    def one(self, values: Sequence[Any]) -> Any:
        return values[self.below(len(values))]

    def chance(self, percent: int) -> bool:
        return self.below(100) < percent

    def some(self, values: Sequence[Any], count: int) -> list[Any]:
        """`count` of the values, in a random order."""
        left = list(values)
        return [left.pop(self.below(len(left))) for _ in range(min(count, len(left)))]

    def uuid(self) -> str:
        data = b"".join(self.bits().to_bytes(8, "big") for _ in range(2))
        return base64.urlsafe_b64encode(data).decode().rstrip("=")


class _Writer:
    """Writes one history."""

    def __init__(self, seed: int) -> None:
        self.draw = draw = Draw(seed)
        self.events: list[dict[str, Any]] = []
        self.topics: dict[str, int] = {}
        self.ids: dict[str, str] = {}
        self.members: dict[str, dict[str, Any]] = {}
        self.named = 0
        self.style = draw.one(["uuid", "uuid", "client", "short"])
        self.subscriptions = draw.one(["equal", "equal", "unequal", "unequal", "expression", "mixed"])
        size = draw.below(100)
        small, medium = size < 70, size < 90
        self.most_members = 12 if small else 50 if medium else 200
        self.most_partitions = 60 if small else 400 if medium else 2000
        for _ in range(draw.between(1, 6 if small else 12)):
            self.grow(new=True)
        self.common = draw.some(list(self.topics), draw.between(1, len(self.topics)))
        self.start()
        for _ in range(_EVENTS):
            kinds = ["join", "join", "leave", "leave", "replace", "subscribe", "grow", "new", "delete", "static"]
            getattr(self, f"event_{draw.one(kinds)}")()

    def add(self, **event: Any) -> None:
        self.events.append(event)

    def start(self) -> None:
        """Adds the first members: all before the first plan, or each with a plan of its own."""
        together = self.draw.chance(50)
        for _ in range(self.draw.between(1, self.most_members * 3 // 4)):
            self.join(later=together)
        if together:
            self.add(plan=True)

    def grow(self, *, new: bool) -> None:
        left = self.most_partitions - sum(self.topics.values())
        more = self.draw.between(1, max(1, self.most_partitions // self.draw.between(2, 8)))
        if left <= 0:
            return
        more = min(more, left)
        if new:
            self.named += 1
            name = f"{self.draw.one(['orders', 'audit.', 'x'])}{self.named}"
            self.ids[name] = self.draw.uuid()
            self.topics[name] = more
        else:
            name = self.draw.one(list(self.topics))
            self.topics[name] += more
        self.add(grow=name, id=self.ids[name], partitions=self.topics[name])
        self.resolve_all()

    def asked(self) -> dict[str, Any]:
        names = list(self.topics)
        kind = self.subscriptions
        if kind == "mixed":
            kind = self.draw.one(["equal", "unequal", "expression", "both"])
        if kind == "equal":
            return {"names": self.draw.some(self.common, len(self.common)), "expression": None}
        few = self.draw.some([*names, "absent"], self.draw.between(1, max(1, len(names))))
        if kind == "unequal":
            return {"names": few, "expression": None}
        expression = self.draw.one(["orders.*", ".*"] if self.subscriptions == "mixed" else ["[a-o].*"])
        return {"names": few if kind == "both" else [], "expression": expression}

    def resolve(self, expression: str | None) -> None:
        if expression is not None:
            names = [name for name in self.topics if re.fullmatch(expression, name)]
            self.add(resolve=expression, names=names)

    def resolve_all(self) -> None:
        for expression in sorted({member["expression"] or "" for member in self.members.values()} - {""}):
            self.resolve(expression)

    def join(self, *, later: bool = False, instance: str | None = None, asked: dict[str, Any] | None = None) -> None:
        self.named += 1
        ids = {
            "uuid": self.draw.uuid(),
            "client": f"consumer-billing-{self.named}-{self.draw.uuid()}",
            "short": f"m{self.named}",
        }
        member = ids[self.style]
        if instance is None and self.draw.chance(25):
            instance = f"i{self.named}"
        asked = self.asked() if asked is None else asked
        self.members[member] = {"instance": instance, **asked}
        self.add(join=member, instance=instance, **asked, **({"later": True} if later else {}))
        self.resolve(asked["expression"])

    def leave(self, *, later: bool = False) -> None:
        if self.members:
            member = self.draw.one(list(self.members))
            del self.members[member]
            self.add(leave=member, **({"later": True} if later else {}))

    def event_join(self) -> None:
        if len(self.members) < self.most_members:
            self.join(later=self.draw.chance(10))

    def event_leave(self) -> None:
        self.leave(later=self.draw.chance(10))

    def event_replace(self) -> None:
        """A tenth of the members goes, and others come."""
        for _ in range(max(1, len(self.members) // 10)):
            together = self.draw.chance(50)
            self.leave(later=together)
            self.join(later=together)
        self.add(plan=True)

    def event_subscribe(self) -> None:
        if not self.members:
            return
        if self.subscriptions == "equal":
            self.common = self.draw.some(list(self.topics), self.draw.between(1, len(self.topics)))
        for member in self.draw.some(list(self.members), self.draw.between(1, max(1, len(self.members) // 3))):
            asked = self.asked()
            self.members[member].update(asked)
            self.add(subscribe=member, **asked)
            self.resolve(asked["expression"])

    def event_grow(self) -> None:
        if self.topics:
            self.grow(new=False)

    def event_new(self) -> None:
        self.grow(new=True)

    def event_delete(self) -> None:
        if len(self.topics) > 1:
            name = self.draw.one(list(self.topics))
            del self.topics[name]
            self.add(delete=name)
            self.resolve_all()
            self.common = [one for one in self.common if one != name] or [next(iter(self.topics))]
            if self.draw.chance(30):
                # The topic is created again, with another id.
                self.ids[name] = self.draw.uuid()
                self.topics[name] = self.draw.between(1, 8)
                self.add(grow=name, id=self.ids[name], partitions=self.topics[name])
                self.resolve_all()

    def event_static(self) -> None:
        """A static member leaves and returns under another id, with the same topics or with others."""
        static = [member for member, known in self.members.items() if known["instance"] is not None]
        if static:
            member = self.draw.one(static)
            known = self.members.pop(member)
            self.add(leave=member, returning=True)
            if self.draw.chance(30):
                self.add(plan=True)
            same = {"names": known["names"], "expression": known["expression"]}
            self.join(instance=known["instance"], asked=same if self.draw.chance(60) else None)


def history(seed: int) -> History:
    """The history with this seed."""
    writer = _Writer(seed)
    return {"assignor": "range" if writer.draw.chance(25) else "uniform", "events": writer.events}


def planned(history: History, broker: str, *, whole: bool = False) -> Plans:
    """Our plans for a history; digests, or with `whole` their texts."""
    group = _core.ServerSideGroup(history["assignor"], broker)
    plans: Plans = []
    written: Written = {}
    for event in history["events"]:
        text = _text(group, written) if _apply(group, event) else None
        plans.append(text if whole or text is None else hashlib.sha256(text.encode()).hexdigest()[:12])
    return plans


def _apply(group: _core.ServerSideGroup, event: dict[str, Any]) -> bool:
    later = "later" in event
    match event:
        case {"grow": name}:
            return group.grow(name, event["partitions"], event["id"], later)
        case {"delete": name}:
            return group.delete(name, later)
        case {"join": member}:
            return group.join(member, event["instance"], event["names"], event["expression"], later)
        case {"subscribe": member}:
            return group.subscribe(member, event["names"], event["expression"], later)
        case {"leave": member}:
            return group.leave(member, "returning" in event, later)
        case {"resolve": expression}:
            return group.resolve(expression, event["names"], later)
        case _:
            return group.plan()


def _text(group: _core.ServerSideGroup, written: Written) -> str:
    """The plan. `written` keeps each member's line of the previous plan, since most plans change few members."""
    ids = {name: topic_id for name, (_, topic_id) in group.topics().items()}
    lines = []
    for member, topics in group.target().items():
        held = [(ids[name], numbers) for name, numbers in topics.items()]
        before, line = written.get(member, (None, ""))
        if held != before:
            lists = [f"{topic}:{','.join(map(str, numbers))};" for topic, numbers in held]
            line = f"{member}={''.join(lists)}\n"
            written[member] = held, line
        lines.append(line)
    return "".join(lines)


def classes(version: str) -> Path:
    """The compiled program that plans with the classes of `version`."""
    return jars.program_classes(version, "ServerSide")


def planned_by_kafka(histories: Iterable[History], version: str, *, whole: bool = False) -> list[Plans]:
    """The plans of Kafka's own classes, in one JVM."""
    command = [
        jars.tool("java"),
        *jvm.kafka_options(version),
        "-cp",
        jars.classpath(jars.libs(version), classes(version)),
        "ServerSide",
        *(["whole"] if whole else []),
    ]
    done = subprocess.run(
        command,
        input="".join(json.dumps(history) + "\n" for history in histories),
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"ServerSide ended with {done.returncode}:\n{done.stderr[-8000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def read_sample(broker: str) -> Iterator[tuple[int, Plans]]:
    """The seeds of the sample of a release, each with its plans."""
    for line in SAMPLE[broker].read_text().splitlines():
        seed, plans = json.loads(line)
        yield seed, plans


def write_sample(broker: str) -> None:
    """Plans with Kafka's classes, and writes the sample of a release."""
    version, count = _SAMPLED[broker]
    answers = planned_by_kafka(map(history, range(count)), version)
    lines = (json.dumps([seed, plans], separators=(",", ":")) for seed, plans in enumerate(answers))
    SAMPLE[broker].write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    for release in SAMPLE:
        write_sample(release)
