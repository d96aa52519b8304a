"""Hints about the libraries of members, from their client ids. A program may choose any client id."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_assignors.cluster import GroupMember

__all__ = ["ClientHint", "client_hints"]

_UUID = re.compile(r"-[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$")
# Patterns of default client ids, each with its library and the needs of this library.
_LIBRARIES: tuple[tuple[str, str, str], ...] = (
    (
        r"kafka-python",
        "kafka-python",
        "it does not speak the protocol; kafka_assignors.clients.kafka_python.KafkaConsumer does, with "
        "group_protocol='consumer'",
    ),
    (
        r"aiokafka",
        "aiokafka",
        "it does not speak the protocol; kafka_assignors.clients.aiokafka.AIOKafkaConsumer does, with "
        "group_protocol='consumer'",
    ),
    (r"consumer-.*-\d+$", "Java's consumer", "it speaks the protocol from 4.0 on"),
    (r"rdkafka$", "librdkafka", "it speaks the protocol from 2.12 on; 2.15 is advised"),
    (r"kgo$", "franz-go", "it speaks the protocol from 1.19 on, by an option"),
)


@dataclass(frozen=True, slots=True)
class ClientHint:
    """A hint about a library, from a client id. It is no more than a hint.

    Attributes:
        client_id: the client id; of several that differ in a number, the first one.
        library: the library whose default it is; None if it is no library's.
        members: how many members have such a client id.
        text: the needs of that library; empty without one.
    """

    client_id: str
    library: str | None
    members: int
    text: str


def client_hints(members: Iterable[GroupMember]) -> list[ClientHint]:
    """The hints, the most frequent library first. Client ids that are no library's default count as one."""
    found: dict[str | None, list[str]] = {}
    texts = {library: text for _, library, text in _LIBRARIES}
    for member in members:
        name = _client_id(member)
        library = next((each for form, each, _ in _LIBRARIES if re.match(form, name)), None) if name else None
        found.setdefault(library, []).append(name or "")
    hints = [
        ClientHint(min(names), library, len(names), texts.get(library or "", "")) for library, names in found.items()
    ]
    return sorted(hints, key=lambda hint: (hint.library is None, -hint.members, hint.client_id))


def _client_id(member: GroupMember) -> str | None:
    """The client id; if it is not known, the beginning of a dynamic member's id, since brokers put it there."""
    if member.client_id is not None:
        return member.client_id
    if member.instance_id is not None or not _UUID.search(member.id):
        return None
    return _UUID.sub("", member.id)
