"""Exact, fast and sticky partition assignment for Kafka consumer groups.

>>> group = Group(
...     topics={"orders": 4, "payments": 2},
...     members=[
...         Member("c0", topics=["orders", "payments"], owned={"orders": [0, 1, 2, 3]}, generation=7),
...         Member("c1", topics=["orders"]),
...     ],
... )
>>> plan = StickyAssignor().assign(group)
>>> sorted(plan)
['c0', 'c1']
"""

from kafka_assignors._core import __version__
from kafka_assignors.assignors import (
    CooperativeStickyAssignor,
    LagBasedAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    StickyStreamJoinAssignor,
)
from kafka_assignors.errors import (
    GroupError,
    GroupTypeError,
    KafkaAssignorsError,
    LagError,
    MissingDependencyError,
    OptionError,
    PlanError,
    RecordSizeWarning,
    StateError,
    UserDataError,
)
from kafka_assignors.group import (
    Certificate,
    Group,
    Member,
    MemberState,
    Move,
    Notice,
    Plan,
    Topic,
    Unassigned,
    balance_score,
)

__all__ = [
    "Certificate",
    "CooperativeStickyAssignor",
    "Group",
    "GroupError",
    "GroupTypeError",
    "KafkaAssignorsError",
    "LagBasedAssignor",
    "LagError",
    "Member",
    "MemberState",
    "MissingDependencyError",
    "Move",
    "Notice",
    "OptionError",
    "Plan",
    "PlanError",
    "RangeAssignor",
    "RecordSizeWarning",
    "RoundRobinAssignor",
    "StateError",
    "StickyAssignor",
    "StickyStreamJoinAssignor",
    "Topic",
    "Unassigned",
    "UserDataError",
    "__version__",
    "balance_score",
]
