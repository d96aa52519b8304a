//! The course of a rebalance, for the member's report of it: when it began, how many times the member asked to join, and the
//! cause as far as the member can tell.

/// Why the member joined, as far as the member can tell: most causes are known to the leader alone.
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
    /// The host wants it, or the plan did not fit the topics.
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
    /// Since when the member has wanted to join; `None` if no rebalance is under way.
    pub began_at: Option<u64>,
    /// When the coordinator answered the member's JoinGroup request: by then every member had given up the partitions that it
    /// must not own while it joins.
    pub joined_at: Option<u64>,
    /// How many JoinGroup requests were sent (KIP-848: heartbeats that join), without the one that only asks for a member id.
    pub attempts: u32,
    /// What made the member join.
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
