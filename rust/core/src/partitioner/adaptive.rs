//! KIP-794: the partition changes after a number of bytes. A choice prefers partitions with shorter queues.
//!
//! Java's built-in partitioner runs inside the accumulator and reads the state of a partition's last batch. A
//! partitioner with only `partition` and `on_new_batch` infers that state: the client calls `on_new_batch` if it must
//! open a batch for a record, and then all earlier batches of the partition are full or sent.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::protocol::record_batch::HEADER_BYTES;

use super::{Chooser, PartitionList, Random, TopicState};

/// The latest load of one topic's partitions that the client reported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Load {
    /// Queued batches by partition, ascending, without empty queues.
    queues: Vec<(u32, u32)>,
    /// Partitions that must not be chosen, ascending.
    excluded: Vec<u32>,
}

impl Load {
    /// `queues` are pairs of a partition and its queued batches; the partitions in `excluded` must not be chosen now.
    /// For a partition that is given twice, the last length counts. A partition that is not given has an empty queue.
    #[must_use]
    pub fn new(mut queues: Vec<(u32, u32)>, mut excluded: Vec<u32>) -> Self {
        queues.sort_by_key(|&(partition, _)| partition);
        // For equal keys the last entry is kept, because the sort is stable.
        queues.reverse();
        queues.dedup_by_key(|&mut (partition, _)| partition);
        queues.reverse();
        queues.retain(|&(_, length)| length > 0);
        excluded.sort_unstable();
        excluded.dedup();
        Self { queues, excluded }
    }

    /// The partitions of `available` that are not excluded. One pass is enough, because both lists are ascending.
    fn usable<'a>(&'a self, available: &'a [u32]) -> impl Iterator<Item = (u32, u64)> + 'a {
        let (mut queues, mut excluded) = (self.queues.iter().peekable(), self.excluded.iter().peekable());
        available.iter().filter_map(move |&partition| {
            while excluded.next_if(|&&other| other < partition).is_some() {}
            while queues.next_if(|&&(other, _)| other < partition).is_some() {}
            let length = queues.next_if(|&&(other, _)| other == partition).map_or(0, |&(_, length)| length);
            (excluded.peek() != Some(&&partition)).then_some((partition, u64::from(length)))
        })
    }

    /// The usable partitions of `available` with their weights. Weight = longest queue + 1 - own queue.
    pub fn weights<'a>(&'a self, available: &'a [u32]) -> impl Iterator<Item = (u32, u64)> + 'a {
        let longest = self.usable(available).map(|(_, length)| length).max().unwrap_or(0);
        self.usable(available).map(move |(partition, length)| (partition, longest + 1 - length))
    }
}

/// The cumulative weights of a load, for one set of leaders.
#[derive(Debug, Default)]
struct Table {
    available: Vec<u32>,
    usable: Vec<u32>,
    sums: Vec<u64>,
}

impl Table {
    /// Computes the sums again in the same memory; no effect for the same leaders. Without a load there are no weights.
    fn update(&mut self, load: Option<&Load>, available: &[u32], changed: bool) {
        if !changed && self.available == available {
            return;
        }
        self.available.clear();
        self.available.extend(available);
        self.usable.clear();
        self.sums.clear();
        let mut sum = 0_u64;
        for (partition, weight) in load.iter().flat_map(|load| load.weights(available)) {
            // No overflow: at most 2^32 partitions with a weight of at most 2^32.
            sum = sum.saturating_add(weight);
            self.usable.push(partition);
            self.sums.push(sum);
        }
    }

    /// A usable partition, drawn by weight; `None` if no partition is usable.
    fn draw(&self, random: &mut dyn Random) -> Option<u32> {
        let drawn = random.below(*self.sums.last()?);
        Some(self.usable[self.sums.partition_point(|&sum| sum <= drawn)])
    }
}

/// The adaptive partition of one topic.
///
/// Partition and bytes change together, so one mutex protects both. A thread holds it for some arithmetic and, during a
/// choice, for one pass over the partitions.
#[derive(Debug)]
pub struct Adaptive {
    state: Mutex<AdaptiveState>,
    /// The number of bytes after which the partition changes, at least 1.
    batch_size: u64,
}

#[derive(Debug, Default)]
struct AdaptiveState {
    current: Option<u32>,
    /// The bytes sent to the current partition.
    produced: u64,
    /// The bytes of the last counted record: the client may call `partition` for it a second time.
    last: u64,
    load: Option<Load>,
    /// Whether the load changed after the last update of the table.
    reloaded: bool,
    table: Table,
}

impl AdaptiveState {
    fn choose(&mut self, partitions: &PartitionList, random: &mut dyn Random) -> u32 {
        if self.load.is_some() || self.reloaded {
            self.table.update(self.load.as_ref(), partitions.available(), self.reloaded);
            self.reloaded = false;
        }
        let new = self.table.draw(random).unwrap_or_else(|| {
            let candidates = partitions.candidates();
            candidates[random.below(candidates.len() as u64) as usize]
        });
        (self.current, self.produced, self.last) = (Some(new), 0, 0);
        new
    }

    fn count(&mut self, size: u64) {
        self.produced = self.produced.saturating_add(size);
        self.last = size;
    }
}

impl Adaptive {
    /// A topic whose partition changes after `batch_size` bytes. 0 counts as 1.
    #[must_use]
    pub fn new(batch_size: u64) -> Self {
        Self { state: Mutex::default(), batch_size: batch_size.max(1) }
    }

    /// Sets the lengths of the queues. With `None` they are unknown, and all partitions are equally likely.
    pub fn update_load(&self, load: Option<Load>) {
        let mut state = self.lock();
        state.load = load;
        state.reloaded = true;
    }

    fn lock(&self) -> MutexGuard<'_, AdaptiveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current partition, unless it has received so many bytes that it changes even without a new batch.
    fn kept(&self, state: &AdaptiveState) -> Option<u32> {
        state.current.filter(|_| state.produced < self.batch_size.saturating_mul(2))
    }
}

impl Chooser for Adaptive {
    fn peek(&self, size: u64) -> Option<u32> {
        let mut state = self.lock();
        let kept = self.kept(&state)?;
        state.count(size);
        Some(kept)
    }

    fn partition(&self, size: u64, partitions: &PartitionList, random: &mut dyn Random) -> u32 {
        let mut state = self.lock();
        let partition = self.kept(&state).unwrap_or_else(|| state.choose(partitions, random));
        state.count(size);
        partition
    }

    /// All batches of `previous` are full or sent: after enough bytes the partition changes. The client will call
    /// `partition` again for the record that opens the new batch. Therefore its bytes are subtracted here; otherwise
    /// they would count twice.
    fn keeps(&self, previous: i64) -> bool {
        let mut state = self.lock();
        let Some(current) = state.current else { return false };
        if i64::from(current) != previous {
            return true;
        }
        state.produced -= state.last;
        state.last = 0;
        let stays = state.produced < self.batch_size;
        if stays {
            state.produced = state.produced.saturating_add(HEADER_BYTES);
        }
        stays
    }

    fn next(&self, previous: i64, partitions: &PartitionList, random: &mut dyn Random) {
        let mut state = self.lock();
        if state.current.is_none_or(|current| i64::from(current) == previous) {
            state.choose(partitions, random);
            state.produced = HEADER_BYTES;
        }
    }

    fn keyed(&self) {
        self.lock().last = 0;
    }
}

impl TopicState for Adaptive {
    fn refresh(&self, partitions: &PartitionList) {
        let mut state = self.lock();
        if state.current.is_some_and(|current| !partitions.contains(current)) {
            (state.current, state.produced, state.last) = (None, 0, 0);
        }
    }
}
