//! The scratch plan: how many partitions of each row each member has.

use std::collections::{BTreeMap, HashMap};

use rustc_hash::FxBuildHasher;

use super::is_off_rack;
use crate::planning::budget::{Budget, Spent};
use crate::planning::group::{Csr, Group, NONE};
use crate::planning::objective::{Mode, Objective, RackOrder};
use crate::planning::ownership::Ownership;
use crate::planning::plan::Plan;
use crate::planning::score::balance_score;

/// The steps of levelling a set of rows for each of its members, which are sorted and visited several times.
const STEPS_PER_MEMBER: u64 = 16;

/// Rows of interchangeable partitions, members, and how many partitions of a row each member has.
///
/// Partitions with the same subscribers are one row; where racks matter, a row's partitions are also near the same subscribers.
/// Members with the same subscription (and rack) are one class: an additional partition of a row costs the same for all members
/// of a class. It costs the same, too, for all classes on one rack that may have the row: these are a *party* of the row's set
/// of subscribers. So a row has arcs to its few near parties and one to its whole set, and a *cell* only for a member that has or
/// owned a partition of it. There are far fewer arcs than pairs of a row and a class.
pub(super) struct ScratchPlan<'a> {
    group: &'a Group,
    pub(super) objective: Objective,
    pub(super) racks: bool,
    /// By row, the number of its partitions.
    supply: Vec<u64>,
    /// By row, its set of subscribers.
    pub(super) set_of: Vec<u32>,
    /// Row to its near parties: those that read it from their own rack; all parties where racks do not matter.
    pub(super) near_of: Csr,
    /// Set to its parties.
    pub(super) parties_of: Csr,
    /// Party to its classes.
    pub(super) classes_of: Csr,
    /// By row, a rack set of its partitions, where racks matter.
    rack_set_of: Vec<u32>,
    /// By member, its class.
    pub(super) class_of: Vec<u32>,
    /// By class, its members.
    pub(super) members_of: Csr,
    pub(super) cells: Vec<Cell>,
    pub(super) cells_of_row: Vec<Vec<u32>>,
    pub(super) cells_of_member: Vec<Vec<u32>>,
    index: HashMap<(u32, u32), u32, FxBuildHasher>,
    /// By member, the number of its partitions.
    pub(super) loads: Vec<u64>,
    /// By member, the load that no move can change: owned partitions in [`Mode::StickyYetFair`].
    pinned: Vec<u64>,
    pinned_misses: u64,
    /// How many partitions of the rows were owned.
    owned: u64,
    /// By member, the most partitions that it may have. Empty where no member has a limit.
    pub(super) most: Vec<u64>,
    /// The member *nobody*, which is no real member: its partitions are left out, and its load does not count.
    pub(super) nobody: Option<u32>,
}

/// The partitions of one row that one member has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) row: u32,
    pub(super) member: u32,
    /// Partitions that it has.
    pub(super) has: u32,
    /// Partitions that it owned before. Up to this number, its partitions count as kept, and not as moved.
    pub(super) owned: u32,
    pub(super) off_rack: bool,
}

impl<'a> ScratchPlan<'a> {
    /// The scratch plan of a valid plan. In [`Mode::StickyYetFair`] owned partitions stay with their owner, also where the plan
    /// moves them, and only the others are in rows.
    pub(super) fn of_plan(
        group: &'a Group,
        ownership: &Ownership,
        objective: Objective,
        racks: bool,
        plan: &Plan,
    ) -> Self {
        Self::new(group, ownership, objective, racks, Some(plan))
    }

    /// Each member keeps the partitions that it owned, and the rest of each row goes to the members with the fewest.
    pub(super) fn of_ownership(group: &'a Group, ownership: &Ownership, objective: Objective, racks: bool) -> Self {
        let mut scratch = Self::new(group, ownership, objective, racks, None);
        scratch.pour();
        scratch
    }

    fn new(group: &'a Group, ownership: &Ownership, objective: Objective, racks: bool, plan: Option<&Plan>) -> Self {
        let (row_of, mut scratch) = Self::empty(group, objective, racks);
        for (partition, &row) in row_of.iter().enumerate().filter(|(_, row)| **row != NONE) {
            let owner = ownership.owner[partition];
            if objective.mode == Mode::StickyYetFair && owner != NONE {
                scratch.pinned[owner as usize] += 1;
                scratch.loads[owner as usize] += 1;
                let set = group.topics().racks().of_partition.get(partition);
                let miss = set.is_some_and(|&set| racks && is_off_rack(group, owner, set));
                scratch.pinned_misses += u64::from(miss);
                continue;
            }
            scratch.supply[row as usize] += 1;
            let remembered = owner != NONE && objective.mode != Mode::Fair;
            if remembered {
                let cell = scratch.cell(row, owner);
                scratch.cells[cell as usize].owned += 1;
                scratch.owned += 1;
            }
            let start = plan.map_or(if remembered { owner } else { NONE }, |plan| plan.owner[partition]);
            if start != NONE {
                let cell = scratch.cell(row, start);
                scratch.cells[cell as usize].has += 1;
                scratch.loads[start as usize] += 1;
            }
        }
        scratch
    }

    /// The rows, classes and members, and by partition its row.
    fn empty(group: &'a Group, objective: Objective, racks: bool) -> (Vec<u32>, Self) {
        let (set_of_topic, sets) = sets_of_subscribers(group);
        let classes = Classes::new(group, racks);
        let parties = Parties::new(group, &classes, &sets);
        let (row_of, rows) = number_rows(group, racks, &set_of_topic, &parties);
        let RowNumbers { set_of, rack_set_of, near_of, .. } = rows;
        let scratch = Self {
            group,
            rack_set_of,
            objective,
            racks,
            supply: vec![0; set_of.len()],
            cells_of_row: vec![Vec::new(); set_of.len()],
            cells_of_member: vec![Vec::new(); group.members()],
            set_of,
            near_of,
            parties_of: parties.of_set,
            classes_of: parties.classes,
            members_of: Csr::group_by(&classes.of_member, classes.keys.len()),
            class_of: classes.of_member,
            cells: Vec::new(),
            index: HashMap::default(),
            loads: vec![0; group.members()],
            pinned: vec![0; group.members()],
            pinned_misses: 0,
            owned: 0,
            most: Vec::new(),
            nobody: None,
        };
        (row_of, scratch)
    }

    /// About the number of all arcs: the steps of one pass over the scratch plan.
    pub(super) fn size(&self) -> u64 {
        let arcs = [&self.near_of, &self.parties_of, &self.classes_of].map(|arcs| arcs.items().len());
        (arcs.iter().sum::<usize>() + self.cells.len() + self.rows() + self.loads.len()) as u64
    }

    /// Whether some subscribers read the row from another rack.
    pub(super) fn has_far(&self, row: u32) -> bool {
        self.near_of.row(row).len() < self.parties_of.row(self.set_of[row as usize]).len()
    }

    /// The classes that may have a row of the set.
    pub(super) fn classes_of_set(&self, set: u32) -> impl Iterator<Item = u32> {
        self.parties_of.row(set).iter().flat_map(|&party| self.classes_of.row(party)).copied()
    }

    pub(super) fn rows(&self) -> usize {
        self.supply.len()
    }

    /// The cell of a row and a member that may have it. A missing cell is created.
    pub(super) fn cell(&mut self, row: u32, member: u32) -> u32 {
        if let Some(&cell) = self.index.get(&(row, member)) {
            return cell;
        }
        let off_rack = self.racks && is_off_rack(self.group, member, self.rack_set_of[row as usize]);
        let id = self.cells.len() as u32;
        self.cells.push(Cell { row, member, has: 0, owned: 0, off_rack });
        self.cells_of_row[row as usize].push(id);
        self.cells_of_member[member as usize].push(id);
        self.index.insert((row, member), id);
        id
    }

    /// Moves partitions of a cell's row from its member to another.
    pub(super) fn shift(&mut self, from: u32, to: u32, count: u32) {
        let (giver, taker) = (self.cells[from as usize].member, self.cells[to as usize].member);
        self.cells[from as usize].has -= count;
        self.cells[to as usize].has += count;
        self.loads[giver as usize] -= u64::from(count);
        self.loads[taker as usize] += u64::from(count);
    }

    /// Gives the partitions of each row that no member has to the members with the least load.
    fn pour(&mut self) {
        let mut left = self.supply.clone();
        for cell in &self.cells {
            left[cell.row as usize] -= u64::from(cell.has);
        }
        for (set, rows) in self.rows_of_sets() {
            let rows: Vec<(u32, u64)> = rows.into_iter().map(|row| (row, left[row as usize])).collect();
            let count = rows.iter().map(|row| row.1).sum();
            let members = self.members_of_set(set);
            let loads: Vec<u64> = members.iter().map(|&member| self.loads[member as usize]).collect();
            self.hand_out(&rows, &members, &fill(&loads, count));
        }
    }

    /// Gives the partitions of these rows, each with their number, to the members in order; `gets` is how many each gets.
    fn hand_out(&mut self, rows: &[(u32, u64)], members: &[u32], gets: &[u64]) {
        let mut rows = rows.iter().copied();
        let (mut row, mut left) = (0, 0);
        for (&member, &gets) in members.iter().zip(gets) {
            let mut wanted = gets;
            while wanted > 0 {
                if left == 0 {
                    let Some(next) = rows.next() else { return };
                    (row, left) = next;
                    continue;
                }
                let count = wanted.min(left);
                (wanted, left) = (wanted - count, left - count);
                let cell = self.cell(row, member);
                self.cells[cell as usize].has += count as u32;
                self.loads[member as usize] += count;
            }
        }
    }

    /// Levels the rows of each set by themselves, all other rows unchanged: members above the common level give partitions of
    /// these rows to members below it. Returns whether anything changed.
    pub(super) fn level_sets(&mut self, budget: &Budget<'_>) -> Result<bool, Spent> {
        let mut changed = false;
        for (set, rows) in self.rows_of_sets() {
            let members = self.members_of_set(set);
            budget.spend(STEPS_PER_MEMBER * members.len() as u64)?;
            let mut has: HashMap<u32, u64, FxBuildHasher> = HashMap::default();
            for &row in &rows {
                budget.spend(self.cells_of_row[row as usize].len() as u64)?;
                for &cell in &self.cells_of_row[row as usize] {
                    let cell = self.cells[cell as usize];
                    *has.entry(cell.member).or_default() += u64::from(cell.has);
                }
            }
            let before: Vec<u64> = members.iter().map(|member| has.get(member).copied().unwrap_or(0)).collect();
            let bases: Vec<u64> = members.iter().zip(&before).map(|(&m, has)| self.loads[m as usize] - has).collect();
            let mut after = fill(&bases, before.iter().sum());
            break_ties(&bases, &before, &mut after);
            let squares = |counts: &[u64]| -> u128 {
                bases.iter().zip(counts).map(|(base, count)| u128::from(base + count).pow(2)).sum()
            };
            if squares(&after) < squares(&before) {
                changed = true;
                let changes = members.iter().zip(&before).zip(&after);
                let mut gives: HashMap<u32, u64, FxBuildHasher> =
                    changes.map(|((&member, &before), &after)| (member, before.saturating_sub(after))).collect();
                let mut freed = Vec::new();
                for row in rows {
                    let mut of_row = 0;
                    for &cell in &self.cells_of_row[row as usize] {
                        let cell = &mut self.cells[cell as usize];
                        if let Some(gives) = gives.get_mut(&cell.member) {
                            let count = (*gives).min(u64::from(cell.has));
                            (*gives, of_row) = (*gives - count, of_row + count);
                            cell.has -= count as u32;
                            self.loads[cell.member as usize] -= count;
                        }
                    }
                    freed.push((row, of_row));
                }
                let gets: Vec<u64> = before.iter().zip(&after).map(|(b, a)| a.saturating_sub(*b)).collect();
                self.hand_out(&freed, &members, &gets);
            }
        }
        Ok(changed)
    }

    /// The sets that have rows, each with its rows.
    fn rows_of_sets(&self) -> Vec<(u32, Vec<u32>)> {
        let rows_of_set = Csr::group_by(&self.set_of, self.parties_of.len());
        (0u32..).zip(rows_of_set.rows().map(<[u32]>::to_vec)).filter(|(_, rows)| !rows.is_empty()).collect()
    }

    fn members_of_set(&self, set: u32) -> Vec<u32> {
        self.classes_of_set(set).flat_map(|class| self.members_of.row(class)).copied().collect()
    }

    pub(super) fn score(&self) -> u128 {
        match self.nobody {
            Some(nobody) => balance_score(&self.loads[..nobody as usize]),
            None => balance_score(&self.loads),
        }
    }

    /// The load of a member. The load of the member `nobody` is above all others, so that chains take from it every partition
    /// that another member can have.
    pub(super) fn weight(&self, member: u32) -> u64 {
        if self.nobody == Some(member) { u64::MAX } else { self.loads[member as usize] }
    }

    /// How many more partitions a member may have.
    pub(super) fn room(&self, member: u32) -> u64 {
        if self.nobody == Some(member) {
            return 0;
        }
        self.most.get(member as usize).map_or(u64::MAX, |most| most.saturating_sub(self.loads[member as usize]))
    }

    /// The number of partitions that the member `nobody` has.
    pub(super) fn left_out(&self) -> u64 {
        self.nobody.map_or(0, |nobody| self.loads[nobody as usize])
    }

    /// Owned partitions that change their owner.
    pub(super) fn moved(&self) -> u64 {
        self.owned - self.cells.iter().map(|cell| u64::from(cell.has.min(cell.owned))).sum::<u64>()
    }

    pub(super) fn misses(&self) -> u64 {
        let cells = self.cells.iter().filter(|cell| cell.off_rack);
        self.pinned_misses + cells.map(|cell| u64::from(cell.has)).sum::<u64>()
    }

    /// The costs of a rack miss and of a move. On a whole simple path, the costs of the lesser objective are less than one cost
    /// of the greater objective. 0 for an objective that does not count.
    pub(super) fn weights(&self, nodes: usize) -> (i64, i64) {
        let heavy = 4 * nodes as i64 + 4;
        let (miss, moved) = match self.objective.racks {
            RackOrder::BeforeStickiness => (heavy, 1),
            RackOrder::AfterStickiness => (1, heavy),
        };
        let sticky = self.objective.mode == Mode::FairYetSticky;
        (if self.racks { miss } else { 0 }, if sticky { moved } else { 0 })
    }

    /// Whether every partition of every row has a member, and the loads are those of the cells.
    pub(super) fn is_consistent(&self) -> bool {
        let (mut supply, mut loads) = (vec![0; self.rows()], self.pinned.clone());
        for cell in &self.cells {
            supply[cell.row as usize] += u64::from(cell.has);
            loads[cell.member as usize] += u64::from(cell.has);
        }
        supply == self.supply && loads == self.loads
    }
}

/// The classes of members.
struct Classes {
    /// By member.
    of_member: Vec<u32>,
    /// By class, the subscription and, where racks matter, the rack.
    keys: Vec<(u32, u32)>,
}

impl Classes {
    fn new(group: &Group, racks: bool) -> Self {
        let mut ids: HashMap<(u32, u32), u32, FxBuildHasher> = HashMap::default();
        let (mut of_member, mut keys) = (Vec::with_capacity(group.members()), Vec::new());
        for (&subscription, &rack) in group.subscription_of().iter().zip(group.racks()) {
            let key = (subscription, if racks { rack } else { NONE });
            of_member.push(*ids.entry(key).or_insert_with(|| {
                keys.push(key);
                keys.len() as u32 - 1
            }));
        }
        Self { of_member, keys }
    }

    fn rack(&self, class: u32) -> u32 {
        self.keys[class as usize].1
    }
}

/// The parties of the sets of subscribers.
struct Parties {
    /// Set to its parties, by ascending rack.
    of_set: Csr,
    /// Party to its classes.
    classes: Csr,
    /// By party.
    rack: Vec<u32>,
}

impl Parties {
    /// `sets` has the subscriptions of each set.
    fn new(group: &Group, classes: &Classes, sets: &Csr) -> Self {
        let subscriptions: Vec<u32> = classes.keys.iter().map(|key| key.0).collect();
        let classes_of_subscription = Csr::group_by(&subscriptions, group.subscriptions().len());
        let mut parties = Self { of_set: Csr::new(), classes: Csr::new(), rack: Vec::new() };
        for subscriptions in sets.rows() {
            let of_set = subscriptions.iter().flat_map(|&subscription| classes_of_subscription.row(subscription));
            let mut of_set: Vec<u32> = of_set.copied().collect();
            of_set.sort_unstable_by_key(|&class| (classes.rack(class), class));
            let first = parties.rack.len() as u32;
            for party in of_set.chunk_by(|&a, &b| classes.rack(a) == classes.rack(b)) {
                parties.classes.push_row(party);
                parties.rack.push(classes.rack(party[0]));
            }
            parties.of_set.push_row(&(first..parties.rack.len() as u32).collect::<Vec<u32>>());
        }
        parties
    }
}

/// By partition its row, [`NONE`] for a partition without subscribers, and the rows.
fn number_rows(group: &Group, racks: bool, set_of_topic: &[u32], parties: &Parties) -> (Vec<u32>, RowNumbers) {
    let replicas = group.topics().racks();
    let mut rows = RowNumbers { near_of: Csr::new(), ..RowNumbers::default() };
    let mut row_of = vec![NONE; group.topics().partitions()];
    for topic in 0..group.topics().len() as u32 {
        let set = set_of_topic[topic as usize];
        let of_set = parties.of_set.row(set);
        if of_set.is_empty() {
            continue;
        }
        // A member without a rack reads nothing from another rack.
        let party_on = |rack: u32| {
            of_set.binary_search_by_key(&rack, |&party| parties.rack[party as usize]).ok().map(|at| of_set[at])
        };
        let near = |rack_set: u32| -> Vec<u32> {
            let replicated = if racks { replicas.sets.row(rack_set) } else { &[] };
            replicated.iter().copied().chain([NONE]).filter_map(party_on).collect()
        };
        let mut last = (NONE, NONE);
        for partition in group.topics().range(topic) {
            let rack_set = if racks { replicas.of_partition[partition as usize] } else { 0 };
            if last.0 != rack_set || last.1 == NONE {
                last = (rack_set, rows.number(set, rack_set, near));
            }
            row_of[partition as usize] = last.1;
        }
    }
    (row_of, rows)
}

/// Numbers the rows. A row is a set of subscribers and its near parties.
#[derive(Default)]
struct RowNumbers {
    set_of: Vec<u32>,
    rack_set_of: Vec<u32>,
    near_of: Csr,
    by_racks: HashMap<(u32, u32), u32, FxBuildHasher>,
    by_near: HashMap<(u32, Vec<u32>), u32, FxBuildHasher>,
}

impl RowNumbers {
    fn number(&mut self, set: u32, rack_set: u32, near: impl Fn(u32) -> Vec<u32>) -> u32 {
        if let Some(&row) = self.by_racks.get(&(set, rack_set)) {
            return row;
        }
        let row = *self.by_near.entry((set, near(rack_set))).or_insert_with_key(|(_, near)| {
            self.near_of.push_row(near);
            self.rack_set_of.push(rack_set);
            self.set_of.push(set);
            self.set_of.len() as u32 - 1
        });
        self.by_racks.insert((set, rack_set), row);
        row
    }
}

/// By topic, the number of its set of subscribers; by set, the subscriptions that have the topic and that some member has,
/// ascending. The solvers compute the same sets with other code, so a mistake of theirs is not repeated here.
fn sets_of_subscribers(group: &Group) -> (Vec<u32>, Csr) {
    let mut used = vec![false; group.subscriptions().len()];
    group.subscription_of().iter().for_each(|&subscription| used[subscription as usize] = true);
    let mut subscriptions_of = vec![Vec::new(); group.topics().len()];
    for (subscription, topics) in
        (0u32..).zip(group.subscriptions().rows()).filter(|(subscription, _)| used[*subscription as usize])
    {
        topics.iter().for_each(|&topic| subscriptions_of[topic as usize].push(subscription));
    }
    let (mut sets, mut known) = (Csr::new(), BTreeMap::new());
    let mut set_of = Vec::with_capacity(subscriptions_of.len());
    for subscriptions in subscriptions_of {
        let set = *known.entry(subscriptions).or_insert_with_key(|subscriptions: &Vec<u32>| {
            sets.push_row(subscriptions);
            sets.len() as u32 - 1
        });
        set_of.push(set);
    }
    (set_of, sets)
}

/// Spreads `count` over members with these loads, so that the fullest ends up as low as possible. Returns how many each gets.
fn fill(loads: &[u64], count: u64) -> Vec<u64> {
    let mut order: Vec<usize> = (0..loads.len()).collect();
    order.sort_by_key(|&i| loads[i]);
    // The first `many` in order take part: up to the level at which `count` is used up.
    let (mut many, mut sum) = (0u64, 0u64);
    for &i in &order {
        if many * loads[i] >= sum + count && many > 0 {
            break;
        }
        many += 1;
        sum += loads[i];
    }
    let mut gets = vec![0; loads.len()];
    if !order.is_empty() {
        let (level, rest) = ((sum + count) / many, (sum + count) % many);
        for (place, &i) in (0u64..).zip(&order[..many as usize]) {
            gets[i] = level + u64::from(place < rest) - loads[i];
        }
    }
    gets
}

/// Of the members that end up at one of the two highest loads, those that had more partitions before get the higher one.
fn break_ties(bases: &[u64], before: &[u64], after: &mut [u64]) {
    let top = bases.iter().zip(&*after).filter(|(_, after)| **after > 0).map(|(base, after)| base + after).max();
    let Some(top) = top else { return };
    let mut tied: Vec<usize> = (0..bases.len())
        .filter(|&i| bases[i] < top && bases[i] + after[i] + 1 >= top && bases[i] + after[i] <= top)
        .collect();
    let mut extras = tied.iter().filter(|&&i| bases[i] + after[i] == top).count();
    tied.sort_by_key(|&i| std::cmp::Reverse(bases[i] + before[i]));
    for i in tied {
        after[i] = top - 1 - bases[i] + u64::from(extras > 0);
        extras = extras.saturating_sub(1);
    }
}
