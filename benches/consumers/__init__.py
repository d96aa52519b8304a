"""Our consumers beside the clients' own, on a real broker: reading, rebalances of many members, and idling.

`reading` and `python_reading` read a topic. `group` makes a group rebalance; its members run in processes of `member`,
on the client of `on_confluent`, `on_kafka_python` or `on_aiokafka`. `wire` times the work of the leader between two
requests. `first_records` waits for the first record of a partition that changes hands, `rereading` counts the bytes
that are fetched again of a kept partition, and `idle` is a consumer without records. `test_consumer.py` and
`test_python_consumers.py` compare the ratios with their bounds.
"""
