//! The arcs of each member. [`RowProblem`](super::rows::RowProblem) has them row after row.

use super::bits::Bits;
use crate::planning::group::Csr;

/// An arc of a member with its row. A search passes most arcs because of their row alone. The pairs of a member are side by side,
/// and its arcs are far apart: in a large group, a row that is read from its arc misses the processor's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowArc {
    pub row: u32,
    pub arc: u32,
}

/// Member to its arcs, by ascending row.
#[derive(Debug, Clone)]
pub(super) struct ArcsOf {
    starts: Vec<u32>,
    arcs: Vec<RowArc>,
}

impl ArcsOf {
    /// The arcs of `members` members. `arcs` has row to members, by arc. O(arcs + members).
    pub(super) fn new(arcs: &Csr, members: usize) -> Self {
        let mut starts = vec![0; members + 1];
        for &member in arcs.items() {
            starts[member as usize + 1] += 1;
        }
        for member in 0..members {
            starts[member + 1] += starts[member];
        }
        let mut next = starts[..members].to_vec();
        let mut grouped = vec![RowArc { row: 0, arc: 0 }; arcs.items().len()];
        let mut arc = 0;
        for (row, of_row) in (0..).zip(arcs.rows()) {
            for &member in of_row {
                let place = &mut next[member as usize];
                grouped[*place as usize] = RowArc { row, arc };
                *place += 1;
                arc += 1;
            }
        }
        Self { starts, arcs: grouped }
    }

    /// By place in [`ArcsOf::arcs`], the value of the arc. `arcs` are those of [`ArcsOf::new`], and `values` those of the arcs. O(arcs +
    /// members).
    pub(super) fn by_member<T: Copy + Default>(&self, arcs: &Csr, values: &[T]) -> Vec<T> {
        let mut by_member = vec![T::default(); self.arcs.len()];
        let mut next = self.starts[..self.len()].to_vec();
        for (&value, &member) in values.iter().zip(arcs.items()) {
            let place = &mut next[member as usize];
            by_member[*place as usize] = value;
            *place += 1;
        }
        by_member
    }

    /// One bit for each place in [`ArcsOf::arcs`]: whether `is_set` holds for the arc. `arcs` are those of [`ArcsOf::new`]. They are
    /// read in their own order, and only the bits are written anywhere in memory: in a large group, a read of each arc from its
    /// place would miss the processor's cache. O(arcs + members).
    pub(super) fn bits(&self, arcs: &Csr, is_set: impl Fn(u32) -> bool) -> Bits {
        let mut bits = Bits::zeros(self.arcs.len());
        let mut next = self.starts[..self.len()].to_vec();
        for (arc, &member) in (0..).zip(arcs.items()) {
            let place = &mut next[member as usize];
            if is_set(arc) {
                bits.put(*place, true);
            }
            *place += 1;
        }
        bits
    }

    /// The number of members.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The place in [`ArcsOf::arcs`] of a member's first arc. At the number of members: the number of arcs.
    pub(super) fn start(&self, member: u32) -> u32 {
        self.starts[member as usize]
    }

    /// The place in [`ArcsOf::arcs`] of an arc of the member. O(log arcs of the member).
    pub(super) fn place(&self, member: u32, arc: u32) -> u32 {
        let within = self.of_member(member).partition_point(|other| other.arc < arc) as u32;
        let place = self.start(member) + within;
        debug_assert_eq!(self.arcs[place as usize].arc, arc);
        place
    }

    /// The arcs of one member.
    pub(super) fn of_member(&self, member: u32) -> &[RowArc] {
        &self.arcs[self.start(member) as usize..self.start(member + 1) as usize]
    }

    /// The arcs of all members, one member after the other.
    pub(super) fn arcs(&self) -> &[RowArc] {
        &self.arcs
    }
}
