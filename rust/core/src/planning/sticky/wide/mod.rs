//! Groups with more pairs of a row and a subscriber than a leader has time and memory for.
//!
//! Racks split a lineup's partitions into as many rows as there are sets of racks. With an arc for each pair of a row and a
//! subscriber, there would be as many arcs as subscriptions times rack sets. Most of these arcs are alike: unless a member holds
//! a partition of the row, or is proposed to have one, a partition costs the same for all members on one rack. So arcs lead from
//! rows to hubs, one for each lineup and rack, and from hubs to their members, and there are about as many arcs as partitions and
//! subscriptions. Racks have no part in the balance of loads, which is found on rows without racks.
//!
//! The plan is as good as with all arcs, the distance to the proposal included. Among several such plans it may be another one.

mod hubs;
mod lay;
mod proposal;
mod settle;
#[cfg(test)]
mod tests;

use super::deal;
use super::flow;
use super::levels::{self, Blocks};
use super::rows::{Lineups, Problem, Rows};
use super::{STEPS, STEPS_PER_ARC};
use crate::budget::{Goal, Limit, Limited};
use crate::group::{Csr, Group, NONE};
use crate::plan::Plan;
use crate::strategy::{Mode, Objective};
use hubs::{Hubs, Sets};

/// The lanes: rows of a lineup and a set of near hubs.
struct Lanes {
    hubs: Hubs,
    sets: Sets,
    rows: Rows,
    /// By lane, the row of its lineup in the problem without racks.
    merged_row: Vec<u32>,
}

impl Lanes {
    fn new(group: &Group, lineups: &Lineups, merged: &Rows) -> Self {
        let hubs = Hubs::new(group, lineups);
        let mut sets = Sets::new();
        let rows = Rows::of_racks(group, lineups, |lineup, set| sets.number(group, &hubs, lineup, set));
        let mut row_of_lineup = vec![NONE; lineups.sizes.len()];
        for (row, &(lineup, _)) in (0u32..).zip(&merged.keys) {
            row_of_lineup[lineup as usize] = row;
        }
        let merged_row = rows.keys.iter().map(|&(lineup, _)| row_of_lineup[lineup as usize]).collect();
        Self { hubs, sets, rows, merged_row }
    }

    /// The problem with these arcs, each a lane and a member, ascending and without repeats, and with the holdings counted.
    fn problem(&self, group: &Group, arcs: &[(u32, u32)], owner: &[u32], pinned: bool) -> Problem {
        let mut by_row = Csr::new();
        let (mut members, mut mismatch) = (Vec::new(), Vec::with_capacity(arcs.len()));
        let mut rest = arcs;
        for (row, &(lineup, set)) in (0u32..).zip(&self.rows.keys) {
            let count = rest.iter().take_while(|arc| arc.0 == row).count();
            members.clear();
            members.extend(rest[..count].iter().map(|arc| arc.1));
            let far = |&member: &u32| self.sets.mismatch(&self.hubs, lineup, set, group.racks()[member as usize]);
            mismatch.extend(members.iter().map(far));
            by_row.push_row(&members);
            rest = &rest[count..];
        }
        let mut problem = Problem::with_arcs(group.members(), self.rows.segments.clone(), by_row, mismatch);
        problem.count(owner, pinned);
        problem
    }
}

/// Partitions of a lane that go to a member; several of the same lane and member add up.
struct Gift {
    lane: u32,
    member: u32,
    count: u32,
}

/// Plans a group in which racks matter. `plan` has the owners that count.
pub(super) fn assign(
    group: &Group,
    lineups: &Lineups,
    objective: Objective,
    plan: &mut Plan,
    limit: &Limit<'_>,
) -> Option<Limited> {
    let pinned = objective.mode == Mode::StickyYetFair;
    let merged = Rows::of_lineups(group, lineups);
    let lanes = Lanes::new(group, lineups, &merged);
    let merged = Problem::new(group, lineups, merged, &plan.owner, pinned, false);

    // The arcs that are not like others: those of the proposal and of the holdings.
    let mut gifts: Vec<Gift> = Vec::new();
    let mut loads = merged.loads(&merged.held);
    proposal::propose(&lanes, lineups, &plan.owner, &mut loads, |lane, member| {
        gifts.push(Gift { lane, member, count: 1 });
    });
    let mut arcs: Vec<(u32, u32)> = gifts.iter().map(|gift| (gift.lane, gift.member)).collect();
    if !pinned {
        for segment in &lanes.rows.segments {
            let owners = &plan.owner[segment.start as usize..segment.end as usize];
            arcs.extend(owners.iter().filter(|&&owner| owner != NONE).map(|&owner| (segment.row, owner)));
        }
    }
    arcs.sort_unstable();
    arcs.dedup();
    let problem = lanes.problem(group, &arcs, &plan.owner, pinned);
    let proposed = with_gifts(&problem, problem.held.clone(), &gifts);
    drop(gifts);

    // The budget grows with subscriptions, which cost a member bytes of metadata, and not with partitions, which cost it none.
    let budget = limit.budget(STEPS + STEPS_PER_ARC * merged.held.len() as u64);
    let even = settle::merge(&problem, &lanes, &merged, &proposed);
    let (share, gifts, limited) = match levels::split(&merged, &even, &budget) {
        Err((level, spent)) => {
            let (share, gifts) = settle::settle(&problem, &lanes, &merged, proposed, &level);
            (share, gifts, Some(spent.seeking(Goal::Balance)))
        }
        Ok(blocks) => {
            let of_row = lanes.merged_row.iter().map(|&row| blocks.of_row[row as usize]).collect();
            let Blocks { blocks, of_member, flow, .. } = blocks;
            let blocks = Blocks { blocks, of_member, of_row, flow: None };
            let detours = lay::lay(&lanes, lineups, &blocks);
            match flow::cheapest(&problem, &blocks, &proposed, objective.racks, &detours, &budget) {
                Ok(mut share) => {
                    let ways = share.split_off(proposed.len());
                    let gifts = lay::take(&detours, &ways);
                    (share, gifts, None)
                }
                Err(spent) => {
                    let level = flow.unwrap_or(even);
                    let (share, gifts) = settle::settle(&problem, &lanes, &merged, proposed, &level);
                    (share, gifts, Some(spent.seeking(Goal::Moves)))
                }
            }
        }
    };

    // A member that gets partitions over a hub needs an arc of its own for them to be dealt on.
    let given = gifts.iter().map(|gift| (gift.lane, gift.member));
    let mut with = arcs.clone();
    with.extend(given);
    with.sort_unstable();
    with.dedup();
    let dealt = lanes.problem(group, &with, &plan.owner, pinned);
    let own = arcs.iter().zip(share).map(|(&(lane, member), count)| Gift { lane, member, count });
    let gifts: Vec<Gift> = own.chain(gifts).collect();
    let share = with_gifts(&dealt, vec![0; with.len()], &gifts);
    deal::deal(&dealt, plan, &share);
    limited
}

/// Adds gifts, whose arcs the problem has, to the share of its arcs.
fn with_gifts(problem: &Problem, mut share: Vec<u32>, gifts: &[Gift]) -> Vec<u32> {
    for gift in gifts {
        if let Some(arc) = problem.arc(gift.lane, gift.member) {
            share[arc as usize] += gift.count;
        }
    }
    share
}
