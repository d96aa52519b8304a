//! From numbers to partitions: the search decides the number of a row's partitions for each member, this module chooses them.

use super::least_loaded::LeastLoaded;
use super::release::{cut, key};
use super::rows::{RowProblem, TopicRow};
use crate::planning::group::{Csr, NONE};
use crate::planning::plan::Plan;

/// Turns the previous owners into the plan in which each member has `taken[arc]` partitions by each arc. O(partitions +
/// arcs log arcs).
///
/// Of its partitions of a row, a member keeps the first by (number, topic). The rest of the row goes, in the order of the
/// segments, to the member with the fewest partitions so far that is to get more of this row.
pub(super) fn deal(problem: &RowProblem, plan: &mut Plan, taken: Vec<u32>) {
    let owner = &mut plan.owner;
    release(problem, owner, &taken);
    // A large group has millions of arcs, so the room of an arc is written over its number of partitions.
    let (mut loads, mut room) = (problem.fixed.clone(), taken);
    for ((&member, &held), room) in problem.arcs.items().iter().zip(&problem.held).zip(&mut room) {
        let kept = held.min(*room);
        loads[member as usize] += kept;
        *room -= kept;
    }
    let given = |row| problem.arcs_of_row(row).any(|arc| room[arc as usize] > 0);
    let gives: Vec<bool> = (0..problem.rows() as u32).map(given).collect();
    let mut least_loaded = LeastLoaded::new(problem, loads, room);
    let (mut free, mut members) = (Vec::new(), Vec::new());
    let given = |topic: &&TopicRow| topic.row == NONE || gives[topic.row as usize];
    let mut topics = problem.topics.iter().filter(given).peekable();
    while let Some(topic) = topics.next() {
        // Each number is written, but only those without an owner advance the count: no branch depends on an owner.
        let owners = &owner[topic.range()];
        let mut count = free.len();
        free.resize(count + owners.len(), 0);
        for (partition, &owner) in (topic.start..topic.end).zip(owners) {
            free[count] = partition;
            count += usize::from(owner == NONE);
        }
        free.truncate(count);
        if topic.row == NONE {
            let row_of = |partition: u32| problem.row_of[partition as usize];
            for run in free.chunk_by(|&one, &other| row_of(one) == row_of(other)) {
                hand_out(&mut least_loaded, row_of(run[0]), run, owner, &mut members);
            }
        } else if topics.peek().is_some_and(|next| next.row == topic.row) {
            continue;
        } else {
            hand_out(&mut least_loaded, topic.row, &free, owner, &mut members);
        }
        free.clear();
    }
}

/// Gives partitions of a row to its least loaded members. `members` is scratch space, kept for its memory.
fn hand_out(least_loaded: &mut LeastLoaded<'_>, row: u32, free: &[u32], owner: &mut [u32], members: &mut Vec<u32>) {
    let problem = least_loaded.problem;
    let mut rest = free;
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
            for (&partition, &member) in round.iter().zip(&*members) {
                owner[partition as usize] = member;
            }
            rest = left;
        }
    });
}

/// Takes from each member that holds more partitions of a row than `taken` those beyond that number.
fn release(problem: &RowProblem, owner: &mut [u32], taken: &[u32]) {
    let loses = |arc: u32| problem.held[arc as usize] > taken[arc as usize];
    if !(0..problem.held.len() as u32).any(loses) {
        return;
    }
    if problem.row_of.is_empty() {
        release_by_row(problem, owner, taken);
    } else {
        release_by_partition(problem, owner, taken);
    }
}

/// [`release`], where all partitions of a topic are in one row.
fn release_by_row(problem: &RowProblem, owner: &mut [u32], taken: &[u32]) {
    let rows: Vec<u32> = problem.topics.iter().map(|topic| topic.row).collect();
    let topics_of = Csr::group_by(&rows, problem.rows());
    // By member, the place of its next key; NONE for a member that loses no partition of the row.
    let mut next = vec![NONE; problem.members];
    let mut keys: Vec<u64> = Vec::new();
    for row in 0..problem.rows() as u32 {
        let losers = problem.arcs_of_row(row).filter(|&arc| problem.held[arc as usize] > taken[arc as usize]);
        keys.clear();
        for arc in losers.clone() {
            next[problem.member(arc) as usize] = keys.len() as u32;
            keys.resize(keys.len() + problem.held[arc as usize] as usize, 0);
        }
        if keys.is_empty() {
            continue;
        }
        for &at in topics_of.row(row) {
            let topic = problem.topics[at as usize];
            for (partition, &owner) in (topic.start..topic.end).zip(&owner[topic.range()]) {
                if owner != NONE && next[owner as usize] != NONE {
                    keys[next[owner as usize] as usize] = key(partition, topic.start);
                    next[owner as usize] += 1;
                }
            }
        }
        let mut start = 0;
        for arc in losers {
            let (held, keeps) = (problem.held[arc as usize] as usize, taken[arc as usize] as usize);
            cut(owner, &mut keys[start..start + held], keeps);
            start += held;
            next[problem.member(arc) as usize] = NONE;
        }
    }
}

/// [`release`], where the partitions of a topic are in several rows.
fn release_by_partition(problem: &RowProblem, owner: &mut [u32], taken: &[u32]) {
    let losers = || (0..problem.held.len() as u32).filter(|&arc| problem.held[arc as usize] > taken[arc as usize]);
    // By arc, the place of its next key; NONE for an arc whose member loses no partition of the row.
    let mut next = vec![NONE; problem.held.len()];
    let mut loses = vec![false; problem.members];
    let mut keys: Vec<u64> = Vec::new();
    for arc in losers() {
        next[arc as usize] = keys.len() as u32;
        loses[problem.member(arc) as usize] = true;
        keys.resize(keys.len() + problem.held[arc as usize] as usize, 0);
    }
    for topic in &problem.topics {
        for partition in topic.start..topic.end {
            let (row, owner) = (problem.row_of[partition as usize], owner[partition as usize]);
            if owner != NONE
                && loses[owner as usize]
                && let Some(arc) = problem.arc(row, owner)
                && next[arc as usize] != NONE
            {
                keys[next[arc as usize] as usize] = key(partition, topic.start);
                next[arc as usize] += 1;
            }
        }
    }
    let mut start = 0;
    for arc in losers() {
        let (held, keeps) = (problem.held[arc as usize] as usize, taken[arc as usize] as usize);
        cut(owner, &mut keys[start..start + held], keeps);
        start += held;
    }
}
