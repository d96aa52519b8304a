"""The reader of snapshots of a live cluster. It joins no group and commits no offset."""

from __future__ import annotations

import itertools
import time
from array import array
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kafka_assignors import _core
from kafka_assignors.cluster.groups import (
    ClassicMember,
    ConsumerMember,
    GroupMember,
    GroupSnapshot,
    TopicSnapshot,
)
from kafka_assignors.cluster.questions import Question, Questions, RetriableError, check
from kafka_assignors.cluster.record import record_bytes
from kafka_assignors.cluster.snapshot import Snapshot
from kafka_assignors.cluster.topics import Progress, broker_address, brokers_of, known, read_topics
from kafka_assignors.errors import ClusterError, OptionError
from kafka_assignors.lag import check_reading

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from kafka_assignors.net import Address

__all__ = ["ListedGroup", "Progress", "list_groups", "read_snapshot"]

# The type of every group on brokers before Kafka 3.8, which do not send it.
_CLASSIC = "classic"
_TOPIC_RESOURCE = 2
_OFFSETS_TOPIC, _LIMIT = "__consumer_offsets", "max.message.bytes"
_GROUP_ID_NOT_FOUND, _UNSUPPORTED_VERSION = 69, 35
# Groups that are described at once: their members' bytes come in one answer.
_DESCRIBED_AT_ONCE = 50
# The names that are matched before the clock is read again.
_NAMES_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group that a broker coordinates.

    Attributes:
        group_id: its id.
        protocol_type: `consumer` for consumers, `connect` for Kafka Connect; empty if no member ever joined.
        state: Kafka's name of it; empty if the broker does not send it.
        group_type: `classic`, where a member assigns; `consumer`, where the broker does (KIP-848); or another of
            Kafka's, such as `share`.
    """

    group_id: str
    protocol_type: str
    state: str
    group_type: str = _CLASSIC


def list_groups(config: Mapping[str, Any], *, timeout: float = 30.0) -> list[ListedGroup]:
    """All groups of a cluster that the user may see, by id.

    Args:
        config: settings as for `confluent_kafka`, `bootstrap.servers` among them.
        timeout: how many seconds that may take.

    Raises:
        ClusterError: the cluster does not answer, or refuses to.
        NetworkError: it cannot be reached.
        OptionError: a setting that cannot be used.
    """
    with Questions(config, _positive(timeout)) as questions:
        return _list(questions, brokers_in(questions)[1])


def read_snapshot(
    config: Mapping[str, Any],
    groups: Iterable[str] | None,
    *,
    topics: Iterable[str] = (),
    clients: bool = False,
    isolation_level: str = "read_uncommitted",
    timeout: float = 30.0,
    stable_within: float = 5.0,
    progress: Progress | None = None,
) -> Snapshot:
    """Takes a snapshot of groups, and of the topics that they subscribe to, own or have committed.

    Args:
        config: settings as for `confluent_kafka`, `bootstrap.servers` among them; docs/connections.md has those of
            TLS and SASL.
        groups: their ids; None takes all groups of consumers.
        topics: further topics.
        clients: whether client ids and hosts are kept, which name people and machines. Without it the snapshot has only
            the client ids at the beginning of the ids of dynamic members.
        isolation_level: the end of a partition: `"read_committed"` stops at the first open transaction.
        timeout: the seconds that all requests together may take.
        stable_within: how many seconds of these to wait for a group to become Stable. In any other state a broker does
            not send the subscriptions of its members.
        progress: called with the progress.

    Raises:
        ClusterError: a group does not exist, or the cluster does not answer, or refuses to.
        NetworkError: it cannot be reached.
        OptionError: a setting that cannot be used.
    """
    check_reading(isolation_level, timeout)
    with Questions(config, timeout) as questions:
        reader = GroupReader(questions, clients, progress or (lambda *_: None))
        cluster, brokers = brokers_in(questions)
        if groups is None:
            found = [each for each in _list(questions, brokers) if each.protocol_type in ("", "consumer")]
            wanted = [each.group_id for each in found]
        else:
            wanted = sorted(set(groups))
        described = reader.groups(wanted, stable_within)
        taken_ms = time.time_ns() // 1_000_000
        names = {topic for group in described.values() for member in group.members for topic in member.topics}
        names |= {topic for group in described.values() for member in group.members for topic in member.owned}
        commits = questions.patiently(lambda: reader.commits(wanted))
        names |= {topic for of_group in commits.values() for topic in of_group}
        found_topics = reader.topics(names | set(topics), isolation_level)
        return Snapshot(
            cluster=cluster,
            taken_ms=taken_ms,
            topics=found_topics,
            groups={
                group_id: replace(group, committed=committed_in(commits[group_id], found_topics))
                for group_id, group in described.items()
            },
            record_limit=reader.record_limit(),
        )


def _positive(timeout: float) -> float:
    if not timeout > 0:
        raise OptionError(f"timeout is {timeout!r}; give a positive number of seconds")
    return timeout


def brokers_in(questions: Questions) -> tuple[str, list[Address]]:
    """The id of the cluster, and the addresses of its brokers."""
    metadata = questions.ask("Metadata", [])
    return metadata["cluster_id"] or "", [broker_address(broker) for broker in brokers_of(metadata).values()]


def _list(questions: Questions, brokers: list[Address]) -> list[ListedGroup]:
    answers = questions.ask_all([Question(address, "ListGroups", ([],)) for address in brokers])
    found = {}
    for address, answer in zip(brokers, answers, strict=True):
        check(answer["error_code"], f"the groups of {address} cannot be listed")
        for group in answer["groups"]:
            kind = group["group_type"].lower() or _CLASSIC
            found[group["group_id"]] = ListedGroup(
                group["group_id"], group["protocol_type"], group["group_state"], kind
            )
    return [found[group_id] for group_id in sorted(found)]


class GroupReader:
    """Reads groups. Its methods raise an error if an answer is missing, or contains an error code.

    Args:
        questions: asks the brokers.
        clients: whether client ids and hosts are kept.
        progress: called with the progress.
    """

    def __init__(self, questions: Questions, clients: bool, progress: Progress) -> None:
        self._questions = questions
        self._clients = clients
        self._progress = progress

    # ---- groups -----------------------------------------------------------------------------------------------------

    def groups(self, wanted: list[str], stable_within: float) -> dict[str, GroupSnapshot]:
        """The groups with their members."""
        found: dict[str, GroupSnapshot] = {}
        until = time.monotonic() + stable_within
        rest = wanted
        while rest:
            found |= self._questions.patiently(lambda asked=tuple(rest): self._describe(asked))  # type: ignore[misc]
            self._progress("groups", len(found), len(wanted))
            rest = [group_id for group_id in rest if is_moving(found[group_id])]
            if rest and (time.monotonic() >= until or not self._questions.pause()):
                break
        return {group_id: found[group_id] for group_id in wanted}

    def _coordinators(self, groups: Collection[str]) -> dict[Address, list[str]]:
        answers = self._questions.ask_all([Question(None, "FindCoordinator", (group_id,)) for group_id in groups])
        found: dict[Address, list[str]] = {}
        for group_id, answer in zip(groups, answers, strict=True):
            check(answer["error_code"], f"group {group_id!r} has no coordinator", answer["error_message"])
            found.setdefault(broker_address(answer), []).append(group_id)
        return found

    def _describe(self, groups: Collection[str]) -> dict[str, GroupSnapshot]:
        found: dict[str, GroupSnapshot] = {}
        for address, of_broker in self._coordinators(groups).items():
            batches = _cut(of_broker, _DESCRIBED_AT_ONCE)
            answers = self._questions.ask_all([Question(address, "DescribeGroups", (batch,)) for batch in batches])
            others = []
            for answer in answers:
                for group in answer["groups"]:
                    if group["error_code"] == _GROUP_ID_NOT_FOUND or group["group_state"] == "Dead":
                        others.append(group["group_id"])
                        continue
                    check(group["error_code"], f"group {group['group_id']!r} cannot be described")
                    found[group["group_id"]] = self.classic(group)
            found |= self._assigned_by_broker(address, others)
        for group_id in groups:
            if group_id not in found:
                raise ClusterError(f"group {group_id!r} is not in its coordinator's answer; try again")
        return found

    def _assigned_by_broker(self, address: Address, groups: list[str]) -> dict[str, GroupSnapshot]:
        if not groups:
            return {}
        if not self._questions.speaks("ConsumerGroupDescribe", address):
            raise self._absent(groups[0], address)
        batches = _cut(groups, _DESCRIBED_AT_ONCE)
        answers = self._questions.ask_all([Question(address, "ConsumerGroupDescribe", (batch,)) for batch in batches])
        found = {}
        for answer in answers:
            for group in answer["groups"]:
                # UNSUPPORTED_VERSION: the broker has the request, and its configuration forbids it.
                if group["error_code"] in (_GROUP_ID_NOT_FOUND, _UNSUPPORTED_VERSION):
                    raise self._absent(group["group_id"], address)
                check(group["error_code"], f"group {group['group_id']!r} cannot be described", group["error_message"])
                found[group["group_id"]] = self.consumers(group)
        return self.with_matched_topics(found)

    def _absent(self, group_id: str, address: Address) -> ClusterError:
        """The error for a group that is no group of consumers: it does not exist, or has another of Kafka's types."""
        answer = self._questions.ask("ListGroups", [], address=address)
        kinds = {group["group_id"]: group["group_type"].lower() for group in answer["groups"]}
        kind = kinds.get(group_id, "")
        if kind in ("", _CLASSIC, "consumer"):
            return ClusterError(f"group {group_id!r} does not exist; `snapshot --list` shows the groups that do")
        return ClusterError(
            f"group {group_id!r} is of type {kind!r}; only groups of consumers, 'classic' and 'consumer', are read here"
        )

    def classic(self, group: Mapping[str, Any]) -> GroupSnapshot:
        """A group in an answer to DescribeGroups."""
        members = tuple(
            ClassicMember(
                member["member_id"],
                member["group_instance_id"],
                member["member_metadata"],
                member["member_assignment"],
                member["client_id"],
                member["client_host"],
            )
            for member in sorted(group["members"], key=lambda each: each["member_id"])
        )
        described = GroupSnapshot(
            protocol="classic",
            state=group["group_state"],
            assignor=group["protocol_data"],
            protocol_type=group["protocol_type"],
            members=members,
        )
        # Computed here: the record has client ids and hosts, which the snapshot may not keep.
        return replace(
            described,
            record_bytes=record_bytes(group["group_id"], described),
            members=tuple(self._discreet(member) for member in members),
        )

    def consumers(self, group: Mapping[str, Any]) -> GroupSnapshot:
        """A group in an answer to ConsumerGroupDescribe."""
        members = (
            ConsumerMember(
                member["member_id"],
                member["instance_id"],
                tuple(sorted(set(member["subscribed_topic_names"]))),
                member["subscribed_topic_regex"] or None,
                member["rack_id"] or None,
                member["member_epoch"],
                _sorted(member["assignment"]),
                _listed(member["target_assignment"]),
                None if member["member_type"] < 0 else member["member_type"] == 0,
                member["client_id"],
                member["client_host"],
                place,
            )
            for place, member in sorted(enumerate(group["members"]), key=lambda each: each[1]["member_id"])
        )
        return GroupSnapshot(
            protocol="consumer",
            state=group["group_state"],
            assignor=group["assignor_name"],
            epoch=group["group_epoch"],
            members=tuple(self._discreet(member) for member in members),
        )

    def _discreet(self, member: GroupMember) -> GroupMember:
        return member if self._clients else replace(member, client_id=None, client_host=None)

    def with_matched_topics(self, groups: dict[str, GroupSnapshot]) -> dict[str, GroupSnapshot]:
        """Adds the topics of members that subscribe by regular expression. The broker does not send them."""
        expressions = {
            member.topic_regex
            for group in groups.values()
            for member in group.members
            if isinstance(member, ConsumerMember) and member.topic_regex
        }
        if not expressions:
            return groups
        # Expressions match Kafka's internal topics as well, as on the broker.
        every = [topic["name"] for topic in self._questions.ask("Metadata", None)["topics"]]
        matched = _matching(expressions, every, self._questions.left / 4)

        def with_names(member: GroupMember) -> GroupMember:
            if not isinstance(member, ConsumerMember) or not member.topic_regex:
                return member
            names = {*member.topics, *matched[member.topic_regex], *member.owned, *member.target}
            return replace(member, topics=tuple(sorted(names)))

        return {
            group_id: replace(group, members=tuple(map(with_names, group.members)))
            for group_id, group in groups.items()
        }

    def commits(self, groups: list[str]) -> dict[str, dict[str, TopicCommits]]:
        """The commits of the groups, by group and topic."""
        of_broker = self._coordinators(groups)
        questions = self._questions.offset_fetches(
            {group_id: address for address, names in of_broker.items() for group_id in names}
        )
        found: dict[str, dict[str, TopicCommits]] = {}
        for batch in _cut(questions, _DESCRIBED_AT_ONCE):
            for question, answer in zip(batch, self._questions.ask_all(batch), strict=True):
                asked = [group_id for group_id, _ in question.fields[0]]
                for group_id, (error, commits) in commits_by_group(asked, answer).items():
                    check(error, f"the offsets of group {group_id!r} cannot be read")
                    found[group_id] = commits
            self._progress("commits", len(found), len(groups))
        return found

    def topics(self, names: set[str], isolation_level: str) -> dict[str, TopicSnapshot]:
        """The topics that exist, with their offsets."""
        if not names:
            return {}
        _, found = read_topics(self._questions, names, isolation_level, self._progress)
        return {
            each.name: TopicSnapshot(len(each.end), each.racks, known(each.begin), known(each.end), each.topic_id)
            for each in found
        }

    def record_limit(self) -> int | None:
        """The largest record of a group; None if the user may not read it, or the topic does not exist yet."""
        try:
            answer = self._questions.ask("DescribeConfigs", _TOPIC_RESOURCE, _OFFSETS_TOPIC, [_LIMIT])
        except (ClusterError, RetriableError):
            return None
        value = answer["configs"].get(_LIMIT) if answer["error_code"] == 0 else None
        return int(value) if value is not None and value.isdigit() else None


def commits_by_group(asked: Sequence[str], answer: Mapping[str, Any]) -> dict[str, tuple[int, dict[str, TopicCommits]]]:
    """An answer to OffsetFetch: by group the error code, and the commits by topic.

    Args:
        asked: the groups of the request. An answer to a request for one group may not name it.
        answer: the decoded answer. Groups that were not asked for are left out.
    """
    found = {}
    for group in answer["groups"]:
        group_id = asked[0] if len(asked) == 1 and not group["group_id"] else group["group_id"]
        if group_id in asked:
            found[group_id] = group["error_code"], _commits(group)
    return found


def _commits(answer: Mapping[str, Any]) -> dict[str, TopicCommits]:
    found: dict[str, TopicCommits] = {}
    for row in answer["partitions"]:
        if row["error_code"] == 0 and row["committed_offset"] >= 0:
            if row["topic"] not in found:
                found[row["topic"]] = TopicCommits(array("i"), array("q"))
            found[row["topic"]].numbers.append(row["partition_index"])
            found[row["topic"]].offsets.append(row["committed_offset"])
    return found


@dataclass(frozen=True, slots=True)
class TopicCommits:
    """The commits of a group for a topic: partition numbers, and the offset of each."""

    numbers: array[int]
    offsets: array[int]


def committed_in(
    commits: Mapping[str, TopicCommits], topics: Mapping[str, TopicSnapshot]
) -> dict[str, tuple[int | None, ...]]:
    """The commits of the partitions that exist, by topic."""
    found = {}
    for topic, of_topic in sorted(commits.items(), key=lambda each: each[0]):
        if topic in topics:
            offsets = array("q", [-1]) * topics[topic].partitions
            for number, offset in zip(of_topic.numbers, of_topic.offsets, strict=True):
                if number in range(len(offsets)):
                    offsets[number] = offset
            found[topic] = known(offsets)
    return found


def is_moving(group: GroupSnapshot) -> bool:
    """Whether a group of the classic protocol rebalances. Then a broker does not send the subscriptions."""
    return group.protocol == "classic" and group.state in ("PreparingRebalance", "CompletingRebalance")


def _sorted(assignment: Iterable[tuple[str, list[int]]]) -> dict[str, tuple[int, ...]]:
    found: dict[str, set[int]] = {}
    for topic, numbers in assignment:
        found.setdefault(topic, set()).update(numbers)
    return {topic: tuple(sorted(found[topic])) for topic in sorted(found) if found[topic]}


def _listed(assignment: Iterable[tuple[str, list[int]]]) -> dict[str, tuple[int, ...]]:
    """In the broker's order, which its next plans depend on."""
    found: dict[str, dict[int, None]] = {}
    for topic, numbers in assignment:
        found.setdefault(topic, {}).update(dict.fromkeys(numbers))
    return {topic: tuple(numbers) for topic, numbers in found.items() if numbers}


def _matching(expressions: Iterable[str], topics: list[str], patience: float) -> dict[str, list[str]]:
    """The topics that each expression matches: none if it is invalid, or if the time is up.

    Any member may write an expression. The cost of matching is its size times the number of names, so short ones come
    first.
    """
    found: dict[str, list[str]] = {}
    late = time.monotonic() + patience
    for text in sorted(expressions, key=lambda each: (len(each), each)):
        found[text] = []
        try:
            expression = _core.Expression.re2(text)
        except OptionError:
            continue
        for names in _cut(topics, _NAMES_AT_ONCE):
            if time.monotonic() >= late:
                found[text] = []
                break
            found[text] += itertools.compress(names, expression.matches(names))
    return found


def _cut(values: list[Any], size: int) -> list[list[Any]]:
    return [values[at : at + size] for at in range(0, len(values), size)]
