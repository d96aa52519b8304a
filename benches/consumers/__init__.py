"""Our Consumer for confluent-kafka beside the client's own, on a real broker: reading, and rebalances of many members.

`reading` reads a topic, `group` makes a group rebalance, whose members are in processes of `member`, and `wire` times
what the leader does between two requests. `test_consumer.py` holds the ratios to their bounds.
"""
