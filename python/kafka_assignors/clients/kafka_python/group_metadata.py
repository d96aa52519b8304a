"""The consumer-group metadata of our member, for a transactional producer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka import structs

if TYPE_CHECKING:
    from kafka_assignors.clients.kafka_python.config import ConsumerConfig
    from kafka_assignors.member.membership import MemberThread

__all__ = ["group_metadata_of"]


def group_metadata_of(member: MemberThread | None, config: ConsumerConfig) -> Any:
    """The client's `ConsumerGroupMetadata`. They name the membership, or the last one, so that a zombie is fenced.

    Args:
        member: None before the first subscription.
        config: the consumer's.
    """
    member_id, generation = (None if member is None else member.fencing) or ("", -1)
    named = config.group_id, generation, member_id, config.group_instance_id
    # From version 3.0.1 on the metadata also contain a state, for display only.
    states = getattr(structs, "MemberState", None)
    if states is None or not hasattr(structs.ConsumerGroupMetadata, "state"):
        return structs.ConsumerGroupMetadata(*named)
    if member is None or generation < 0:
        return structs.ConsumerGroupMetadata(*named, states.UNJOINED)
    return structs.ConsumerGroupMetadata(*named, states.STABLE if member.is_stable else states.REBALANCING)
