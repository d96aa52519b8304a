//! The sticky strategy: the least balance score, and among those plans the most partitions kept.
//!
//! KIP-54 defines the result, and the solver finds it exactly. With equal subscriptions there is a closed form (`uniform`).
//! Otherwise there are five steps:
//!
//! 1. `rows`: topics with the same subscribers are merged.
//! 2. `proposal`: each member keeps its partitions, and the rest is proposed to the least loaded.
//! 3. `levels`: members are split into blocks in which every optimal plan has loads of `b` or `b + 1`.
//! 4. `flow`: inside the blocks a minimum-cost flow leads from the proposal to the optimum.
//! 5. `deal`: the partitions are handed out one by one.
//!
//! Where racks make too many pairs of a row and a subscriber, arcs lead from rows to members over hubs (`wide`).

mod bits;
mod by_member;
mod deal;
mod flow;
mod least_loaded;
mod levels;
mod narrowed;
mod proposal;
mod release;
mod rows;
mod uniform;
mod wide;
mod within;

use std::borrow::Cow;

use crate::planning::budget::{Goal, Limit, Limited};
use crate::planning::group::{Group, NONE};
use crate::planning::objective::{Mode, Objective};
use crate::planning::ownership::Ownership;
use crate::planning::plan::Plan;
use crate::planning::subscribers::Subscribers;
use flow::Detours;
use rows::{RowProblem, Rows};
pub use within::assign_restricted;

/// The steps that the searches may take, and the additional ones for each arc. Groups whose members join and leave stay far
/// below these limits.
const STEPS: u64 = 3 << 24;
const STEPS_PER_ARC: u64 = 256;

/// Where racks matter, at most this many pairs of a row and a subscriber get an arc each. With more pairs, arcs lead from rows to
/// members over hubs: with an arc for each pair, 2,000 members on 78 of 80 topics and 20 racks (826 KB of metadata) took
/// 2.7 GB. Without racks there are no more pairs than subscriptions.
const MOST_ARCS: u64 = 1 << 16;

/// Plans a group.
///
/// O(partitions + claims + subscriptions) when subscriptions are equal. Otherwise, with `A` the number of pairs of a row and
/// a subscriber, O(A) for each search of a flow besides; a group whose proposal is balanced needs none. Where racks matter, A
/// is at most 65,536; with more pairs, a search takes O(partitions x replicas + subscriptions), and memory as much.
#[must_use]
pub fn assign(group: &Group, ownership: &Ownership, objective: Objective) -> Plan {
    assign_within(group, ownership, objective, &Limit::default()).0
}

/// As [`assign`], within a limit. If the limit was too small, the plan is still valid: each partition goes to the least loaded
/// member, and the search up to the limit has made the loads more even. The second value is the search that ended early.
#[must_use]
pub fn assign_within(
    group: &Group,
    ownership: &Ownership,
    objective: Objective,
    limit: &Limit<'_>,
) -> (Plan, Option<Limited>) {
    let owner: Cow<'_, [u32]> = match objective.mode {
        Mode::Fair => Cow::Owned(vec![NONE; ownership.owner.len()]),
        Mode::FairYetSticky | Mode::StickyYetFair => Cow::Borrowed(&ownership.owner),
    };
    let racks = rows::racks_matter(group);
    if objective.mode != Mode::StickyYetFair
        && !racks
        && let Some(subscription) = uniform::only_subscription(group)
    {
        let mut plan = Plan { owner: owner.into_owned() };
        uniform::assign(group, subscription, &mut plan);
        return (plan, None);
    }
    let subscribers = Subscribers::new(group);
    let rows = if racks {
        Rows::of_racks(group, &subscribers, |_, rack_set| rack_set)
    } else {
        Rows::of_subscribers(group, &subscribers)
    };
    if racks && rows.arcs(&subscribers) > MOST_ARCS {
        drop(rows);
        let mut plan = Plan { owner: owner.into_owned() };
        let limited = wide::assign(group, &subscribers, objective, &mut plan, limit);
        return (plan, limited);
    }
    dense(group, subscribers, rows, racks, objective, owner, limit)
}

/// Plans a group with an arc for each row and each of its subscribers. `owner` has the previous owners that count.
fn dense(
    group: &Group,
    subscribers: Subscribers,
    rows: Rows,
    racks: bool,
    objective: Objective,
    owner: Cow<'_, [u32]>,
    limit: &Limit<'_>,
) -> (Plan, Option<Limited>) {
    let pinned = objective.mode == Mode::StickyYetFair;
    let problem = RowProblem::taking(group, subscribers, rows, &owner, pinned, racks);
    let (proposed, loads) = proposal::propose(&problem);
    let budget = limit.budget(STEPS + STEPS_PER_ARC * problem.held.len() as u64);
    let (taken, limited) = match levels::split(&problem, proposed, loads, &budget) {
        Err((level, spent)) => (level, Some(spent.seeking(Goal::Balance))),
        Ok((blocks, proposed)) => {
            match flow::cheapest(&problem, &blocks, &proposed, objective.racks, &Detours::default(), &budget) {
                Err(limited) => (blocks.allowed(proposed), Some(limited)),
                Ok(taken) => (taken, None),
            }
        }
    };
    // The plan is written over the previous owners. They are copied after the search, so that the copy can use its memory.
    let mut plan = Plan { owner: owner.into_owned() };
    deal::deal(&problem, &mut plan, taken);
    (plan, limited)
}
