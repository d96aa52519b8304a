//! Is a plan valid, and is it the best there is? A proof that shares no code with a solver, nor with the settlement of claims.
//!
//! ```text
//! group with claims ──► claims, settled once more ──► the same as the ownership?          `claims`
//! plan, target      ──► every partition with a subscriber has one?                        here
//! start             ──► chains of moves ──► cycles of moves ───► the bounds, proven       `balance`, `potentials`
//! ```
//!
//! The bounds are the values of the best plan. The search for it begins with a scratch plan of `start`, any valid plan:
//!
//! 1. *Balance.* No plan has a lower KIP-54 score if no chain of moves leads from a member to one with at least two
//!    partitions fewer (Harvey, Ladner, Lovász, Tamir 2006). Chains are applied to the scratch plan until none is left.
//! 2. *Racks and stickiness.* All plans with that score come from the scratch plan by moves along cycles. A path from a member to
//!    one with exactly one partition fewer counts as a cycle too: the two members swap loads. So the scratch plan is the
//!    cheapest iff the graph of possible moves has no negative cycle (Klein 1967), and it has none iff potentials exist under
//!    which no move has a negative reduced cost. Negative cycles are cancelled until potentials are found.
//!
//! ```text
//! a ─► b ─► c ─► a     a cycle: all loads stay
//! a ─► b ─► c          a path: a had one partition more than c, now c has one more than a
//! ```
//!
//! The bounds count only after one more pass over all moves: no chain, and no negative reduced cost. The bounds hold for every
//! plan of the group, also for the plans of Kafka's own strategies.

mod balance;
mod claims;
mod fault;
mod nodes;
mod potentials;
mod restricted;
mod scratch_plan;
mod search_tree;
mod stream_join;
mod weighted;

use crate::planning::budget::{Budget, Goal, Limit, Limited, Spent};
use crate::planning::group::{Group, NONE};
use crate::planning::objective::{Mode, Objective, Rules};
use crate::planning::ownership::{CONTESTED, Ownership};
use crate::planning::plan::{Outcome, Plan, UnassignedReason};
use crate::planning::score::balance_score;
pub use fault::PlanFault;
pub use restricted::verify_restricted;
use scratch_plan::ScratchPlan;
pub use weighted::{LoadCertificate, verify_weighted};

/// The measures of a valid plan, and those of the best plan.
///
/// The bounds are exact and belong together: one plan meets all of them. They are taken in the order of the objective: each is
/// the least value of the plans that meet the bounds before it. A plan that misses an earlier bound may be below a later one.
///
/// For a stream join, all values count numbers and not partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Certificate {
    /// The objective by which the plan is compared.
    pub objective: Objective,
    /// The plan's KIP-54 balance score.
    pub score: u128,
    /// The least possible score. In [`Mode::StickyYetFair`]: of the plans in which no owned partition moves.
    pub score_bound: Option<u128>,
    /// Partitions that stay with the member that owned them.
    pub kept: u64,
    /// Partitions that were owned and change their owner.
    pub moved: u64,
    /// The least possible number of moved partitions. 0 in [`Mode::Fair`], where it does not count.
    pub moved_bound: Option<u64>,
    /// Partitions that their owner reads from another rack; 0 where racks make no difference (see [`racks_matter`]).
    pub rack_misses: u64,
    /// The least possible number of rack misses.
    pub rack_misses_bound: Option<u64>,
    /// Partitions that have subscribers and to which the user's own assignor gives no owner. Such a plan is not the best one.
    pub left_out: u64,
    /// The search that ended early, if one did. The bounds that it, and the searches after it, were to prove are `None`.
    pub limited: Option<Limited>,
}

impl Certificate {
    /// Whether the bounds prove that no plan is better, in the order of the objective.
    #[must_use]
    pub fn is_optimal(&self) -> bool {
        let sticky = self.objective.mode == Mode::Fair || Some(self.moved) == self.moved_bound;
        self.left_out == 0
            && Some(self.score) == self.score_bound
            && Some(self.rack_misses) == self.rack_misses_bound
            && sticky
    }
}

/// Whether racks make a difference (KIP-881): a member is on a rack of a partition's replicas, and not all partitions are on
/// the same racks. Only partitions with subscribers count.
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

/// The topics with subscribers, ascending.
fn subscribed_topics(group: &Group) -> impl Iterator<Item = u32> {
    let mut used = vec![false; group.subscriptions().len()];
    for &subscription in group.subscription_of() {
        used[subscription as usize] = true;
    }
    let mut subscribed = vec![false; group.topics().len()];
    for (_, topics) in used.into_iter().zip(group.subscriptions().rows()).filter(|(used, _)| *used) {
        for &topic in topics {
            subscribed[topic as usize] = true;
        }
    }
    (0u32..).zip(subscribed).filter(|(_, subscribed)| *subscribed).map(|(topic, _)| topic)
}

/// Checks a plan and its ownership, and proves how good a plan of the group can be.
fn certify(
    group: &Group,
    forming: Option<i32>,
    ownership: &Ownership,
    plan: &Plan,
    rules: Rules,
    start: &Plan,
    limit: &Limit<'_>,
) -> Result<Certificate, PlanFault> {
    let objective = match rules {
        Rules::Partitions { objective, .. } => objective,
        Rules::Custom { .. } | Rules::StreamJoin { .. } => Objective::default(),
    };
    check_ownership(group, ownership)?;
    claims::check(group, rules, forming, ownership)?;
    check_plan(group, plan)?;
    let complete = matches!(rules, Rules::Partitions { .. });
    if complete {
        check_complete(group, plan)?;
    }
    if !complete || !std::ptr::eq(plan, start) {
        check_plan(group, start)?;
        check_complete(group, start)?;
    }
    let loads: Vec<u64> = plan.loads(group.members()).into_iter().map(u64::from).collect();
    let (kept, moved) = kept_and_moved(&ownership.owner, &plan.owner);
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
        left_out: left_out(group, plan),
        limited: best.limited,
    })
}

/// Verifies the plan, the target and the ownership of an outcome, and proves how good a plan of this group can be. The claims in
/// `group` are settled again, with the generation that was being formed, where it is known. The reasons for partitions without an
/// owner are derived again. Both are compared with those of the outcome.
///
/// For an optimal plan the proof takes a few passes over partitions, subscriptions and rows, with topics of equal subscribers
/// and racks merged into rows. The farther the plan is from the optimum, the longer the search. Once its steps are spent, the
/// bounds that it has not proven are `None`. For plans that need not be optimal, see [`verify_outcome_from`].
///
/// # Errors
/// The first fault that makes the plan invalid, or its reasons wrong. A plan that is valid but not optimal is no error.
pub fn verify_outcome(
    group: &Group,
    rules: Rules,
    forming: Option<i32>,
    outcome: &Outcome,
) -> Result<Certificate, PlanFault> {
    verify_outcome_from(group, rules, forming, outcome, outcome.target(), &Limit::default())
}

/// As [`verify_outcome`], but the search for the best plan starts from `start`, another valid plan of the group, and has a limit.
/// The bounds and their proof do not depend on the start. The search is shortest near an optimum, such as a sticky plan. A bound
/// for which the limit was too small is `None`; the validity of the plan is checked in any case.
///
/// # Errors
/// As [`verify_outcome`]; also the first fault of `start`.
pub fn verify_outcome_from(
    group: &Group,
    rules: Rules,
    forming: Option<i32>,
    outcome: &Outcome,
    start: &Plan,
    limit: &Limit<'_>,
) -> Result<Certificate, PlanFault> {
    let (plan, target, ownership) = (&outcome.plan, outcome.target(), &outcome.ownership);
    if outcome.withholding.is_some() && !rules.cooperative() {
        return Err(PlanFault::Withholding);
    }
    if rules.cooperative() && ownership.held.len() != group.topics().partitions() {
        return Err(PlanFault::Ownership { partition: "the list of holders".to_owned() });
    }
    let complete = match rules {
        Rules::Partitions { .. } => true,
        Rules::Custom { .. } => false,
        Rules::StreamJoin { .. } => return stream_join::verify(group, rules, forming, outcome),
    };
    let certificate = certify(group, forming, ownership, target, rules, start, limit)?;
    let derived = reasons(group, ownership, target, plan, complete)?;
    match outcome.unassigned(group).zip(&derived).find(|(given, derived)| given != *derived) {
        Some(((partition, _), _)) => Err(PlanFault::WrongReason { partition: name(group, partition) }),
        None => Ok(certificate),
    }
}

/// Every partition without an owner, ascending, with the reason that follows from the group, the ownership and the target plan.
/// For an eager plan, the target is the plan itself. A plan that is not `complete` may leave out partitions.
///
/// # Errors
/// A partition that is handed out while another member holds it, that goes to another member than in the target, or that has
/// no owner without a reason.
fn reasons(
    group: &Group,
    ownership: &Ownership,
    target: &Plan,
    plan: &Plan,
    complete: bool,
) -> Result<Vec<(u32, UnassignedReason)>, PlanFault> {
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
                return Err(PlanFault::HandedOver { partition, member, holder: holder_text(group, holder) });
            }
        } else if !subscribed[partition as usize] {
            reasons.push((partition, UnassignedReason::NoSubscriber));
        } else if then == NONE && !complete {
            reasons.push((partition, UnassignedReason::NotPlanned));
        } else if !blocked {
            return Err(PlanFault::Incomplete { partition: name(group, partition) });
        } else if holder == CONTESTED {
            reasons.push((partition, UnassignedReason::Contested));
        } else {
            reasons.push((partition, UnassignedReason::Withheld { holder }));
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
    /// The scratch plan is so far from the optimum that a search from another plan is quicker.
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

/// The steps that the search for the bounds may take, and the additional ones for each arc of the scratch plan. These steps are
/// enough to visit each arc of the largest scratch plans some thirty times and each arc of ordinary ones thousands of times. The
/// proof for an optimal plan takes a few visits of each arc, and at most 21 in the groups that were tried.
const STEPS: u64 = 1 << 24;
const STEPS_PER_ARC: u64 = 1 << 4;

/// How many chains and cycles may be applied to a plan before the search starts again from the previous owners.
const PATIENCE: usize = 64;

fn best(
    group: &Group,
    ownership: &Ownership,
    start: &Plan,
    objective: Objective,
    limit: &Limit<'_>,
) -> Result<Best, PlanFault> {
    let racks = racks_matter(group);
    let mut scratch = ScratchPlan::of_plan(group, ownership, objective, racks, start);
    let budget = limit.budget(STEPS + STEPS_PER_ARC * scratch.size());
    let mut improved = improve(&mut scratch, PATIENCE, &budget);
    if let Err((proven, Stop::TooFar)) = improved {
        scratch = ScratchPlan::of_ownership(group, ownership, objective, racks);
        // The least score is the same wherever it was found.
        improved = improve(&mut scratch, usize::MAX, &budget).map_err(|(score, stop)| (score.or(proven), stop));
    }
    match improved {
        Ok(()) => Ok(Best {
            score: Some(scratch.score()),
            moved: Some(scratch.moved()),
            misses: Some(scratch.misses()),
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

/// Changes a scratch plan until it is optimal, and proves that it is. The error contains the least balance score, if that was
/// proven.
fn improve(scratch: &mut ScratchPlan, patience: usize, budget: &Budget<'_>) -> Result<(), (Option<u128>, Stop)> {
    balance::level(scratch, patience, budget).map_err(|stop| (None, stop))?;
    let score = scratch.score();
    cheapest(scratch, patience, budget).map_err(|stop| (Some(score), stop))
}

/// From the least balance score to the optimum, and the proof.
fn cheapest(scratch: &mut ScratchPlan, patience: usize, budget: &Budget<'_>) -> Result<(), Stop> {
    let potentials = potentials::cheapen(scratch, patience, budget)?;
    if !scratch.is_consistent() {
        return Err(PlanFault::Unproven { what: "supplies and loads" }.into());
    }
    if !balance::is_level(scratch, budget)? {
        return Err(PlanFault::Unproven { what: "a chain to a lighter member is left" }.into());
    }
    Ok(potentials::prove(scratch, &potentials)?)
}

fn rack_misses(group: &Group, plan: &Plan) -> u64 {
    let racks = group.topics().racks();
    let owned = plan.owner.iter().zip(&racks.of_partition).filter(|(owner, _)| **owner != NONE);
    owned.filter(|(owner, set)| is_off_rack(group, **owner, **set)).count() as u64
}

/// Whether a member has a rack and reads a partition with this set of racks from another rack.
fn is_off_rack(group: &Group, member: u32, rack_set: u32) -> bool {
    let rack = group.racks()[member as usize];
    rack != NONE && !group.topics().racks().sets.row(rack_set).contains(&rack)
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

/// The first partition whose owner does not subscribe to its topic.
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
    Ok(())
}

/// The numbers of owned partitions that stay with their owner, and that do not.
fn kept_and_moved(before: &[u32], after: &[u32]) -> (u64, u64) {
    let (mut kept, mut moved) = (0, 0);
    for (&before, &after) in before.iter().zip(after) {
        kept += u64::from(before != NONE && before == after);
        moved += u64::from(before != NONE && before != after);
    }
    (kept, moved)
}

/// How many partitions with subscribers have no owner.
fn left_out(group: &Group, plan: &Plan) -> u64 {
    let open = |topic| group.topics().range(topic).filter(|&p| plan.owner[p as usize] == NONE).count() as u64;
    subscribed_topics(group).map(open).sum()
}

/// Checks that every partition with subscribers has an owner.
fn check_complete(group: &Group, plan: &Plan) -> Result<(), PlanFault> {
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

/// The holder of a partition in the text of [`PlanFault::HandedOver`].
fn holder_text(group: &Group, holder: u32) -> String {
    match holder {
        CONTESTED => "one of several members".to_owned(),
        holder => format!("member {:?}", member_name(group, holder)),
    }
}

fn name(group: &Group, partition: u32) -> String {
    let (topic, number) = group.topics().locate(partition);
    format!("{}-{number}", group.topics().names().get(topic))
}
