//! Gives partitions to the least loaded members; of several, to the smallest id.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::rows::Problem;

/// A run shorter than the candidates divided by this is given by the heap, a longer one level by level.
const SHORT_RUN: usize = 8;

/// A load and an arc in one integer: loads compare first, then arcs. One comparison of integers takes a third of the time of a
/// comparison of pairs, and comparisons are most of the time of a heap.
///
/// ```text
/// load: 32 bits | arc: 32 bits
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate(u64);

impl Candidate {
    fn new(load: u32, arc: u32) -> Self {
        Self(u64::from(load) << 32 | u64::from(arc))
    }

    fn load(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn arc(self) -> u32 {
        self.0 as u32
    }
}

/// Loads that grow as partitions are given away.
pub(super) struct LeastLoaded<'a> {
    problem: &'a Problem,
    pub loads: Vec<u32>,
    /// By arc, how many more partitions may go over it.
    pub room: Vec<u32>,
    /// By row, the candidates with their load at the last update of the entry. Loads only grow, so no entry is above the present
    /// load, and a top entry with the present load is the least loaded candidate.
    heaps: Vec<BinaryHeap<Reverse<Candidate>>>,
    candidates: Vec<Candidate>,
    active: Vec<u32>,
    merged: Vec<u32>,
}

impl<'a> LeastLoaded<'a> {
    pub(super) fn new(problem: &'a Problem, loads: Vec<u32>, room: Vec<u32>) -> Self {
        let heaps = vec![BinaryHeap::new(); problem.rows()];
        Self { problem, loads, room, heaps, candidates: Vec::new(), active: Vec::new(), merged: Vec::new() }
    }

    /// Gives `count` partitions of the row one by one. Each goes to the least loaded subscriber with room. `gave` is called with
    /// arcs and a number of rounds: in each round, each of these arcs got the next partition in turn. There must be room for
    /// all.
    pub(super) fn give(&mut self, row: u32, count: u32, gave: impl FnMut(&[u32], u32)) {
        let candidates = self.problem.arcs_of_row(row).len();
        if count == 0 {
        } else if (count as usize) < candidates / SHORT_RUN {
            self.give_by_heap(row, count, gave);
        } else {
            self.give_by_level(row, count, gave);
        }
    }

    fn give_by_heap(&mut self, row: u32, count: u32, mut gave: impl FnMut(&[u32], u32)) {
        let Self { problem, loads, room, heaps, .. } = self;
        let heap = &mut heaps[row as usize];
        if heap.is_empty() {
            let with_room = problem.arcs_of_row(row).filter(|&arc| room[arc as usize] > 0);
            *heap = with_room.map(|arc| Reverse(Candidate::new(loads[problem.member(arc) as usize], arc))).collect();
        }
        let mut left = count;
        while left > 0 {
            let Some(mut top) = heap.peek_mut() else { return };
            let Reverse(entry) = *top;
            let arc = entry.arc();
            let load = &mut loads[problem.member(arc) as usize];
            if room[arc as usize] == 0 {
                std::collections::binary_heap::PeekMut::pop(top);
                continue;
            }
            if entry.load() == *load {
                room[arc as usize] -= 1;
                *load += 1;
                left -= 1;
                gave(&[arc], 1);
            }
            top.0 = Candidate::new(*load, arc);
        }
    }

    /// The least loaded members come round by round: in the round of load `l`, each member with this load gets one partition, by
    /// ascending id. Several rounds are one step as long as no other member joins and no member is full.
    fn give_by_level(&mut self, row: u32, count: u32, mut gave: impl FnMut(&[u32], u32)) {
        let Self { problem, loads, room, candidates, active, merged, .. } = self;
        candidates.clear();
        let with_room = problem.arcs_of_row(row).filter(|&arc| room[arc as usize] > 0);
        candidates.extend(with_room.map(|arc| Candidate::new(loads[problem.member(arc) as usize], arc)));
        if candidates.len() > count as usize {
            // Only the `count` least loaded can get one.
            candidates.select_nth_unstable(count as usize);
            candidates.truncate(count as usize);
        }
        candidates.sort_unstable();
        active.clear();
        let mut left = count;
        let mut joining = 0;
        let mut level = 0;
        while left > 0 {
            if active.is_empty() {
                let Some(next) = candidates.get(joining) else { return };
                level = next.load();
            }
            let joins = candidates[joining..].iter().take_while(|each| each.load() == level).count();
            if joins > 0 {
                let newcomers = &candidates[joining..joining + joins];
                merged.clear();
                let mut waiting = active.iter().copied().peekable();
                for arc in newcomers.iter().map(|each| each.arc()) {
                    while let Some(before) = waiting.next_if(|&before| before < arc) {
                        merged.push(before);
                    }
                    merged.push(arc);
                }
                merged.extend(waiting);
                std::mem::swap(active, merged);
                joining += joins;
            }
            let round = (active.len() as u32).min(left);
            let mut rounds = left / round;
            if let Some(next) = candidates.get(joining) {
                rounds = rounds.min(next.load() - level);
            }
            for &arc in &active[..round as usize] {
                rounds = rounds.min(room[arc as usize]);
            }
            let mut full = false;
            for &arc in &active[..round as usize] {
                room[arc as usize] -= rounds;
                full |= room[arc as usize] == 0;
                loads[problem.member(arc) as usize] += rounds;
            }
            gave(&active[..round as usize], rounds);
            left -= round * rounds;
            level += rounds;
            if full {
                active.retain(|&arc| room[arc as usize] > 0);
            }
        }
    }
}
