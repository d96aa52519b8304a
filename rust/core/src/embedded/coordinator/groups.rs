//! The groups of both protocols, by id.

use super::consumer::ConsumerGroup;
use super::group::{ClassicGroup, ClassicGroupState};
use super::offsets::Offsets;
use std::collections::BTreeMap;

/// A group of either protocol.
#[derive(Debug)]
pub(super) enum AnyGroup {
    /// Its leader plans.
    Classic(Box<ClassicGroup>),
    /// The coordinator plans (KIP-848).
    Consumer(Box<ConsumerGroup>),
}

impl AnyGroup {
    pub(super) fn offsets(&self) -> &Offsets {
        match self {
            AnyGroup::Classic(group) => &group.offsets,
            AnyGroup::Consumer(group) => &group.offsets,
        }
    }

    pub(super) fn offsets_mut(&mut self) -> &mut Offsets {
        match self {
            AnyGroup::Classic(group) => &mut group.offsets,
            AnyGroup::Consumer(group) => &mut group.offsets,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            AnyGroup::Classic(group) => group.state == ClassicGroupState::Empty,
            AnyGroup::Consumer(group) => group.is_empty(),
        }
    }
}

/// All groups.
#[derive(Debug, Default)]
pub(super) struct Groups(BTreeMap<String, AnyGroup>);

impl Groups {
    pub(super) fn get(&self, id: &str) -> Option<&AnyGroup> {
        self.0.get(id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &AnyGroup)> {
        self.0.iter().map(|(id, group)| (id.as_str(), group))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut AnyGroup> {
        self.0.values_mut()
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<AnyGroup> {
        self.0.remove(id)
    }

    pub(super) fn insert(&mut self, id: &str, group: AnyGroup) {
        self.0.insert(id.to_owned(), group);
    }

    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut AnyGroup> {
        self.0.get_mut(id)
    }

    /// The group; a new classic one if there is none.
    pub(super) fn create(&mut self, id: &str) -> &mut AnyGroup {
        self.0.entry(id.to_owned()).or_insert_with(|| AnyGroup::Classic(Box::new(ClassicGroup::new(id.to_owned()))))
    }

    /// The group, if it is a classic one.
    pub(super) fn classic(&self, id: &str) -> Option<&ClassicGroup> {
        match self.0.get(id)? {
            AnyGroup::Classic(group) => Some(group),
            AnyGroup::Consumer(_) => None,
        }
    }

    /// The group, if it is one of KIP-848.
    pub(super) fn consumer_mut(&mut self, id: &str) -> Option<&mut ConsumerGroup> {
        match self.0.get_mut(id)? {
            AnyGroup::Classic(_) => None,
            AnyGroup::Consumer(group) => Some(group),
        }
    }

    /// The classic group; a new one if there is none, or if the one of KIP-848 is empty. An empty group keeps its offsets
    /// when its protocol changes. `None` for one of KIP-848 with members.
    pub(super) fn classic_or_new(&mut self, id: &str) -> Option<&mut ClassicGroup> {
        if let Some(AnyGroup::Consumer(group)) = self.0.get_mut(id)
            && group.is_empty()
        {
            let offsets = std::mem::take(&mut group.offsets);
            let mut classic = ClassicGroup::new(id.to_owned());
            classic.offsets = offsets;
            self.0.insert(id.to_owned(), AnyGroup::Classic(Box::new(classic)));
        }
        let new = || AnyGroup::Classic(Box::new(ClassicGroup::new(id.to_owned())));
        match self.0.entry(id.to_owned()).or_insert_with(new) {
            AnyGroup::Classic(group) => Some(group),
            AnyGroup::Consumer(_) => None,
        }
    }

    /// The group of KIP-848; a new one if there is none, or if the classic one is empty. `None` for a classic one with
    /// members.
    pub(super) fn consumer_or_new(&mut self, id: &str, new: impl Fn() -> ConsumerGroup) -> Option<&mut ConsumerGroup> {
        if let Some(AnyGroup::Classic(group)) = self.0.get_mut(id)
            && group.state == ClassicGroupState::Empty
        {
            let offsets = std::mem::take(&mut group.offsets);
            let mut consumer = new();
            consumer.offsets = offsets;
            self.0.insert(id.to_owned(), AnyGroup::Consumer(Box::new(consumer)));
        }
        match self.0.entry(id.to_owned()).or_insert_with(|| AnyGroup::Consumer(Box::new(new()))) {
            AnyGroup::Classic(_) => None,
            AnyGroup::Consumer(group) => Some(group),
        }
    }
}
