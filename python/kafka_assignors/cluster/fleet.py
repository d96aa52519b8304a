"""The reader of all groups of a live cluster. A part that cannot be read is named; the other parts are still read.

A broker that lists a group coordinates it. So no request asks for a coordinator unless a group has moved meanwhile.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from kafka_assignors.cluster.ages import STEPS_S, Ages
from kafka_assignors.cluster.groups import GroupSnapshot, TopicSnapshot
from kafka_assignors.cluster.live import (
    GroupReader,
    TopicCommits,
    brokers_in,
    commits_by_group,
    committed_in,
    is_moving,
)
from kafka_assignors.cluster.questions import PASSING, Question, Questions, named
from kafka_assignors.cluster.snapshot import Snapshot
from kafka_assignors.cluster.topics import NO_RECORD, Progress, broker_address, known, read_offsets_at, read_topics
from kafka_assignors.errors import ClusterError, KafkaAssignorsError
from kafka_assignors.lag import check_reading
from kafka_assignors.printable import printable

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from kafka_assignors.net import Address

__all__ = ["Look", "Missing", "read_fleet"]

_NOT_COORDINATOR, _GROUP_ID_NOT_FOUND, _UNSUPPORTED_VERSION = 16, 69, 35
_DESCRIBED_AT_ONCE = 50
# Requests whose answers are in memory at once.
_REQUESTS_AT_ONCE = 100
# One kind of request may take this part of the time that is left, so that a silent broker leaves time for the others.
_PART = 0.35
_CONSUMER = "consumer"

Kind: TypeAlias = Literal["broker", "group", "gone", "offsets", "topic"]


@dataclass(frozen=True, slots=True)
class Missing:
    """A part of a cluster that could not be read.

    Attributes:
        kind: `broker`, `group`, `topic`, `offsets` of partitions of a broker; `gone` for a group that was deleted
            meanwhile.
        name: the address of the broker, the id of the group, or the topic.
        reason: why.
    """

    kind: Kind
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Look:
    """The state of all groups of a cluster, from one reading.

    Attributes:
        snapshot: its groups and topics.
        ages: when records were written; None if that was not asked for.
        missing: the parts that could not be read.
    """

    snapshot: Snapshot
    ages: Ages | None = None
    missing: tuple[Missing, ...] = ()


def read_fleet(
    config: Mapping[str, Any],
    *,
    ages: bool = True,
    wanted: Callable[[str], bool] | None = None,
    isolation_level: str = "read_uncommitted",
    timeout: float = 30.0,
    stable_within: float = 2.0,
    progress: Progress | None = None,
) -> Look:
    """Reads all groups of consumers, of both protocols; if some brokers do not answer, the groups of the others.

    Args:
        config: settings as for `confluent_kafka`, `bootstrap.servers` among them.
        ages: whether to ask when the unread records were written: four more requests for 5,000 partitions with lag.
        wanted: which groups are read, by id; all by default.
        isolation_level: the end of a partition: `"read_committed"` stops at the first open transaction.
        timeout: the seconds that all requests together may take.
        stable_within: how many seconds of these to wait for groups to become Stable, and for errors to pass.
        progress: called with the progress.

    Raises:
        ClusterError: no broker lists its groups.
        NetworkError: no broker can be reached.
        OptionError: a setting that cannot be used.
    """
    check_reading(isolation_level, timeout)
    setup = {"socket.connection.setup.timeout.ms": max(1_000, min(10_000, int(timeout * 100)))}
    with Questions({**setup, **config}, timeout) as questions:
        reader = _FleetReader(questions, progress or (lambda *_: None), stable_within)
        cluster, brokers = brokers_in(questions)
        reader.find_groups(brokers, wanted)
        described = reader.describe()
        taken_ms = time.time_ns() // 1_000_000
        commits = reader.commits(described)
        described = {group_id: group for group_id, group in described.items() if group_id in commits}
        names = {topic for group in described.values() for member in group.members for topic in member.topics}
        names |= {topic for group in described.values() for member in group.members for topic in member.owned}
        names |= {topic for of_group in commits.values() for topic in of_group}
        topics = reader.topics(names, isolation_level)
        snapshot = Snapshot(
            cluster=cluster,
            taken_ms=taken_ms,
            topics=topics,
            groups={
                group_id: replace(group, committed=committed_in(commits[group_id], topics))
                for group_id, group in sorted(described.items())
            },
            record_limit=reader.record_limit(),
        )
        found = reader.ages(snapshot, isolation_level) if ages else None
        return Look(snapshot, found, tuple(reader.missing))


class _FleetReader:
    def __init__(self, questions: Questions, progress: Progress, stable_within: float) -> None:
        self._questions = questions
        self._progress = progress
        self._stable_within = stable_within
        self._reader = GroupReader(questions, False, progress)
        self._of_broker: dict[str, Address] = {}
        self._by_broker_assigned: set[str] = set()
        # In order, and each only once.
        self.missing: dict[Missing, None] = {}

    def _ask(self, questions: Sequence[Question]) -> list[Any | KafkaAssignorsError]:
        return self._questions.ask_each(questions, self._questions.left * _PART)

    def _miss(self, kind: Kind, name: str, reason: object) -> None:
        self.missing[Missing(kind, name, printable(reason))] = None

    # ---- groups -----------------------------------------------------------------------------------------------------

    def find_groups(self, brokers: Sequence[Address], wanted: Callable[[str], bool] | None) -> None:
        """Finds the groups of consumers, and the broker of each."""
        rest = list(brokers)
        until = time.monotonic() + self._stable_within
        first: KafkaAssignorsError | None = None
        listed = 0
        while rest:
            again: list[tuple[Address, str]] = []
            answers = self._ask([Question(address, "ListGroups", ([],)) for address in rest])
            for address, answer in zip(rest, answers, strict=True):
                if isinstance(answer, KafkaAssignorsError):
                    first = first or answer
                    self._miss("broker", str(address), answer)
                elif answer["error_code"] in PASSING:
                    again.append((address, named(answer["error_code"])))
                elif answer["error_code"] != 0:
                    first = first or ClusterError(
                        f"the groups of {address} cannot be listed: {named(answer['error_code'])}"
                    )
                    self._miss("broker", str(address), f"its groups cannot be listed: {named(answer['error_code'])}")
                else:
                    listed += 1
                    self._take(address, answer["groups"], wanted)
            if again and (time.monotonic() >= until or not self._questions.pause()):
                for address, error in again:
                    first = first or ClusterError(f"the groups of {address} cannot be listed: {error}")
                    self._miss("broker", str(address), f"its groups cannot be listed: {error}")
                break
            rest = [address for address, _ in again]
        if not listed and first is not None:
            raise first

    def _take(
        self, address: Address, groups: Iterable[Mapping[str, Any]], wanted: Callable[[str], bool] | None
    ) -> None:
        for group in groups:
            if group["protocol_type"] not in ("", _CONSUMER) or group["group_type"].lower() not in (
                "",
                "classic",
                _CONSUMER,
            ):
                continue
            if wanted is None or wanted(group["group_id"]):
                self._of_broker[group["group_id"]] = address
                if group["group_type"].lower() == _CONSUMER:
                    self._by_broker_assigned.add(group["group_id"])

    def describe(self) -> dict[str, GroupSnapshot]:
        """The groups that can be described, with their members."""
        found: dict[str, GroupSnapshot] = {}
        until = time.monotonic() + self._stable_within
        rest = sorted(self._of_broker)
        while rest:
            passing = self._describe(rest, found)
            moving = [group_id for group_id in rest if group_id in found and is_moving(found[group_id])]
            rest = sorted({*passing, *moving})
            if rest and (time.monotonic() >= until or not self._questions.pause()):
                for group_id, error in passing.items():
                    self._miss("group", group_id, error)
                break
            self._find([group_id for group_id, error in passing.items() if error.startswith("NOT_COORDINATOR")])
        try:
            return self._reader.with_matched_topics(found)
        except KafkaAssignorsError as error:
            self._miss("offsets", "of topics that members subscribe to by pattern", error)
            return found

    def _describe(self, groups: Sequence[str], found: dict[str, GroupSnapshot]) -> dict[str, str]:
        """Adds the groups that answer; returns those whose error may pass, with the error."""
        passing: dict[str, str] = {}
        # The first batch of every broker, then the second one of every broker: all of them work at the same time.
        in_turn: list[tuple[int, Question]] = []
        for request, chosen in (
            ("DescribeGroups", [each for each in groups if each not in self._by_broker_assigned]),
            ("ConsumerGroupDescribe", [each for each in groups if each in self._by_broker_assigned]),
        ):
            of_address: dict[Address, list[str]] = {}
            for group_id in chosen:
                of_address.setdefault(self._of_broker[group_id], []).append(group_id)
            for address, names in of_address.items():
                for at in range(0, len(names), _DESCRIBED_AT_ONCE):
                    in_turn.append((at, Question(address, request, (names[at : at + _DESCRIBED_AT_ONCE],))))
        questions = [question for _, question in sorted(in_turn, key=lambda each: each[0])]
        for at in range(0, len(questions), _REQUESTS_AT_ONCE):
            self._describe_some(questions[at : at + _REQUESTS_AT_ONCE], found, passing)
            self._progress("groups", len(found), len(self._of_broker))
        return passing

    def _describe_some(
        self, questions: Sequence[Question], found: dict[str, GroupSnapshot], passing: dict[str, str]
    ) -> None:
        for question, answer in zip(questions, self._ask(questions), strict=True):
            if isinstance(answer, KafkaAssignorsError):
                for group_id in question.fields[0]:
                    self._miss("group", group_id, answer)
                continue
            for group in answer["groups"]:
                group_id, error = group["group_id"], group["error_code"]
                if group_id not in self._of_broker:
                    continue
                if error in PASSING:
                    passing[group_id] = named(error)
                elif error in (_GROUP_ID_NOT_FOUND, _UNSUPPORTED_VERSION) or group["group_state"].lower() == "dead":
                    self._vanished(group_id, question.request, passing)
                elif error != 0:
                    self._miss("group", group_id, f"it cannot be described: {named(error)}")
                elif question.request == "DescribeGroups":
                    found[group_id] = self._reader.classic(group)
                else:
                    found[group_id] = self._reader.consumers(group)

    def _vanished(self, group_id: str, request: str, passing: dict[str, str]) -> None:
        """A group that one request does not find: it is of the other protocol, or was deleted."""
        try:
            newer = self._questions.speaks("ConsumerGroupDescribe", self._of_broker[group_id])
        except KafkaAssignorsError as error:
            self._miss("group", group_id, error)
            return
        if request == "DescribeGroups" and newer:
            self._by_broker_assigned.add(group_id)
            passing[group_id] = "it was deleted, or is of a type that is not known here"
        else:
            self._miss("gone", group_id, "it was deleted while it was read")

    def _find(self, groups: Sequence[str]) -> None:
        """The coordinators of groups that have moved to another broker."""
        answers = self._ask([Question(None, "FindCoordinator", (group_id,)) for group_id in groups])
        for group_id, answer in zip(groups, answers, strict=True):
            if not isinstance(answer, KafkaAssignorsError) and answer["error_code"] == 0:
                self._of_broker[group_id] = broker_address(answer)

    def commits(self, groups: Iterable[str]) -> dict[str, dict[str, TopicCommits]]:
        """The commits of the groups whose commits can be read, by group and topic."""
        found: dict[str, dict[str, TopicCommits]] = {}
        total = len(self._of_broker)
        until = time.monotonic() + self._stable_within
        rest = list(groups)
        while rest:
            passing: dict[str, int] = {}
            questions = self._questions.offset_fetches({each: self._of_broker[each] for each in rest})
            for at in range(0, len(questions), _REQUESTS_AT_ONCE):
                batch = questions[at : at + _REQUESTS_AT_ONCE]
                for question, answer in zip(batch, self._ask(batch), strict=True):
                    self._take_commits([group_id for group_id, _ in question.fields[0]], answer, found, passing)
                self._progress("commits", len(found), total)
            rest = list(passing)
            if rest and (time.monotonic() >= until or not self._questions.pause()):
                for group_id, error in passing.items():
                    self._miss("group", group_id, f"its offsets cannot be read: {named(error)}")
                break
            self._find([group_id for group_id, error in passing.items() if error == _NOT_COORDINATOR])
        return found

    def _take_commits(
        self, asked: Sequence[str], answer: Any, found: dict[str, dict[str, TopicCommits]], passing: dict[str, int]
    ) -> None:
        if isinstance(answer, KafkaAssignorsError):
            for group_id in asked:
                self._miss("group", group_id, answer)
            return
        answered = commits_by_group(asked, answer)
        for group_id in asked:
            error, commits = answered.get(group_id, (_GROUP_ID_NOT_FOUND, {}))
            if error in PASSING:
                passing[group_id] = error
            elif error == _GROUP_ID_NOT_FOUND:
                self._miss("gone", group_id, "it was deleted while it was read")
            elif error != 0:
                self._miss("group", group_id, f"its offsets cannot be read: {named(error)}")
            else:
                found[group_id] = commits

    # ---- topics -----------------------------------------------------------------------------------------------------

    def _offsets(self, questions: Sequence[Question], progress: Callable[[int], object]) -> list[Any]:
        """Answers to ListOffsets; in place of an answer that does not come, one without partitions."""
        answers = []
        for question, answer in zip(questions, self._ask(questions), strict=True):
            if isinstance(answer, KafkaAssignorsError):
                self._miss("offsets", str(question.address), answer)
                answers.append({"partitions": ()})
            else:
                answers.append(answer)
        progress(len(questions))
        return answers

    def topics(self, names: set[str], isolation_level: str) -> dict[str, TopicSnapshot]:
        """The topics that exist, with the offsets that can be read."""
        if not names:
            return {}

        def refused(name: str, error: int) -> None:
            self._miss("topic", name, f"it cannot be described, and its lag is not known: {named(error)}")

        _, found = read_topics(self._questions, names, isolation_level, self._progress, self._offsets, refused)
        return {
            each.name: TopicSnapshot(len(each.end), each.racks, known(each.begin), known(each.end)) for each in found
        }

    def record_limit(self) -> int | None:
        """The largest record of a group; None if it cannot be read."""
        try:
            return self._reader.record_limit()
        except KafkaAssignorsError:
            return None

    def ages(self, snapshot: Snapshot, isolation_level: str) -> Ages:
        """When the records that wait were written."""
        waiting: dict[str, set[int]] = {}
        for group in snapshot.groups.values():
            for name, committed in group.committed.items():
                ends = snapshot.topics[name].end or ()
                numbers = {
                    number
                    for number, (commit, end) in enumerate(zip(committed, ends, strict=False))
                    if commit is not None and end is not None and commit < end
                }
                if numbers:
                    waiting.setdefault(name, set()).update(numbers)
        times = tuple(snapshot.taken_ms - 1000 * step for step in sorted(STEPS_S, reverse=True))
        if not waiting:
            return Ages(snapshot.taken_ms, times, {})
        try:
            offsets = read_offsets_at(self._questions, waiting, times, isolation_level, self._progress, self._offsets)
        except KafkaAssignorsError as error:
            self._miss("offsets", "by time", error)
            return Ages(snapshot.taken_ms, times, {})
        return Ages(
            snapshot.taken_ms, times, {name: _ended(snapshot.topics[name], each) for name, each in offsets.items()}
        )


def _ended(topic: TopicSnapshot, by_time: Sequence[array[int]]) -> Sequence[array[int]]:
    """Offsets by time. If no record of a partition is as new as a time, the end of the partition is the offset."""
    ends = topic.end or ()
    for offsets in by_time:
        for number, end in enumerate(ends[: len(offsets)]):
            if offsets[number] == NO_RECORD and end is not None:
                offsets[number] = end
    return by_time
