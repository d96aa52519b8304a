"""How long a membership waits for what, and why so long. Seconds."""

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
"""How long after a request its answer is expected at any moment.

Until then the application waits for its mailbox, since only a record ends a wait inside the client and the answer may
say that the group rebalances. After that the broker is slow: the application waits for records again, and looks into
the mailbox after each tenth of the delay. A neighbour's request counts for as long.
"""

# ---- Waiting for records and for the group --------------------------------------------------------------------------

RECORDS_GLANCE = 0.005
"""How often an application that waits for its mailbox looks for records.

This is the longest delay of a record while an answer of the group is expected.
"""

# ---- Offsets --------------------------------------------------------------------------------------------------------

REPLY_GRACE = 5.0
"""How much longer the application waits for a reply of the membership than the membership waits for the broker.

The membership's answer has the reason of a failure. With the same timeout, the application could give up before it.
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
