//! Groups with too many pairs of a row and a subscriber for a leader's time and memory.
//!
//! Racks split the partitions of one set of subscribers into as many rows as there are sets of racks. With an arc for each pair
//! of a row and a subscriber, the number of arcs would be subscriptions times rack sets. Most of these arcs are alike: unless a
//! member holds a partition of the row, or is proposed for one, a partition costs the same for all members on one rack. So arcs
//! lead from rows to hubs, one for each set of subscribers and rack, and from hubs to their members. Racks have no part in the
//! balance of loads, which is found on rows without racks.
//!
//! The plan is as good as with all arcs, the distance to the proposal included. Of several such plans it may be another one.

mod adjust;
mod hubs;
mod lay;
mod proposal;
#[cfg(test)]
mod tests;

use super::deal;
use super::flow;
use super::levels;
use super::rows::{RowProblem, Rows};
use crate::planning::budget::{Budget, Goal, Limit, Limited};
use crate::planning::group::{Csr, Group, NONE};
use crate::planning::objective::{Mode, Objective};
use crate::planning::plan::Plan;
use crate::planning::subscribers::Subscribers;
use hubs::{Hubs, NearSets};

/// The steps, as [`super::STEPS`] and [`super::STEPS_PER_ARC`]. An edge over hubs is anywhere in memory, so that a step takes
/// twice as long: with the same number of steps, a leader of 11,910 members took 2.9 s.
const STEPS: u64 = super::STEPS / 2;
const STEPS_PER_ARC: u64 = super::STEPS_PER_ARC / 2;

/// The lanes: rows of a set of subscribers and a set of near hubs.
struct Lanes {
    hubs: Hubs,
    near_sets: NearSets,
    rows: Rows,
    /// By lane, the row of its set of subscribers in the problem without racks.
    merged_row: Vec<u32>,
}

impl Lanes {
    fn new(group: &Group, subscribers: &Subscribers, merged: &Rows) -> Self {
        let hubs = Hubs::new(group, subscribers);
        let mut near_sets = NearSets::new();
        let rows = Rows::of_racks(group, subscribers, |set, rack_set| near_sets.number(group, &hubs, set, rack_set));
        let mut row_of_set = vec![NONE; subscribers.len()];
        for (row, &(set, _)) in (0u32..).zip(&merged.keys) {
            row_of_set[set as usize] = row;
        }
        let merged_row = rows.keys.iter().map(|&(set, _)| row_of_set[set as usize]).collect();
        Self { hubs, near_sets, rows, merged_row }
    }

    /// The problem with these arcs, and with the held partitions counted. An arc is a lane and a member; the arcs ascend and do
    /// not repeat.
    fn problem(&self, group: &Group, arcs: &[(u32, u32)], owner: &[u32], pinned: bool) -> RowProblem<'static> {
        let mut by_row = Csr::new();
        let (mut members, mut mismatch) = (Vec::new(), Vec::with_capacity(arcs.len()));
        let mut rest = arcs;
        for (row, &(set, near_set)) in (0u32..).zip(&self.rows.keys) {
            let count = rest.iter().take_while(|arc| arc.0 == row).count();
            members.clear();
            members.extend(rest[..count].iter().map(|arc| arc.1));
            let far =
                |&member: &u32| self.near_sets.mismatch(&self.hubs, set, near_set, group.racks()[member as usize]);
            mismatch.extend(members.iter().map(far));
            by_row.push_row(&members);
            rest = &rest[count..];
        }
        let mut problem = RowProblem::with_arcs(group.members(), self.rows.clone(), by_row, mismatch);
        problem.count_supply(owner, pinned);
        if !pinned {
            let held = self.rows.of_partition.iter().zip(owner).filter(|(_, owner)| **owner != NONE);
            for (&lane, &owner) in held {
                if let Some(arc) = problem.arc(lane, owner) {
                    problem.held[arc as usize] += 1;
                }
            }
        }
        problem
    }
}

/// Partitions of a lane that go to a member. Several gifts of one lane and member add up.
struct Gift {
    lane: u32,
    member: u32,
    count: u32,
}

/// Plans a group in which racks matter. `plan` has the previous owners that count.
pub(super) fn assign(
    group: &Group,
    subscribers: &Subscribers,
    objective: Objective,
    plan: &mut Plan,
    limit: &Limit<'_>,
) -> Option<Limited> {
    let pinned = objective.mode == Mode::StickyYetFair;
    let merged = Rows::of_subscribers(group, subscribers);
    let lanes = Lanes::new(group, subscribers, &merged);
    let merged = RowProblem::new(group, subscribers, merged, &plan.owner, pinned, false);

    let gifts = proposed_gifts(&lanes, subscribers, &merged, &plan.owner);
    let arcs = arcs(&lanes, &gifts, &plan.owner, pinned);
    let problem = lanes.problem(group, &arcs, &plan.owner, pinned);
    let proposed = with_gifts(&problem, problem.held.clone(), &gifts);
    drop(gifts);

    // The budget grows with subscriptions, which cost a member bytes of metadata, and not with partitions, which cost no bytes.
    let budget = limit.budget(STEPS + STEPS_PER_ARC * merged.held.len() as u64);
    let (taken, gifts, limited) = solve(&lanes, subscribers, &merged, &problem, proposed, objective, &budget);

    // A member that gets partitions over a hub needs an arc on which they are dealt.
    let mut with = arcs.clone();
    with.extend(gifts.iter().map(|gift| (gift.lane, gift.member)));
    with.sort_unstable();
    with.dedup();
    let dealt = lanes.problem(group, &with, &plan.owner, pinned);
    let own = arcs.iter().zip(taken).map(|(&(lane, member), count)| Gift { lane, member, count });
    let gifts: Vec<Gift> = own.chain(gifts).collect();
    let taken = with_gifts(&dealt, vec![0; with.len()], &gifts);
    deal::deal(&dealt, plan, taken);
    limited
}

/// The partitions that the proposal gives away, one by one.
fn proposed_gifts(lanes: &Lanes, subscribers: &Subscribers, merged: &RowProblem, owner: &[u32]) -> Vec<Gift> {
    let mut gifts = Vec::new();
    let mut loads = merged.loads(&merged.held);
    proposal::propose(lanes, subscribers, owner, &mut loads, |lane, member| {
        gifts.push(Gift { lane, member, count: 1 });
    });
    gifts
}

/// The arcs with a cost of their own: those of the proposal and of the held partitions.
fn arcs(lanes: &Lanes, gifts: &[Gift], owner: &[u32], pinned: bool) -> Vec<(u32, u32)> {
    let mut arcs: Vec<(u32, u32)> = gifts.iter().map(|gift| (gift.lane, gift.member)).collect();
    if !pinned {
        let held = lanes.rows.of_partition.iter().zip(owner).filter(|(_, owner)| **owner != NONE);
        arcs.extend(held.map(|(&lane, &owner)| (lane, owner)));
    }
    arcs.sort_unstable();
    arcs.dedup();
    arcs
}

/// Leads from the proposal to the optimum, within the budget. Returns the numbers of partitions by arc, the partitions that
/// members get over hubs, and the search that ended early.
fn solve(
    lanes: &Lanes,
    subscribers: &Subscribers,
    merged: &RowProblem,
    problem: &RowProblem,
    proposed: Vec<u32>,
    objective: Objective,
    budget: &Budget<'_>,
) -> (Vec<u32>, Vec<Gift>, Option<Limited>) {
    let even = adjust::merge(problem, lanes, merged, &proposed);
    let loads = merged.loads(&even);
    let (mut blocks, even) = match levels::split(merged, even, loads, budget) {
        Ok(split) => split,
        Err((level, spent)) => {
            let (taken, gifts) = adjust::adjust(problem, lanes, merged, proposed, &level);
            return (taken, gifts, Some(spent.seeking(Goal::Balance)));
        }
    };
    blocks.of_row = lanes.merged_row.iter().map(|&row| blocks.of_row[row as usize]).collect();
    let detours = lay::lay(lanes, subscribers, &blocks);
    match flow::cheapest(problem, &blocks, &proposed, objective.racks, &detours, budget) {
        Ok(mut taken) => {
            let carried = taken.split_off(proposed.len());
            (taken, lay::take(&detours, &carried), None)
        }
        Err(limited) => {
            let level = blocks.allowed(even);
            let (taken, gifts) = adjust::adjust(problem, lanes, merged, proposed, &level);
            (taken, gifts, Some(limited))
        }
    }
}

/// Adds gifts, whose arcs the problem has, to the numbers of its arcs.
fn with_gifts(problem: &RowProblem, mut taken: Vec<u32>, gifts: &[Gift]) -> Vec<u32> {
    for gift in gifts {
        if let Some(arc) = problem.arc(gift.lane, gift.member) {
            taken[arc as usize] += gift.count;
        }
    }
    taken
}
