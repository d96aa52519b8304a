"""Groups are moved to the new protocol (KIP-848) and back while records flow, in the order that `migrate` prints."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from support.broker import Kafka, unique
from support.members import JavaMember
from support.moving import SESSION_MS, MovingGroup, Reader
from support.needs import rest
from support.own import Sparing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kafka_assignors.embedded import EmbeddedKafka
    from support.fixtures import StartMember
    from support.trace import Trace

STRATEGIES: dict[str, Any] = {
    **{
        name: name
        for name in (
            "range",
            "roundrobin",
            "sticky",
            "cooperative-sticky",
            "sticky-join",
            "cooperative-sticky-join",
            "lag",
            "weighted",
            "cooperative-weighted",
        )
    },
    "own": Sparing(most=4),
}


def there_and_back(kafka: Kafka, name: str, strategy: Any, *, mixed: bool = False) -> str:
    """Moves a group with this strategy to the new protocol and back, one member at a time. Returns a summary.

    `mixed`: beside our consumer for kafka-python there is ours for confluent-kafka.
    """
    topics = {kafka.create_topic(unique(f"t{number}"), 3): 3 for number in range(2)}
    with MovingGroup(kafka.bootstrap_servers, unique(f"move-{name}"), topics) as group:
        old = [group.ours(strategy), group.our_confluent(strategy) if mixed else group.ours(strategy)]
        group.settle()
        found = group.migrate()
        assert found["way"] == "online", found
        replaced = {"range", "roundrobin", "sticky", "cooperative-sticky"}
        assert [each["rule"] for each in found["in_the_way"]] == ([] if name in replaced else ["same-purpose"])
        vote = {"group_remote_assignor": found["assignor"]} if "group.remote.assignor" in found["order"][0] else {}
        co_locating = ("range", "sticky-join", "cooperative-sticky-join")
        assert found["assignor"] == ("range" if name in co_locating else "uniform")
        first = group.ours_in_the_new(**vote)
        group.settle()
        assert (group.migrate()["way"], group.migrate()["classic"]) == ("moving", 2)
        for leaving in old:
            group.stable()
            group.stop(leaving)
            group.settle()
        second = group.ours_in_the_new(**vote)
        group.settle()
        assert group.migrate()["way"] == "moved"
        for new in (first, second):
            group.stable()
            group.stop(new)
            group.ours(strategy)
            group.settle()
        group.until(lambda: group.migrate()["way"] == "online", "the group is classic again", every=0.5)
        group.check_records()
        return f"{name}: {group.sent} records"


@pytest.mark.parametrize("name", ["sticky", *rest("range", "cooperative-sticky", "cooperative-sticky-join")])
def test_a_group_on_the_embedded_kafka_is_moved_and_back(embedded_kafka: EmbeddedKafka, name: str) -> None:
    there_and_back(Kafka(embedded_kafka.bootstrap_servers, "embedded"), name, STRATEGIES[name])


# One for each form of a group in the new protocol: Kafka's own strategies, eager and cooperative; one that becomes
# `range`; a plan by weights; an assignor of the user's own.
FORMS = ("sticky", "cooperative-sticky", "sticky-join", "weighted", "own")


# Two clients for each group, all at once: all strategies took 95 s on two quick cores, and more than 400 s on two slow
# ones beside the other tests. The limit is for a test that hangs.
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize(
    "names",
    [
        pytest.param(FORMS, id="each form"),
        pytest.param([name for name in STRATEGIES if name not in FORMS], id="the others", marks=pytest.mark.long),
    ],
)
def test_groups_of_each_strategy_are_moved_and_back(consumer_protocol_kafka: Kafka, names: Sequence[str]) -> None:
    with ThreadPoolExecutor(len(names)) as pool:
        running = [
            pool.submit(there_and_back, consumer_protocol_kafka, name, STRATEGIES[name], mixed=True) for name in names
        ]
        said = [each.result() for each in running]
    assert len(said) == len(names)


def _held_by_java(trace: Trace, name: str) -> set[tuple[str, int]]:
    held: set[tuple[str, int]] = set()
    for event in trace.events:
        if event.member == name and event.kind in ("assigned", "revoked", "lost"):
            changed = {(topic, number) for topic, number in event.fields["partitions"]}
            held = held | changed if event.kind == "assigned" else held - changed
    return held


def _read_by_java(trace: Trace, group: MovingGroup) -> None:
    for event in trace.events:
        if event.kind == "consumed":
            for topic, number, first, last in event.fields["offsets"]:
                for offset in range(first, last + 1):
                    group.note((topic, number, offset), event.member, event.at)


def third(group: MovingGroup, strategy: str) -> Reader:
    """librdkafka's consumer, or ours for kafka-python with the strategy `sticky`."""
    return group.ours(strategy) if strategy == "sticky" else group.librdkafka(strategy)


# The strategies of Java's consumer. librdkafka's consumer has no `sticky`: our consumer for kafka-python is in its
# place.
IN_JAVA = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}


@pytest.mark.parametrize("strategy", IN_JAVA)
def test_a_group_with_java_and_librdkafka_is_moved_and_back(
    consumer_protocol_kafka: Kafka, start_member: StartMember, trace: Trace, strategy: str
) -> None:
    topics = {consumer_protocol_kafka.create_topic(unique("t"), 8): 8}
    assignor = f"org.apache.kafka.clients.consumer.{IN_JAVA[strategy]}"
    with MovingGroup(consumer_protocol_kafka.bootstrap_servers, unique(f"mixed-{strategy}"), topics) as group:
        # The first member of a group leads until it leaves. Here it is ours, so that no assignment has user data.
        ours = group.our_confluent(strategy)
        group.settle()
        native = third(group, strategy)
        # The session of the other members, not the short one of `support.members`: a member that is expelled loses its
        # last records, which others then read again.
        java = start_member(
            JavaMember,
            "java",
            consumer_protocol_kafka,
            group.group_id,
            assignor=assignor,
            session_timeout_ms=SESSION_MS,
        )
        java.subscribe(*topics)

        def by_java() -> Iterable[tuple[str, int]]:
            return _held_by_java(trace, "java")

        group.settle(by_java)
        found = group.migrate()
        assert (found["way"], found["in_the_way"]) == ("online", [])
        assert {each["library"] for each in found["clients"]} >= {
            "librdkafka" if strategy != "sticky" else "kafka-python"
        }
        vote = {"group_remote_assignor": "range"} if strategy == "range" else {}
        new = group.ours_in_the_new(**vote)
        group.settle(by_java)
        assert (group.migrate()["way"], group.migrate()["classic"]) == ("moving", 3)
        # Each member leaves only when the group is Stable: a member that has not followed may not commit.
        leavings: list[Callable[[], None]] = [lambda: group.stop(native), java.close, lambda: group.stop(ours)]
        for leave in leavings:
            group.stable()
            leave()
            group.settle(*([by_java] if java.alive else []))
        modern = start_member(JavaMember, "java-new", consumer_protocol_kafka, group.group_id, protocol="consumer")
        modern.subscribe(*topics)

        def by_modern() -> Iterable[tuple[str, int]]:
            return _held_by_java(trace, "java-new")

        group.settle(by_modern)
        assert group.migrate()["way"] == "moved"
        # The same in the other direction.
        ours = group.our_confluent(strategy)
        group.settle(by_modern)
        group.stable()
        modern.close()
        group.settle()
        # `migrate` says so: a member that has not followed cannot commit its last records.
        group.stable()
        group.stop(new)
        group.settle()
        third(group, strategy)
        group.settle()
        assert group.migrate()["way"] in ("online", "offline")
        group._producing = False
        group._producer.join(30)
        _read_by_java(trace, group)
        assert [event for event in trace.events if event.kind == "lost"] == [], "a consumer of Java was expelled"
        # A cooperative consumer of Java reads on while it joins again. It does not commit these records before it gives
        # their partitions up. Only an eager consumer stops reading first. Java's ConsumerCoordinator says so in a
        # comment, where it marks partitions as pending revocation.
        group.check_records(*(("java",) if strategy == "cooperative-sticky" else ()))


def test_a_leader_of_ours_clears_the_way_of_librdkafkas_cooperative_sticky(consumer_protocol_kafka: Kafka) -> None:
    topics = {consumer_protocol_kafka.create_topic(unique("t"), 6): 6}
    with MovingGroup(consumer_protocol_kafka.bootstrap_servers, unique("blocked"), topics) as group:
        natives = [group.librdkafka("cooperative-sticky")]
        group.settle()
        natives.append(group.librdkafka("cooperative-sticky"))
        group.settle()
        found = group.migrate()
        assert (found["way"], [each["rule"] for each in found["in_the_way"]]) == ("offline", ["no-user-data"])
        assert "librdkafka" in found["in_the_way"][0]["remedy"]
        refused = group.ours_in_the_new()
        with pytest.raises(Exception, match="custom assignor"):
            group.until(lambda: False, "it is refused")
        group.readers.remove(refused)

        # The remedy: add a consumer of ours, then restart the others one after the other until `migrate` says `online`.
        # Each time the leader leaves, the broker chooses one of the two others, by the order of their random ids.
        group.ours("cooperative-sticky")
        group.settle()
        for _ in range(40):
            group.stop(natives.pop(0))
            group.settle()
            if group.migrate()["way"] == "online":
                break
            natives.append(group.librdkafka("cooperative-sticky"))
            group.settle()
        found = group.migrate()
        assert (found["way"], found["in_the_way"]) == ("online", [])
        group.ours_in_the_new()
        group.settle()
        assert group.migrate()["way"] == "moving"
        group.check_records()
