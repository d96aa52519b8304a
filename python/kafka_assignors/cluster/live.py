"""A snapshot of a live cluster: nothing is changed there, no group joined, no offset committed."""

from __future__ import annotations

import itertools
import time
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from kafka_assignors import _core
from kafka_assignors.cluster.questions import Question, Questions, RetriableError, check
from kafka_assignors.cluster.record import record_bytes
from kafka_assignors.cluster.snapshot import (
    ClassicMember,
    ConsumerMember,
    GroupMember,
    GroupSnapshot,
    Snapshot,
    TopicSnapshot,
)
from kafka_assignors.errors import ClusterError, OptionError
from kafka_assignors.net import Address

__all__ = ["ListedGroup", "Progress", "list_groups", "read_snapshot"]

Progress: TypeAlias = Callable[[str, int, int], object]
"""Called with what is being read, how much of it is done, and how much there is."""

# Brokers that do not tell the type of a group (before Kafka 3.8) have no other.
_CLASSIC = "classic"
_OFFSETS_TOPIC, _LIMIT = "__consumer_offsets", "max.message.bytes"
_GROUP_ID_NOT_FOUND, _UNSUPPORTED_VERSION = 69, 35
_BEGIN, _END = -2, -1
_NOBODY = -1
_ISOLATION = {"read_uncommitted": 0, "read_committed": 1}
# Groups that are described at once: their members' bytes come in one answer.
_DESCRIBED_AT_ONCE = 50
# Partitions that one request for offsets asks for.
_OFFSETS_AT_ONCE = 5_000
# Requests for offsets that one broker has at once.
_BATCHES_AT_ONCE = 4
# No cluster has more; beyond it an answer is hostile.
_MOST_BROKERS = 10_000
# Names that are matched between two looks at the clock.
_NAMES_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group that a broker coordinates.

    Attributes:
        group_id: its id.
        protocol_type: `consumer` for consumers, `connect` for Kafka Connect; empty where nobody ever joined.
        state: Kafka's name of it; empty where the broker does not tell.
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
        return _list(questions, _brokers(questions)[1])


def read_snapshot(
    config: Mapping[str, Any],
    groups: Iterable[str] | None,
    *,
    topics: Iterable[str] = (),
    clients: bool = False,
    isolation_level: str = "read_uncommitted",
    timeout: float = 30.0,
    settle: float = 5.0,
    progress: Progress | None = None,
) -> Snapshot:
    """Takes a snapshot of groups and of all topics that they have to do with.

    Args:
        config: settings as for `confluent_kafka`, `bootstrap.servers` among them; docs/connections.md has those of
            TLS and SASL.
        groups: their ids; None takes all groups of consumers.
        topics: more topics, which no member subscribes to yet.
        clients: whether client ids and hosts are kept, which name people and machines. Without it they are not in the
            snapshot, but for the client id that begins a dynamic member's id.
        isolation_level: which end of a partition counts: `"read_committed"` stops at the first open transaction.
        timeout: how many seconds everything together may take.
        settle: how many seconds of these to wait for a group to become Stable: no other state tells what its members
            subscribe to.
        progress: told how far it is.

    Raises:
        ClusterError: a group does not exist, or the cluster does not answer, or refuses to.
        NetworkError: it cannot be reached.
        OptionError: a setting that cannot be used.
    """
    if isolation_level not in _ISOLATION:
        known = ", ".join(map(repr, _ISOLATION))
        raise OptionError(f"isolation_level is {isolation_level!r}; give one of {known}")
    with Questions(config, _positive(timeout)) as questions:
        reader = _Reader(questions, clients, progress or (lambda *_: None))
        cluster, brokers = _brokers(questions)
        if groups is None:
            found = [each for each in _list(questions, brokers) if each.protocol_type in ("", "consumer")]
            wanted = [each.group_id for each in found]
        else:
            wanted = sorted(set(groups))
        described = reader.groups(wanted, settle)
        taken_ms = time.time_ns() // 1_000_000
        names = {topic for group in described.values() for member in group.members for topic in member.topics}
        names |= {topic for group in described.values() for member in group.members for topic in member.owned}
        commits = questions.patiently(lambda: reader.commits(wanted))
        names |= {topic for of_group in commits.values() for topic in of_group}
        found_topics = reader.topics(names | set(topics), _ISOLATION[isolation_level])
        return Snapshot(
            cluster=cluster,
            taken_ms=taken_ms,
            topics=found_topics,
            groups={
                group_id: replace(group, committed=_committed(commits[group_id], found_topics))
                for group_id, group in described.items()
            },
            record_limit=reader.record_limit(),
        )


def _positive(timeout: float) -> float:
    if not timeout > 0:
        raise OptionError(f"timeout is {timeout!r}; give a positive number of seconds")
    return timeout


def _brokers(questions: Questions) -> tuple[str, list[Address]]:
    metadata = questions.ask("Metadata", [])
    return metadata["cluster_id"] or "", [_address(broker) for broker in _nodes(metadata).values()]


def _nodes(metadata: Mapping[str, Any]) -> dict[int, Mapping[str, Any]]:
    """The brokers by their ids."""
    if len(metadata["brokers"]) > _MOST_BROKERS:
        raise ClusterError(
            f"the answer to Metadata names {len(metadata['brokers'])} brokers; at most {_MOST_BROKERS} are believed: "
            "check bootstrap.servers"
        )
    return {broker["node_id"]: broker for broker in metadata["brokers"]}


def _address(broker: Mapping[str, Any]) -> Address:
    return Address(broker["host"], broker["port"])


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


class _Reader:
    def __init__(self, questions: Questions, clients: bool, progress: Progress) -> None:
        self._questions = questions
        self._clients = clients
        self._progress = progress

    # ---- groups -----------------------------------------------------------------------------------------------------

    def groups(self, wanted: list[str], settle: float) -> dict[str, GroupSnapshot]:
        """The groups with their members."""
        found: dict[str, GroupSnapshot] = {}
        until = time.monotonic() + settle
        rest = wanted
        while rest:
            found |= self._questions.patiently(lambda asked=tuple(rest): self._describe(asked))  # type: ignore[misc]
            self._progress("groups", len(found), len(wanted))
            rest = [group_id for group_id in rest if _is_moving(found[group_id])]
            if rest and (time.monotonic() >= until or not self._questions.pause()):
                break
        return {group_id: found[group_id] for group_id in wanted}

    def _coordinators(self, groups: Collection[str]) -> dict[Address, list[str]]:
        answers = self._questions.ask_all([Question(None, "FindCoordinator", (group_id,)) for group_id in groups])
        found: dict[Address, list[str]] = {}
        for group_id, answer in zip(groups, answers, strict=True):
            check(answer["error_code"], f"group {group_id!r} has no coordinator", answer["error_message"])
            found.setdefault(_address(answer), []).append(group_id)
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
                    found[group["group_id"]] = self._classic(group)
            found |= self._assigned_by_broker(address, others)
        for group_id in groups:
            if group_id not in found:
                raise ClusterError(f"group {group_id!r} is not in its coordinator's answer; try again")
        return found

    def _assigned_by_broker(self, address: Address, groups: list[str]) -> dict[str, GroupSnapshot]:
        if not groups:
            return {}
        missing = "group {!r} does not exist; `snapshot --list` shows the groups that do"
        if not self._questions.speaks("ConsumerGroupDescribe", address):
            raise ClusterError(missing.format(groups[0]))
        batches = _cut(groups, _DESCRIBED_AT_ONCE)
        answers = self._questions.ask_all([Question(address, "ConsumerGroupDescribe", (batch,)) for batch in batches])
        found = {}
        for answer in answers:
            for group in answer["groups"]:
                # UNSUPPORTED_VERSION: the broker knows the request, and is told not to serve it.
                if group["error_code"] in (_GROUP_ID_NOT_FOUND, _UNSUPPORTED_VERSION):
                    raise ClusterError(missing.format(group["group_id"]))
                check(group["error_code"], f"group {group['group_id']!r} cannot be described", group["error_message"])
                found[group["group_id"]] = self._consumers(group)
        return self._with_patterns(found)

    def _classic(self, group: Mapping[str, Any]) -> GroupSnapshot:
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
        # Now, since the record has client ids and hosts, which the snapshot may not keep.
        return replace(
            described,
            record_bytes=record_bytes(group["group_id"], described),
            members=tuple(self._discreet(member) for member in members),
        )

    def _consumers(self, group: Mapping[str, Any]) -> GroupSnapshot:
        members = (
            ConsumerMember(
                member["member_id"],
                member["instance_id"],
                tuple(sorted(set(member["subscribed_topic_names"]))),
                member["subscribed_topic_regex"] or None,
                member["rack_id"] or None,
                member["member_epoch"],
                _sorted(member["assignment"]),
                _sorted(member["target_assignment"]),
                None if member["member_type"] < 0 else member["member_type"] == 0,
                member["client_id"],
                member["client_host"],
            )
            for member in sorted(group["members"], key=lambda each: each["member_id"])
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

    def _with_patterns(self, groups: dict[str, GroupSnapshot]) -> dict[str, GroupSnapshot]:
        """The topics of members that subscribe by pattern, which the broker does not tell."""
        patterns = {
            member.topic_regex
            for group in groups.values()
            for member in group.members
            if isinstance(member, ConsumerMember) and member.topic_regex
        }
        if not patterns:
            return groups
        # Kafka's own topics as well: the broker makes no difference.
        every = [topic["name"] for topic in self._questions.ask("Metadata", None)["topics"]]
        matched = _matching(patterns, every, self._questions.left / 4)

        def known(member: GroupMember) -> GroupMember:
            if not isinstance(member, ConsumerMember) or not member.topic_regex:
                return member
            names = {*member.topics, *matched[member.topic_regex], *member.owned, *member.target}
            return replace(member, topics=tuple(sorted(names)))

        return {
            group_id: replace(group, members=tuple(map(known, group.members))) for group_id, group in groups.items()
        }

    def commits(self, groups: list[str]) -> dict[str, dict[str, _Commits]]:
        """By group and topic."""
        questions = [
            (group_id, Question(address, "OffsetFetch", (group_id, None, False)))
            for address, of_broker in self._coordinators(groups).items()
            for group_id in of_broker
        ]
        found: dict[str, dict[str, _Commits]] = {}
        for batch in _cut(questions, _DESCRIBED_AT_ONCE):
            before = len(found)
            answers = self._questions.ask_all(
                [question for _, question in batch],
                self._progress_after("commits", before, len(questions)),
            )
            for (group_id, _), answer in zip(batch, answers, strict=True):
                check(answer["error_code"], f"the offsets of group {group_id!r} cannot be read")
                of_group = found[group_id] = {}
                for row in answer["partitions"]:
                    if row["error_code"] == 0 and row["committed_offset"] >= 0:
                        if row["topic"] not in of_group:
                            of_group[row["topic"]] = _Commits(array("i"), array("q"))
                        of_group[row["topic"]].numbers.append(row["partition_index"])
                        of_group[row["topic"]].offsets.append(row["committed_offset"])
        return found

    # ---- topics -----------------------------------------------------------------------------------------------------

    def topics(self, names: set[str], isolation: int) -> dict[str, TopicSnapshot]:
        """The topics that exist, with their offsets."""
        if not names:
            return {}
        found, brokers = self._shapes(names)
        begin, end = (self._offsets(found, brokers, at, isolation) for at in (_BEGIN, _END))
        return {
            shape.name: TopicSnapshot(len(shape.leaders), shape.racks, _known(begin[at]), _known(end[at]))
            for at, shape in sorted(enumerate(found), key=lambda each: each[1].name)
        }

    def _shapes(self, names: set[str]) -> tuple[list[_Shape], dict[int, Address]]:
        """The topics, and the brokers' addresses by id.

        Nothing of the answer is kept: its rows take several times the memory of the result.
        """
        metadata = self._questions.ask("Metadata", sorted(names))
        nodes = _nodes(metadata)
        racks = _Racks({node: broker["rack"] for node, broker in nodes.items() if broker["rack"]})
        shapes: dict[str, _Shape] = {}
        for topic in metadata["topics"]:
            # One that does not exist, or may not be seen, or whose name is none: a member may name anything.
            if topic["error_code"] != 0:
                continue
            count = len(topic["partitions"])
            leaders = array("i", [_NOBODY]) * count
            sets = [racks.of(())] * count if racks else None
            for partition in topic["partitions"]:
                number = partition["partition_index"]
                if number in range(count):
                    leaders[number] = partition["leader_id"]
                    if sets is not None:
                        sets[number] = racks.of(partition["replica_nodes"])
            shapes[topic["name"]] = _Shape(topic["name"], leaders, None if sets is None else tuple(sets))
        return list(shapes.values()), {node: _address(broker) for node, broker in nodes.items()}

    def _offsets(
        self, topics: list[_Shape], brokers: Mapping[int, Address], at: int, isolation: int
    ) -> list[array[int]]:
        """The first or the next offsets of each topic; -1 for a partition whose leader does not tell them."""
        found = [array("q", [-1]) * len(shape.leaders) for shape in topics]
        place = {shape.name: offsets for shape, offsets in zip(topics, found, strict=True)}
        lanes = [(brokers[node], mine) for node, mine in _by_leader(topics).items() if node in brokers]
        what = "first offsets" if at == _BEGIN else "next offsets"
        done, total = 0, sum(-(-len(mine.numbers) // _OFFSETS_AT_ONCE) for _, mine in lanes)
        waiting = [_requests(topics, leader, mine, at, isolation) for leader, mine in lanes]
        # A few requests to each broker at a time: all answers together take several times the memory of the offsets.
        while batch := [each for lane in waiting for each in itertools.islice(lane, _BATCHES_AT_ONCE)]:
            answers = self._questions.ask_all(
                batch,
                self._progress_after(what, done, total),
            )
            done += len(batch)
            for answer in answers:
                for row in answer["partitions"]:
                    offsets = place.get(row["topic"])
                    number = row["partition_index"]
                    if offsets is not None and row["error_code"] == 0 and number in range(len(offsets)):
                        offsets[number] = row["offset"]
        return found

    def _progress_after(self, what: str, before: int, total: int) -> Callable[[int], object]:
        """Reports the answers to a batch, of which so many have come before."""
        return lambda answered: self._progress(what, before + answered, total)

    def record_limit(self) -> int | None:
        """What the broker allows; None where it may not be asked, or has no group yet."""
        try:
            answer = self._questions.ask("DescribeConfigs", _OFFSETS_TOPIC, [_LIMIT])
        except (ClusterError, RetriableError):
            return None
        value = answer["configs"].get(_LIMIT) if answer["error_code"] == 0 else None
        return int(value) if value is not None and value.isdigit() else None


@dataclass(frozen=True, slots=True)
class _Commits:
    """What a group has committed of a topic: partition numbers, and the offset of each."""

    numbers: array[int]
    offsets: array[int]


@dataclass(frozen=True, slots=True)
class _Shape:
    """A topic: the node id of each partition's leader, and the racks of each partition's replicas."""

    name: str
    leaders: array[int]
    racks: tuple[frozenset[str], ...] | None


class _Racks:
    """Sets of racks, of which partitions with the same replicas share one."""

    def __init__(self, of_node: Mapping[int, str]) -> None:
        self._of_node = of_node
        self._sets: dict[frozenset[str], frozenset[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._of_node)

    def of(self, nodes: Iterable[int]) -> frozenset[str]:
        found = frozenset(self._of_node[node] for node in nodes if node in self._of_node)
        return self._sets.setdefault(found, found)


@dataclass(frozen=True, slots=True)
class _Led:
    """The partitions that one broker leads: places of topics, and the partition number of each."""

    topics: array[int]
    numbers: array[int]


def _by_leader(topics: list[_Shape]) -> dict[int, _Led]:
    found: dict[int, _Led] = {}
    for at, shape in enumerate(topics):
        for number, leader in enumerate(shape.leaders):
            if leader not in found:
                found[leader] = _Led(array("i"), array("i"))
            found[leader].topics.append(at)
            found[leader].numbers.append(number)
    return found


def _requests(topics: list[_Shape], leader: Address, led: _Led, at: int, isolation: int) -> Iterator[Question]:
    for start in range(0, len(led.numbers), _OFFSETS_AT_ONCE):
        span = slice(start, start + _OFFSETS_AT_ONCE)
        asked: dict[str, list[tuple[int, int, int]]] = {}
        for topic, number in zip(led.topics[span], led.numbers[span], strict=True):
            asked.setdefault(topics[topic].name, []).append((number, at, -1))
        yield Question(leader, "ListOffsets", (list(asked.items()), isolation))


def _known(offsets: array[int]) -> tuple[int | None, ...]:
    return tuple(None if offset < 0 else offset for offset in offsets)


def _committed(
    commits: Mapping[str, _Commits], topics: Mapping[str, TopicSnapshot]
) -> dict[str, tuple[int | None, ...]]:
    """One entry for each partition that exists; what was committed for others is of no use."""
    found = {}
    for topic, of_topic in sorted(commits.items(), key=lambda each: each[0]):
        if topic in topics:
            offsets = array("q", [-1]) * topics[topic].partitions
            for number, offset in zip(of_topic.numbers, of_topic.offsets, strict=True):
                if number in range(len(offsets)):
                    offsets[number] = offset
            found[topic] = _known(offsets)
    return found


def _is_moving(group: GroupSnapshot) -> bool:
    """Whether a group of the classic protocol rebalances, which hides what its members subscribe to."""
    return group.protocol == "classic" and group.state in ("PreparingRebalance", "CompletingRebalance")


def _sorted(assignment: Iterable[tuple[str, list[int]]]) -> dict[str, tuple[int, ...]]:
    found: dict[str, set[int]] = {}
    for topic, numbers in assignment:
        found.setdefault(topic, set()).update(numbers)
    return {topic: tuple(sorted(found[topic])) for topic in sorted(found) if found[topic]}


def _matching(expressions: Iterable[str], topics: list[str], patience: float) -> dict[str, list[str]]:
    """The topics that each expression matches: none if it cannot be read, or if the time is up.

    Any member may write an expression. Matching costs its size times the number of names, so short ones come first.
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
