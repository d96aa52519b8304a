//! The state of a search for paths: the layers of nodes, the distances beyond them, and the present path.

use super::buckets::{Buckets, Entry};
use super::cost::Cost;
use crate::planning::sticky::bits::Bits;

/// An edge of a path: from its node, the place in the node's list.
pub(super) struct PathEdge {
    pub(super) node: u32,
    pub(super) place: u32,
    pub(super) to: u32,
    pub(super) arc: u32,
}

/// The state of a node in the last search. One struct has all fields, since edges lead to nodes anywhere in memory: a visit then
/// reads one place.
#[derive(Clone, Copy)]
pub(super) struct Visit<C> {
    /// The round of the search in which the node got its layer. In another round the layer is invalid.
    pub(super) round: u32,
    pub(super) layer: u32,
    /// The first place in its list of edges that the search has not tried; [`DEAD`] if no path leads through the node.
    pub(super) next: u32,
    /// The round in which the node was marked as leading to a deficit.
    pub(super) leading: u32,
    /// The round in which the node got its distance.
    pub(super) reached: u32,
    /// The number of edges of a shortest path, and its cost.
    pub(super) edges: u32,
    pub(super) distance: C,
}

/// The next place of a node through which no path leads.
pub(super) const DEAD: u32 = u32::MAX;

/// The result of a search. Only the nodes marked with the present round have meaningful entries.
pub(super) struct PathSearch<C> {
    pub(super) round: u32,
    pub(super) visits: Vec<Visit<C>>,
    pub(super) layered: Vec<u32>,
    /// By node, whether it is in `layered`, as most nodes at the end of an edge are. The bits stay in a near cache; the visit of
    /// a node is a read anywhere in memory.
    layered_bits: Bits,
    /// The first layer with a deficit.
    pub(super) last: u32,
    /// The deficits that the layers reach.
    pub(super) ends: Vec<u32>,
    /// Whether `Flow::mark_leading` has marked the nodes that lead to a deficit.
    pub(super) is_marked: bool,
    pub(super) dead_ends: u32,
    /// The ends of the edges with a reduced cost, as `Flow::layer` finds them: candidates if it finds no deficit.
    pub(super) beyond: Vec<(C, Entry)>,
    pub(super) candidates: Buckets<C>,
    /// Scratch space of `Flow::shorten`, kept for its memory.
    pub(super) level: Vec<Entry>,
    pub(super) path: Vec<PathEdge>,
}

impl<C: Cost> PathSearch<C> {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            round: 0,
            visits: vec![
                Visit { round: 0, layer: 0, next: 0, leading: 0, reached: 0, edges: 0, distance: C::from(0) };
                nodes
            ],
            layered: Vec::new(),
            layered_bits: Bits::zeros(nodes),
            last: u32::MAX,
            ends: Vec::new(),
            is_marked: false,
            dead_ends: 0,
            beyond: Vec::new(),
            candidates: Buckets::new(),
            level: Vec::new(),
            path: Vec::new(),
        }
    }

    pub(super) fn begin(&mut self) {
        self.round += 1;
        self.last = u32::MAX;
        for node in self.layered.drain(..) {
            self.layered_bits.put(node, false);
        }
        self.ends.clear();
        self.is_marked = false;
        self.dead_ends = 0;
        self.beyond.clear();
        self.candidates.clear();
    }

    #[inline]
    pub(super) fn is_layered(&self, node: u32) -> bool {
        self.layered_bits.has(node)
    }

    /// Whether the node is in this layer and may lead to a deficit.
    #[inline]
    pub(super) fn may_lead_on(&self, node: u32, in_layer: u32) -> bool {
        let Visit { round, layer, next, leading, .. } = self.visits[node as usize];
        round == self.round && layer == in_layer && next != DEAD && (!self.is_marked || leading == round)
    }

    pub(super) fn enter(&mut self, node: u32, layer: u32) {
        let visit = &mut self.visits[node as usize];
        (visit.round, visit.layer, visit.next) = (self.round, layer, 0);
        self.layered.push(node);
        self.layered_bits.put(node, true);
    }

    /// Enters a distance and its number of edges if the distance is less than the present one or, of equal distances, the number.
    /// Returns whether they were entered.
    pub(super) fn nearer(&mut self, node: u32, distance: C, edges: u32) -> bool {
        let visit = &mut self.visits[node as usize];
        let nearer = visit.reached != self.round || (distance, edges) < (visit.distance, visit.edges);
        if nearer {
            (visit.reached, visit.distance, visit.edges) = (self.round, distance, edges);
        }
        nearer
    }
}
