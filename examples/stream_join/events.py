"""What a member tells the story: one JSON object per line on its standard output."""

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Changed:
    """A member's share changed, and the state of what came is rebuilt.

    Attributes:
        member: its name.
        generation: the group's.
        continuous: whether it had been in the group, without a gap, since its last share.
        held: the numbers that its client assigned to it, as the client says.
        gained: topic-partitions that the diff listener said had come.
        given_up: topic-partitions that it said had gone.
        records: records that were read again for those that had come.
    """

    member: str
    generation: int
    continuous: bool
    held: list[int]
    gained: int
    given_up: int
    records: int


@dataclass(frozen=True)
class Read:
    """A member has committed: topic, partition, next offset. The results are out by then."""

    member: str
    positions: list[tuple[str, int, int]]


@dataclass(frozen=True)
class Failed:
    """A member saw an error that it cannot go on from, or ended without being asked to."""

    member: str
    error: str


Event = Changed | Read | Failed
_KINDS: dict[str, type[Event]] = {kind.__name__: kind for kind in (Changed, Read, Failed)}


def dump(event: Event) -> str:
    return json.dumps({"kind": type(event).__name__, **asdict(event)})


def load(line: str) -> Event:
    fields = json.loads(line)
    return _KINDS[fields.pop("kind")](**fields)
