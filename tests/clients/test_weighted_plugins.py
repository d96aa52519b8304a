"""The weighted strategy as a plug-in of kafka-python and aiokafka: weights of the leader, capacities of all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors import OptionError, RateSource, WeightedAssignor
from kafka_assignors.clients import aiokafka, kafka_python
from support.commanded_members import AiokafkaMember, Group, KafkaPythonMember, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

WEIGHTS = [90.0, 40.0, 30.0, 20.0, 10.0, 10.0]


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as made:
        yield made


def carried(member: Any) -> float:
    numbers: list[int] = member.assignor.state.owned.get("t", [])
    return sum(WEIGHTS[number] for number in numbers)


@pytest.mark.parametrize("kind", ["kafka-python", "kafka-python cooperative", "aiokafka"])
def test_plug_ins_share_out_by_weight_and_capacity(kind: str, stage: Stage) -> None:
    def member(name: str, capacity: float) -> Any:
        room, member_class = (aiokafka, AiokafkaMember) if kind == "aiokafka" else (kafka_python, KafkaPythonMember)
        own = WeightedAssignor(
            {"t": WEIGHTS}, capacity=capacity, protocol="cooperative" if "cooperative" in kind else "eager"
        )
        return stage.add(member_class, name, [room.CustomAssignor(own)], {"t": len(WEIGHTS)})

    a, b, group = member("a", 3), member("b", 1), Group()
    for _ in range(2):
        group.rebalance(b, a)
    assert (carried(a), carried(b)) == (150.0, 50.0)
    report = b.assignor.last_report
    assert report.assignor == ("cooperative-weighted" if "cooperative" in kind else "weighted")
    assert (report.worst_load, report.load_bound, report.warnings) == (50.0, 50.0, ())
    assert a.assignor.last_report.worst_load is None


def test_rates_without_a_cluster_are_a_warning_and_numbers_count(stage: Stage) -> None:
    plug_in = kafka_python.CustomAssignor(WeightedAssignor(RateSource()))
    member = stage.add(KafkaPythonMember, "a", [plug_in], {"t": 3})
    Group().rebalance(member)
    assert member.assignor.state.owned == {"t": [0, 1, 2]}
    (warning,) = member.assignor.last_report.warnings
    assert "RateSource has no cluster" in warning


def test_aiokafka_has_no_cooperative_protocol() -> None:
    with pytest.raises(OptionError, match="'cooperative-weighted' is cooperative"):
        aiokafka.CustomAssignor(WeightedAssignor(protocol="cooperative"))
