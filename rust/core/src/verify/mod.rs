//! Is a plan valid, and is it the best there is? A proof that shares nothing with the solver.
//!
//! A plan is *valid* if every partition that has a subscriber goes to one of its subscribers. How good it can be at best is
//! found out in two steps, whatever the plan under test looks like:
//!
//! 1. *Balance.* No plan has a lower KIP-54 score if no chain of moves leads from a member to one with at least two
//!    partitions fewer (Harvey, Ladner, Lovász, Tamir 2006). Chains are applied to a scratch copy until none is left.
//! 2. *Racks and stickiness.* All plans with that score come from the scratch copy by moving partitions in circles, where
//!    a circle may close from a member to one with exactly one partition more: the two swap loads. So a scratch copy is the
//!    cheapest iff the graph of possible moves has no negative cycle (Klein 1967), and it has none iff potentials exist under
//!    which no move has a negative reduced cost. Negative cycles are cancelled until potentials are found.
//!
//! The bounds are the values of that scratch copy, and they count only after one more pass over all moves: no chain, and no
//! negative reduced cost. They bind every plan of the group, Kafka's own strategies' included.

mod balance;
mod network;
mod potentials;
mod stream_join;

use thiserror::Error;

use crate::budget::{Budget, Goal, Limit, Limited, Spent};
use crate::group::{Group, NONE};
use crate::ownership::{CONTESTED, Ownership};
use crate::plan::{Plan, Reason};
use crate::score::balance_score;
use crate::strategy::{Mode, Objective, Outcome, Strategy};
use network::Network;

/// Why a plan is not valid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanFault {
    /// The plan is for another number of partitions.
    #[error(
        "the plan has {given} partitions but the group has {expected}; verify a plan with the group it was made for"
    )]
    Length {
        /// Partitions of the plan.
        given: usize,
        /// Partitions of the group.
        expected: usize,
    },
    /// The ownership is not one of this group's.
    #[error("the ownership does not fit the group at {partition}; settle the claims of the group that is verified")]
    Ownership {
        /// The partition, or what else does not fit.
        partition: String,
    },
    /// An owner that is no member.
    #[error("partition {partition} goes to member number {owner}, but the group has {members} members")]
    NoSuchMember {
        /// Topic and number.
        partition: String,
        /// The owner's number.
        owner: u32,
        /// The number of members.
        members: usize,
    },
    /// An owner that does not subscribe to the topic.
    #[error("partition {partition} goes to member {member:?}, which does not subscribe to its topic")]
    NotSubscribed {
        /// Topic and number.
        partition: String,
        /// The owner.
        member: String,
    },
    /// A partition that nobody gets although somebody could.
    #[error("partition {partition} goes to nobody, although its topic has subscribers and no other member holds it")]
    Incomplete {
        /// Topic and number.
        partition: String,
    },
    /// A partition handed out while another member may still be reading it (KIP-429).
    #[error("partition {partition} goes to member {member:?} while {holder} still holds it; it must be revoked first")]
    HandedOver {
        /// Topic and number.
        partition: String,
        /// The member that is to have it.
        member: String,
        /// Who holds it.
        holder: String,
    },
    /// A partition that goes to another member than the target plan says.
    #[error("partition {partition} goes to member {member:?}, but the target plan has it elsewhere")]
    OffTarget {
        /// Topic and number.
        partition: String,
        /// The member.
        member: String,
    },
    /// A number of a stream join of which two members have partitions.
    #[error("number {number} goes to member {first:?} and to member {second:?}; a stream join must not part it")]
    Parted {
        /// The number.
        number: u32,
        /// One of them.
        first: String,
        /// Another.
        second: String,
    },
    /// A partition of a stream join whose number is not below the smallest partition count.
    #[error("partition {partition} goes to a member, but its number is not below the smallest topic's partition count")]
    NotEligible {
        /// Topic and number.
        partition: String,
    },
    /// A partition that is unassigned for another reason than the plan says.
    #[error(
        "partition {partition} is unassigned for another reason than the plan gives; this is a defect, please report it"
    )]
    WrongReason {
        /// Topic and number.
        partition: String,
    },
    /// The verification contradicts itself. A defect of this module, never of the plan.
    #[error("the bounds could not be proven ({what}); this is a defect of the verification, please report it")]
    Unproven {
        /// The check that failed.
        what: &'static str,
    },
}

/// What a valid plan is worth, and what the best plan is worth.
///
/// The bounds are exact and belong together: one plan meets them all. They are taken in the order that the objective
/// promises, so each is the least value among the plans that meet the bounds before it; a plan that misses an earlier one may
/// well be below a later one.
///
/// Of a stream join, all values count numbers, not partitions: the score is that of how many numbers everybody has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Certificate {
    /// What was promised.
    pub objective: Objective,
    /// The plan's KIP-54 balance score.
    pub score: u128,
    /// The least possible one. In [`Mode::StickyYetFair`]: with every owned partition staying where it is.
    pub score_bound: Option<u128>,
    /// Partitions that stay with the member that owned them.
    pub kept: u64,
    /// Partitions that were owned and change their owner.
    pub moved: u64,
    /// The least possible number of them. In [`Mode::Fair`], where it does not count, 0.
    pub moved_bound: Option<u64>,
    /// Partitions that their owner reads from another rack; 0 where racks say nothing (see [`racks_matter`]).
    pub rack_misses: u64,
    /// The least possible number of them.
    pub rack_misses_bound: Option<u64>,
    /// The search that ended early, if one did. The bounds that it, and the searches after it, were to prove are `None`.
    pub limited: Option<Limited>,
}

impl Certificate {
    /// Whether it is proven that no plan is better, in the order that the objective promises.
    #[must_use]
    pub fn is_optimal(&self) -> bool {
        let sticky = self.objective.mode == Mode::Fair || Some(self.moved) == self.moved_bound;
        Some(self.score) == self.score_bound && Some(self.rack_misses) == self.rack_misses_bound && sticky
    }
}

/// Whether racks say something (KIP-881): a member is on a rack that a partition's replicas are on, and not all partitions
/// are on the same racks. Only partitions that somebody can get count.
#[must_use]
pub fn racks_matter(group: &Group) -> bool {
    let racks = group.topics().racks();
    if racks.of_partition.is_empty() {
        return false;
    }
    let mut used = vec![false; racks.sets.len()];
    for topic in subscribed_topics(group) {
        for partition in group.topics().range(topic) {
            used[racks.of_partition[partition as usize] as usize] = true;
        }
    }
    let sets = || used.iter().zip(racks.sets.rows()).filter(|(used, _)| **used).map(|(_, set)| set);
    let mut all: Vec<u32> = sets().flatten().copied().collect();
    all.sort_unstable();
    all.dedup();
    group.racks().iter().any(|rack| all.binary_search(rack).is_ok()) && sets().any(|set| set.len() != all.len())
}

/// The topics that somebody subscribes to, ascending.
fn subscribed_topics(group: &Group) -> impl Iterator<Item = u32> {
    let mut used = vec![false; group.patterns().len()];
    for &pattern in group.pattern_of() {
        used[pattern as usize] = true;
    }
    let mut subscribed = vec![false; group.topics().len()];
    for (_, topics) in used.into_iter().zip(group.patterns().rows()).filter(|(used, _)| *used) {
        for &topic in topics {
            subscribed[topic as usize] = true;
        }
    }
    (0u32..).zip(subscribed).filter(|(_, subscribed)| *subscribed).map(|(topic, _)| topic)
}

/// Checks a plan and proves how good a plan of this group can be.
///
/// For an optimal plan the proof takes a few passes over partitions, subscriptions and rows, with topics of equal subscribers
/// and racks merged into rows. The farther the plan is from the optimum, the longer the search; once its steps are spent, the
/// bounds that it has not proven are `None`. For plans that need not be optimal, see [`verify_from`].
///
/// # Errors
/// The first fault that makes the plan invalid. A plan that is valid but not optimal is no error.
pub fn verify(
    group: &Group,
    ownership: &Ownership,
    plan: &Plan,
    objective: Objective,
) -> Result<Certificate, PlanFault> {
    verify_from(group, ownership, plan, objective, plan, &Limit::default())
}

/// As [`verify`], but the search for the best plan starts from `start`, another valid plan of the group, and has a limit. The
/// bounds are the same and proven in the same way wherever the search starts; it is shortest near an optimum, such as a sticky
/// plan. A bound for which the limit was too small is `None`; the validity of the plan is checked in any case.
///
/// # Errors
/// As [`verify`]; also the first fault of `start`.
pub fn verify_from(
    group: &Group,
    ownership: &Ownership,
    plan: &Plan,
    objective: Objective,
    start: &Plan,
    limit: &Limit<'_>,
) -> Result<Certificate, PlanFault> {
    check_ownership(group, ownership)?;
    check_plan(group, plan)?;
    if !std::ptr::eq(plan, start) {
        check_plan(group, start)?;
    }
    let loads: Vec<u64> = plan.loads(group.members()).into_iter().map(u64::from).collect();
    let (mut kept, mut moved) = (0, 0);
    for (&before, &after) in ownership.owner.iter().zip(&plan.owner) {
        kept += u64::from(before != NONE && before == after);
        moved += u64::from(before != NONE && before != after);
    }
    let best = best(group, ownership, start, objective, limit)?;
    Ok(Certificate {
        objective,
        score: balance_score(&loads),
        score_bound: best.score,
        kept,
        moved,
        moved_bound: best.moved,
        rack_misses: if racks_matter(group) { rack_misses(group, plan) } else { 0 },
        rack_misses_bound: best.misses,
        limited: best.limited,
    })
}

/// As [`verify`], for the plan of one phase of cooperative rebalancing: the target is verified, and `plan` must be what of
/// it can be handed out while others still hold what they have. The certificate is the target's.
///
/// # Errors
/// As [`verify`]; and if a partition is handed out while another member holds it, held back without need, or goes elsewhere.
pub fn verify_cooperative(
    group: &Group,
    ownership: &Ownership,
    target: &Plan,
    plan: &Plan,
    objective: Objective,
) -> Result<Certificate, PlanFault> {
    let certificate = verify(group, ownership, target, objective)?;
    unassigned(group, ownership, target, plan)?;
    Ok(certificate)
}

/// Verifies what [`crate::strategy::assign`] returned, by the order that the strategy promises; Kafka's own strategies,
/// which promise none, by the default order. The reasons for what nobody gets are derived again and compared.
///
/// # Errors
/// As [`verify`] and [`verify_cooperative`]; also a reason that is not the right one.
pub fn verify_outcome(group: &Group, strategy: Strategy, outcome: &Outcome) -> Result<Certificate, PlanFault> {
    verify_outcome_from(group, strategy, outcome, outcome.target(), &Limit::default())
}

/// As [`verify_outcome`], seeking the best plan from `start`, within a limit; see [`verify_from`].
///
/// # Errors
/// As [`verify_outcome`]; also the first fault of `start`.
pub fn verify_outcome_from(
    group: &Group,
    strategy: Strategy,
    outcome: &Outcome,
    start: &Plan,
    limit: &Limit<'_>,
) -> Result<Certificate, PlanFault> {
    let (plan, target, ownership) = (&outcome.plan, outcome.target(), &outcome.ownership);
    let objective = match strategy {
        Strategy::CooperativeSticky(objective) | Strategy::Sticky(objective) => objective,
        Strategy::StreamJoin { .. } => return stream_join::verify(group, outcome),
        Strategy::Range | Strategy::RoundRobin | Strategy::Lag(_) => Objective::default(),
    };
    let certificate = verify_from(group, ownership, target, objective, start, limit)?;
    let derived = unassigned(group, ownership, target, plan)?;
    match outcome.unassigned(group).zip(&derived).find(|(given, derived)| given != *derived) {
        Some(((partition, _), _)) => Err(PlanFault::WrongReason { partition: name(group, partition) }),
        None => Ok(certificate),
    }
}

/// Every partition that nobody gets, with the reason, derived from the group, the claims and the target plan; ascending.
/// For an eager plan, the target is the plan itself.
///
/// # Errors
/// A partition that is handed out while another member holds it, goes elsewhere than in the target, or that nobody gets
/// without a reason.
pub fn unassigned(
    group: &Group,
    ownership: &Ownership,
    target: &Plan,
    plan: &Plan,
) -> Result<Vec<(u32, Reason)>, PlanFault> {
    let partitions = group.topics().partitions();
    for given in [target.owner.len(), plan.owner.len()] {
        if given != partitions {
            return Err(PlanFault::Length { given, expected: partitions });
        }
    }
    if !ownership.held.is_empty() && ownership.held.len() != partitions {
        return Err(PlanFault::Ownership { partition: "the list of holders".to_owned() });
    }
    let mut subscribed = vec![false; partitions];
    for topic in subscribed_topics(group) {
        let range = group.topics().range(topic);
        subscribed[range.start as usize..range.end as usize].fill(true);
    }
    let mut reasons = Vec::new();
    for partition in 0..partitions as u32 {
        let (then, now) = (target.owner[partition as usize], plan.owner[partition as usize]);
        let holder = ownership.held.get(partition as usize).copied().unwrap_or(NONE);
        let blocked = holder != NONE && holder != then;
        if now != NONE {
            if now as usize >= group.members() {
                return Err(no_such_member(group, partition, now));
            }
            let (partition, member) = (name(group, partition), member_name(group, now));
            if now != then {
                return Err(PlanFault::OffTarget { partition, member });
            }
            if blocked {
                let holder = match holder {
                    CONTESTED => "one of several members".to_owned(),
                    holder => format!("member {:?}", member_name(group, holder)),
                };
                return Err(PlanFault::HandedOver { partition, member, holder });
            }
        } else if !subscribed[partition as usize] {
            reasons.push((partition, Reason::NoSubscriber));
        } else if !blocked {
            return Err(PlanFault::Incomplete { partition: name(group, partition) });
        } else if holder == CONTESTED {
            reasons.push((partition, Reason::Contested));
        } else {
            reasons.push((partition, Reason::Withheld { holder }));
        }
    }
    Ok(reasons)
}

/// The values of a best plan; `None` where they were not proven.
struct Best {
    score: Option<u128>,
    moved: Option<u64>,
    misses: Option<u64>,
    limited: Option<Limited>,
}

/// Why a search for the optimum ended without it.
#[derive(Debug)]
enum Stop {
    /// The scratch copy is so far from the optimum that a search from another plan is quicker.
    TooFar,
    /// The budget is spent.
    Spent(Spent),
    /// The verification contradicts itself.
    Fault(PlanFault),
}

impl From<Spent> for Stop {
    fn from(spent: Spent) -> Self {
        Self::Spent(spent)
    }
}

impl From<PlanFault> for Stop {
    fn from(fault: PlanFault) -> Self {
        Self::Fault(fault)
    }
}

/// The steps that the search for the bounds may take, and the additional ones for each arc of the network. They visit each arc
/// of the largest networks some tens of times and each arc of ordinary ones thousands of times; the proof for an optimal plan
/// takes a few visits.
const STEPS: u64 = 1 << 26;
const STEPS_PER_ARC: u64 = 1 << 6;

/// How many chains and cycles may be applied to a plan before the search starts again from what was owned.
const PATIENCE: usize = 64;

fn best(
    group: &Group,
    ownership: &Ownership,
    start: &Plan,
    objective: Objective,
    limit: &Limit<'_>,
) -> Result<Best, PlanFault> {
    let racks = racks_matter(group);
    let mut network = Network::of_plan(group, ownership, objective, racks, start);
    let budget = limit.budget(STEPS + STEPS_PER_ARC * network.size());
    let mut improved = improve(&mut network, PATIENCE, &budget);
    if let Err((proven, Stop::TooFar)) = improved {
        network = Network::of_ownership(group, ownership, objective, racks);
        // The least score is the same wherever it was found.
        improved = improve(&mut network, usize::MAX, &budget).map_err(|(score, stop)| (score.or(proven), stop));
    }
    match improved {
        Ok(()) => Ok(Best {
            score: Some(network.score()),
            moved: Some(network.moved()),
            misses: Some(network.misses()),
            limited: None,
        }),
        Err((score, Stop::Spent(spent))) => {
            let goal = if score.is_some() { Goal::Moves } else { Goal::Balance };
            Ok(Best { score, moved: None, misses: None, limited: Some(spent.seeking(goal)) })
        }
        Err((_, Stop::Fault(fault))) => Err(fault),
        Err((_, Stop::TooFar)) => Err(PlanFault::Unproven { what: "patience" }),
    }
}

/// Brings a network to its optimum and proves that it is there. The error has the least balance score, if that was proven.
fn improve(network: &mut Network, patience: usize, budget: &Budget<'_>) -> Result<(), (Option<u128>, Stop)> {
    balance::level(network, patience, budget).map_err(|stop| (None, stop))?;
    let score = network.score();
    cheapest(network, patience, budget).map_err(|stop| (Some(score), stop))
}

/// From the least balance score to the optimum, and the proof.
fn cheapest(network: &mut Network, patience: usize, budget: &Budget<'_>) -> Result<(), Stop> {
    let potentials = potentials::cheapen(network, patience, budget)?;
    if !network.is_consistent() {
        return Err(PlanFault::Unproven { what: "supplies and loads" }.into());
    }
    if !balance::is_level(network, budget)? {
        return Err(PlanFault::Unproven { what: "a chain to a lighter member is left" }.into());
    }
    Ok(potentials::prove(network, &potentials)?)
}

fn rack_misses(group: &Group, plan: &Plan) -> u64 {
    let racks = group.topics().racks();
    let owned = plan.owner.iter().zip(&racks.of_partition).filter(|(owner, _)| **owner != NONE);
    owned.filter(|(owner, set)| racks.mismatch(group.racks()[**owner as usize], **set)).count() as u64
}

fn check_ownership(group: &Group, ownership: &Ownership) -> Result<(), PlanFault> {
    if ownership.owner.len() != group.topics().partitions() {
        return Err(PlanFault::Ownership { partition: "the list of owners".to_owned() });
    }
    match misplaced(group, &ownership.owner) {
        Some(partition) => Err(PlanFault::Ownership { partition: name(group, partition) }),
        None => Ok(()),
    }
}

/// The first partition whose owner is no subscriber of it.
fn misplaced(group: &Group, owner: &[u32]) -> Option<u32> {
    for topic in 0..group.topics().len() as u32 {
        for partition in group.topics().range(topic) {
            let owner = owner[partition as usize];
            if owner != NONE && (owner as usize >= group.members() || !group.subscribes(owner, topic)) {
                return Some(partition);
            }
        }
    }
    None
}

fn check_plan(group: &Group, plan: &Plan) -> Result<(), PlanFault> {
    if plan.owner.len() != group.topics().partitions() {
        return Err(PlanFault::Length { given: plan.owner.len(), expected: group.topics().partitions() });
    }
    if let Some(partition) = misplaced(group, &plan.owner) {
        let owner = plan.owner[partition as usize];
        if owner as usize >= group.members() {
            return Err(no_such_member(group, partition, owner));
        }
        let (partition, member) = (name(group, partition), member_name(group, owner));
        return Err(PlanFault::NotSubscribed { partition, member });
    }
    for topic in subscribed_topics(group) {
        if let Some(partition) = group.topics().range(topic).find(|&p| plan.owner[p as usize] == NONE) {
            return Err(PlanFault::Incomplete { partition: name(group, partition) });
        }
    }
    Ok(())
}

fn no_such_member(group: &Group, partition: u32, owner: u32) -> PlanFault {
    PlanFault::NoSuchMember { partition: name(group, partition), owner, members: group.members() }
}

fn member_name(group: &Group, member: u32) -> String {
    if (member as usize) < group.members() { group.member_ids().get(member).to_owned() } else { format!("#{member}") }
}

fn name(group: &Group, partition: u32) -> String {
    let (topic, number) = group.topics().locate(partition);
    format!("{}-{number}", group.topics().names().get(topic))
}
