//! The cluster as Metadata last described it: the topics of this member or, while it leads, of all members.

use super::event::{PlanTopic, RackSet};
use crate::protocol::ErrorCode;
use crate::protocol::cluster::{MetadataBroker, MetadataTopic};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// More partitions than any cluster has. An answer with more is hostile.
const MOST_PARTITIONS: usize = 10_000_000;

/// One topic as an answer described it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct TopicShape {
    pub(super) partitions: u32,
    /// The racks of each partition; empty when no broker has a rack.
    pub(super) racks: Vec<RackSet>,
    pub(super) is_internal: bool,
}

/// The topics.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    pub(super) topics: BTreeMap<String, TopicShape>,
    /// Requested topics that the broker refuses. Each is reported once.
    refused: BTreeMap<String, ErrorCode>,
    /// The time of the request whose answer came last.
    pub(super) asked_at: Option<u64>,
    /// Whether the last answer contains all topics.
    pub(super) of_all: bool,
    /// The topics of the unanswered request; `None` is all.
    pub(super) asking: Option<BTreeSet<String>>,
    /// The topics of the last answer, if not all.
    covered: BTreeSet<String>,
    /// Whether a topic exists that the broker cannot describe yet, so that Metadata is requested again soon.
    pub(super) indescribable_topic: bool,
}

impl Cluster {
    /// Takes an answer. A topic that is missing in it does not exist, or is no longer requested. Returns the topics that the
    /// broker refuses, each once.
    pub(super) fn update(
        &mut self,
        asked_at: u64,
        mut racks: ClusterRacks,
        topics: Vec<MetadataTopic>,
    ) -> Vec<(String, ErrorCode)> {
        let asked = self.asking.take();
        let of_all = asked.is_none();
        let mut news = Vec::new();
        self.indescribable_topic = false;
        let mut known = std::mem::take(&mut self.topics);
        for mut topic in topics {
            // The name is null only in an answer to a request by id, and a member requests topics by name.
            let Some(name) = topic.name.take() else { continue };
            match topic.error_code {
                ErrorCode::NONE => {
                    let shape = shape(&topic, &mut racks);
                    self.refused.remove(&name);
                    self.topics.insert(name, shape);
                }
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
                | ErrorCode::TOPIC_AUTHORIZATION_FAILED
                | ErrorCode::INVALID_TOPIC_EXCEPTION => {
                    if self.refused.insert(name.clone(), topic.error_code).is_none() {
                        news.push((name, topic.error_code));
                    }
                }
                _ => {
                    self.indescribable_topic = true;
                    if let Some(shape) = known.remove(&name) {
                        self.topics.insert(name, shape);
                    }
                }
            }
        }
        self.asked_at = Some(asked_at);
        self.of_all = of_all;
        self.covered = asked.unwrap_or_default();
        news
    }

    /// Whether the last answer covers all these topics and was requested at `since` or later.
    pub(super) fn covers(&self, names: &BTreeSet<String>, since: u64) -> bool {
        self.asked_at.is_some_and(|at| at >= since) && (self.of_all || names.is_subset(&self.covered))
    }

    /// Those of these topics that exist.
    pub(super) fn shapes<'a>(&self, names: impl IntoIterator<Item = &'a String>) -> BTreeMap<String, TopicShape> {
        let shape = |name: &'a String| Some((name.clone(), self.topics.get(name)?.clone()));
        names.into_iter().filter_map(shape).collect()
    }

    /// Whether an answer named the topic.
    pub(super) fn has_heard_of(&self, topic: &str) -> bool {
        self.topics.contains_key(topic) || self.refused.contains_key(topic)
    }

    /// How many partitions a topic has; 0 if it does not exist, `None` if its size is not known.
    pub(super) fn count(&self, topic: &str) -> Option<u32> {
        match (self.topics.get(topic), self.refused.get(topic)) {
            (Some(shape), _) => Some(shape.partitions),
            (None, Some(&(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION | ErrorCode::INVALID_TOPIC_EXCEPTION))) => Some(0),
            (None, _) => None,
        }
    }

    pub(super) fn names(&self) -> Vec<(String, bool)> {
        self.topics.iter().map(|(name, shape)| (name.clone(), shape.is_internal)).collect()
    }
}

/// The brokers' racks, and the sets of racks that partitions have. Partitions share the sets: with a set for each partition, an
/// answer of 15 MB would become 600 MB.
pub(super) struct ClusterRacks {
    of_node: BTreeMap<i32, Arc<str>>,
    sets: BTreeMap<Vec<Arc<str>>, RackSet>,
}

impl ClusterRacks {
    pub(super) fn new(brokers: &[MetadataBroker]) -> Self {
        let mut names = BTreeSet::<Arc<str>>::new();
        let mut of_node = BTreeMap::new();
        for broker in brokers {
            let Some(rack) = broker.rack.as_deref().filter(|rack| !rack.is_empty()) else { continue };
            let name = names.get(rack).cloned().unwrap_or_else(|| rack.into());
            names.insert(name.clone());
            of_node.insert(broker.node_id, name);
        }
        Self { of_node, sets: BTreeMap::new() }
    }

    /// The racks of these nodes.
    fn of(&mut self, nodes: &[i32]) -> RackSet {
        let mut racks: Vec<_> = nodes.iter().filter_map(|node| self.of_node.get(node).cloned()).collect();
        racks.sort_unstable();
        racks.dedup();
        match self.sets.get(&racks) {
            Some(set) => set.clone(),
            None => {
                let set: RackSet = racks.as_slice().into();
                self.sets.insert(racks, set.clone());
                set
            }
        }
    }
}

fn shape(topic: &MetadataTopic, racks: &mut ClusterRacks) -> TopicShape {
    // Partitions are numbered from 0 without gaps. An answer may leave out a partition whose leader is moving, so the highest
    // number gives the count, up to a limit that no honest answer exceeds.
    let highest = topic.partitions.iter().map(|partition| partition.partition_index).max().unwrap_or(-1);
    let most = (topic.partitions.len() * 2 + 16).min(MOST_PARTITIONS);
    let partitions = usize::try_from(highest.saturating_add(1)).unwrap_or(0).min(most);
    let mut of_each = Vec::new();
    if !racks.of_node.is_empty() {
        of_each = vec![racks.of(&[]); partitions];
        for partition in &topic.partitions {
            let Some(place) = usize::try_from(partition.partition_index).ok().and_then(|at| of_each.get_mut(at)) else {
                continue;
            };
            *place = racks.of(&partition.replica_nodes);
        }
    }
    TopicShape { partitions: partitions as u32, racks: of_each, is_internal: topic.is_internal }
}

/// The topics of a plan.
pub(super) fn plan_topics(shapes: &BTreeMap<String, TopicShape>) -> Vec<PlanTopic> {
    let topic = |(name, shape): (&String, &TopicShape)| PlanTopic {
        name: name.clone(),
        partitions: shape.partitions,
        racks: shape.racks.clone(),
    };
    shapes.iter().map(topic).collect()
}

/// Whether a leader must plan again.
pub(super) fn differs(
    planned: &BTreeMap<String, TopicShape>,
    now: &BTreeMap<String, TopicShape>,
    with_racks: bool,
) -> bool {
    planned.len() != now.len()
        || planned.iter().any(|(name, old)| {
            now.get(name).is_none_or(|new| old.partitions != new.partitions || (with_racks && old.racks != new.racks))
        })
}
