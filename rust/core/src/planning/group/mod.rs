//! A group as dense ids: the input of every strategy.
//!
//! Topics are numbered in byte order of their names and members in byte order of their ids. Every partition has one flat id:
//! topic after topic, number after number. Solvers see ids only. Since ids follow the sorted names, a result that depends on
//! ids only does not depend on the order in which anything was read.

mod builder;
mod claims;
mod racks;
mod slab;

use std::collections::BTreeSet;

use hashbrown::HashTable;
use thiserror::Error;

pub use builder::{GroupBuilder, MemberBuilder};
pub use claims::MANY_CLAIMS;
use claims::OwnersClaims;
pub use racks::{Racks, ReplicaRacks};
pub use slab::{Csr, Interner, Names};
use slab::{are_equal, hash_of};

/// The id of no topic, member, partition or rack: it stands for "none".
pub const NONE: u32 = u32::MAX;

/// The most partitions that a group may have: far above any cluster, and low enough that flat arrays fit memory.
pub const MAX_PARTITIONS: u64 = 100_000_000;

/// Why a group cannot be built.
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
    /// The racks of its replicas, where they are known.
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
        self.index.find(hash_of(name), |&id| self.is_named(id, name)).copied()
    }

    /// As [`Topics::find`], but tries `guess` first: a reader of sorted names finds each without hashing.
    #[must_use]
    pub fn find_near(&self, name: &[u8], guess: u32) -> Option<u32> {
        if (guess as usize) < self.len() && self.is_named(guess, name) { Some(guess) } else { self.find(name) }
    }

    /// Whether this is the topic's name.
    #[inline]
    #[must_use]
    pub fn is_named(&self, topic: u32, name: &[u8]) -> bool {
        are_equal(self.names.bytes_of(topic), name)
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

    /// By flat partition, the number of records that the group has still to read. Empty where that is not known.
    #[must_use]
    pub fn lags(&self) -> &[u64] {
        &self.lags
    }

    /// Sets the lags, by flat partition.
    ///
    /// # Panics
    /// If there is not one for each partition.
    pub fn set_lags(&mut self, lags: Vec<u64>) {
        assert_eq!(lags.len(), self.partitions(), "one lag for each partition");
        self.lags = lags;
    }
}

/// A group: topics, members, subscriptions, and the partitions that each member claims to have owned.
#[derive(Debug, Clone)]
pub struct Group {
    topics: Topics,
    member_ids: Names,
    /// Instance id by member; the empty string is none.
    instance_ids: Names,
    subscriptions: Csr,
    subscription_of: Vec<u32>,
    claim_starts: Vec<u32>,
    claims: Vec<u32>,
    owners_claims: Option<OwnersClaims>,
    generations: Vec<i32>,
    racks: Vec<u32>,
    number_starts: Vec<u32>,
    numbers: Vec<u32>,
    stand_ins: Vec<bool>,
    may_claim_more: Vec<u32>,
    missing: BTreeSet<String>,
    shrunk: BTreeSet<u32>,
}

impl Group {
    /// The topics.
    #[must_use]
    pub fn topics(&self) -> &Topics {
        &self.topics
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
    pub fn subscriptions(&self) -> &Csr {
        &self.subscriptions
    }

    /// By member, the row of [`Group::subscriptions`] that it subscribes to.
    #[must_use]
    pub fn subscription_of(&self) -> &[u32] {
        &self.subscription_of
    }

    /// The topics that a member subscribes to, ascending.
    #[must_use]
    pub fn subscription(&self, member: u32) -> &[u32] {
        self.subscriptions.row(self.subscription_of[member as usize])
    }

    /// Whether the member subscribes to the topic. O(log topics).
    #[must_use]
    pub fn subscribes(&self, member: u32, topic: u32) -> bool {
        self.subscription(member).binary_search(&topic).is_ok()
    }

    /// The flat partitions that a member claims, in the order of its claims, repeats included. All of them exist.
    /// [`crate::planning::settlement`] decides which claims count. After [`Group::pack_claims`], only those that are not the
    /// owner's: see [`Group::each_claim`].
    #[must_use]
    pub fn claims(&self, member: u32) -> &[u32] {
        &self.claims[self.claim_starts[member as usize] as usize..self.claim_starts[member as usize + 1] as usize]
    }

    /// Whether the member may claim partitions of topics that it does not subscribe to; false if it certainly does not.
    #[must_use]
    pub(crate) fn may_claim_more(&self, member: u32) -> bool {
        self.may_claim_more.binary_search(&member).is_ok()
    }

    /// The partition numbers that a member of a stream join claims, of all its topics, with repeats and with numbers that no
    /// topic has. Empty where the member claims partitions: see [`Group::claims`].
    #[must_use]
    pub fn numbers(&self, member: u32) -> &[u32] {
        &self.numbers[self.number_starts[member as usize] as usize..self.number_starts[member as usize + 1] as usize]
    }

    /// Whether the member's own data was missing. Then its generation is the group's, and no epoch of the stream join.
    #[must_use]
    pub fn is_stand_in(&self, member: u32) -> bool {
        self.stand_ins[member as usize]
    }

    /// The noted topics that members named and that do not exist or have no partition.
    #[must_use]
    pub fn missing_topics(&self) -> &BTreeSet<String> {
        &self.missing
    }

    /// The noted topics of which members claimed partitions beyond the last.
    #[must_use]
    pub fn shrunk_topics(&self) -> &BTreeSet<u32> {
        &self.shrunk
    }

    /// Replaces the claims and the numbers of all members. Each pair is the starts of the members' rows, with the end, and the
    /// items.
    pub(crate) fn replace_claims(&mut self, claims: (Vec<u32>, Vec<u32>), numbers: (Vec<u32>, Vec<u32>)) {
        debug_assert!(claims.0.len() == self.claim_starts.len() && numbers.0.len() == self.number_starts.len());
        (self.claim_starts, self.claims) = claims;
        (self.number_starts, self.numbers) = numbers;
    }

    /// The generation of each member's claims; [`NO_GENERATION`](crate::protocol::subscription::NO_GENERATION) if absent.
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

/// The order in which members are added: positions sorted by id, of equal ids only the first. The second list has the positions
/// that are left out.
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
