"""Scripts of the same calls to confluent-kafka's consumer and to ours: subscriptions, and topics that come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.both_classes import BOTH_WAYS, same

if TYPE_CHECKING:
    from support.both_classes import Entry, Part, Script
    from support.broker import Kafka

UNKNOWN = "UNKNOWN_TOPIC_OR_PART"


def callbacks(log: list[Entry], label: str = "") -> list[str]:
    """The names of one consumer's callbacks that were called, without those of commits."""
    return [entry[1] for entry in log if entry[0] == label and entry[1].startswith("on_") and entry[1] != "on_commit"]


def assigned(part: Part) -> list[tuple[str, int]]:
    """The partitions that the consumer has now."""
    found: list[tuple[str, int]] = part.script.plain(part.consumer.assignment(), offsets=False)
    return found


# Topics that do not exist.


@BOTH_WAYS
@pytest.mark.parametrize(
    ("topics", "told"),
    [
        (["no topic!"], ["no topic!"]),
        (["x" * 300], ["x" * 300]),
        (["nowhere"], ["nowhere"]),
        (["^nothing"], ["^nothing"]),
        (["^nothing", "^neither"], ["^neither", "^nothing"]),
        (["nowhere", "orders"], ["nowhere"]),
        (["^nothing", "orders"], ["^nothing"]),
    ],
    ids=lambda names: "+".join(names)[:30],
)
def test_what_is_not_there_is_told_once(any_kafka: Kafka, strategy: str, topics: list[str], told: list[str]) -> None:
    """One error for each missing topic and expression. Without any topic there is no assignment and no callback."""

    def play(script: Script) -> None:
        script.make("orders", 1, 1)
        part = script.consumer(strategy)
        part.subscribe(*topics)
        script.until(lambda: len(part.told("error")) == len(told), "the errors are told")
        if "orders" in topics:
            script.reads(part, 1)
        script.after(1.5)
        # The errors come in the order of the topics' names, which differ in each run.
        script.log.sort(key=lambda entry: (entry[1] != "error", str(entry)))

    log = same(any_kafka, play)
    assert [entry[2:] for entry in log if entry[1] == "error"] == [(UNKNOWN, name) for name in told]
    assert callbacks(log) == (["on_assign"] if "orders" in topics else [])


@BOTH_WAYS
@pytest.mark.parametrize("topic", ["orders", "^orders"])
def test_a_topic_that_comes(any_kafka: Kafka, strategy: str, topic: str) -> None:
    def play(script: Script) -> None:
        script.matched_by(topic, "orders")
        part = script.consumer(strategy)
        part.subscribe(topic)
        script.until(lambda: part.told("error"), "it is told")
        script.after(1.0)
        script.make("orders", 2, 1)
        script.reads(part, 2)
        part.called("assignment")
        script.close(part)
        script.without_commits()

    assert callbacks(same(any_kafka, play)) == ["on_assign", "on_revoke"]


@BOTH_WAYS
@pytest.mark.parametrize("others", [True, False], ids=["beside others", "alone"])
def test_a_topic_that_goes(any_kafka: Kafka, strategy: str, others: bool) -> None:
    """In a cooperative group the partitions of the topic are lost, since no member can read them any more. An empty
    assignment leads to no callback.
    """
    gone = "on_lost" if strategy == "cooperative-sticky" else "on_revoke"

    def play(script: Script) -> None:
        script.make("orders", 2, 1)
        part = script.consumer(strategy)
        if others:
            script.make("others", 2, 1)
            part.subscribe("orders", "others")
        else:
            part.subscribe("orders")
        script.reads(part, 4 if others else 2)
        script.kafka.delete_topic(script.topic("orders"))
        script.until(lambda: part.told("error"), "it is told")
        script.until(lambda: part.told(gone) and (not others or len(part.told("on_assign")) == 2), "it is given up")
        script.after(3.5)
        part.called("assignment")
        given_up = len(part.told("on_revoke"))
        part.called("unsubscribe")
        if others:
            script.until(lambda: len(part.told("on_revoke")) > given_up, "the rest is given up")
        script.after(1.0)
        script.without_commits()

    log = same(any_kafka, play)
    assert callbacks(log) == ["on_assign", gone, *(["on_assign", "on_revoke"] if others else [])]
    assert log.count(("", "error", UNKNOWN, "orders")) == 1


@BOTH_WAYS
def test_a_topic_that_goes_from_an_expression(any_kafka: Kafka, strategy: str) -> None:
    """librdkafka repeats the errors of topics at each metadata refresh, and that of the expression only sometimes."""

    def play(script: Script) -> None:
        for label in ("a", "b"):
            script.matched_by("^orders", label, label)
            script.make(label, 1, 1)
        part = script.consumer(strategy)
        part.subscribe("^orders")
        script.reads(part, 2)
        for label in ("a", "b"):
            script.kafka.delete_topic(script.topic(label))
            script.until(lambda label=label: (UNKNOWN, label) in part.told("error"), "it is told")  # type: ignore[misc]
            script.until(lambda label=label: (label, 0) not in assigned(part), "it is given up")  # type: ignore[misc]
            script.after(3.0)
        part.called("assignment")
        script.without_commits()
        errors = {entry for entry in script.log if entry[1] == "error" and entry[3] in ("a", "b")}
        script.log[:] = [*sorted(errors), *(entry for entry in script.log if entry[1] != "error")]

    log = same(any_kafka, play)
    assert [entry[3] for entry in log if entry[1] == "error"] == ["a", "b"]
    gone = ("", "on_lost") if strategy == "cooperative-sticky" else ("", "on_revoke")
    assert [entry[2] for entry in log if entry[:2] == gone][-1] == [("b", 0)]


# Subscribing again.


@BOTH_WAYS
@pytest.mark.parametrize("again", ["orders", "^orders"])
def test_the_same_subscription_again(any_kafka: Kafka, strategy: str, again: str) -> None:
    """An eager member revokes its partitions and joins again. A cooperative one keeps them, also for an expression."""

    def play(script: Script) -> None:
        script.matched_by("^orders", "orders")
        script.make("orders", 2, 1)
        part = script.consumer(strategy, enable_auto_commit=False)
        part.subscribe("orders")
        script.reads(part, 2)
        part.called("commit", asynchronous=False)
        part.subscribe(again)
        part.called("assignment")
        if strategy == "range" or again == "^orders":
            script.until(lambda: len(part.told("on_assign")) == 2, "it is assigned again")
        script.after(2.0)
        part.called("assignment")
        part.note("read", len(part.read))
        script.without_commits()

    told = callbacks(same(any_kafka, play))
    if strategy == "range":
        assert told == ["on_assign", "on_revoke", "on_assign"]
    else:
        assert told == ["on_assign", *(["on_assign"] if again == "^orders" else [])]


@BOTH_WAYS
def test_the_same_subscription_again_in_a_group(any_kafka: Kafka, strategy: str) -> None:
    """If the leader subscribes again, the group rebalances. If a follower does, the group does not."""

    def play(script: Script) -> None:
        script.make("orders", 2, 1)
        first, second = (script.consumer(strategy, label, enable_auto_commit=False) for label in ("first", "second"))
        first.subscribe("orders")
        script.reads(first, 2)
        second.subscribe("orders")
        script.until(
            lambda: len(first.consumer.assignment()) == len(second.consumer.assignment()) == 1, "each has a partition"
        )
        script.after(0.5)
        del script.log[:]
        found: list[Entry] = []
        for part in (first, second):
            part.subscribe("orders")
            script.after(2.0)
            # The partitions are left out: the order of the random member ids decides which member owns which.
            found += [(part.label, "again", each, callbacks(script.log, each)) for each in ("first", "second")]
            del script.log[:]
        script.log[:] = found

    told = ["on_revoke", "on_assign"] if strategy == "range" else []
    assert [entry[3] for entry in same(any_kafka, play)] == [told, told, [], told]


@BOTH_WAYS
def test_unsubscribing_and_subscribing_at_once(any_kafka: Kafka, strategy: str) -> None:
    def play(script: Script) -> None:
        script.make("orders", 2, 1)
        part = script.consumer(strategy, enable_auto_commit=False)
        part.subscribe("orders")
        script.reads(part, 2)
        part.called("commit", asynchronous=False)
        part.called("unsubscribe")
        part.subscribe("orders")
        script.until(lambda: len(part.told("on_assign")) == 2, "it has its share again")
        part.called("assignment")
        script.close(part)
        script.without_commits()

    assert callbacks(same(any_kafka, play)) == ["on_assign", "on_revoke", "on_assign", "on_revoke"]


# Changes that the application makes to its assignment.


@BOTH_WAYS
def test_what_the_application_chose_lasts(any_kafka: Kafka, strategy: str) -> None:
    """A cooperative member keeps the application's choice in the next rebalance: partitions left out, and one added."""

    def play(script: Script) -> None:
        for label, partitions in (("orders", 4), ("others", 1), ("beside", 1)):
            script.make(label, partitions, 1)
        part = script.consumer(strategy, enable_auto_commit=False)

        def take(consumer: Any, partitions: list[Any]) -> None:
            method = consumer.assign if strategy == "range" else consumer.incremental_assign
            method([each for each in partitions if each.partition != 1])

        part.subscribe("orders", on_assign=take)
        script.reads(part, 3)
        part.called("incremental_unassign", [script.at("orders", 2)])
        part.called("incremental_assign", [script.at("beside", 0)])
        if strategy == "cooperative-sticky":
            script.reads(part, 4)
        part.note("assignment", script.plain(part.consumer.assignment(), offsets=False))
        part.subscribe("orders", "others", on_assign=take)
        script.until(lambda: ("others", 0, 0) in part.read, "the new topic is read")
        part.note("assignment", script.plain(part.consumer.assignment(), offsets=False))

    log = same(any_kafka, play)
    beside = [("beside", 0), ("orders", 0), ("orders", 3), ("others", 0)]
    anew = [("orders", 0), ("orders", 2), ("orders", 3), ("others", 0)]
    assert log[-1] == ("", "assignment", anew if strategy == "range" else beside)


# A close while the group rebalances.


@BOTH_WAYS
def test_closing_while_the_group_waits_for_a_dead_member(any_kafka: Kafka, strategy: str) -> None:
    """A cooperative member still owns its partitions, and revokes them: no other member can own them yet."""

    def play(script: Script) -> None:
        script.make("orders", 2, 1)
        part = script.consumer(strategy)
        part.subscribe("orders")
        script.reads(part, 2)
        with script.waiting_for_a_dead_member("orders", strategy):
            before = len(script.log)
            script.close(part)
            # The partitions are left out: the order of the member ids decides which of them the member still owns.
            script.log[:] = [entry[:2] for entry in script.log[before:]]
            script.without_commits()

    assert callbacks(same(any_kafka, play)) == (["on_revoke"] if strategy == "cooperative-sticky" else [])
