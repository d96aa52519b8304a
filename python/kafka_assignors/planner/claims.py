"""The partitions that members claimed in JoinGroup, and conflicts: partitions with several claims."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_assignors.cluster import ClassicMember
from kafka_assignors.errors import OptionError, UserDataError
from kafka_assignors.userdata import (
    NO_GENERATION,
    CooperativeStickyUserData,
    CustomUserData,
    StickyUserData,
    StreamJoinUserData,
    Subscription,
)
from kafka_assignors.weighted import decode_capacity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kafka_assignors.cluster import GroupMember

__all__ = ["WEIGHTED", "Claim", "Conflict", "claim_of", "claims_of", "conflicts_of", "data_of"]

STICKY, COOPERATIVE = ("sticky", "lag"), ("cooperative-sticky",)
WEIGHTED = ("weighted", "cooperative-weighted")
JOINS = ("sticky-join", "cooperative-sticky-join")


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim of one member.

    Attributes:
        member: its id.
        partitions: topic to the claimed numbers.
        generation: the generation of the claim; for stream joins the epoch. None if it has none.
        source: the field of the subscription that holds it: `user data` or `owned partitions`.
    """

    member: str
    partitions: Mapping[str, Sequence[int]]
    generation: int | None
    source: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """A partition that several members claimed.

    Attributes:
        topic: its topic.
        partition: its number.
        claims: the members and their generations, newest first.
        winner: the member whose claim counts; None if the newest generations are equal, so that no claim counts.
    """

    topic: str
    partition: int
    claims: tuple[tuple[str, int | None], ...]
    winner: str | None


def claim_of(member_id: str, subscription: Subscription, assignor: str) -> Claim:
    """The claim in a subscription, as the strategy reads it (reference: KIP-54, KIP-341, KIP-429, KIP-792, KIP-315).

    >>> claim_of("c0", Subscription(["t"], StickyUserData({"t": [1]}, 5).encode()), "sticky")
    Claim(member='c0', partitions={'t': (1,)}, generation=5, source='user data')
    """
    if assignor in STICKY:
        sticky = StickyUserData.decode(subscription.user_data)
        return Claim(member_id, sticky.assignments, _known(sticky.generation), "user data")
    if assignor == "weighted":
        custom = CustomUserData.decode(subscription.user_data)
        return Claim(member_id, custom.assignments, _known(custom.generation), "user data")
    if assignor in JOINS:
        numbers = StreamJoinUserData.decode(subscription.user_data)
        partitions = dict.fromkeys(subscription.topics, tuple(numbers.partitions)) if numbers.partitions else {}
        return Claim(member_id, partitions, numbers.epoch if subscription.user_data else None, "user data")
    generation = _known(subscription.generation)
    if generation is None and assignor in COOPERATIVE:
        generation = _known(CooperativeStickyUserData.decode(subscription.user_data).generation)
    return Claim(member_id, subscription.owned, generation, "owned partitions")


def data_of(member: GroupMember, assignor: str) -> bytes | None:
    """The data that a member sent to the assignor of this name: a user's own one, or a weighted strategy.

    None if there is no data that can be read: the member is not of the classic protocol, or its user data has another
    layout.
    """
    if not isinstance(member, ClassicMember) or not member.subscription:
        return None
    try:
        user_data = Subscription.decode(member.subscription).user_data
        if user_data is None:
            return None
        data = CustomUserData.decode(user_data, strict=True).data
        if assignor in WEIGHTED:
            decode_capacity(data)
    except (UserDataError, OptionError):
        # A leader of a weighted strategy counts it as a member without data.
        return b"" if assignor in WEIGHTED else None
    return data


def claims_of(members: Iterable[GroupMember], assignor: str) -> list[Claim]:
    """The claims of all members with a readable subscription; members of a KIP-848 group make none."""
    claims = []
    for member in members:
        if not isinstance(member, ClassicMember) or not member.subscription:
            continue
        try:
            claims.append(claim_of(member.id, Subscription.decode(member.subscription), assignor))
        except UserDataError:
            continue
    return claims


def conflicts_of(claims: Iterable[Claim]) -> list[Conflict]:
    """The partitions that several members claimed: the newest generation counts, and of equal newest ones none."""
    found: dict[tuple[str, int], list[tuple[str, int | None]]] = {}
    for claim in claims:
        for topic, numbers in claim.partitions.items():
            for number in numbers:
                found.setdefault((topic, number), []).append((claim.member, claim.generation))
    conflicts = []
    for (topic, number), claimed in sorted(found.items()):
        if len(claimed) > 1:
            order = sorted(claimed, key=lambda each: (-_rank(each[1]), each[0]))
            winner = order[0][0] if _rank(order[0][1]) > _rank(order[1][1]) else None
            conflicts.append(Conflict(topic, number, tuple(order), winner))
    return conflicts


def _known(generation: int) -> int | None:
    return None if generation == NO_GENERATION else generation


def _rank(generation: int | None) -> int:
    return NO_GENERATION if generation is None else generation
