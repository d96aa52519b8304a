"""The events of a consumer process: one JSON object per line on its standard output."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

Owned = dict[str, list[int]]


@dataclass(frozen=True)
class Assigned:
    """A member finished a rebalance."""

    member: str
    generation: int
    topics: list[str]
    owned: Owned
    gained: Owned
    lost: Owned


@dataclass(frozen=True)
class Planned:
    """The leader planned a generation."""

    member: str
    generation: int
    assignment: dict[str, Owned]
    moved: int
    least_moves: int | None
    balance_score: int
    milliseconds: float


@dataclass(frozen=True)
class Read:
    """A member handled messages: topic, partition, first offset, count. Written before the offsets are committed."""

    member: str
    generation: int
    ranges: list[tuple[str, int, int, int]]


@dataclass(frozen=True)
class Failed:
    """A consumer process failed with this error, or ended without the command `stop`."""

    member: str
    error: str


Event = Assigned | Planned | Read | Failed
_KINDS: dict[str, type[Event]] = {kind.__name__: kind for kind in (Assigned, Planned, Read, Failed)}


def dump(event: Event) -> str:
    return json.dumps({"kind": type(event).__name__, **asdict(event)})


def load(line: str) -> Event:
    fields = json.loads(line)
    return _KINDS[fields.pop("kind")](**fields)


def lists(partitions: Mapping[str, Iterable[int]]) -> Owned:
    return {topic: sorted(numbers) for topic, numbers in sorted(partitions.items()) if numbers}


def name_of(member_id: str) -> str:
    """The name of a member. A member id is the client id, a hyphen and a UUID; the demo's client ids are the names."""
    return member_id.partition("-")[0]
