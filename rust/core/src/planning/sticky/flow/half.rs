//! One half of a search for shortest paths: the nodes near the sources, or those near the deficits.

use std::ops::Range;

use super::buckets::{Buckets, Entry};
use super::cost::Cost;
use crate::planning::sticky::bits::Bits;

/// The shortest known path between a node and the first nodes of a half. In another round than its own it is invalid.
#[derive(Clone, Copy)]
struct Label<C> {
    round: u32,
    /// The number of edges, and their cost.
    layer: u32,
    distance: C,
}

/// The search from the sources along the edges, or from the deficits against the edges. It settles nodes level by level: the nodes
/// of a level have the same distance and the same layer. Levels come by ascending distance, and at one distance by ascending
/// layer.
pub(super) struct HalfSearch<C> {
    round: u32,
    labels: Vec<Label<C>>,
    /// The nodes whose label is final, level by level.
    settled: Vec<u32>,
    /// By node, whether it is in `settled`, as most nodes at the end of an edge are. The bits stay in a near cache; the label of a
    /// node is a read anywhere in memory.
    is_settled: Bits,
    /// The places in `settled` of the present level, whose edges are the next to be searched.
    level: Range<usize>,
    layer: u32,
    distance: C,
    /// Until [`HalfSearch::look_beyond`], the ends of edges with a reduced cost: those that were a shorter path to their node than
    /// all before. A list of all such edges would be the largest list of a plan.
    beyond: Vec<(C, Entry)>,
    candidates: Buckets<C>,
    /// The candidates at the present distance by ascending layer, and the place of the first that is in no level yet.
    near: Vec<Entry>,
    next_near: usize,
}

impl<C: Cost> HalfSearch<C> {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            round: 0,
            labels: vec![Label { round: 0, layer: 0, distance: C::from(0) }; nodes],
            settled: Vec::new(),
            is_settled: Bits::zeros(nodes),
            level: 0..0,
            layer: 0,
            distance: C::from(0),
            beyond: Vec::new(),
            candidates: Buckets::new(),
            near: Vec::new(),
            next_near: 0,
        }
    }

    /// Begins a round. Its first level is `first`.
    pub(super) fn begin(&mut self, round: u32, first: &[u32]) {
        for node in self.settled.drain(..) {
            self.is_settled.put(node, false);
        }
        self.beyond.clear();
        self.candidates.clear();
        self.near.clear();
        (self.round, self.layer, self.distance, self.next_near) = (round, 0, C::from(0), 0);
        for &node in first {
            self.settle(node, 0);
        }
        self.level = 0..first.len();
    }

    /// The nodes of the present level.
    pub(super) fn level(&self) -> &[u32] {
        &self.settled[self.level.clone()]
    }

    /// The distance and the layer of the present level.
    #[inline]
    pub(super) fn reach(&self) -> (C, u32) {
        (self.distance, self.layer)
    }

    #[inline]
    pub(super) fn is_settled(&self, node: u32) -> bool {
        self.is_settled.has(node)
    }

    /// The layer of a settled node.
    #[inline]
    pub(super) fn layer_of(&self, node: u32) -> u32 {
        self.labels[node as usize].layer
    }

    /// The cost and the number of edges of the shortest known path between the node and the first nodes.
    pub(super) fn label(&self, node: u32) -> Option<(C, u32)> {
        let Label { round, layer, distance } = self.labels[node as usize];
        (round == self.round).then_some((distance, layer))
    }

    /// The settled nodes at a distance below `limit`, each with its distance.
    pub(super) fn nearer_than(&self, limit: C) -> impl Iterator<Item = (u32, C)> {
        let distances = self.settled.iter().map(|&node| (node, self.labels[node as usize].distance));
        distances.take_while(move |&(_, distance)| distance < limit)
    }

    /// Settles a node at the present distance.
    pub(super) fn settle(&mut self, node: u32, layer: u32) {
        self.labels[node as usize] = Label { round: self.round, layer, distance: self.distance };
        self.settled.push(node);
        self.is_settled.put(node, true);
    }

    /// Labels a node if this path to it is shorter than the known one. Returns whether it is.
    fn label_if_shorter(&mut self, distance: C, Entry { layer, node }: Entry) -> bool {
        let label = &mut self.labels[node as usize];
        let shorter = label.round != self.round || (distance, layer) < (label.distance, label.layer);
        if shorter {
            *label = Label { round: self.round, layer, distance };
        }
        shorter
    }

    /// Keeps the end of an edge with a reduced cost for [`HalfSearch::look_beyond`].
    pub(super) fn defer(&mut self, reduced: C, entry: Entry) {
        if self.label_if_shorter(reduced, entry) {
            self.beyond.push((reduced, entry));
        }
    }

    /// Makes a node a candidate if this path to it is shorter than the known one. Returns whether it is.
    pub(super) fn shorten(&mut self, distance: C, entry: Entry) -> bool {
        let shorter = self.label_if_shorter(distance, entry);
        if shorter {
            self.candidates.push(distance, entry);
        }
        shorter
    }

    /// Makes the ends of all edges with a reduced cost candidates, once no node is left at the distance 0. Calls `shortened` with the
    /// paths to them.
    pub(super) fn look_beyond(&mut self, mut shortened: impl FnMut(C, Entry)) {
        let beyond = std::mem::take(&mut self.beyond);
        for &(distance, entry) in &beyond {
            if !self.is_settled(entry.node) {
                self.candidates.push(distance, entry);
                shortened(distance, entry);
            }
        }
        self.beyond = beyond;
    }

    /// Goes on to the next level; false if there is none.
    pub(super) fn advance(&mut self) -> bool {
        let begin = self.level.end;
        self.level = begin..begin;
        if self.settled.len() > begin {
            self.layer += 1;
        } else {
            let Some(layer) = self.next_layer() else { return false };
            self.layer = layer;
        }
        while let Some(&Entry { layer, node }) = self.near.get(self.next_near)
            && layer == self.layer
        {
            self.next_near += 1;
            if !self.is_settled(node) {
                self.settle(node, layer);
            }
        }
        self.level.end = self.settled.len();
        true
    }

    /// The layer of the next candidate that is not settled. Goes on to the distance of this candidate.
    fn next_layer(&mut self) -> Option<u32> {
        loop {
            while let Some(&Entry { layer, node }) = self.near.get(self.next_near) {
                if !self.is_settled(node) {
                    return Some(layer);
                }
                self.next_near += 1;
            }
            let (distance, mut near) = self.candidates.pop()?;
            near.sort_unstable_by_key(|entry| entry.layer);
            (self.distance, self.next_near) = (distance, 0);
            self.candidates.keep(std::mem::replace(&mut self.near, near));
        }
    }
}
