//! The sticky strategy: the least balance score, and among those plans the most partitions kept.
//!
//! KIP-54 defines the result; the way there is exact. When all subscriptions are equal, how much everybody keeps has a
//! closed form (`uniform`). Otherwise topics with the same subscribers are merged into `rows`, every member keeps what
//! it has and the rest is proposed to the least loaded (`proposal`), members are split into blocks in which every
//! optimal plan has loads of `b` or `b + 1` (`levels`), inside them a minimum-cost flow leads from the proposal to the
//! optimum (`flow`), and only then partitions are handed out one by one (`deal`).

mod deal;
mod flow;
mod least_loaded;
mod levels;
mod proposal;
mod rows;
mod uniform;

use crate::budget::{Goal, Limit, Limited};
use crate::group::{Group, NONE};
use crate::ownership::Ownership;
use crate::plan::Plan;
use crate::strategy::{Mode, Objective};
use rows::Problem;

/// What the searches may take, and what more for each arc. Groups whose members join and leave stay far below.
const STEPS: u64 = 1 << 27;
const STEPS_PER_ARC: u64 = 256;

/// Plans a group.
///
/// O(partitions + claims + subscriptions) when subscriptions are equal. Otherwise, with `A` the number of pairs of a row and
/// a subscriber, O(A) for each search of a flow besides; a group whose proposal is balanced needs none.
#[must_use]
pub fn assign(group: &Group, ownership: &Ownership, objective: Objective) -> Plan {
    assign_within(group, ownership, objective, &Limit::default()).0
}

/// As [`assign`], within a limit. Where it was too small, the plan is valid all the same, and what it may not be the best in
/// is said: whoever has the least so far gets the next partition, made more even as far as there were steps.
#[must_use]
pub fn assign_within(
    group: &Group,
    ownership: &Ownership,
    objective: Objective,
    limit: &Limit<'_>,
) -> (Plan, Option<Limited>) {
    // What the plan starts from and is written over. Taken first, it fits the place that the settled claims left.
    let mut plan = Plan { owner: ownership.owner.clone() };
    if objective.mode == Mode::Fair {
        plan.owner.fill(NONE);
    }
    let racks = rows::racks_matter(group);
    if objective.mode != Mode::StickyYetFair
        && !racks
        && let Some(pattern) = uniform::only_pattern(group)
    {
        uniform::assign(group, pattern, &mut plan);
        return (plan, None);
    }
    let problem = Problem::new(group, &plan.owner, objective.mode == Mode::StickyYetFair, racks);
    let proposed = proposal::propose(&problem);
    let budget = limit.budget(STEPS + STEPS_PER_ARC * problem.arc_row.len() as u64);
    let (share, limited) = match levels::split(&problem, &proposed, &budget) {
        Err((level, spent)) => (level, Some(spent.seeking(Goal::Balance))),
        Ok(blocks) => match flow::cheapest(&problem, &blocks, &proposed, objective.racks, &budget) {
            Err(spent) => (blocks.flow.unwrap_or(proposed), Some(spent.seeking(Goal::Moves))),
            Ok(share) => (share, None),
        },
    };
    deal::deal(&problem, &mut plan, &share);
    (plan, limited)
}
