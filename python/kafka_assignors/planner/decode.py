"""Bytes of the group protocol decoded: subscriptions, assignments, user data, and the claims of a group's members."""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kafka_assignors.cluster import ClassicMember
from kafka_assignors.errors import OptionError, UserDataError
from kafka_assignors.planner.claims import Claim, Conflict, claim_of, conflicts_of
from kafka_assignors.userdata import (
    Assignment,
    CooperativeStickyUserData,
    StickyUserData,
    StreamJoinUserData,
    Subscription,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_assignors.planner.observed_group import ObservedGroup

__all__ = ["FORMS", "KINDS", "Decoded", "DecodedGroup", "DecodedMember", "bytes_of", "decode", "decode_group"]

KINDS: dict[str, str] = {
    "subscription": "ConsumerProtocolSubscription: what a member sends in JoinGroup",
    "assignment": "ConsumerProtocolAssignment: what a member gets from SyncGroup",
    "sticky": "user data of `sticky` and `lag`: partitions and a generation (KIP-54, KIP-341)",
    "cooperative-sticky": "user data of `cooperative-sticky`: a generation (KIP-429)",
    "sticky-join": "user data of `sticky-join`: partition numbers and an epoch (KIP-315)",
    "json": "user data that is JSON, as Faust writes it",
}
"""The kinds of bytes, each with its description."""

FORMS = ("auto", "hex", "base64")

_HEX = re.compile(r"(?:0x)?(?:[0-9a-fA-F]{2})*")
_SPACE = re.compile(r"[\s:]+")


@dataclass(frozen=True, slots=True)
class Decoded:
    """Decoded bytes.

    Attributes:
        kind: a key of `KINDS`.
        version: of subscriptions and assignments; None for user data.
        topics: the topics of a subscription.
        partitions: the owned, assigned or claimed partitions: topic to numbers.
        numbers: the partition numbers of a stream join.
        generation: as written; None if there is none. For `sticky-join` the epoch.
        rack: of a subscription.
        user_data: the bytes of the user data, if there are any.
        inner: the decoded user data.
        other: the parsed value of JSON.
        also: other kinds that the same bytes fit.
        fault: the part of the bytes that cannot be read, and why.
    """

    kind: str
    version: int | None = None
    topics: tuple[str, ...] = ()
    partitions: Mapping[str, Sequence[int]] | None = None
    numbers: tuple[int, ...] = ()
    generation: int | None = None
    rack: str | None = None
    user_data: bytes | None = None
    inner: Decoded | None = None
    other: Any = None
    also: tuple[str, ...] = ()
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class DecodedMember:
    """The decoded bytes of a member.

    Attributes:
        id: its id.
        name: its name for people.
        subscription: its subscription; None without bytes.
        assignment: its assignment; None without bytes.
        claim: its claim, as the group's strategy reads it.
        faults: the parts of its bytes that cannot be read, and why.
    """

    id: str
    name: str
    subscription: Decoded | None
    assignment: Decoded | None
    claim: Claim | None
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DecodedGroup:
    """The decoded bytes of a group.

    Attributes:
        group_id: its id.
        strategy: the strategy on which its members agreed.
        members: by id.
        conflicts: partitions that several members claimed.
    """

    group_id: str
    strategy: str
    members: tuple[DecodedMember, ...]
    conflicts: tuple[Conflict, ...]


def bytes_of(text: str, form: str = "auto") -> bytes:
    """The bytes of a text in hexadecimal digits or base64; white space, and colons between digits, are left out.

    Args:
        text: the text.
        form: one of `FORMS`; `auto` reads a text of only hexadecimal digits as these, any other as base64.

    Raises:
        OptionError: the text does not have this form.

    >>> bytes_of("00 03"), bytes_of("AAM=")
    (b'\\x00\\x03', b'\\x00\\x03')
    """
    if form not in FORMS:
        raise OptionError(f"the form is {form!r}; give one of {', '.join(FORMS)}")
    packed = _SPACE.sub("", text)
    if form != "base64" and _HEX.fullmatch(packed):
        return bytes.fromhex(packed.removeprefix("0x"))
    if form == "hex":
        raise OptionError(f"{_shown(text)} is not hexadecimal; give pairs of digits, or --input-format base64")
    try:
        # The URL-safe alphabet of base64 is accepted too.
        return base64.b64decode(packed.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise OptionError(f"{_shown(text)} is neither hexadecimal nor base64: {error}") from error


def decode(data: bytes, kind: str | None = None, *, assignor: str | None = None) -> Decoded:
    """Reads bytes.

    Args:
        data: the bytes.
        kind: a key of `KINDS`; None takes the first kind, in their order, that fits the bytes without a rest. `also`
            contains the other kinds that fit.
        assignor: the strategy that wrote the user data, if it is known.

    Raises:
        OptionError: there is no such kind.
        UserDataError: the bytes do not fit this kind, or fit no kind.

    >>> decode(bytes.fromhex("00000007")).generation
    7
    """
    if kind is not None and kind not in KINDS:
        raise OptionError(f"the kind is {kind!r}; give one of {', '.join(KINDS)}")
    if kind is not None:
        return _as(kind, data, assignor)
    fits = [each for each in KINDS if _fits(each, data)]
    if not fits:
        raise UserDataError(
            f"these {len(data)} bytes are none of {', '.join(KINDS)}; --kind reads what can be read as one of them"
        )
    found = _as(fits[0], data, assignor)
    return replace(found, also=tuple(fits[1:]))


def _as(kind: str, data: bytes, assignor: str | None) -> Decoded:
    match kind:
        case "subscription":
            return _subscription(data, assignor)
        case "assignment":
            return _assignment(data)
        case "json":
            return Decoded("json", other=_json(data))
    return _user_data(kind, data)


def _subscription(data: bytes, assignor: str | None) -> Decoded:
    read = Subscription.decode(data)
    return Decoded(
        "subscription",
        version=read.version,
        topics=tuple(read.topics),
        partitions=read.owned,
        generation=_known(read.generation),
        rack=read.rack,
        user_data=read.user_data,
        inner=_inner(read.user_data, assignor),
        fault=_fault(Subscription, data),
    )


def _assignment(data: bytes) -> Decoded:
    read = Assignment.decode(data)
    return Decoded(
        "assignment",
        version=read.version,
        partitions=read.partitions,
        generation=_known(read.generation),
        user_data=read.user_data,
        fault=_fault(Assignment, data),
    )


def _user_data(kind: str, data: bytes) -> Decoded:
    if kind == "sticky":
        sticky = StickyUserData.decode(data, strict=True)
        return Decoded(kind, partitions=sticky.assignments, generation=_known(sticky.generation))
    if kind == "cooperative-sticky":
        cooperative = CooperativeStickyUserData.decode(data, strict=True)
        return Decoded(kind, generation=_known(cooperative.generation))
    join = StreamJoinUserData.decode(data, strict=True)
    return Decoded(kind, numbers=tuple(join.partitions), generation=join.epoch)


_OF_ASSIGNOR = {
    "sticky": "sticky",
    "lag": "sticky",
    "cooperative-sticky": "cooperative-sticky",
    "sticky-join": "sticky-join",
    "cooperative-sticky-join": "sticky-join",
}


def _inner(data: bytes | None, assignor: str | None) -> Decoded | None:
    """User data in the form of the strategy, or in the first form that fits without a rest."""
    if not data:
        return None
    if assignor in _OF_ASSIGNOR:
        try:
            return _user_data(_OF_ASSIGNOR[assignor], data)
        except UserDataError:
            pass
    fits = [kind for kind in ("sticky", "cooperative-sticky", "sticky-join", "json") if _fits(kind, data)]
    return replace(_as(fits[0], data, None), also=tuple(fits[1:])) if fits else None


def _fits(kind: str, data: bytes) -> bool:
    """Whether the bytes fit this kind without a rest."""
    if not data:
        return False
    try:
        if kind == "subscription":
            read = Subscription.decode(data, strict=True)
            lacks = _LACKS.get(read.version)
            return bool(read.topics) and lacks is not None and len(read.encode()) - lacks == len(data)
        if kind == "assignment":
            given = Assignment.decode(data, strict=True)
            return given.version <= 3 and len(given.encode()) == len(data)
        if kind == "cooperative-sticky":
            return len(data) == 4
        if kind == "sticky-join":
            return len(StreamJoinUserData.decode(data, strict=True).encode()) == len(data)
        if kind == "json":
            return isinstance(_json(data), dict | list)
        StickyUserData.decode(data, strict=True)
    except UserDataError:
        return False
    # Version 0 has no generation, and kafka-python's form begins with a version; the strict decoder accepts both.
    sticky = StickyUserData.decode(data)
    whole = len(sticky.encode())
    return len(data) in (whole, whole - 4, whole + 2, whole - 2) and (bool(sticky.assignments) or len(data) >= 8)


# By version of a subscription, how many bytes of an encoding in version 3 it lacks. `encode` writes version 3: version
# 2 lacks the empty rack (2 bytes), version 1 also the generation (4), version 0 also the empty owned partitions (4).
_LACKS = {3: 0, 2: 2, 1: 6, 0: 10}


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UserDataError(f"these {len(data)} bytes are no JSON") from error


def decode_group(observed: ObservedGroup) -> DecodedGroup:
    """Decodes the bytes of all members of a group; members of a KIP-848 group have none."""
    assignor = observed.group.assignor
    members = []
    for member in observed.members:
        if not isinstance(member, ClassicMember):
            owned = Decoded("assignment", partitions=member.owned, generation=member.epoch)
            subscribed = Decoded("subscription", topics=member.topics, rack=member.rack)
            members.append(DecodedMember(member.id, observed.names[member.id], subscribed, owned, None, ()))
            continue
        subscription = _tolerant(_subscription, member.subscription, assignor)
        claim = None
        if subscription is not None:
            claim = claim_of(member.id, Subscription.decode(member.subscription), assignor)
        assignment = _tolerant(lambda data, _: _assignment(data), member.assignment, assignor)
        name = observed.names[member.id]
        members.append(DecodedMember(member.id, name, subscription, assignment, claim, member.faults))
    conflicts = conflicts_of(observed)
    return DecodedGroup(observed.group_id, assignor, tuple(members), tuple(conflicts))


def _tolerant(read: Any, data: bytes, assignor: str) -> Decoded | None:
    try:
        found: Decoded | None = read(data, assignor) if data else None
    except UserDataError:
        return None
    return found


def _fault(kind: Any, data: bytes) -> str | None:
    try:
        kind.decode(data, strict=True)
    except UserDataError as error:
        return str(error)
    return None


def _known(generation: int) -> int | None:
    return generation if generation >= 0 else None


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")
