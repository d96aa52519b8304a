//! The problem that the solver sees: rows of partitions that are alike, arcs to their subscribers, and the number of partitions
//! that each member holds.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::planning::group::{Csr, Group, NONE};

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

/// The lineups: sets of subscribers, each once for all topics that have it.
pub(super) struct Lineups {
    pub members_of_subscription: Csr,
    /// By topic, its lineup; [`NONE`] for a topic without partitions or subscribers.
    pub of_topic: Vec<u32>,
    /// Lineup to its subscriptions, ascending.
    pub subscriptions: Csr,
    /// By lineup, the number of its members.
    pub sizes: Vec<u32>,
}

impl Lineups {
    /// O(subscription entries of the distinct subscriptions).
    pub(super) fn new(group: &Group) -> Self {
        let topics = group.topics();
        let members_of_subscription = Csr::group_by(group.subscription_of(), group.subscriptions().len());
        // A subscription that no member has adds no subscribers.
        let mut used = Csr::new();
        for (row, members) in group.subscriptions().rows().zip(members_of_subscription.rows()) {
            used.push_row(if members.is_empty() { &[] } else { row });
        }
        let mut known: HashTable<u32> = HashTable::new();
        let mut subscriptions = Csr::new();
        let hash = |row: &[u32]| FxBuildHasher.hash_one(row);
        let mut of_topic = vec![NONE; topics.len()];
        for (topic, row) in (0u32..).zip(used.transpose(topics.len()).rows()) {
            if row.is_empty() || topics.range(topic).is_empty() {
                continue;
            }
            let found = known.find(hash(row), |&lineup| subscriptions.row(lineup) == row).copied();
            of_topic[topic as usize] = found.unwrap_or_else(|| {
                let lineup = subscriptions.len() as u32;
                subscriptions.push_row(row);
                known.insert_unique(hash(row), lineup, |&lineup| hash(subscriptions.row(lineup)));
                lineup
            });
        }
        let size =
            |row: &[u32]| row.iter().map(|&subscription| members_of_subscription.row(subscription).len() as u32).sum();
        let sizes = subscriptions.rows().map(size).collect();
        Self { members_of_subscription, of_topic, subscriptions, sizes }
    }

    /// Puts a lineup's members into `into`, ascending.
    pub(super) fn members(&self, lineup: u32, into: &mut Vec<u32>) {
        into.clear();
        for &subscription in self.subscriptions.row(lineup) {
            into.extend_from_slice(self.members_of_subscription.row(subscription));
        }
        if !into.is_sorted() {
            into.sort_unstable();
        }
    }
}

/// The rows and their partitions, without the arcs to their subscribers.
pub(super) struct Rows {
    /// By row, its lineup and its rack set, in order of their first partition.
    pub keys: Vec<(u32, u32)>,
    /// See [`Problem::segments`].
    pub segments: Vec<Segment>,
}

impl Rows {
    /// A row for each lineup.
    pub(super) fn of_lineups(group: &Group, lineups: &Lineups) -> Self {
        let mut rows = Collector::new(lineups);
        for topic in (0..group.topics().len() as u32).filter(|&topic| lineups.of_topic[topic as usize] != NONE) {
            let range = group.topics().range(topic);
            rows.push(topic, range.start, range, 0);
        }
        rows.finish()
    }

    /// A row for each lineup and each set that `set_of` makes of the lineup and the racks of the replicas.
    pub(super) fn of_racks(group: &Group, lineups: &Lineups, mut set_of: impl FnMut(u32, u32) -> u32) -> Self {
        let mut rows = Collector::new(lineups);
        for topic in (0..group.topics().len() as u32).filter(|&topic| lineups.of_topic[topic as usize] != NONE) {
            let range = group.topics().range(topic);
            let sets = &group.topics().racks().of_partition[range.start as usize..range.end as usize];
            let mut start = range.start;
            for run in sets.chunk_by(|a, b| a == b) {
                let end = start + run.len() as u32;
                rows.push(topic, range.start, start..end, set_of(lineups.of_topic[topic as usize], run[0]));
                start = end;
            }
        }
        rows.finish()
    }

    /// Row to its subscribers, ascending: an arc for each pair of them.
    fn subscribers(&self, lineups: &Lineups) -> Csr {
        let mut arcs = Csr::new();
        let mut subscribers = Vec::new();
        let mut last = NONE;
        for &(lineup, _) in &self.keys {
            if last != lineup {
                lineups.members(lineup, &mut subscribers);
                last = lineup;
            }
            arcs.push_row(&subscribers);
        }
        arcs
    }

    /// By arc, whether the subscriber reads the row from another rack. The rows are those of racks.
    fn mismatch(&self, group: &Group, arcs: &Csr) -> Vec<bool> {
        let racks = group.topics().racks();
        let mut mismatch = Vec::with_capacity(arcs.items().len());
        for (&(_, rack_set), subscribers) in self.keys.iter().zip(arcs.rows()) {
            let far = |&member: &u32| racks.mismatch(group.racks()[member as usize], rack_set);
            mismatch.extend(subscribers.iter().map(far));
        }
        mismatch
    }

    /// The number of pairs of a row and a subscriber.
    pub(super) fn arcs(&self, lineups: &Lineups) -> u64 {
        self.keys.iter().map(|&(lineup, _)| u64::from(lineups.sizes[lineup as usize])).sum()
    }
}

struct Collector<'a> {
    lineups: &'a Lineups,
    known: HashTable<u32>,
    rows: Rows,
}

impl<'a> Collector<'a> {
    fn new(lineups: &'a Lineups) -> Self {
        Self { lineups, known: HashTable::new(), rows: Rows { keys: Vec::new(), segments: Vec::new() } }
    }

    fn push(&mut self, topic: u32, first: u32, range: std::ops::Range<u32>, set: u32) {
        let key = (self.lineups.of_topic[topic as usize], set);
        let Rows { keys, segments } = &mut self.rows;
        let hash = |key: (u32, u32)| FxBuildHasher.hash_one(key);
        let found = self.known.find(hash(key), |&row| keys[row as usize] == key).copied();
        let row = found.unwrap_or_else(|| {
            let row = keys.len() as u32;
            keys.push(key);
            self.known.insert_unique(hash(key), row, |&row| hash(keys[row as usize]));
            row
        });
        segments.push(Segment { row, topic, first, start: range.start, end: range.end });
    }

    fn finish(self) -> Rows {
        let Self { lineups, mut rows, .. } = self;
        let Rows { keys, segments } = &mut rows;
        let size = |row: u32| lineups.sizes[keys[row as usize].0 as usize];
        segments.sort_by_key(|segment| (size(segment.row), segment.topic));
        rows
    }
}

/// Partitions with the same possible owners form a row; a row and one of its subscribers form an arc.
///
/// Topics with equal sets of subscribers are one row: a partition of one serves as well as a partition of the other, so only
/// the number matters that a member holds of all of them. Where racks matter, rows are split by the racks of the replicas.
pub(super) struct Problem {
    pub members: usize,
    /// Partitions of each row that are to be placed.
    pub supply: Vec<u32>,
    /// Arcs of row `r`: `row_arcs.start(r)..row_arcs.start(r + 1)`, by ascending member.
    pub arcs: Csr,
    pub arc_row: Vec<u32>,
    /// By arc, the number of partitions that the member holds of the row.
    pub held: Vec<u32>,
    /// By arc, whether the member reads the row from another rack. Empty where racks do not matter.
    pub mismatch: Vec<bool>,
    /// Member to its arcs, by ascending row.
    pub arcs_of: Csr,
    /// By member, the load that no move may change.
    pub fixed: Vec<u32>,
    /// Runs of partitions, in the order in which those without an owner are given away: topics with fewer subscribers first,
    /// then by name, then by number.
    pub segments: Vec<Segment>,
    /// Row to its segments.
    pub segments_of: Csr,
    /// By segment, the number of its partitions without an owner.
    pub free: Vec<u32>,
    /// By member, the most partitions that it may have. Empty where no member has a limit.
    pub capacity: Vec<u32>,
    /// The member that is nobody: it has the partitions for which others have no room.
    pub nobody: Option<u32>,
}

/// Whether racks can make a difference: some member is on a rack that has replicas, and not every partition has replicas on all
/// racks. Only partitions with subscribers count.
pub(super) fn racks_matter(group: &Group) -> bool {
    let racks = group.topics().racks();
    if racks.of_partition.is_empty() {
        return false;
    }
    let members_of_subscription = Csr::group_by(group.subscription_of(), group.subscriptions().len());
    let mut subscribed = vec![false; group.topics().len()];
    for (topics, _) in
        group.subscriptions().rows().zip(members_of_subscription.rows()).filter(|(_, members)| !members.is_empty())
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
    /// The problem with an arc for each row and each of its subscribers. `owner` is the holder of each partition. With `pinned`,
    /// holdings are fixed load and only the other partitions are to be placed. `racks` says that the rows are those of racks.
    pub(super) fn new(group: &Group, lineups: &Lineups, rows: Rows, owner: &[u32], pinned: bool, racks: bool) -> Self {
        let arcs = rows.subscribers(lineups);
        let mismatch = if racks { rows.mismatch(group, &arcs) } else { Vec::new() };
        let mut problem = Self::with_arcs(group.members(), rows.segments, arcs, mismatch);
        problem.count(owner, pinned);
        problem
    }

    /// The problem with these arcs, before [`Problem::count`].
    pub(super) fn with_arcs(members: usize, segments: Vec<Segment>, arcs: Csr, mismatch: Vec<bool>) -> Self {
        let rows = arcs.len();
        let mut arc_row = Vec::with_capacity(arcs.items().len());
        for (row, members) in arcs.rows().enumerate() {
            arc_row.resize(arc_row.len() + members.len(), row as u32);
        }
        let rows_of_segments: Vec<u32> = segments.iter().map(|segment| segment.row).collect();
        Self {
            segments_of: Csr::group_by(&rows_of_segments, rows),
            members,
            supply: vec![0; rows],
            held: vec![0; arcs.items().len()],
            arcs_of: Csr::group_by(arcs.items(), members),
            arcs,
            arc_row,
            mismatch,
            fixed: vec![0; members],
            free: vec![0; segments.len()],
            segments,
            capacity: Vec::new(),
            nobody: None,
        }
    }

    /// Counts the partitions that members hold, by arc. Unless `pinned` is set, the row of a held partition must have an arc to
    /// its holder; otherwise the partition is counted on another arc.
    pub(super) fn count(&mut self, owner: &[u32], pinned: bool) {
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

    /// The arc of a row and a member. O(log arcs).
    pub(super) fn arc(&self, row: u32, member: u32) -> Option<u32> {
        self.arcs.row(row).binary_search(&member).ok().map(|at| self.arcs.start(row) + at as u32)
    }

    /// The most partitions that a member may have.
    pub(super) fn most(&self, member: u32) -> u32 {
        self.capacity.get(member as usize).copied().unwrap_or(u32::MAX)
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
