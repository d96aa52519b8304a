"""The owners of the partitions once a rebalance is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_assignors.group import Plan

__all__ = ["final_owners"]


def final_owners(plan: Plan) -> tuple[dict[tuple[str, int], str], int]:
    """The owners once the rebalance is over, and how many partitions a cooperative rebalance withholds until then."""
    owners = {
        (topic, number): member
        for member, topics in plan.assignment.items()
        for topic, numbers in topics.items()
        for number in numbers
    }
    withheld = 0
    for move in plan.moves:
        if move.target is not None and (move.topic, move.partition) not in owners:
            owners[move.topic, move.partition] = move.target
            withheld += 1
    return owners, withheld
