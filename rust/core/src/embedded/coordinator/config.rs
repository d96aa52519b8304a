//! The settings of a coordinator.

use crate::planning::server_side::Assignor;
use crate::protocol::record_batch::DEFAULT_RECORD_LIMIT;

/// The groups that may change their protocol while they have members: `group.consumer.migration.policy`. An empty group always
/// may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MigrationPolicy {
    /// Classic groups and groups of KIP-848.
    #[default]
    Bidirectional,
    /// A classic group becomes one of KIP-848, and does not change back.
    Upgrade,
    /// A group of KIP-848 becomes classic once only classic members are left.
    Downgrade,
    /// No group. No classic member may join a group of KIP-848 either.
    Disabled,
}

impl MigrationPolicy {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Bidirectional, Self::Upgrade, Self::Downgrade, Self::Disabled];

    /// Kafka's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bidirectional => "bidirectional",
            Self::Upgrade => "upgrade",
            Self::Downgrade => "downgrade",
            Self::Disabled => "disabled",
        }
    }

    /// Whether a classic group may become one of KIP-848.
    pub(super) fn upgrades(self) -> bool {
        matches!(self, Self::Bidirectional | Self::Upgrade)
    }

    /// Whether a group of KIP-848 may become a classic one.
    pub(super) fn downgrades(self) -> bool {
        matches!(self, Self::Bidirectional | Self::Downgrade)
    }
}

/// The settings of a [`Coordinator`](super::Coordinator). The defaults are Kafka's, with exceptions that make tests
/// short: the initial delay and the minimum session timeout of classic groups, and three intervals of KIP-848 groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// `group.initial.rebalance.delay.ms`: the time that the first join of an empty group waits for other members.
    /// Kafka: 3,000; here 0.
    pub initial_rebalance_delay_ms: u64,
    /// `group.min.session.timeout.ms`. Kafka: 6,000; here 1,000.
    pub min_session_timeout_ms: i32,
    /// `group.max.session.timeout.ms`: 1,800,000.
    pub max_session_timeout_ms: i32,
    /// `group.max.size`: no limit.
    pub max_group_size: usize,
    /// The time after which a new member with an unanswered JoinGroup is removed: 300,000.
    pub new_member_join_timeout_ms: u64,
    /// `max.message.bytes` of `__consumer_offsets`: a group's record above it is refused. 1,048,588.
    pub max_record_bytes: u64,
    /// `offset.metadata.max.bytes`, which Kafka counts in UTF-16 units: 4,096.
    pub max_offset_metadata: usize,
    /// `group.consumer.heartbeat.interval.ms`, which members of KIP-848 follow. Kafka: 5,000; here 500.
    pub consumer_heartbeat_interval_ms: i32,
    /// `group.consumer.session.timeout.ms`: 45,000.
    pub consumer_session_timeout_ms: u64,
    /// `group.consumer.max.size`: no limit.
    pub consumer_max_group_size: usize,
    /// `group.consumer.assignors`: the allowed assignors, the default first. `uniform`, `range`.
    pub consumer_assignors: Vec<Assignor>,
    /// `group.consumer.assignment.interval.ms`: the shortest time between two plans of a group. Kafka: 1,000; here 0.
    pub consumer_assignment_interval_ms: u64,
    /// The shortest time between two searches for the topics that match expressions. Kafka: 10,000; here 0.
    pub consumer_regex_refresh_ms: u64,
    /// `group.consumer.migration.policy`: `bidirectional`.
    pub consumer_migration_policy: MigrationPolicy,
    /// The host of every member in DescribeGroups.
    pub client_host: String,
    /// The seed of the member ids. Coordinators with different seeds generate different ids.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            initial_rebalance_delay_ms: 0,
            min_session_timeout_ms: 1_000,
            max_session_timeout_ms: 1_800_000,
            max_group_size: usize::MAX,
            new_member_join_timeout_ms: 300_000,
            max_record_bytes: DEFAULT_RECORD_LIMIT,
            max_offset_metadata: 4_096,
            consumer_heartbeat_interval_ms: 500,
            consumer_session_timeout_ms: 45_000,
            consumer_max_group_size: usize::MAX,
            consumer_assignors: vec![Assignor::Uniform, Assignor::Range],
            consumer_assignment_interval_ms: 0,
            consumer_regex_refresh_ms: 0,
            consumer_migration_policy: MigrationPolicy::default(),
            client_host: "/127.0.0.1".to_owned(),
            seed: 0,
        }
    }
}

impl Config {
    /// The assignor of a group without votes.
    pub(super) fn default_assignor(&self) -> Assignor {
        self.consumer_assignors.first().copied().unwrap_or(Assignor::Uniform)
    }
}
