"""The common half of the plug-ins, consumers and producers of all clients. Nothing here imports a Kafka client."""
