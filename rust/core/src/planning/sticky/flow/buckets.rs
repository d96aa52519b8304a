//! A queue of nodes by their distance, for a search in which few distances differ.
//!
//! The cost of an edge is one of a few sums of weights, so many nodes have the same distance. A bucket for each distance takes
//! a node in constant time, where a heap would compare it with others.

use super::cost::Cost;

/// The end node of an edge, and the number of edges of the path to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub layer: u32,
    pub node: u32,
}

pub(super) struct Buckets<C> {
    /// Descending, so that the nearest is the last.
    distances: Vec<C>,
    /// By distance, its nodes.
    nodes: Vec<Vec<Entry>>,
    /// Empty buckets, kept for their memory.
    spare: Vec<Vec<Entry>>,
}

impl<C: Cost> Buckets<C> {
    pub(super) fn new() -> Self {
        Self { distances: Vec::new(), nodes: Vec::new(), spare: Vec::new() }
    }

    /// O(log d) for d different distances; O(d) for a new one.
    #[inline]
    pub(super) fn push(&mut self, distance: C, entry: Entry) {
        let at = match self.distances.last() {
            Some(&last) if last == distance => self.distances.len() - 1,
            _ => self.place(distance),
        };
        self.nodes[at].push(entry);
    }

    fn place(&mut self, distance: C) -> usize {
        let at = self.distances.partition_point(|&other| other > distance);
        if self.distances.get(at) != Some(&distance) {
            self.distances.insert(at, distance);
            self.nodes.insert(at, self.spare.pop().unwrap_or_default());
        }
        at
    }

    /// The least distance and its nodes, in the order in which they were pushed.
    pub(super) fn pop(&mut self) -> Option<(C, Vec<Entry>)> {
        Some((self.distances.pop()?, self.nodes.pop()?))
    }

    /// Takes an empty bucket back.
    pub(super) fn keep(&mut self, mut bucket: Vec<Entry>) {
        bucket.clear();
        self.spare.push(bucket);
    }

    pub(super) fn clear(&mut self) {
        self.distances.clear();
        for mut bucket in self.nodes.drain(..) {
            bucket.clear();
            self.spare.push(bucket);
        }
    }
}
