//! The cost of a path: partitions on other racks, moved ones, and the distance to the proposal, in one number.

use std::ops::{Add, Neg, Sub};

use crate::planning::objective::RackOrder;

pub(super) trait Cost:
    Copy + Ord + Add<Output = Self> + Sub<Output = Self> + Neg<Output = Self> + From<i32>
{
    /// The weight of one partition on another rack, and of a moved one. In the given order, each outweighs any chain of the
    /// objectives after it. The last objective is the distance, which costs 1. Without racks, only moves outweigh the distance.
    fn weights(order: RackOrder, nodes: usize, racks: bool) -> (Self, Self);
}

/// The largest network in which three objectives fit 64 bits: a path has fewer edges than there are nodes, and each edge costs
/// less than (4 nodes + 4)² + 4 nodes.
const MOST_NODES: usize = 1 << 18;

/// Whether the costs of racks, moves and distance fit 64 bits. Two objectives fit them up to a billion nodes.
pub(super) fn fits_64_bits(nodes: usize) -> bool {
    nodes <= MOST_NODES
}

impl Cost for i64 {
    fn weights(order: RackOrder, nodes: usize, racks: bool) -> (Self, Self) {
        let weight = 4 * nodes as i64 + 4;
        match order {
            _ if !racks => (0, weight),
            RackOrder::BeforeStickiness => (weight * weight, weight),
            RackOrder::AfterStickiness => (weight, weight * weight),
        }
    }
}

impl Cost for i128 {
    fn weights(order: RackOrder, nodes: usize, racks: bool) -> (Self, Self) {
        let weight = 4 * nodes as i128 + 4;
        match order {
            _ if !racks => (0, weight),
            RackOrder::BeforeStickiness => (weight * weight, weight),
            RackOrder::AfterStickiness => (weight, weight * weight),
        }
    }
}
