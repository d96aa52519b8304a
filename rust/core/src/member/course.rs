//! The course of a rebalance, for the member's report: its beginning, the number of JoinGroup requests, and its cause as far as
//! the member knows it.

/// The cause of a join, as far as the member knows it: only the leader knows most causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trigger {
    /// The coordinator has answered that the group rebalances.
    #[default]
    Group,
    /// The member is new in the group, or comes back after it has left.
    Joined,
    /// The member had lost its membership.
    Expelled,
    /// The subscription of the member has changed.
    Subscription,
    /// The member gave up partitions that others are to take.
    Revoked,
    /// The leader has seen that topics or partitions have changed.
    Topics,
    /// A static leader has come back, and the group keeps its plan (KIP-814).
    LeaderReturned,
    /// The host requested a rebalance, or the plan did not fit the topics.
    Asked,
}

impl Trigger {
    /// In lower case, with hyphens.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Joined => "joined",
            Self::Expelled => "expelled",
            Self::Subscription => "subscription",
            Self::Revoked => "revoked",
            Self::Topics => "topics",
            Self::LeaderReturned => "leader-returned",
            Self::Asked => "asked",
        }
    }
}

/// A rebalance from the moment at which the member wanted to join until it has its assignment. Several rebalances in a row count
/// as one if only the last gives the member an assignment. All times are those of the member's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Course {
    /// The time since which the member has wanted to join; `None` without a running rebalance.
    pub began_at: Option<u64>,
    /// The time of the answer to the member's JoinGroup. By then every member had given up the partitions that it must not own
    /// while it joins.
    pub joined_at: Option<u64>,
    /// The number of JoinGroup requests (KIP-848: heartbeats that join), without the request that only obtains a member id.
    pub attempts: u32,
    /// The cause of the join.
    pub trigger: Trigger,
}

impl Course {
    /// Records the beginning, unless a rebalance is under way.
    pub(super) fn begin(&mut self, now: u64, trigger: Trigger) {
        if self.began_at.is_none() {
            *self = Self { began_at: Some(now), trigger, ..Self::default() };
        }
    }
}
