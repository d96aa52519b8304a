//! A member of a KIP-848 group.

use crate::planning::server_side::Assignor;
use crate::protocol::TopicId;
use crate::protocol::consumer_group_heartbeat::HeartbeatTopicPartitions;
use crate::protocol::join_group::JoinGroupProtocol;
use std::collections::{BTreeMap, BTreeSet};

/// Partitions by topic, each with the epoch in which it was assigned to the member.
pub(in crate::embedded::coordinator) type AssignedPartitions = BTreeMap<TopicId, BTreeMap<i32, i32>>;

/// The progress of a member towards its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemberState {
    /// The member has its target.
    #[default]
    Stable,
    /// The member must give partitions up, and has not acknowledged that yet.
    UnrevokedPartitions,
    /// Some partitions of the member's target still belong to other members.
    UnreleasedPartitions,
}

/// The fields of JoinGroup of a member that speaks the classic protocol.
#[derive(Debug, Clone)]
pub(in crate::embedded::coordinator) struct Classic {
    pub(super) session_timeout_ms: u64,
    /// In the member's order of preference.
    pub(super) protocols: Vec<JoinGroupProtocol>,
}

/// A member.
#[derive(Debug, Clone, Default)]
pub(in crate::embedded::coordinator) struct ConsumerMember {
    pub(super) instance_id: Option<String>,
    pub(super) rack_id: Option<String>,
    pub(super) client_id: String,
    pub(super) client_host: String,
    pub(super) rebalance_timeout_ms: u64,
    /// The names of its subscription.
    pub(super) names: BTreeSet<String>,
    /// The regular expression of its subscription.
    pub(super) expression: Option<String>,
    /// The assignor for which it votes.
    pub(super) vote: Option<Assignor>,
    /// The epoch in the last answer to the member, or -2 for a static member that has left for a while.
    pub(super) epoch: i32,
    /// The epoch before the present one. A request with it is accepted if the answer with the present epoch may have been lost.
    pub(super) previous_epoch: i32,
    pub(super) state: MemberState,
    pub(super) assigned: AssignedPartitions,
    /// The partitions that are no longer assigned, and not yet acknowledged as given up.
    pub(super) pending: AssignedPartitions,
    /// Set for a member of the classic protocol.
    pub(super) classic: Option<Classic>,
}

/// The request's partitions, one by one.
pub(super) fn each_of(owned: &[HeartbeatTopicPartitions]) -> impl Iterator<Item = (&TopicId, i32)> {
    owned.iter().flat_map(|topic| topic.partitions.iter().map(move |&partition| (&topic.topic_id, partition)))
}

/// Whether `partitions` contains this partition.
pub(super) fn has(partitions: &AssignedPartitions, topic: &TopicId, partition: i32) -> bool {
    partitions.get(topic).is_some_and(|held| held.contains_key(&partition))
}

/// Whether a member has not acknowledged that it gave all of `partitions` up. A request without owned partitions acknowledges
/// nothing.
pub(super) fn still_owns(owned: Option<&[HeartbeatTopicPartitions]>, partitions: &AssignedPartitions) -> bool {
    owned.is_none_or(|owned| each_of(owned).any(|(topic, partition)| has(partitions, topic, partition)))
}

impl ConsumerMember {
    /// Whether the request proves that the member owns only partitions that are assigned to it. A request without owned
    /// partitions is no proof.
    pub(super) fn holds_only_its_own(&self, owned: Option<&[HeartbeatTopicPartitions]>) -> bool {
        owned.is_some_and(|owned| each_of(owned).all(|(topic, partition)| has(&self.assigned, topic, partition)))
    }

    /// The assigned partitions and those that are not given up yet.
    pub(super) fn held(&self) -> impl Iterator<Item = (TopicId, i32)> + '_ {
        let each = |(topic, held): (&TopicId, &BTreeMap<i32, i32>)| {
            let topic = *topic;
            held.keys().map(move |&partition| (topic, partition)).collect::<Vec<_>>()
        };
        self.assigned.iter().chain(&self.pending).flat_map(each)
    }

    /// The epoch since which the member has had a partition that it has not given up.
    pub(super) fn has_since(&self, topic: &TopicId, partition: i32) -> Option<i32> {
        let since = |partitions: &AssignedPartitions| partitions.get(topic)?.get(&partition).copied();
        since(&self.assigned).or_else(|| since(&self.pending))
    }
}
