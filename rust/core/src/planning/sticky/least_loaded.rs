//! Gives partitions to the least loaded members; of several, to the smallest id.

use std::cmp::Reverse;
use std::collections::binary_heap::{BinaryHeap, PeekMut};

use super::rows::RowProblem;
use crate::planning::group::NONE;

/// If a run has fewer partitions than 1/`SHORT_RUN` of the candidates, its partitions are given one by one. A longer run is given
/// level by level.
const SHORT_RUN: usize = 8;

/// If fewer than 1/`FEW` of the candidates are on the lowest level, the heap gives as many partitions as there are candidates, and then
/// the candidates are scanned again. A scan only finds the candidates on the lowest level, and so few do not repay its time.
const FEW: usize = 16;

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
    pub problem: &'a RowProblem<'a>,
    pub loads: Vec<u32>,
    /// By arc, how many more partitions may go over it.
    pub room: Vec<u32>,
    /// The candidates of the rows whose partitions are given one by one.
    waiting: Vec<Waiting>,
    /// By row, its place in `waiting`; [`NONE`] until the first partition is given one by one.
    waiting_of: Vec<u32>,
    candidates: Vec<Candidate>,
    active: Vec<u32>,
    merged: Vec<u32>,
}

/// The subscribers of one row that wait for a partition.
///
/// Loads only grow, and room only shrinks. Therefore no candidate falls below `level` once all of them have reached it, and the
/// first entry of `queue` that is still on that level is the least loaded candidate with the smallest arc.
struct Waiting {
    /// All candidates, each with its load at the last update of the entry. No entry is above the present load, so a top entry
    /// with the present load is the least loaded candidate. The heap gives the first few partitions, and those where few
    /// candidates are on one level.
    heap: BinaryHeap<Reverse<Candidate>>,
    /// The number of partitions that the heap gives before the next scan of the arcs.
    by_heap: u32,
    /// The arcs of all candidates, ascending. Empty before the first scan.
    arcs: Vec<u32>,
    level: u32,
    /// The arcs whose members were on `level`, ascending, and the place of the next one.
    queue: Vec<u32>,
    next: usize,
}

impl<'a> LeastLoaded<'a> {
    pub(super) fn new(problem: &'a RowProblem<'a>, loads: Vec<u32>, room: Vec<u32>) -> Self {
        let waiting_of = vec![NONE; problem.rows()];
        let (waiting, candidates) = (Vec::new(), Vec::new());
        Self { problem, loads, room, waiting, waiting_of, candidates, active: Vec::new(), merged: Vec::new() }
    }

    /// Gives `count` partitions of the row one by one. Each goes to the least loaded subscriber with room. `gave` is called with
    /// arcs and a number of rounds: in each round, each of these arcs got the next partition in turn. There must be room for
    /// all.
    pub(super) fn give(&mut self, row: u32, count: u32, gave: impl FnMut(&[u32], u32)) {
        let candidates = self.problem.arcs_of_row(row).len();
        if count == 0 {
        } else if (count as usize) < candidates / SHORT_RUN {
            self.give_one_by_one(row, count, gave);
        } else {
            self.give_by_level(row, count, gave);
        }
    }

    fn give_one_by_one(&mut self, row: u32, count: u32, mut gave: impl FnMut(&[u32], u32)) {
        let Self { problem, loads, room, waiting, waiting_of, .. } = self;
        let place = &mut waiting_of[row as usize];
        if *place == NONE {
            *place = waiting.len() as u32;
            waiting.push(Waiting::new(problem, loads, room, row));
        }
        let waiting = &mut waiting[*place as usize];
        for _ in 0..count {
            let Some(arc) = waiting.least_loaded(problem, loads, room) else { return };
            room[arc as usize] -= 1;
            loads[problem.member(arc) as usize] += 1;
            gave(&[arc], 1);
        }
    }

    /// The least loaded members come round by round: in the round of load `l`, each member with this load gets one partition, by
    /// ascending id. Several rounds are one step as long as no other member joins and no member is full.
    fn give_by_level(&mut self, row: u32, count: u32, mut gave: impl FnMut(&[u32], u32)) {
        let Self { problem, loads, room, candidates, active, merged, .. } = self;
        candidates.clear();
        put_candidates(problem, loads, room, row, |candidate| candidate, candidates);
        if candidates.len() > count as usize {
            // Only the `count` least loaded members can get a partition.
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

/// Puts the arcs of a row with room into an empty list, each with the load of its member.
#[inline]
fn put_candidates<T: Copy>(
    problem: &RowProblem,
    loads: &[u32],
    room: &[u32],
    row: u32,
    entry: impl Fn(Candidate) -> T,
    into: &mut Vec<T>,
) {
    let arcs = problem.arcs_of_row(row);
    let room = &room[arcs.start as usize..arcs.end as usize];
    // Each arc is written, but only those with room advance the count: no branch depends on the room.
    into.resize(room.len(), entry(Candidate::new(0, 0)));
    let mut count = 0;
    for ((arc, &member), &room) in arcs.zip(problem.arcs.row(row)).zip(room) {
        into[count] = entry(Candidate::new(loads[member as usize], arc));
        count += usize::from(room > 0);
    }
    into.truncate(count);
}

impl Waiting {
    fn new(problem: &RowProblem, loads: &[u32], room: &[u32], row: u32) -> Self {
        let mut candidates = Vec::new();
        put_candidates(problem, loads, room, row, Reverse, &mut candidates);
        let by_heap = (candidates.len() / SHORT_RUN) as u32;
        let heap = BinaryHeap::from(candidates);
        Self { heap, by_heap, arcs: Vec::new(), level: 0, queue: Vec::new(), next: 0 }
    }

    /// The arc with room to the least loaded member; of several, the smallest arc.
    fn least_loaded(&mut self, problem: &RowProblem, loads: &[u32], room: &[u32]) -> Option<u32> {
        loop {
            while let Some(&arc) = self.queue.get(self.next) {
                if loads[problem.member(arc) as usize] == self.level && room[arc as usize] > 0 {
                    return Some(arc);
                }
                self.next += 1;
            }
            if self.by_heap > 0 {
                self.by_heap -= 1;
                return self.top_of_heap(problem, loads, room);
            }
            self.look_through(problem, loads, room)?;
        }
    }

    /// Scans the arcs for the lowest level and its members. If these are few, the heap gives the next partitions. O(arcs). `None`
    /// if no arc has room.
    fn look_through(&mut self, problem: &RowProblem, loads: &[u32], room: &[u32]) -> Option<()> {
        if self.arcs.is_empty() {
            self.arcs.extend(self.heap.iter().map(|Reverse(candidate)| candidate.arc()));
            self.arcs.sort_unstable();
        }
        let load = |arc: u32| loads[problem.member(arc) as usize];
        self.queue.clear();
        self.next = 0;
        self.level = u32::MAX;
        let mut full = 0;
        for &arc in &self.arcs {
            let load = load(arc);
            if room[arc as usize] == 0 {
                full += 1;
            } else if load <= self.level {
                if load < self.level {
                    self.level = load;
                    self.queue.clear();
                }
                self.queue.push(arc);
            }
        }
        if full > self.arcs.len() / 2 {
            self.arcs.retain(|&arc| room[arc as usize] > 0);
        }
        if self.queue.is_empty() {
            return None;
        }
        if self.queue.len() < self.arcs.len() / FEW {
            self.queue.clear();
            self.by_heap = self.arcs.len() as u32;
        }
        Some(())
    }

    fn top_of_heap(&mut self, problem: &RowProblem, loads: &[u32], room: &[u32]) -> Option<u32> {
        loop {
            let mut top = self.heap.peek_mut()?;
            let Reverse(entry) = *top;
            let arc = entry.arc();
            let load = loads[problem.member(arc) as usize];
            if room[arc as usize] == 0 {
                PeekMut::pop(top);
            } else if entry.load() == load {
                return Some(arc);
            } else {
                top.0 = Candidate::new(load, arc);
            }
        }
    }
}
