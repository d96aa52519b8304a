//! The sticky strategy under restrictions: the most partitions that can be given away, then the least balance score, then the
//! most partitions kept.
//!
//! The search is that of a group without restrictions. Members have arcs only to the rows that they may have, and a member's
//! load may grow only to its limit. Partitions for which no member has room go to one more member, *nobody*. First, chains
//! (`levels`) take as many partitions as possible from *nobody*. The members that chains from *nobody* then still reach are full
//! in every plan that gives away the most partitions; they are cut off from the rest.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::flow::{self, Detours};
use super::levels;
use super::narrowed::{Narrowed, narrow};
use super::rows::{RowProblem, Rows};
use super::{STEPS, STEPS_PER_ARC, assign_within, deal};
use crate::planning::budget::{Goal, Limit, Limited};
use crate::planning::group::{Group, NONE};
use crate::planning::objective::Objective;
use crate::planning::ownership::Ownership;
use crate::planning::plan::Plan;
use crate::planning::restrictions::Restrictions;
use crate::planning::subscribers::Subscribers;

/// Plans a group under restrictions, within a limit. Racks do not count. The second value is the search that ended early.
#[must_use]
pub fn assign_restricted(
    group: &Group,
    ownership: &Ownership,
    restrictions: &Restrictions,
    limit: &Limit<'_>,
) -> (Plan, Option<Limited>) {
    let narrowed = narrow(group, restrictions, ownership);
    let owned = Ownership { owner: narrowed.owner.clone(), held: Vec::new() };
    let (found, limited) = match narrowed.nobody {
        None => assign_within(&narrowed.group, &owned, Objective::default(), limit),
        Some(nobody) => within_capacity(&narrowed, nobody, limit),
    };
    let mut plan = Plan::unassigned(group);
    for (&partition, &owner) in narrowed.partition_of.iter().zip(&found.owner) {
        plan.owner[partition as usize] = if Some(owner) == narrowed.nobody { NONE } else { owner };
    }
    (plan, limited)
}

fn within_capacity(narrowed: &Narrowed, nobody: u32, limit: &Limit<'_>) -> (Plan, Option<Limited>) {
    let Narrowed { group, owner, capacity, .. } = narrowed;
    let subscribers = Subscribers::new(group);
    let rows = Rows::of_subscribers(group, &subscribers);
    let mut problem = RowProblem::taking(group, subscribers, rows, owner, false, false);
    problem.capacity.clone_from(capacity);
    problem.nobody = Some(nobody);
    let (proposed, loads) = propose(&problem, nobody);
    let budget = limit.budget(STEPS + STEPS_PER_ARC * problem.held.len() as u64);
    let (taken, limited) = match levels::split(&problem, proposed, loads, &budget) {
        Err((level, spent)) => (level, Some(spent.seeking(Goal::Balance))),
        Ok((blocks, proposed)) => {
            // The search for the fewest moves starts from all partitions that members hold, also from those beyond a limit.
            let start: Vec<u32> = proposed.iter().zip(&problem.held).map(|(&taken, &held)| taken.max(held)).collect();
            match flow::cheapest(&problem, &blocks, &start, Objective::default().racks, &Detours::default(), &budget) {
                Err(limited) => (blocks.allowed(proposed), Some(limited)),
                Ok(taken) => (taken, None),
            }
        }
    };
    let mut plan = Plan { owner: owner.clone() };
    deal::deal(&problem, &mut plan, taken);
    (plan, limited)
}

/// By arc, a plan within the limits; and by member, its load. Members keep their partitions up to their limits, and the rest of each row goes to the
/// least loaded members with room, and then to the member `nobody`. O(arcs + partitions × log arcs).
fn propose(problem: &RowProblem, nobody: u32) -> (Vec<u32>, Vec<u32>) {
    let mut taken = vec![0; problem.held.len()];
    let mut loads = vec![0; problem.members];
    for (arc, &held) in (0u32..).zip(&problem.held) {
        let member = problem.member(arc);
        let kept = held.min(problem.most(member) - loads[member as usize]);
        taken[arc as usize] = kept;
        loads[member as usize] += kept;
    }
    for row in 0..problem.rows() as u32 {
        let arcs = problem.arcs_of_row(row);
        let mut left = problem.supply[row as usize] - arcs.clone().map(|arc| taken[arc as usize]).sum::<u32>();
        let mut last = NONE;
        let mut least: BinaryHeap<Reverse<(u32, u32)>> = BinaryHeap::new();
        for arc in arcs {
            let member = problem.member(arc);
            if member == nobody {
                last = arc;
            } else if loads[member as usize] < problem.most(member) {
                least.push(Reverse((loads[member as usize], arc)));
            }
        }
        while left > 0
            && let Some(Reverse((load, arc))) = least.pop()
        {
            let member = problem.member(arc);
            taken[arc as usize] += 1;
            loads[member as usize] = load + 1;
            left -= 1;
            if load + 1 < problem.most(member) {
                least.push(Reverse((load + 1, arc)));
            }
        }
        if left > 0 {
            taken[last as usize] += left;
            loads[nobody as usize] += left;
        }
    }
    (taken, loads)
}
