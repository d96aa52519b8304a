"""The user data of assignments, a guard against the conversion of a group (KIP-848), and leaders that write none."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_assignors.assignors import Assignor, by_name
from kafka_assignors.clients import aiokafka, kafka_python
from kafka_assignors.clients.common.group_protocol import DEFAULTS
from kafka_assignors.errors import OptionError
from kafka_assignors.member.strategies import Strategies
from kafka_assignors.userdata import Assignment
from support.commanded_members import AiokafkaMember, Group, KafkaPythonMember, Stage
from support.own import Sparing

ASSIGNORS: list[Assignor] = [
    *(
        by_name(name)
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
    ),
    Sparing(most=12),
]
TOPICS = {"a": 12, "b": 12}


class Led:
    """A group of our members, of which the first leads. Each member keeps its assignment."""

    def __init__(self, assignor: Assignor, *, guards: bool) -> None:
        self.assignor = assignor
        self.generation = 0
        self.members = {name: Strategies([assignor], None, None, guards=guards) for name in ("m0", "m1")}
        self.owned: dict[str, dict[str, list[int]]] = {name: {} for name in self.members}

    def join(self, name: str, *, guards: bool) -> None:
        self.members[name] = Strategies([self.assignor], None, None, guards=guards)
        self.owned[name] = {}

    def rebalance(self) -> dict[str, bytes]:
        self.generation += 1
        told = [(name, None, each.metadata([*TOPICS], self.owned[name])[0][1]) for name, each in self.members.items()]
        counts = {topic: (count, ()) for topic, count in TOPICS.items()}
        assignments = self.members["m0"].plan(self.assignor.name, told, counts, self.generation)
        for name, each in self.members.items():
            share = {topic: list(numbers) for topic, numbers in Assignment.decode(assignments[name]).partitions.items()}
            each.take(self.assignor.name, assignments[name], self.generation, share)
            self.owned[name] = share
        return assignments

    def settle(self) -> dict[str, dict[str, list[int]]]:
        for _ in range(3):
            self.rebalance()
        return {name: dict(share) for name, share in self.owned.items()}


@pytest.mark.parametrize("assignor", ASSIGNORS, ids=lambda each: each.name)
def test_a_guarded_assignment_has_the_generation_and_another_one_null(assignor: Assignor) -> None:
    guarded, bare = Led(assignor, guards=True), Led(assignor, guards=False)
    for generation in range(1, 4):
        with_it, without = guarded.rebalance(), bare.rebalance()
        assert with_it.keys() == without.keys()
        for name, assignment in with_it.items():
            assert Assignment.decode(assignment, strict=True).generation == generation
            assert assignment[-8:-4] == (4).to_bytes(4)
            # All other bytes are equal: the plan is the same.
            assert without[name] == assignment[:-8] + b"\xff" * 4


@pytest.mark.parametrize("assignor", ASSIGNORS, ids=lambda each: each.name)
def test_a_group_without_user_data_stays_as_sticky(assignor: Assignor) -> None:
    """The subscription contains the owned partitions, and the generation comes from the membership."""
    owned = {}
    for guards in (True, False):
        led = Led(assignor, guards=guards)
        led.settle()
        led.join("m2", guards=guards)
        owned[guards] = [led.settle(), led.settle()]
    assert owned[True] == owned[False]
    assert sum(len(numbers) for share in owned[False][-1].values() for numbers in share.values()) == 24


@pytest.mark.parametrize("name", ["sticky-join", "cooperative-sticky-join"])
def test_epochs_go_on_where_leaders_of_both_kinds_take_turns(name: str) -> None:
    led = Led(by_name(name), guards=True)
    before = led.settle()
    # A rolling restart to the setting "migrate": the leader is the first member with it.
    old = led.members["m0"]
    led.join("m0", guards=False)
    led.members["m0"]._states = old._states
    led.owned["m0"] = before["m0"]
    assert led.settle() == before
    state = led.members["m1"]._states[name]
    assert state.generation == led.generation


PLUG_INS: list[tuple[Any, Any, Any]] = [
    (KafkaPythonMember, kafka_python, kafka_python.StickyAssignor),
    (KafkaPythonMember, kafka_python, kafka_python.CooperativeStickyAssignor),
    (KafkaPythonMember, kafka_python, kafka_python.StickyStreamJoinAssignor),
    (AiokafkaMember, aiokafka, aiokafka.StickyAssignor),
    (AiokafkaMember, aiokafka, aiokafka.StickyStreamJoinAssignor),
]


@pytest.mark.parametrize(
    ("member", "client", "kind"), PLUG_INS, ids=[f"{client.__name__} {kind.__name__}" for _, client, kind in PLUG_INS]
)
def test_plug_ins_have_the_choice(member: Any, client: Any, kind: Any) -> None:
    del client
    for option, length in (({}, 4), ({"on_broker_assignor": "migrate"}, 0)):
        with Stage() as stage:
            one = stage.add(member, "one", [kind(**option)], {"t": 4})
            assignments = Group().rebalance(one)
            written = [Assignment.decode(each).user_data or b"" for each in assignments.values()]
            assert [len(each) for each in written] == [length]
            assert one.held() == {("t", number) for number in range(4)}
    with pytest.raises(OptionError, match="on_broker_assignor is 'carry-on'; give one of 'fail', 'migrate'"):
        kind(on_broker_assignor="carry-on")


def test_a_drop_in_takes_the_choice_of_a_plug_in() -> None:
    from kafka_assignors.clients.kafka_python.config import ConsumerConfig

    given = {"bootstrap_servers": "b:1", "group_id": "g", **DEFAULTS}
    strategies = [kafka_python.StickyAssignor(on_broker_assignor="migrate")]
    read = ConsumerConfig.read({**given, "partition_assignment_strategy": strategies})
    assert read is not None
    assert read.on_broker_assignor == "migrate"
