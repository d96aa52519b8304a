//! From the proposal to given loads with few changes. If the search for the fewest moves ended early, the plan gets its balanced
//! loads by this adjustment.

use super::{Gift, Lanes};
use crate::planning::group::Csr;
use crate::planning::sticky::rows::RowProblem;

/// The numbers that members take of the lanes, added up for each arc of the problem without racks.
pub(super) fn merge(problem: &RowProblem, lanes: &Lanes, merged: &RowProblem, taken: &[u32]) -> Vec<u32> {
    let mut sum = vec![0; merged.held.len()];
    for (row, &merged_row) in (0u32..).zip(&lanes.merged_row) {
        for arc in problem.arcs_of_row(row) {
            if let Some(sum_of) = merged.arc(merged_row, problem.member(arc)) {
                sum[sum_of as usize] += taken[arc as usize];
            }
        }
    }
    sum
}

/// Changes the proposed numbers to those of `target`, which are by arc of the problem without racks. Takes partitions from
/// members with too many: first those that the member did not hold, and of these first those on other racks. Gives them to
/// members with too few: first to members near the partitions.
pub(super) fn adjust(
    problem: &RowProblem,
    lanes: &Lanes,
    merged: &RowProblem,
    proposed: Vec<u32>,
    target: &[u32],
) -> (Vec<u32>, Vec<Gift>) {
    let mut taken = proposed;
    let mut gifts = Vec::new();
    let current = merge(problem, lanes, merged, &taken);
    let lanes_of = Csr::group_by(&lanes.merged_row, merged.rows());
    let mut pool = vec![0u32; problem.rows()];
    let (mut surplus, mut lack) = (vec![0u32; problem.members], vec![0u32; problem.members]);
    for row in 0..merged.rows() as u32 {
        let mut changes = false;
        for arc in merged.arcs_of_row(row) {
            let (member, arc) = (merged.member(arc) as usize, arc as usize);
            surplus[member] = current[arc].saturating_sub(target[arc]);
            lack[member] = target[arc].saturating_sub(current[arc]);
            changes |= surplus[member] + lack[member] > 0;
        }
        if !changes {
            continue;
        }
        for (held, far) in [(false, true), (false, false), (true, true), (true, false)] {
            for &lane in lanes_of.row(row) {
                for arc in problem.arcs_of_row(lane).filter(|&arc| problem.mismatched(arc) == far) {
                    let (at, member) = (arc as usize, problem.member(arc) as usize);
                    let spare = if held { taken[at] } else { taken[at].saturating_sub(problem.held[at]) };
                    let count = spare.min(surplus[member]);
                    taken[at] -= count;
                    surplus[member] -= count;
                    pool[lane as usize] += count;
                }
            }
        }
        let hubs = lanes.hubs.of_set(lanes.rows.keys[lanes_of.row(row)[0] as usize].0);
        // By hub, how many of its first members need no more partitions.
        let mut done = vec![0; hubs.len()];
        for near in [true, false] {
            for &lane in lanes_of.row(row) {
                let near = if near {
                    lanes.near_sets.hubs.row(lanes.rows.keys[lane as usize].1).to_vec()
                } else {
                    hubs.clone().collect()
                };
                let pool = &mut pool[lane as usize];
                for hub in near {
                    let done = &mut done[(hub - hubs.start) as usize];
                    while *pool > 0
                        && let Some(&member) = lanes.hubs.members.row(hub).get(*done)
                    {
                        let count = lack[member as usize].min(*pool);
                        if count > 0 {
                            gifts.push(Gift { lane, member, count });
                            lack[member as usize] -= count;
                            *pool -= count;
                        } else {
                            *done += 1;
                        }
                    }
                    if *pool == 0 {
                        break;
                    }
                }
            }
        }
    }
    (taken, gifts)
}
