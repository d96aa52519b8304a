"""The one file format of snapshots: JSON, versioned, read strictly."""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from kafka_assignors.cluster.groups import (
    ClassicMember,
    ConsumerMember,
    GroupMember,
    GroupSnapshot,
    TopicSnapshot,
)
from kafka_assignors.errors import SnapshotError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = ["FORMAT", "VERSION", "dumps", "loads"]

FORMAT = "kafka-assignors-snapshot"
VERSION = 1

# Kafka's own bounds: no more partitions than 32 bits can number, no larger offsets than 64 bits.
_MOST_PARTITIONS = 2**31 - 1
_MOST_OFFSET = 2**63 - 1
# The end of the year 9999: no date of Python's is later.
_LAST_MS = 253_402_300_799_999

S = TypeVar("S")
T = TypeVar("T")


# ---- writing --------------------------------------------------------------------------------------------------------


def dumps(
    *,
    cluster: str,
    taken_ms: int,
    topics: Mapping[str, TopicSnapshot],
    groups: Mapping[str, GroupSnapshot],
    record_limit: int | None,
) -> str:
    """The text of a file with the fields of a `Snapshot`: keys in one order, so that equal snapshots are equal texts.

    Only targets keep their order, which is the broker's.

    O(bytes).
    """
    document = {
        "format": FORMAT,
        "version": VERSION,
        "cluster": cluster,
        "taken_ms": taken_ms,
        "record_limit": record_limit,
        "topics": {name: _topic(topics[name]) for name in sorted(topics)},
        "groups": {name: _group(groups[name]) for name in sorted(groups)},
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _topic(topic: TopicSnapshot) -> dict[str, Any]:
    return _without_none(
        partitions=topic.partitions,
        racks=None if topic.racks is None else [sorted(racks) for racks in topic.racks],
        begin=_list(topic.begin),
        end=_list(topic.end),
        id=topic.id,
    )


def _group(group: GroupSnapshot) -> dict[str, Any]:
    return _without_none(
        protocol=group.protocol,
        state=group.state,
        assignor=group.assignor,
        protocol_type=group.protocol_type,
        epoch=group.epoch,
        record_bytes=group.record_bytes,
        members=[_member(member) for member in group.members],
        committed={topic: list(group.committed[topic]) for topic in sorted(group.committed)},
    )


def _member(member: GroupMember) -> dict[str, Any]:
    who = {
        "id": member.id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
    }
    if isinstance(member, ClassicMember):
        subscription, assignment = _base64(member.subscription), _base64(member.assignment)
        return _without_none(**who, subscription=subscription, assignment=assignment)
    return _without_none(
        **who,
        rack=member.rack,
        epoch=member.epoch,
        classic=member.classic,
        topics=list(member.topics),
        topic_regex=member.topic_regex,
        owned=_partitions(member.owned),
        target={topic: list(numbers) for topic, numbers in member.target.items()},
        place=member.place,
    )


def _without_none(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _list(values: Sequence[int | None] | None) -> list[int | None] | None:
    return None if values is None else list(values)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _partitions(partitions: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    return {topic: list(partitions[topic]) for topic in sorted(partitions)}


# ---- reading --------------------------------------------------------------------------------------------------------


def loads(text: str | bytes, snapshot_of: Callable[..., S]) -> S:
    """Reads the text of a file. O(bytes).

    Args:
        text: of the file.
        snapshot_of: makes a snapshot of the fields of a `Snapshot`, given by keyword.

    Raises:
        SnapshotError: it is no snapshot of a version that is read here; the message names the field.
    """
    try:
        document = json.loads(text, object_pairs_hook=_no_repeats, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise SnapshotError(f"this is not a snapshot: it is no JSON ({error})") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise SnapshotError(f'this is not a snapshot: its "format" is not "{FORMAT}"; make one with `snapshot`')
    if document.get("version") != VERSION:
        raise SnapshotError(
            f"version is {_shown(document.get('version'))}; this release reads version {VERSION}: use a newer "
            "kafka-assignors, or take the snapshot again"
        )
    read = _Object(document, "")
    read.take("format")
    read.take("version")
    snapshot = snapshot_of(
        cluster=read.text("cluster"),
        taken_ms=read.number("taken_ms", 0, _LAST_MS),
        topics=read.objects("topics", _read_topic),
        groups=read.objects("groups", _read_group),
        record_limit=read.optional("record_limit", lambda: read.number("record_limit", 0, 2**31 - 1)),
    )
    read.end()
    return snapshot


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if not _is_unicode(name):
            raise SnapshotError(f"the field {name!r} is not valid Unicode; give a name without lone surrogates")
        if name in found:
            raise SnapshotError(f"the field {name!r} is given twice in one object; remove one of them")
        found[name] = value
    return found


def _no_constant(name: str) -> NoReturn:
    raise SnapshotError(f"{name} is not a value that a snapshot has; give a number")


def _read_topic(read: _Object) -> TopicSnapshot:
    partitions = read.number("partitions", 0, _MOST_PARTITIONS)

    def racks() -> tuple[frozenset[str], ...]:
        lists = read.list("racks", partitions)
        return tuple(frozenset(_texts(each, read.at(f"racks[{number}]"))) for number, each in enumerate(lists))

    def offsets(name: str) -> tuple[int | None, ...]:
        values = read.list(name, partitions)
        return tuple(_offset(value, read.at(f"{name}[{number}]")) for number, value in enumerate(values))

    return TopicSnapshot(
        partitions,
        read.optional("racks", racks),
        read.optional("begin", lambda: offsets("begin")),
        read.optional("end", lambda: offsets("end")),
        read.optional("id", lambda: read.text("id")),
    )


def _read_group(read: _Object) -> GroupSnapshot:
    protocol = read.text("protocol")
    if protocol not in ("classic", "consumer"):
        _wrong(read.at("protocol"), protocol, '"classic" or "consumer"')
    member = _read_classic if protocol == "classic" else _read_consumer
    members = [_whole(member, each, read.at(f"members[{number}]")) for number, each in enumerate(read.list("members"))]
    seen: set[str] = set()
    for number, each in enumerate(members):
        if each.id in seen:
            raise SnapshotError(f"{read.at(f'members[{number}].id')} is {each.id!r} a second time; ids are unique")
        seen.add(each.id)
    committed = _Object(read.take("committed"), read.at("committed"))
    return GroupSnapshot(
        protocol=protocol,  # type: ignore[arg-type]
        state=read.text("state"),
        assignor=read.text("assignor"),
        protocol_type=read.text("protocol_type"),
        epoch=read.optional("epoch", lambda: read.number("epoch", -1, 2**31 - 1)),
        members=tuple(sorted(members, key=lambda each: each.id)),
        committed={
            topic: tuple(
                _offset(value, committed.at(f"{topic}[{number}]")) for number, value in enumerate(committed.list(topic))
            )
            for topic in committed.names()
        },
        record_bytes=read.optional("record_bytes", lambda: read.number("record_bytes", 0, _MOST_OFFSET)),
    )


def _who(read: _Object) -> dict[str, Any]:
    def optional(name: str) -> str | None:
        return read.optional(name, lambda: read.text(name))

    return {
        "id": read.text("id"),
        "instance_id": optional("instance_id"),
        "client_id": optional("client_id"),
        "client_host": optional("client_host"),
    }


def _read_classic(read: _Object) -> GroupMember:
    return ClassicMember(**_who(read), subscription=read.bytes("subscription"), assignment=read.bytes("assignment"))


def _read_consumer(read: _Object) -> GroupMember:
    def partitions(name: str) -> dict[str, tuple[int, ...]]:
        of = _Object(read.take(name), read.at(name))
        return {
            topic: tuple(
                _number(value, of.at(f"{topic}[{number}]"), 0, _MOST_PARTITIONS)
                for number, value in enumerate(of.list(topic))
            )
            for topic in of.names()
        }

    return ConsumerMember(
        **_who(read),
        topics=tuple(_texts(read.take("topics"), read.at("topics"))),
        topic_regex=read.optional("topic_regex", lambda: read.text("topic_regex")),
        rack=read.optional("rack", lambda: read.text("rack")),
        epoch=read.number("epoch", -(2**31), 2**31 - 1),
        owned=partitions("owned"),
        target=partitions("target"),
        classic=read.optional("classic", lambda: read.boolean("classic")),
        place=read.optional("place", lambda: read.number("place", 0, 2**31 - 1)),
    )


class _Object:
    """One object of the document. Its fields are taken one by one; a field that is left at the end is an error."""

    def __init__(self, value: object, path: str) -> None:
        if not isinstance(value, dict):
            _wrong(path, value, "an object")
        self._fields = dict(value)
        self._path = path

    def at(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def names(self) -> Iterator[str]:
        return iter(list(self._fields))

    def take(self, name: str) -> Any:
        if name not in self._fields:
            raise SnapshotError(f"{self.at(name)} is missing; take the snapshot again, or add it")
        return self._fields.pop(name)

    def optional(self, name: str, read: Callable[[], T]) -> T | None:
        if self._fields.get(name) is None:
            self._fields.pop(name, None)
            return None
        return read()

    def text(self, name: str) -> str:
        return _text(self.take(name), self.at(name))

    def number(self, name: str, least: int, most: int) -> int:
        return _number(self.take(name), self.at(name), least, most)

    def boolean(self, name: str) -> bool:
        value = self.take(name)
        if not isinstance(value, bool):
            _wrong(self.at(name), value, "true or false")
        return value

    def bytes(self, name: str) -> bytes:
        text = self.text(name)
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as error:
            raise SnapshotError(f"{self.at(name)} is not base64: {error}") from error

    def list(self, name: str, length: int | None = None) -> list[Any]:
        value = self.take(name)
        if not isinstance(value, list):
            _wrong(self.at(name), value, "a list")
        if length is not None and len(value) != length:
            raise SnapshotError(f"{self.at(name)} has {len(value)} entries; give one for each of {length} partitions")
        return value

    def objects(self, name: str, read: Callable[[_Object], T]) -> dict[str, T]:
        of = _Object(self.take(name), self.at(name))
        return {key: _whole(read, of.take(key), of.at(key)) for key in of.names()}

    def end(self) -> None:
        """Refuses fields that were not taken: they are misspelt, or of a newer version."""
        for name in self._fields:
            raise SnapshotError(f"{self.at(name)} is not a field that version {VERSION} has; remove it")


def _whole(read: Callable[[_Object], T], value: object, path: str) -> T:
    of = _Object(value, path)
    found = read(of)
    of.end()
    return found


def _text(value: object, path: str) -> str:
    if not isinstance(value, str):
        _wrong(path, value, "a text")
    if not _is_unicode(value):
        raise SnapshotError(f"{path} is not valid Unicode; give a text without lone surrogates")
    return value


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _texts(value: object, path: str) -> list[str]:
    if not isinstance(value, list):
        _wrong(path, value, "a list of texts")
    return [_text(each, f"{path}[{number}]") for number, each in enumerate(value)]


def _number(value: object, path: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        _wrong(path, value, "an integer")
    if not least <= value <= most:
        _wrong(path, value, f"a number from {least} to {most}")
    return value


def _offset(value: object, path: str) -> int | None:
    return None if value is None else _number(value, path, 0, _MOST_OFFSET)


def _wrong(path: str, value: object, wanted: str) -> NoReturn:
    raise SnapshotError(f"{path or 'the document'} is {_shown(value)}; give {wanted}")


def _shown(value: object) -> str:
    """A value in JSON, shortened; or its kind, if it is an object or a list."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = json.dumps(value, ensure_ascii=False) if not isinstance(value, int) or abs(value) < 10**30 else "huge"
    return text if len(text) <= 60 else f"{text[:57]}…"
