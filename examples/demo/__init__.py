"""A consumer group at work, watched: `make demo`.

Consumers of kafka-python, aiokafka and confluent-kafka, each a process of its own, share one group on the embedded
Kafka while members join, are killed and change their subscriptions. `story` starts and stops the members, `board`
follows their assignments, `ledger` checks the messages, and `view` shows both.
"""
