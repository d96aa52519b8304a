"""What an autoscaler would do with a consumer group: captured lag and rates against a policy of KEDA or of an HPA.

[`replay`][kafka_assignors.autoscale.replay] runs one group, one policy and one strategy. The planner's command
`autoscale` does that for one group, and `kafka_assignors.spark.autoscale` for all groups of a capture.

>>> from kafka_assignors import by_name
>>> load = Workload.steady("billing", {"orders": 4}, rate=10.0, arrivals=30.0, lag=6_000, seconds=3_600, members=2)
>>> policy = parse_policy("keda(lagThreshold=1000, maxReplicaCount=4)")
>>> found = replay(load, policy, by_name("cooperative-sticky"))
>>> found.least_replicas, found.most_replicas, found.rebalances > 0
(2, 4, True)
"""

from kafka_assignors.autoscale.load import Offsets, Workload, member_counts, workload
from kafka_assignors.autoscale.policy import Policy, ScalingPolicy, ScalingRules, parse_policy
from kafka_assignors.autoscale.simulation import Replayed, Timing, replay

__all__ = [
    "Offsets",
    "Policy",
    "Replayed",
    "ScalingPolicy",
    "ScalingRules",
    "Timing",
    "Workload",
    "member_counts",
    "parse_policy",
    "replay",
    "workload",
]
