//! Partitioners: they choose the partition of a producer's record, by Kafka's key hash, KIP-480's sticky partition,
//! KIP-794's adaptive partition, or round robin.
//!
//! A partitioner has one state for each topic, which threads share. There is no clock, and the caller provides the
//! random numbers ([`Random`]). A choice takes the topic's current [`PartitionList`]. A call without a choice (`peek`)
//! does not, so a client reads its metadata for each batch and not for each record.

pub mod adaptive;
pub mod column;
pub mod key_hash;
pub mod murmur2;
pub mod round_robin;
pub mod sticky;
pub mod topics;

use thiserror::Error;

/// The reason why a record has no partition.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PartitionerError {
    /// The metadata contains the topic, but no partition of it.
    #[error("topic {topic:?} has 0 partitions in the cluster's metadata; a record needs one, so wait for the topic")]
    NoPartitions {
        /// The topic's name.
        topic: String,
    },
    /// The record's explicit partition does not exist.
    #[error("partition {partition} of topic {topic:?} does not exist; the topic has {count}: give 0 to {}", count - 1)]
    OutOfRange {
        /// The topic's name.
        topic: String,
        /// The explicit partition.
        partition: i64,
        /// The number of partitions, at least one.
        count: usize,
    },
}

/// The random numbers for the choices.
pub trait Random {
    /// A number of `0..bound`, each equally likely; `bound` is at least 1.
    fn below(&mut self, bound: u64) -> u64;
}

impl<F: FnMut(u64) -> u64> Random for F {
    fn below(&mut self, bound: u64) -> u64 {
        self(bound)
    }
}

/// The partitions of one topic in a client's metadata: numbers in ascending order, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionList {
    all: Vec<u32>,
    available: Vec<u32>,
}

impl PartitionList {
    /// `all` partitions of `topic`, and the `available` ones, which have a leader, in any order. An available partition
    /// that is not in `all` is ignored: a client may read the two lists in two steps, and the metadata may change
    /// between them.
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

    /// The same topic with new available partitions.
    #[must_use]
    pub fn with_available(&self, available: Vec<u32>) -> Self {
        Self { all: self.all.clone(), available: led(&self.all, available) }
    }

    /// All partitions, with and without a leader.
    #[must_use]
    pub fn all(&self) -> &[u32] {
        &self.all
    }

    /// The partitions with a leader.
    #[must_use]
    pub fn available(&self) -> &[u32] {
        &self.available
    }

    /// The partitions for a choice: those with a leader, or all if none has one.
    #[must_use]
    pub fn candidates(&self) -> &[u32] {
        if self.available.is_empty() { &self.all } else { &self.available }
    }

    /// Whether the topic has this partition.
    #[must_use]
    pub fn contains(&self, partition: u32) -> bool {
        self.all.binary_search(&partition).is_ok()
    }

    /// The partition of a key: its hash modulo the number of all partitions, available or not, as in Java.
    #[must_use]
    pub fn of_key(&self, key: &[u8]) -> u32 {
        self.all[murmur2::index(murmur2::hash(key), self.all.len() as u32) as usize]
    }

    /// Checks the explicit partition of a record.
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

/// The state of a partitioner for one topic. Threads share it: any thread may call any method at any time.
pub trait TopicState: Send + Sync {
    /// The partitions of the topic changed: a deleted partition must not be chosen again.
    fn refresh(&self, partitions: &PartitionList);
}

/// A state that keeps a partition until the next choice.
pub trait Chooser: TopicState {
    /// The partition of a record of `size` bytes; `None` if a choice is due.
    fn peek(&self, size: u64) -> Option<u32>;

    /// The partition of a record of `size` bytes. Makes a choice if one is due.
    fn partition(&self, size: u64, partitions: &PartitionList, random: &mut dyn Random) -> u32;

    /// The client is going to open a new batch for a record for `previous`. Returns whether the topic keeps its
    /// partition; a stale notice keeps it too. If false, the caller calls [`Chooser::next`].
    fn keeps(&self, previous: i64) -> bool;

    /// Replaces `previous` by another partition. No effect if it was replaced already.
    fn next(&self, previous: i64, partitions: &PartitionList, random: &mut dyn Random);

    /// A record with a key was sent. It is not counted.
    fn keyed(&self) {}
}
