"""The plug-ins, consumers and producers for each Kafka client.

Import the module of your client, `kafka_assignors.clients.kafka_python`, `kafka_assignors.clients.aiokafka` or
`kafka_assignors.clients.confluent`; none of them is imported here, nor imports another.
"""

from kafka_assignors.member.rebalance_report import RebalanceReport

__all__ = ["RebalanceReport"]
