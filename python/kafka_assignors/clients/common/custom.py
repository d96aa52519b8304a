"""The common half of the plug-ins for a user's own assignor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from kafka_assignors.clients.common.adapter import ClientAdapter
from kafka_assignors.errors import KafkaAssignorsError, OptionError
from kafka_assignors.own import CustomAssignor
from kafka_assignors.userdata import CooperativeStickyUserData, CustomUserData, StickyUserData, Subscription

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kafka_assignors.assignors import JoinedMember
    from kafka_assignors.clients.common.adapter import Guard
    from kafka_assignors.member.rebalance_report import RebalanceReport

__all__ = ["CustomAdapter"]


class CustomAdapter(ClientAdapter):
    """Your own [`CustomAssignor`][kafka_assignors.own.CustomAssignor] as a plug-in of one client, for one consumer.

    Args:
        assignor: your assignor. Several plug-ins may share one.
        rack: `client.rack` of this consumer, which `plan` gets as `Member.rack`.
        on_rebalance: as for `ClientAdapter`.
        on_broker_assignor: as for `ClientAdapter`.

    Raises:
        OptionError: no `CustomAssignor`, a name that is taken, or a cooperative assignor for a client without the
            cooperative protocol.
    """

    _cooperates: ClassVar[bool]

    def __init__(
        self,
        assignor: CustomAssignor,
        *,
        rack: str | None = None,
        on_rebalance: Callable[[RebalanceReport], object] | None = None,
        on_broker_assignor: Guard = "fail",
    ) -> None:
        if not isinstance(assignor, CustomAssignor):
            raise OptionError(f"assignor is of type {type(assignor).__name__}; give a kafka_assignors.CustomAssignor")
        assignor._checked()
        self.name = assignor.name
        if assignor.cooperative and not self._cooperates:
            raise OptionError(f"the assignor {self.name!r} is cooperative, which {self._client} does not know")
        self._begin(assignor, rack, on_rebalance, on_broker_assignor)

    def _claiming(self, members: Sequence[JoinedMember]) -> Sequence[JoinedMember]:
        return [_as_sticky(member, cooperative=self._assignor.cooperative) for member in members]


def _as_sticky(member: JoinedMember, *, cooperative: bool) -> JoinedMember:
    """The member with the same claims, encoded as the sticky strategy of the same protocol does."""
    *who, metadata = member
    try:
        read = Subscription.decode(metadata)
    except KafkaAssignorsError:
        return member
    custom = CustomUserData.decode(read.user_data)
    user_data: Any = StickyUserData(custom.assignments, custom.generation)
    if cooperative:
        user_data = CooperativeStickyUserData(custom.generation)
    same = Subscription(read.topics, user_data.encode(), read.owned, read.generation, read.rack)
    return (*who, same.encode())
