"""A group must fit into one record on its broker: the plan's size of a group is compared with the broker's limit.

The topics of these groups do not exist. The broker does not parse a group's metadata, and it would need minutes to
create 200,000 partitions.
"""

from __future__ import annotations

import uuid
import warnings
from typing import TYPE_CHECKING

import pytest

from kafka_assignors import MemberState, Plan, StickyAssignor
from kafka_assignors.errors import RecordSizeWarning
from support.broker import DEFAULT_RECORD_LIMIT, Kafka, unique
from support.raw_group import NONE, REBALANCE_IN_PROGRESS, UNKNOWN_SERVER_ERROR, RawGroup

if TYPE_CHECKING:
    from collections.abc import Iterator

# The plan's size may exceed the record by so many bytes: it assumes the longest name of a strategy, and long fields
# for lengths.
SLACK = 32

CLIENTS = ("c0", "c1", "c2", "c3")
HOST = "/127.0.0.1"


class Group:
    """A `RawGroup` whose members keep their assignments, like the members of a client."""

    def __init__(self, kafka: Kafka, topics: dict[str, int]) -> None:
        self.topics = topics
        self.name = unique("large")
        self.states = {client: MemberState() for client in CLIENTS}
        self.raw = RawGroup(kafka.bootstrap_servers, self.name, CLIENTS)

    def rebalance(self) -> tuple[int, Plan]:
        """One generation: the error code of the leader's SyncGroup, and the plan."""
        assignor = StickyAssignor()
        metadata = {client: assignor.metadata(sorted(self.topics), state) for client, state in self.states.items()}
        leader = self.raw.join(metadata)
        assignments, plan = assignor.plan_assignment(leader.members, self.topics, generation=leader.generation)
        answers = self.raw.sync(assignments)
        for client, (error, assignment) in answers.items():
            if error == NONE:
                assignor.on_assignment(assignment, leader.generation, self.states[client])
        errors = {client: error for client, (error, _) in answers.items()}
        outcome = next(errors[member.client_id] for member in self.raw.members if member.member_id == leader.leader)
        # If the leader's plan was refused, a follower that sends SyncGroup later gets REBALANCE_IN_PROGRESS.
        assert set(errors.values()) <= {outcome, *([] if outcome == NONE else [REBALANCE_IN_PROGRESS])}
        return outcome, plan

    def record_bytes(self, plan: Plan) -> int:
        """The size in the plan, without its allowances for the group's id and the members' host names."""
        return plan.record_bytes - (64 - len(self.name)) - len(CLIENTS) * (16 - len(HOST))


@pytest.fixture
def group(own_kafka: Kafka, request: pytest.FixtureRequest) -> Iterator[Group]:
    made = Group(own_kafka, request.param)
    with made.raw:
        yield made


def largest_that_fits() -> int:
    """The largest number of partitions, claimed and assigned, for a group of `CLIENTS` within the default limit."""
    members = {client: f"{client}-{uuid.uuid4()}" for client in CLIENTS}
    name = unique("large")

    def fits(partitions: int) -> bool:
        assignor = StickyAssignor()
        states = {client: MemberState() for client in CLIENTS}
        for generation in (1, 2):
            joined = [(members[client], assignor.metadata(["orders"], state)) for client, state in states.items()]
            assignments, plan = assignor.plan_assignment(joined, {"orders": partitions}, generation=generation)
            for client, state in states.items():
                assignor.on_assignment(assignments[members[client]], generation, state)
        size = plan.record_bytes - (64 - len(name)) - len(CLIENTS) * (16 - len(HOST))
        return size <= DEFAULT_RECORD_LIMIT

    low, high = 100_000, 140_000
    assert fits(low)
    assert not fits(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


@pytest.mark.needs("time")
@pytest.mark.filterwarnings("ignore::kafka_assignors.errors.RecordSizeWarning")
def test_the_limit_is_where_the_plan_says(own_kafka: Kafka) -> None:
    partitions = largest_that_fits()
    below = Group(own_kafka, {"orders": partitions})
    with below.raw:
        assert below.rebalance()[0] == NONE
        error, plan = below.rebalance()
        assert error == NONE
        assert 0 <= DEFAULT_RECORD_LIMIT - below.record_bytes(plan) < 8
        assert (plan.moved, plan.kept) == (0, partitions)
        described = own_kafka.describe_group(below.name)
        assert described.state == "STABLE"
        assert sum(len(share["orders"]) for share in described.assignment.values()) == partitions
    # Each partition takes eight bytes.
    above = Group(own_kafka, {"orders": partitions + SLACK // 8})
    with above.raw:
        assert above.rebalance()[0] == NONE
        error, plan = above.rebalance()
        assert error == UNKNOWN_SERVER_ERROR
        assert 0 < above.record_bytes(plan) - DEFAULT_RECORD_LIMIT <= SLACK


@pytest.mark.parametrize("group", [{f"orders-{n}": 10_000 for n in range(20)}], indirect=True, ids=["200,000"])
def test_a_group_that_does_not_fit_is_named_and_works_once_the_limit_is_raised(own_kafka: Kafka, group: Group) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        error, plan = group.rebalance()
    assert error == NONE
    assert 200_000 * 4 < plan.record_bytes < 0.9 * DEFAULT_RECORD_LIMIT

    # In the second generation the members claim their partitions: the record contains each partition twice.
    expected = r"bytes of the 1,048,588 .* raise max\.message\.bytes of the topic __consumer_offsets"
    with pytest.warns(RecordSizeWarning, match=expected):
        error, plan = group.rebalance()
    assert error == UNKNOWN_SERVER_ERROR
    assert plan.record_bytes > 200_000 * 8
    assert own_kafka.describe_group(group.name).state != "STABLE"

    own_kafka.set_record_limit(2_000_000)
    with pytest.warns(RecordSizeWarning, match=expected):
        error, plan = group.rebalance()
    assert error == NONE
    assert (plan.moved, plan.kept) == (0, 200_000)
    described = own_kafka.describe_group(group.name)
    assert described.state == "STABLE"
    assert sum(len(numbers) for share in described.assignment.values() for numbers in share.values()) == 200_000
