"""The events of a member: one JSON object per line on its standard output."""

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Changed:
    """A member's assignment changed, and the state of the new partitions is rebuilt.

    Attributes:
        member: its name.
        generation: the group's.
        continuous: whether it has been in the group without a gap since its last assignment.
        held: the partition numbers in the assignment of its client.
        gained: topic-partitions that the diff listener reported as gained.
        given_up: topic-partitions that the diff listener reported as lost.
        records: the number of records read again for the gained ones.
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
    """A member has committed: topic, partition, next offset. Its results were written before."""

    member: str
    positions: list[tuple[str, int, int]]


@dataclass(frozen=True)
class Failed:
    """A member failed with this error, or ended without the command to stop."""

    member: str
    error: str


Event = Changed | Read | Failed
_KINDS: dict[str, type[Event]] = {kind.__name__: kind for kind in (Changed, Read, Failed)}


def dump(event: Event) -> str:
    return json.dumps({"kind": type(event).__name__, **asdict(event)})


def load(line: str) -> Event:
    fields = json.loads(line)
    return _KINDS[fields.pop("kind")](**fields)
