//! The labels of a search for shortest paths from all nodes at once, and the tree of the arcs that gave them.
//!
//! The label of a node in the tree is the label of its parent plus the cost of the arc between them. If a node gets a lower
//! label, the labels of its descendants are out of date: the descendants leave the tree, and are not visited before they get
//! lower labels too (Tarjan, *Shortest paths*, 1981). If one of them is the new parent, the arcs of the tree from the node to the
//! parent and the arc back have a negative sum: a negative cycle, which is known as soon as it exists.
//!
//! The nodes of the tree are linked in preorder, so the descendants of a node are the deeper nodes that follow it:
//!
//! ```text
//! root ─┬─ a ─┬─ b ── c          preorder  root a b c d e
//!       │     └─ d               depth        0 1 2 3 2 1
//!       └─ e
//! ```

use std::collections::VecDeque;

use crate::planning::group::NONE;

/// The arc by which a node got its label: the node that it starts from, and its cell.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parent {
    pub(super) node: u32,
    pub(super) cell: u32,
}

/// 32 bytes, so a node is in one line of the cache.
#[derive(Debug, Clone, Copy)]
struct TreeNode {
    label: i64,
    /// Also known of a node that left the tree.
    parent: Parent,
    /// The nodes after it and before it in preorder.
    next: u32,
    previous: u32,
    /// [`NONE`] outside the tree.
    depth: u32,
    queued: bool,
    /// Its turn in the queue came while it was outside the tree.
    skipped: bool,
    /// Is in [`SearchTree::removed`].
    removed: bool,
}

pub(super) struct SearchTree {
    /// The nodes of the graph, and the root, whose children have labels that depend on no other node.
    nodes: Vec<TreeNode>,
    /// Nodes whose arcs may give lower labels.
    queue: VecDeque<u32>,
    /// The nodes that left the tree since the last call of [`SearchTree::restore`]; some are in the tree again.
    removed: Vec<u32>,
}

impl SearchTree {
    /// All nodes have label 0, are children of the root, and are queued.
    pub(super) fn new(count: u32) -> Self {
        let node = |at: u32| TreeNode {
            label: 0,
            parent: Parent { node: count, cell: NONE },
            next: if at == count { 0 } else { at + 1 },
            previous: if at == 0 { count } else { at - 1 },
            depth: u32::from(at != count),
            queued: true,
            skipped: false,
            removed: false,
        };
        Self { nodes: (0..=count).map(node).collect(), queue: (0..count).collect(), removed: Vec::new() }
    }

    pub(super) fn label(&self, node: u32) -> i64 {
        self.nodes[node as usize].label
    }

    pub(super) fn labels(self) -> Vec<i64> {
        let root = self.root() as usize;
        self.nodes[..root].iter().map(|node| node.label).collect()
    }

    /// The arc that gave a node its label, or the one that [`SearchTree::lower`] refused.
    pub(super) fn parent(&self, node: u32) -> Parent {
        self.nodes[node as usize].parent
    }

    /// Takes a node of the tree from the queue.
    pub(super) fn pop(&mut self) -> Option<u32> {
        while let Some(at) = self.queue.pop_front() {
            let node = &mut self.nodes[at as usize];
            node.queued = false;
            if node.depth != NONE {
                return Some(at);
            }
            node.skipped = true;
        }
        None
    }

    pub(super) fn enqueue(&mut self, at: u32) {
        let node = &mut self.nodes[at as usize];
        if !node.queued {
            node.queued = true;
            self.queue.push_back(at);
        }
    }

    /// Gives a node a lower label by an arc from another node of the tree, and queues it. Returns false if the arc closes a
    /// cycle: then [`SearchTree::parent`] leads along the cycle, and the tree must be restored.
    ///
    /// Takes a step, and one for each descendant that leaves the tree. Each has entered it by one call, so the calls of a search
    /// take two steps each on average.
    pub(super) fn lower(&mut self, at: u32, label: i64, parent: Parent) -> bool {
        let closed = self.nodes[at as usize].depth != NONE && self.remove(at, parent.node);
        if closed {
            self.nodes[at as usize].parent = parent;
            return false;
        }
        self.insert(at, parent);
        let node = &mut self.nodes[at as usize];
        node.label = label;
        node.skipped = false;
        self.enqueue(at);
        true
    }

    /// Makes the nodes outside the tree children of the root: their labels stay, and depend on no other node.
    pub(super) fn restore(&mut self) {
        let root = self.root();
        for at in std::mem::take(&mut self.removed) {
            let node = &mut self.nodes[at as usize];
            node.removed = false;
            if node.depth == NONE {
                let skipped = std::mem::take(&mut node.skipped);
                self.insert(at, Parent { node: root, cell: NONE });
                if skipped {
                    self.enqueue(at);
                }
            }
        }
    }

    fn root(&self) -> u32 {
        self.nodes.len() as u32 - 1
    }

    /// Takes a node and its descendants out of the tree. Returns whether `other` is one of them.
    fn remove(&mut self, top: u32, other: u32) -> bool {
        let TreeNode { previous, depth, .. } = self.nodes[top as usize];
        let mut at = top;
        let mut found = false;
        loop {
            found |= at == other;
            let node = &mut self.nodes[at as usize];
            node.depth = NONE;
            if !node.removed {
                node.removed = true;
                self.removed.push(at);
            }
            at = node.next;
            if self.nodes[at as usize].depth <= depth {
                break;
            }
        }
        self.nodes[previous as usize].next = at;
        self.nodes[at as usize].previous = previous;
        found
    }

    /// Makes a node outside the tree the first child of its parent.
    fn insert(&mut self, at: u32, parent: Parent) {
        let TreeNode { next, depth, .. } = self.nodes[parent.node as usize];
        self.nodes[parent.node as usize].next = at;
        self.nodes[next as usize].previous = at;
        let node = &mut self.nodes[at as usize];
        *node = TreeNode { parent, next, previous: parent.node, depth: depth + 1, ..*node };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NODES: u32 = 9;

    /// An arc from a node to another, with its cost.
    type Arc = (u32, u32, i64);

    fn any_arcs() -> impl Strategy<Value = Vec<Arc>> {
        proptest::collection::vec((0..NODES, 0..NODES, -3i64..6), 0..30)
    }

    /// Lowers labels until none can be lower, or until an arc closes a cycle: then returns the node that the arc leads to. The
    /// cell of a parent is the number of the arc.
    fn search(tree: &mut SearchTree, arcs: &[Arc]) -> Option<u32> {
        while let Some(node) = tree.pop() {
            for (cell, &(_, to, cost)) in (0u32..).zip(arcs).filter(|(_, arc)| arc.0 == node) {
                let label = tree.label(node) + cost;
                if label < tree.label(to) && !tree.lower(to, label, Parent { node, cell }) {
                    return Some(to);
                }
            }
        }
        None
    }

    /// By two nodes, the cost of the cheapest walk of at most `NODES` arcs (Floyd, Warshall).
    fn cheapest_walks(arcs: &[Arc]) -> Vec<Vec<i64>> {
        let far = i64::MAX / 4;
        let mut cost = vec![vec![far; NODES as usize]; NODES as usize];
        for (node, row) in cost.iter_mut().enumerate() {
            row[node] = 0;
        }
        for &(from, to, arc) in arcs {
            let known = &mut cost[from as usize][to as usize];
            *known = arc.min(*known);
        }
        for over in 0..NODES as usize {
            for from in 0..NODES as usize {
                for to in 0..NODES as usize {
                    let walk = cost[from][over].saturating_add(cost[over][to]);
                    cost[from][to] = walk.min(cost[from][to]);
                }
            }
        }
        cost
    }

    proptest! {
        #[test]
        fn labels_are_the_cheapest_walks_or_a_negative_cycle_is_found(arcs in any_arcs()) {
            let mut tree = SearchTree::new(NODES);
            let closed = search(&mut tree, &arcs);
            let cost = cheapest_walks(&arcs);
            let negative = (0..NODES as usize).any(|node| cost[node][node] < 0);
            prop_assert_eq!(closed.is_some(), negative);
            if !negative {
                let cheapest = |to: usize| cost.iter().map(|row| row[to]).min().expect("nodes");
                prop_assert_eq!(tree.labels(), (0..NODES as usize).map(cheapest).collect::<Vec<_>>());
            }
        }

        #[test]
        fn a_search_goes_on_once_arcs_of_the_cycle_are_gone(mut arcs in any_arcs(), which in 0usize..30) {
            let mut tree = SearchTree::new(NODES);
            while let Some(start) = search(&mut tree, &arcs) {
                let mut cycle = Vec::new();
                let mut at = start;
                loop {
                    let Parent { node, cell } = tree.parent(at);
                    prop_assert_eq!((arcs[cell as usize].0, arcs[cell as usize].1), (node, at));
                    cycle.push(cell);
                    at = node;
                    if at == start {
                        break;
                    }
                }
                let cost: i64 = cycle.iter().map(|&cell| arcs[cell as usize].2).sum();
                prop_assert!(cost < 0);
                // With this cost an arc never lowers a label. A node of the cycle also loses an arc that is not in the cycle: the
                // arc may lead to a node that waits outside the tree for its parent.
                let gone = i64::from(i32::MAX);
                arcs[cycle[0] as usize].2 = gone;
                let nodes: Vec<u32> = cycle.iter().map(|&cell| arcs[cell as usize].0).collect();
                let mut others: Vec<&mut Arc> = arcs.iter_mut().filter(|arc| nodes.contains(&arc.0)).collect();
                let other = which % others.len();
                others[other].2 = gone;
                tree.restore();
                for node in nodes {
                    tree.enqueue(node);
                }
            }
            let labels = tree.labels();
            for (from, to, cost) in arcs {
                prop_assert!(labels[from as usize] + cost >= labels[to as usize]);
            }
        }
    }
}
