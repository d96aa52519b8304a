"""The waits of a membership in seconds, each with its reason."""

__all__ = [
    "CLOSE",
    "JOIN_THREAD",
    "LIVENESS_CHECK",
    "LIVENESS_CHECK_LEAST",
    "NEWS_OVERDUE",
    "NO_LIMIT",
    "RECORDS_GLANCE",
    "REPLY_GRACE",
]

# ---- The membership's thread ----------------------------------------------------------------------------------------

LIVENESS_CHECK = 1.0
"""The longest interval between two checks of whether the application polls.

These checks enforce `max.poll.interval.ms`, so a member may be expelled one interval late. If that setting is below
four seconds, the interval is a quarter of it. Each check wakes the data path, which costs the application's next call;
a shorter interval would do that more often.
"""

LIVENESS_CHECK_LEAST = 0.1
"""The shortest interval between two checks.

The call of `poll` that a check causes also makes the commits on the interval, so `auto.commit.interval.ms` shortens the
checks. Without this bound, a setting of 1 ms would wake the data path all the time.
"""

NEWS_OVERDUE = 0.25
"""For how long after a request its answer is expected at any moment.

During this time the application waits for its mailbox: the answer may say that the group rebalances, but inside the
client only a record ends a wait. Later the broker counts as slow: the application waits for records again, and checks
the mailbox after each tenth of the delay. A neighbour's request counts for the same time.
"""

# ---- Waiting for records and for the group --------------------------------------------------------------------------

RECORDS_GLANCE = 0.005
"""The interval at which an application that waits for its mailbox asks the client for records.

This is the longest delay of a record while an answer of the group is expected.
"""

# ---- Offsets --------------------------------------------------------------------------------------------------------

REPLY_GRACE = 5.0
"""How much longer the application waits for a reply of the membership than the membership waits for the broker.

The membership's reply contains the reason of a failure. With the same timeout, the application could give up before
the reply arrives.
"""

NO_LIMIT = 2_000_000.0
"""Stands for no timeout: 23 days. A lock can wait for so many seconds, and the core can count the milliseconds."""

# ---- The beginning and the end --------------------------------------------------------------------------------------

CLOSE = 30.0
"""How long `close` waits for the coordinator, for the last commit and LeaveGroup.

If it gave up earlier, the uncommitted records would be read again, and the other members would wait for the end of the
session before they get the partitions.
"""

JOIN_THREAD = 5.0
"""How long `close` waits for the end of the membership's thread. By then the thread has no request to wait for."""
