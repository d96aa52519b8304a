"""Parts that the tests share: Kafka brokers, consumer processes, and a trace of the owners of each partition."""
