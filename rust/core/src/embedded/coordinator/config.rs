//! The settings of a coordinator.

use crate::protocol::record_batch::DEFAULT_RECORD_LIMIT;

/// The settings of a [`Coordinator`](super::Coordinator). The defaults are Kafka's, with two exceptions that make tests
/// short: the initial delay and the minimum session timeout.
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
            client_host: "/127.0.0.1".to_owned(),
            seed: 0,
        }
    }
}
