"""The partitions that members claimed in JoinGroup, and conflicts: partitions with several claims."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kafka_assignors import _core
from kafka_assignors.cluster import ClassicMember
from kafka_assignors.errors import OptionError, UserDataError
from kafka_assignors.group import Member
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
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from kafka_assignors.cluster import GroupMember
    from kafka_assignors.planner.observed_group import ObservedGroup, Partition

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
        winner: the member whose claim counts; None if no claim counts, such as two of the same newest generation.
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


def conflicts_of(observed: ObservedGroup) -> list[Conflict]:
    """The partitions that several members claimed, each with the claim that counts by the core's settlement."""
    assignor = observed.group.assignor
    claims = claims_of(observed.members, assignor)
    claimed: dict[Partition, dict[str, int | None]] = {}
    for claim in claims:
        for topic, numbers in claim.partitions.items():
            for number in numbers:
                claimed.setdefault((topic, number), {})[claim.member] = claim.generation
    contested = {partition: of for partition, of in sorted(claimed.items()) if len(of) > 1}
    if not contested:
        return []
    settled = (_settled_by_number if assignor in JOINS else _settled)(observed, claims, contested)
    return [
        Conflict(*partition, tuple(sorted(of.items(), key=_newest_first)), settled.get(partition))
        for partition, of in contested.items()
    ]


def _settled(
    observed: ObservedGroup, claims: Iterable[Claim], contested: Collection[Partition]
) -> dict[Partition, str]:
    """The members whose claims of contested partitions count."""
    places: dict[str, list[int]] = {}
    for topic, number in contested:
        if topic in observed.snapshot.topics and 0 <= number < observed.snapshot.topics[topic].partitions:
            places.setdefault(topic, []).append(number)
    return _won(places, {claim.member: (observed.subscriptions[claim.member], claim) for claim in claims})


def _settled_by_number(
    observed: ObservedGroup, claims: Iterable[Claim], contested: Collection[Partition]
) -> dict[Partition, str]:
    """The same for a stream join: a member that keeps a number keeps it of each topic that it subscribes to.

    So the core settles the numbers of one topic in place of all. Those that the smallest topic lacks do not count.
    """
    topics = observed.snapshot.topics
    subscribed = {member: [each for each in of if each in topics] for member, of in observed.subscriptions.items()}
    eligible = min((topics[each].partitions for of in subscribed.values() for each in of), default=0)
    places = {"": sorted({number for _, number in contested if 0 <= number < eligible})}
    members: dict[str, tuple[list[str], Claim]] = {}
    for claim in claims:
        numbers = next(iter(claim.partitions.values()), ())
        members[claim.member] = ([""] if subscribed[claim.member] else [], replace(claim, partitions={"": numbers}))
    won = _won(places, members)
    found = {(topic, number): won["", number] for topic, number in contested if ("", number) in won}
    return {(topic, number): member for (topic, number), member in found.items() if topic in subscribed[member]}


def _won(places: Mapping[str, list[int]], members: Mapping[str, tuple[Sequence[str], Claim]]) -> dict[Partition, str]:
    """The members whose claims count, by partition.

    Args:
        places: topic to the partition numbers that the core settles. It gets consecutive numbers in their place, since
            its time grows with the number of all partitions of a topic.
        members: the topics that each member subscribes to, and its claim.
    """
    index = {topic: {number: place for place, number in enumerate(numbers)} for topic, numbers in places.items()}
    given = [
        Member(
            member,
            topics,
            owned={
                topic: [index[topic][number] for number in numbers if number in index[topic]]
                for topic, numbers in claim.partitions.items()
                if topic in index
            },
            generation=claim.generation,
        )
        for member, (topics, claim) in members.items()
    ]
    settled = _core.open_group(False, {topic: len(numbers) for topic, numbers in places.items()}, given, None)
    return {
        (topic, places[topic][place]): member
        for member, _, owned, *_ in settled.members()
        for topic, kept in owned.items()
        for place in kept
    }


def _newest_first(claim: tuple[str, int | None]) -> tuple[int, str]:
    member, generation = claim
    return -(NO_GENERATION if generation is None else generation), member


def _known(generation: int) -> int | None:
    return None if generation == NO_GENERATION else generation
