//! Values of arcs, member after member. [`RowProblem`](super::rows::RowProblem) has arcs row after row: a row and one of its members. A
//! member and one of its rows are the same arc, at another place.

use super::bits::Bits;
use crate::planning::group::Csr;

/// By place of an arc at its member, its value. `arcs` is row to members, and `values` are those of its arcs; `rows_of` is member to rows.
/// O(arcs + members).
pub(super) fn by_member<T: Copy + Default>(rows_of: &Csr, arcs: &Csr, values: &[T]) -> Vec<T> {
    let mut by_member = vec![T::default(); values.len()];
    let mut next = starts(rows_of);
    for (&value, &member) in values.iter().zip(arcs.items()) {
        let place = &mut next[member as usize];
        by_member[*place as usize] = value;
        *place += 1;
    }
    by_member
}

/// By place of an arc at its member, whether `is_set` holds for it; otherwise as [`by_member`]. The arcs are read in their own order,
/// and only the bits are written anywhere in memory: in a large group, a read of each arc from its place would miss the
/// processor's cache.
pub(super) fn bits_by_member(rows_of: &Csr, arcs: &Csr, is_set: impl Fn(u32) -> bool) -> Bits {
    let mut bits = Bits::zeros(arcs.items().len());
    let mut next = starts(rows_of);
    for (arc, &member) in (0..).zip(arcs.items()) {
        let place = &mut next[member as usize];
        if is_set(arc) {
            bits.put(*place, true);
        }
        *place += 1;
    }
    bits
}

fn starts(rows_of: &Csr) -> Vec<u32> {
    (0..rows_of.len() as u32).map(|member| rows_of.start(member)).collect()
}

/// The place of an item in a row, which has it; rows are ascending. With `rows_of` and a member it is the place of the arc at
/// the member, with `arcs` and a row it is the arc. O(log row).
pub(super) fn place(csr: &Csr, row: u32, item: u32) -> u32 {
    let place = csr.start(row) + csr.row(row).partition_point(|&other| other < item) as u32;
    debug_assert_eq!(csr.items()[place as usize], item);
    place
}
