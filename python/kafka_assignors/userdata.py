"""The bytes that a member writes into JoinGroup, and those that it reads from SyncGroup.

The assignors' own data ([`StickyUserData`][kafka_assignors.userdata.StickyUserData],
[`CooperativeStickyUserData`][kafka_assignors.userdata.CooperativeStickyUserData],
[`StreamJoinUserData`][kafka_assignors.userdata.StreamJoinUserData],
[`CustomUserData`][kafka_assignors.userdata.CustomUserData]) and the structures around
it ([`Subscription`][kafka_assignors.userdata.Subscription], [`Assignment`][kafka_assignors.userdata.Assignment]), as
values with `encode()` and `decode()`. The core reads the bytes, as it does for a leader; one member's few bytes are
written here.

The encoding is canonical (names and numbers sorted, no repeats): equal values have equal bytes, so that a member that
rejoins with the same state causes no rebalance. The decoding is tolerant, since other clients wrote the bytes: newer
versions, trailing bytes and older forms are understood.

>>> data = StickyUserData({"orders": [2, 0]}, generation=5)
>>> StickyUserData.decode(data.encode())
StickyUserData(assignments={'orders': (0, 2)}, generation=5)
>>> metadata = Subscription(["orders"], user_data=data.encode()).encode()
>>> Subscription.decode(metadata).topics
('orders',)
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from operator import index
from typing import TYPE_CHECKING, ClassVar, Final

from kafka_assignors import _core
from kafka_assignors.errors import UserDataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Self

__all__ = [
    "NO_GENERATION",
    "Assignment",
    "CooperativeStickyUserData",
    "CustomUserData",
    "StickyUserData",
    "StreamJoinUserData",
    "Subscription",
]

NO_GENERATION: Final = -1
"""The generation of a claim that carries none."""

_VERSION: Final = 3
_LONGEST_STRING: Final = 0x7FFF
_INT32: Final = range(-(2**31), 2**31)


# ---- values ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StickyUserData:
    """The partitions that a member of the `sticky` assignor claims to have held (KIP-54, KIP-341).

    Args:
        assignments: topic to partition numbers. It is kept sorted, without repeats and without empty topics.
        generation: the generation in which the member held them; any negative number means none.

    Raises:
        UserDataError: a number that does not fit 32 bits.
    """

    assignments: Mapping[str, Sequence[int]] = field(default_factory=dict)
    generation: int = NO_GENERATION

    def __post_init__(self) -> None:
        object.__setattr__(self, "assignments", _canonical(self.assignments, "assignments"))
        object.__setattr__(self, "generation", max(_int32(self.generation, "generation"), NO_GENERATION))

    def encode(self) -> bytes:
        """The bytes, version 1, as Java's assignor and every client but kafka-python 3.x read them.

        Raises:
            UserDataError: a topic's name that the protocol cannot carry.

        >>> StickyUserData({"t": [0, 2]}, generation=5).encode().hex()
        '0000000100017400000002000000000000000200000005'
        """
        return _encode_partitions(self.assignments) + struct.pack(">i", self.generation)

    @classmethod
    def decode(cls, data: bytes | None, *, strict: bool = False) -> Self:
        """Reads version 1 or version 0, and both behind the schema version that kafka-python 3.x puts in front.

        Args:
            data: the user data; None and zero bytes are no history.
            strict: whether to raise if the bytes have none of these forms; else they are no history.

        Raises:
            UserDataError: the bytes have none of these forms, and `strict` is set.

        >>> StickyUserData.decode(bytes.fromhex("00000001000174000000020000000000000002"))
        StickyUserData(assignments={'t': (0, 2)}, generation=-1)
        >>> StickyUserData.decode(b"?")
        StickyUserData(assignments={}, generation=-1)
        """
        if not data:
            return cls()
        try:
            lists, generation = _core.decode_sticky_user_data(bytes(data))
        except UserDataError:
            if strict:
                raise _unreadable(data) from None
            return cls()
        return cls(_merged(lists), generation)


@dataclass(frozen=True, slots=True)
class CooperativeStickyUserData:
    """The user data of a `cooperative-sticky` member: the generation of its subscription's owned partitions (KIP-429).

    Args:
        generation: any negative number means none.

    Raises:
        UserDataError: a generation that does not fit 32 bits.
    """

    generation: int = NO_GENERATION

    def __post_init__(self) -> None:
        object.__setattr__(self, "generation", max(_int32(self.generation, "generation"), NO_GENERATION))

    def encode(self) -> bytes:
        """The four bytes that Java writes.

        >>> CooperativeStickyUserData(7).encode().hex()
        '00000007'
        """
        return struct.pack(">i", self.generation)

    @classmethod
    def decode(cls, data: bytes | None, *, strict: bool = False) -> Self:
        """Reads Java's four bytes, or the generation out of the sticky user data that librdkafka and franz-go send.

        This generation counts only if the subscription has no generation of its own.

        Args:
            data: the user data; None and zero bytes are no generation.
            strict: whether to raise if the bytes are neither; else they are no generation.

        Raises:
            UserDataError: the bytes are neither, and `strict` is set.

        >>> CooperativeStickyUserData.decode(StickyUserData({"t": [0]}, generation=5).encode())
        CooperativeStickyUserData(generation=5)
        """
        if not data:
            return cls()
        try:
            return cls(_core.decode_cooperative_user_data(bytes(data)))
        except UserDataError:
            if strict:
                raise _unreadable(data) from None
            return cls()


@dataclass(frozen=True, slots=True)
class StreamJoinUserData:
    """The partition numbers that a member of a stream-join assignor held, the same for all joined topics (KIP-315).

    Args:
        partitions: the numbers. They are kept sorted and without repeats.
        epoch: the epoch of the assignment; 0 before the first, and any negative number means 0.

    Raises:
        UserDataError: a number that does not fit 32 bits.
    """

    partitions: Sequence[int] = ()
    epoch: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "partitions", _numbers(self.partitions, "partitions"))
        object.__setattr__(self, "epoch", max(_int32(self.epoch, "epoch"), 0))

    def encode(self) -> bytes:
        """The numbers and the epoch, in the layout of the KIP's author.

        >>> StreamJoinUserData([3, 0], epoch=7).encode().hex()
        '00000002000000000000000300000007'
        """
        return _encode_numbers(self.partitions) + struct.pack(">i", self.epoch)

    @classmethod
    def decode(cls, data: bytes | None, *, strict: bool = False) -> Self:
        """Reads numbers and epoch; bytes behind them are ignored.

        Args:
            data: the user data; None and zero bytes are no numbers and epoch 0.
            strict: whether to raise if the bytes cannot be read; else they count as none.

        Raises:
            UserDataError: the bytes cannot be read, and `strict` is set.

        >>> StreamJoinUserData.decode(bytes.fromhex("00000002000000000000000300000007"))
        StreamJoinUserData(partitions=(0, 3), epoch=7)
        """
        if not data:
            return cls()
        try:
            return cls(*_core.decode_stream_join_user_data(bytes(data)))
        except UserDataError:
            if strict:
                raise _unreadable(data) from None
            return cls()


@dataclass(frozen=True, slots=True)
class CustomUserData:
    """The user data of a member of a [`CustomAssignor`][kafka_assignors.own.CustomAssignor], version 0.

    | Field | Type |
    |---|---|
    | version | INT16: 0; a newer one begins with the same fields |
    | generation | INT32; -1 is none |
    | assignments | ARRAY of (topic STRING, partitions ARRAY of INT32) |
    | data | BYTES |

    Args:
        data: the bytes that `member_data()` returned, at most `MOST`.
        assignments: the partitions that an eager member held; kept as in `StickyUserData`. A cooperative member sends
            them in its subscription.
        generation: the generation of these partitions; any negative number means none.

    Raises:
        UserDataError: a number that does not fit 32 bits, or data that is no bytes or has more of them.
    """

    MOST: ClassVar[int] = 65_536

    data: bytes = b""
    assignments: Mapping[str, Sequence[int]] = field(default_factory=dict)
    generation: int = NO_GENERATION

    def __post_init__(self) -> None:
        if not isinstance(self.data, bytes):
            raise UserDataError(f"data is of type {type(self.data).__name__}; give bytes")
        if len(self.data) > self.MOST:
            raise UserDataError(f"data has {len(self.data):,} bytes; at most {self.MOST:,} may be")
        object.__setattr__(self, "assignments", _canonical(self.assignments, "assignments"))
        object.__setattr__(self, "generation", max(_int32(self.generation, "generation"), NO_GENERATION))

    def encode(self) -> bytes:
        """The bytes, version 0.

        Raises:
            UserDataError: a topic's name that the protocol cannot carry.

        >>> CustomUserData(b"big", {"t": [2]}, generation=5).encode().hex()
        '00000000000500000001000174000000010000000200000003626967'
        """
        partitions = _encode_partitions(self.assignments)
        return struct.pack(">hi", 0, self.generation) + partitions + _encode_bytes(self.data)

    @classmethod
    def decode(cls, data: bytes | None, *, strict: bool = False) -> Self:
        """Reads version 0, and the fields of version 0 in a newer version.

        Args:
            data: the user data; None and zero bytes are neither history nor data.
            strict: whether to raise if the bytes cannot be read, or if the data in them is too long; else they count as
                none, and data that is too long as empty.

        Raises:
            UserDataError: the bytes cannot be read, and `strict` is set.

        >>> CustomUserData.decode(CustomUserData(b"big", generation=5).encode())
        CustomUserData(data=b'big', assignments={}, generation=5)
        """
        if not data:
            return cls()
        try:
            lists, generation, own = _core.decode_custom_user_data(bytes(data))
        except UserDataError:
            if strict:
                raise _unreadable(data) from None
            return cls()
        return cls(own if strict or len(own) <= cls.MOST else b"", _merged(lists), generation)


@dataclass(frozen=True, slots=True)
class Subscription:
    """A ConsumerProtocolSubscription: the metadata of a member in JoinGroup.

    Args:
        topics: the topics subscribed to; kept sorted and without repeats.
        user_data: the assignor's own data; zero bytes are kept as None.
        owned: owned partitions (KIP-429), topic to numbers; kept as in `StickyUserData`. Eager members leave it empty.
        generation: the generation of the owned partitions (KIP-792); any negative number means none.
        rack: the member's rack (KIP-881); the empty string is kept as None.
        version: the version that was read; `encode` writes version 3, and a comparison leaves this out.

    Raises:
        UserDataError: a number that does not fit 32 bits.
    """

    topics: Sequence[str]
    user_data: bytes | None = None
    owned: Mapping[str, Sequence[int]] = field(default_factory=dict)
    generation: int = NO_GENERATION
    rack: str | None = None
    version: int = field(default=_VERSION, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.topics, str):
            raise UserDataError("topics of a Subscription is a str; give a list of names")
        object.__setattr__(self, "topics", tuple(sorted(set(self.topics), key=_utf8)))
        object.__setattr__(self, "user_data", bytes(self.user_data) if self.user_data else None)
        object.__setattr__(self, "owned", _canonical(self.owned, "owned"))
        object.__setattr__(self, "generation", max(_int32(self.generation, "generation"), NO_GENERATION))
        object.__setattr__(self, "rack", self.rack or None)

    def encode(self) -> bytes:
        """The bytes, version 3, as Java writes them.

        Raises:
            UserDataError: a string that the protocol cannot carry.

        >>> Subscription(["t"]).encode().hex()
        '000300000001000174ffffffff00000000ffffffffffff'
        """
        return b"".join(
            (
                struct.pack(">hi", _VERSION, len(self.topics)),
                *(_encode_string(topic, "topic") for topic in self.topics),
                _encode_bytes(self.user_data),
                _encode_partitions(self.owned),
                struct.pack(">i", self.generation),
                b"\xff\xff" if self.rack is None else _encode_string(self.rack, "rack"),
            )
        )

    @classmethod
    def decode(cls, metadata: bytes, *, strict: bool = False) -> Self:
        """Reads versions 0 to 3, and the fields of version 3 in a newer version.

        If the bytes end before a field of their version, this field has its default. If a field after the topics is
        damaged, it is left out with all that follow it.

        Args:
            metadata: the bytes.
            strict: whether to raise also if a field after the topics is damaged.

        Raises:
            UserDataError: version or topics cannot be read; or, if `strict` is set, a field after them.

        >>> Subscription.decode(bytes.fromhex("000000000002000161000174000000020102"))
        Subscription(topics=('a', 't'), user_data=b'\\x01\\x02', owned={}, generation=-1, rack=None, version=0)
        """
        version, topics, user_data, owned, generation, rack, fault = _core.decode_subscription(bytes(metadata))
        if strict and fault is not None:
            raise UserDataError(fault)
        return cls(topics, user_data, _merged(owned), generation, rack, version)


@dataclass(frozen=True, slots=True)
class Assignment:
    """A ConsumerProtocolAssignment: the assignment that a member receives in SyncGroup.

    Args:
        partitions: topic to partition numbers; kept as in `StickyUserData`.
        user_data: the assignor's own data; zero bytes are kept as None. Our leaders put the generation there.
        version: the version that was read; `encode` writes version 3, and a comparison leaves this out.

    Raises:
        UserDataError: a number that does not fit 32 bits.
    """

    partitions: Mapping[str, Sequence[int]] = field(default_factory=dict)
    user_data: bytes | None = None
    version: int = field(default=_VERSION, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "partitions", _canonical(self.partitions, "partitions"))
        object.__setattr__(self, "user_data", bytes(self.user_data) if self.user_data else None)

    @property
    def generation(self) -> int:
        """The generation that a leader of ours put into the user data; -1 if there is none.

        >>> Assignment({"t": [0]}, user_data=(8).to_bytes(4)).generation
        8
        """
        data = self.user_data or b""
        return max(int.from_bytes(data[:4], signed=True), NO_GENERATION) if len(data) >= 4 else NO_GENERATION

    def encode(self) -> bytes:
        """The bytes, version 3.

        Raises:
            UserDataError: a topic's name that the protocol cannot carry.

        >>> Assignment({"t": [0]}).encode().hex()
        '0003000000010001740000000100000000ffffffff'
        """
        return struct.pack(">h", _VERSION) + _encode_partitions(self.partitions) + _encode_bytes(self.user_data)

    @classmethod
    def decode(cls, data: bytes, *, strict: bool = False) -> Self:
        """Reads an assignment of any version.

        Args:
            data: the bytes. Zero bytes are an error: a broker sends them to a member that the leader left out.
            strict: whether to raise also if the user data is damaged; else it is left out.

        Raises:
            UserDataError: version or partitions cannot be read; or the user data, if `strict` is set.

        >>> Assignment.decode(b"")
        Traceback (most recent call last):
            ...
        kafka_assignors.errors.UserDataError: cannot read version at byte 0: the input ends too early
        """
        version, partitions, user_data, fault = _core.decode_assignment(bytes(data))
        if strict and fault is not None:
            raise UserDataError(fault)
        return cls(_merged(partitions), user_data, version)


# ---- reading --------------------------------------------------------------------------------------------------------


def _merged(lists: Iterable[tuple[str, Iterable[int]]]) -> dict[str, list[int]]:
    """Numbers by topic; the bytes may name a topic several times."""
    found: dict[str, list[int]] = {}
    for topic, numbers in lists:
        found.setdefault(topic, []).extend(numbers)
    return found


def _unreadable(data: bytes) -> UserDataError:
    return UserDataError(
        f"user data of {len(data)} bytes has no form that this assignor knows; it counts as no history: "
        "check that all members of the group use the same assignor"
    )


# ---- checking and writing -------------------------------------------------------------------------------------------


def _int32(value: int, what: str) -> int:
    try:
        number = index(value)
    except TypeError:
        raise UserDataError(f"{what} is of type {type(value).__name__}; give an integer") from None
    if number not in _INT32:
        raise UserDataError(f"{what} is {number}; the protocol carries 32 bits: give at most {_INT32[-1]}")
    return number


def _numbers(values: Iterable[int], what: str) -> tuple[int, ...]:
    return tuple(sorted({_int32(value, what) for value in values}))


def _utf8(text: str) -> bytes:
    if not isinstance(text, str):
        raise UserDataError(f"a name is of type {type(text).__name__}; give a str")
    return text.encode("utf-8", "surrogatepass")


def _canonical(partitions: Mapping[str, Iterable[int]], what: str) -> dict[str, tuple[int, ...]]:
    topics = sorted(partitions, key=_utf8)
    lists = ((topic, _numbers(partitions[topic], f"{what}[{topic!r}]")) for topic in topics)
    return {topic: numbers for topic, numbers in lists if numbers}


def _encode_string(text: str, what: str) -> bytes:
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        raise UserDataError(f"{what} {text!r} is not valid Unicode; the protocol carries UTF-8") from None
    if len(encoded) > _LONGEST_STRING:
        raise UserDataError(
            f"{what} has {len(encoded)} bytes; a string of the protocol has at most {_LONGEST_STRING}: shorten it"
        )
    return struct.pack(">h", len(encoded)) + encoded


def _encode_bytes(data: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if data is None else struct.pack(">i", len(data)) + data


def _encode_numbers(numbers: Sequence[int]) -> bytes:
    return struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)


def _encode_partitions(partitions: Mapping[str, Sequence[int]]) -> bytes:
    lists = (_encode_string(topic, "topic") + _encode_numbers(numbers) for topic, numbers in partitions.items())
    return struct.pack(">i", len(partitions)) + b"".join(lists)
