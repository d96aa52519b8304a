//! Which partition a producer's record goes to: Kafka's key hash, KIP-480's sticky partition, KIP-794's adaptive one, and
//! round robin.
//!
//! What is here is the state of one topic, to be shared by threads, and the rules that move it. There is no clock, and
//! randomness is the caller's ([`Random`]). A choice takes the topic's [`Partitions`] as they are now; the calls that
//! need no choice (`peek`) take nothing, so that a client reads its metadata per batch, not per record.

pub mod adaptive;
pub mod column;
pub mod key_hash;
pub mod murmur2;
pub mod round_robin;
pub mod sticky;
pub mod topics;

use thiserror::Error;

/// Why a record has no partition.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PartitionerError {
    /// The metadata knows the topic, but none of its partitions.
    #[error("topic {topic:?} has 0 partitions in the cluster's metadata; a record needs one, so wait for the topic")]
    NoPartitions {
        /// The topic's name.
        topic: String,
    },
    /// The record names a partition that the topic does not have.
    #[error("partition {partition} of topic {topic:?} does not exist; the topic has {count}: give 0 to {}", count - 1)]
    OutOfRange {
        /// The topic's name.
        topic: String,
        /// The partition asked for.
        partition: i64,
        /// How many partitions there are, at least one.
        count: usize,
    },
}

/// The randomness that the choices need.
pub trait Random {
    /// A number of `0..bound`, each equally likely; `bound` is at least 1.
    fn below(&mut self, bound: u64) -> u64;
}

impl<F: FnMut(u64) -> u64> Random for F {
    fn below(&mut self, bound: u64) -> u64 {
        self(bound)
    }
}

/// The partitions of one topic as a client's metadata has them: numbers in ascending order, never none at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partitions {
    all: Vec<u32>,
    available: Vec<u32>,
}

impl Partitions {
    /// All partitions of `topic`, and those with a leader, in any order. An available partition that is not among all is
    /// left out: metadata read in two steps may have changed between them.
    ///
    /// # Errors
    /// [`PartitionerError::NoPartitions`] if `all` is empty.
    pub fn new(topic: &str, mut all: Vec<u32>, available: Vec<u32>) -> Result<Self, PartitionerError> {
        if all.is_empty() {
            return Err(PartitionerError::NoPartitions { topic: topic.to_owned() });
        }
        all.sort_unstable();
        all.dedup();
        Ok(Self { available: led(&all, available), all })
    }

    /// The same topic with the leaders read again.
    #[must_use]
    pub fn with_available(&self, available: Vec<u32>) -> Self {
        Self { all: self.all.clone(), available: led(&self.all, available) }
    }

    /// All partitions, with and without a leader.
    #[must_use]
    pub fn all(&self) -> &[u32] {
        &self.all
    }

    /// Whether these are all partitions of the topic, in whatever order they come.
    #[must_use]
    pub fn is_all(&self, partitions: &[u32]) -> bool {
        partitions.len() == self.all.len() && partitions.iter().all(|&partition| self.contains(partition))
    }

    /// The partitions with a leader.
    #[must_use]
    pub fn available(&self) -> &[u32] {
        &self.available
    }

    /// Those with a leader, or all if none has one: what a choice is made from.
    #[must_use]
    pub fn candidates(&self) -> &[u32] {
        if self.available.is_empty() { &self.all } else { &self.available }
    }

    /// Whether the topic has this partition.
    #[must_use]
    pub fn contains(&self, partition: u32) -> bool {
        self.all.binary_search(&partition).is_ok()
    }

    /// The partition of a key: its hash over all partitions, available or not, as Java has it.
    #[must_use]
    pub fn of_key(&self, key: &[u8]) -> u32 {
        self.all[murmur2::index(murmur2::hash(key), self.all.len() as u32) as usize]
    }

    /// The partition that a record names itself.
    ///
    /// # Errors
    /// [`PartitionerError::OutOfRange`] if the topic does not have it.
    pub fn explicit(&self, topic: &str, partition: i64) -> Result<u32, PartitionerError> {
        match u32::try_from(partition) {
            Ok(number) if self.contains(number) => Ok(number),
            _ => Err(PartitionerError::OutOfRange { topic: topic.to_owned(), partition, count: self.all.len() }),
        }
    }
}

fn led(all: &[u32], mut available: Vec<u32>) -> Vec<u32> {
    available.retain(|partition| all.binary_search(partition).is_ok());
    available.sort_unstable();
    available.dedup();
    available
}

/// What a partitioner remembers of one topic. Threads share it: every method may be called at any time.
pub trait TopicState: Send + Sync {
    /// The topic has other partitions now: one that is gone must not be chosen any more.
    fn refresh(&self, partitions: &Partitions);
}

/// A state that stays with a partition until a choice is due.
pub trait Chooser: TopicState {
    /// The partition of a record of so many bytes, if no choice has to be made for it.
    fn peek(&self, size: u64) -> Option<u32>;

    /// The partition of a record of so many bytes; makes a choice if one is due.
    fn partition(&self, size: u64, partitions: &Partitions, random: &mut dyn Random) -> u32;

    /// A new batch is about to be opened for a record that was to go to `previous`. True if that is settled: a stale notice,
    /// or the partition stays. If false, [`Chooser::next`] is to make a choice.
    fn settle(&self, previous: i64) -> bool;

    /// Leaves `previous` for another partition. Does nothing if it was left already.
    fn next(&self, previous: i64, partitions: &Partitions, random: &mut dyn Random);

    /// A keyed record passed by; it took no part in the choice.
    fn keyed(&self) {}
}
