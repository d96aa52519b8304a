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

use crate::group::{Group, NONE};
use crate::ownership::Ownership;
use crate::plan::Plan;
use crate::strategy::{Mode, Objective};
use rows::Problem;

/// Plans a group.
///
/// O(partitions + claims + subscriptions) when subscriptions are equal. Otherwise, with `A` the number of pairs of a row and
/// a subscriber, O(A) for each search of a flow besides; a group whose proposal is balanced needs none.
#[must_use]
pub fn assign(group: &Group, ownership: &Ownership, objective: Objective) -> Plan {
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
        return plan;
    }
    let problem = Problem::new(group, &plan.owner, objective.mode == Mode::StickyYetFair, racks);
    let proposed = proposal::propose(&problem);
    let blocks = levels::split(&problem, &proposed);
    let share = flow::cheapest(&problem, &blocks, &proposed, objective.racks);
    deal::deal(&problem, &mut plan, &share);
    plan
}
