//! The topics of the cluster, for the coordinator.

use crate::protocol::TopicId;
use std::collections::BTreeMap;

/// A topic of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Topic {
    /// Its id. A topic that is deleted and created again has the same name and another id.
    pub id: TopicId,
    /// The number of its partitions.
    pub partitions: i32,
}

/// The topics by name and by id.
#[derive(Debug, Default)]
pub(super) struct ClusterTopics {
    /// `None` before [`Coordinator::set_topics`](super::Coordinator::set_topics): then offsets of any topic may be committed.
    by_name: Option<BTreeMap<String, Topic>>,
    names: BTreeMap<TopicId, String>,
    version: u64,
}

impl ClusterTopics {
    pub(super) fn set(&mut self, topics: BTreeMap<String, Topic>) {
        self.names = topics.iter().map(|(name, topic)| (topic.id, name.clone())).collect();
        self.by_name = Some(topics);
        self.version += 1;
    }

    /// The number of changes so far.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn get(&self, name: &str) -> Option<Topic> {
        self.by_name.as_ref()?.get(name).copied()
    }

    pub(super) fn name(&self, id: &TopicId) -> Option<&str> {
        self.names.get(id).map(String::as_str)
    }

    /// The names, ascending.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.iter().flatten().map(|(name, _)| name.as_str())
    }

    /// Whether a partition exists. Before the first call of [`ClusterTopics::set`] every partition does.
    pub(super) fn has(&self, topic: &str, partition: i32) -> bool {
        self.by_name.is_none() || self.get(topic).is_some_and(|topic| (0..topic.partitions).contains(&partition))
    }
}
