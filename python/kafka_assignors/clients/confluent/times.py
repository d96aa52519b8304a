"""The waits of the confluent consumer in seconds (`_MS`: milliseconds), each with its reason.

The times of its membership are in `kafka_assignors.member.times`.
"""

__all__ = [
    "BLOCKED_CALLBACK",
    "COMMIT_CHECK",
    "CREATE_TOPIC",
    "END_OFFSETS",
    "LEADER_LOOKUP",
    "NATIVE_CLOSE",
    "NATIVE_WAIT",
    "START_LOOKUP",
    "STATISTICS_LATE",
    "STATISTICS_MS",
]

# ---- Waiting for records and for the group --------------------------------------------------------------------------

NATIVE_WAIT = 0.1
"""The longest wait inside librdkafka by a `poll` that attends to the group.

Only a record ends such a wait. If the group changes meanwhile, the application notices it at most this much later.
"""

BLOCKED_CALLBACK = 0.5
"""How long the callback for statistics waits for the new assignment, while the application is blocked in librdkafka.

An eager rebalance takes all partitions away before it assigns the new ones. Without the wait, the application would
get the new ones with the next statistics only, an interval of `STATISTICS_MS` later. The wait has an end, since it
prolongs the application's own timeout.
"""

STATISTICS_MS = 3_000
"""The interval in milliseconds at which an application that is blocked in librdkafka attends to its group, unless the
user sets `statistics.interval.ms`.

While the application is blocked, only the callback for statistics is called at an interval. A shorter interval costs
more: the statistics of 3,000 partitions are 2.3 MB, and while they are on, librdkafka 2.16 keeps a timer for each
partition in a sorted list. So the interval is the default interval of heartbeats.
"""

STATISTICS_LATE = 1.5
"""The next statistics are assumed to arrive within this number of their intervals.

If the session may end before that, the partitions are paused. Otherwise the blocked application could be given records
of partitions that belong to another member by then.
"""

# ---- Offsets --------------------------------------------------------------------------------------------------------

COMMIT_CHECK = 1.0
"""How long to wait for the answer whether a partition exists, if its commit was not sent.

The answer decides only which error the commit has: that the partition does not exist, or that it may be another
member's. Without an answer it is the latter.
"""

LEADER_LOOKUP = 1.0
"""How long to wait for the leaders of a new topic.

librdkafka looks for them by itself up to a second later, so a longer wait would gain nothing.
"""

START_LOOKUP = 1.0
"""How long to wait for the first or the last offsets of partitions without a commit.

Without an answer librdkafka looks the offsets up by itself, so a longer wait would only delay the records.
"""

END_OFFSETS = 5.0
"""How long the stall detector waits for the end of one partition.

If the leader does not answer a new connection in that time, new connections of the data path would not help.
"""

# ---- The beginning and the end --------------------------------------------------------------------------------------

CREATE_TOPIC = 10.0
"""How long `subscribe` waits for the metadata of a topic that this request creates (`allow.auto.create.topics`)."""

NATIVE_CLOSE = 5.0
"""How long closing waits for librdkafka 2.6.0 and older, which may never end (`native_close.py`).

The member has committed and left its group before, so nothing is lost where the wait is too short.
"""
