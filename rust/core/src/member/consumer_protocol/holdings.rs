//! The partitions that the member holds, by topic id: a topic that was deleted and created again has its old name and another id.

use crate::member::event::Partitions;
use crate::protocol::TopicId;
use std::collections::{BTreeMap, BTreeSet};

/// Partitions by topic id.
pub(super) type PartitionsByTopic = BTreeMap<TopicId, BTreeSet<i32>>;

/// The partitions that are owned, each with the number of its acquisition: an offset belongs to one acquisition.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    owned: BTreeMap<TopicId, HeldTopic>,
    acquisitions: u64,
}

#[derive(Debug)]
struct HeldTopic {
    name: String,
    since: BTreeMap<i32, u64>,
}

impl Holdings {
    pub(super) fn is_empty(&self) -> bool {
        self.owned.is_empty()
    }

    pub(super) fn by_topic(&self) -> PartitionsByTopic {
        self.owned.iter().map(|(&id, held)| (id, held.since.keys().copied().collect())).collect()
    }

    /// The id of the topic of this name of which the member owns this partition, and the number of the acquisition (the newest,
    /// if there are several such topics).
    pub(super) fn find(&self, name: &str, partition: i32) -> Option<(TopicId, u64)> {
        let named = self.owned.iter().filter(|(_, held)| held.name == name);
        named.filter_map(|(&id, held)| Some((id, *held.since.get(&partition)?))).max_by_key(|&(_, since)| since)
    }

    /// The acquisition that an offset of this partition belongs to.
    pub(super) fn since(&self, name: &str, partition: i32) -> Option<u64> {
        self.find(name, partition).map(|(_, since)| since)
    }

    /// The partitions of `target` that are not owned, and the owned ones that are not in `target`. Topics without a name count as
    /// not in `target`. This runs at each event of the member, so nothing is allocated for topics whose partitions are equal.
    pub(super) fn compare(
        &self,
        target: &PartitionsByTopic,
        names: &BTreeMap<TopicId, String>,
    ) -> (PartitionsByTopic, PartitionsByTopic) {
        let (mut added, mut revoked) = (PartitionsByTopic::new(), PartitionsByTopic::new());
        for (&id, numbers) in target.iter().filter(|(id, _)| names.contains_key(*id)) {
            let held = self.owned.get(&id).map(|held| &held.since);
            if held.is_some_and(|held| held.keys().eq(numbers)) {
                continue;
            }
            let owned = |number: &i32| held.is_some_and(|held| held.contains_key(number));
            insert(&mut added, id, numbers.iter().filter(|number| !owned(number)));
        }
        for (&id, held) in &self.owned {
            let wanted = target.get(&id).filter(|_| names.contains_key(&id));
            if wanted.is_some_and(|wanted| held.since.keys().eq(wanted)) {
                continue;
            }
            let stays = |number: &i32| wanted.is_some_and(|wanted| wanted.contains(number));
            insert(&mut revoked, id, held.since.keys().filter(|number| !stays(number)));
        }
        (added, revoked)
    }

    pub(super) fn add(&mut self, partitions: &PartitionsByTopic, names: &BTreeMap<TopicId, String>) {
        self.acquisitions += 1;
        for (&id, numbers) in partitions {
            let Some(name) = names.get(&id) else { continue };
            let held = self.owned.entry(id).or_insert_with(|| HeldTopic { name: name.clone(), since: BTreeMap::new() });
            for &number in numbers {
                held.since.entry(number).or_insert(self.acquisitions);
            }
        }
    }

    pub(super) fn remove(&mut self, partitions: &PartitionsByTopic) {
        for (id, numbers) in partitions {
            if let Some(held) = self.owned.get_mut(id) {
                held.since.retain(|number, _| !numbers.contains(number));
            }
        }
        self.owned.retain(|_, held| !held.since.is_empty());
    }

    /// The names of the topics of which partitions are owned.
    pub(super) fn names(&self) -> BTreeMap<TopicId, String> {
        self.owned.iter().map(|(&id, held)| (id, held.name.clone())).collect()
    }

    /// The owned partitions by name; names and partitions ascend.
    pub(super) fn partitions(&self) -> Partitions {
        self.named(&self.by_topic())
    }

    /// These owned partitions by name; names and partitions ascend.
    pub(super) fn named(&self, partitions: &PartitionsByTopic) -> Partitions {
        named(partitions, |id| self.owned.get(id).map(|held| held.name.as_str()))
    }
}

/// Partitions by name; names and partitions ascend without repeats. Partitions of topics without a name are left out.
pub(super) fn named<'a>(partitions: &PartitionsByTopic, name: impl Fn(&TopicId) -> Option<&'a str>) -> Partitions {
    let mut merged: BTreeMap<&str, BTreeSet<i32>> = BTreeMap::new();
    for (id, numbers) in partitions {
        if let Some(name) = name(id) {
            merged.entry(name).or_default().extend(numbers);
        }
    }
    merged.into_iter().map(|(name, numbers)| (name.to_owned(), numbers.into_iter().collect())).collect()
}

/// Adds the partitions of a topic, if there are any.
fn insert<'a>(partitions: &mut PartitionsByTopic, id: TopicId, numbers: impl Iterator<Item = &'a i32>) {
    let numbers: BTreeSet<i32> = numbers.copied().collect();
    if !numbers.is_empty() {
        partitions.insert(id, numbers);
    }
}

/// The partitions of `all` that are not in `gone`.
pub(super) fn without(all: &PartitionsByTopic, gone: &PartitionsByTopic) -> PartitionsByTopic {
    let mut left = PartitionsByTopic::new();
    for (&id, numbers) in all {
        let numbers: BTreeSet<i32> = match gone.get(&id) {
            Some(gone) => numbers.difference(gone).copied().collect(),
            None => numbers.clone(),
        };
        if !numbers.is_empty() {
            left.insert(id, numbers);
        }
    }
    left
}
