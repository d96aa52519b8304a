"""A strategy's plan for a situation, verified."""

from __future__ import annotations

import traceback
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_assignors.assignors import LagBasedAssignor
from kafka_assignors.autoscale.owners import final_owners
from kafka_assignors.errors import GroupError, KafkaAssignorsError, PlanError, RecordSizeWarning
from kafka_assignors.own import CustomAssignor, described

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.group import Certificate, Group, Plan
    from kafka_assignors.planner.change import Situation
    from kafka_assignors.planner.observed_group import Partition

__all__ = ["VerifiedPlan", "final_owners", "known_lags", "plan_of", "solve"]


@dataclass(frozen=True, slots=True)
class VerifiedPlan:
    """A verified plan, and the owners once the rebalance is over, its second step included."""

    plan: Plan
    certificate: Certificate
    after: Mapping[Partition, str]
    unassigned: Mapping[Partition, str]
    withheld: int

    def lags(self, lags: Mapping[str, list[int | None]]) -> dict[str, int]:
        """The lag of each member; an unknown lag counts as 0."""
        totals = dict.fromkeys(self.plan.assignment, 0)
        for (topic, number), member in self.after.items():
            totals[member] += lags[topic][number] or 0
        return totals


def solve(situation: Situation, assignor: Assignor, lags: Mapping[str, list[int | None]]) -> VerifiedPlan:
    """Plans, and verifies the plan with code that shares nothing with the solver.

    Raises:
        GroupError: a strategy by lag, and a lag that is not known; a user's own assignor that fails.
    """
    known = known_lags(lags) if isinstance(assignor, LagBasedAssignor) else None
    plan = plan_of(assignor, situation.group_for(assignor), known)
    after, withheld = final_owners(plan)
    unassigned = {
        (each.topic, each.partition): each.reason
        for each in plan.unassigned
        if (each.topic, each.partition) not in after
    }
    return VerifiedPlan(plan, plan.verify(), after, unassigned, withheld)


def plan_of(assignor: Assignor, group: Group, lags: Mapping[str, Sequence[int]] | None) -> Plan:
    """The plan of a strategy; one by lag gets the lags.

    Raises:
        GroupError: a user's own assignor fails, or returns a value that is no plan; the error says where.
    """
    with warnings.catch_warnings():
        # Instead of this warning the planner has a finding, with the limit of the group's own cluster.
        warnings.simplefilter("ignore", RecordSizeWarning)
        if isinstance(assignor, LagBasedAssignor):
            return assignor.assign(group, lags=lags)
        try:
            return assignor.assign(group)
        except Exception as error:
            if isinstance(error, KafkaAssignorsError) and not isinstance(error, PlanError):
                raise
            if not isinstance(assignor, CustomAssignor):
                raise
            *_, last = traceback.extract_tb(error.__traceback__)
            place = "" if isinstance(error, PlanError) else f", at line {last.lineno} of {last.filename}"
            raise GroupError(f"the assignor {assignor.name!r} failed ({described(error)}{place})") from error


def known_lags(lags: Mapping[str, list[int | None]]) -> dict[str, list[int]]:
    """The same lags for a strategy, which needs all of them.

    Raises:
        GroupError: the lag of a partition is not known.
    """
    known: dict[str, list[int]] = {}
    for topic, of_topic in lags.items():
        for number, lag in enumerate(of_topic):
            if lag is None:
                raise GroupError(
                    f"the lag of {topic}-{number} is not known, so that no strategy by lag can plan; take a snapshot "
                    "while the partition has a leader, or use another strategy"
                )
        known[topic] = [lag for lag in of_topic if lag is not None]
    return known
