//! What every strategy returns: an owner for each partition.

use crate::group::{Group, NONE};

/// Who gets which partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// By flat partition, the member that gets it; [`NONE`] for a partition that nobody gets.
    pub owner: Vec<u32>,
}

impl Plan {
    /// A plan in which nobody has anything.
    #[must_use]
    pub fn unassigned(group: &Group) -> Self {
        Self { owner: vec![NONE; group.topics().partitions()] }
    }

    /// How many partitions each member has.
    #[must_use]
    pub fn loads(&self, members: usize) -> Vec<u32> {
        let mut loads = vec![0; members];
        for &owner in &self.owner {
            if owner != NONE {
                loads[owner as usize] += 1;
            }
        }
        loads
    }
}
