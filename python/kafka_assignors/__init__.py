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
    IncompatibleClientError,
    KafkaAssignorsError,
    LagError,
    MissingDependencyError,
    OptionError,
    PartitionerError,
    PartitionerTypeError,
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
from kafka_assignors.partitioners import (
    AdaptivePartitioner,
    DefaultPartitioner,
    Partitioner,
    RoundRobinPartitioner,
    UniformStickyPartitioner,
    murmur2,
)

__all__ = [
    "AdaptivePartitioner",
    "Certificate",
    "CooperativeStickyAssignor",
    "DefaultPartitioner",
    "Group",
    "GroupError",
    "GroupTypeError",
    "IncompatibleClientError",
    "KafkaAssignorsError",
    "LagBasedAssignor",
    "LagError",
    "Member",
    "MemberState",
    "MissingDependencyError",
    "Move",
    "Notice",
    "OptionError",
    "Partitioner",
    "PartitionerError",
    "PartitionerTypeError",
    "Plan",
    "PlanError",
    "RangeAssignor",
    "RecordSizeWarning",
    "RoundRobinAssignor",
    "RoundRobinPartitioner",
    "StateError",
    "StickyAssignor",
    "StickyStreamJoinAssignor",
    "Topic",
    "Unassigned",
    "UniformStickyPartitioner",
    "UserDataError",
    "__version__",
    "balance_score",
    "murmur2",
]
