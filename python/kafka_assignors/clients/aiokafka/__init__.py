"""The sticky assignor, the stream join, the lag-based assignor and a producer with our partitioners, for aiokafka.

    consumer = AIOKafkaConsumer("orders", group_id="g", partition_assignment_strategy=[StickyAssignor()])

Give each consumer an instance of its own. aiokafka also takes a class, but then all consumers of a process have the
same state (aiokafka #1175).

aiokafka does not pass the generation to an assignor (#1176). Ours takes it from the first of these that has it:

1. the consumer that it is attached to (`attach`, before `start()`; `consumer(...)` makes a consumer and attaches it);
2. the caller of its methods;
3. the assignments, in which our leaders write it.

aiokafka's leaders see only the oldest fields of the members' metadata: topics and user data. The sticky strategy needs
no others, but racks count only while a member of another client leads.

`AIOKafkaProducer` is aiokafka's, with a partitioner that is sticky as in Java.
"""

from kafka_assignors.errors import MissingDependencyError
from kafka_assignors.member.rebalance_report import RebalanceReport

try:
    import aiokafka  # noqa: F401

    from kafka_assignors.clients.aiokafka.assignors import (
        CustomAssignor,
        LagBasedAssignor,
        StickyAssignor,
        StickyStreamJoinAssignor,
        consumer,
    )
    from kafka_assignors.clients.aiokafka.diff_listener import RebalanceDiffListener
    from kafka_assignors.clients.aiokafka.lag import AdminLagSource
    from kafka_assignors.clients.aiokafka.producer import AIOKafkaProducer
except ImportError as error:
    raise MissingDependencyError(
        "kafka_assignors.clients.aiokafka needs aiokafka 0.14: pip install kafka-assignors[aiokafka]"
    ) from error

__all__ = [
    "AIOKafkaProducer",
    "AdminLagSource",
    "CustomAssignor",
    "LagBasedAssignor",
    "RebalanceDiffListener",
    "RebalanceReport",
    "StickyAssignor",
    "StickyStreamJoinAssignor",
    "consumer",
]
