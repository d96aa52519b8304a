//! The problem of the solver: rows of interchangeable partitions, arcs to their subscribers, and the number of partitions that
//! each member holds.

use std::cell::OnceCell;
use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::planning::group::{Csr, Group, NONE};
use crate::planning::subscribers::Subscribers;

/// The partitions of one topic, and their row.
#[derive(Debug, Clone, Copy)]
pub(super) struct TopicRow {
    /// The row of all these partitions. [`NONE`] where their racks decide their rows: see [`Rows::of_partition`].
    pub row: u32,
    pub start: u32,
    pub end: u32,
}

impl TopicRow {
    pub(super) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// The rows and their partitions, without the arcs to their subscribers.
#[derive(Clone)]
pub(super) struct Rows {
    /// By row, its set of subscribers and its rack set, in order of their first partition.
    pub keys: Vec<(u32, u32)>,
    /// The topics with subscribers, in the order in which their partitions without an owner are given away: topics with fewer
    /// subscribers first, then by name.
    pub topics: Vec<TopicRow>,
    /// By flat partition, its row. Empty where racks do not matter: the partitions of a topic then are in one row.
    pub of_partition: Vec<u32>,
}

impl Rows {
    /// A row for each set of subscribers.
    pub(super) fn of_subscribers(group: &Group, subscribers: &Subscribers) -> Self {
        // Subscribers are numbered in order of their first topic.
        let keys: Vec<(u32, u32)> = (0..subscribers.len() as u32).map(|set| (set, 0)).collect();
        let topics = Self::in_order(group, subscribers, |set| set);
        Self { keys, topics, of_partition: Vec::new() }
    }

    /// A row for each set of subscribers and each number that `near_of` gives this set and the rack set of the replicas.
    pub(super) fn of_racks(group: &Group, subscribers: &Subscribers, mut near_of: impl FnMut(u32, u32) -> u32) -> Self {
        let mut numbers = RowNumbers { known: HashTable::new(), last: Vec::new(), keys: Vec::new() };
        let rack_sets = &group.topics().racks().of_partition;
        let mut of_partition = Vec::with_capacity(rack_sets.len());
        for (topic, &set) in (0u32..).zip(&subscribers.set_of) {
            let range = group.topics().range(topic);
            let rack_sets = &rack_sets[range.start as usize..range.end as usize];
            if set == NONE {
                of_partition.resize(of_partition.len() + rack_sets.len(), NONE);
                continue;
            }
            let (mut last, mut row) = (NONE, NONE);
            of_partition.extend(rack_sets.iter().map(|&rack_set| {
                if last != rack_set {
                    (last, row) = (rack_set, numbers.row(set, near_of(set, rack_set)));
                }
                row
            }));
        }
        Self { keys: numbers.keys, topics: Self::in_order(group, subscribers, |_| NONE), of_partition }
    }

    /// The row of a topic's first partition.
    fn row(&self, topic: &TopicRow) -> u32 {
        if topic.row == NONE { self.of_partition[topic.start as usize] } else { topic.row }
    }

    /// The topics with subscribers, in the order in which partitions are given away.
    fn in_order(group: &Group, subscribers: &Subscribers, row: impl Fn(u32) -> u32) -> Vec<TopicRow> {
        let (mut topics, mut sizes) = (Vec::with_capacity(subscribers.set_of.len()), Vec::new());
        for (topic, &set) in (0u32..).zip(&subscribers.set_of).filter(|(_, set)| **set != NONE) {
            let std::ops::Range { start, end } = group.topics().range(topic);
            topics.push(TopicRow { row: row(set), start, end });
            sizes.push(subscribers.sizes[set as usize]);
        }
        if sizes.is_sorted() {
            return topics;
        }
        let largest = sizes.iter().max().map_or(0, |&size| size as usize);
        if largest < 4 * sizes.len() {
            return Csr::group_by(&sizes, largest + 1).items().iter().map(|&at| topics[at as usize]).collect();
        }
        let mut order: Vec<u32> = (0..sizes.len() as u32).collect();
        order.sort_by_key(|&at| sizes[at as usize]);
        order.iter().map(|&at| topics[at as usize]).collect()
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
        // By rack, whether the row has no replica on it. A member without a rack reads from no other rack.
        let mut far = vec![true; racks.names.names().len()];
        for (&(_, rack_set), subscribers) in self.keys.iter().zip(arcs.rows()) {
            let with_replica = racks.sets.row(rack_set);
            with_replica.iter().for_each(|&rack| far[rack as usize] = false);
            let rack_of = |&member: &u32| group.racks()[member as usize];
            mismatch
                .extend(subscribers.iter().map(|member| far.get(rack_of(member) as usize).copied().unwrap_or(false)));
            with_replica.iter().for_each(|&rack| far[rack as usize] = true);
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
pub(super) struct RowProblem<'a> {
    pub members: usize,
    /// Partitions of each row that are to be placed.
    pub supply: Vec<u32>,
    /// Arcs of row `r`: `arcs.start(r)..arcs.start(r + 1)`, by ascending member.
    pub arcs: Csr,
    /// By arc, the number of partitions that the member holds of the row.
    pub held: Vec<u32>,
    /// By arc, whether the member reads the row from another rack. Empty where racks do not matter.
    pub mismatch: Vec<bool>,
    /// See [`RowProblem::rows_of`]: the list of the group, where it is the same, or the one that the first search made.
    rows_of_group: Option<&'a Csr>,
    rows_of: OnceCell<Csr>,
    /// By member, the load that no move may change.
    pub fixed: Vec<u32>,
    /// See [`Rows::topics`].
    pub topics: Vec<TopicRow>,
    /// See [`Rows::of_partition`].
    pub row_of: Vec<u32>,
    /// The partitions without an owner, in the order in which they are given away: runs of one row, and their lengths.
    pub free: Vec<(u32, u32)>,
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

impl<'a> RowProblem<'a> {
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
        Self::counted(group, subscribers.len(), rows, arcs, owner, pinned, racks)
    }

    /// As [`RowProblem::new`]. Where the subscribers have the arcs as they are, neither the arcs nor the rows of each member are copied:
    /// where each topic has a set of subscribers of its own, and each member a subscription of its own.
    pub(super) fn taking(
        group: &'a Group,
        mut subscribers: Subscribers,
        rows: Rows,
        owner: &[u32],
        pinned: bool,
        racks: bool,
    ) -> Self {
        let Some(arcs) = (if racks { None } else { subscribers.take_members() }) else {
            return Self::new(group, &subscribers, rows, owner, pinned, racks);
        };
        let problem = Self::counted(group, subscribers.len(), rows, arcs, owner, pinned, racks);
        Self { rows_of_group: Some(group.subscriptions()), ..problem }
    }

    fn counted(group: &Group, sets: usize, rows: Rows, arcs: Csr, owner: &[u32], pinned: bool, racks: bool) -> Self {
        let mismatch = if racks { rows.mismatch(group, &arcs) } else { Vec::new() };
        let set_of = |topic: &TopicRow| rows.keys[rows.row(topic) as usize].0;
        let set_of_topics: Vec<u32> = rows.topics.iter().map(set_of).collect();
        let topics_of = Csr::group_by(&set_of_topics, sets);
        let mut problem = Self::with_arcs(group.members(), rows, arcs, mismatch);
        problem.count_supply(owner, pinned);
        if !pinned {
            problem.count_held(&topics_of, owner);
        }
        problem
    }

    /// The problem with these arcs, before anything is counted.
    pub(super) fn with_arcs(members: usize, rows: Rows, arcs: Csr, mismatch: Vec<bool>) -> Self {
        let Rows { topics, of_partition: row_of, .. } = rows;
        Self {
            members,
            supply: vec![0; arcs.len()],
            held: vec![0; arcs.items().len()],
            rows_of_group: None,
            rows_of: OnceCell::new(),
            arcs,
            mismatch,
            fixed: vec![0; members],
            topics,
            row_of,
            free: Vec::new(),
            capacity: Vec::new(),
            nobody: None,
        }
    }

    /// Counts what is to be placed: with `pinned` the partitions without an owner, otherwise all. O(partitions).
    pub(super) fn count_supply(&mut self, owner: &[u32], pinned: bool) {
        let Self { topics, row_of, free, supply, fixed, .. } = self;
        let mut add = |row: u32, count: u32| match free.last_mut() {
            Some(last) if last.0 == row => last.1 += count,
            _ => free.push((row, count)),
        };
        for topic in topics.iter() {
            let owners = &owner[topic.range()];
            if topic.row == NONE {
                let rows = row_of[topic.range()].iter().zip(owners);
                rows.filter(|(_, owner)| **owner == NONE).for_each(|(&row, _)| add(row, 1));
            } else {
                let count = owners.iter().map(|&owner| u32::from(owner == NONE)).sum();
                if count > 0 {
                    add(topic.row, count);
                }
            }
        }
        if pinned {
            free.iter().for_each(|&(row, count)| supply[row as usize] += count);
            let held = topics.iter().flat_map(|topic| &owner[topic.range()]).filter(|owner| **owner != NONE);
            held.for_each(|&owner| fixed[owner as usize] += 1);
            return;
        }
        for topic in topics.iter() {
            if topic.row == NONE {
                row_of[topic.range()].iter().for_each(|&row| supply[row as usize] += 1);
            } else {
                supply[topic.row as usize] += topic.end - topic.start;
            }
        }
    }

    /// Counts the partitions that members hold, by arc. Each row has arcs to all its subscribers, so rows with the same set of
    /// subscribers have the same members in the same order. `topics_of` has, by set, its places in `topics`. O(partitions +
    /// subscriptions).
    fn count_held(&mut self, topics_of: &Csr, owner: &[u32]) {
        let Self { arcs, topics, row_of, held, .. } = self;
        let mut place_of = vec![0; self.members];
        for topics_of_set in topics_of.rows() {
            let topics_of_set = topics_of_set.iter().map(|&at| topics[at as usize]);
            if let Some(first) = topics_of_set.clone().next() {
                let row = if first.row == NONE { row_of[first.start as usize] } else { first.row };
                for (place, &member) in (0..).zip(arcs.row(row)) {
                    place_of[member as usize] = place;
                }
            }
            for topic in topics_of_set {
                let owners = &owner[topic.range()];
                if topic.row == NONE {
                    let held_rows = row_of[topic.range()].iter().zip(owners).filter(|(_, owner)| **owner != NONE);
                    for (&row, &owner) in held_rows {
                        held[(arcs.start(row) + place_of[owner as usize]) as usize] += 1;
                    }
                } else {
                    let start = arcs.start(topic.row);
                    for &owner in owners.iter().filter(|owner| **owner != NONE) {
                        held[(start + place_of[owner as usize]) as usize] += 1;
                    }
                }
            }
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.arcs.len()
    }

    /// Member to its rows, ascending. Only a search needs them, so the first one makes them.
    pub(super) fn rows_of(&self) -> &Csr {
        self.rows_of_group.unwrap_or_else(|| self.rows_of.get_or_init(|| self.arcs.transpose(self.members)))
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
