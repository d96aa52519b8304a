//! The cost of a partition on an arc.

use super::cost::Cost;

/// The costs of the next partition on an arc and of the last, in one byte. In a large network nearly each arc that is read misses
/// the processor's cache: the numbers of partitions that decide its costs have twelve bytes.
///
/// ```text
/// carries: 1 bit | far: 1 bit | the last: 2 bits | the next: 2 bits
/// ```
///
/// Of a partition, one bit says that it moves, and one that it is beyond the proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ArcCost(u8);

const BEYOND: u8 = 1;
const MOVES: u8 = 2;
const FAR: u8 = 4;

impl ArcCost {
    /// The costs on an arc with a flow of `taken`. `far` is whether a partition costs a rack miss.
    #[inline]
    pub(super) fn new(taken: u32, held: u32, proposed: u32, far: bool) -> Self {
        let of_unit = |unit: u32| (u8::from(unit > proposed) * BEYOND) | (u8::from(unit > held) * MOVES);
        Self(of_unit(taken + 1) | of_unit(taken) << 2 | u8::from(far) << 4 | u8::from(taken > 0) << 5)
    }

    /// Whether the arc has a positive flow.
    #[inline]
    pub(super) fn carries(self) -> bool {
        self.0 >> 5 != 0
    }

    #[inline]
    pub(super) fn is_far(self) -> bool {
        self.0 & FAR << 2 != 0
    }

    #[inline]
    fn next(self) -> u8 {
        self.0 & (BEYOND | MOVES) | self.0 >> 2 & FAR
    }

    #[inline]
    fn last(self) -> u8 {
        self.0 >> 2 & (BEYOND | MOVES | FAR)
    }
}

/// The cost of a partition, by its bits and that of the rack.
pub(super) struct CostTable<C>([C; 8]);

impl<C: Cost> CostTable<C> {
    /// `rack` is the cost of a partition on another rack and `moved` that of one that moves; the distance costs 1.
    pub(super) fn new(rack: C, moved: C) -> Self {
        let none = C::from(0);
        Self([0, 1, 2, 3, 4, 5, 6, 7].map(|kind: u8| {
            let distance = C::from(if kind & BEYOND != 0 { 1 } else { -1 });
            let moved = if kind & MOVES != 0 { moved } else { none };
            distance + moved + if kind & FAR != 0 { rack } else { none }
        }))
    }

    /// The cost of one partition more on the arc.
    #[inline]
    pub(super) fn next(&self, cost: ArcCost) -> C {
        self.0[usize::from(cost.next())]
    }

    /// The cost of the last partition on the arc, which has a positive flow.
    #[inline]
    pub(super) fn last(&self, cost: ArcCost) -> C {
        self.0[usize::from(cost.last())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_costs_its_move_its_rack_and_its_distance() {
        let (rack, moved) = (100, 10);
        let costs = CostTable::<i64>::new(rack, moved);
        let wanted = |unit: u32, held: u32, proposed: u32, far: bool| {
            i64::from(far) * rack + i64::from(unit > held) * moved + if unit > proposed { 1 } else { -1 }
        };
        for (taken, held, proposed) in (0..27).map(|at| (at / 9, at / 3 % 3, at % 3)) {
            for far in [false, true] {
                let cost = ArcCost::new(taken, held, proposed, far);
                assert_eq!((cost.carries(), cost.is_far()), (taken > 0, far));
                assert_eq!(costs.next(cost), wanted(taken + 1, held, proposed, far));
                assert_eq!(costs.last(cost), wanted(taken, held, proposed, far));
            }
        }
    }
}
