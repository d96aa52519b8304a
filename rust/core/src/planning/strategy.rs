//! The strategies by name, and one call that runs any of them.

use std::borrow::Cow;

use crate::planning::budget::Limit;
use crate::planning::cooperative;
use crate::planning::group::Group;
use crate::planning::lag;
use crate::planning::objective::{Objective, Rules};
use crate::planning::ownership::Ownership;
use crate::planning::plan::{LeavesOut, Outcome, Plan};
use crate::planning::range;
use crate::planning::restrictions::Restrictions;
use crate::planning::round_robin;
use crate::planning::server_side;
use crate::planning::settlement;
use crate::planning::sticky;
use crate::planning::stream_join;

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
    /// The user's own, which plans outside of the core: see [`custom`](crate::planning::custom). If the core plans it, it is the
    /// sticky strategy.
    Custom {
        /// Whether in the two phases of KIP-429.
        cooperative: bool,
    },
    /// KIP-848: the plan of a broker's own assignor. For reading only: no member can join a group with it.
    ServerSide(server_side::Assignor, server_side::Release),
}

impl Strategy {
    /// The rules for the verification of its plans. A strategy that promises no objective is measured by the default objective.
    #[must_use]
    pub fn rules(self) -> Rules {
        let eager = |objective| Rules::Partitions { objective, cooperative: false };
        match self {
            Strategy::Sticky(objective) => eager(objective),
            Strategy::CooperativeSticky(objective) => Rules::Partitions { objective, cooperative: true },
            Strategy::StreamJoin { cooperative } => Rules::StreamJoin { cooperative },
            Strategy::Custom { cooperative } => Rules::Custom { cooperative },
            Strategy::Range | Strategy::RoundRobin | Strategy::Lag(_) | Strategy::ServerSide(..) => {
                eager(Objective::default())
            }
        }
    }
}

/// Runs a strategy. `forming` is the generation being formed, where it is known: see [`settlement::settle`].
#[must_use]
pub fn assign(group: &Group, strategy: Strategy, forming: Option<i32>) -> Outcome {
    plan(group, strategy, settle(group, strategy, forming), &Limit::default())
}

/// Settles the claims as far as the strategy needs them. After this call, only a verification reads [`Group::claims`].
#[must_use]
pub fn settle(group: &Group, strategy: Strategy, forming: Option<i32>) -> Ownership {
    match strategy.rules() {
        Rules::StreamJoin { cooperative } => stream_join::settle(group, forming, cooperative),
        Rules::Partitions { cooperative, .. } | Rules::Custom { cooperative } => {
            settlement::settle(group, forming, cooperative)
        }
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
        Strategy::Custom { .. } => noted(sticky::assign_within(group, &ownership, Objective::default(), limit)),
        Strategy::Range => range::assign(group),
        Strategy::RoundRobin => round_robin::assign(group),
        Strategy::ServerSide(assignor, release) => server_side::assign(group, &ownership, assignor, release),
        Strategy::Lag(options) => noted(lag::assign_within(group, &ownership, options, limit)),
    };
    let leaves_out = match strategy {
        Strategy::Custom { .. } => LeavesOut::Anything,
        _ => LeavesOut::Nothing,
    };
    if strategy.rules().cooperative() {
        Outcome {
            plan: cooperative::withhold(&target, &ownership),
            withholding: Some(target),
            ownership,
            join,
            limited,
            leaves_out,
            weighed: None,
        }
    } else {
        Outcome { plan: target, withholding: None, ownership, join, limited, leaves_out, weighed: None }
    }
}

/// The sticky plan under restrictions, of a group whose claims are settled, within a limit. Racks do not count.
#[must_use]
pub fn plan_restricted(group: &Group, ownership: Ownership, restrictions: Restrictions, limit: &Limit<'_>) -> Outcome {
    let (plan, limited) = sticky::assign_restricted(group, &ownership, &restrictions, limit);
    let leaves_out = LeavesOut::Restricted(Box::new(restrictions));
    Outcome { plan, withholding: None, ownership, join: None, limited, leaves_out, weighed: None }
}

/// The plan from which a verification starts its search for the bounds. The search is short near an optimum: so it starts from
/// the target of a strategy that seeks the optimum, and else from a sticky plan. The bounds are the same in either case.
#[must_use]
pub fn near_optimum<'a>(group: &Group, strategy: Strategy, outcome: &'a Outcome, limit: &Limit<'_>) -> Cow<'a, Plan> {
    match strategy {
        Strategy::Range
        | Strategy::RoundRobin
        | Strategy::Lag(_)
        | Strategy::Custom { .. }
        | Strategy::ServerSide(..) => {
            Cow::Owned(sticky::assign_within(group, &outcome.ownership, Objective::default(), limit).0)
        }
        Strategy::Sticky(_) | Strategy::CooperativeSticky(_) | Strategy::StreamJoin { .. } => {
            Cow::Borrowed(outcome.target())
        }
    }
}
