//! Stickiness: a minimum-cost flow inside the blocks, from the proposal to the optimum.
//!
//! Balance is settled by the blocks; within them every plan with `low` or `low + 1` at each member is as good. What one more
//! partition on an arc costs rises with the share: nothing but its distance up to what the member holds, a move beyond, and
//! beyond the proposal the distance turns from gain to loss. Costs are compared in order of the objectives, as one number
//! with weights that no chain of arcs can outweigh.
//!
//! The start keeps on each arc the units that cost no more than a price of its row; with these prices as potentials all
//! residual costs are non-negative, so successive shortest paths lead to the optimum. A proposal that is balanced is
//! optimal as it is.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::{Add, Neg, Sub};

use super::levels::Blocks;
use super::rows::Problem;
use crate::strategy::RackOrder;

/// By arc, the share of the cheapest plan that the blocks allow.
pub(super) fn cheapest(problem: &Problem, blocks: &Blocks, proposed: &[u32], order: RackOrder) -> Vec<u32> {
    // Two objectives fit 64 bits up to a billion nodes; the third needs more.
    if problem.mismatch.is_empty() {
        Flow::<i64>::new(problem, blocks, proposed, order).solve()
    } else {
        Flow::<i128>::new(problem, blocks, proposed, order).solve()
    }
}

trait Cost: Copy + Ord + Add<Output = Self> + Sub<Output = Self> + Neg<Output = Self> + From<i32> {
    /// The cost of (racks, moved, distance) in the given order, each of the three outweighing any chain of the next.
    fn weigh(order: RackOrder, nodes: usize, racks: i64, moved: i64, distance: i64) -> Self;
}

impl Cost for i64 {
    fn weigh(_: RackOrder, nodes: usize, _: i64, moved: i64, distance: i64) -> Self {
        moved * (4 * nodes as i64 + 4) + distance
    }
}

impl Cost for i128 {
    fn weigh(order: RackOrder, nodes: usize, racks: i64, moved: i64, distance: i64) -> Self {
        let weight = 4 * nodes as i128 + 4;
        let (first, second) = match order {
            RackOrder::BeforeStickiness => (racks, moved),
            RackOrder::AfterStickiness => (moved, racks),
        };
        (i128::from(first) * weight + i128::from(second)) * weight + i128::from(distance)
    }
}

/// Nodes are numbered members first, then rows, then one hub a block that holds the right to `low + 1`.
struct Flow<'a, C> {
    problem: &'a Problem,
    blocks: &'a Blocks,
    proposed: &'a [u32],
    order: RackOrder,
    share: Vec<u32>,
    /// By member, whether it uses its right to `low + 1`.
    raised: Vec<bool>,
    /// By node, units that are too many (positive) or missing (negative).
    excess: Vec<i64>,
    potential: Vec<C>,
    hub_members: Vec<Vec<u32>>,
}

impl<'a, C: Cost> Flow<'a, C> {
    fn new(problem: &'a Problem, blocks: &'a Blocks, proposed: &'a [u32], order: RackOrder) -> Self {
        let nodes = problem.members + problem.rows() + blocks.blocks.len();
        let mut flow = Self {
            problem,
            blocks,
            proposed,
            order,
            share: vec![0; proposed.len()],
            raised: vec![false; problem.members],
            excess: vec![0; nodes],
            potential: vec![C::from(0); nodes],
            hub_members: vec![Vec::new(); blocks.blocks.len()],
        };
        flow.start();
        flow
    }

    fn row_node(&self, row: u32) -> usize {
        self.problem.members + row as usize
    }

    fn hub_node(&self, block: u32) -> usize {
        self.problem.members + self.problem.rows() + block as usize
    }

    fn connects(&self, arc: u32) -> bool {
        let row = self.problem.arc_row[arc as usize];
        self.blocks.of_row[row as usize] == self.blocks.of_member[self.problem.member(arc) as usize]
    }

    /// The cost of the `unit`-th partition on an arc, from 1.
    fn cost(&self, arc: u32, unit: u32) -> C {
        let moved = i64::from(unit > self.problem.held[arc as usize]);
        let distance = if unit > self.proposed[arc as usize] { 1 } else { -1 };
        C::weigh(self.order, self.excess.len(), i64::from(self.problem.mismatched(arc)), moved, distance)
    }

    /// The start: each row has a price, and its arcs carry the units that cost less.
    fn start(&mut self) {
        let problem = self.problem;
        for row in 0..problem.rows() as u32 {
            let arcs = || problem.arcs_of_row(row).filter(|&arc| self.connects(arc));
            // Units that are moved, at no distance: the proposal is just what costs less. On another rack only where the
            // block has nobody on a better one.
            let elsewhere = !arcs().any(|arc| !problem.mismatched(arc));
            let price = C::weigh(self.order, self.excess.len(), i64::from(elsewhere), 1, 0);
            let mut left = i64::from(problem.supply[row as usize]);
            let mut shares = Vec::new();
            for arc in arcs() {
                let (held, proposed) = (problem.held[arc as usize], self.proposed[arc as usize]);
                let share = if proposed > held && self.cost(arc, proposed) < price {
                    proposed
                } else if held > 0 && self.cost(arc, held) < price {
                    held
                } else {
                    0
                };
                left -= i64::from(share);
                shares.push((arc, share));
            }
            for (arc, share) in shares {
                self.share[arc as usize] = share;
            }
            let node = self.row_node(row);
            self.potential[node] = -price;
            self.excess[node] = left;
        }
        let loads = problem.loads(&self.share);
        for block in 0..self.blocks.blocks.len() as u32 {
            let node = self.hub_node(block);
            self.excess[node] = -i64::from(self.blocks.blocks[block as usize].high_members);
        }
        for member in 0..problem.members as u32 {
            if problem.arcs_of.row(member).is_empty() {
                continue;
            }
            let block = self.blocks.of_member[member as usize];
            let low = self.blocks.blocks[block as usize].low;
            let load = loads[member as usize];
            let raised = load > low;
            let hub = self.hub_node(block);
            self.raised[member as usize] = raised;
            self.excess[hub] += i64::from(raised);
            self.excess[member as usize] = i64::from(load) - i64::from(low) - i64::from(raised);
            self.hub_members[block as usize].push(member);
        }
    }

    fn solve(mut self) -> Vec<u32> {
        let mut search = Search::new(self.excess.len());
        let mut sources: Vec<u32> = (0..self.excess.len() as u32).filter(|&v| self.excess[v as usize] > 0).collect();
        while !sources.is_empty() {
            let reached = self.shorten(&sources, &mut search);
            debug_assert!(reached, "the blocks admit a plan, so every excess has a way to a deficit");
            if !reached {
                break;
            }
            while self.layer(&sources, &mut search) {
                for &source in &sources {
                    while self.excess[source as usize] > 0 && self.augment(source, &mut search) {}
                }
            }
            sources.retain(|&source| self.excess[source as usize] > 0);
        }
        self.share
    }

    /// The number of places for edges out of a node.
    fn degree(&self, node: u32) -> usize {
        let (members, rows) = (self.problem.members as u32, self.problem.rows() as u32);
        if node < members {
            self.problem.arcs_of.row(node).len() + 1
        } else if node < members + rows {
            self.problem.arcs_of_row(node - members).len()
        } else {
            self.hub_members[(node - members - rows) as usize].len()
        }
    }

    /// The residual edge at a place, if there is one now.
    fn edge(&self, node: u32, place: usize) -> Option<Edge<C>> {
        let (members, rows) = (self.problem.members as u32, self.problem.rows() as u32);
        let (by, to, cost) = if node < members {
            if let Some(&arc) = self.problem.arcs_of.row(node).get(place) {
                let share = self.share[arc as usize];
                if share == 0 || !self.connects(arc) {
                    return None;
                }
                (By::GiveBack(arc), members + self.problem.arc_row[arc as usize], -self.cost(arc, share))
            } else {
                if self.raised[node as usize] {
                    return None;
                }
                let hub = members + rows + self.blocks.of_member[node as usize];
                (By::Raise(node), hub, C::from(0))
            }
        } else if node < members + rows {
            let arc = self.problem.arcs.start(node - members) + place as u32;
            if !self.connects(arc) {
                return None;
            }
            (By::Take(arc), self.problem.member(arc), self.cost(arc, self.share[arc as usize] + 1))
        } else {
            let member = self.hub_members[(node - members - rows) as usize][place];
            if !self.raised[member as usize] {
                return None;
            }
            (By::Lower(member), member, C::from(0))
        };
        let reduced = cost + self.potential[node as usize] - self.potential[to as usize];
        debug_assert!(reduced >= C::from(0), "potentials stay feasible");
        Some(Edge { to, by, reduced })
    }

    /// How many units an edge carries at its present cost.
    fn capacity(&self, by: By) -> i64 {
        match by {
            By::GiveBack(arc) => {
                let (share, held, proposed) =
                    (self.share[arc as usize], self.problem.held[arc as usize], self.proposed[arc as usize]);
                let floor = if share > proposed.max(held) {
                    proposed.max(held)
                } else if share > held {
                    held
                } else {
                    0
                };
                i64::from(share - floor)
            }
            By::Take(arc) => {
                let (share, held, proposed) =
                    (self.share[arc as usize], self.problem.held[arc as usize], self.proposed[arc as usize]);
                if share < held {
                    i64::from(held - share)
                } else if share < proposed {
                    i64::from(proposed - share)
                } else {
                    i64::MAX
                }
            }
            By::Raise(_) | By::Lower(_) => 1,
        }
    }

    fn carry(&mut self, by: By, amount: i64) {
        match by {
            By::GiveBack(arc) => self.share[arc as usize] -= amount as u32,
            By::Take(arc) => self.share[arc as usize] += amount as u32,
            By::Raise(member) => self.raised[member as usize] = true,
            By::Lower(member) => self.raised[member as usize] = false,
        }
    }

    /// Changes the potentials so that a shortest way from an excess to a deficit costs nothing; false if there is no way.
    fn shorten(&mut self, sources: &[u32], search: &mut Search<C>) -> bool {
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
                return true;
            }
            for place in 0..self.degree(node) {
                if let Some(edge) = self.edge(node, place) {
                    search.reach(edge.to, distance + edge.reduced);
                }
            }
        }
        false
    }

    /// Breadth-first layers over the edges that cost nothing; whether a deficit was reached.
    fn layer(&self, sources: &[u32], search: &mut Search<C>) -> bool {
        search.begin();
        let mut queue: Vec<u32> = sources.iter().copied().filter(|&source| self.excess[source as usize] > 0).collect();
        for &source in &queue {
            search.enter(source, 0);
        }
        let mut found = false;
        let mut at = 0;
        while at < queue.len() {
            let node = queue[at];
            at += 1;
            found |= self.excess[node as usize] < 0;
            for place in 0..self.degree(node) {
                if let Some(edge) = self.edge(node, place).filter(|edge| edge.reduced == C::from(0))
                    && search.mark[edge.to as usize] != search.round
                {
                    search.enter(edge.to, search.layer[node as usize] + 1);
                    queue.push(edge.to);
                }
            }
        }
        found
    }

    /// Sends units from `source` to a deficit along one shortest way through the layers; false if there is none.
    fn augment(&mut self, source: u32, search: &mut Search<C>) -> bool {
        let mut way: Vec<(u32, By)> = Vec::new();
        let mut node = source;
        while self.excess[node as usize] >= 0 {
            let mut onward = None;
            while search.next[node as usize] < self.degree(node) {
                let edge = self.edge(node, search.next[node as usize]).filter(|edge| {
                    edge.reduced == C::from(0)
                        && search.mark[edge.to as usize] == search.round
                        && search.layer[edge.to as usize] == search.layer[node as usize] + 1
                });
                if edge.is_some() {
                    onward = edge;
                    break;
                }
                search.next[node as usize] += 1;
            }
            if let Some(edge) = onward {
                way.push((node, edge.by));
                node = edge.to;
            } else {
                let Some((before, _)) = way.pop() else { return false };
                search.next[before as usize] += 1;
                node = before;
            }
        }
        let most = self.excess[source as usize].min(-self.excess[node as usize]);
        let amount = way.iter().map(|&(_, by)| self.capacity(by)).fold(most, i64::min);
        for &(_, by) in &way {
            self.carry(by, amount);
        }
        self.excess[source as usize] -= amount;
        self.excess[node as usize] += amount;
        true
    }
}

/// A residual edge.
struct Edge<C> {
    to: u32,
    by: By,
    reduced: C,
}

/// What sending a unit over an edge does.
#[derive(Debug, Clone, Copy)]
enum By {
    /// A member gives a unit of this arc back to the row.
    GiveBack(u32),
    /// A member takes one more unit of this arc.
    Take(u32),
    /// The member uses its right to one more than `low`.
    Raise(u32),
    /// The member gives this right up.
    Lower(u32),
}

/// What a search has found; only the nodes marked with the present round have meaningful entries.
struct Search<C> {
    round: u32,
    mark: Vec<u32>,
    distance: Vec<C>,
    layer: Vec<u32>,
    next: Vec<usize>,
    touched: Vec<u32>,
    heap: BinaryHeap<Reverse<(C, u32)>>,
}

impl<C: Cost> Search<C> {
    fn new(nodes: usize) -> Self {
        Self {
            round: 0,
            mark: vec![0; nodes],
            distance: vec![C::from(0); nodes],
            layer: vec![0; nodes],
            next: vec![0; nodes],
            touched: Vec::new(),
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

    fn enter(&mut self, node: u32, layer: u32) {
        self.mark[node as usize] = self.round;
        self.layer[node as usize] = layer;
        self.next[node as usize] = 0;
    }
}
