//! The problem of the solver: rows of interchangeable partitions, arcs to their subscribers, and the number of partitions that
//! each member holds.

use std::cell::OnceCell;
use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::planning::group::{Csr, Group, NONE};
use crate::planning::subscribers::Subscribers;

/// A run of partitions of one topic that lie in one row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub row: u32,
    /// Flat id of the topic's partition 0.
    pub first: u32,
    pub start: u32,
    pub end: u32,
}

/// The rows and their partitions, without the arcs to their subscribers.
pub(super) struct Rows {
    /// By row, its set of subscribers and its rack set, in order of their first partition.
    pub keys: Vec<(u32, u32)>,
    /// See [`RowProblem::segments`].
    pub segments: Vec<Segment>,
}

impl Rows {
    /// A row for each set of subscribers.
    pub(super) fn of_subscribers(group: &Group, subscribers: &Subscribers) -> Self {
        // Subscribers are numbered in order of their first topic.
        let keys = (0..subscribers.len() as u32).map(|set| (set, 0)).collect();
        let mut segments = Vec::with_capacity(group.topics().len());
        for (topic, &row) in (0u32..).zip(&subscribers.set_of).filter(|(_, set)| **set != NONE) {
            let std::ops::Range { start, end } = group.topics().range(topic);
            segments.push(Segment { row, first: start, start, end });
        }
        Self { keys, segments }.in_order(subscribers)
    }

    /// A row for each set of subscribers and each number that `near_of` gives this set and the rack set of the replicas.
    pub(super) fn of_racks(group: &Group, subscribers: &Subscribers, mut near_of: impl FnMut(u32, u32) -> u32) -> Self {
        let mut numbers = RowNumbers { known: HashTable::new(), last: Vec::new(), keys: Vec::new() };
        let mut segments = Vec::new();
        for (topic, &set) in (0u32..).zip(&subscribers.set_of).filter(|(_, set)| **set != NONE) {
            let std::ops::Range { start: first, end } = group.topics().range(topic);
            let sets = &group.topics().racks().of_partition[first as usize..end as usize];
            let mut start = first;
            for run in sets.chunk_by(|a, b| a == b) {
                let end = start + run.len() as u32;
                segments.push(Segment { row: numbers.row(set, near_of(set, run[0])), first, start, end });
                start = end;
            }
        }
        Self { keys: numbers.keys, segments }.in_order(subscribers)
    }

    /// Puts the segments, which are in order of topic and number, into the order in which partitions are given away. The segments
    /// of one topic stay together: all of them have the topic's set of subscribers.
    fn in_order(mut self, subscribers: &Subscribers) -> Self {
        let size = |segment: &Segment| subscribers.sizes[self.keys[segment.row as usize].0 as usize];
        let topics: Vec<&[Segment]> = self.segments.chunk_by(|a, b| a.first == b.first).collect();
        let sizes: Vec<u32> = topics.iter().map(|segments| size(&segments[0])).collect();
        if !sizes.is_sorted() {
            let largest = sizes.iter().max().map_or(0, |&size| size as usize);
            let order = if largest < 4 * sizes.len() {
                Csr::group_by(&sizes, largest + 1).items().to_vec()
            } else {
                let mut order: Vec<u32> = (0..sizes.len() as u32).collect();
                order.sort_by_key(|&at| sizes[at as usize]);
                order
            };
            let mut segments = Vec::with_capacity(self.segments.len());
            for &at in &order {
                segments.extend_from_slice(topics[at as usize]);
            }
            self.segments = segments;
        }
        self
    }

    /// Row to its subscribers, ascending: an arc for each pair of them.
    fn subscribers(&self, subscribers: &Subscribers) -> Csr {
        let mut arcs = Csr::with_capacity(self.keys.len(), self.arcs(subscribers) as usize);
        let mut of_set = Vec::new();
        let mut last = NONE;
        for &(set, _) in &self.keys {
            if last != set {
                subscribers.put_members(set, &mut of_set);
                last = set;
            }
            arcs.push_row(&of_set);
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
    pub(super) fn arcs(&self, subscribers: &Subscribers) -> u64 {
        self.keys.iter().map(|&(set, _)| u64::from(subscribers.sizes[set as usize])).sum()
    }
}

/// Numbers the rows of sets of subscribers and racks.
struct RowNumbers {
    known: HashTable<u32>,
    /// By rack set, the last set of subscribers with it, and the row of both. The partitions of one topic alternate between few
    /// rows, and a hash for each of them would take a twelfth of the time of a plan.
    last: Vec<(u32, u32)>,
    keys: Vec<(u32, u32)>,
}

impl RowNumbers {
    #[inline]
    fn row(&mut self, set: u32, rack_set: u32) -> u32 {
        match self.last.get(rack_set as usize) {
            Some(&(last, row)) if last == set => row,
            _ => self.look_up(set, rack_set),
        }
    }

    #[cold]
    fn look_up(&mut self, set: u32, rack_set: u32) -> u32 {
        let Self { known, last, keys } = self;
        let key = (set, rack_set);
        let hash = |key: (u32, u32)| FxBuildHasher.hash_one(key);
        let found = known.find(hash(key), |&row| keys[row as usize] == key).copied();
        let row = found.unwrap_or_else(|| {
            let row = keys.len() as u32;
            keys.push(key);
            known.insert_unique(hash(key), row, |&row| hash(keys[row as usize]));
            row
        });
        if last.len() <= rack_set as usize {
            last.resize(rack_set as usize + 1, (NONE, NONE));
        }
        last[rack_set as usize] = (set, row);
        row
    }
}

/// Partitions with the same possible owners form a row; a row and one of its subscribers form an arc.
///
/// Topics with equal sets of subscribers are one row: a partition of one topic serves as well as a partition of another, so only
/// the number of partitions that a member holds of all these topics matters. Where racks matter, rows are split by the racks of
/// the replicas.
pub(super) struct RowProblem {
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
    /// See [`RowProblem::arcs_of`].
    by_member: OnceCell<Csr>,
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
    /// The member *nobody*, which is no real member: it has the partitions for which the others have no room.
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

impl RowProblem {
    /// The problem with an arc for each row and each of its subscribers. `owner` is the holder of each partition. With `pinned`,
    /// holdings are fixed load and only the other partitions are to be placed. With `racks`, the rows are those of racks.
    pub(super) fn new(
        group: &Group,
        subscribers: &Subscribers,
        rows: Rows,
        owner: &[u32],
        pinned: bool,
        racks: bool,
    ) -> Self {
        let arcs = rows.subscribers(subscribers);
        let mismatch = if racks { rows.mismatch(group, &arcs) } else { Vec::new() };
        let mut problem = Self::with_arcs(group.members(), rows.segments, arcs, mismatch);
        problem.count(owner, pinned);
        problem
    }

    /// The problem with these arcs, before [`RowProblem::count`].
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
            by_member: OnceCell::new(),
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

    /// Member to its arcs, by ascending row. Only a search needs them, so the first one makes them.
    pub(super) fn arcs_of(&self) -> &Csr {
        self.by_member.get_or_init(|| Csr::group_by(self.arcs.items(), self.members))
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

    /// How many partitions a member may get up to a threshold. `emptied` is a member that gets none. Without `LIMITED`, no
    /// member has a limit, and no member is emptied.
    #[inline]
    pub(super) fn room<const LIMITED: bool>(
        &self,
        loads: &[u32],
        emptied: Option<u32>,
        member: u32,
        threshold: u32,
    ) -> u32 {
        let load = loads[member as usize];
        if !LIMITED {
            return threshold.saturating_sub(load);
        }
        if emptied == Some(member) { 0 } else { threshold.min(self.most(member)).saturating_sub(load) }
    }

    pub(super) fn mismatched(&self, arc: u32) -> bool {
        self.mismatch.get(arc as usize).copied().unwrap_or(false)
    }

    /// Each member's load if it takes `taken[arc]` partitions by each arc.
    pub(super) fn loads(&self, taken: &[u32]) -> Vec<u32> {
        let mut loads = self.fixed.clone();
        for (&member, &taken) in self.arcs.items().iter().zip(taken) {
            loads[member as usize] += taken;
        }
        loads
    }
}
