//! The plan from which the search for the optimum starts: each member keeps its partitions, and the rest goes to the least
//! loaded.

use super::least_loaded::LeastLoaded;
use super::rows::RowProblem;

/// By arc, how many partitions of the row the member would have; and by member, its load. All partitions of each row have a
/// member. O(arcs log arcs + partitions).
pub(super) fn propose(problem: &RowProblem) -> (Vec<u32>, Vec<u32>) {
    let mut taken = problem.held.clone();
    let loads = problem.loads(&taken);
    if problem.free.is_empty() {
        return (taken, loads);
    }
    let mut room = vec![u32::MAX; taken.len()];
    if !problem.mismatch.is_empty() {
        for row in 0..problem.rows() as u32 {
            let arcs = problem.arcs_of_row(row);
            if arcs.clone().any(|arc| !problem.mismatched(arc)) {
                for arc in arcs.filter(|&arc| problem.mismatched(arc)) {
                    room[arc as usize] = 0;
                }
            }
        }
    }
    let mut least_loaded = LeastLoaded::new(problem, loads, room);
    for &(row, count) in &problem.free {
        least_loaded.give(row, count, |arcs, rounds| arcs.iter().for_each(|&arc| taken[arc as usize] += rounds));
    }
    (taken, least_loaded.loads)
}
