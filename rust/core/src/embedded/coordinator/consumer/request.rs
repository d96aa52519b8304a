//! The checks of a ConsumerGroupHeartbeat that need no group.

use crate::embedded::coordinator::config::Config;
use crate::planning::server_side::Assignor;
use crate::protocol::ErrorCode;
use crate::protocol::consumer_group_heartbeat::{
    ConsumerGroupHeartbeatRequest, JOIN_EPOCH, LEAVE_STATIC_EPOCH, REGEX_FROM,
};

/// Why a heartbeat is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::embedded::coordinator) struct Refusal {
    pub(in crate::embedded::coordinator) code: ErrorCode,
    pub(in crate::embedded::coordinator) message: String,
}

impl Refusal {
    pub(in crate::embedded::coordinator) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// Whether the request is valid by itself, so that a coordinator would read the group.
pub(in crate::embedded::coordinator) fn validate(
    request: &ConsumerGroupHeartbeatRequest,
    version: i16,
    config: &Config,
) -> Result<(), Refusal> {
    let invalid = |message: &str| Err(Refusal::new(ErrorCode::INVALID_REQUEST, message));
    let is_empty = |text: &Option<String>| text.as_deref() == Some("");
    let joins = request.member_epoch == JOIN_EPOCH;
    if request.member_id.is_empty() && (version >= REGEX_FROM || !joins) {
        return invalid("MemberId can't be empty.");
    }
    if request.group_id.is_empty() {
        return invalid("GroupId can't be empty.");
    }
    if is_empty(&request.instance_id) {
        return invalid("InstanceId can't be empty.");
    }
    if is_empty(&request.rack_id) {
        return invalid("RackId can't be empty.");
    }
    if joins {
        if request.rebalance_timeout_ms == -1 {
            return invalid("RebalanceTimeoutMs must be provided in first request.");
        }
        if request.topic_partitions.as_ref().is_none_or(|held| !held.is_empty()) {
            return invalid("TopicPartitions must be empty when (re-)joining.");
        }
        if request.subscribed_topic_names.is_none() && request.subscribed_topic_regex.is_none() {
            return invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.");
        }
    } else if request.member_epoch == LEAVE_STATIC_EPOCH && request.instance_id.is_none() {
        return invalid("InstanceId can't be null.");
    } else if request.member_epoch < LEAVE_STATIC_EPOCH {
        return invalid("MemberEpoch is invalid.");
    }
    if let Some(name) = &request.server_assignor
        && assignor_named(name, config).is_none()
    {
        let names: Vec<&str> = config.consumer_assignors.iter().map(|assignor| assignor.name()).collect();
        let message = format!("ServerAssignor {name} is not supported. Supported assignors: {}.", names.join(", "));
        return Err(Refusal::new(ErrorCode::UNSUPPORTED_ASSIGNOR, message));
    }
    Ok(())
}

/// The assignor with this name, if the settings allow it.
pub(super) fn assignor_named(name: &str, config: &Config) -> Option<Assignor> {
    config.consumer_assignors.iter().copied().find(|assignor| assignor.name() == name)
}
