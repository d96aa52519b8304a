//! The state of a search for shortest paths from sources to deficits.
//!
//! A search from the sources alone would pass a large part of a block: many paths lead to the hub of the block, from which edges
//! lead to every member that uses its right to `low + 1`. Therefore the search has a second half, which leads from the deficits
//! against the edges (Pohl, Bi-directional search, 1971). Both halves end where they meet:
//!
//! ```text
//! source ─► row ─► member ─► hub ─► member ─► deficit
//!    0       1        2                                  layers from the sources
//!                             2        1         0       layers from the deficits
//! ```
//!
//! The shortest paths are those that a search from the sources alone finds.

use super::buckets::Entry;
use super::cost::Cost;
use super::half::HalfSearch;

/// An edge of a path: from its node, the place in the node's list.
pub(super) struct PathEdge {
    pub(super) node: u32,
    pub(super) place: u32,
    pub(super) to: u32,
    pub(super) arc: u32,
}

/// The edges of a node that paths have tried.
#[derive(Clone, Copy)]
struct Tried {
    /// The round of the search. In another round, no edge was tried.
    round: u32,
    /// The first place in the node's list of edges that was not tried; [`DEAD`] if no path leads through the node.
    next: u32,
}

/// The next place of a node through which no path leads.
const DEAD: u32 = u32::MAX;

/// Both halves of the search, and the paths that lead over them.
pub(super) struct PathSearch<C> {
    round: u32,
    from_sources: HalfSearch<C>,
    from_deficits: HalfSearch<C>,
    /// The cost and the number of edges of the shortest path that is known.
    shortest: Option<(C, u32)>,
    /// Whether paths have a cost. They have none until a half has searched all edges without reduced cost.
    has_cost: bool,
    tried: Vec<Tried>,
    pub(super) path: Vec<PathEdge>,
}

impl<C: Cost> PathSearch<C> {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            round: 0,
            from_sources: HalfSearch::new(nodes),
            from_deficits: HalfSearch::new(nodes),
            shortest: None,
            has_cost: false,
            tried: vec![Tried { round: 0, next: 0 }; nodes],
            path: Vec::new(),
        }
    }

    pub(super) fn begin(&mut self, sources: &[u32], deficits: &[u32]) {
        self.round += 1;
        self.from_sources.begin(self.round, sources);
        self.from_deficits.begin(self.round, deficits);
        (self.shortest, self.has_cost) = (None, false);
    }

    /// The half from the sources; with `AGAINST`, the half from the deficits, which leads against the edges.
    #[inline]
    pub(super) fn half<const AGAINST: bool>(&self) -> &HalfSearch<C> {
        if AGAINST { &self.from_deficits } else { &self.from_sources }
    }

    /// A half, and the other.
    #[inline]
    fn halves<const AGAINST: bool>(&mut self) -> (&mut HalfSearch<C>, &mut HalfSearch<C>) {
        let Self { from_sources, from_deficits, .. } = self;
        if AGAINST { (from_deficits, from_sources) } else { (from_sources, from_deficits) }
    }

    /// Enters the node at the end of an edge of the present level of a half. The half has not settled the node.
    pub(super) fn enter<const AGAINST: bool>(&mut self, reduced: C, node: u32) {
        let has_cost = self.has_cost;
        let (half, other) = self.halves::<AGAINST>();
        let (distance, layer) = half.reach();
        let (distance, entry) = (distance + reduced, Entry { layer: layer + 1, node });
        if reduced == C::from(0) {
            half.settle(node, entry.layer);
            // As long as no path has a cost, the other nodes have labels of deferred edges.
            if !has_cost && !other.is_settled(node) {
                return;
            }
        } else if !has_cost {
            half.defer(reduced, entry);
            return;
        } else if !half.shorten(distance, entry) {
            return;
        }
        meet(&mut self.shortest, distance, entry, if AGAINST { &self.from_sources } else { &self.from_deficits });
    }

    /// Whether no path is shorter than the known one, and each node of all paths as short is settled on a half.
    ///
    /// A node that a half has not settled is at least an edge behind the present level of the half. So a path over a node that no
    /// half has settled has at least two edges more than both levels together.
    #[inline]
    pub(super) fn is_found(&self) -> bool {
        let ((near, first), (far, second)) = (self.from_sources.reach(), self.from_deficits.reach());
        self.shortest.is_some_and(|shortest| shortest <= (near + far, first + second + 1))
    }

    /// Goes on to the next level of a half; false if there is none.
    pub(super) fn advance<const AGAINST: bool>(&mut self) -> bool {
        if self.halves::<AGAINST>().0.advance() {
            return true;
        }
        if self.has_cost {
            return false;
        }
        self.has_cost = true;
        let Self { from_sources, from_deficits, shortest, .. } = self;
        from_sources.look_beyond(|distance, entry| meet(shortest, distance, entry, from_deficits));
        from_deficits.look_beyond(|distance, entry| meet(shortest, distance, entry, from_sources));
        self.halves::<AGAINST>().0.advance()
    }

    /// The cost and the number of edges of the shortest known path.
    pub(super) fn shortest(&self) -> Option<(C, u32)> {
        self.shortest
    }

    /// Whether a shortest path may lead over the node after this number of its `edges`, and on to a deficit.
    #[inline]
    pub(super) fn may_lead_on(&self, node: u32, after: u32, edges: u32) -> bool {
        let is_there = if self.from_deficits.is_settled(node) {
            after + self.from_deficits.layer_of(node) == edges
        } else {
            self.from_sources.is_settled(node) && self.from_sources.layer_of(node) == after
        };
        is_there && self.next(node) != DEAD
    }

    /// The first place in the node's list of edges that was not tried.
    pub(super) fn next(&self, node: u32) -> u32 {
        let Tried { round, next } = self.tried[node as usize];
        if round == self.round { next } else { 0 }
    }

    pub(super) fn set_next(&mut self, node: u32, next: u32) {
        self.tried[node as usize] = Tried { round: self.round, next };
    }

    /// Marks a node through which no path leads.
    pub(super) fn set_dead(&mut self, node: u32) {
        self.set_next(node, DEAD);
    }
}

/// Keeps the path over a node that a half has reached, if the other half has reached it too and the path is the shortest.
fn meet<C: Cost>(shortest: &mut Option<(C, u32)>, distance: C, Entry { layer, node }: Entry, other: &HalfSearch<C>) {
    if let Some((rest, edges)) = other.label(node) {
        let path = (distance + rest, layer + edges);
        if shortest.is_none_or(|shortest| path < shortest) {
            *shortest = Some(path);
        }
    }
}
