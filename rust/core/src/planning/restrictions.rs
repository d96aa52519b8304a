//! The members that may have each partition, and the most partitions of each member.

use crate::planning::group::{Csr, Group, NONE};

/// The restrictions of a group, by its numbers of members and partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restrictions {
    /// Sets of members, ascending.
    pub sets: Csr,
    /// By flat partition, the set of the members that may have it, if they subscribe; [`NONE`] for every subscriber. Empty where
    /// no partition is restricted.
    pub set_of: Vec<u32>,
    /// By member, the most partitions that it may have; `u32::MAX` for any number. Empty where no member is limited.
    pub capacity: Vec<u32>,
}

/// Why a restricted plan leaves out a partition that has subscribers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftOutReason {
    /// No subscriber may have it.
    NotAllowed,
    /// All members that may have it have their most partitions already.
    Full,
}

impl Default for Restrictions {
    fn default() -> Self {
        Self { sets: Csr::new(), set_of: Vec::new(), capacity: Vec::new() }
    }
}

impl Restrictions {
    /// The set of a partition; [`NONE`] for every subscriber.
    #[must_use]
    pub fn set(&self, partition: u32) -> u32 {
        self.set_of.get(partition as usize).copied().unwrap_or(NONE)
    }

    /// Whether the restrictions let the member have the partition; its subscription does not count. O(log members).
    #[must_use]
    pub fn allow(&self, member: u32, partition: u32) -> bool {
        let set = self.set(partition);
        set == NONE || self.sets.row(set).binary_search(&member).is_ok()
    }

    /// The most partitions that a member may have.
    #[must_use]
    pub fn most(&self, member: u32) -> u32 {
        self.capacity.get(member as usize).copied().unwrap_or(u32::MAX)
    }

    /// Why the partition, which has subscribers, is left out. O(members of its set).
    #[must_use]
    pub fn why_left_out(&self, group: &Group, partition: u32) -> LeftOutReason {
        let (set, topic) = (self.set(partition), group.topics().locate(partition).0);
        if set != NONE && !self.sets.row(set).iter().any(|&member| group.subscribes(member, topic)) {
            LeftOutReason::NotAllowed
        } else {
            LeftOutReason::Full
        }
    }
}
