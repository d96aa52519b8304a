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

/// Why nobody gets a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Nobody subscribes to its topic.
    NoSubscriber,
    /// Another member still holds it and must revoke it first (KIP-429); the next round hands it out.
    Withheld {
        /// Who holds it.
        holder: u32,
    },
    /// Stream join: its number is not below the partition count of the group's smallest topic.
    Beyond {
        /// The smallest topic; of several, the first.
        topic: u32,
    },
    /// Stream join: the member that its number belongs to does not subscribe to its topic.
    OwnerNotSubscribed {
        /// The member.
        owner: u32,
    },
    /// Several members claim it with equal right; all of them must revoke it first (KIP-429).
    Contested,
}
