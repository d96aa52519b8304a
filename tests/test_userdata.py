"""The bytes of other clients and of this one. The core reads them, and a second reader in plain Python."""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafka_assignors import UserDataError
from kafka_assignors.userdata import (
    Assignment,
    CooperativeStickyUserData,
    StickyUserData,
    StreamJoinUserData,
    Subscription,
)
from support import userdata_reader

STICKY_V1 = "0000000100017400000002000000000000000200000005"
V0 = "000000000002000161000174000000020102"
V1 = "000100000002000161000174000000020102000000020001610000000100000001000174000000020000000000000002"
V2 = "00020000000200016100017400000002010200000002000161000000010000000100017400000002000000000000000200000005"
V3 = "0003000000020001610001740000000201020000000200016100000001000000010001740000000200000000000000020000000500027231"
JAVA_ASSIGNMENT = "0003000000020001740000000200000002000000000001610000000100000001ffffffff"


# J: written by kafka-clients. K: written by kafka-python 3.0.12. L: derived from the layout.
@pytest.mark.parametrize(
    ("data", "assignments", "generation"),
    [
        pytest.param(STICKY_V1, {"t": (0, 2)}, 5, id="J version 1"),
        pytest.param("00000000ffffffff", {}, -1, id="J version 1, empty"),
        pytest.param("00000001000174000000020000000000000002", {"t": (0, 2)}, -1, id="J version 0"),
        pytest.param("0001" + STICKY_V1, {"t": (0, 2)}, 5, id="K prefixed version 1"),
        pytest.param("00010000000000000005", {}, 5, id="L prefixed version 1, empty"),
        pytest.param("000000000001000174000000020000000000000002", {"t": (0, 2)}, -1, id="K prefixed version 0"),
        pytest.param("00000001000174000000020000000000000002aabb", {"t": (0, 2)}, -1, id="L version 0, 2 stray bytes"),
        pytest.param(STICKY_V1 + "ff", {"t": (0, 2)}, 5, id="L version 1, 1 stray byte"),
    ],
)
def test_sticky_user_data_of_other_clients(data: str, assignments: dict[str, tuple[int, ...]], generation: int) -> None:
    read = StickyUserData.decode(bytes.fromhex(data), strict=True)
    assert (read.assignments, read.generation) == (assignments, generation)


@pytest.mark.parametrize("data", ["00", "00000001", "ffffffff00000001"])
def test_unreadable_sticky_user_data_is_no_history(data: str) -> None:
    assert StickyUserData.decode(bytes.fromhex(data)) == StickyUserData()
    with pytest.raises(UserDataError, match=f"user data of {len(data) // 2} bytes has no form that"):
        StickyUserData.decode(bytes.fromhex(data), strict=True)


def test_no_user_data_is_no_history() -> None:
    for nothing in (None, b""):
        assert StickyUserData.decode(nothing, strict=True) == StickyUserData({}, -1)
        assert CooperativeStickyUserData.decode(nothing, strict=True) == CooperativeStickyUserData(-1)
        assert StreamJoinUserData.decode(nothing, strict=True) == StreamJoinUserData((), 0)


def test_user_data_is_written_as_java_writes_it() -> None:
    assert StickyUserData({"t": [2, 0, 2], "empty": []}, 5).encode().hex() == STICKY_V1
    assert StickyUserData().encode().hex() == "00000000ffffffff"
    assert CooperativeStickyUserData(7).encode().hex() == "00000007"
    assert CooperativeStickyUserData().encode().hex() == "ffffffff"
    assert StreamJoinUserData([3, 0, 3], 7).encode().hex() == "00000002000000000000000300000007"
    assert StreamJoinUserData().encode().hex() == "0000000000000000"


@pytest.mark.parametrize(
    ("data", "generation"),
    [
        ("00000007", 7),
        ("ffffffff", -1),
        ("80000000", -1),
        (STICKY_V1, 5),
        ("0001" + STICKY_V1, 5),
        (STICKY_V1[:-8], -1),
    ],
)
def test_cooperative_user_data_of_other_clients(data: str, generation: int) -> None:
    assert CooperativeStickyUserData.decode(bytes.fromhex(data), strict=True).generation == generation


@pytest.mark.parametrize("data", ["00", "000007", "0000000700", STICKY_V1 + "ff"])
def test_unreadable_cooperative_user_data_is_no_generation(data: str) -> None:
    assert CooperativeStickyUserData.decode(bytes.fromhex(data)).generation == -1
    with pytest.raises(UserDataError):
        CooperativeStickyUserData.decode(bytes.fromhex(data), strict=True)


@pytest.mark.parametrize("data", ["00", "00000001", "0000000100000000", "ffffffff00000000"])
def test_unreadable_stream_join_user_data_is_no_numbers(data: str) -> None:
    assert StreamJoinUserData.decode(bytes.fromhex(data)) == StreamJoinUserData()
    with pytest.raises(UserDataError):
        StreamJoinUserData.decode(bytes.fromhex(data), strict=True)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        pytest.param(V0, Subscription(["a", "t"], b"\1\2"), id="J K version 0"),
        pytest.param(V1, Subscription(["a", "t"], b"\1\2", {"a": [1], "t": [0, 2]}), id="K version 1"),
        pytest.param(V2, Subscription(["a", "t"], b"\1\2", {"a": [1], "t": [0, 2]}, 5), id="K version 2"),
        pytest.param(V3, Subscription(["a", "t"], b"\1\2", {"a": [1], "t": [0, 2]}, 5, "r1"), id="J K version 3"),
        pytest.param(
            "0009" + V3[4:] + "ffff",
            Subscription(["a", "t"], b"\1\2", {"a": [1], "t": [0, 2]}, 5, "r1"),
            id="L version 9 and trailing bytes",
        ),
        pytest.param("000300000001000174ffffffff00000000ffffffffffff", Subscription(["t"]), id="K smallest"),
        pytest.param("0003" + V0[4:], Subscription(["a", "t"], b"\1\2"), id="later fields missing"),
    ],
)
def test_subscriptions_of_all_versions(metadata: str, expected: Subscription) -> None:
    read = Subscription.decode(bytes.fromhex(metadata), strict=True)
    assert read == expected
    assert read.version == int(metadata[:4], 16)
    assert Subscription.decode(expected.encode()) == expected


def test_subscriptions_are_written_as_java_writes_them() -> None:
    assert Subscription(["t", "a", "t"], b"\1\2", {"t": [2, 0], "a": [1]}, 5, "r1").encode().hex() == V3
    smallest = "000300000001000174ffffffff00000000ffffffffffff"
    assert Subscription(["t"], b"", {"t": []}, -9, "").encode().hex() == smallest


@pytest.mark.parametrize("metadata", ["", "00", "ffff00000000ffffffff", "0000ffffffff", "00007fffffff0000", "00000000"])
def test_a_subscription_without_readable_topics_is_refused(metadata: str) -> None:
    with pytest.raises(UserDataError, match=r"^cannot read (version|topics) at byte [02]: "):
        Subscription.decode(bytes.fromhex(metadata))


def test_a_damaged_later_field_costs_itself_and_what_follows() -> None:
    cut = bytes.fromhex(V3)[:-1]
    assert Subscription.decode(cut) == Subscription(["a", "t"], b"\1\2", {"a": [1], "t": [0, 2]}, 5, None)
    with pytest.raises(UserDataError, match="cannot read rack_id at byte 54: the input ends too early"):
        Subscription.decode(cut, strict=True)


def test_assignments() -> None:
    read = Assignment.decode(bytes.fromhex(JAVA_ASSIGNMENT), strict=True)
    assert read == Assignment({"a": [1], "t": [0, 2]})
    assert read.generation == -1
    ours = Assignment({"t": [0]}, (8).to_bytes(4))
    assert Assignment.decode(ours.encode()).generation == 8
    assert Assignment.decode(bytes.fromhex(JAVA_ASSIGNMENT)[:-1]) == read
    with pytest.raises(UserDataError, match="cannot read user_data"):
        Assignment.decode(bytes.fromhex(JAVA_ASSIGNMENT)[:-1], strict=True)
    with pytest.raises(UserDataError, match="cannot read version at byte 0: the input ends too early"):
        Assignment.decode(b"")


def test_what_the_protocol_cannot_carry_is_refused() -> None:
    with pytest.raises(UserDataError, match="topic has 32768 bytes; a string of the protocol has at most 32767"):
        StickyUserData({"x" * 32_768: [0]}).encode()
    assert Subscription.decode(Subscription(["x" * 32_767]).encode()).topics == ("x" * 32_767,)
    with pytest.raises(UserDataError, match="not valid Unicode"):
        Subscription(["\ud800"]).encode()
    with pytest.raises(UserDataError, match=r"assignments\['t'\] is 2147483648; the protocol carries 32 bits"):
        StickyUserData({"t": [2**31]})
    with pytest.raises(UserDataError, match="generation is of type str; give an integer"):
        CooperativeStickyUserData("7")  # type: ignore[arg-type]
    with pytest.raises(UserDataError, match="give a list of names"):
        Subscription("orders")


def test_values_keep_nothing_of_what_they_were_given() -> None:
    numbers = [1, 0]
    owned = {"t": numbers}
    data = StickyUserData(owned, 1)
    numbers.append(2)
    owned["u"] = [0]
    assert data == StickyUserData({"t": [0, 1]}, 1)


# ---- the two codecs -------------------------------------------------------------------------------------------------

names = st.text("abé.", max_size=3)
int32 = st.integers(-(2**31), 2**31 - 1)
partitions = st.dictionaries(names, st.lists(st.integers(-1, 9) | int32, max_size=5), max_size=4)
subscriptions = st.builds(
    Subscription, st.lists(names, max_size=5), st.none() | st.binary(max_size=9), partitions, int32, st.none() | names
)


@given(subscriptions)
def test_both_readers_read_what_python_writes(subscription: Subscription) -> None:
    assert Subscription.decode(subscription.encode(), strict=True) == subscription
    assert subscription.version == userdata_reader.subscription(subscription.encode()).version == 3
    assert userdata_reader.subscription(subscription.encode(), strict=True) == subscription


@given(partitions, int32, int32, st.sampled_from([b"", b"\0\0", b"\0\1"]))
def test_user_data_comes_back(owned: dict[str, list[int]], generation: int, epoch: int, prefix: bytes) -> None:
    sticky = StickyUserData(owned, generation)
    bare = sticky.encode()
    if prefix == b"\0\0":
        sticky, bare = StickyUserData(owned), bare[:-4]
    assert StickyUserData.decode(prefix + bare, strict=True) == sticky
    numbers = StreamJoinUserData([number for numbers in owned.values() for number in numbers], epoch)
    assert StreamJoinUserData.decode(numbers.encode(), strict=True) == numbers
    assignment = Assignment(owned, CooperativeStickyUserData(generation).encode())
    assert Assignment.decode(assignment.encode(), strict=True) == assignment
    assert assignment.generation == CooperativeStickyUserData(generation).generation


def damaged(valid: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Valid bytes with one byte changed, truncated, or with further bytes at the end."""

    def change(data: bytes, at: int, byte: int, cut: int, more: bytes) -> bytes:
        changed = bytearray(data)
        if changed:
            changed[at % len(changed)] = byte
        return bytes(changed[: len(changed) - cut % (len(changed) + 1)]) + more

    small = st.integers(0, 3) | st.integers(0, 255)
    return st.builds(change, valid, st.integers(0, 200), small, st.just(0) | st.integers(0, 200), st.binary(max_size=5))


sticky_bytes = st.builds(
    lambda prefix, owned, generation: prefix + StickyUserData(owned, generation).encode(),
    st.sampled_from([b"", b"\0\0", b"\0\1"]),
    partitions,
    int32,
)
words = st.lists(st.integers(0, 3) | int32, max_size=12).map(
    lambda values: b"".join(value.to_bytes(4, signed=True) for value in values)
)
hostile = (
    st.binary(max_size=60) | words | damaged(sticky_bytes) | damaged(subscriptions.map(lambda value: value.encode()))
)


@given(hostile)
@example(bytes.fromhex("00000001000174000000020000000000000002aabb"))
@example(b"\0\0\0\1\0\4\xe2\x82\xf0\x9f\0\0\0\1\0\0\0\0\0\0\0\5")
def test_both_readers_agree_on_all_bytes(data: bytes) -> None:
    def either(read: Callable[[], object]) -> object:
        """The decoded value, or the refusal. Both readers have the same text for refusals of the bytes."""
        try:
            return read()
        except UserDataError as error:
            return str(error) if str(error).startswith("cannot read") else UserDataError

    def agree(core: Callable[[], object], second: Callable[[], object]) -> None:
        assert either(core) == either(second)

    agree(lambda: StickyUserData.decode(data, strict=True), lambda: userdata_reader.sticky(data))
    agree(lambda: CooperativeStickyUserData.decode(data, strict=True), lambda: userdata_reader.cooperative(data))
    agree(lambda: StreamJoinUserData.decode(data, strict=True), lambda: userdata_reader.stream_join(data))
    for strict in (False, True):
        agree(
            partial(Subscription.decode, data, strict=strict),
            partial(userdata_reader.subscription, data, strict=strict),
        )
        agree(partial(Assignment.decode, data, strict=strict), partial(userdata_reader.assignment, data, strict=strict))
