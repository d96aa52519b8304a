//! The strategies by name, and one call that runs any of them.

use crate::budget::{Limit, Limited};
use crate::cooperative;
use crate::group::{Group, NONE};
use crate::lag;
use crate::ownership::{self, CONTESTED, Ownership};
use crate::plan::{Plan, Reason};
use crate::range;
use crate::round_robin;
use crate::sticky;
use crate::stream_join;
use crate::verify::{self, Certificate, PlanFault};

/// What the sticky strategies put first (KIP-54 and the two alternatives that it names).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// The least balance score, and among those plans the most partitions kept.
    #[default]
    FairYetSticky,
    /// Nothing that is validly owned moves; the rest goes where it makes the least balance score.
    StickyYetFair,
    /// The least balance score; the past does not count.
    Fair,
}

/// Where rack matches stand among the objectives (KIP-881). Balance comes first in either case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RackOrder {
    /// Balance, racks, stickiness: Java's order.
    #[default]
    BeforeStickiness,
    /// Balance, stickiness, racks.
    AfterStickiness,
}

/// The objectives of a sticky plan, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Objective {
    /// Balance against stickiness.
    pub mode: Mode,
    /// Racks against stickiness.
    pub racks: RackOrder,
}

/// A strategy with its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// KIP-54, eager.
    Sticky(Objective),
    /// KIP-54 in the two phases of KIP-429.
    CooperativeSticky(Objective),
    /// KIP-315: number `n` of every topic goes to one member, and numbers stay where they were.
    StreamJoin {
        /// Whether in the two phases of KIP-429.
        cooperative: bool,
    },
    /// Kafka's range assignor.
    Range,
    /// Kafka's round-robin assignor.
    RoundRobin,
    /// KAFKA-5337: by the lag of the partitions, which the topics carry.
    Lag(lag::Options),
}

/// A plan and what it was made from.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Who gets what now.
    pub plan: Plan,
    /// Who will have what once withheld partitions are free, where that is not `plan`: only in cooperative rebalancing.
    pub withholding: Option<Plan>,
    /// Who owned what.
    pub ownership: Ownership,
    /// Of a stream join, the numbers.
    pub join: Option<stream_join::Numbers>,
    /// The search of the strategy that ended early, if one did: a better plan may exist.
    pub limited: Option<Limited>,
}

impl Outcome {
    /// Who will have what once withheld partitions are free.
    #[must_use]
    pub fn target(&self) -> &Plan {
        self.withholding.as_ref().unwrap_or(&self.plan)
    }

    /// The partitions withheld from the member that is to have them, since another member still holds them.
    pub fn withheld(&self) -> impl Iterator<Item = u32> {
        let owners = self.plan.owner.iter().zip(&self.target().owner);
        (0u32..).zip(owners).filter(|(_, (now, then))| now != then).map(|(partition, _)| partition)
    }

    /// The partitions that nobody gets now, ascending, each with the reason. `group` is the one that was planned.
    /// O(partitions).
    pub fn unassigned(&self, group: &Group) -> impl Iterator<Item = (u32, Reason)> {
        let (plan, target, ownership) = (&self.plan, self.target(), &self.ownership);
        let open = (0u32..).zip(&plan.owner).filter(|(_, owner)| **owner == NONE).map(|(partition, _)| partition);
        open.map(|partition| {
            let holder = ownership.held.get(partition as usize).copied().unwrap_or(NONE);
            let reason = match (target.owner[partition as usize], holder) {
                (NONE, _) => {
                    self.join.as_ref().map_or(Reason::NoSubscriber, |join| join.why_unassigned(group, partition))
                }
                (_, CONTESTED) => Reason::Contested,
                (_, holder) => Reason::Withheld { holder },
            };
            (partition, reason)
        })
    }

    /// Verifies the outcome as [`verify::verify_outcome`] does. For a strategy that does not seek the optimum, the search for the
    /// bounds starts from a sticky plan, near which it is short; they are proven all the same.
    ///
    /// # Errors
    /// The first fault that makes the plan invalid.
    pub fn verify(&self, group: &Group, strategy: Strategy) -> Result<Certificate, PlanFault> {
        self.verify_within(group, strategy, &Limit::default())
    }

    /// As [`Outcome::verify`], within a limit. Where the limit was too small for a bound, the bound is `None`.
    ///
    /// # Errors
    /// As [`Outcome::verify`].
    pub fn verify_within(
        &self,
        group: &Group,
        strategy: Strategy,
        limit: &Limit<'_>,
    ) -> Result<Certificate, PlanFault> {
        match strategy {
            Strategy::Range | Strategy::RoundRobin | Strategy::Lag(_) => {
                let (start, _) = sticky::assign_within(group, &self.ownership, Objective::default(), limit);
                verify::verify_outcome_from(group, strategy, self, &start, limit)
            }
            _ => verify::verify_outcome_from(group, strategy, self, self.target(), limit),
        }
    }

    /// Kept, moved: partitions that stay with the member that owned them, and partitions that had an owner and change it. A
    /// withheld partition counts by its target.
    #[must_use]
    pub fn kept_and_moved(&self) -> (u32, u32) {
        let (mut kept, mut moved) = (0, 0);
        for (&before, &after) in self.ownership.owner.iter().zip(&self.target().owner) {
            kept += u32::from(before != NONE && before == after);
            moved += u32::from(before != NONE && before != after);
        }
        (kept, moved)
    }
}

/// Runs a strategy. `forming` is the generation being formed, where it is known: see [`ownership::settle`].
#[must_use]
pub fn assign(group: &Group, strategy: Strategy, forming: Option<i32>) -> Outcome {
    plan(group, strategy, settle(group, strategy, forming), &Limit::default())
}

/// Settles the claims as far as the strategy needs them. Afterwards it needs [`Group::claims`] no more.
#[must_use]
pub fn settle(group: &Group, strategy: Strategy, forming: Option<i32>) -> Ownership {
    match strategy {
        Strategy::StreamJoin { cooperative } => stream_join::settle(group, forming, cooperative),
        _ => ownership::settle(group, forming, matches!(strategy, Strategy::CooperativeSticky(_))),
    }
}

/// Plans a group whose claims are settled, within a limit: the second half of [`assign`].
#[must_use]
pub fn plan(group: &Group, strategy: Strategy, ownership: Ownership, limit: &Limit<'_>) -> Outcome {
    let mut join = None;
    let mut limited = None;
    let mut noted = |(plan, early)| {
        limited = early;
        plan
    };
    let target = match strategy {
        Strategy::Sticky(objective) | Strategy::CooperativeSticky(objective) => {
            noted(sticky::assign_within(group, &ownership, objective, limit))
        }
        Strategy::StreamJoin { .. } => {
            let (target, numbers) = stream_join::assign(group, &ownership);
            join = Some(numbers);
            target
        }
        Strategy::Range => range::assign(group),
        Strategy::RoundRobin => round_robin::assign(group),
        Strategy::Lag(options) => noted(lag::assign_within(group, &ownership, options, limit)),
    };
    if matches!(strategy, Strategy::CooperativeSticky(_) | Strategy::StreamJoin { cooperative: true }) {
        Outcome {
            plan: cooperative::withhold(&target, &ownership),
            withholding: Some(target),
            ownership,
            join,
            limited,
        }
    } else {
        Outcome { plan: target, withholding: None, ownership, join, limited }
    }
}
