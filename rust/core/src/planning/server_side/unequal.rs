//! `uniform` where members subscribe to different topics.

use std::cmp::Ordering;

use crate::planning::group::NONE;

use super::java::{IntSet, JavaKey, room_for};
use super::spec::{AssignmentDraft, AssignorError, NewTargets, Spec};

/// The most passes over the topics.
const PASSES: usize = 16;

/// Plans a group: members keep their partitions of topics that they still subscribe to, free partitions go to the smallest
/// subscribers, and then topics are levelled one after another until nothing changes, at most [`PASSES`] times.
///
/// # Errors
/// Targets with partitions that do not exist.
pub(crate) fn assign(spec: &Spec<'_>) -> Result<NewTargets, AssignorError> {
    let mut builder = Builder::new(spec);
    let mut topics: Vec<u32> = (0..spec.topics.len() as u32).filter(|&topic| builder.count(topic) > 0).collect();
    if topics.is_empty() {
        return Ok(vec![Some(Vec::new()); spec.members.len()]);
    }
    topics.sort_by(|&one, &other| builder.compare(one, other));
    builder.keep()?;
    builder.hand_out(&topics);
    topics.retain(|&topic| builder.count(topic) >= 2);
    builder.balance(&topics);
    Ok(builder.drafts.into_iter().map(|draft| draft.map(AssignmentDraft::into_record)).collect())
}

struct Builder<'a> {
    spec: &'a Spec<'a>,
    /// By topic, its subscribers, ascending.
    subscribers: Vec<Vec<u32>>,
    /// By topic and partition, the owner.
    owners: Vec<Vec<u32>>,
    /// By member, the number of its partitions.
    sizes: Vec<u32>,
    /// By member, its assignment if that changed.
    drafts: Vec<Option<AssignmentDraft>>,
}

impl<'a> Builder<'a> {
    fn new(spec: &'a Spec<'a>) -> Self {
        let mut subscribers = vec![Vec::new(); spec.topics.len()];
        for member in 0..spec.members.len() {
            for &topic in &spec.subscription(member).topics {
                subscribers[topic as usize].push(member as u32);
            }
        }
        let owners = |(topic, subscribers): (usize, &Vec<u32>)| {
            let partitions = if subscribers.is_empty() { 0 } else { spec.topics[topic].partitions };
            vec![NONE; partitions as usize]
        };
        let owners = subscribers.iter().enumerate().map(owners).collect();
        let members = spec.members.len();
        Self { spec, subscribers, owners, sizes: vec![0; members], drafts: vec![None; members] }
    }

    /// The number of a topic's subscribers.
    fn count(&self, topic: u32) -> usize {
        self.subscribers[topic as usize].len()
    }

    /// The topics with the most partitions for a subscriber first.
    fn compare(&self, one: u32, other: u32) -> Ordering {
        let each = |topic: u32| f64::from(self.spec.topics[topic as usize].partitions) / self.count(topic) as f64;
        each(other)
            .total_cmp(&each(one))
            .then_with(|| self.count(one).cmp(&self.count(other)))
            .then_with(|| self.spec.key(one).compare(self.spec.key(other)))
    }

    fn keep(&mut self) -> Result<(), AssignorError> {
        for (number, member) in self.spec.members.iter().enumerate() {
            for (key, list) in &member.target.topics {
                if self.subscribers[key.topic as usize].binary_search(&(number as u32)).is_err() {
                    self.drafts[number]
                        .get_or_insert_with(|| AssignmentDraft::copy_of(member.target))
                        .remove_topic(*key);
                    continue;
                }
                self.sizes[number] += list.len() as u32;
                for &partition in list {
                    let owner = self.owners[key.topic as usize].get_mut(partition as usize);
                    *owner.ok_or(AssignorError::Targets)? = number as u32;
                }
            }
        }
        Ok(())
    }

    fn hand_out(&mut self, topics: &[u32]) {
        for &topic in topics {
            let free: Vec<u32> = (0u32..)
                .zip(&self.owners[topic as usize])
                .filter(|(_, owner)| **owner == NONE)
                .map(|(partition, _)| partition)
                .collect();
            if free.is_empty() {
                continue;
            }
            let mut balancer = Balancer::new(&self.subscribers[topic as usize], &self.sizes);
            for partition in free {
                let member = balancer.least(&self.sizes);
                self.assign(topic, partition, member);
            }
        }
    }

    fn balance(&mut self, topics: &[u32]) {
        let mut last = None;
        for _ in 0..PASSES {
            for (place, &topic) in topics.iter().enumerate() {
                if last == Some(place) {
                    return;
                }
                if self.balance_topic(topic) || last.is_none() {
                    last = Some(place);
                }
            }
        }
    }

    /// Moves partitions of one topic from the largest of its subscribers to the smallest. Returns whether any moved.
    fn balance_topic(&mut self, topic: u32) -> bool {
        let subscribers = &self.subscribers[topic as usize];
        let sizes = subscribers.iter().map(|&member| self.sizes[member as usize]);
        if sizes.clone().max().unwrap_or(0) - sizes.min().unwrap_or(0) <= 1 {
            return false;
        }
        let mut balancer = Balancer::new(subscribers, &self.sizes);
        // By subscriber, the partitions that it may still give. A moved partition is not added to those of its new owner, so it
        // moves once.
        let mut gives = hashbrown::HashMap::<u32, Vec<u32>>::default();
        for (partition, &owner) in (0u32..).zip(&self.owners[topic as usize]) {
            gives.entry(owner).or_default().push(partition);
        }
        let mut moved = false;
        loop {
            let partition = loop {
                let Some(member) = balancer.most(&self.sizes) else { return moved };
                if let Some(partition) = gives.get_mut(&member).and_then(Vec::pop) {
                    break partition;
                }
                balancer.exclude();
            };
            let member = balancer.least(&self.sizes);
            if balancer.is_level() {
                return moved;
            }
            self.assign(topic, partition, member);
            moved = true;
        }
    }

    fn assign(&mut self, topic: u32, partition: u32, member: u32) {
        let (spec, key) = (self.spec, self.spec.key(topic));
        let owner = std::mem::replace(&mut self.owners[topic as usize][partition as usize], member);
        if owner != NONE {
            let copy = || AssignmentDraft::copy_of(spec.members[owner as usize].target);
            self.drafts[owner as usize].get_or_insert_with(copy).remove(key, partition);
            self.sizes[owner as usize] -= 1;
        }
        let each = (spec.topics[topic as usize].partitions as usize).div_ceil(self.count(topic));
        let copy = || AssignmentDraft::copy_of(spec.members[member as usize].target);
        let draft = self.drafts[member as usize].get_or_insert_with(copy);
        draft.add(key, [partition], || IntSet::with_capacity(room_for(each)));
        self.sizes[member as usize] += 1;
    }
}

/// Returns the smallest and the largest of some members in turn, as if each returned member got or gave a partition.
///
/// The smallest members are a prefix of the list, and the largest members a range at its end. The members of each range have the
/// same size. Once all of them were returned, this size changes by one, and the neighbours that have it join the range:
///
/// ```text
/// sizes     [1 1] 2 4 5     the smallest: each of the two gets a partition
///           [2 2 2] 4 5     now the third has the same size: it joins, and the round begins again at the first
/// ```
struct Balancer {
    /// By size, then by number, when the balancing began.
    members: Vec<u32>,
    low_end: usize,
    low_next: usize,
    low_size: i64,
    high_start: usize,
    high_end: usize,
    /// The place behind the next member to be returned; 0 if there is none.
    high_next: usize,
    high_size: i64,
}

impl Balancer {
    fn new(members: &[u32], sizes: &[u32]) -> Self {
        let mut members = members.to_vec();
        members.sort_by_key(|&member| (sizes[member as usize], member));
        let count = members.len();
        let size = |place: usize| i64::from(sizes[members[place] as usize]);
        let (low_size, high_size) = (size(0) - 1, size(count - 1) + 1);
        Self {
            members,
            low_end: 0,
            low_next: 0,
            low_size,
            high_start: count,
            high_end: count,
            high_next: count,
            high_size,
        }
    }

    fn size(&self, place: usize, sizes: &[u32]) -> i64 {
        i64::from(sizes[self.members[place] as usize])
    }

    /// The member that gets the next partition.
    fn least(&mut self, sizes: &[u32]) -> u32 {
        if self.low_next >= self.low_end {
            self.low_size += 1;
            while self.low_end < self.members.len() && self.size(self.low_end, sizes) == self.low_size {
                self.low_end += 1;
            }
            self.low_next = 0;
        }
        self.low_next += 1;
        self.members[self.low_next - 1]
    }

    /// The member that gives the next partition; `None` if all are excluded.
    fn most(&mut self, sizes: &[u32]) -> Option<u32> {
        if self.high_next <= self.high_start {
            if self.high_end <= self.high_start && self.high_start > 0 {
                self.high_size = self.size(self.high_start - 1, sizes);
            } else {
                self.high_size -= 1;
            }
            while self.high_start > 0 && self.size(self.high_start - 1, sizes) == self.high_size {
                self.high_start -= 1;
            }
            self.high_next = self.high_end;
        }
        self.high_next = self.high_next.checked_sub(1)?;
        Some(self.members[self.high_next])
    }

    /// Excludes the member that [`Balancer::most`] returned last: it has no partition to give.
    fn exclude(&mut self) {
        self.high_end -= 1;
        self.members.swap(self.high_next, self.high_end);
    }

    /// Whether no move makes the sizes more equal.
    fn is_level(&self) -> bool {
        self.high_size - self.low_size <= 1
    }
}
