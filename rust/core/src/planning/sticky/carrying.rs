//! The arcs of each member with a positive flow. A search goes from a member to the rows of these arcs only: of the arcs of a
//! member that reads thousands of topics, few have a flow. The same bits mark the detours of a node with residual capacity away
//! from the node.

use crate::planning::group::Csr;

/// One bit for each arc, in the order of [`RowProblem::arcs_of`](super::rows::RowProblem::arcs_of): member after member.
pub(super) struct Carrying {
    words: Vec<u64>,
}

impl Carrying {
    /// `members` is the member of each arc, and `arcs_of` the arcs of each member. O(arcs).
    pub(super) fn new(members: &[u32], arcs_of: &Csr, carries: impl Fn(usize) -> bool) -> Self {
        let mut words = vec![0u64; members.len().div_ceil(64)];
        let mut next: Vec<u32> = (0..arcs_of.len() as u32).map(|member| arcs_of.start(member)).collect();
        for (arc, &member) in members.iter().enumerate() {
            let at = next[member as usize];
            next[member as usize] += 1;
            words[at as usize / 64] |= u64::from(carries(arc)) << (at % 64);
        }
        Self { words }
    }

    /// One bit for each place, in any order.
    pub(super) fn of_places(carries: &[bool]) -> Self {
        let mut words = vec![0u64; carries.len().div_ceil(64)];
        for (at, &carries) in carries.iter().enumerate() {
            words[at / 64] |= u64::from(carries) << (at % 64);
        }
        Self { words }
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
    pub(super) fn set(&mut self, arcs_of: &Csr, member: u32, arc: u32, carries: bool) {
        let within = arcs_of.row(member).partition_point(|&other| other < arc) as u32;
        let at = arcs_of.start(member) + within;
        debug_assert_eq!(arcs_of.row(member).get(within as usize), Some(&arc));
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
