//! A group of the new protocol as its coordinator sees it: events in, targets out.
//!
//! There is no clock. An event is planned in the request that reports it, or in the next request of any member; the plan does
//! not depend on which member sends that request. An event may also be put off, as a broker of 4.3 does within a second of a
//! plan.

use std::collections::{BTreeMap, BTreeSet, HashMap as StdMap, HashSet};

use crate::planning::group::MAX_PARTITIONS;

use super::coordinator_error::{CoordinatorError, check_name};
use super::event::{Described, Subscribing, When};
use super::java::{HashMap, TimelineHashMap, Uuid, string_hash};
use super::release::Release;
use super::spec::{Spec, SpecMember, SpecSubscription, SpecTopic, Target, TopicKey};
use super::{Assignor, assign_spec};

/// A member of the group.
#[derive(Debug, Clone)]
struct MemberEntry {
    id: String,
    hash: i32,
    instance: Option<String>,
    /// Ascending, as the coordinator's record has them.
    names: Vec<String>,
    expression: Option<String>,
    target: Target,
    /// Whether the member left with the epoch -2: a static member that will return.
    away: bool,
}

#[derive(Debug, Clone)]
struct TopicEntry {
    name: String,
    topic: SpecTopic,
}

/// A group of the new protocol.
#[derive(Debug, Clone)]
pub struct ServerSideGroup {
    assignor: Assignor,
    release: Release,
    topics: Vec<TopicEntry>,
    /// The topics that exist, by name.
    by_name: StdMap<String, u32>,
    /// The number of partitions of all existing topics.
    partitions: u64,
    /// By number; `None` for a member that left.
    members: Vec<Option<MemberEntry>>,
    numbers: StdMap<String, u32>,
    statics: StdMap<String, u32>,
    timeline: TimelineHashMap,
    /// The topics that an expression matches, ascending.
    resolved: BTreeMap<String, Vec<String>>,
    /// Every id that a topic has or had.
    ids: HashSet<Uuid>,
    /// Whether an event is not planned yet.
    pending: bool,
    /// The number of changes that had to be planned.
    changes: u64,
    /// The members in the order in which the assignor saw them last.
    seen: Vec<u32>,
}

impl ServerSideGroup {
    /// A group without members and topics.
    #[must_use]
    pub fn new(assignor: Assignor, release: Release) -> Self {
        Self {
            assignor,
            release,
            topics: Vec::new(),
            by_name: StdMap::new(),
            partitions: 0,
            members: Vec::new(),
            numbers: StdMap::new(),
            statics: StdMap::new(),
            timeline: TimelineHashMap::new(),
            resolved: BTreeMap::new(),
            ids: HashSet::new(),
            pending: false,
            changes: 0,
            seen: Vec::new(),
        }
    }

    /// Goes on from a live group: `members` in the order of ConsumerGroupDescribe, each with its target. The topics and the
    /// expressions are known already ([`ServerSideGroup::grow`], [`ServerSideGroup::resolve`]). Returns whether a coordinator
    /// can have listed the members in this order; if not, they count as having joined in this order.
    ///
    /// # Errors
    /// A member or an instance that is listed twice, or a target with partitions that do not exist.
    pub fn restore(&mut self, members: &[Described<'_>]) -> Result<bool, CoordinatorError> {
        let mut targets = Vec::with_capacity(members.len());
        let mut owned = BTreeSet::new();
        let mut known = BTreeSet::new();
        for member in members {
            self.check_joining(member.id, member.instance)?;
            let instance = member.instance.map(|instance| (true, instance));
            if !known.insert((false, member.id)) || instance.is_some_and(|instance| !known.insert(instance)) {
                return Err(CoordinatorError::Twice { member: member.id.to_owned() });
            }
            let mut record = Vec::with_capacity(member.target.len());
            for (name, list) in &member.target {
                let key = self.key(self.find(name)?);
                let count = self.topics[key.topic as usize].topic.partitions;
                if let Some(&partition) =
                    list.iter().find(|&&partition| partition >= count || !owned.insert((key.topic, partition)))
                {
                    return Err(CoordinatorError::Partition { topic: (*name).to_owned(), partition, count });
                }
                record.push((key, list.clone()));
            }
            targets.push(Target::read_back(record));
        }
        let mut entries = Vec::with_capacity(members.len());
        for (member, target) in members.iter().zip(targets) {
            let asked = Subscribing { names: &member.names, expression: member.expression };
            let number = self.enter(member.id, member.instance, asked, target);
            entries.push((number, string_hash(member.id)));
            self.seen.push(number);
        }
        let listed = TimelineHashMap::listing(&entries);
        let exact = listed.is_some();
        if let Some(timeline) = listed {
            self.timeline = timeline;
        } else {
            entries.iter().for_each(|&(number, _)| self.remember(number));
        }
        Ok(exact)
    }

    /// A topic appears, or gets more partitions. Returns whether a plan was made.
    ///
    /// # Errors
    /// Fewer partitions than before, more than [`MAX_PARTITIONS`] in all, another id than before, or the id of another topic.
    pub fn grow(
        &mut self,
        name: &str,
        partitions: u32,
        id: Option<Uuid>,
        when: When,
    ) -> Result<bool, CoordinatorError> {
        check_name("topic", name)?;
        if partitions == 0 || i32::try_from(partitions).is_err() {
            return Err(CoordinatorError::Count { topic: name.to_owned(), count: partitions });
        }
        let before = self.by_name.get(name).map_or(0, |&topic| self.topics[topic as usize].topic.partitions);
        let total = self.partitions - u64::from(before) + u64::from(partitions);
        if total > MAX_PARTITIONS {
            return Err(CoordinatorError::TooMany { topic: name.to_owned() });
        }
        if let Some(&topic) = self.by_name.get(name) {
            let topic = &mut self.topics[topic as usize].topic;
            if partitions < topic.partitions {
                let (before, count) = (topic.partitions, partitions);
                return Err(CoordinatorError::Shrinks { topic: name.to_owned(), before, count });
            }
            if id.is_some_and(|id| id != topic.id) {
                return Err(CoordinatorError::OtherId { topic: name.to_owned() });
            }
            if topic.partitions == partitions {
                return Ok(false);
            }
            topic.partitions = partitions;
        } else {
            let id = id.unwrap_or_else(|| self.id_for(name));
            if !self.ids.insert(id) {
                return Err(CoordinatorError::IdTaken { topic: name.to_owned() });
            }
            self.by_name.insert(name.to_owned(), self.topics.len() as u32);
            self.topics.push(TopicEntry { name: name.to_owned(), topic: SpecTopic { id, partitions } });
        }
        self.partitions = total;
        let changed = self.subscribed(name);
        self.happened(changed, when)
    }

    /// A topic is deleted. Returns whether a plan was made.
    ///
    /// # Errors
    /// There is no such topic.
    pub fn delete(&mut self, name: &str, when: When) -> Result<bool, CoordinatorError> {
        let topic = self.find(name)?;
        self.by_name.remove(name);
        self.partitions -= u64::from(self.topics[topic as usize].topic.partitions);
        let changed = self.subscribed(name);
        self.happened(changed, when)
    }

    /// A member joins; if `id` is that of a present member, this member subscribes anew. With the instance id of a static member
    /// that left to return, the new member replaces that member and takes over its target. Returns whether a plan was made.
    ///
    /// # Errors
    /// An empty id, or the instance id of a member that has not left.
    pub fn join(
        &mut self,
        id: &str,
        instance: Option<&str>,
        asked: Subscribing<'_>,
        when: When,
    ) -> Result<bool, CoordinatorError> {
        if let Some(&number) = self.numbers.get(id) {
            let entry = self.entry_mut(number);
            if entry.instance.as_deref() != instance {
                return Err(CoordinatorError::OtherInstance { member: id.to_owned() });
            }
            entry.away = false;
            return self.subscribe(id, asked, when);
        }
        let replaced = instance.and_then(|instance| self.statics.get(instance).copied());
        let Some(old) = replaced.filter(|&old| self.entry(old).away) else {
            self.check_joining(id, instance)?;
            let number = self.enter(id, instance, asked, Target::default());
            self.note(true);
            if when == When::Now {
                self.plan_in(Some((number, asked.names)), None)?;
            }
            self.remember(number);
            return Ok(when == When::Now);
        };
        check_name("member", id)?;
        let target = Target::read_back(self.entry(old).target.topics.clone());
        let before = self.entry(old).clone();
        let number = self.enter(id, instance, asked, target);
        let after = self.entry(number);
        let changed = before.names != after.names || self.is_new_to(&before, after);
        self.note(changed);
        let planned = self.pending && when == When::Now;
        if planned {
            self.plan_in(Some((number, asked.names)), Some(old))?;
        }
        self.remove(old);
        self.remember(number);
        self.forget_unused_expressions();
        Ok(planned)
    }

    /// A member changes its subscription. Returns whether a plan was made.
    ///
    /// # Errors
    /// There is no such member.
    pub fn subscribe(&mut self, id: &str, asked: Subscribing<'_>, when: When) -> Result<bool, CoordinatorError> {
        let number = self.number(id)?;
        let before = self.entry(number).clone();
        let entry = self.entry_mut(number);
        entry.names = sorted(asked.names);
        entry.expression = asked.expression.map(str::to_owned);
        let after = self.entry(number).clone();
        let changed = before.names != after.names || self.is_new_to(&before, &after);
        self.note(changed);
        self.forget_unused_expressions();
        let planned = self.pending && when == When::Now;
        if planned {
            self.plan_in(Some((number, asked.names)), None)?;
        }
        Ok(planned)
    }

    /// A member leaves for good, or is removed. With `returning`, a static member leaves for a while, which needs no plan.
    /// Returns whether a plan was made: an empty group gets none.
    ///
    /// # Errors
    /// There is no such member, or it is not static and cannot return.
    pub fn leave(&mut self, id: &str, returning: bool, when: When) -> Result<bool, CoordinatorError> {
        let number = self.number(id)?;
        if returning {
            if self.entry(number).instance.is_none() {
                return Err(CoordinatorError::NotStatic { member: id.to_owned() });
            }
            self.entry_mut(number).away = true;
            return Ok(false);
        }
        self.remove(number);
        self.forget_unused_expressions();
        self.happened(true, when)
    }

    /// The broker has found out which topics an expression matches. Returns whether a plan was made. The event itself needs a
    /// plan only if a member uses the expression and the topics changed.
    ///
    /// # Errors
    /// As for [`ServerSideGroup::plan`].
    pub fn resolve(&mut self, expression: &str, names: &[&str], when: When) -> Result<bool, CoordinatorError> {
        let used = self.entries().any(|entry| entry.expression.as_deref() == Some(expression));
        let names = sorted(names);
        let changed = self.resolved.get(expression) != Some(&names);
        self.resolved.insert(expression.to_owned(), names);
        self.happened(used && changed, when)
    }

    /// Plans the events that were put off, in some member's request. Returns whether there were any.
    ///
    /// # Errors
    /// The assignor gives no plan; the targets stay.
    pub fn plan(&mut self) -> Result<bool, CoordinatorError> {
        self.happened(false, When::Now)
    }

    /// The assignor.
    #[must_use]
    pub fn assignor(&self) -> Assignor {
        self.assignor
    }

    /// Sets the assignor of the next plan: the one that the members have voted for.
    pub fn set_assignor(&mut self, assignor: Assignor) {
        self.assignor = assignor;
    }

    /// The number of changes that had to be planned. A coordinator raises the group's epoch with each.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Whether an event is not planned yet.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.pending
    }

    /// The expressions of the members, resolved or not.
    pub fn expressions(&self) -> impl Iterator<Item = &str> {
        self.entries().filter_map(|entry| entry.expression.as_deref()).collect::<BTreeSet<_>>().into_iter()
    }

    /// The topics that exist, with ids and partition counts.
    pub fn topics(&self) -> impl Iterator<Item = (&str, Uuid, u32)> {
        let known = self.topics.iter().enumerate().filter(|(number, entry)| self.topic_is(&entry.name, *number));
        known.map(|(_, entry)| (entry.name.as_str(), entry.topic.id, entry.topic.partitions))
    }

    /// The members in the order in which the assignor saw them last; those that it has not seen come after.
    pub fn members(&self) -> impl Iterator<Item = &str> {
        let seen = self.seen.iter().copied().filter(|&number| self.members[number as usize].is_some());
        let unseen = self.timeline.iter().filter(|number| !self.seen.contains(number));
        seen.chain(unseen).map(|number| self.entry(number).id.as_str())
    }

    /// The members in the order in which ConsumerGroupDescribe lists them.
    pub fn listing(&self) -> impl Iterator<Item = &str> {
        self.timeline.iter().map(|number| self.entry(number).id.as_str())
    }

    /// The target of a member: its topics and their partitions in the order of the coordinator's maps. A topic that was
    /// deleted since the last plan is left out.
    ///
    /// # Errors
    /// There is no such member.
    pub fn target(&self, id: &str) -> Result<impl Iterator<Item = (&str, &[u32])>, CoordinatorError> {
        let topics = &self.entry(self.number(id)?).target.topics;
        let existing = topics.iter().filter(|(key, _)| self.topic_is(self.name(*key), key.topic as usize));
        Ok(existing.map(|(key, list)| (self.name(*key), list.as_slice())))
    }

    fn note(&mut self, changed: bool) {
        self.pending |= changed;
        self.changes += u64::from(changed);
    }

    fn name(&self, key: TopicKey) -> &str {
        &self.topics[key.topic as usize].name
    }

    fn topic_is(&self, name: &str, number: usize) -> bool {
        self.by_name.get(name) == Some(&(number as u32))
    }

    fn id_for(&self, name: &str) -> Uuid {
        // A topic that was deleted keeps its id, so a new topic with the same name gets another id.
        let before = self.topics.iter().filter(|entry| entry.name == name).count();
        Uuid::of_name(name, before)
    }

    fn key(&self, topic: u32) -> TopicKey {
        TopicKey { topic, id: self.topics[topic as usize].topic.id }
    }

    fn find(&self, name: &str) -> Result<u32, CoordinatorError> {
        self.by_name.get(name).copied().ok_or_else(|| CoordinatorError::Topic { topic: name.to_owned() })
    }

    fn number(&self, id: &str) -> Result<u32, CoordinatorError> {
        self.numbers.get(id).copied().ok_or_else(|| CoordinatorError::Member { member: id.to_owned() })
    }

    fn entry(&self, number: u32) -> &MemberEntry {
        self.members[number as usize].as_ref().expect("a number in a map belongs to a member")
    }

    fn entry_mut(&mut self, number: u32) -> &mut MemberEntry {
        self.members[number as usize].as_mut().expect("a number in a map belongs to a member")
    }

    fn entries(&self) -> impl Iterator<Item = &MemberEntry> {
        self.members.iter().flatten()
    }

    fn check_joining(&self, id: &str, instance: Option<&str>) -> Result<(), CoordinatorError> {
        check_name("member", id)?;
        if self.numbers.contains_key(id) {
            return Err(CoordinatorError::Twice { member: id.to_owned() });
        }
        let Some(instance) = instance else { return Ok(()) };
        check_name("instance", instance)?;
        match self.statics.get(instance) {
            Some(&holder) => {
                Err(CoordinatorError::Instance { instance: instance.to_owned(), holder: self.entry(holder).id.clone() })
            }
            None => Ok(()),
        }
    }

    fn enter(&mut self, id: &str, instance: Option<&str>, asked: Subscribing<'_>, target: Target) -> u32 {
        let number = self.members.len() as u32;
        self.numbers.insert(id.to_owned(), number);
        self.members.push(Some(MemberEntry {
            id: id.to_owned(),
            hash: string_hash(id),
            instance: instance.map(str::to_owned),
            names: sorted(asked.names),
            expression: asked.expression.map(str::to_owned),
            target,
            away: false,
        }));
        if let Some(instance) = instance {
            self.statics.insert(instance.to_owned(), number);
        }
        number
    }

    /// A join writes two records, the subscription and the assignment. Each of them puts the member into the map.
    fn remember(&mut self, number: u32) {
        let hash = self.entry(number).hash;
        self.timeline.put(number, hash);
        self.timeline.put(number, hash);
    }

    fn remove(&mut self, number: u32) {
        let Some(entry) = self.members[number as usize].take() else { return };
        self.timeline.remove(number, entry.hash);
        self.numbers.remove(&entry.id);
        if let Some(instance) = &entry.instance
            && self.statics.get(instance) == Some(&number)
        {
            self.statics.remove(instance);
        }
        if self.numbers.is_empty() {
            // Without this, the lists of a group whose members come and go would grow without bound.
            self.members.clear();
            self.seen.clear();
        }
    }

    fn forget_unused_expressions(&mut self) {
        let used: BTreeSet<String> = self.expressions().map(str::to_owned).collect();
        self.resolved.retain(|expression, _| used.contains(expression));
    }

    /// Whether the member changed its expression to a resolved one, or to none. A change to an unresolved one needs no plan yet.
    fn is_new_to(&self, before: &MemberEntry, after: &MemberEntry) -> bool {
        before.expression != after.expression
            && after.expression.as_ref().is_none_or(|expression| self.resolved.contains_key(expression))
    }

    fn subscribed(&self, name: &str) -> bool {
        self.entries().any(|entry| {
            let matched = entry.expression.as_ref().and_then(|expression| self.resolved.get(expression));
            [Some(&entry.names), matched].into_iter().flatten().any(|names| names.iter().any(|one| one == name))
        })
    }

    fn happened(&mut self, changed: bool, when: When) -> Result<bool, CoordinatorError> {
        self.note(changed);
        let planned = self.pending && when == When::Now && !self.numbers.is_empty();
        if planned {
            self.plan_in(None, None)?;
        }
        self.pending &= !self.numbers.is_empty();
        Ok(planned)
    }

    /// The members in the order in which the assignor sees them: those of the map, then the member whose request is handled. A
    /// static member that it replaces is removed before or after, in the order of the broker's map of changes.
    fn order(&self, requester: Option<u32>, replaced: Option<u32>) -> Vec<u32> {
        let mut map = HashMap::<&str>::new();
        let id = |number: u32| self.entry(number).id.as_str();
        for number in self.timeline.iter() {
            map.put(id(number));
        }
        let mut changes = HashMap::<&str>::new();
        for number in [requester, replaced].into_iter().flatten() {
            changes.put(id(number));
        }
        for change in changes.keys() {
            if replaced.is_some_and(|old| id(old) == change) {
                map.remove(change);
            } else {
                map.put(change);
            }
        }
        map.keys().map(|id| self.numbers[id]).collect()
    }

    fn plan_in(&mut self, requester: Option<(u32, &[&str])>, replaced: Option<u32>) -> Result<(), CoordinatorError> {
        let order = self.order(requester.map(|(number, _)| number), replaced);
        let mut subscriptions = Vec::new();
        let mut known = StdMap::new();
        let mut members = Vec::with_capacity(order.len());
        for &number in &order {
            let entry = self.entry(number);
            let asked = requester.filter(|(asking, _)| *asking == number).map(|(_, names)| names);
            let subscription = *known.entry((&entry.names, &entry.expression, asked)).or_insert_with(|| {
                subscriptions.push(self.subscription(entry, asked));
                subscriptions.len() as u32 - 1
            });
            let instance = entry.instance.as_deref();
            members.push(SpecMember { id: &entry.id, instance, subscription, target: &entry.target });
        }
        let topics: Vec<SpecTopic> = self.topics.iter().map(|entry| entry.topic).collect();
        let equal = self.is_homogeneous(&order);
        let spec = Spec { topics: &topics, subscriptions: &subscriptions, members: &members, equal };
        let targets = assign_spec(&spec, self.assignor, self.release)?;
        for (&number, record) in order.iter().zip(targets) {
            if let Some(target) = record.map(Target::read_back) {
                let entry = self.entry_mut(number);
                // A target with the same partitions gets no record: the coordinator keeps the old object and its orders.
                if !target.same_as(&entry.target) {
                    entry.target = target;
                }
            }
        }
        self.seen = order;
        self.pending = false;
        Ok(())
    }

    /// The subscription of a member. `asked` are its names in the order of the request that is handled.
    fn subscription(&self, entry: &MemberEntry, asked: Option<&[&str]>) -> SpecSubscription {
        let asked = asked.map(|names| {
            let mut seen = BTreeSet::new();
            names.iter().copied().filter(|name| seen.insert(*name)).collect::<Vec<_>>()
        });
        let named = asked.unwrap_or_else(|| entry.names.iter().map(String::as_str).collect());
        let matched = entry.expression.as_ref().and_then(|expression| self.resolved.get(expression));
        let matched: Vec<&str> = matched.into_iter().flatten().map(String::as_str).collect();
        // The larger set comes first, and of equal ones that of the expression.
        let (large, small) = if named.len() > matched.len() { (named, matched) } else { (matched, named) };
        let set =
            |names: Vec<&'_ str>| HashMap::of_set(names.len(), names).keys().map(str::to_owned).collect::<Vec<_>>();
        let (mut names, small) = (set(large), set(small));
        let more: Vec<String> = small.into_iter().filter(|name| !names.contains(name)).collect();
        names.extend(more);
        let topics = names.iter().filter_map(|name| self.by_name.get(name).copied()).collect();
        SpecSubscription { topics, names: names.len() }
    }

    fn is_homogeneous(&self, order: &[u32]) -> bool {
        let members: Vec<&MemberEntry> = order.iter().map(|&number| self.entry(number)).collect();
        let Some(first) = members.first() else { return true };
        let alike = |entry: &&MemberEntry| entry.expression == first.expression && entry.names == first.names;
        members.iter().all(alike) && (first.expression.is_none() || first.names.is_empty())
    }
}

fn sorted(names: &[&str]) -> Vec<String> {
    let names: BTreeSet<&str> = names.iter().copied().collect();
    names.into_iter().map(str::to_owned).collect()
}
