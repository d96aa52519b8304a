from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias, final

from kafka_assignors.group import Member, Topic

# Member id, group.instance.id if there is one, and ConsumerProtocolSubscription as in JoinGroup.
_JoinedMember: TypeAlias = tuple[str, bytes] | tuple[str, str | None, bytes]

__version__: str
DEFAULT_RECORD_LIMIT: int
build_profile: Literal["debug", "release"]

@final
class Plan:
    def __len__(self) -> int: ...
    def assignment(self) -> dict[str, dict[str, list[int]]]: ...
    def share_of(self, member_id: str) -> dict[str, list[int]] | None: ...
    @property
    def member_ids(self) -> list[str]: ...
    @property
    def balance_score(self) -> int: ...
    def kept_and_moved(self) -> tuple[int, int]: ...
    def moves(self) -> list[tuple[str, int, str | None, str | None]]: ...
    def unassigned(self) -> list[tuple[str, int, str | None, str | None]]: ...
    @property
    def faults(self) -> list[tuple[str, str]]: ...
    @property
    def record_bytes(self) -> int: ...
    @property
    def seconds(self) -> float: ...

def assign(
    name: str,
    mode: str,
    racks: str,
    topics: dict[str, int | Topic],
    members: Iterable[Member],
    generation: int | None,
) -> Plan: ...
def perform_assignment(
    name: str,
    mode: str,
    racks: str,
    members: Iterable[_JoinedMember],
    partitions: dict[str, int | Topic],
    generation: int | None,
) -> tuple[dict[str, bytes], Plan]: ...
def codec_floor(
    name: str,
    mode: str,
    racks: str,
    members: Iterable[_JoinedMember],
    partitions: dict[str, int | Topic],
    generation: int | None,
) -> dict[str, bytes]: ...
def balance_score(loads: Sequence[int]) -> int: ...
