//! The history of a group, put in order.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use hashbrown::HashMap;

use crate::planning::group::{Group, GroupBuilder, GroupError, NONE, TopicSpec, Topics};
use crate::planning::plan::Plan;

use super::{MOST_PARTITIONS, RebalanceCause, ReplayError, observed_plan};

/// The kind of an event. The events of a step are applied in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The member left, or its session expired.
    Leave,
    /// The member joined.
    Join,
    /// The member changed its subscription.
    Subscribe,
    /// The group consists of exactly the members with such an event in this step. A snapshot of an empty group is one event with
    /// an empty id.
    Snapshot,
}

/// An event of a member.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupEvent<'a> {
    /// Its place in the history: events with the same number form one rebalance.
    pub seq: i64,
    /// The kind of the event.
    pub kind: Kind,
    /// The member's id.
    pub member_id: &'a str,
    /// Its `group.instance.id`; empty for none. A static member that comes back under another id is still the same.
    pub instance_id: &'a str,
    /// The time, in milliseconds since 1970.
    pub ts: i64,
    /// The group's generation, where it is known.
    pub generation: Option<i32>,
    /// The topics that the member subscribes to from then on; ignored when it leaves.
    pub topics: &'a [&'a str],
}

/// A new partition count of a topic. Of several counts of one moment the largest is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CountChange<'a> {
    /// The time, in milliseconds since 1970.
    pub ts: i64,
    /// The topic.
    pub topic: &'a str,
    /// The partitions; 0 once it is deleted.
    pub partitions: i64,
}

/// A new lag of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LagChange<'a> {
    /// The time, in milliseconds since 1970.
    pub ts: i64,
    /// The topic.
    pub topic: &'a str,
    /// The partition.
    pub partition: i32,
    /// The lag, in records; a negative one counts as 0.
    pub lag: i64,
}

/// The partitions of a topic that a member was observed to have in a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObservedPartitions<'a> {
    /// The generation.
    pub generation: i32,
    /// The member.
    pub member_id: &'a str,
    /// The topic.
    pub topic: &'a str,
    /// The partitions of it.
    pub partitions: &'a [i32],
}

/// A group's history, in any order.
#[derive(Debug, Clone, Default)]
pub struct History<'a> {
    /// The events of its members.
    pub events: Vec<GroupEvent<'a>>,
    /// The partition counts of the topics. Before its first count a topic has no partitions.
    pub counts: Vec<CountChange<'a>>,
    /// The lags. A partition without an entry has none.
    pub lags: Vec<LagChange<'a>>,
    /// The observed assignments.
    pub observed: Vec<ObservedPartitions<'a>>,
    /// Whether a new partition count waits for the next event, instead of making a rebalance of its own.
    pub counts_wait: bool,
}

/// One step of the history.
#[derive(Debug)]
pub(super) struct HistoryStep {
    pub(super) seq: i64,
    pub(super) ts: i64,
    pub(super) generation: Option<i32>,
    pub(super) cause: RebalanceCause,
    pub(super) counts_changed: bool,
    /// Whether the step makes the group rebalance.
    pub(super) rebalances: bool,
    /// Whether the partition count of a subscribed topic is known; true if no member subscribes to a topic.
    pub(super) counted: bool,
    pub(super) error: Option<String>,
}

/// A present member.
#[derive(Debug)]
pub(super) struct Present<'a> {
    pub(super) id: &'a str,
    pub(super) instance_id: &'a str,
    /// Its identity over time: the instance id of a static member, else the member id.
    pub(super) identity: u32,
    /// Its topics: see [`Timeline::topics_of`].
    topics: Range<usize>,
}

/// The history in order, and the place up to which it has been replayed.
#[derive(Debug)]
pub(super) struct Timeline<'a> {
    history: History<'a>,
    /// All topics that a member ever subscribes to, sorted. Their places are their ids from the first step to the last.
    names: Vec<&'a str>,
    topic_ids: HashMap<&'a str, u32>,
    /// The ids of the topics of all subscriptions so far, one after the other.
    subscriptions: Vec<u32>,
    counts: Vec<i64>,
    /// By topic, whether its partition count is known.
    counted: Vec<bool>,
    lags: HashMap<(u32, i32), u64>,
    identities: HashMap<(bool, &'a str), u32>,
    /// By identity, its last member id.
    last_ids: Vec<&'a str>,
    /// The present members, by id: in the order of a group's members.
    members: BTreeMap<&'a str, Present<'a>>,
    /// The position of the next entry in each list.
    next_event: usize,
    next_count: usize,
    next_lag: usize,
    now: i64,
    last_seq: i64,
}

/// The most bytes of problems that a row reports: a step may have a million problems.
const MOST_ERROR_BYTES: usize = 1_000;
const MORE: &str = "; and more";

pub(super) fn joined(first: Option<String>, second: Option<String>) -> Option<String> {
    match (first, second) {
        (Some(first), Some(_)) if first.ends_with(MORE) => Some(first),
        (Some(first), Some(second)) if first.len() + second.len() > MOST_ERROR_BYTES => Some(first + MORE),
        (Some(first), Some(second)) => Some(first + "; " + &second),
        (first, second) => first.or(second),
    }
}

/// The problems of a step: each kind once, however many members have it.
struct EventFaults<'a> {
    seq: i64,
    /// In the order of their first appearance, each with the members or topics.
    found: Vec<(EventFault, BTreeSet<&'a str>)>,
    /// Events without a member id, which have no names to count.
    nameless: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventFault {
    Nameless,
    Twice,
    LeavesAbsent,
    SubscribesAbsent,
    UnknownTopic,
}

impl<'a> EventFaults<'a> {
    fn add(&mut self, problem: EventFault, name: &'a str) {
        self.nameless += usize::from(problem == EventFault::Nameless);
        let place = self.found.iter().position(|(known, _)| *known == problem).unwrap_or_else(|| {
            self.found.push((problem, BTreeSet::new()));
            self.found.len() - 1
        });
        self.found[place].1.insert(name);
    }

    fn text(self) -> Option<String> {
        let Self { seq, found, nameless } = self;
        found.into_iter().fold(None, |before, (problem, names)| {
            let name = names.first().copied().unwrap_or_default();
            let text = match problem {
                EventFault::Nameless => "an event without a member id".to_owned(),
                EventFault::Twice => format!("member {name:?} is in the snapshot twice"),
                EventFault::LeavesAbsent => format!("member {name:?} leaves but is not in the group"),
                EventFault::SubscribesAbsent => format!("member {name:?} subscribes but is not in the group"),
                EventFault::UnknownTopic => format!("topic {name:?} has no known partition count"),
            };
            let many = if problem == EventFault::Nameless { nameless } else { names.len() };
            let others = if many > 1 { format!(" (and {} more)", many - 1) } else { String::new() };
            joined(before, Some(format!("seq {seq}: {text}{others}")))
        })
    }
}

/// Refuses counts that cannot be replayed, before any allocation of their size. O(counts).
fn check(counts: &[CountChange<'_>]) -> Result<(), ReplayError> {
    let mut now: BTreeMap<&str, u64> = BTreeMap::new();
    let mut total = 0_u128;
    for moment in counts.chunk_by(|before, after| before.ts == after.ts) {
        for change in moment {
            let count = u64::try_from(change.partitions)
                .map_err(|_| GroupError::NegativeCount { topic: change.topic.to_owned(), count: change.partitions })?;
            let before = now.insert(change.topic, count).unwrap_or(0);
            total = total + u128::from(count) - u128::from(before);
        }
        if total > u128::from(MOST_PARTITIONS) {
            // Of several largest topics, the first by name.
            let largest = now.iter().rev().max_by_key(|(_, count)| **count);
            let (topic, count) = largest.map_or(("", 0), |(topic, count)| (*topic, *count));
            return Err(ReplayError::TooManyPartitions { topic: topic.to_owned(), count, total });
        }
    }
    Ok(())
}

impl<'a> Timeline<'a> {
    pub(super) fn new(mut history: History<'a>) -> Result<Self, ReplayError> {
        history.events.sort_unstable();
        history.events.dedup();
        history.counts.sort_unstable();
        history.lags.sort_unstable();
        history.observed.sort_unstable();
        let topics = history.events.iter().flat_map(|event| event.topics.iter().copied());
        let mut names: Vec<&str> = topics.filter(|name| !name.is_empty()).collect();
        names.sort_unstable();
        names.dedup();
        let topic_ids: HashMap<_, _, _> = (0u32..).zip(&names).map(|(id, name)| (*name, id)).collect();
        history.counts.retain(|change| topic_ids.contains_key(change.topic));
        history.lags.retain(|change| topic_ids.contains_key(change.topic));
        check(&history.counts)?;
        let first_event = history.events.first().map(|event| event.ts);
        let mut timeline = Self {
            counts: vec![0; names.len()],
            counted: vec![false; names.len()],
            names,
            topic_ids,
            subscriptions: Vec::new(),
            lags: HashMap::default(),
            identities: HashMap::default(),
            last_ids: Vec::new(),
            members: BTreeMap::new(),
            next_event: 0,
            next_count: 0,
            next_lag: 0,
            now: i64::MIN,
            last_seq: history.events.first().map_or(0, |event| event.seq),
            history,
        };
        // Before the first event no member is present, so a count makes no rebalance.
        while let Some(change) = timeline.history.counts.get(timeline.next_count)
            && first_event.is_some_and(|ts| change.ts <= ts)
        {
            timeline.apply_counts(change.ts);
        }
        Ok(timeline)
    }

    /// The topics with their present partition counts.
    pub(super) fn topics(&self) -> Result<Topics, GroupError> {
        let spec = |(name, count): (&&'a str, &i64)| TopicSpec { name, partitions: *count, racks: None };
        Topics::new(self.names.iter().zip(&self.counts).map(spec).collect())
    }

    /// Sets the present lags of the topics, if the history has any.
    pub(super) fn fill_lags(&mut self, builder: &mut GroupBuilder) {
        while let Some(change) = self.history.lags.get(self.next_lag).filter(|change| change.ts <= self.now) {
            let key = (self.topic_ids[change.topic], change.partition);
            self.lags.insert(key, u64::try_from(change.lag).unwrap_or(0));
            self.next_lag += 1;
        }
        if self.lags.is_empty() {
            return;
        }
        let mut lags = vec![0; builder.topics().partitions()];
        for (&(topic, number), &lag) in &self.lags {
            let range = builder.topics().range(topic);
            if let Some(flat) = u32::try_from(number).ok().filter(|&number| (number as usize) < range.len()) {
                lags[(range.start + flat) as usize] = lag;
            }
        }
        builder.set_lags(lags);
    }

    /// The number of identities so far.
    pub(super) fn identities(&self) -> usize {
        self.identities.len()
    }

    /// The present members, by member id.
    pub(super) fn members(&self) -> impl ExactSizeIterator<Item = &Present<'a>> {
        self.members.values()
    }

    /// The ids of the topics to which a member subscribes, in the order of its event.
    pub(super) fn topics_of(&self, member: &Present<'_>) -> &[u32] {
        &self.subscriptions[member.topics.clone()]
    }

    pub(super) fn has_observed(&self) -> bool {
        !self.history.observed.is_empty()
    }

    /// Whether the assignment of a generation was observed.
    pub(super) fn is_observed(&self, generation: i32) -> bool {
        self.history.observed.binary_search_by_key(&generation, |entry| entry.generation).is_ok()
    }

    /// The observed assignment of a generation, as a plan of the present group.
    pub(super) fn observed(&self, generation: i32, group: &Group) -> Option<(Plan, Option<String>)> {
        let all = &self.history.observed;
        let start = all.partition_point(|entry| entry.generation < generation);
        let end = all.partition_point(|entry| entry.generation <= generation);
        let members = (0u32..).zip(self.members.keys()).map(|(member, id)| (*id, member)).collect();
        (start < end).then(|| observed_plan(group, &all[start..end], &members))
    }

    /// Takes the next step: a change of partition counts if one comes before the next event, else the next event's step.
    pub(super) fn next_step(&mut self) -> Option<HistoryStep> {
        let event_ts = self.history.events.get(self.next_event).map(|event| event.ts.max(self.now));
        let count_ts = self.history.counts.get(self.next_count).map(|change| change.ts.max(self.now));
        match (event_ts, count_ts) {
            (None, None) => None,
            (Some(event), Some(count)) if count <= event => Some(self.apply_counts(count)),
            (None, Some(count)) => Some(self.apply_counts(count)),
            (Some(event), _) => Some(self.apply_events(event)),
        }
    }

    fn apply_counts(&mut self, ts: i64) -> HistoryStep {
        self.now = ts;
        // Several changes of one moment are one change.
        let before = self.counts.clone();
        while let Some(change) = self.history.counts.get(self.next_count).filter(|change| change.ts <= ts) {
            let topic = self.topic_ids[change.topic] as usize;
            (self.counts[topic], self.counted[topic]) = (change.partitions, true);
            self.next_count += 1;
        }
        let differs = |topic: u32| before[topic as usize] != self.counts[topic as usize];
        let changed = before != self.counts;
        let concerns = changed && !self.history.counts_wait && self.subscribed().any(differs);
        HistoryStep {
            seq: self.last_seq,
            ts,
            generation: None,
            cause: RebalanceCause::Partitions,
            counts_changed: changed,
            rebalances: concerns,
            counted: true,
            error: None,
        }
    }

    fn apply_events(&mut self, ts: i64) -> HistoryStep {
        let seq = self.history.events[self.next_event].seq;
        let start = self.next_event;
        let length = self.history.events[start..].partition_point(|event| event.seq == seq);
        self.next_event += length;
        (self.now, self.last_seq) = (ts, seq);
        let mut problems = EventFaults { seq, found: Vec::new(), nameless: 0 };
        let mut generation = None;
        let mut snapshot = BTreeSet::new();
        let mut unknown = BTreeSet::new();
        for index in start..start + length {
            let event = self.history.events[index].clone();
            generation = generation.max(event.generation);
            self.now = self.now.max(event.ts);
            if self.enters(&event, &mut snapshot, &mut problems) {
                self.enter(&event, &mut unknown);
            }
        }
        if !snapshot.is_empty() {
            self.members.retain(|id, _| snapshot.contains(id));
        }
        let counted = self.is_counted();
        if !counted {
            unknown.extend(self.subscribed());
        }
        for topic in unknown {
            problems.add(EventFault::UnknownTopic, self.names[topic as usize]);
        }
        let (ts, error) = (self.now, problems.text());
        HistoryStep {
            seq,
            ts,
            generation,
            cause: RebalanceCause::Members,
            counts_changed: false,
            rebalances: true,
            counted,
            error,
        }
    }

    /// Whether the event's member is present from then on, with the topics of the event. A member that leaves is removed, and one
    /// in a snapshot is added to `snapshot`, which contains an empty id for a snapshot without members.
    fn enters(
        &mut self,
        event: &GroupEvent<'a>,
        snapshot: &mut BTreeSet<&'a str>,
        problems: &mut EventFaults<'a>,
    ) -> bool {
        match event.kind {
            Kind::Snapshot if event.member_id.is_empty() => {
                snapshot.insert("");
                false
            }
            // No member has an empty id, so such an event changes nothing.
            _ if event.member_id.is_empty() => {
                problems.add(EventFault::Nameless, "");
                false
            }
            Kind::Snapshot => {
                if !snapshot.insert(event.member_id) {
                    problems.add(EventFault::Twice, event.member_id);
                }
                true
            }
            Kind::Leave => {
                if self.members.remove(event.member_id).is_none() {
                    problems.add(EventFault::LeavesAbsent, event.member_id);
                }
                false
            }
            Kind::Subscribe => {
                let there = self.members.contains_key(event.member_id);
                if !there {
                    problems.add(EventFault::SubscribesAbsent, event.member_id);
                }
                there
            }
            Kind::Join => true,
        }
    }

    /// The topics to which present members subscribe; a topic comes as often as it has subscribers.
    fn subscribed(&self) -> impl Iterator<Item = u32> {
        self.members.values().flat_map(|member| self.topics_of(member).iter().copied())
    }

    /// Whether the partition count of a subscribed topic is known; true if no member subscribes to a topic.
    fn is_counted(&self) -> bool {
        self.subscribed().next().is_none() || self.subscribed().any(|topic| self.counted[topic as usize])
    }

    /// Adds a member, and adds its topics without a known partition count to `unknown`.
    fn enter(&mut self, event: &GroupEvent<'a>, unknown: &mut BTreeSet<u32>) {
        let key = match event.instance_id {
            "" => (false, event.member_id),
            instance_id => (true, instance_id),
        };
        let next = self.identities.len() as u32;
        let identity = *self.identities.entry(key).or_insert(next);
        debug_assert_ne!(identity, NONE);
        if identity == next {
            self.last_ids.push(event.member_id);
        }
        let before = std::mem::replace(&mut self.last_ids[identity as usize], event.member_id);
        // A static member that came back under another id replaces the present member with its earlier id.
        if before != event.member_id && self.members.get(before).is_some_and(|member| member.identity == identity) {
            self.members.remove(before);
        }
        let start = self.subscriptions.len();
        for name in event.topics.iter().filter(|name| !name.is_empty()) {
            let topic = self.topic_ids[name];
            if !self.counted[topic as usize] {
                unknown.insert(topic);
            }
            self.subscriptions.push(topic);
        }
        let topics = start..self.subscriptions.len();
        let present = Present { id: event.member_id, instance_id: event.instance_id, identity, topics };
        self.members.insert(event.member_id, present);
    }
}
