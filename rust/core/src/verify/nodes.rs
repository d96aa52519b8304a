//! The scratch plan as a graph: its nodes, and the possible moves as arcs.
//!
//! Nodes are members, rows, sets of subscribers, parties, classes and, between any two loads that differ by one, a hub. An arc
//! is a possible move, or a part of one:
//!
//! ```text
//! member ─► row                              gives a partition back, which takes back its cost
//! row ─► member                              gives a partition to a member that owned more of the row than it has
//! row ─► party ─► class ─► member            gives a partition to any member that is near the row
//! row ─► set ─► party ─► class ─► member     gives a partition to any subscriber, at the price of a rack miss
//! member ─► hub ─► member                    the first gets one more, the second one fewer: they swap loads that differ by one
//! ```
//!
//! A near member costs more over the set than over its party, so the cheapest path has the right price.

use super::PlanFault;
use super::scratch_plan::{Cell, ScratchPlan};
use crate::planning::group::{Csr, NONE};

/// The numbers of the nodes, the costs of arcs, and the members by load.
pub(super) struct Nodes {
    pub(super) members: u32,
    rows: u32,
    sets: u32,
    parties: u32,
    classes: u32,
    /// The distinct loads, ascending.
    loads: Vec<u64>,
    /// By load, its members.
    by_load: Vec<Vec<u32>>,
    /// By member, the place of its load, and its place among the members with that load.
    place: Vec<(u32, u32)>,
    /// By row, its set if some subscribers read the row from another rack, [`NONE`] otherwise.
    far_set: Vec<u32>,
    /// By row, the number of its cells whose members owned more than they have. Most rows have none, so a search seldom reads
    /// the cells of a row.
    lacking: Vec<u32>,
    miss: i64,
    moved: i64,
}

impl Nodes {
    pub(super) fn new(scratch: &ScratchPlan) -> Self {
        let weights: Vec<u64> = (0..scratch.loads.len() as u32).map(|member| scratch.weight(member)).collect();
        let mut loads = weights.clone();
        loads.sort_unstable();
        loads.dedup();
        let level: Vec<u32> = weights.iter().map(|load| loads.partition_point(|other| other < load) as u32).collect();
        let by_load: Vec<Vec<u32>> = Csr::group_by(&level, loads.len()).rows().map(<[u32]>::to_vec).collect();
        let mut place = vec![(0, 0); level.len()];
        for (level, members) in (0u32..).zip(&by_load) {
            for (at, &member) in (0u32..).zip(members) {
                place[member as usize] = (level, at);
            }
        }
        let (members, rows) = (scratch.loads.len() as u32, scratch.rows() as u32);
        let classes = scratch.members_of.len() as u32;
        let (sets, parties) = (scratch.parties_of.len() as u32, scratch.classes_of.len() as u32);
        let far_set = (0..rows).map(|row| if scratch.has_far(row) { scratch.set_of[row as usize] } else { NONE });
        let far_set = far_set.collect();
        let mut lacking = vec![0; rows as usize];
        for cell in scratch.cells.iter().filter(|cell| cell.has < cell.owned) {
            lacking[cell.row as usize] += 1;
        }
        let (miss, moved) = (0, 0);
        let mut nodes =
            Self { members, rows, sets, parties, classes, loads, by_load, place, far_set, lacking, miss, moved };
        (nodes.miss, nodes.moved) = scratch.weights(nodes.len());
        nodes
    }

    /// The number of nodes. There is one hub below each load; the hub below the lowest load has no arcs.
    pub(super) fn len(&self) -> usize {
        self.hub(0) as usize + self.loads.len()
    }

    fn row(&self, row: u32) -> u32 {
        self.members + row
    }

    pub(super) fn set(&self, set: u32) -> u32 {
        self.members + self.rows + set
    }

    fn party(&self, party: u32) -> u32 {
        self.set(self.sets) + party
    }

    fn class(&self, class: u32) -> u32 {
        self.party(self.parties) + class
    }

    /// The hub below a load.
    fn hub(&self, level: u32) -> u32 {
        self.class(self.classes) + level
    }

    pub(super) fn is_hub(&self, node: u32) -> bool {
        node >= self.hub(0)
    }

    /// Whether the next lower load is lower by exactly one.
    fn has_hub(&self, level: u32) -> bool {
        let level = level as usize;
        level > 0 && level < self.loads.len() && self.loads[level - 1] + 1 == self.loads[level]
    }

    /// The cost of the member's last partition of the row, which it saves by giving it back.
    fn saved(&self, cell: &Cell) -> i64 {
        let miss = if cell.off_rack { self.miss } else { 0 };
        miss + if cell.has > cell.owned { self.moved } else { 0 }
    }

    /// Calls `visit(to, cost, cell)` for every arc of a node; `cell` is [`NONE`] for arcs without one.
    pub(super) fn arcs(&self, scratch: &ScratchPlan, node: u32, mut visit: impl FnMut(u32, i64, u32)) {
        if node < self.members {
            for &id in &scratch.cells_of_member[node as usize] {
                let cell = &scratch.cells[id as usize];
                if cell.has > 0 {
                    visit(self.row(cell.row), -self.saved(cell), id);
                }
            }
            let above = self.place[node as usize].0 + 1;
            if self.has_hub(above) && scratch.room(node) > 0 {
                visit(self.hub(above), 0, NONE);
            }
        } else if node < self.set(0) {
            let row = node - self.members;
            for &party in scratch.near_of.row(row) {
                visit(self.party(party), self.moved, NONE);
            }
            let far = self.far_set[row as usize];
            if far != NONE {
                visit(self.set(far), self.moved + self.miss, NONE);
            }
            if self.lacking[row as usize] == 0 {
                return;
            }
            for &id in &scratch.cells_of_row[row as usize] {
                let cell = &scratch.cells[id as usize];
                if cell.has < cell.owned {
                    visit(cell.member, if cell.off_rack { self.miss } else { 0 }, id);
                }
            }
        } else if node < self.party(0) {
            for &party in scratch.parties_of.row(node - self.set(0)) {
                visit(self.party(party), 0, NONE);
            }
        } else if node < self.class(0) {
            for &class in scratch.classes_of.row(node - self.party(0)) {
                visit(self.class(class), 0, NONE);
            }
        } else if !self.is_hub(node) {
            for &member in scratch.members_of.row(node - self.class(0)) {
                visit(member, 0, NONE);
            }
        } else if self.has_hub(node - self.hub(0)) {
            for &member in &self.by_load[(node - self.hub(0)) as usize] {
                visit(member, 0, NONE);
            }
        }
    }

    /// Sets how many partitions of a cell's row its member has. The load of the member changes with it, its place does not: call
    /// [`Nodes::replace`] once all cells are set.
    pub(super) fn set_count(&mut self, scratch: &mut ScratchPlan, cell: u32, has: u32) {
        let cell = &mut scratch.cells[cell as usize];
        let lacking = &mut self.lacking[cell.row as usize];
        *lacking = *lacking + u32::from(has < cell.owned) - u32::from(cell.has < cell.owned);
        let load = &mut scratch.loads[cell.member as usize];
        *load = *load + u64::from(has) - u64::from(cell.has);
        cell.has = has;
    }

    /// Puts a member among those of its new load, and returns the hub below that load. Plans of the least score have the same
    /// loads, so the load exists.
    pub(super) fn replace(&mut self, member: u32, load: u64) -> Result<u32, PlanFault> {
        let (level, at) = self.place[member as usize];
        if self.loads[level as usize] == load {
            return Ok(self.hub(level));
        }
        let new =
            self.loads.binary_search(&load).map_err(|_| PlanFault::Unproven { what: "a cycle made a new load" })?;
        self.by_load[level as usize].swap_remove(at as usize);
        if let Some(&other) = self.by_load[level as usize].get(at as usize) {
            self.place[other as usize].1 = at;
        }
        self.place[member as usize] = (new as u32, self.by_load[new].len() as u32);
        self.by_load[new].push(member);
        Ok(self.hub(new as u32))
    }
}
