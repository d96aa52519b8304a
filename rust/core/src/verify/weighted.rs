//! Verifies a weighted plan, and measures its distance from the least worst load and from the fewest moves.
//!
//! The outcome contains a bound of the worst relative load and its proof: a set of topics and a counting argument. This module
//! repeats the argument, from the group and the weights alone.

use super::{
    Certificate, PlanFault, check_complete, check_ownership, check_plan, claims, kept_and_moved, name, reasons,
    subscribed_topics, verify_outcome_from,
};
use crate::planning::budget::Limit;
use crate::planning::group::{Group, NONE};
use crate::planning::objective::{Objective, Rules};
use crate::planning::plan::{Outcome, Plan};
use crate::planning::weights::{LoadBound, LoadProof, RelativeLoad, TOLERANCE_UNIT, Weighed, Weights};

/// The measures of a valid weighted plan; for a cooperative plan, those of the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadCertificate {
    /// The largest load of a member relative to its capacity.
    pub worst: RelativeLoad,
    /// A lower bound of the worst load: no complete plan of the group has a lower one.
    pub bound: RelativeLoad,
    /// Whether the worst load is within the tolerance above the bound.
    pub tolerable: bool,
    /// Partitions that stay with the member that owned them.
    pub kept: u64,
    /// Partitions that were owned and change their owner.
    pub moved: u64,
    /// A lower bound of the moves in any plan whose worst load is as low as that of this plan, or within the tolerance.
    pub moved_bound: u64,
    /// Where all weights and all capacities are equal: the certificate of the sticky plan that this one is.
    pub sticky: Option<Certificate>,
}

impl LoadCertificate {
    /// Whether the bounds prove that no plan has fewer moves and a worst load within the tolerance. With equal weights and
    /// capacities, whether the plan is a proven optimal sticky plan.
    #[must_use]
    pub fn is_optimal(&self) -> bool {
        match &self.sticky {
            Some(sticky) => sticky.is_optimal(),
            None => (self.tolerable || self.worst == self.bound) && self.moved == self.moved_bound,
        }
    }
}

/// Verifies a weighted plan, its ownership, and the bound of its loads. With `cooperative`, a partition waits until its holder
/// has revoked it. `forming` is the generation that was being formed, where it is known.
///
/// # Errors
/// As [`super::verify_outcome`]; also a bound whose proof does not hold.
pub fn verify_weighted(
    group: &Group,
    weighed: &Weighed,
    cooperative: bool,
    forming: Option<i32>,
    outcome: &Outcome,
    limit: &Limit<'_>,
) -> Result<LoadCertificate, PlanFault> {
    let Weighed { weights, bound } = weighed;
    let (ownership, target) = (&outcome.ownership, outcome.target());
    if outcome.withholding.is_some() && !cooperative {
        return Err(PlanFault::Withholding);
    }
    if cooperative && ownership.held.len() != group.topics().partitions() {
        return Err(PlanFault::Ownership { partition: "the list of holders".to_owned() });
    }
    let rules = Rules::Partitions { objective: Objective::default(), cooperative };
    check_ownership(group, ownership)?;
    claims::check(group, rules, forming, ownership)?;
    check_plan(group, target)?;
    check_complete(group, target)?;
    let derived = reasons(group, ownership, target, &outcome.plan, true)?;
    if let Some(((partition, _), _)) =
        outcome.unassigned(group).zip(&derived).find(|(given, derived)| given != *derived)
    {
        return Err(PlanFault::WrongReason { partition: name(group, partition) });
    }
    if weights.of_partitions().len() != group.topics().partitions() || weights.capacities().len() != group.members() {
        return Err(PlanFault::Unproven { what: "the weights are not those of the group" });
    }
    check_bound(group, weights, bound)?;

    let loads = loads(group, weights, target);
    let worst = (0u32..)
        .zip(&loads)
        .map(|(member, &load)| weights.relative_load(member, load))
        .max()
        .unwrap_or(RelativeLoad::ZERO);
    if worst < bound.least {
        return Err(PlanFault::Unproven { what: "the worst load is below its bound" });
    }
    let tolerated = |member: u32, load: u64| is_tolerable(weights, member, load, bound.least);
    let (kept, moved) = kept_and_moved(&ownership.owner, &target.owner);
    let sticky = if is_flat(group, weights) {
        Some(verify_outcome_from(group, rules, forming, outcome, target, limit)?)
    } else {
        None
    };
    Ok(LoadCertificate {
        worst,
        bound: bound.least,
        tolerable: (0u32..).zip(&loads).all(|(member, &load)| tolerated(member, load)),
        kept,
        moved,
        moved_bound: fewest_moves(group, weights, &ownership.owner, |member, load| {
            tolerated(member, load) || weights.relative_load(member, load) <= worst
        }),
        sticky,
    })
}

/// By member, the weight of its partitions.
fn loads(group: &Group, weights: &Weights, plan: &Plan) -> Vec<u64> {
    let mut loads = vec![0; group.members()];
    for (&owner, weight) in plan.owner.iter().zip(weights.of_partitions()).filter(|(owner, _)| **owner != NONE) {
        loads[owner as usize] += weight;
    }
    loads
}

/// Whether the load of a member, relative to its capacity, exceeds the bound by no more than the tolerance.
fn is_tolerable(weights: &Weights, member: u32, load: u64, bound: RelativeLoad) -> bool {
    // Loads have 64 bits, capacities 30 and tolerances 17, so the products fit 128 bits.
    let capacity = u128::from(weights.capacities()[member as usize]);
    let relative = u128::from(load) * u128::from(bound.capacity) * u128::from(TOLERANCE_UNIT);
    relative <= u128::from(bound.load) * capacity * u128::from(TOLERANCE_UNIT + weights.tolerance())
}

/// The fewest partitions that the members must give away if each may carry a load that `may_carry` allows: from each member the
/// heaviest.
fn fewest_moves(group: &Group, weights: &Weights, owner: &[u32], may_carry: impl Fn(u32, u64) -> bool) -> u64 {
    let mut held: Vec<Vec<u64>> = vec![Vec::new(); group.members()];
    for (&owner, &weight) in owner.iter().zip(weights.of_partitions()).filter(|(owner, _)| **owner != NONE) {
        held[owner as usize].push(weight);
    }
    let mut moves = 0;
    for (member, mut row) in (0u32..).zip(held) {
        let mut load: u64 = row.iter().sum();
        row.sort_unstable();
        while !may_carry(member, load) {
            load -= row.pop().unwrap_or(load);
            moves += 1;
        }
    }
    moves
}

/// Whether all partitions with subscribers weigh the same and all members with topics have the same capacity.
fn is_flat(group: &Group, weights: &Weights) -> bool {
    let mut of_partitions: Vec<u64> =
        subscribed_topics(group).flat_map(|topic| group.topics().range(topic)).map(|p| weights.of(p)).collect();
    let mut capacities: Vec<u64> = (0u32..)
        .zip(weights.capacities())
        .filter(|(member, _)| *member < group.members() as u32 && !group.subscription(*member).is_empty())
        .map(|(_, &capacity)| capacity)
        .collect();
    of_partitions.dedup();
    capacities.dedup();
    of_partitions.len() <= 1 && capacities.len() <= 1
}

fn check_bound(group: &Group, weights: &Weights, bound: &LoadBound) -> Result<(), PlanFault> {
    let unproven = |what| Err(PlanFault::Unproven { what });
    let (topics, crowd) = match &bound.proof {
        LoadProof::Nothing if bound.least == RelativeLoad::ZERO => return Ok(()),
        LoadProof::Nothing => return unproven("a load without a proof"),
        LoadProof::Crowd { topics }
        | LoadProof::Layers { topics, .. }
        | LoadProof::Slots { topics, .. }
        | LoadProof::Pairs { topics, .. } => {
            if !topics.is_sorted_by(|a, b| a < b) {
                return unproven("a topic of the proof comes twice");
            }
            if topics.iter().any(|&topic| topic as usize >= group.topics().len()) {
                return unproven("a topic of the proof does not exist");
            }
            (topics, crowd(group, weights, topics))
        }
    };
    let Crowd { heaviest, capacities, together, strongest } = crowd;
    let members = capacities.len();
    let served: Vec<u32> = subscribed_topics(group).collect();
    if topics.iter().any(|topic| served.binary_search(topic).is_err()) || members == 0 {
        return unproven("a topic of the proof has no subscriber");
    }
    let proven = match bound.proof {
        LoadProof::Nothing => None,
        LoadProof::Crowd { .. } => Some(RelativeLoad { load: heaviest.iter().sum(), capacity: together }),
        LoadProof::Layers { layers, .. } => {
            // If there is one partition more than `layers` for each member, some member has `layers + 1`.
            let last = (layers as usize).checked_mul(members).filter(|&last| last < heaviest.len());
            last.map(|last| RelativeLoad {
                load: heaviest[..=last].iter().rev().take(layers as usize + 1).sum(),
                capacity: strongest,
            })
        }
        LoadProof::Slots { count, .. } => {
            let lightest = (count as usize).checked_sub(1).and_then(|last| heaviest.get(last));
            // As long as its relative load is below the bound, a member has at most this many of these partitions.
            let below = |&lightest: &u64| {
                let most = |&capacity: &u64| {
                    let limit = u128::from(bound.least.load) * u128::from(capacity);
                    limit.div_ceil(u128::from(bound.least.capacity) * u128::from(lightest)) - 1
                };
                lightest > 0 && bound.least.load > 0 && capacities.iter().map(most).sum::<u128>() < u128::from(count)
            };
            lightest.is_some_and(below).then_some(bound.least)
        }
        LoadProof::Pairs { pairs, .. } => {
            let pairs = pairs as usize;
            let count = members + pairs;
            (pairs > 0 && pairs <= members && count <= heaviest.len()).then(|| {
                let three: u64 = heaviest[..count].iter().rev().take(3).sum();
                // If no member has three and the first `members - pairs + 1` partitions are all alone, `pairs - 1` members have
                // the other `2 * pairs - 1`: one too many for two each.
                let two = heaviest[members - pairs] + heaviest[count - 1];
                RelativeLoad { load: if count < 3 { two } else { two.min(three) }, capacity: strongest }
            })
        }
    };
    if proven == Some(bound.least) { Ok(()) } else { unproven("the bound of the load does not follow from its proof") }
}

/// The partitions of some topics, and the members that subscribe to any of them.
struct Crowd {
    /// The weights, descending.
    heaviest: Vec<u64>,
    /// By member.
    capacities: Vec<u64>,
    /// The sum of the members' capacities.
    together: u64,
    /// The largest of the members' capacities.
    strongest: u64,
}

fn crowd(group: &Group, weights: &Weights, topics: &[u32]) -> Crowd {
    let partitions = topics.iter().flat_map(|&topic| group.topics().range(topic));
    let mut heaviest: Vec<u64> = partitions.map(|partition| weights.of(partition)).collect();
    heaviest.sort_unstable();
    heaviest.reverse();
    let subscribes = |member: u32| group.subscription(member).iter().any(|topic| topics.binary_search(topic).is_ok());
    let capacities: Vec<u64> = (0..group.members() as u32)
        .filter(|&member| subscribes(member))
        .map(|member| weights.capacities()[member as usize])
        .collect();
    Crowd {
        heaviest,
        together: capacities.iter().sum(),
        strongest: capacities.iter().copied().max().unwrap_or(1),
        capacities,
    }
}
