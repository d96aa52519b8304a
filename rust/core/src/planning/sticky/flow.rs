//! Stickiness: a minimum-cost flow inside the blocks, from the proposal to the optimum.
//!
//! The blocks decide the balance: within a block, every plan with loads of `low` or `low + 1` is balanced. The marginal cost of
//! unit `k` on an arc is convex: 0 while `k <= held`, the weight of a move beyond; besides, -1 while `k <= proposed` and +1
//! beyond break ties towards the proposal. A unit on another rack has the weight of a rack miss. The weights are so large that
//! no chain of arcs with a lesser objective outweighs a greater one.
//!
//! At the start, each arc carries the units that cost less than a price of its row. With these prices as potentials, no
//! residual cost is negative, so successive shortest paths lead to the optimum. A balanced proposal is optimal as it is.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::{Add, Neg, Sub};

use super::levels::Blocks;
use super::rows::Problem;
use crate::planning::budget::{Budget, Cause, Goal, Limited, Spent};
use crate::planning::group::NONE;
use crate::planning::objective::RackOrder;

/// By arc, the share of the cheapest plan that the blocks allow. The shares of the detours follow those of the problem's arcs;
/// detours lead to subscribers to which a row has no arc.
///
/// # Errors
/// The budget is spent, or the search contradicts itself. The flow is no plan before the last unit has reached a member, so the
/// caller falls back to the plan that the search began with.
pub(super) fn cheapest(
    problem: &Problem,
    blocks: &Blocks,
    proposed: &[u32],
    order: RackOrder,
    detours: &Detours,
    budget: &Budget<'_>,
) -> Result<Vec<u32>, Limited> {
    // Two objectives fit 64 bits up to a billion nodes; the third needs more.
    if problem.mismatch.is_empty() && detours.edges.is_empty() {
        Flow::<i64>::new(problem, blocks, proposed, order, detours).solve(budget)
    } else {
        Flow::<i128>::new(problem, blocks, proposed, order, detours).solve(budget)
    }
}

/// A node that a detour leads from or to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Row(u32),
    Hub(u32),
    Member(u32),
}

/// An edge for any number of partitions. The member at the end of the path neither holds these partitions nor is proposed for
/// them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Detour {
    pub from: End,
    pub to: End,
    /// Whether the members at the end of its path read the row from another rack.
    pub mismatch: bool,
}

/// Paths over hubs, which rows share: from a row to a hub, on to hubs of a lower number, and to members. The edge out of the
/// row has the whole cost. So the number of edges grows with the sum of rows and subscriptions, and not with their product.
#[derive(Debug, Default)]
pub(super) struct Detours {
    pub hubs: u32,
    pub edges: Vec<Detour>,
}

/// The steps for an entry of the heap, besides those for its edges.
const HEAP_STEPS: u64 = 8;

trait Cost: Copy + Ord + Add<Output = Self> + Sub<Output = Self> + Neg<Output = Self> + From<i32> {
    /// The weight of `racks` partitions on other racks and of `moved` moved ones. In the given order, each outweighs any chain
    /// of the objectives after it. Last comes the distance, which costs 1.
    fn weigh(order: RackOrder, nodes: usize, racks: i32, moved: i32) -> Self;
}

impl Cost for i64 {
    fn weigh(_: RackOrder, nodes: usize, _: i32, moved: i32) -> Self {
        i64::from(moved) * (4 * nodes as i64 + 4)
    }
}

impl Cost for i128 {
    fn weigh(order: RackOrder, nodes: usize, racks: i32, moved: i32) -> Self {
        let weight = 4 * nodes as i128 + 4;
        let (first, second) = match order {
            RackOrder::BeforeStickiness => (racks, moved),
            RackOrder::AfterStickiness => (moved, racks),
        };
        (i128::from(first) * weight + i128::from(second)) * weight
    }
}

/// An arc of a row and a member of the same block, or a detour, with the numbers that its cost depends on.
#[derive(Debug, Clone, Copy)]
struct Arc {
    share: u32,
    held: u32,
    proposed: u32,
    mismatch: bool,
    /// Whether an edge before has the cost: on a detour beyond its first hub.
    paid: bool,
}

/// Nodes are numbered: members, hubs of detours, rows, and one hub for each block, which gives members the right to `low + 1`.
/// So arcs carry from the greater number to the smaller.
struct Flow<C> {
    members: u32,
    /// The first row.
    first_row: u32,
    /// The first block's hub.
    first_block: u32,
    arcs: Vec<Arc>,
    /// Edges out of each node: the other end and the arc; [`NONE`] for the arc between a member and the hub of its block.
    edge_starts: Vec<u32>,
    edges: Vec<(u32, u32)>,
    /// By member, whether it uses its right to `low + 1`.
    raised: Vec<bool>,
    /// By node, units that are too many (positive) or missing (negative).
    excess: Vec<i64>,
    potential: Vec<C>,
    /// The cost of a partition on another rack, and of one that moves; the distance costs 1.
    rack: C,
    moved: C,
}

impl<C: Cost> Flow<C> {
    fn new(problem: &Problem, blocks: &Blocks, proposed: &[u32], order: RackOrder, detours: &Detours) -> Self {
        let first_row = problem.members as u32 + detours.hubs;
        let first_block = first_row + problem.rows() as u32;
        let nodes = first_block as usize + blocks.blocks.len();
        let arcs = (0..proposed.len()).map(|arc| Arc {
            share: 0,
            held: problem.held[arc],
            proposed: proposed[arc],
            mismatch: problem.mismatched(arc as u32),
            paid: false,
        });
        let detoured = detours.edges.iter().map(|detour| Arc {
            share: 0,
            held: 0,
            proposed: 0,
            mismatch: detour.mismatch,
            paid: !matches!(detour.from, End::Row(_)),
        });
        let mut flow = Self {
            members: problem.members as u32,
            first_row,
            first_block,
            arcs: arcs.chain(detoured).collect(),
            edge_starts: Vec::new(),
            edges: Vec::new(),
            raised: vec![false; problem.members],
            excess: vec![0; nodes],
            potential: vec![C::from(0); nodes],
            rack: C::weigh(order, nodes, 1, 0),
            moved: C::weigh(order, nodes, 0, 1),
        };
        flow.connect(problem, blocks, detours);
        flow.start(problem, blocks);
        flow
    }

    /// Lays the edges. An arc between a row and a member of another block carries nothing and gets no edge.
    fn connect(&mut self, problem: &Problem, blocks: &Blocks, detours: &Detours) {
        let mut starts = vec![0u32; self.excess.len() + 1];
        self.each_edge(problem, blocks, detours, |from, to, _| {
            starts[from as usize + 1] += 1;
            starts[to as usize + 1] += 1;
        });
        for node in 1..starts.len() {
            starts[node] += starts[node - 1];
        }
        let mut edges = vec![(0, 0); starts[starts.len() - 1] as usize];
        let mut next = starts.clone();
        self.each_edge(problem, blocks, detours, |from, to, arc| {
            for (here, there) in [(from, to), (to, from)] {
                edges[next[here as usize] as usize] = (there, arc);
                next[here as usize] += 1;
            }
        });
        (self.edge_starts, self.edges) = (starts, edges);
    }

    /// Both ends of every edge, the one that carries first, and its arc.
    fn each_edge(&self, problem: &Problem, blocks: &Blocks, detours: &Detours, mut visit: impl FnMut(u32, u32, u32)) {
        for (row, &block) in (0u32..).zip(&blocks.of_row) {
            for (arc, &member) in problem.arcs_of_row(row).zip(problem.arcs.row(row)) {
                if blocks.of_member[member as usize] == block {
                    visit(self.first_row + row, member, arc);
                }
            }
        }
        let node = |end: End| match end {
            End::Member(member) => member,
            End::Hub(hub) => self.members + hub,
            End::Row(row) => self.first_row + row,
        };
        for (arc, detour) in (problem.arc_row.len() as u32..).zip(&detours.edges) {
            visit(node(detour.from), node(detour.to), arc);
        }
        for (member, &block) in (0u32..).zip(&blocks.of_member).filter(|(_, block)| **block != NONE) {
            // A member that is full at `low` has no right to more.
            if blocks.most.is_empty() || blocks.at_level(member, u32::MAX) > blocks.blocks[block as usize].low {
                visit(self.first_block + block, member, NONE);
            }
        }
    }

    fn edges_of(&self, node: u32) -> std::ops::Range<u32> {
        self.edge_starts[node as usize]..self.edge_starts[node as usize + 1]
    }

    /// The cost of the `unit`-th partition on an arc, from 1.
    fn cost(&self, arc: &Arc, unit: u32) -> C {
        if arc.paid {
            return C::from(0);
        }
        let mut cost = C::from(if unit > arc.proposed { 1 } else { -1 });
        if unit > arc.held {
            cost = cost + self.moved;
        }
        if arc.mismatch {
            cost = cost + self.rack;
        }
        cost
    }

    /// The start: each row has a price, and its arcs carry the units that cost less.
    fn start(&mut self, problem: &Problem, blocks: &Blocks) {
        for (row, node) in (self.first_row..self.first_block).enumerate() {
            let edges = self.edges_of(node);
            let arcs = || edges.clone().map(|edge| self.edges[edge as usize].1);
            // The price is that of a moved unit without distance: exactly the proposal costs less. On another rack the proposal
            // has units only where the block has no member on a better one.
            let elsewhere = arcs().all(|arc| self.arcs[arc as usize].mismatch);
            let price = if elsewhere { self.moved + self.rack } else { self.moved };
            let mut left = i64::from(problem.supply[row]);
            for edge in edges.clone() {
                let at = self.edges[edge as usize].1 as usize;
                let arc = self.arcs[at];
                let units = [arc.proposed, arc.held].into_iter().find(|&n| n > 0 && self.cost(&arc, n) < price);
                self.arcs[at].share = units.unwrap_or(0);
                left -= i64::from(self.arcs[at].share);
            }
            self.potential[node as usize] = -price;
            self.excess[node as usize] = left;
        }
        let shares: Vec<u32> = self.arcs.iter().map(|arc| arc.share).collect();
        let loads = problem.loads(&shares);
        for (block, hub) in (self.first_block..).enumerate().take(blocks.blocks.len()) {
            self.excess[hub as usize] = -i64::from(blocks.blocks[block].high_members);
            for edge in self.edges_of(hub) {
                let member = self.edges[edge as usize].0 as usize;
                let above = i64::from(loads[member]) - i64::from(blocks.blocks[block].low);
                self.raised[member] = above > 0;
                self.excess[hub as usize] += i64::from(above > 0);
                self.excess[member] = above - i64::from(above > 0);
            }
        }
        if !blocks.most.is_empty() {
            for (member, &block) in (0u32..).zip(&blocks.of_member).filter(|(_, block)| **block != NONE) {
                let low = blocks.blocks[block as usize].low;
                if blocks.at_level(member, u32::MAX) <= low {
                    let above = i64::from(loads[member as usize]) - i64::from(blocks.at_level(member, low));
                    self.excess[member as usize] = above;
                }
            }
        }
    }

    fn solve(mut self, budget: &Budget<'_>) -> Result<Vec<u32>, Limited> {
        match self.carry_all(budget) {
            Ok(true) => Ok(self.arcs.iter().map(|arc| arc.share).collect()),
            Ok(false) => Err(Limited { goal: Goal::Moves, cause: Cause::Defect }),
            Err(spent) => Err(spent.seeking(Goal::Moves)),
        }
    }

    /// Carries every unit that is too many to where one is missing. False if there is no path: the blocks admit a plan, so that
    /// is a defect of the blocks or of this search.
    fn carry_all(&mut self, budget: &Budget<'_>) -> Result<bool, Spent> {
        let mut search = PathSearch::new(self.excess.len());
        let mut sources: Vec<u32> = (0..self.excess.len() as u32).filter(|&v| self.excess[v as usize] > 0).collect();
        while !sources.is_empty() {
            if !self.shorten(&sources, &mut search, budget)? {
                return Ok(false);
            }
            self.layer(&sources, &mut search, budget)?;
            for &source in &sources {
                while self.excess[source as usize] > 0 && self.augment(source, &mut search, budget)? {}
            }
            sources.retain(|&source| self.excess[source as usize] > 0);
        }
        // More missing units than there were too many would be lost without a word.
        Ok(self.excess.iter().all(|&excess| excess == 0))
    }

    /// The reduced cost of an edge out of `node`, never negative; nothing if the edge has no unit to carry.
    fn reduced(&self, node: u32, edge: u32) -> Option<C> {
        let (to, arc) = self.edges[edge as usize];
        let cost = if let Some(arc) = self.arcs.get(arc as usize) {
            if node > to {
                self.cost(arc, arc.share + 1)
            } else if arc.share > 0 {
                -self.cost(arc, arc.share)
            } else {
                return None;
            }
        } else {
            let free = if node < self.members { !self.raised[node as usize] } else { self.raised[to as usize] };
            if !free {
                return None;
            }
            C::from(0)
        };
        let reduced = cost + self.potential[node as usize] - self.potential[to as usize];
        debug_assert!(reduced >= C::from(0), "potentials stay feasible");
        Some(reduced)
    }

    /// How many units an edge carries at its present cost.
    fn capacity(&self, node: u32, edge: u32) -> i64 {
        let (to, arc) = self.edges[edge as usize];
        let Some(&Arc { share, held, proposed, .. }) = self.arcs.get(arc as usize) else {
            return 1;
        };
        if node > to {
            let step = [held, proposed].into_iter().filter(|&step| step > share).min();
            step.map_or(i64::MAX, |step| i64::from(step - share))
        } else {
            let step = [held, proposed].into_iter().filter(|&step| step < share).max().unwrap_or(0);
            i64::from(share - step)
        }
    }

    fn carry(&mut self, node: u32, edge: u32, amount: i64) {
        let (to, arc) = self.edges[edge as usize];
        if let Some(arc) = self.arcs.get_mut(arc as usize) {
            if node > to {
                arc.share += amount as u32;
            } else {
                arc.share -= amount as u32;
            }
        } else if node < self.members {
            self.raised[node as usize] = true;
        } else {
            self.raised[to as usize] = false;
        }
    }

    /// Changes the potentials so that a shortest path from an excess to a deficit costs nothing; false if there is no path.
    fn shorten(&mut self, sources: &[u32], search: &mut PathSearch<C>, budget: &Budget<'_>) -> Result<bool, Spent> {
        budget.spend(sources.len() as u64)?;
        search.begin();
        for &source in sources {
            search.reach(source, C::from(0));
        }
        while let Some(Reverse((distance, node))) = search.heap.pop() {
            if distance > search.distance[node as usize] {
                continue;
            }
            if self.excess[node as usize] < 0 {
                // Relative to all that is farther away, whose potential stays as it is.
                for &near in &search.touched {
                    let nearer = search.distance[near as usize];
                    if nearer < distance {
                        self.potential[near as usize] = self.potential[near as usize] + nearer - distance;
                    }
                }
                return Ok(true);
            }
            budget.spend(HEAP_STEPS + self.edges_of(node).len() as u64)?;
            for edge in self.edges_of(node) {
                if let Some(reduced) = self.reduced(node, edge) {
                    search.reach(self.edges[edge as usize].0, distance + reduced);
                }
            }
        }
        Ok(false)
    }

    /// Breadth-first layers over the edges that cost nothing, up to the first one with a deficit.
    fn layer(&self, sources: &[u32], search: &mut PathSearch<C>, budget: &Budget<'_>) -> Result<(), Spent> {
        search.begin();
        for &source in sources {
            search.enter(source, 0, self.edge_starts[source as usize]);
        }
        let mut last = u32::MAX;
        let mut at = 0;
        while at < search.touched.len() {
            let node = search.touched[at];
            at += 1;
            let layer = search.layer[node as usize];
            if layer >= last {
                break;
            }
            budget.spend(self.edges_of(node).len() as u64)?;
            for edge in self.edges_of(node) {
                let to = self.edges[edge as usize].0;
                if search.mark[to as usize] != search.round && self.reduced(node, edge) == Some(C::from(0)) {
                    search.enter(to, layer + 1, self.edge_starts[to as usize]);
                    if self.excess[to as usize] < 0 {
                        last = layer + 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// Sends units from `source` to a deficit along one shortest path through the layers; false if there is none.
    fn augment(&mut self, source: u32, search: &mut PathSearch<C>, budget: &Budget<'_>) -> Result<bool, Spent> {
        search.path.clear();
        let mut node = source;
        while self.excess[node as usize] >= 0 {
            let end = self.edge_starts[node as usize + 1];
            let onward = (search.next[node as usize]..end).find(|&edge| {
                let to = self.edges[edge as usize].0 as usize;
                search.mark[to] == search.round
                    && search.layer[to] == search.layer[node as usize] + 1
                    && self.reduced(node, edge) == Some(C::from(0))
            });
            let until = onward.unwrap_or(end);
            budget.spend(1 + u64::from(until - search.next[node as usize]))?;
            search.next[node as usize] = until;
            if let Some(edge) = onward {
                search.path.push((node, edge));
                node = self.edges[edge as usize].0;
            } else {
                let Some((before, edge)) = search.path.pop() else { return Ok(false) };
                search.next[before as usize] = edge + 1;
                node = before;
            }
        }
        let most = self.excess[source as usize].min(-self.excess[node as usize]);
        let amount = search.path.iter().map(|&(node, edge)| self.capacity(node, edge)).fold(most, i64::min);
        for &(node, edge) in &search.path {
            self.carry(node, edge, amount);
        }
        self.excess[source as usize] -= amount;
        self.excess[node as usize] += amount;
        Ok(true)
    }
}

/// The result of a search. Only the nodes marked with the present round have meaningful entries.
struct PathSearch<C> {
    round: u32,
    mark: Vec<u32>,
    distance: Vec<C>,
    layer: Vec<u32>,
    /// By node, the first edge that no search through the layers has tried.
    next: Vec<u32>,
    touched: Vec<u32>,
    path: Vec<(u32, u32)>,
    heap: BinaryHeap<Reverse<(C, u32)>>,
}

impl<C: Cost> PathSearch<C> {
    fn new(nodes: usize) -> Self {
        Self {
            round: 0,
            mark: vec![0; nodes],
            distance: vec![C::from(0); nodes],
            layer: vec![0; nodes],
            next: vec![0; nodes],
            touched: Vec::new(),
            path: Vec::new(),
            heap: BinaryHeap::new(),
        }
    }

    fn begin(&mut self) {
        self.round += 1;
        self.touched.clear();
        self.heap.clear();
    }

    fn reach(&mut self, node: u32, distance: C) {
        let new = self.mark[node as usize] != self.round;
        if new {
            self.mark[node as usize] = self.round;
            self.touched.push(node);
        }
        if new || distance < self.distance[node as usize] {
            self.distance[node as usize] = distance;
            self.heap.push(Reverse((distance, node)));
        }
    }

    fn enter(&mut self, node: u32, layer: u32, first_edge: u32) {
        self.mark[node as usize] = self.round;
        self.layer[node as usize] = layer;
        self.next[node as usize] = first_edge;
        self.touched.push(node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::budget::Limit;
    use crate::planning::group::Csr;
    use crate::planning::sticky::levels::Block;
    use crate::planning::sticky::rows::Segment;

    /// One topic of two partitions, and two members that subscribe to it and hold nothing.
    fn problem() -> Problem {
        let mut arcs = Csr::new();
        arcs.push_row(&[0, 1]);
        let segment = Segment { row: 0, topic: 0, first: 0, start: 0, end: 2 };
        let mut problem = Problem::with_arcs(2, vec![segment], arcs, Vec::new());
        problem.count(&[NONE, NONE], false);
        problem
    }

    fn solved(block: Block) -> Result<Vec<u32>, Limited> {
        let blocks =
            Blocks { blocks: vec![block], of_member: vec![0, 0], of_row: vec![0], flow: None, most: Vec::new() };
        let (order, budget) = (RackOrder::default(), Limit::default().budget(1 << 20));
        cheapest(&problem(), &blocks, &[1, 1], order, &Detours::default(), &budget)
    }

    #[test]
    fn blocks_that_admit_no_plan_are_reported() {
        assert_eq!(solved(Block { low: 1, high_members: 0 }), Ok(vec![1, 1]));
        let defect = Err(Limited { goal: Goal::Moves, cause: Cause::Defect });
        for (low, high_members) in [(0, 0), (0, 1), (1, 1), (2, 0)] {
            assert_eq!(solved(Block { low, high_members }), defect, "{low} and {high_members} of one more");
        }
    }
}
