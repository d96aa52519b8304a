//! A stream join's plan against the rules of KIP-315, by a closed form for the most numbers that can be kept.

use super::{
    Certificate, PlanFault, check_ownership, check_plan, claims, holder_text, kept_and_moved, member_name, name,
    subscribed_topics,
};
use crate::planning::group::{Group, NONE};
use crate::planning::objective::{Objective, Rules};
use crate::planning::ownership::CONTESTED;
use crate::planning::plan::{Outcome, UnassignedReason};
use crate::planning::score::balance_score;

/// Verifies a plan, its reasons included. O(partitions × log topics).
pub(super) fn verify(
    group: &Group,
    rules: Rules,
    forming: Option<i32>,
    outcome: &Outcome,
) -> Result<Certificate, PlanFault> {
    let (ownership, target) = (&outcome.ownership, &outcome.target().owner);
    let expected = group.topics().partitions();
    for given in [target.len(), outcome.plan.owner.len()] {
        if given != expected {
            return Err(PlanFault::Length { given, expected });
        }
    }
    check_ownership(group, ownership)?;
    claims::check(group, rules, forming, ownership)?;
    check_plan(group, outcome.target())?;
    let topics: Vec<u32> = subscribed_topics(group).collect();
    let smallest = topics.iter().copied().min_by_key(|&topic| (group.topics().count(topic), topic));
    let eligible = smallest.map_or(0, |topic| group.topics().count(topic));
    let after = by_number(group, &topics, target, eligible)?;
    let before = by_number(group, &topics, &ownership.owner, eligible)?;

    for &topic in &topics {
        for (partition, &owner) in group.topics().range(topic).zip(&after) {
            if owner == NONE || (target[partition as usize] == NONE && group.subscribes(owner, topic)) {
                return Err(PlanFault::Incomplete { partition: name(group, partition) });
            }
        }
    }
    check_reasons(group, outcome, &topics, smallest.unwrap_or(NONE), &after)?;
    Ok(certify(group, &before, &after))
}

/// By number, the member that has partitions of this number.
fn by_number(group: &Group, topics: &[u32], owner: &[u32], eligible: u32) -> Result<Vec<u32>, PlanFault> {
    let mut found = vec![NONE; eligible as usize];
    for &topic in topics {
        for (number, partition) in (0u32..).zip(group.topics().range(topic)) {
            let owner = owner[partition as usize];
            match found.get_mut(number as usize) {
                _ if owner == NONE => {}
                None => return Err(PlanFault::NotEligible { partition: name(group, partition) }),
                Some(slot) if *slot == NONE => *slot = owner,
                Some(slot) if *slot == owner => {}
                Some(slot) => {
                    let (first, second) = (member_name(group, *slot), member_name(group, owner));
                    return Err(PlanFault::Parted { number, first, second });
                }
            }
        }
    }
    Ok(found)
}

/// Derives the partitions without an owner, with the reasons, and compares them with those of the outcome.
fn check_reasons(
    group: &Group,
    outcome: &Outcome,
    topics: &[u32],
    smallest: u32,
    numbers: &[u32],
) -> Result<(), PlanFault> {
    let (target, plan, held) = (&outcome.target().owner, &outcome.plan.owner, &outcome.ownership.held);
    let mut given = outcome.unassigned(group).peekable();
    for topic in 0..group.topics().len() as u32 {
        let subscribed = topics.binary_search(&topic).is_ok();
        for (number, partition) in group.topics().range(topic).enumerate() {
            let (then, now) = (target[partition as usize], plan[partition as usize]);
            let holder = held.get(partition as usize).copied().unwrap_or(NONE);
            let blocked = holder != NONE && holder != then;
            if now != NONE {
                let (partition, member) = (name(group, partition), member_name(group, now));
                if now != then {
                    return Err(PlanFault::OffTarget { partition, member });
                }
                if blocked {
                    return Err(PlanFault::HandedOver { partition, member, holder: holder_text(group, holder) });
                }
                continue;
            }
            let reason = if !subscribed {
                UnassignedReason::NoSubscriber
            } else if number >= numbers.len() {
                UnassignedReason::Beyond { topic: smallest }
            } else if then == NONE {
                UnassignedReason::OwnerNotSubscribed { owner: numbers[number] }
            } else if !blocked {
                return Err(PlanFault::Incomplete { partition: name(group, partition) });
            } else if holder == CONTESTED {
                UnassignedReason::Contested
            } else {
                UnassignedReason::Withheld { holder }
            };
            if given.next() != Some((partition, reason)) {
                return Err(PlanFault::WrongReason { partition: name(group, partition) });
            }
        }
    }
    match given.next() {
        Some((partition, _)) => Err(PlanFault::WrongReason { partition: name(group, partition) }),
        None => Ok(()),
    }
}

/// With `q, r = divmod(numbers, members)`, the fairest assignment gives `q` numbers to each member and one more to `r` of them.
/// A member that held `h` keeps at most `min(h, q)`, and of the members that held more at most `r` keep one more.
fn certify(group: &Group, before: &[u32], after: &[u32]) -> Certificate {
    let mut held = vec![0u64; group.members()];
    let mut loads = vec![0u64; group.members()];
    for (&before, &after) in before.iter().zip(after) {
        if before != NONE {
            held[before as usize] += 1;
        }
        loads[after as usize] += 1;
    }
    let (kept, moved) = kept_and_moved(before, after);
    let taking: Vec<usize> =
        (0..group.members()).filter(|&member| !group.subscription(member as u32).is_empty()).collect();
    let members = taking.len().max(1) as u64;
    let (q, r) = (after.len() as u64 / members, after.len() as u64 % members);
    let more = taking.iter().filter(|&&member| held[member] > q).count() as u64;
    let most = taking.iter().map(|&member| held[member].min(q)).sum::<u64>() + more.min(r);
    let loads: Vec<u64> = taking.iter().map(|&member| loads[member]).collect();
    Certificate {
        objective: Objective::default(),
        score: balance_score(&loads),
        score_bound: Some(u128::from(r) * u128::from(members - r)),
        kept,
        moved,
        moved_bound: Some(kept + moved - most),
        rack_misses: 0,
        rack_misses_bound: Some(0),
        left_out: 0,
        limited: None,
    }
}
