"""What people ask of their topics and groups, answered as data; `kafka_assignors.cli` shows the answers."""
