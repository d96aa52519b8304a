//! From numbers to partitions: the search decides the number of a row's partitions for each member, this module chooses them.

use super::least_loaded::LeastLoaded;
use super::release::{cut, key};
use super::rows::{RowProblem, Segment};
use crate::planning::group::NONE;
use crate::planning::plan::Plan;

/// Turns the previous owners into the plan in which each member has `taken[arc]` partitions by each arc. O(partitions +
/// arcs log arcs).
///
/// Of its partitions of a row, a member keeps the first by (number, topic). The rest of the row goes, in the order of the
/// segments, to the member with the fewest partitions so far that is to get more of this row.
pub(super) fn deal(problem: &RowProblem, plan: &mut Plan, taken: &[u32]) {
    let owner = &mut plan.owner;
    let kept: Vec<u32> = problem.held.iter().zip(taken).map(|(&held, &taken)| held.min(taken)).collect();
    release(problem, owner, &kept);
    let room: Vec<u32> = taken.iter().zip(&kept).map(|(&taken, &kept)| taken - kept).collect();
    let given = |row| problem.arcs_of_row(row).any(|arc| room[arc as usize] > 0);
    let gives: Vec<bool> = (0..problem.rows() as u32).map(given).collect();
    let mut least_loaded = LeastLoaded::new(problem, problem.loads(&kept), room);
    let (mut free, mut members) = (Vec::new(), Vec::new());
    let mut segments = problem.segments.iter().filter(|segment| gives[segment.row as usize]).peekable();
    while let Some(&Segment { row, start, end, .. }) = segments.next() {
        // Each number is written, but only those without an owner advance the count: no branch depends on an owner.
        let owners = &owner[start as usize..end as usize];
        let mut count = free.len();
        free.resize(count + owners.len(), 0);
        for (partition, &owner) in (start..end).zip(owners) {
            free[count] = partition;
            count += usize::from(owner == NONE);
        }
        free.truncate(count);
        if segments.peek().is_some_and(|next| next.row == row) {
            continue;
        }
        let mut rest = free.as_slice();
        least_loaded.give(row, free.len() as u32, |arcs, rounds| {
            if let [arc] = arcs {
                let (round, left) = rest.split_at(rounds as usize);
                round.iter().for_each(|&partition| owner[partition as usize] = problem.member(*arc));
                rest = left;
                return;
            }
            members.clear();
            members.extend(arcs.iter().map(|&arc| problem.member(arc)));
            for _ in 0..rounds {
                let (round, left) = rest.split_at(members.len());
                for (&partition, &member) in round.iter().zip(&members) {
                    owner[partition as usize] = member;
                }
                rest = left;
            }
        });
        free.clear();
    }
}

/// Takes from each member its partitions of a row beyond `kept`.
fn release(problem: &RowProblem, owner: &mut [u32], kept: &[u32]) {
    // By member, the place of its next key; NONE for a member that loses no partition of the row.
    let mut next = vec![NONE; problem.members];
    let mut keys: Vec<u64> = Vec::new();
    for row in 0..problem.rows() as u32 {
        let losers = problem.arcs_of_row(row).filter(|&arc| problem.held[arc as usize] > kept[arc as usize]);
        keys.clear();
        for arc in losers.clone() {
            next[problem.member(arc) as usize] = keys.len() as u32;
            keys.resize(keys.len() + problem.held[arc as usize] as usize, 0);
        }
        if keys.is_empty() {
            continue;
        }
        for &at in problem.segments_of.row(row) {
            let Segment { first, start, end, .. } = problem.segments[at as usize];
            for partition in start..end {
                let owner = owner[partition as usize];
                if owner != NONE && next[owner as usize] != NONE {
                    keys[next[owner as usize] as usize] = key(partition, first);
                    next[owner as usize] += 1;
                }
            }
        }
        let mut start = 0;
        for arc in losers {
            let (held, kept) = (problem.held[arc as usize] as usize, kept[arc as usize] as usize);
            cut(owner, &mut keys[start..start + held], kept);
            start += held;
            next[problem.member(arc) as usize] = NONE;
        }
    }
}
