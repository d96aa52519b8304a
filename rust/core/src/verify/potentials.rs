//! Potentials under which no move has a negative reduced cost: the proof that the scratch plan is the cheapest of its balance.
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
//! A near member costs more over the set than over its party, so the cheapest path has the right price. Every difference between
//! two plans of the least score is a set of cycles of such arcs.

use std::collections::VecDeque;

use super::scratch_plan::{Cell, ScratchPlan};
use super::{PlanFault, Stop};
use crate::planning::budget::{Budget, Spent};
use crate::planning::group::{Csr, NONE};

/// By node, its potential.
pub(super) struct Potentials(Vec<i64>);

/// Cancels negative cycles until there is none, and returns potentials that prove it. The scratch plan must be level.
pub(super) fn cheapen(scratch: &mut ScratchPlan, patience: usize, budget: &Budget<'_>) -> Result<Potentials, Stop> {
    let mut search = CycleSearch::new(scratch);
    let mut cancelled = 0;
    loop {
        let cycles = search.correct(scratch, budget)?;
        if cycles.is_empty() {
            return Ok(Potentials(search.label));
        }
        for cycle in cycles {
            cancelled += 1;
            if cancelled > patience {
                return Err(Stop::TooFar);
            }
            search.cancel(scratch, &cycle)?;
        }
        search.parent.fill(Parent { node: NONE, cell: NONE });
    }
}

/// Checks all arcs once more: none has a negative reduced cost.
pub(super) fn prove(scratch: &ScratchPlan, potentials: &Potentials) -> Result<(), PlanFault> {
    let nodes = Nodes::new(scratch);
    if potentials.0.len() != nodes.len() {
        return Err(PlanFault::Unproven { what: "potentials for another scratch plan" });
    }
    let mut sound = true;
    for node in 0..nodes.len() as u32 {
        nodes.arcs(scratch, node, |to, cost, _| {
            sound &= potentials.0[node as usize] + cost >= potentials.0[to as usize];
        });
    }
    if sound { Ok(()) } else { Err(PlanFault::Unproven { what: "a move has a negative reduced cost" }) }
}

/// The numbers of the nodes, the costs of arcs, and the members by load.
struct Nodes {
    members: u32,
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
    miss: i64,
    moved: i64,
}

impl Nodes {
    fn new(scratch: &ScratchPlan) -> Self {
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
        let mut nodes = Self { members, rows, sets, parties, classes, loads, by_load, place, miss: 0, moved: 0 };
        (nodes.miss, nodes.moved) = scratch.weights(nodes.len());
        nodes
    }

    /// The number of nodes. There is one hub below each load; the hub below the lowest load has no arcs.
    fn len(&self) -> usize {
        self.hub(0) as usize + self.loads.len()
    }

    fn row(&self, row: u32) -> u32 {
        self.members + row
    }

    fn set(&self, set: u32) -> u32 {
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

    fn is_hub(&self, node: u32) -> bool {
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
    fn arcs(&self, scratch: &ScratchPlan, node: u32, mut visit: impl FnMut(u32, i64, u32)) {
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
            if scratch.has_far(row) {
                visit(self.set(scratch.set_of[row as usize]), self.moved + self.miss, NONE);
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

    /// Puts a member among those of its new load. Plans of the least score have the same loads, so the load exists.
    fn replace(&mut self, member: u32, load: u64) -> Result<(), PlanFault> {
        let (level, at) = self.place[member as usize];
        if self.loads[level as usize] == load {
            return Ok(());
        }
        let new =
            self.loads.binary_search(&load).map_err(|_| PlanFault::Unproven { what: "a cycle made a new load" })?;
        self.by_load[level as usize].swap_remove(at as usize);
        if let Some(&other) = self.by_load[level as usize].get(at as usize) {
            self.place[other as usize].1 = at;
        }
        self.place[member as usize] = (new as u32, self.by_load[new].len() as u32);
        self.by_load[new].push(member);
        Ok(())
    }
}

/// The arc by which a node got its label.
#[derive(Debug, Clone, Copy)]
struct Parent {
    node: u32,
    cell: u32,
}

/// Label-correcting shortest paths (Bellman, Ford, Moore) from all nodes at once.
struct CycleSearch {
    nodes: Nodes,
    label: Vec<i64>,
    parent: Vec<Parent>,
    queue: VecDeque<u32>,
    queued: Vec<bool>,
}

impl CycleSearch {
    fn new(scratch: &ScratchPlan) -> Self {
        let nodes = Nodes::new(scratch);
        let count = nodes.len();
        Self {
            nodes,
            label: vec![0; count],
            parent: vec![Parent { node: NONE, cell: NONE }; count],
            queue: (0..count as u32).collect(),
            queued: vec![true; count],
        }
    }

    /// Corrects labels until all are right, or until the parents of nodes, by whose arcs they got their labels, form cycles.
    /// Such cycles are negative. Each is returned as a list of nodes, each node after its parent.
    fn correct(&mut self, scratch: &ScratchPlan, budget: &Budget<'_>) -> Result<Vec<Vec<u32>>, Spent> {
        let mut corrections = 0;
        while let Some(node) = self.queue.pop_front() {
            self.queued[node as usize] = false;
            let from = self.label[node as usize];
            let Self { nodes, label, parent, queue, queued } = self;
            let mut arcs = 1;
            nodes.arcs(scratch, node, |to, cost, cell| {
                arcs += 1;
                if from + cost < label[to as usize] {
                    label[to as usize] = from + cost;
                    parent[to as usize] = Parent { node, cell };
                    corrections += 1;
                    if !queued[to as usize] {
                        queued[to as usize] = true;
                        queue.push_back(to);
                    }
                }
            });
            budget.spend(arcs)?;
            if corrections > self.nodes.len() {
                corrections = 0;
                budget.spend(self.label.len() as u64)?;
                let cycles = self.cycles();
                if !cycles.is_empty() {
                    return Ok(cycles);
                }
            }
        }
        Ok(Vec::new())
    }

    /// The cycles of the parents; no two have a node in common.
    fn cycles(&self) -> Vec<Vec<u32>> {
        let mut seen = vec![NONE; self.label.len()];
        let mut cycles = Vec::new();
        for start in 0..self.label.len() as u32 {
            let mut node = start;
            while node != NONE && seen[node as usize] == NONE {
                seen[node as usize] = start;
                node = self.parent[node as usize].node;
            }
            if node != NONE && seen[node as usize] == start {
                let mut cycle = vec![node];
                let mut at = self.parent[node as usize].node;
                while at != node {
                    cycle.push(at);
                    at = self.parent[at as usize].node;
                }
                cycle.reverse();
                cycles.push(cycle);
            }
        }
        cycles
    }

    /// Moves partitions along a negative cycle, as many as have the same cost. The nodes whose arcs changed are queued again.
    fn cancel(&mut self, scratch: &mut ScratchPlan, cycle: &[u32]) -> Result<(), PlanFault> {
        let mut count = u32::MAX;
        for &to in cycle {
            let Parent { node: from, cell } = self.parent[to as usize];
            if cell != NONE {
                let Cell { has, owned, .. } = scratch.cells[cell as usize];
                // The arc leads from a row to a member that owned more, or from a member back to its row.
                let same = if from >= self.nodes.members {
                    owned - has
                } else if has > owned {
                    has - owned
                } else {
                    has
                };
                count = count.min(same);
            } else if self.nodes.is_hub(to) {
                count = 1;
            }
        }
        for &to in cycle {
            let Parent { node: from, cell } = self.parent[to as usize];
            if to < self.nodes.members && !self.nodes.is_hub(from) {
                let taken = if cell == NONE {
                    // Goes back over the class, its party and perhaps the set to the row.
                    let mut row = from;
                    while row >= self.nodes.set(0) {
                        row = self.parent[row as usize].node;
                    }
                    scratch.cell(row - self.nodes.members, to)
                } else {
                    cell
                };
                scratch.cells[taken as usize].has += count;
                scratch.loads[to as usize] += u64::from(count);
            } else if from < self.nodes.members && cell != NONE {
                scratch.cells[cell as usize].has -= count;
                scratch.loads[from as usize] -= u64::from(count);
            }
        }
        for &node in cycle {
            self.enqueue(node);
            if node < self.nodes.members {
                self.nodes.replace(node, scratch.weight(node))?;
                self.enqueue(self.nodes.hub(self.nodes.place[node as usize].0));
            }
        }
        Ok(())
    }

    fn enqueue(&mut self, node: u32) {
        if !self.queued[node as usize] {
            self.queued[node as usize] = true;
            self.queue.push_back(node);
        }
    }
}
