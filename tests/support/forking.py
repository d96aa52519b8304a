"""A program that forks while its consumer is in a group. Parent and child each print one JSON object.

Run as ``python forking.py bootstrap-servers group topic`` by tests/integration/test_processes.py.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from typing import Any

from kafka_assignors.clients.confluent import Consumer
from kafka_assignors.errors import StateError

SESSION_MS = 6000
PATIENCE = 120.0


def settings(bootstrap_servers: str, group: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap_servers,
        "group.id": group,
        "partition.assignment.strategy": "sticky",
        "auto.offset.reset": "earliest",
        "session.timeout.ms": SESSION_MS,
        "heartbeat.interval.ms": 200,
        "log_level": 0,
    }


def identity(consumer: Consumer) -> tuple[str | None, int]:
    """Member id and generation."""
    return consumer.memberid(), int.from_bytes(consumer.consumer_group_metadata()[7:11], sys.byteorder, signed=True)


def until_assigned(consumer: Consumer) -> None:
    deadline = time.monotonic() + PATIENCE
    while not consumer.assignment():
        if time.monotonic() > deadline:
            raise TimeoutError("no share")
        consumer.poll(0.1)


def in_child(consumer: Consumer, bootstrap_servers: str, group: str, topic: str) -> None:
    refused: dict[str, str] = {}
    for name in ("poll", "consume", "assignment", "position", "commit", "subscribe", "memberid", "plan"):
        try:
            getattr(consumer, name)()
        except StateError as error:
            refused[name] = str(error)
    with_statement = "entered"
    try:
        with consumer:
            pass
    except RuntimeError as error:
        with_statement = str(error)
    consumer.close()
    own = Consumer(settings(bootstrap_servers, f"{group}-child"))
    own.subscribe([topic])
    until_assigned(own)
    share = len(own.assignment())
    own.close()
    del own
    gc.collect()
    found = {"who": "child", "refused": refused, "with": with_statement, "share of its own": share}
    print(json.dumps(found), flush=True)


def main(bootstrap_servers: str, group: str, topic: str) -> None:
    events: list[str] = []
    consumer = Consumer(settings(bootstrap_servers, group))
    # This consumer joins no group, and the child does not close its copy. The child must be able to end all the same.
    idle = Consumer(settings(bootstrap_servers, f"{group}-idle"))
    callbacks: dict[str, Any] = {
        name: lambda _, partitions, name=name: events.append(name) for name in ("on_assign", "on_revoke", "on_lost")
    }
    consumer.subscribe([topic], **callbacks)
    until_assigned(consumer)
    before = identity(consumer)
    child = os.fork()
    if child == 0:
        in_child(consumer, bootstrap_servers, group, topic)
        # A normal exit of the child, with all of Python's clean-up.
        sys.exit(7)
    deadline = time.monotonic() + PATIENCE
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() > deadline:
            os.kill(child, 9)
        consumer.poll(0.05)
    # A LeaveGroup of the child for this member, or bytes of it on the parent's connections, would show within this
    # time.
    enough = time.monotonic() + 4.5
    while time.monotonic() < enough:
        consumer.poll(0.05)
    found = {
        "who": "parent",
        "same": identity(consumer) == before,
        "events": list(events),
        "status": os.waitstatus_to_exitcode(ended[1]),
    }
    consumer.close()
    idle.close()
    print(json.dumps(found | {"after": events}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
