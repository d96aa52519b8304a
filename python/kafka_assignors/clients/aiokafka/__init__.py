"""aiokafka's consumer and producer with our assignors and partitioners, and assignors to plug into its own consumer.

`AIOKafkaConsumer` is aiokafka's, in whose group our member runs. `AIOKafkaProducer` is aiokafka's, with a partitioner
that is sticky as in Java. The rest is for programs that cannot change the class of their consumer:

    consumer = aiokafka.AIOKafkaConsumer("orders", group_id="g", partition_assignment_strategy=[StickyAssignor()])

Give each consumer an instance of its own. aiokafka also takes a class, but then all consumers of a process have the
same state (aiokafka #1175).

aiokafka does not pass the generation to an assignor (#1176). A plug-in takes it from the first of these that has it:

1. the consumer that it is attached to (`attach`, before `start()`; `consumer(...)` makes a consumer and attaches it);
2. the caller of its methods;
3. the assignments, in which our leaders write it.

aiokafka's leaders see only the oldest fields of the members' metadata: topics and user data. The sticky strategy needs
no others, but racks count only while a member of another client leads.
"""

from kafka_assignors.clients.common.releases import incompatible, warn_if_newer
from kafka_assignors.errors import MissingDependencyError
from kafka_assignors.member.rebalance_report import RebalanceReport

try:
    import aiokafka
except ImportError as error:
    raise MissingDependencyError(
        "kafka_assignors.clients.aiokafka needs aiokafka: pip install kafka-assignors[aiokafka]"
    ) from error

try:
    from kafka_assignors.clients.aiokafka.assignors import (
        CustomAssignor,
        LagBasedAssignor,
        StickyAssignor,
        StickyStreamJoinAssignor,
        consumer,
    )
    from kafka_assignors.clients.aiokafka.diff_listener import RebalanceDiffListener
    from kafka_assignors.clients.aiokafka.drop_in import AIOKafkaConsumer
    from kafka_assignors.clients.aiokafka.lag import AdminLagSource
    from kafka_assignors.clients.aiokafka.producer import AIOKafkaProducer
except (AttributeError, ImportError) as error:
    raise incompatible("aiokafka", aiokafka.__version__, error) from error

warn_if_newer("aiokafka", aiokafka.__version__)

__all__ = [
    "AIOKafkaConsumer",
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
