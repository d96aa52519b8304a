"""A consumer group at work, watched: `make demo`.

Consumers of kafka-python, aiokafka and confluent-kafka, each a process of its own, share one group on the embedded
Kafka while members join, are killed and change their subscriptions. `story` plays it, `board` follows it,
`ledger` checks it and `view` shows it.
"""
