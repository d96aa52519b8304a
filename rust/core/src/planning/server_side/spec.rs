//! The input of an assignor, from the coordinator, and its result.

use thiserror::Error;

use super::java::{HashMap, IntSet, JavaKey, Uuid, read_back};

/// A topic's number with its id: the number finds the topic, the id makes the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TopicKey {
    pub(crate) topic: u32,
    pub(crate) id: Uuid,
}

impl JavaKey for TopicKey {
    fn hash_code(self) -> i32 {
        self.id.hash_code()
    }

    fn compare(self, other: Self) -> std::cmp::Ordering {
        self.id.compare(other.id)
    }
}

/// The target of a member: topics in the order of their map, each with its partitions in the order of their set, as the
/// coordinator has it in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) topics: Vec<(TopicKey, Vec<u32>)>,
}

impl Target {
    /// The target that is read from a record with this content.
    pub(crate) fn read_back(record: Vec<(TopicKey, Vec<u32>)>) -> Self {
        let mut order = HashMap::new();
        let mut rank = hashbrown::HashMap::new();
        for (topic, _) in &record {
            order.put(*topic);
        }
        for (place, key) in order.keys().enumerate() {
            rank.insert(key.topic, place);
        }
        let mut topics: Vec<_> = record.into_iter().map(|(topic, list)| (topic, read_back(list))).collect();
        topics.sort_by_key(|(key, _)| rank[&key.topic]);
        Self { topics }
    }

    /// The number of partitions.
    pub(crate) fn len(&self) -> usize {
        self.topics.iter().map(|(_, list)| list.len()).sum()
    }

    /// Whether both have the same partitions, in any order.
    pub(crate) fn same_as(&self, other: &Self) -> bool {
        if self.len() != other.len() || self.topics.len() != other.topics.len() {
            return false;
        }
        let sorted = |target: &Self| {
            let mut topics: Vec<_> = target.topics.iter().map(|(key, list)| (key.topic, list.clone())).collect();
            topics.sort_unstable_by_key(|(topic, _)| *topic);
            topics.iter_mut().for_each(|(_, list)| list.sort_unstable());
            topics
        };
        self == other || sorted(self) == sorted(other)
    }
}

/// The topics that a member subscribes to, as an assignor sees them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SpecSubscription {
    /// The topics that exist, in the order of the set of names.
    pub(crate) topics: Vec<u32>,
    /// The number of names, with those of topics that do not exist.
    pub(crate) names: usize,
}

/// A member.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpecMember<'a> {
    pub(crate) id: &'a str,
    pub(crate) instance: Option<&'a str>,
    /// A place in [`Spec::subscriptions`].
    pub(crate) subscription: u32,
    /// The partitions that the last plan gave it.
    pub(crate) target: &'a Target,
}

/// A topic. One that was deleted stays in the list, so that the targets that still have it can name it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpecTopic {
    pub(crate) id: Uuid,
    pub(crate) partitions: u32,
}

/// A group, as an assignor sees it.
#[derive(Debug)]
pub(crate) struct Spec<'a> {
    pub(crate) topics: &'a [SpecTopic],
    pub(crate) subscriptions: &'a [SpecSubscription],
    /// In the order of the map of members.
    pub(crate) members: &'a [SpecMember<'a>],
    /// Whether the coordinator calls the subscriptions homogeneous.
    pub(crate) equal: bool,
}

impl<'a> Spec<'a> {
    pub(crate) fn subscription(&self, member: usize) -> &'a SpecSubscription {
        &self.subscriptions[self.members[member].subscription as usize]
    }

    pub(crate) fn key(&self, topic: u32) -> TopicKey {
        TopicKey { topic, id: self.topics[topic as usize].id }
    }
}

/// Why an assignor gives no plan. The broker answers UNKNOWN_SERVER_ERROR (-1) then, and the targets stay.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AssignorError {
    /// The targets have more partitions than the topics, or one twice.
    #[error("the targets of the members have a partition that its topic does not have, or have one twice")]
    Targets,
}

/// The new targets of all members, as the assignor's own maps. `None` keeps the old object.
pub(crate) type NewTargets = Vec<Option<Vec<(TopicKey, Vec<u32>)>>>;

/// A member's assignment while an assignor changes it.
#[derive(Debug, Clone)]
pub(crate) struct AssignmentDraft {
    order: HashMap<TopicKey>,
    sets: hashbrown::HashMap<u32, IntSet>,
}

impl AssignmentDraft {
    /// A deep copy of a target.
    pub(crate) fn copy_of(target: &Target) -> Self {
        let mut order = HashMap::with_capacity(target.topics.len());
        let mut sets = hashbrown::HashMap::new();
        for (key, list) in &target.topics {
            order.put(*key);
            sets.insert(key.topic, IntSet::Copied(list.clone()));
        }
        Self { order, sets }
    }

    /// Adds partitions of a topic; its set is made by `new` if there is none.
    pub(crate) fn add(
        &mut self,
        key: TopicKey,
        partitions: impl IntoIterator<Item = u32>,
        new: impl FnOnce() -> IntSet,
    ) {
        self.order.compute_if_absent(key);
        self.sets.entry(key.topic).or_insert_with(new).extend(partitions);
    }

    /// Removes a partition, and its topic with the last one.
    pub(crate) fn remove(&mut self, key: TopicKey, partition: u32) {
        if let Some(set) = self.sets.get_mut(&key.topic) {
            set.remove(partition);
            if set.len() == 0 {
                self.remove_topic(key);
            }
        }
    }

    /// Removes a topic.
    pub(crate) fn remove_topic(&mut self, key: TopicKey) {
        self.order.remove(key);
        self.sets.remove(&key.topic);
    }

    /// The content in the order of the maps.
    pub(crate) fn into_record(mut self) -> Vec<(TopicKey, Vec<u32>)> {
        let keys: Vec<TopicKey> = self.order.keys().collect();
        let mut take = |key: TopicKey| self.sets.remove(&key.topic).map(|set| (key, set.into_list()));
        keys.into_iter().filter_map(&mut take).collect()
    }
}
