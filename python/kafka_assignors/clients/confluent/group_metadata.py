"""The consumer-group metadata of our member, for a transactional producer.

To users the metadata are opaque bytes, whose format is librdkafka's. So the format is checked each time: the metadata
that librdkafka makes for a consumer that is no member are made here as well, and must be equal.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException

from kafka_assignors.errors import StateError

if TYPE_CHECKING:
    from kafka_assignors.member.membership import MemberThread

__all__ = ["group_metadata", "group_metadata_of"]

_MAGIC = b"CGMDv2:"


def group_metadata(native: bytes, group_id: str, member_id: str, generation: int, instance_id: str | None) -> bytes:
    """The metadata of a member.

    Args:
        native: librdkafka's metadata for a consumer of this group that is no member.
        group_id: the group.
        member_id: empty for no member.
        generation: -1 for no member.
        instance_id: of a static member.

    Raises:
        StateError: librdkafka uses another format. No format is guessed, since with wrong metadata a transaction would
            not be fenced.

    >>> native = b"CGMDv2:" + (-1).to_bytes(4, sys.byteorder, signed=True) + b"g" + bytes([0, 0, 1])
    >>> group_metadata(native, "g", "me", 7, None).endswith(b"g" + bytes([0]) + b"me" + bytes([0, 1]))
    True
    """
    if native != _encode(group_id, "", -1, None):
        raise StateError(
            "this version of librdkafka writes consumer-group metadata in a form that is not known here, so offsets "
            "cannot be sent to a transaction safely; use confluent-kafka 2.16"
        )
    return _encode(group_id, member_id, generation, instance_id)


def group_metadata_of(member: MemberThread, native: bytes, group_id: str, instance_id: str | None) -> bytes:
    """The metadata of a consumer that has subscribed. They name its membership, or its last one.

    A consumer that unsubscribed before it became a member has librdkafka's metadata, which name no member.

    Raises:
        KafkaException: `_STATE`: the consumer is subscribed and was never a member. Metadata without a member would
            not be fenced: a broker accepts them from any producer.
    """
    named = member.fencing
    if named is not None:
        return group_metadata(native, group_id, *named, instance_id)
    if member.is_subscribed:
        reason = "the consumer is not a member of its group yet: send offsets after its first on_assign"
        raise KafkaException(KafkaError(KafkaError._STATE, reason))
    return native


def _encode(group_id: str, member_id: str, generation: int, instance_id: str | None) -> bytes:
    number = generation.to_bytes(4, sys.byteorder, signed=True)
    instance = b"\1" if instance_id is None else b"\0" + instance_id.encode() + b"\0"
    return _MAGIC + number + group_id.encode() + b"\0" + member_id.encode() + b"\0" + instance
