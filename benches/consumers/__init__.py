"""Our Consumer for confluent-kafka beside the client's, on a real broker: reading, and rebalances of many members.

`reading` reads a topic. `group` makes a group rebalance; its members run in processes of `member`. `wire` times the
work of the leader between two requests. `test_consumer.py` compares the ratios with their bounds.
"""
