//! Potentials under which no move has a negative reduced cost: the proof that the scratch plan is the cheapest of its balance.
//!
//! The moves are the arcs of [`Nodes`]. Every difference between two plans of the least score is a set of cycles of such arcs.
//! So a plan without a negative cycle is the cheapest, and the labels of a search that finds no negative cycle are potentials.

use super::nodes::Nodes;
use super::scratch_plan::{Cell, ScratchPlan};
use super::search_tree::{Parent, SearchTree};
use super::{PlanFault, Stop};
use crate::planning::budget::{Budget, Spent};
use crate::planning::group::NONE;

/// By node, its potential.
pub(super) struct Potentials(Vec<i64>);

/// Cancels negative cycles until there is none, and returns potentials that prove it. The scratch plan must be level.
pub(super) fn cheapen(scratch: &mut ScratchPlan, patience: usize, budget: &Budget<'_>) -> Result<Potentials, Stop> {
    let mut search = CycleSearch::new(scratch);
    let mut cancelled = 0;
    while let Some(cycle) = search.run(scratch, budget)? {
        cancelled += 1;
        if cancelled > patience {
            return Err(Stop::TooFar);
        }
        search.cancel(scratch, &cycle)?;
    }
    Ok(Potentials(search.tree.labels()))
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

/// Label-correcting shortest paths (Bellman, Ford, Moore) from all nodes at once.
struct CycleSearch {
    nodes: Nodes,
    tree: SearchTree,
}

impl CycleSearch {
    fn new(scratch: &ScratchPlan) -> Self {
        let nodes = Nodes::new(scratch);
        let tree = SearchTree::new(nodes.len() as u32);
        Self { nodes, tree }
    }

    /// Lowers labels until none can be lower, or until the arcs that gave them form a cycle, which is negative. The cycle is
    /// returned as a list of nodes, each node after its parent.
    fn run(&mut self, scratch: &ScratchPlan, budget: &Budget<'_>) -> Result<Option<Vec<u32>>, Spent> {
        let Self { nodes, tree } = self;
        while let Some(node) = tree.pop() {
            let from = tree.label(node);
            let mut steps = 1;
            let mut closed = None;
            nodes.arcs(scratch, node, |to, cost, cell| {
                steps += 1;
                if from + cost < tree.label(to) && closed.is_none() {
                    steps += 2;
                    if !tree.lower(to, from + cost, Parent { node, cell }) {
                        closed = Some(to);
                    }
                }
            });
            budget.spend(steps)?;
            if let Some(start) = closed {
                return Ok(Some(self.cycle(start)));
            }
        }
        Ok(None)
    }

    /// The cycle of parents through a node.
    fn cycle(&self, start: u32) -> Vec<u32> {
        let parent = |node: &u32| Some(self.tree.parent(*node).node).filter(|node| *node != start);
        let mut cycle: Vec<u32> = std::iter::successors(Some(start), parent).collect();
        cycle.reverse();
        cycle
    }

    /// Moves partitions along a negative cycle, as many as have the same cost. The nodes whose arcs changed are queued again.
    fn cancel(&mut self, scratch: &mut ScratchPlan, cycle: &[u32]) -> Result<(), PlanFault> {
        let Self { nodes, tree } = self;
        let mut count = u32::MAX;
        for &to in cycle {
            let Parent { node: from, cell } = tree.parent(to);
            if cell != NONE {
                let Cell { has, owned, .. } = scratch.cells[cell as usize];
                // The arc leads from a row to a member that owned more, or from a member back to its row.
                let same = if from >= nodes.members {
                    owned - has
                } else if has > owned {
                    has - owned
                } else {
                    has
                };
                count = count.min(same);
            } else if nodes.is_hub(to) {
                count = 1;
            }
        }
        for &to in cycle {
            let Parent { node: from, cell } = tree.parent(to);
            if to < nodes.members && !nodes.is_hub(from) {
                let taken = if cell == NONE {
                    // Goes back over the class, its party and perhaps the set to the row.
                    let mut row = from;
                    while row >= nodes.set(0) {
                        row = tree.parent(row).node;
                    }
                    scratch.cell(row - nodes.members, to)
                } else {
                    cell
                };
                let has = scratch.cells[taken as usize].has;
                nodes.set_count(scratch, taken, has + count);
            } else if from < nodes.members && cell != NONE {
                let has = scratch.cells[cell as usize].has;
                nodes.set_count(scratch, cell, has - count);
            }
        }
        tree.restore();
        for &node in cycle {
            tree.enqueue(node);
            if node < nodes.members {
                tree.enqueue(nodes.replace(node, scratch.weight(node))?);
            }
        }
        Ok(())
    }
}
