"""The user data of the assignments that a leader sends: the generation, or nothing.

A broker converts a running group to the protocol of KIP-848 only if the group's assignments have no user data. So the
generation is also a guard: no stray consumer of that protocol can convert the group.
"""

from __future__ import annotations

import struct

__all__ = ["with_generation", "without_generation"]

_NULL = struct.pack(">i", -1)
# The length of a generation, and the generation.
_GENERATION = struct.Struct(">ii")


def with_generation(assignment: bytes, generation: int) -> bytes:
    """An assignment of ours, with the generation as user data if it has none.

    The sticky strategies write the generation there by themselves.
    """
    if not assignment.endswith(_NULL):
        return assignment
    return assignment[: -len(_NULL)] + _GENERATION.pack(4, generation)


def without_generation(assignment: bytes) -> bytes:
    """An assignment of ours without the generation: its user data is null.

    >>> from kafka_assignors.userdata import Assignment
    >>> sent = Assignment({"t": [0]}, user_data=bytes([0, 0, 0, 7])).encode()
    >>> without_generation(sent) == Assignment({"t": [0]}).encode()
    True
    """
    # An assignment with a generation never ends so, since no generation is -1.
    if assignment.endswith(_NULL):
        return assignment
    return assignment[: -_GENERATION.size] + _NULL
