//! Successive shortest paths from nodes with an excess to nodes with a deficit.

use std::hint::black_box;

use super::Input;
use super::cost::Cost;
use super::network::{DetoursOf, Network};
use super::paths::{PathEdge, PathSearch};
use crate::planning::budget::{Budget, Spent};
use crate::planning::group::{Csr, NONE};
use crate::planning::sticky::arcs_of::{ArcsOf, RowArc};
use crate::planning::sticky::bits::Bits;

/// Where there are racks, the first edges of this number of nodes are read at once. In a chain of members without racks, the
/// additional instructions cost more than they saved.
const AHEAD: usize = 16;

/// An arc of a row and a member, with the numbers that its cost depends on.
#[derive(Debug, Clone, Copy)]
struct Arc {
    /// Its flow.
    taken: u32,
    held: u32,
    proposed: u32,
}

/// An edge out of a node, as the node's list has it.
struct Edge {
    place: u32,
    to: u32,
    /// Detours are numbered behind the arcs. [`NONE`] for the edge between a member and the hub of its block.
    arc: u32,
}

pub(super) struct Flow<'a, C, const RACKS: bool> {
    network: &'a Network<'a>,
    /// The arcs of the network: row to its members, and member to its arcs.
    rows: &'a Csr,
    arcs_of: &'a ArcsOf,
    members: u32,
    first_row: u32,
    first_block: u32,
    arcs: Vec<Arc>,
    /// By detour, its flow.
    over_detours: Vec<u32>,
    /// Where there are racks, by arc and then by detour, whether a partition costs a rack miss.
    far: Bits,
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
    /// The cost of a partition on another rack, and of one that moves; the distance costs 1.
    rack: C,
    moved: C,
}

impl<'a, C: Cost, const RACKS: bool> Flow<'a, C, RACKS> {
    pub(super) fn new(network: &'a Network<'_>, input: &Input<'_>) -> Self {
        let Input { problem, proposed, order, detours, start } = input;
        let (nodes, members) = (network.nodes(), network.arcs_of.len());
        let (rack, moved) = C::weights(*order, nodes, RACKS);
        let of_arcs = 0..network.arcs.items().len() as u32;
        let arc = |arc: u32| {
            let known = network.arc(arc) as usize;
            Arc { taken: start.taken[known], held: problem.held[known], proposed: proposed[known] }
        };
        let arcs: Vec<Arc> = of_arcs.clone().map(arc).collect();
        let carrying = network.arcs_of.bits(&network.arcs, |arc| arcs[arc as usize].taken > 0);
        let mut far = Bits::zeros(if RACKS { arcs.len() + detours.edges.len() } else { 0 });
        if RACKS {
            let mismatches = of_arcs.map(|arc| problem.mismatched(network.arc(arc)));
            for (at, mismatch) in (0..).zip(mismatches.chain(detours.edges.iter().map(|edge| edge.mismatch))) {
                far.put(at, mismatch);
            }
        }
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
            arcs_of: &network.arcs_of,
            members: members as u32,
            first_row,
            first_block,
            arcs,
            over_detours: vec![0; detours.edges.len()],
            far,
            carrying,
            open,
            raised,
            excess,
            potential,
            rack,
            moved,
        }
    }

    /// By arc of the network, its flow.
    pub(super) fn taken(&self) -> impl ExactSizeIterator<Item = u32> {
        self.arcs.iter().map(|arc| arc.taken)
    }

    /// By detour, its flow.
    pub(super) fn over_detours(&self) -> &[u32] {
        &self.over_detours
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

    /// The cost of the `unit`-th partition on an arc, from 1.
    #[inline]
    fn cost(&self, arc: u32, unit: u32) -> C {
        let Arc { held, proposed, .. } = self.arcs[arc as usize];
        let distance = C::from(if unit > proposed { 1 } else { -1 });
        let cost = if unit > held { distance + self.moved } else { distance };
        self.with_rack(cost, arc)
    }

    #[inline]
    fn with_rack(&self, cost: C, arc: u32) -> C {
        if RACKS && self.far.has(arc) { cost + self.rack } else { cost }
    }

    /// The cost of one unit more on an edge out of `node`, by the potentials; never negative.
    #[inline]
    fn reduced(&self, node: u32, to: u32, arc: u32) -> C {
        let cost = match self.arcs.get(arc as usize) {
            Some(&Arc { taken, .. }) if node > to => self.cost(arc, taken + 1),
            Some(&Arc { taken, .. }) => -self.cost(arc, taken),
            // The edge out of the row has the whole cost of a path over detours. The member at its end neither holds the
            // partition nor is proposed for it, so the cost does not depend on the flow, which is not read.
            None if RACKS && arc != NONE && node.max(to) >= self.first_row => {
                let cost = self.with_rack(self.moved + C::from(1), arc);
                if node > to { cost } else { -cost }
            }
            None => C::from(0),
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
            let (start, end) = (self.arcs_of.start(node), self.arcs_of.start(node + 1));
            let mut next = start.saturating_add(from);
            while let Some(at) = self.carrying.next(next, end) {
                let RowArc { row, arc } = self.arcs_of.arcs()[at as usize];
                let edge = Edge { place: at - start, to: self.first_row + row, arc };
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
                    let edge = Edge { place, to, arc: NONE };
                    if visit(&edge) {
                        return Some(edge);
                    }
                }
            }
            return None;
        } else if node >= self.first_row {
            let row = node - self.first_row;
            let start = self.rows.start(row);
            for (&to, place) in self.rows.row(row).iter().skip(from as usize).zip(from..) {
                let edge = Edge { place, to, arc: start + place };
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
                let edge = Edge { place: places + at - here.start, to, arc };
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
                let edge = Edge { place: places, to: hub, arc: NONE };
                if visit(&edge) {
                    return Some(edge);
                }
            }
        }
        None
    }

    /// Calls `visit` with the edges into `node` that can carry a unit: the node at the other end, and the arc.
    fn each_edge_into(&self, node: u32, mut visit: impl FnMut(u32, u32)) {
        let network = self.network;
        if node < self.members {
            for &RowArc { row, arc } in self.arcs_of.of_member(node) {
                visit(self.first_row + row, arc);
            }
            let hub = network.hub_of[node as usize];
            if self.raised[node as usize] && hub != NONE {
                visit(hub, NONE);
            }
        } else if node >= self.first_block {
            let raisable = network.raisable.row(node - self.first_block).iter();
            raisable.filter(|&&member| !self.raised[member as usize]).for_each(|&member| visit(member, NONE));
            return;
        } else if node >= self.first_row {
            let row = node - self.first_row;
            for (arc, &member) in (self.rows.start(row)..).zip(self.rows.row(row)) {
                if self.arcs[arc as usize].taken > 0 {
                    visit(member, arc);
                }
            }
        }
        if RACKS && let Some(detours) = &network.detours {
            let places = detours.places(node);
            for &(other, arc) in &detours.ends[places.start as usize..places.end as usize] {
                if other > node || self.over_detours[arc as usize - self.arcs.len()] > 0 {
                    visit(other, arc);
                }
            }
        }
    }

    fn capacity(&self, node: u32, to: u32, arc: u32) -> i64 {
        if arc == NONE {
            return 1;
        }
        let Some(&Arc { taken, held, proposed }) = self.arcs.get(arc as usize) else {
            let carried = self.over_detours[arc as usize - self.arcs.len()];
            return if node > to { i64::MAX } else { i64::from(carried) };
        };
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
        let of_arcs = self.arcs.len();
        let taken = match self.arcs.get_mut(arc as usize) {
            Some(arc) => &mut arc.taken,
            None => &mut self.over_detours[arc as usize - of_arcs],
        };
        let before = *taken;
        *taken = if node > to { before + amount as u32 } else { before - amount as u32 };
        let carries = *taken > 0;
        if (before > 0) == carries {
            return;
        }
        let lower = node.min(to);
        if (arc as usize) < of_arcs {
            self.carrying.put(self.arcs_of.place(lower, arc), carries);
        } else if let Some(detours) = &self.network.detours {
            self.open.put(detours.place(lower, arc), carries);
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
                self.each_edge_into(node, |from, arc| {
                    steps += 1;
                    if !search.half::<true>().is_settled(from) {
                        search.enter::<true>(self.reduced(from, node, arc), from);
                    }
                });
            } else {
                self.find_edge(node, 0, |edge| {
                    steps += 1;
                    if !search.half::<false>().is_settled(edge.to) {
                        search.enter::<false>(self.reduced(node, edge.to, edge.arc), edge.to);
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
        let (mut read, mut highest) = (0, C::from(0));
        for &node in nodes {
            highest = highest.max(self.potential[node as usize]);
            if node >= self.first_row && node < self.first_block {
                let row = node - self.first_row;
                read ^= self.rows.row(row).first().copied().unwrap_or(0);
                read ^= self.arcs.get(self.rows.start(row) as usize).map_or(0, |arc| arc.taken);
            }
            if let Some(detours) = &self.network.detours {
                read ^= detours.ends.get(detours.places(node).start as usize).map_or(0, |&(to, _)| to);
            }
        }
        // Otherwise the compiler would remove the reads.
        black_box((read, highest > C::from(0)));
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
                        && self.reduced(node, edge.to, edge.arc) == C::from(0)
                })
            };
            budget.spend(steps)?;
            if let Some(Edge { place, to, arc }) = onward {
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
