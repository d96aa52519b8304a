//! The settings of a broker.

use super::catalogue::{MAX_MESSAGE_BYTES, OFFSETS_TOPIC, TopicError, check_setting};
use crate::embedded::coordinator;
use crate::protocol::ErrorCode;

/// The settings of a [`Broker`](super::Broker).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The host that Metadata names.
    pub host: String,
    /// The port that Metadata names.
    pub port: i32,
    /// The cluster's id.
    pub cluster_id: String,
    /// The rack of each broker, in order of node id; the first node id is 1. Empty: one broker without a rack.
    pub racks: Vec<String>,
    /// `auto.create.topics.enable`: whether a Metadata request creates a missing topic.
    pub auto_create_topics: bool,
    /// The partitions of a topic that is created without a count: `num.partitions`.
    pub default_partitions: i32,
    /// The coordinator's settings.
    pub groups: coordinator::Config,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 9092,
            cluster_id: "embedded".to_owned(),
            racks: Vec::new(),
            auto_create_topics: false,
            default_partitions: 1,
            groups: coordinator::Config::default(),
        }
    }
}

impl Config {
    /// The settings with Kafka's names.
    pub(super) fn settings(&self) -> Vec<(&'static str, String)> {
        let groups = &self.groups;
        vec![
            ("auto.create.topics.enable", self.auto_create_topics.to_string()),
            (
                "group.consumer.assignors",
                groups.consumer_assignors.iter().map(|assignor| assignor.name()).collect::<Vec<_>>().join(","),
            ),
            ("group.consumer.assignment.interval.ms", groups.consumer_assignment_interval_ms.to_string()),
            ("group.consumer.heartbeat.interval.ms", groups.consumer_heartbeat_interval_ms.to_string()),
            ("group.consumer.max.size", groups.consumer_max_group_size.min(i32::MAX as usize).to_string()),
            ("group.consumer.migration.policy", groups.consumer_migration_policy.name().to_owned()),
            ("group.consumer.session.timeout.ms", groups.consumer_session_timeout_ms.to_string()),
            ("group.initial.rebalance.delay.ms", groups.initial_rebalance_delay_ms.to_string()),
            ("group.max.session.timeout.ms", groups.max_session_timeout_ms.to_string()),
            ("group.max.size", groups.max_group_size.min(i32::MAX as usize).to_string()),
            ("group.min.session.timeout.ms", groups.min_session_timeout_ms.to_string()),
            ("num.partitions", self.default_partitions.to_string()),
            ("offset.metadata.max.bytes", groups.max_offset_metadata.to_string()),
        ]
    }
}

/// The new size limit of a group's record after changes of the settings of `__consumer_offsets`; `None` if they do not
/// change it.
pub(super) fn record_limit(changes: &[(String, Option<String>)]) -> Result<Option<u64>, TopicError> {
    let mut limit = None;
    for (name, value) in changes {
        if name != MAX_MESSAGE_BYTES {
            let message = format!("only {MAX_MESSAGE_BYTES} of {OFFSETS_TOPIC} can be changed, not '{name}'");
            return Err(TopicError::new(ErrorCode::INVALID_CONFIG, message));
        }
        check_setting(name, value.as_deref())?;
        let default = coordinator::Config::default().max_record_bytes;
        limit = Some(value.as_deref().and_then(|value| value.parse().ok()).unwrap_or(default));
    }
    Ok(limit)
}
