//! A group as dense ids: the input of every strategy.
//!
//! Topics are numbered in byte order of their names, members in byte order of their ids, and every
//! partition has one flat id: topic after topic, number after number. Names exist only here; a solver
//! sees `u32`s and slices. Because the numbering follows the sorted names, a result that depends only
//! on ids does not depend on the order in which anything was read.

mod racks;
mod slab;

use std::collections::BTreeSet;

use hashbrown::HashTable;
use thiserror::Error;

pub use racks::{Racks, ReplicaRacks};
pub use slab::{Csr, Interner, Names};
use slab::{hash_of, position};

/// "Nobody", "nothing": the id that no topic, member, partition or rack has.
pub const NONE: u32 = u32::MAX;

/// The generation of a claim that carries none; older than every real one.
pub const NO_GENERATION: i32 = -1;

/// The most partitions one group may have. Far above any cluster, low enough that flat arrays fit memory.
pub const MAX_PARTITIONS: u64 = 100_000_000;

/// What can be wrong with the description of a group.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GroupError {
    /// A negative partition count.
    #[error("topic {topic:?} has {count} partitions; a partition count cannot be negative")]
    NegativeCount {
        /// The topic's name.
        topic: String,
        /// The count that was given.
        count: i64,
    },
    /// More partitions than [`MAX_PARTITIONS`] in all.
    #[error("the topics up to {topic:?} have {total} partitions together; at most {MAX_PARTITIONS} are supported")]
    TooManyPartitions {
        /// The topic at which the limit was passed.
        topic: String,
        /// The sum so far.
        total: u64,
    },
    /// A topic given twice.
    #[error("topic {topic:?} is given twice")]
    DuplicateTopic {
        /// The topic's name.
        topic: String,
    },
    /// A list of replica racks whose length is not the partition count.
    #[error("topic {topic:?} has {count} partitions but racks for {racks}; give one rack set per partition")]
    RackCount {
        /// The topic's name.
        topic: String,
        /// Its partition count.
        count: u32,
        /// The number of rack sets given.
        racks: usize,
    },
}

/// One topic as given from outside.
#[derive(Debug, Clone)]
pub struct TopicSpec<'a> {
    /// The topic's name.
    pub name: &'a str,
    /// Its partition count.
    pub partitions: i64,
    /// Where its replicas are, if known.
    pub racks: Option<ReplicaRacks<'a>>,
}

/// The topics of a group, in byte order of their names, and the flat space of their partitions.
#[derive(Debug, Clone)]
pub struct Topics {
    names: Names,
    /// Flat id of partition 0 of each topic, and at the end the number of all partitions.
    first: Vec<u32>,
    index: HashTable<u32>,
    racks: Racks,
    lags: Vec<u64>,
}

impl Topics {
    /// Numbers the topics.
    ///
    /// # Errors
    /// A negative count, a topic given twice, more than [`MAX_PARTITIONS`] in all, or racks for another number of partitions.
    pub fn new(mut specs: Vec<TopicSpec<'_>>) -> Result<Self, GroupError> {
        specs.sort_by(|a, b| a.name.cmp(b.name));
        let mut names = Names::default();
        let mut first = Vec::with_capacity(specs.len() + 1);
        let mut index = HashTable::with_capacity(specs.len());
        let mut total = 0u64;
        first.push(0);
        for (id, spec) in specs.iter().enumerate() {
            if id > 0 && specs[id - 1].name == spec.name {
                return Err(GroupError::DuplicateTopic { topic: spec.name.to_owned() });
            }
            let count = u64::try_from(spec.partitions)
                .map_err(|_| GroupError::NegativeCount { topic: spec.name.to_owned(), count: spec.partitions })?;
            total = total.saturating_add(count);
            if total > MAX_PARTITIONS {
                return Err(GroupError::TooManyPartitions { topic: spec.name.to_owned(), total });
            }
            if let Some(racks) = spec.racks.as_ref().filter(|racks| racks.len() as u64 != count) {
                let (topic, count) = (spec.name.to_owned(), count as u32);
                return Err(GroupError::RackCount { topic, count, racks: racks.len() });
            }
            names.push(spec.name);
            first.push(total as u32);
            let hash = hash_of(spec.name.as_bytes());
            index.insert_unique(hash, id as u32, |&id| hash_of(specs[id as usize].name.as_bytes()));
        }
        let racks = Racks::number(specs.iter().map(|spec| (spec.racks.as_ref(), spec.partitions as usize)));
        Ok(Self { names, first, index, racks, lags: Vec::new() })
    }

    /// The number of topics.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is no topic.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The number of partitions of all topics: the size of the flat space.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.first[self.len()] as usize
    }

    /// The names, in order.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The flat ids of a topic's partitions; their order is that of the partition numbers.
    #[must_use]
    pub fn range(&self, topic: u32) -> std::ops::Range<u32> {
        self.first[topic as usize]..self.first[topic as usize + 1]
    }

    /// The partition count of a topic.
    #[must_use]
    pub fn count(&self, topic: u32) -> u32 {
        self.range(topic).len() as u32
    }

    /// The topic with this name.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<u32> {
        self.index.find(hash_of(name), |&id| self.names.get(id).as_bytes() == name).copied()
    }

    /// As [`Topics::find`], trying `guess` first: names that are read in sorted order are found without hashing.
    #[must_use]
    pub fn find_near(&self, name: &[u8], guess: u32) -> Option<u32> {
        if (guess as usize) < self.len() && self.is_named(guess, name) { Some(guess) } else { self.find(name) }
    }

    /// Whether this is the topic's name.
    #[inline]
    #[must_use]
    pub fn is_named(&self, topic: u32, name: &[u8]) -> bool {
        self.names.get(topic).as_bytes() == name
    }

    /// The topic of each flat partition.
    #[must_use]
    pub fn of_partitions(&self) -> Vec<u32> {
        let mut topic_of = Vec::with_capacity(self.partitions());
        for topic in 0..self.len() as u32 {
            topic_of.resize(self.first[topic as usize + 1] as usize, topic);
        }
        topic_of
    }

    /// The topic and the number of one flat partition. O(log topics); for many, use [`Topics::of_partitions`].
    #[must_use]
    pub fn locate(&self, partition: u32) -> (u32, u32) {
        let topic = self.first.partition_point(|&first| first <= partition) - 1;
        (topic as u32, partition - self.first[topic])
    }

    /// Replica racks.
    #[must_use]
    pub fn racks(&self) -> &Racks {
        &self.racks
    }

    /// By flat partition, how many records the group has still to read; empty where that is not known.
    #[must_use]
    pub fn lags(&self) -> &[u64] {
        &self.lags
    }

    /// States the lags, by flat partition.
    ///
    /// # Panics
    /// If there is not one for each partition.
    pub fn set_lags(&mut self, lags: Vec<u64>) {
        assert_eq!(lags.len(), self.partitions(), "one lag for each partition");
        self.lags = lags;
    }
}

/// A group: topics, members, subscriptions, and what each member says it owned.
#[derive(Debug, Clone)]
pub struct Group {
    topics: Topics,
    member_ids: Names,
    /// Instance id by member; the empty string is none.
    instance_ids: Names,
    patterns: Csr,
    pattern_of: Vec<u32>,
    claim_starts: Vec<u32>,
    claims: Vec<u32>,
    generations: Vec<i32>,
    racks: Vec<u32>,
    number_starts: Vec<u32>,
    numbers: Vec<u32>,
    stand_ins: Vec<bool>,
    missing: BTreeSet<String>,
    shrunk: BTreeSet<u32>,
}

impl Group {
    /// The topics.
    #[must_use]
    pub fn topics(&self) -> &Topics {
        &self.topics
    }

    /// The topics, without the members.
    #[must_use]
    pub fn into_topics(self) -> Topics {
        self.topics
    }

    /// The number of members.
    #[must_use]
    pub fn members(&self) -> usize {
        self.member_ids.len()
    }

    /// Member ids in byte order; a member's number is its place here.
    #[must_use]
    pub fn member_ids(&self) -> &Names {
        &self.member_ids
    }

    /// A member's `group.instance.id`.
    #[must_use]
    pub fn instance_id(&self, member: u32) -> Option<&str> {
        Some(self.instance_ids.get(member)).filter(|id| !id.is_empty())
    }

    /// The distinct subscriptions: rows of topic ids, ascending, without repeats, without topics that have no partition.
    #[must_use]
    pub fn patterns(&self) -> &Csr {
        &self.patterns
    }

    /// By member, the row of [`Group::patterns`] that it subscribes to.
    #[must_use]
    pub fn pattern_of(&self) -> &[u32] {
        &self.pattern_of
    }

    /// The topics that a member subscribes to, ascending.
    #[must_use]
    pub fn subscription(&self, member: u32) -> &[u32] {
        self.patterns.row(self.pattern_of[member as usize])
    }

    /// Whether the member subscribes to the topic. O(log topics).
    #[must_use]
    pub fn subscribes(&self, member: u32, topic: u32) -> bool {
        self.subscription(member).binary_search(&topic).is_ok()
    }

    /// The flat partitions that a member says it owned, in the order in which it said so, repeats included. They exist;
    /// whether it may still have them is for [`crate::ownership`] to say.
    #[must_use]
    pub fn claims(&self, member: u32) -> &[u32] {
        &self.claims[self.claim_starts[member as usize] as usize..self.claim_starts[member as usize + 1] as usize]
    }

    /// The partition numbers that a member of a stream join says it held, whatever the topic: as it said so, with repeats and
    /// numbers that no topic has. Empty where it said so by partition: see [`Group::claims`].
    #[must_use]
    pub fn numbers(&self, member: u32) -> &[u32] {
        &self.numbers[self.number_starts[member as usize] as usize..self.number_starts[member as usize + 1] as usize]
    }

    /// Whether the member's generation is the group's and not an epoch of the stream join: its own data was missing.
    #[must_use]
    pub fn is_stand_in(&self, member: u32) -> bool {
        self.stand_ins[member as usize]
    }

    /// Topics that members named and that do not exist or have no partition, as far as they were noted.
    #[must_use]
    pub fn missing_topics(&self) -> &BTreeSet<String> {
        &self.missing
    }

    /// Topics of which members claimed partitions beyond the last, as far as they were noted.
    #[must_use]
    pub fn shrunk_topics(&self) -> &BTreeSet<u32> {
        &self.shrunk
    }

    /// Replaces the claims and numbers of all members: the starts of the members' rows with the end, and the items.
    pub(crate) fn replace_claims(&mut self, claims: (Vec<u32>, Vec<u32>), numbers: (Vec<u32>, Vec<u32>)) {
        debug_assert!(claims.0.len() == self.claim_starts.len() && numbers.0.len() == self.number_starts.len());
        (self.claim_starts, self.claims) = claims;
        (self.number_starts, self.numbers) = numbers;
    }

    /// Gives the memory of the claims back, once they are settled: a million of them are 4 MB.
    pub fn forget_claims(&mut self) {
        self.claims = Vec::new();
        self.claim_starts.fill(0);
        self.numbers = Vec::new();
        self.number_starts.fill(0);
    }

    /// The generation of each member's claims; [`NO_GENERATION`] where it gave none.
    #[must_use]
    pub fn generations(&self) -> &[i32] {
        &self.generations
    }

    /// Each member's rack, an id of [`Racks::names`]; [`NONE`] for a member without.
    #[must_use]
    pub fn racks(&self) -> &[u32] {
        &self.racks
    }
}

/// Builds a [`Group`] member by member, in byte order of their ids.
#[derive(Debug)]
pub struct GroupBuilder {
    group: Group,
    known: HashTable<u32>,
    scratch: Vec<u32>,
    stand_in: bool,
}

impl GroupBuilder {
    /// A group of these topics and, so far, no member.
    #[must_use]
    pub fn new(topics: Topics) -> Self {
        let group = Group {
            topics,
            member_ids: Names::default(),
            instance_ids: Names::default(),
            patterns: Csr::new(),
            pattern_of: Vec::new(),
            claim_starts: vec![0],
            claims: Vec::new(),
            generations: Vec::new(),
            racks: Vec::new(),
            number_starts: vec![0],
            numbers: Vec::new(),
            stand_ins: Vec::new(),
            missing: BTreeSet::new(),
            shrunk: BTreeSet::new(),
        };
        Self { group, known: HashTable::new(), scratch: Vec::new(), stand_in: false }
    }

    /// The topics, for looking up names.
    #[must_use]
    pub fn topics(&self) -> &Topics {
        &self.group.topics
    }

    /// Makes room for this many claims in all.
    pub fn reserve_claims(&mut self, claims: usize) {
        self.group.claims.reserve(claims);
    }

    /// The id of a subscription, for [`GroupBuilder::push_member`]; `topics` may be unsorted and have repeats, and is left
    /// sorted without them. Topics without partitions do not count.
    pub fn pattern(&mut self, topics: &[u32]) -> u32 {
        let Self { group, known, scratch, .. } = self;
        scratch.clear();
        scratch.extend(topics.iter().filter(|&&topic| group.topics.count(topic) > 0));
        if !scratch.is_sorted_by(|a, b| a < b) {
            scratch.sort_unstable();
            scratch.dedup();
        }
        let hash = hash_of(scratch.as_slice());
        for &topic in topics.iter().filter(|&&topic| group.topics.count(topic) == 0) {
            let name = group.topics.names.get(topic);
            if !group.missing.contains(name) {
                group.missing.insert(name.to_owned());
            }
        }
        if let Some(&id) = known.find(hash, |&id| group.patterns.row(id) == scratch) {
            return id;
        }
        let id = group.patterns.len() as u32;
        group.patterns.push_row(scratch);
        known.insert_unique(hash, id, |&id| hash_of(group.patterns.row(id)));
        id
    }

    /// Adds a claim of the member that the next [`GroupBuilder::push_member`] adds.
    pub fn push_claim(&mut self, partition: u32) {
        debug_assert!((partition as usize) < self.group.topics.partitions());
        self.group.claims.push(partition);
    }

    /// Adds claims of the member that the next [`GroupBuilder::push_member`] adds, by topic name and partition number, as
    /// they were sent; those on partitions that do not exist are left out. `pattern` is the member's own: its topics in
    /// their order are what is looked for first.
    #[inline]
    pub fn push_claims<'a, N: IntoIterator<Item = i32>>(
        &mut self,
        claimed: impl IntoIterator<Item = (&'a [u8], N)>,
        pattern: u32,
    ) {
        let Group { topics, patterns, claims, .. } = &mut self.group;
        let expected = patterns.row(pattern);
        // Writers sort, and plans deal in turn: the next topic is mostly as far behind the last one as that was behind the
        // one before it, else right behind it. Positions are those in `expected`.
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
                    let behind = expected.partition_point(|&known| known <= topic);
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

    /// Adds partition numbers that the member that the next [`GroupBuilder::push_member`] adds held in a stream join;
    /// negative ones are left out.
    pub fn push_numbers(&mut self, numbers: impl Iterator<Item = i32>) {
        self.group.numbers.extend(numbers.filter_map(|number| u32::try_from(number).ok()));
    }

    /// Marks the member that the next [`GroupBuilder::push_member`] adds: see [`Group::is_stand_in`].
    pub fn mark_stand_in(&mut self) {
        self.stand_in = true;
    }

    /// Notes a topic that a member named and that does not exist.
    pub fn note_missing(&mut self, topic: &str) {
        if !self.group.missing.contains(topic) {
            self.group.missing.insert(topic.to_owned());
        }
    }

    /// Notes that a member claimed a partition beyond the last of the topic.
    pub fn note_shrunk(&mut self, topic: u32) {
        self.group.shrunk.insert(topic);
    }

    /// Forgets the claims of the member that the next [`GroupBuilder::push_member`] adds.
    pub fn drop_claims(&mut self) {
        let start = self.group.claim_starts.last().map_or(0, |&start| start as usize);
        self.group.claims.truncate(start);
    }

    /// Adds the member to whom all claims since the last one belong. Ids come in strictly ascending byte order.
    ///
    /// # Panics
    /// With 2^32 claims in all; in debug builds, if the ids do not ascend.
    pub fn push_member(&mut self, id: &str, instance_id: &str, pattern: u32, generation: i32, rack: &str) {
        let group = &mut self.group;
        let last = group.member_ids.len() as u32;
        debug_assert!(last == 0 || group.member_ids.get(last - 1) < id, "member ids must ascend");
        group.member_ids.push(id);
        group.instance_ids.push(instance_id);
        group.pattern_of.push(pattern);
        group.claim_starts.push(position(group.claims.len()));
        let numbers = &group.numbers[group.number_starts[last as usize] as usize..];
        if let Some(&highest) = numbers.iter().max() {
            let topics = group.patterns.row(pattern).iter();
            group.shrunk.extend(topics.filter(|&&topic| group.topics.count(topic) <= highest));
        }
        group.number_starts.push(position(group.numbers.len()));
        group.stand_ins.push(std::mem::take(&mut self.stand_in));
        group.generations.push(generation.max(NO_GENERATION));
        // A rack that no replica is on matches nothing, but it is a rack: it gets an id of its own.
        group.racks.push(if rack.is_empty() { NONE } else { group.topics.racks.names.intern(rack) });
    }

    /// The group.
    #[must_use]
    pub fn finish(self) -> Group {
        self.group
    }
}

/// The order in which members are added: positions sorted by id, of equal ids only the first. Also the positions left out.
#[must_use]
pub fn sorted_members(ids: &[&str]) -> (Vec<u32>, Vec<u32>) {
    let mut order: Vec<u32> = (0..ids.len() as u32).collect();
    if !ids.is_sorted() {
        order.sort_by_key(|&position| ids[position as usize]);
    }
    let mut repeats = Vec::new();
    order.dedup_by(|next, kept| {
        let repeated = ids[*next as usize] == ids[*kept as usize];
        if repeated {
            repeats.push(*next);
        }
        repeated
    });
    (order, repeats)
}
