"""The size of the record that a broker keeps of a group (docs/operations.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_assignors.cluster.groups import ClassicMember, GroupSnapshot

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["record_bytes"]

# Estimates, as in the core's `planning/leader/record.rs`.
_CLIENT_ID_ALLOWANCE, _HOST_ALLOWANCE = 24, 16
_UUID_SUFFIX = 37
# The head of a batch and of its only record with the longest lengths; the key's version and its length of the group id;
# the value before its members, without texts: version, type, generation, protocol, leader, time, number of members.
_BATCH, _KEY, _VALUE = 61 + 19, 4, 2 + 2 + 4 + 2 + 2 + 8 + 4
# The lengths of member id, instance id, client id and host, two timeouts, the lengths of subscription and assignment.
_MEMBER = 4 * 2 + 2 * 4 + 2 * 4


def record_bytes(group_id: str, group: GroupSnapshot) -> int | None:
    """The size in bytes of the record that the broker wrote of a group's generation (GroupMetadataValue, version 3).

    Client ids and hosts that the snapshot does not have are estimated. None if the group is not Stable, or if the
    broker assigns it, which writes a record for each member.
    """
    if group.record_bytes is not None:
        return group.record_bytes
    if group.protocol != "classic" or not group.members:
        return None
    members = [member for member in group.members if isinstance(member, ClassicMember)]
    if not all(member.subscription for member in members):
        return None
    size = _BATCH + _KEY + len(group_id.encode()) + _VALUE + len(group.protocol_type) + len(group.assignor.encode())
    return size + max(len(member.id.encode()) for member in members) + _of_members(members)


def _of_members(members: Iterable[ClassicMember]) -> int:
    size = 0
    for member in members:
        texts = len(member.id.encode()) + len((member.instance_id or "").encode())
        if member.client_id is not None:
            texts += len(member.client_id.encode())
        elif member.instance_id is None and len(member.id.encode()) > _UUID_SUFFIX:
            texts += len(member.id.encode()) - _UUID_SUFFIX
        else:
            texts += _CLIENT_ID_ALLOWANCE
        texts += _HOST_ALLOWANCE if member.client_host is None else len(member.client_host.encode())
        size += _MEMBER + texts + len(member.subscription) + len(member.assignment)
    return size
