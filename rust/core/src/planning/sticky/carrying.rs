//! The arcs of each member with a positive flow. A search goes from a member to the rows of these arcs only: of the arcs of a
//! member that reads thousands of topics, few have a flow. The same bits mark the detours of a node with residual capacity away
//! from the node.

use super::arcs_of::ArcsOf;

/// One bit for each arc, in the order of [`RowProblem::arcs_of`](super::rows::RowProblem::arcs_of): member after member.
pub(super) struct Carrying {
    words: Vec<u64>,
}

impl Carrying {
    /// One bit for each place, in any order. O(places).
    pub(super) fn new<P>(places: &[P], carries: impl Fn(&P) -> bool) -> Self {
        let word = |places: &[P]| (0..).zip(places).fold(0, |word, (at, place)| word | u64::from(carries(place)) << at);
        Self { words: places.chunks(64).map(word).collect() }
    }

    /// The first place in `from..end` whose arc has a positive flow.
    #[inline]
    pub(super) fn next(&self, from: u32, end: u32) -> Option<u32> {
        if from >= end {
            return None;
        }
        let mut at = from as usize / 64;
        let mut word = self.words[at] & (u64::MAX << (from % 64));
        while word == 0 {
            at += 1;
            if at * 64 >= end as usize {
                return None;
            }
            word = self.words[at];
        }
        let found = at as u32 * 64 + word.trailing_zeros();
        Some(found).filter(|&found| found < end)
    }

    /// Sets whether an arc of the member has a positive flow. O(log arcs of the member).
    pub(super) fn set(&mut self, arcs_of: &ArcsOf, member: u32, arc: u32, carries: bool) {
        let within = arcs_of.of_member(member).partition_point(|other| other.arc < arc) as u32;
        let at = arcs_of.start(member) + within;
        debug_assert_eq!(arcs_of.arcs()[at as usize].arc, arc);
        self.put(at, carries);
    }

    /// Sets whether the arc at this place has a positive flow.
    pub(super) fn put(&mut self, at: u32, carries: bool) {
        let bit = 1u64 << (at % 64);
        if carries {
            self.words[at as usize / 64] |= bit;
        } else {
            self.words[at as usize / 64] &= !bit;
        }
    }
}
