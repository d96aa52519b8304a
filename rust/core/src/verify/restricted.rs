//! Verifies a sticky plan under restrictions, by the best plan under the same restrictions.
//!
//! The restrictions as they were given decide whether the plan keeps them. The bounds are those of a group that is made here
//! from the group and its restrictions ([`Unrestricted`]): a member subscribes to the partitions that it may have, and the last
//! member, *nobody*, has the partitions for which the others have no room. No chain leads from *nobody* to a member with room,
//! so no plan gives away more partitions. The solver also makes such a group, with other code. So the verification notices a
//! member that one of the two forgets.

use std::collections::BTreeMap;

use super::scratch_plan::ScratchPlan;
use super::{
    Certificate, PlanFault, STEPS, STEPS_PER_ARC, Stop, check_ownership, check_plan, claims, improve, kept_and_moved,
    member_name, name,
};
use crate::planning::budget::{Goal, Limit};
use crate::planning::group::{Group, GroupBuilder, NONE, TopicSpec, Topics};
use crate::planning::objective::{Objective, Rules};
use crate::planning::ownership::Ownership;
use crate::planning::plan::{Outcome, Plan, UnassignedReason};
use crate::planning::restrictions::Restrictions;
use crate::planning::score::balance_score;

/// Verifies a plan under restrictions, its ownership, and the reasons of partitions without an owner. Racks do not count.
///
/// # Errors
/// As [`super::verify_outcome`]; also a partition that goes to a member that may not have it, a member with more than it may
/// have, and a partition that is left out for another reason than that in the outcome.
pub fn verify_restricted(
    group: &Group,
    restrictions: &Restrictions,
    forming: Option<i32>,
    outcome: &Outcome,
    limit: &Limit<'_>,
) -> Result<Certificate, PlanFault> {
    let (plan, ownership, objective) = (&outcome.plan, &outcome.ownership, Objective::default());
    if outcome.withholding.is_some() {
        return Err(PlanFault::Withholding);
    }
    check_ownership(group, ownership)?;
    claims::check(group, Rules::Partitions { objective, cooperative: false }, forming, ownership)?;
    check_plan(group, plan)?;
    check_restrictions(group, restrictions, plan)?;
    let subscribers = subscribers(group);
    check_reasons(group, restrictions, &subscribers, outcome)?;

    let (kept, moved) = kept_and_moved(&ownership.owner, &plan.owner);
    let barred = |&(partition, before): &(u32, &u32)| *before != NONE && !restrictions.allow(*before, partition);
    let forced = (0u32..).zip(&ownership.owner).filter(barred).count() as u64;
    let loads: Vec<u64> = plan.loads(group.members()).into_iter().map(u64::from).collect();

    let Unrestricted { group, partition_of, owner, most, nobody } =
        Unrestricted::new(group, alike(group, restrictions, &subscribers), restrictions, ownership);
    let spare = |member: u32| if member == NONE { nobody.unwrap_or(NONE) } else { member };
    let start = Plan { owner: partition_of.iter().map(|&at| spare(plan.owner[at as usize])).collect() };
    let owned = Ownership { owner, held: Vec::new() };
    let mut scratch = ScratchPlan::of_plan(&group, &owned, objective, false, &start);
    scratch.most = most;
    scratch.nobody = nobody;
    let given = scratch.left_out();

    let budget = limit.budget(STEPS + STEPS_PER_ARC * scratch.size());
    let improved = improve(&mut scratch, usize::MAX, &budget);
    let left_out = given - scratch.left_out();
    let mut certificate = Certificate {
        objective,
        score: balance_score(&loads),
        score_bound: None,
        kept,
        moved,
        moved_bound: None,
        rack_misses: 0,
        rack_misses_bound: Some(0),
        left_out,
        limited: None,
    };
    match improved {
        Ok(()) => {
            certificate.score_bound = Some(scratch.score());
            certificate.moved_bound = Some(scratch.moved() + forced);
        }
        Err((score, Stop::Spent(spent))) => {
            certificate.score_bound = score;
            let goal = if score.is_some() { Goal::Moves } else { Goal::Balance };
            certificate.limited = Some(spent.seeking(goal));
        }
        Err((_, Stop::Fault(fault))) => return Err(fault),
        Err((_, Stop::TooFar)) => return Err(PlanFault::Unproven { what: "patience" }),
    }
    Ok(certificate)
}

/// A group without restrictions that has the same plans: the partitions that the same members may have are one topic.
struct Unrestricted {
    group: Group,
    /// By flat partition, that of the restricted group.
    partition_of: Vec<u32>,
    /// By flat partition, the owner so far, if it may keep the partition.
    owner: Vec<u32>,
    /// By member, the most partitions that it may have. Empty where no member has a limit.
    most: Vec<u64>,
    /// The member *nobody*, where members have a limit. It may have every partition.
    nobody: Option<u32>,
}

impl Unrestricted {
    /// O(partitions + subscription entries of this group, times a logarithm). `alike` has the partitions that the same members may
    /// have.
    fn new(
        group: &Group,
        alike: BTreeMap<Vec<u32>, Vec<u32>>,
        restrictions: &Restrictions,
        ownership: &Ownership,
    ) -> Self {
        let members = group.members() as u32;
        let names: Vec<String> = (0..alike.len()).map(|topic| format!("{topic:010}")).collect();
        let specs = names.iter().zip(alike.values()).map(|(name, partitions)| TopicSpec {
            name,
            partitions: partitions.len() as i64,
            racks: None,
        });
        // The names ascend, and there are as many partitions as before.
        let mut builder = GroupBuilder::new(Topics::new(specs.collect()).expect("topics of parts of topics"));
        let mut topics_of = vec![Vec::new(); group.members()];
        for (topic, able) in (0u32..).zip(alike.keys()) {
            able.iter().for_each(|&member| topics_of[member as usize].push(topic));
        }
        let limited = (0..members).any(|member| restrictions.most(member) < u32::MAX);
        let nobody = limited.then_some(members);
        let mut most = Vec::new();
        if limited {
            topics_of.push((0..alike.len() as u32).collect());
            most = (0..members).map(|member| u64::from(restrictions.most(member))).chain([u64::MAX]).collect();
        }
        for (member, topics) in topics_of.iter().enumerate() {
            let subscription = builder.subscription(topics);
            builder.member(&format!("{member:010}"), subscription).finish();
        }
        let mut owner = Vec::with_capacity(group.topics().partitions());
        for (able, partitions) in &alike {
            let before = partitions.iter().map(|&partition| ownership.owner[partition as usize]);
            owner.extend(before.map(|owner| if able.binary_search(&owner).is_ok() { owner } else { NONE }));
        }
        let partition_of = alike.into_values().flatten().collect();
        Self { group: builder.finish(), partition_of, owner, most, nobody }
    }
}

/// By topic, its subscribers, ascending.
fn subscribers(group: &Group) -> Vec<Vec<u32>> {
    let mut subscribers = vec![Vec::new(); group.topics().len()];
    for member in 0..group.members() as u32 {
        group.subscription(member).iter().for_each(|&topic| subscribers[topic as usize].push(member));
    }
    subscribers
}

/// The subscribers of a topic that a set of the restrictions allows, ascending; [`NONE`] allows all. The shorter list is visited: a
/// topic may have 20,000 subscribers and as many sets of one member.
fn allowed(restrictions: &Restrictions, set: u32, subscribers: &[u32]) -> Vec<u32> {
    if set == NONE {
        return subscribers.to_vec();
    }
    let of_set = restrictions.sets.row(set);
    if of_set.len() < subscribers.len() {
        of_set.iter().copied().filter(|member| subscribers.binary_search(member).is_ok()).collect()
    } else {
        subscribers.iter().copied().filter(|member| of_set.binary_search(member).is_ok()).collect()
    }
}

/// By the members that may have them, ascending, the partitions of the group.
fn alike(group: &Group, restrictions: &Restrictions, subscribers: &[Vec<u32>]) -> BTreeMap<Vec<u32>, Vec<u32>> {
    let mut alike: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
    for (topic, subscribers) in (0u32..).zip(subscribers) {
        let mut by_set: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for partition in group.topics().range(topic) {
            by_set.entry(restrictions.set(partition)).or_default().push(partition);
        }
        for (set, partitions) in by_set {
            alike.entry(allowed(restrictions, set, subscribers)).or_default().extend(partitions);
        }
    }
    alike
}

fn check_restrictions(group: &Group, restrictions: &Restrictions, plan: &Plan) -> Result<(), PlanFault> {
    for (partition, &owner) in (0u32..).zip(&plan.owner).filter(|(_, owner)| **owner != NONE) {
        if !restrictions.allow(owner, partition) {
            let (partition, member) = (name(group, partition), member_name(group, owner));
            return Err(PlanFault::NotAllowed { partition, member });
        }
    }
    for (member, load) in (0u32..).zip(plan.loads(group.members())) {
        let most = restrictions.most(member);
        if load > most {
            return Err(PlanFault::OverCapacity { member: member_name(group, member), load, most });
        }
    }
    Ok(())
}

/// Checks the reasons: no member subscribes, no subscriber may have the partition, or all members that may have it are full.
fn check_reasons(
    group: &Group,
    restrictions: &Restrictions,
    subscribers: &[Vec<u32>],
    outcome: &Outcome,
) -> Result<(), PlanFault> {
    let loads = outcome.plan.loads(group.members());
    let is_full = |&member: &u32| loads[member as usize] >= restrictions.most(member);
    // By topic and set: the reason, and whether all members are full that may have the partitions.
    let mut known: BTreeMap<(u32, u32), (UnassignedReason, bool)> = BTreeMap::new();
    for (partition, given) in outcome.unassigned(group) {
        let topic = group.topics().locate(partition).0;
        let set = restrictions.set(partition);
        let (right, full) = *known.entry((topic, set)).or_insert_with(|| {
            let subscribers = &subscribers[topic as usize];
            let able = allowed(restrictions, set, subscribers);
            let reason = if subscribers.is_empty() {
                UnassignedReason::NoSubscriber
            } else if able.is_empty() {
                UnassignedReason::NotAllowed
            } else {
                UnassignedReason::Full
            };
            (reason, able.iter().all(is_full))
        });
        if given != right {
            return Err(PlanFault::WrongReason { partition: name(group, partition) });
        }
        if !full {
            return Err(PlanFault::Incomplete { partition: name(group, partition) });
        }
    }
    Ok(())
}
