//! Successive shortest paths from nodes with an excess to nodes with a deficit.

use std::hint::black_box;

use super::Input;
use super::arc_cost::{ArcCost, CostTable};
use super::cost::Cost;
use super::network::{DetoursOf, Network};
use super::paths::{PathEdge, PathSearch};
use crate::planning::budget::{Budget, Spent};
use crate::planning::group::{Csr, NONE};
use crate::planning::sticky::bits::Bits;
use crate::planning::sticky::by_member::{by_member, place};

/// Where there are racks, the first edges of this number of nodes are read at once. In a chain of members without racks, the
/// additional instructions cost more than they saved.
const AHEAD: usize = 16;

/// An edge out of a node, as the node's list has it.
struct Edge {
    place: u32,
    to: u32,
    kind: EdgeKind,
}

/// The kinds of edges.
#[derive(Debug, Clone, Copy)]
enum EdgeKind {
    /// An arc between a row and a member. Its number is searched only where a path leads over it.
    Arc(ArcCost),
    /// A detour. Detours are numbered behind the arcs.
    Detour(u32),
    /// Between a member and the hub of its block.
    Hub,
}

pub(super) struct Flow<'a, C, const RACKS: bool> {
    network: &'a Network<'a>,
    /// The arcs of the network: row to its members, and member to its rows.
    rows: &'a Csr,
    rows_of: &'a Csr,
    members: u32,
    first_row: u32,
    first_block: u32,
    /// By arc of the problem, its flow and the numbers that its costs depend on.
    taken: Vec<u32>,
    held: &'a [u32],
    proposed: &'a [u32],
    /// By arc, and by place of an arc at its member.
    costs: Vec<ArcCost>,
    costs_of_members: Vec<ArcCost>,
    cost_table: CostTable<C>,
    /// By detour, its flow, and whether a partition costs a rack miss.
    over_detours: Vec<u32>,
    far_detours: Bits,
    /// By place of an arc at its member, whether it has a positive flow.
    carrying: Bits,
    /// By place of a detour at a node, whether it has residual capacity away from the node: in its own direction always, against
    /// it while its flow is positive.
    open: Bits,
    /// By member, whether it uses its right to `low + 1`.
    raised: Vec<bool>,
    /// By node, its excess (positive) or its deficit (negative).
    excess: Vec<i64>,
    potential: Vec<C>,
}

impl<'a, C: Cost, const RACKS: bool> Flow<'a, C, RACKS> {
    pub(super) fn new(network: &'a Network<'a>, input: Input<'a>) -> Self {
        let Input { problem, proposed, order, detours, start } = input;
        let (nodes, members) = (network.nodes(), network.rows_of.len());
        let (rack, moved) = C::weights(order, nodes, RACKS);
        let held = problem.held.as_slice();
        let cost = |arc: u32| {
            let (known, far) = (network.arc(arc) as usize, RACKS && problem.mismatched(network.arc(arc)));
            ArcCost::new(start.taken[known], held[known], proposed[known], far)
        };
        let costs: Vec<ArcCost> = (0..network.arcs.items().len() as u32).map(cost).collect();
        let costs_of_members = by_member(&network.rows_of, &network.arcs, &costs);
        let carrying = Bits::new(&costs_of_members, |cost| cost.carries());
        let far_detours = Bits::new(&detours.edges, |edge| edge.mismatch);
        let forward = network.detours.as_ref().map(DetoursOf::forward);
        let open = Bits::new(&forward.unwrap_or_default(), |&forward| forward);
        let (mut excess, mut potential) = (vec![0; nodes], vec![C::from(0); nodes]);
        let mut raised = vec![false; members];
        for member in 0..members {
            let known = network.member(member as u32) as usize;
            excess[member] = start.of_member[known];
            raised[member] = start.raised[known];
        }
        for row in 0..network.arcs.len() as u32 {
            let (node, known) = ((network.first_row + row) as usize, network.row(row) as usize);
            excess[node] = start.of_row[known];
            potential[node] = if start.elsewhere[known] { -(moved + rack) } else { -moved };
        }
        for (hub, &block) in (network.first_block as usize..).zip(&network.blocks) {
            excess[hub] = start.of_block[block as usize];
        }
        let Network { first_row, first_block, .. } = *network;
        Self {
            network,
            rows: &network.arcs,
            rows_of: &network.rows_of,
            members: members as u32,
            first_row,
            first_block,
            taken: start.taken,
            held,
            proposed,
            costs,
            costs_of_members,
            cost_table: CostTable::new(rack, moved),
            over_detours: vec![0; detours.edges.len()],
            far_detours,
            carrying,
            open,
            raised,
            excess,
            potential,
        }
    }

    /// By arc of the problem and then by detour, its flow.
    pub(super) fn into_taken(self) -> Vec<u32> {
        let Self { mut taken, over_detours, .. } = self;
        taken.extend(over_detours);
        taken
    }

    /// Sends every unit of excess to a deficit. False if there is no path: the blocks admit a plan, so a missing path is a defect
    /// of the blocks or of this search.
    pub(super) fn carry_all(&mut self, budget: &Budget<'_>) -> Result<bool, Spent> {
        let mut search = PathSearch::new(self.excess.len());
        let Network { member_starts, row_starts, first_row, first_block, .. } = self.network;
        for block in 0..self.network.blocks.len() {
            let members = member_starts[block]..member_starts[block + 1];
            let rows = first_row + row_starts[block]..first_row + row_starts[block + 1];
            let nodes = members.chain(rows).chain([first_block + block as u32]);
            let (mut sources, mut deficits): (Vec<u32>, Vec<u32>) =
                nodes.filter(|&node| self.excess[node as usize] != 0).partition(|&node| self.excess[node as usize] > 0);
            while !sources.is_empty() {
                budget.spend((sources.len() + deficits.len()) as u64)?;
                search.begin(&sources, &deficits);
                let Some((cost, edges)) = self.find_shortest(&mut search, budget)? else { return Ok(false) };
                self.change_potentials(cost, &search);
                for &source in &sources {
                    self.send(source, edges, &mut search, budget)?;
                }
                sources.retain(|&source| self.excess[source as usize] > 0);
                deficits.retain(|&deficit| self.excess[deficit as usize] < 0);
            }
        }
        // If the deficits were larger than the excesses together, the plan would lack partitions without an error.
        Ok(self.excess.iter().all(|&excess| excess == 0))
    }

    /// The cost of one unit more on an edge out of `node`, by the potentials; never negative.
    #[inline]
    fn reduced(&self, node: u32, to: u32, kind: EdgeKind) -> C {
        let cost = match kind {
            EdgeKind::Arc(cost) if node > to => self.cost_table.next(cost),
            EdgeKind::Arc(cost) => -self.cost_table.last(cost),
            // The edge out of the row has the whole cost of a path over detours. The member at its end neither holds the
            // partition nor is proposed for it, so the cost does not depend on the flow, which is not read.
            EdgeKind::Detour(arc) if RACKS && node.max(to) >= self.first_row => {
                let far = self.far_detours.has(arc - self.costs.len() as u32);
                let cost = self.cost_table.next(ArcCost::new(0, 0, 0, far));
                if node > to { cost } else { -cost }
            }
            EdgeKind::Detour(_) | EdgeKind::Hub => C::from(0),
        };
        let reduced = cost + self.potential[node as usize] - self.potential[to as usize];
        debug_assert!(reduced >= C::from(0), "potentials stay feasible");
        reduced
    }

    /// Calls `visit` with the edges out of `node` that can carry a unit, from the given place of its list on, until it returns
    /// true. Returns the edge for which it returned true.
    #[inline]
    fn find_edge(&self, node: u32, from: u32, mut visit: impl FnMut(&Edge) -> bool) -> Option<Edge> {
        let network = self.network;
        let mut places = 0;
        if node < self.members {
            let (start, end) = (self.rows_of.start(node), self.rows_of.start(node + 1));
            let mut next = start.saturating_add(from);
            while let Some(at) = self.carrying.next(next, end) {
                let (row, cost) = (self.rows_of.items()[at as usize], self.costs_of_members[at as usize]);
                let edge = Edge { place: at - start, to: self.first_row + row, kind: EdgeKind::Arc(cost) };
                if visit(&edge) {
                    return Some(edge);
                }
                next = at + 1;
            }
            places = end - start;
        } else if node >= self.first_block {
            let raisable = network.raisable.row(node - self.first_block);
            for (&to, place) in raisable.iter().skip(from as usize).zip(from..) {
                if self.raised[to as usize] {
                    let edge = Edge { place, to, kind: EdgeKind::Hub };
                    if visit(&edge) {
                        return Some(edge);
                    }
                }
            }
            return None;
        } else if node >= self.first_row {
            let row = node - self.first_row;
            let start = self.rows.start(row);
            let of_row = self.rows.row(row).iter().zip(&self.costs[start as usize..]);
            for ((&to, &cost), place) in of_row.skip(from as usize).zip(from..) {
                let edge = Edge { place, to, kind: EdgeKind::Arc(cost) };
                if visit(&edge) {
                    return Some(edge);
                }
            }
            places = self.rows.row(row).len() as u32;
        }
        if RACKS && let Some(detours) = &network.detours {
            let here = detours.places(node);
            let mut next = here.start.saturating_add(from.saturating_sub(places));
            while let Some(at) = self.open.next(next, here.end) {
                let (to, arc) = detours.ends[at as usize];
                let edge = Edge { place: places + at - here.start, to, kind: EdgeKind::Detour(arc) };
                if visit(&edge) {
                    return Some(edge);
                }
                next = at + 1;
            }
            places += here.end - here.start;
        }
        if node < self.members && from <= places && !self.raised[node as usize] {
            let hub = network.hub_of[node as usize];
            if hub != NONE {
                let edge = Edge { place: places, to: hub, kind: EdgeKind::Hub };
                if visit(&edge) {
                    return Some(edge);
                }
            }
        }
        None
    }

    /// Calls `visit` with the edges into `node` that can carry a unit: with the node at the other end.
    fn each_edge_into(&self, node: u32, mut visit: impl FnMut(u32, EdgeKind)) {
        let network = self.network;
        if node < self.members {
            let costs = &self.costs_of_members[self.rows_of.start(node) as usize..];
            for (&row, &cost) in self.rows_of.row(node).iter().zip(costs) {
                visit(self.first_row + row, EdgeKind::Arc(cost));
            }
            let hub = network.hub_of[node as usize];
            if self.raised[node as usize] && hub != NONE {
                visit(hub, EdgeKind::Hub);
            }
        } else if node >= self.first_block {
            let raisable = network.raisable.row(node - self.first_block).iter().copied();
            let raised = |member: &u32| self.raised[*member as usize];
            raisable.filter(|member| !raised(member)).for_each(|member| visit(member, EdgeKind::Hub));
            return;
        } else if node >= self.first_row {
            let row = node - self.first_row;
            let start = self.rows.start(row);
            let of_row = self.rows.row(row).iter().zip(&self.costs[start as usize..]);
            for (&member, &cost) in of_row.filter(|(_, cost)| cost.carries()) {
                visit(member, EdgeKind::Arc(cost));
            }
        }
        if RACKS && let Some(detours) = &network.detours {
            let places = detours.places(node);
            for &(other, arc) in &detours.ends[places.start as usize..places.end as usize] {
                if other > node || self.over_detours[arc as usize - self.costs.len()] > 0 {
                    visit(other, EdgeKind::Detour(arc));
                }
            }
        }
    }

    /// The number of the arc or of the detour; [`NONE`] for the edge between a member and the hub of its block.
    fn arc(&self, node: u32, to: u32, kind: EdgeKind) -> u32 {
        match kind {
            EdgeKind::Arc(_) => place(self.rows, node.max(to) - self.first_row, node.min(to)),
            EdgeKind::Detour(arc) => arc,
            EdgeKind::Hub => NONE,
        }
    }

    fn capacity(&self, node: u32, to: u32, arc: u32) -> i64 {
        if arc == NONE {
            return 1;
        }
        if arc as usize >= self.costs.len() {
            let carried = self.over_detours[arc as usize - self.costs.len()];
            return if node > to { i64::MAX } else { i64::from(carried) };
        }
        let known = self.network.arc(arc) as usize;
        let (taken, held, proposed) = (self.taken[known], self.held[known], self.proposed[known]);
        if node > to {
            let step = [held, proposed].into_iter().filter(|&step| step > taken).min();
            step.map_or(i64::MAX, |step| i64::from(step - taken))
        } else {
            let step = [held, proposed].into_iter().filter(|&step| step < taken).max().unwrap_or(0);
            i64::from(taken - step)
        }
    }

    fn carry(&mut self, node: u32, to: u32, arc: u32, amount: i64) {
        if arc == NONE {
            if node < self.members {
                self.raised[node as usize] = true;
            } else {
                self.raised[to as usize] = false;
            }
            return;
        }
        let change = |taken: u32| if node > to { taken + amount as u32 } else { taken - amount as u32 };
        let lower = node.min(to);
        if arc as usize >= self.costs.len() {
            let taken = &mut self.over_detours[arc as usize - self.costs.len()];
            *taken = change(*taken);
            if let Some(detours) = &self.network.detours {
                self.open.put(detours.place(lower, arc), *taken > 0);
            }
            return;
        }
        let known = self.network.arc(arc) as usize;
        let taken = change(self.taken[known]);
        self.taken[known] = taken;
        let cost = &mut self.costs[arc as usize];
        let changed = ArcCost::new(taken, self.held[known], self.proposed[known], cost.is_far());
        if *cost != changed {
            *cost = changed;
            let at = place(self.rows_of, lower, node.max(to) - self.first_row);
            self.costs_of_members[at as usize] = changed;
            self.carrying.put(at, changed.carries());
        }
    }

    /// Searches the shortest paths from sources to deficits: those of the least cost, and of these those with the fewest edges.
    /// Returns their cost and number of edges; `None` if there is no path. The half with the smaller level goes on until both
    /// meet.
    fn find_shortest(&self, search: &mut PathSearch<C>, budget: &Budget<'_>) -> Result<Option<(C, u32)>, Spent> {
        while !search.is_found() {
            // Nodes near the sources count twice: `send` searches most of them again, and near the deficits only those that its
            // paths lead over.
            let against = search.half::<true>().level().len() < 2 * search.half::<false>().level().len();
            let goes_on = if against {
                self.search_level::<true>(search, budget)? || search.advance::<true>()
            } else {
                self.search_level::<false>(search, budget)? || search.advance::<false>()
            };
            if !goes_on {
                break;
            }
        }
        Ok(search.shortest())
    }

    /// Searches the edges of the present level of a half. Returns whether the shortest paths are found.
    fn search_level<const AGAINST: bool>(
        &self,
        search: &mut PathSearch<C>,
        budget: &Budget<'_>,
    ) -> Result<bool, Spent> {
        let mut ahead = 0;
        for at in 0..search.half::<AGAINST>().level().len() {
            let level = search.half::<AGAINST>().level();
            if RACKS && at == ahead {
                ahead = level.len().min(at + AHEAD);
                self.read_ahead(&level[at..ahead]);
            }
            let node = level[at];
            let mut steps = 1;
            if AGAINST {
                self.each_edge_into(node, |from, kind| {
                    steps += 1;
                    if !search.half::<true>().is_settled(from) {
                        search.enter::<true>(self.reduced(from, node, kind), from);
                    }
                });
            } else {
                self.find_edge(node, 0, |edge| {
                    steps += 1;
                    if !search.half::<false>().is_settled(edge.to) {
                        search.enter::<false>(self.reduced(node, edge.to, edge.kind), edge.to);
                    }
                    false
                });
            }
            budget.spend(steps)?;
            if search.is_found() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads what the visits of these nodes read first, and uses nothing of it. The reads do not depend on each other, so the
    /// processor waits for all of them at once; the visits would wait for one after the other.
    #[inline(never)]
    fn read_ahead(&self, nodes: &[u32]) {
        let (mut read, mut first, mut highest) = (0, false, C::from(0));
        for &node in nodes {
            highest = highest.max(self.potential[node as usize]);
            if node >= self.first_row && node < self.first_block {
                let row = node - self.first_row;
                read ^= self.rows.row(row).first().copied().unwrap_or(0);
                first |= self.costs.get(self.rows.start(row) as usize).is_some_and(|cost| cost.carries());
            }
            if let Some(detours) = &self.network.detours {
                read ^= detours.ends.get(detours.places(node).start as usize).map_or(0, |&(to, _)| to);
            }
        }
        // Otherwise the compiler would remove the reads.
        black_box((read, first, highest > C::from(0)));
    }

    /// Changes the potentials so that the shortest paths, which have this cost, have reduced cost 0.
    ///
    /// Nodes nearer to the sources than `near` fall, and nodes nearer to the deficits than `far` rise. Both distances together are
    /// `cost`, so no edge gets a negative reduced cost. All sources change alike, and so do all deficits: therefore the next
    /// shortest paths do not depend on where the halves met.
    fn change_potentials(&mut self, cost: C, search: &PathSearch<C>) {
        let near = search.half::<false>().reach().0.min(cost);
        let far = cost - near;
        for (node, distance) in search.half::<false>().nearer_than(near) {
            self.potential[node as usize] = self.potential[node as usize] + distance - near;
        }
        for (node, distance) in search.half::<true>().nearer_than(far) {
            self.potential[node as usize] = self.potential[node as usize] + far - distance;
        }
    }

    /// Sends units from `source` to deficits along shortest paths, which have this number of edges, until the source has no excess
    /// or no such path leads from it.
    fn send(&mut self, source: u32, edges: u32, search: &mut PathSearch<C>, budget: &Budget<'_>) -> Result<(), Spent> {
        search.path.clear();
        let mut node = source;
        loop {
            if self.excess[node as usize] < 0 {
                node = self.carry_along(source, node, &mut search.path);
                if self.excess[source as usize] == 0 {
                    return Ok(());
                }
                continue;
            }
            let before = search.path.len() as u32;
            let mut steps = 1;
            let onward = if before >= edges {
                None
            } else {
                self.find_edge(node, search.next(node), |edge| {
                    steps += 1;
                    search.may_lead_on(edge.to, before + 1, edges)
                        && self.reduced(node, edge.to, edge.kind) == C::from(0)
                })
            };
            budget.spend(steps)?;
            if let Some(Edge { place, to, kind }) = onward {
                let arc = self.arc(node, to, kind);
                search.set_next(node, place);
                search.path.push(PathEdge { node, place, to, arc });
                node = to;
            } else {
                search.set_dead(node);
                let Some(PathEdge { node: before, place, .. }) = search.path.pop() else { return Ok(()) };
                search.set_next(before, place + 1);
                node = before;
            }
        }
    }

    /// Sends units along a path to a deficit. Then cuts the path before the first edge whose capacity at its cost is used up,
    /// and returns the node at the new end.
    fn carry_along(&mut self, source: u32, end: u32, path: &mut Vec<PathEdge>) -> u32 {
        let most = self.excess[source as usize].min(-self.excess[end as usize]);
        let (mut amount, mut narrowest) = (most, path.len());
        for (at, &PathEdge { node, to, arc, .. }) in path.iter().enumerate() {
            let capacity = self.capacity(node, to, arc);
            if capacity < amount || (capacity == amount && at < narrowest) {
                (amount, narrowest) = (capacity, at);
            }
        }
        for &PathEdge { node, to, arc, .. } in path.iter() {
            self.carry(node, to, arc, amount);
        }
        self.excess[source as usize] -= amount;
        self.excess[end as usize] += amount;
        let node = path.get(narrowest).map_or(end, |step| step.node);
        path.truncate(narrowest);
        node
    }
}
