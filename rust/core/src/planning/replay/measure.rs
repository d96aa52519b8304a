//! The measures of a plan.

use crate::planning::group::{Group, NONE};
use crate::planning::lag::lag_by_member;
use crate::planning::plan::Plan;
use crate::planning::score;

/// The measures of a plan after a rebalance.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Figures {
    /// The members.
    pub members: u32,
    /// The partitions of the topics with subscribers.
    pub partitions: u32,
    /// The partitions with an owner.
    pub assigned: u32,
    /// The fewest partitions of a member.
    pub min_count: u32,
    /// The most partitions of a member.
    pub max_count: u32,
    /// The KIP-54 balance score.
    pub balance_score: u128,
    /// The partitions that had an owner, present or not, and have another one or none.
    pub moved: u64,
    /// The fewest moves, from the same previous owners, of a plan with the least possible balance score.
    pub moved_needed: u64,
    /// The largest lag of a member, in records.
    pub max_lag: u128,
    /// The lag of all members divided by their number, in records.
    pub mean_lag: f64,
    /// `max_lag` divided by `mean_lag`: 1 is even. 1 where there is no lag.
    pub lag_skew: f64,
    /// The partition numbers, below the smallest partition count of a subscribed topic, of which different members have
    /// partitions of different topics. A join by number is not possible for them.
    pub copartition_violations: u32,
    /// The expected time that partitions are without an owner: partitions × milliseconds, see
    /// [`ownerless`](crate::planning::ownerless). `None` for an observed assignment: its group's protocol is not known.
    pub ownerless_ms: Option<u64>,
    /// The loads, if the strategy weighs partitions.
    pub loads: Option<Loads>,
}

/// The loads of a weighted plan, in the units of the given weights and capacities.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loads {
    /// The load of the most loaded member, divided by its capacity.
    pub worst: f64,
    /// A lower bound of the worst load in any plan.
    pub bound: f64,
}

/// The figures that depend on the owners before a rebalance.
pub(super) struct Moves {
    pub(super) moved: u64,
    pub(super) moved_needed: u64,
    pub(super) ownerless_ms: Option<u64>,
}

/// Measures a plan, except for its weighted loads. `subscribed` is by topic: whether it has subscribers; `counts` has the numbers
/// of partitions of the members, ascending. O(partitions + members).
pub(super) fn figures(group: &Group, subscribed: &[bool], plan: &Plan, counts: &[u32], moves: &Moves) -> Figures {
    // Without known lags every sum is 0.
    let lags = if group.topics().lags().is_empty() { Vec::new() } else { lag_by_member(group, plan) };
    let max_lag = lags.iter().copied().max().unwrap_or(0);
    let mean_lag = lags.iter().sum::<u128>() as f64 / group.members().max(1) as f64;
    let wanted = (0u32..).zip(subscribed).filter(|(_, wanted)| **wanted).map(|(topic, _)| topic);
    Figures {
        members: group.members() as u32,
        partitions: wanted.clone().map(|topic| group.topics().count(topic)).sum(),
        assigned: counts.iter().sum(),
        min_count: counts.first().copied().unwrap_or(0),
        max_count: counts.last().copied().unwrap_or(0),
        balance_score: score::of_sorted(counts.iter().copied().map(u64::from)),
        moved: moves.moved,
        moved_needed: moves.moved_needed,
        max_lag,
        mean_lag,
        lag_skew: if max_lag == 0 { 1.0 } else { max_lag as f64 / mean_lag },
        copartition_violations: split_numbers(group, wanted, plan),
        ownerless_ms: moves.ownerless_ms,
        loads: None,
    }
}

fn split_numbers(group: &Group, topics: impl Iterator<Item = u32> + Clone, plan: &Plan) -> u32 {
    let Some(eligible) = topics.clone().map(|topic| group.topics().count(topic)).min() else { return 0 };
    if topics.clone().nth(1).is_none() {
        return 0;
    }
    let starts: Vec<u32> = topics.map(|topic| group.topics().range(topic).start).collect();
    let split = |number: &u32| {
        let mut owners =
            starts.iter().map(|start| plan.owner[(start + number) as usize]).filter(|&owner| owner != NONE);
        owners.next().is_some_and(|first| owners.any(|owner| owner != first))
    };
    (0..eligible).filter(split).count() as u32
}
