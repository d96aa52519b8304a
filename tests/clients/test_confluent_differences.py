"""The intended differences to confluent-kafka's consumer: the page lists exactly the differences of these scripts."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import OFFSET_INVALID

from support.both_classes import BASE, logs, made
from support.threads import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.both_classes import Entry, Script
    from support.broker import Kafka

PAGE = Path(__file__).parents[2] / "docs" / "confluent.md"

SCRIPTS: dict[str, tuple[Callable[[Script], None], dict[str, list[Entry]]]] = {}


def script(name: str, *, theirs: list[Entry], ours: list[Entry]) -> Callable[[Callable[[Script], None]], None]:
    """Adds a script. The log of each class has all entries given for it; the log of the other class does not."""

    def keep(play: Callable[[Script], None]) -> None:
        SCRIPTS[name] = play, {"theirs": theirs, "ours": ours}

    return keep


@script("Kept positions", theirs=[("first", "read", 4)], ours=[("first", "read", 2)])
def _(script: Script) -> None:
    script.make("orders", 1, 2)
    first = script.consumer("range", "first", enable_auto_commit=False)
    first.subscribe("orders")
    script.reads(first, 2)
    # The new subscription leads to a rebalance, in which the partition comes back.
    script.make("others", 1)
    first.subscribe("orders", "others")
    script.until(lambda: len(first.told("on_assign")) == 2, "the partition is assigned again")
    if script.which == "theirs":
        script.reads(first, 4)
    else:
        script.after(1.0)
    first.note("read", len(first.read))


@script("`pause` inside `on_assign`", theirs=[("", "read", 2)], ours=[("", "read", 0)])
def _(script: Script) -> None:
    script.make("orders", 1, 2)
    part = script.consumer()
    part.subscribe("orders", on_assign=lambda consumer, partitions: consumer.pause(partitions))
    script.until(lambda: part.told("on_assign"), "the partition is assigned")
    if script.which == "theirs":
        script.reads(part, 2)
    else:
        script.after(1.0)
    part.note("read", len(part.read))


@script(
    "`assign` inside a cooperative `on_assign`",
    theirs=[("", "assign", ("KafkaException", "_STATE")), ("", "read", [])],
    ours=[("", "assign", None), ("", "read", [("orders", 0)])],
)
def _(script: Script) -> None:
    script.make("orders", 2, 1)
    part = script.consumer("cooperative-sticky")

    def take(_: Any, partitions: list[Any]) -> None:
        part.called("assign", [each for each in partitions if each.partition == 0])

    part.subscribe("orders", on_assign=take)
    script.until(lambda: part.told("on_assign"), "the partitions are assigned")
    if script.which == "ours":
        script.reads(part, 1)
    script.after(1.0)
    part.note("read", sorted({(topic, partition) for topic, partition, _ in part.read}))


@script(
    "Offsets of partitions that are not owned",
    theirs=[("first", "commit", 1)],
    ours=[("first", "commit", ("KafkaException", "_ASSIGNMENT_LOST"))],
)
def _(script: Script) -> None:
    script.make("orders", 1)
    script.make("others", 1)
    first = script.consumer("range", "first", enable_auto_commit=False)
    first.subscribe("orders")
    script.until(lambda: first.told("on_assign"), "the partition is assigned")
    found = first.called("commit", offsets=[script.at("others", 0, 1)], asynchronous=False)
    first.note("commit", len(found) if isinstance(found, list) else found)


@script("Automatic commits inside `poll`", theirs=[("", "committed", [2])], ours=[("", "committed", [OFFSET_INVALID])])
def _(script: Script) -> None:
    script.make("orders", 1, 2)
    part = script.consumer(auto_commit_interval_ms=1_000)
    part.subscribe("orders")
    script.reads(part, 2)
    # Neither class is polled meanwhile.
    if script.which == "theirs":
        wait_until(lambda: part.committed("orders", 0) == [2], "the offset is committed")
    else:
        time.sleep(2.5)
    part.note("committed", part.committed("orders", 0))


@script("Commits without a change", theirs=[("", "told", 2)], ours=[("", "told", 1)])
def _(script: Script) -> None:
    script.make("orders", 1, 2)
    part = script.consumer(auto_commit_interval_ms=200)
    part.subscribe("orders")
    script.reads(part, 2)
    script.until(lambda: part.told("on_commit"), "the offset is committed")
    script.close(part)
    part.note("told", len(part.told("on_commit")))


@script(
    "Commits of a member that leaves while its group rebalances",
    theirs=[("", "refused", "ILLEGAL_GENERATION")],
    ours=[("", "refused", None)],
)
def _(script: Script) -> None:
    script.make("orders", 2, 1)
    part = script.consumer("cooperative-sticky", auto_commit_interval_ms=60_000)
    part.subscribe("orders")
    script.reads(part, 2)
    with script.waiting_for_a_dead_member("orders", "cooperative-sticky"):
        script.without_commits()
        script.close(part)
        ((error, _),) = part.told("on_commit")
        part.note("refused", error)


@script(
    "`unsubscribe` while the group waits for a dead member",
    theirs=[("", "told", 0)],
    ours=[("", "told", 1)],
)
def _(script: Script) -> None:
    script.make("orders", 2, 1)
    part = script.consumer("cooperative-sticky", enable_auto_commit=False)
    part.subscribe("orders")
    script.reads(part, 2)
    with script.waiting_for_a_dead_member("orders", "cooperative-sticky"):
        before = len(part.told("on_revoke"))
        part.called("unsubscribe")
        if script.which == "ours":
            script.until(lambda: len(part.told("on_revoke")) > before, "it is told")
        script.after(2.0)
        part.note("told", len(part.told("on_revoke")) - before)


@script(
    "`subscribe` after `assign`",
    theirs=[("", "assignment", [("others", 0)])],
    ours=[("", "assignment", [])],
)
def _(script: Script) -> None:
    script.make("orders", 1)
    script.make("others", 1)
    part = script.consumer()
    part.called("assign", [script.at("others", 0)])
    part.subscribe("orders")
    part.note("assignment", script.plain(part.consumer.assignment(), offsets=False))


@script("An invalid name beside others", theirs=[("", "assigned", 0)], ours=[("", "assigned", 1)])
def _(script: Script) -> None:
    script.make("orders", 1)
    part = script.consumer()
    part.subscribe("orders", "no topic!")
    script.until(lambda: part.told("error"), "the name is told")
    if script.which == "ours":
        script.until(lambda: part.told("on_assign"), "the partition is assigned")
    script.after(1.5)
    part.note("assigned", len(part.told("on_assign")))


@script("A deleted topic of an expression", theirs=[("", "again", True)], ours=[("", "again", False)])
def _(script: Script) -> None:
    for label in ("a", "b"):
        script.matched_by("^orders", label, label)
        script.make(label, 1, 1)
    # For `topic.metadata.propagation.max.ms`, 30 seconds by default, the client may wait for a missing topic before it
    # returns the error again.
    part = script.consumer(topic_metadata_propagation_max_ms=0)
    part.subscribe("^orders")
    script.reads(part, 2)
    script.kafka.delete_topic(script.topic("a"))
    script.until(lambda: part.told("error"), "the error is returned")
    if script.which == "theirs":
        script.until(lambda: len(part.told("error")) > 1, "the error is returned again")
    else:
        script.after(4.0)
    part.note("again", len(part.told("error")) > 1)


@script("Revocation of an empty assignment", theirs=[("", "on_revoke", [])], ours=[("", "told", 1)])
def _(script: Script) -> None:
    script.make("orders", 1)
    consumers = [script.consumer(), script.consumer()]
    for part in consumers:
        part.subscribe("orders")
    script.until(lambda: ("", "on_assign", []) in script.log, "one of them has nothing")
    script.after(0.5)
    before = len(script.log)
    for part in [part for part in consumers if not part.consumer.assignment()] + consumers:
        if part in script.parts:
            script.close(part)
    script.log[:] = script.log[before:]
    consumers[0].note("told", len(consumers[0].told("on_revoke")))


def documented() -> list[str]:
    """The names in the page's list."""
    section = PAGE.read_text().split("## What differs on purpose\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^- \*\*(.+?)\*\*", section, flags=re.MULTILINE)


def test_the_page_lists_these_differences() -> None:
    assert documented() == [*SCRIPTS, "Settings that the membership needs"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_difference(any_kafka: Kafka, name: str) -> None:
    play, expected = SCRIPTS[name]
    found = logs(any_kafka, play)
    for which, entries in expected.items():
        assert all(entry in found[which] for entry in entries), (which, found[which])
        # It is a difference: the log of one class does not have all entries of the other one.
        (other,) = expected.keys() - {which}
        assert not all(entry in found[which] for entry in expected[other]), (which, found[which])


@pytest.mark.parametrize(
    "setting",
    [
        {"heartbeat.interval.ms": 45_000},
        {"bootstrap.servers": ""},
        {"bootstrap.servers": "a:99999"},
        {"group.remote.assignor": "uniform"},
        {"topic.blacklist": "a"},
        {"offset.store.method": "file"},
        {"auto.commit.enable": "true"},
        {"partition.assignment.strategy": ""},
    ],
    ids=str,
)
def test_settings_that_the_membership_needs(setting: dict[str, Any]) -> None:
    theirs, ours = made(BASE | setting, then=type)
    assert ours == ("KafkaException", "_INVALID_ARG")
    assert isinstance(theirs, type)
