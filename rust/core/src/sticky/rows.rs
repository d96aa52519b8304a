//! The problem behind a group: rows of like partitions, members as columns, and how much everybody holds.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::group::{Csr, Group, NONE};

/// A run of partitions of one topic that lie in one row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub row: u32,
    pub topic: u32,
    /// Flat id of the topic's partition 0.
    pub first: u32,
    pub start: u32,
    pub end: u32,
}

/// Partitions with the same possible owners form a row; a row and one of its subscribers form an arc.
///
/// Topics with equal subscriber sets are one row: summing a member's holdings over them loses nothing, since a partition of
/// one serves as well as a partition of the other. Where racks matter, rows are split by the racks of the replicas.
pub(super) struct Problem {
    pub members: usize,
    /// Partitions of each row that are to be placed.
    pub supply: Vec<u32>,
    /// Arcs of row `r`: `row_arcs.start(r)..row_arcs.start(r + 1)`, by ascending member.
    pub arcs: Csr,
    pub arc_row: Vec<u32>,
    /// By arc, what the member holds of the row.
    pub held: Vec<u32>,
    /// By arc, whether the member reads the row from another rack. Empty where racks do not matter.
    pub mismatch: Vec<bool>,
    /// Member to its arcs, by ascending row.
    pub arcs_of: Csr,
    /// By member, the load that is not for the solver to move.
    pub fixed: Vec<u32>,
    /// Runs of partitions in the order in which those without an owner are given away: topics with fewer subscribers
    /// first, then by name, then by number.
    pub segments: Vec<Segment>,
    /// Row to its segments.
    pub segments_of: Csr,
    /// By segment, the number of its partitions without an owner.
    pub free: Vec<u32>,
}

/// Whether racks can make a difference: some member is on a rack that has replicas, and not every partition has replicas on
/// all racks. Partitions that nobody subscribes to have no say.
pub(super) fn racks_matter(group: &Group) -> bool {
    let racks = group.topics().racks();
    if racks.of_partition.is_empty() {
        return false;
    }
    let members_of_pattern = Csr::group_by(group.pattern_of(), group.patterns().len());
    let mut subscribed = vec![false; group.topics().len()];
    for (topics, _) in group.patterns().rows().zip(members_of_pattern.rows()).filter(|(_, members)| !members.is_empty())
    {
        for &topic in topics {
            subscribed[topic as usize] = true;
        }
    }
    let mut used = vec![false; racks.sets.len()];
    for topic in (0..group.topics().len() as u32).filter(|&topic| subscribed[topic as usize]) {
        for partition in group.topics().range(topic) {
            used[racks.of_partition[partition as usize] as usize] = true;
        }
    }
    let sets = || racks.sets.rows().zip(&used).filter(|(_, used)| **used).map(|(set, _)| set);
    let mut replicated = vec![false; racks.names.names().len()];
    for &rack in sets().flatten() {
        replicated[rack as usize] = true;
    }
    let all = replicated.iter().filter(|&&r| r).count();
    group.racks().iter().any(|&rack| rack != NONE && replicated[rack as usize]) && sets().any(|set| set.len() != all)
}

impl Problem {
    /// `owner` is who holds what; with `pinned`, holdings are fixed load and only the rest is to be placed.
    pub(super) fn new(group: &Group, owner: &[u32], pinned: bool, racks: bool) -> Self {
        let topics = group.topics();
        let members_of_pattern = Csr::group_by(group.pattern_of(), group.patterns().len());
        // A pattern that no member has subscribes nobody.
        let mut patterns = Csr::new();
        for (row, members) in group.patterns().rows().zip(members_of_pattern.rows()) {
            patterns.push_row(if members.is_empty() { &[] } else { row });
        }
        let patterns_of_topic = patterns.transpose(topics.len());

        // Rows: distinct (patterns, rack set) pairs, in order of their first partition.
        let mut known: HashTable<u32> = HashTable::new();
        let mut keys: Vec<(u32, u32)> = Vec::new();
        let mut segments: Vec<Segment> = Vec::new();
        for topic in 0..topics.len() as u32 {
            let range = topics.range(topic);
            if patterns_of_topic.row(topic).is_empty() || range.is_empty() {
                continue;
            }
            let mut row_of = |rack_set: u32| {
                let same = |a: (u32, u32), b: (u32, u32)| {
                    a.1 == b.1 && (a.0 == b.0 || patterns_of_topic.row(a.0) == patterns_of_topic.row(b.0))
                };
                let hash = |key: (u32, u32)| FxBuildHasher.hash_one((patterns_of_topic.row(key.0), key.1));
                let key = (topic, rack_set);
                if let Some(&row) = known.find(hash(key), |&row| same(keys[row as usize], key)) {
                    return row;
                }
                let row = keys.len() as u32;
                keys.push(key);
                known.insert_unique(hash(key), row, |&row| hash(keys[row as usize]));
                row
            };
            if racks {
                let sets = &topics.racks().of_partition[range.start as usize..range.end as usize];
                let mut start = range.start;
                for run in sets.chunk_by(|a, b| a == b) {
                    let end = start + run.len() as u32;
                    segments.push(Segment { row: row_of(run[0]), topic, first: range.start, start, end });
                    start = end;
                }
            } else {
                segments.push(Segment {
                    row: row_of(0),
                    topic,
                    first: range.start,
                    start: range.start,
                    end: range.end,
                });
            }
        }

        let mut arcs = Csr::new();
        let mut mismatch = Vec::new();
        let mut subscribers = Vec::new();
        for &(topic, rack_set) in &keys {
            subscribers.clear();
            for &pattern in patterns_of_topic.row(topic) {
                subscribers.extend_from_slice(members_of_pattern.row(pattern));
            }
            if !subscribers.is_sorted() {
                subscribers.sort_unstable();
            }
            arcs.push_row(&subscribers);
            if racks {
                let on = |&member: &u32| topics.racks().mismatch(group.racks()[member as usize], rack_set);
                mismatch.extend(subscribers.iter().map(on));
            }
        }
        let rows = arcs.len();
        let mut arc_row = Vec::with_capacity(arcs.items().len());
        for (row, members) in arcs.rows().enumerate() {
            arc_row.resize(arc_row.len() + members.len(), row as u32);
        }
        let arcs_of = Csr::group_by(arcs.items(), group.members());

        segments.sort_by_key(|segment| (arcs.row(segment.row).len(), segment.topic));
        let rows_of_segments: Vec<u32> = segments.iter().map(|segment| segment.row).collect();
        let mut problem = Self {
            segments_of: Csr::group_by(&rows_of_segments, rows),
            members: group.members(),
            supply: vec![0; rows],
            held: vec![0; arcs.items().len()],
            arcs,
            arc_row,
            mismatch,
            arcs_of,
            fixed: vec![0; group.members()],
            free: vec![0; segments.len()],
            segments,
        };
        problem.count(owner, pinned);
        problem
    }

    /// Fills in who holds how much of what.
    fn count(&mut self, owner: &[u32], pinned: bool) {
        let mut arc_of = vec![0u32; self.members];
        for row in 0..self.arcs.len() as u32 {
            for (arc, &member) in (self.arcs.start(row)..).zip(self.arcs.row(row)) {
                arc_of[member as usize] = arc;
            }
            for &at in self.segments_of.row(row) {
                let Segment { start, end, .. } = self.segments[at as usize];
                let mut free = 0;
                for &owner in &owner[start as usize..end as usize] {
                    if owner == NONE {
                        free += 1;
                    } else if pinned {
                        self.fixed[owner as usize] += 1;
                    } else {
                        self.held[arc_of[owner as usize] as usize] += 1;
                    }
                }
                self.free[at as usize] = free;
                self.supply[row as usize] += if pinned { free } else { end - start };
            }
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.arcs.len()
    }

    pub(super) fn member(&self, arc: u32) -> u32 {
        self.arcs.items()[arc as usize]
    }

    pub(super) fn arcs_of_row(&self, row: u32) -> std::ops::Range<u32> {
        self.arcs.start(row)..self.arcs.start(row + 1)
    }

    pub(super) fn mismatched(&self, arc: u32) -> bool {
        self.mismatch.get(arc as usize).copied().unwrap_or(false)
    }

    /// Each member's load when it takes `share` of each arc.
    pub(super) fn loads(&self, share: &[u32]) -> Vec<u32> {
        let mut loads = self.fixed.clone();
        for (&member, &share) in self.arcs.items().iter().zip(share) {
            loads[member as usize] += share;
        }
        loads
    }

    /// Runs of segments of one row that follow each other in the order of giving away: row, and the range of segments.
    pub(super) fn runs(&self) -> impl Iterator<Item = (u32, std::ops::Range<usize>)> {
        let mut start = 0;
        self.segments.chunk_by(|a, b| a.row == b.row).map(move |run| {
            let range = start..start + run.len();
            start = range.end;
            (run[0].row, range)
        })
    }
}
