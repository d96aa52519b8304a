//! The members that may have each partition, and the most partitions of each member.

use crate::planning::group::{Csr, NONE};

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

    /// Of these members, ascending, those that may have the partition. O(the shorter one of the list and the partition's set,
    /// times the logarithm of the longer one).
    pub(super) fn able<'a>(&'a self, subscribers: &'a [u32], partition: u32) -> impl Iterator<Item = u32> + 'a {
        let set = self.set(partition);
        let allowed = if set == NONE { subscribers } else { self.sets.row(set) };
        let (short, long) =
            if allowed.len() < subscribers.len() { (allowed, subscribers) } else { (subscribers, allowed) };
        short.iter().copied().filter(move |member| set == NONE || long.binary_search(member).is_ok())
    }
}
