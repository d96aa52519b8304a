//! Takes load off the most loaded member: by a move of one partition, or by a swap of two, as long as that helps.

use std::collections::BTreeSet;

use super::Setting;
use super::place::WeightedDraft;
use crate::planning::budget::{Budget, Spent};
use crate::planning::group::NONE;
use crate::planning::weights::RelativeLoad;

/// After this many of the least loaded members, the best change with them is made. If no change with them helps, the search
/// continues with the other members, up to the first change that helps.
const TARGETS: usize = 16;

/// A change of a plan: the partition that the most loaded member gives to the target, and in a swap the one that it takes back.
struct Change {
    worst: RelativeLoad,
    target: u32,
    gives: u32,
    takes: Option<u32>,
}

/// Changes the plan until every member has at most its `room`, or no change between two members helps.
pub(super) fn search(
    setting: &Setting<'_>,
    draft: &mut WeightedDraft,
    room: &[u64],
    budget: &Budget<'_>,
) -> Result<(), Spent> {
    let weights = setting.weights;
    let relative = |draft: &WeightedDraft, member: u32| weights.relative_load(member, draft.load[member as usize]);
    let key = |partition: u32| (weights.of(partition), partition);
    let mut held: Vec<Vec<u32>> = vec![Vec::new(); draft.load.len()];
    for (partition, &owner) in (0u32..).zip(&draft.owner) {
        if owner != NONE {
            held[owner as usize].push(partition);
        }
    }
    for row in &mut held {
        row.sort_unstable_by_key(|&partition| key(partition));
    }
    let mut order: BTreeSet<(RelativeLoad, u32)> =
        (0..draft.load.len() as u32).map(|member| (relative(draft, member), member)).collect();
    while let Some(&(worst, heaviest)) = order.last() {
        if draft.load[heaviest as usize] <= room[heaviest as usize] {
            break;
        }
        let mut best: Option<Change> = None;
        for (seen, &(_, target)) in order.iter().enumerate() {
            if target == heaviest || (best.is_some() && seen >= TARGETS) {
                break;
            }
            let most = best.as_ref().map_or(worst, |best| best.worst);
            if let Some(found) = change(setting, draft, &held, heaviest, target, most, budget)? {
                best = Some(found);
            }
        }
        let Some(Change { target, gives, takes, .. }) = best else { break };
        for member in [heaviest, target] {
            order.remove(&(relative(draft, member), member));
        }
        for (partition, from, to) in
            std::iter::once((gives, heaviest, target)).chain(takes.map(|partition| (partition, target, heaviest)))
        {
            held[from as usize].retain(|&held| held != partition);
            let at = held[to as usize].partition_point(|&held| key(held) < key(partition));
            held[to as usize].insert(at, partition);
            draft.take(setting, partition);
            draft.give(setting, partition, to);
        }
        for member in [heaviest, target] {
            order.insert((relative(draft, member), member));
        }
    }
    Ok(())
}

/// The change between two members after which the more loaded of the two has the least relative load; none unless that is below
/// `most`.
fn change(
    setting: &Setting<'_>,
    draft: &WeightedDraft,
    held: &[Vec<u32>],
    from: u32,
    to: u32,
    most: RelativeLoad,
    budget: &Budget<'_>,
) -> Result<Option<Change>, Spent> {
    let weights = setting.weights;
    let movable = |member: u32, other: u32| -> Vec<u32> {
        let row = &held[member as usize];
        if setting.same_topics(member, other) {
            return row.clone();
        }
        row.iter().copied().filter(|&partition| setting.may(other, partition)).collect()
    };
    let (gives, takes) = (movable(from, to), movable(to, from));
    budget.spend((1 + held[from as usize].len() + 8 * (1 + held[to as usize].len())) as u64)?;
    let [(load_from, capacity_from), (load_to, capacity_to)] =
        [from, to].map(|member| (draft.load[member as usize], weights.capacities()[member as usize]));
    // A move of this load gives both members the same relative load.
    let wide = |load: u64, capacity: u64| i128::from(load) * i128::from(capacity);
    let even = (wide(load_from, capacity_to) - wide(load_to, capacity_from))
        / (i128::from(capacity_from) + i128::from(capacity_to));
    let mut best: Option<Change> = None;
    for taken in std::iter::once(None).chain(takes.iter().copied().map(Some)) {
        let back = taken.map_or(0, |partition| weights.of(partition));
        let wanted = i128::from(back) + even;
        let at = gives.partition_point(|&partition| i128::from(weights.of(partition)) < wanted);
        for given in [at.checked_sub(1), Some(at)].into_iter().flatten().filter_map(|at| gives.get(at)) {
            let weight = weights.of(*given);
            if weight <= back {
                continue;
            }
            let worst = weights
                .relative_load(from, load_from - weight + back)
                .max(weights.relative_load(to, load_to + weight - back));
            if worst < best.as_ref().map_or(most, |best| best.worst) {
                best = Some(Change { worst, target: to, gives: *given, takes: taken });
            }
        }
    }
    Ok(best)
}
