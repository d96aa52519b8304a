//! A group, built member by member.

use std::collections::BTreeSet;

use hashbrown::HashTable;

use super::slab::{Csr, Names, hash_of, position};
use super::{Group, NONE, Topics};
use crate::protocol::subscription::NO_GENERATION;

/// Builds a [`Group`]. The members are added in byte order of their ids.
#[derive(Debug)]
pub struct GroupBuilder {
    group: Group,
    /// The ids of the subscriptions, each with its hash, so that a long subscription is hashed only once. Empty while there is only
    /// one subscription.
    known: HashTable<(u64, u32)>,
    scratch: Vec<u32>,
}

impl GroupBuilder {
    /// A group of these topics and, so far, no member.
    #[must_use]
    pub fn new(topics: Topics) -> Self {
        let group = Group {
            topics,
            member_ids: Names::default(),
            instance_ids: Names::default(),
            subscriptions: Csr::new(),
            subscription_of: Vec::new(),
            claim_starts: vec![0],
            claims: Vec::new(),
            owners_claims: None,
            generations: Vec::new(),
            racks: Vec::new(),
            number_starts: vec![0],
            numbers: Vec::new(),
            stand_ins: Vec::new(),
            may_claim_more: Vec::new(),
            missing: BTreeSet::new(),
            shrunk: BTreeSet::new(),
        };
        Self { group, known: HashTable::new(), scratch: Vec::new() }
    }

    /// Begins a group of other topics, without members, in the same memory.
    pub(crate) fn restart(&mut self, topics: Topics) {
        self.clear_members();
        self.group.topics = topics;
    }

    /// Removes the members, and keeps the topics and the memory. A replay builds a group for each rebalance, and would spend a third
    /// of its instructions on memory.
    pub(crate) fn clear_members(&mut self) {
        let Self { group, known, .. } = self;
        known.clear();
        group.member_ids.clear();
        group.instance_ids.clear();
        group.subscriptions.clear();
        group.subscription_of.clear();
        group.claim_starts.truncate(1);
        group.claims.clear();
        group.owners_claims = None;
        group.generations.clear();
        group.racks.clear();
        group.number_starts.truncate(1);
        group.numbers.clear();
        group.stand_ins.clear();
        group.may_claim_more.clear();
        group.missing.clear();
        group.shrunk.clear();
    }

    /// The group of the members so far. All of them must be finished.
    pub(crate) fn group(&self) -> &Group {
        let ends = (self.group.claim_starts.last(), self.group.number_starts.last());
        let all = (self.group.claims.len() as u32, self.group.numbers.len() as u32);
        debug_assert_eq!(ends, (Some(&all.0), Some(&all.1)), "a member is not finished");
        &self.group
    }

    /// The topics, for looking up names.
    #[must_use]
    pub fn topics(&self) -> &Topics {
        &self.group.topics
    }

    /// Sets the lags: see [`Topics::set_lags`].
    ///
    /// # Panics
    /// If there is not one for each partition.
    pub(crate) fn set_lags(&mut self, lags: Vec<u64>) {
        self.group.topics.set_lags(lags);
    }

    /// Makes room for this many claims in all.
    pub fn reserve_claims(&mut self, claims: usize) {
        self.group.claims.reserve(claims);
    }

    /// The id of a subscription. `topics` may be unsorted and have repeats. Topics without partitions do not count; they are
    /// noted as missing.
    pub fn subscription(&mut self, topics: &[u32]) -> u32 {
        let Self { group, known, scratch } = self;
        let id = group.subscriptions.len() as u32;
        let is_last = |group: &Group, topics: &[u32]| id > 0 && group.subscriptions.row(id - 1) == topics;
        // Most members have the subscription of the member before. A row names no topic without partitions, and neither does a
        // list that equals it.
        if is_last(group, topics) {
            return id - 1;
        }
        let exists = |&topic: &u32| group.topics.count(topic) > 0;
        let row = if topics.is_sorted_by(|a, b| a < b) && topics.iter().all(exists) {
            topics
        } else {
            scratch.clear();
            scratch.extend(topics.iter().filter(|topic| exists(topic)));
            scratch.sort_unstable();
            scratch.dedup();
            for &topic in topics.iter().filter(|topic| !exists(topic)) {
                let name = group.topics.names.get(topic);
                if !group.missing.contains(name) {
                    group.missing.insert(name.to_owned());
                }
            }
            if is_last(group, scratch) {
                return id - 1;
            }
            scratch
        };
        // The first subscription enters the table together with the second, so a group with only one needs no table.
        if id == 1 {
            let first = hash_of(group.subscriptions.row(0));
            known.insert_unique(first, (first, 0), |&(hash, _)| hash);
        }
        if id > 0 {
            let hash = hash_of(row);
            let same = |&(of, id): &(u64, u32)| of == hash && group.subscriptions.row(id) == row;
            if let Some(&(_, id)) = known.find(hash, same) {
                return id;
            }
            known.insert_unique(hash, (hash, id), |&(hash, _)| hash);
        }
        group.subscriptions.push_row(row);
        id
    }

    /// Notes a topic that a member named and that does not exist.
    pub fn note_missing(&mut self, topic: &str) {
        if !self.group.missing.contains(topic) {
            self.group.missing.insert(topic.to_owned());
        }
    }

    /// Begins the next member, whose subscription is one of [`GroupBuilder::subscription`]. Without
    /// [`MemberBuilder::finish`], the group gets neither the member nor its claims.
    pub fn member<'a>(&'a mut self, id: &'a str, subscription: u32) -> MemberBuilder<'a> {
        self.forget_unfinished();
        MemberBuilder {
            builder: self,
            id,
            instance_id: "",
            subscription,
            generation: NO_GENERATION,
            rack: NONE,
            stand_in: false,
            may_claim_more: false,
        }
    }

    /// Adds members without claims, generations and racks. Each has an id, a `group.instance.id` (the empty string is none), and the
    /// topics to which it subscribes, as for [`GroupBuilder::subscription`].
    pub(crate) fn bare_members<'m>(&mut self, members: impl ExactSizeIterator<Item = (&'m str, &'m str, &'m [u32])>) {
        self.forget_unfinished();
        self.group.subscription_of.reserve(members.len());
        // Most members have the topics of the member before.
        let (mut last_topics, mut subscription) = (&[][..], NONE);
        for (id, instance_id, topics) in members {
            if subscription == NONE || !topics.iter().eq(last_topics) {
                (last_topics, subscription) = (topics, self.subscription(topics));
            }
            self.group.push_named(id, instance_id, subscription);
        }
        let group = &mut self.group;
        let members = group.subscription_of.len();
        group.claim_starts.resize(members + 1, position(group.claims.len()));
        group.number_starts.resize(members + 1, position(group.numbers.len()));
        group.generations.resize(members, NO_GENERATION);
        group.racks.resize(members, NONE);
        group.stand_ins.resize(members, false);
    }

    /// Takes back the claims and numbers of a member that was not finished.
    fn forget_unfinished(&mut self) {
        let end = |starts: &[u32]| starts.last().map_or(0, |&end| end as usize);
        let group = &mut self.group;
        group.claims.truncate(end(&group.claim_starts));
        group.numbers.truncate(end(&group.number_starts));
    }

    /// The group.
    #[must_use]
    pub fn finish(mut self) -> Group {
        self.forget_unfinished();
        self.group
    }
}

/// One member, while it is built. Its claims go straight into the group.
#[derive(Debug)]
pub struct MemberBuilder<'a> {
    builder: &'a mut GroupBuilder,
    id: &'a str,
    instance_id: &'a str,
    subscription: u32,
    generation: i32,
    rack: u32,
    stand_in: bool,
    may_claim_more: bool,
}

impl<'a> MemberBuilder<'a> {
    /// Sets the `group.instance.id`; the empty string is none.
    #[must_use]
    pub fn instance_id(mut self, instance_id: &'a str) -> Self {
        self.instance_id = instance_id;
        self
    }

    /// Sets the generation of the claims; a negative one is none.
    #[must_use]
    pub fn generation(mut self, generation: i32) -> Self {
        self.generation = generation.max(NO_GENERATION);
        self
    }

    /// Sets the rack; the empty string is none.
    #[must_use]
    pub fn rack(mut self, rack: &str) -> Self {
        // A rack without replicas gets an id too. With NONE instead, the member would match every partition.
        self.rack = if rack.is_empty() { NONE } else { self.builder.group.topics.racks.names.intern(rack) };
        self
    }

    /// The topics, for looking up names.
    #[must_use]
    pub fn topics(&self) -> &Topics {
        &self.builder.group.topics
    }

    /// Adds a claim.
    pub fn claim(&mut self, partition: u32) {
        debug_assert!((partition as usize) < self.builder.group.topics.partitions());
        self.may_claim_more = true;
        self.builder.group.claims.push(partition);
    }

    /// Adds claims by topic name and partition number, as they were sent. Claims on partitions that do not exist are left out.
    /// The topics of the member's subscription, in their order, are tried first.
    #[inline]
    pub fn claim_named<'n, N: IntoIterator<Item = i32>>(&mut self, claimed: impl IntoIterator<Item = (&'n [u8], N)>) {
        let Group { topics, subscriptions, claims, .. } = &mut self.builder.group;
        let expected = subscriptions.row(self.subscription);
        // Members write topics in sorted order, and a plan that deals in turn gives a member topics at a constant distance. So
        // the first guess is the topic at the same distance as between the last two, the second guess is the topic right behind
        // the last one. Positions are those in `expected`:
        //
        // expected   a b c d e f g h
        // claimed    a     d     g       after a and d: next = 4 (e), step = 3; the first guess is position 4 + 3 - 1 (g)
        let (mut next, mut step) = (0, 1);
        for (name, numbers) in claimed {
            let is_at = |position: usize| expected.get(position).is_some_and(|&topic| topics.is_named(topic, name));
            let position = match next {
                _ if is_at(next + step - 1) => next + step - 1,
                _ if step > 1 && is_at(next) => next,
                _ => usize::MAX,
            };
            let topic = match expected.get(position) {
                Some(&topic) => {
                    (next, step) = (position + 1, position + 1 - next);
                    topic
                }
                None => {
                    let Some(topic) = topics.find(name) else { continue };
                    let behind = count_up_to(expected, next, topic);
                    self.may_claim_more |= behind == 0 || expected[behind - 1] != topic;
                    (next, step) = (behind, behind.saturating_sub(next).max(1));
                    topic
                }
            };
            let range = topics.range(topic);
            let count = range.len() as u32;
            for number in numbers {
                if number.cast_unsigned() < count {
                    claims.push(range.start + number.cast_unsigned());
                }
            }
        }
    }

    /// Forgets the claims so far.
    pub fn forget_claims(&mut self) {
        self.builder.forget_unfinished();
    }

    /// Adds the partition numbers that a member of a stream join held; negative ones are left out.
    pub fn numbers(&mut self, numbers: impl Iterator<Item = i32>) {
        self.builder.group.numbers.extend(numbers.filter_map(|number| u32::try_from(number).ok()));
    }

    /// Marks claims and generation as a stand-in for the member's own data: see [`Group::is_stand_in`].
    pub fn stand_in(&mut self) {
        self.stand_in = true;
    }

    /// Notes that the member claimed a partition beyond the last of the topic.
    pub fn note_shrunk(&mut self, topic: u32) {
        self.builder.group.shrunk.insert(topic);
    }

    /// Adds the member to the group.
    ///
    /// # Panics
    /// With 2^32 claims in all; in debug builds, if the ids do not ascend.
    pub fn finish(self) {
        let group = &mut self.builder.group;
        let last = group.push_named(self.id, self.instance_id, self.subscription);
        group.claim_starts.push(position(group.claims.len()));
        let numbers = &group.numbers[group.number_starts[last as usize] as usize..];
        if let Some(&highest) = numbers.iter().max() {
            let topics = group.subscriptions.row(self.subscription).iter();
            group.shrunk.extend(topics.filter(|&&topic| group.topics.count(topic) <= highest));
        }
        group.number_starts.push(position(group.numbers.len()));
        group.stand_ins.push(self.stand_in);
        if self.may_claim_more {
            group.may_claim_more.push(last);
        }
        group.generations.push(self.generation);
        group.racks.push(self.rack);
    }
}

impl Group {
    /// Adds a member with its names and its subscription. Returns its number.
    #[inline]
    fn push_named(&mut self, id: &str, instance_id: &str, subscription: u32) -> u32 {
        let member = self.member_ids.len() as u32;
        debug_assert!(member == 0 || self.member_ids.get(member - 1) < id, "member ids must ascend");
        self.member_ids.push(id);
        self.instance_ids.push(instance_id);
        self.subscription_of.push(subscription);
        member
    }
}

/// How many of the ascending topics are at most `topic`. `guess` is at most their number. O(log d) if it is d too low, O(log topics) if
/// it is too high.
fn count_up_to(topics: &[u32], guess: usize, topic: u32) -> usize {
    let is_behind = |&known: &u32| known <= topic;
    if guess > 0 && !is_behind(&topics[guess - 1]) {
        return topics[..guess].partition_point(is_behind);
    }
    // Members name topics in order, so the next one is mostly near.
    let (mut start, mut length) = (guess, 8);
    while let Some(near) = topics.get(start..start + length)
        && near.last().is_some_and(is_behind)
    {
        (start, length) = (start + length, 2 * length);
    }
    let near = &topics[start..topics.len().min(start + length)];
    start + near.partition_point(is_behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_from_any_guess() {
        let topics: Vec<u32> = (0..60).map(|at| at * 3 + at / 20 * 7).collect();
        for topic in 0..200 {
            let expected = topics.iter().filter(|&&known| known <= topic).count();
            for guess in [0, 1, 7, 8, 20, 59, 60] {
                assert_eq!(count_up_to(&topics, guess, topic), expected, "{topic} from {guess}");
            }
        }
        assert_eq!((count_up_to(&[], 0, 3), count_up_to(&[5], 1, 3), count_up_to(&[3], 0, 3)), (0, 0, 1));
    }
}
