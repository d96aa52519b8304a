//! KIP-794: a partition is left after so many bytes, and the next one is the likelier the shorter its queue is.
//!
//! Java's producer asks its built-in partitioner from inside the accumulator and can look at a partition's last batch. A
//! partitioner behind `partition` and `on_new_batch` sees the same by other signs: a record for which a batch must be
//! opened finds the partition's batches all full or sent, and that is what the client tells of.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Chooser, Partitions, Random, TopicState};

/// What the header of a record batch (version 2) takes.
const BATCH_OVERHEAD: u64 = 61;

/// The load of one topic's partitions, as a client last told it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Load {
    /// Batches queued by partition, ascending, the empty queues left out.
    queues: Vec<(u32, u32)>,
    /// Partitions not to be used, ascending.
    excluded: Vec<u32>,
}

impl Load {
    /// Batches queued by partition, and partitions not to be used for now. Of a partition given twice the last counts; one
    /// that is not given has an empty queue.
    #[must_use]
    pub fn new(mut queues: Vec<(u32, u32)>, mut excluded: Vec<u32>) -> Self {
        queues.sort_by_key(|&(partition, _)| partition);
        // Of equal keys the last is kept: the sort is stable.
        queues.reverse();
        queues.dedup_by_key(|&mut (partition, _)| partition);
        queues.reverse();
        queues.retain(|&(_, length)| length > 0);
        excluded.sort_unstable();
        excluded.dedup();
        Self { queues, excluded }
    }

    /// What is not excluded of `available`, which ascends as all lists here do: one pass over them all.
    fn usable<'a>(&'a self, available: &'a [u32]) -> impl Iterator<Item = (u32, u64)> + 'a {
        let (mut queues, mut excluded) = (self.queues.iter().peekable(), self.excluded.iter().peekable());
        available.iter().filter_map(move |&partition| {
            while excluded.next_if(|&&other| other < partition).is_some() {}
            while queues.next_if(|&&(other, _)| other < partition).is_some() {}
            let length = queues.next_if(|&&(other, _)| other == partition).map_or(0, |&(_, length)| length);
            (excluded.peek() != Some(&&partition)).then_some((partition, u64::from(length)))
        })
    }

    /// The usable partitions of `available` with their weights: the longest queue, plus one, less their own.
    pub fn weights<'a>(&'a self, available: &'a [u32]) -> impl Iterator<Item = (u32, u64)> + 'a {
        let longest = self.usable(available).map(|(_, length)| length).max().unwrap_or(0);
        self.usable(available).map(move |(partition, length)| (partition, longest + 1 - length))
    }
}

/// The weights of a load summed up, for the leaders of one moment.
#[derive(Debug, Default)]
struct Table {
    available: Vec<u32>,
    usable: Vec<u32>,
    sums: Vec<u64>,
}

impl Table {
    /// Sums up again, in the room that there is; nothing to do for the same leaders. `None` has no weights.
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
            // Fits, with at most 2^32 partitions that weigh at most 2^32.
            sum = sum.saturating_add(weight);
            self.usable.push(partition);
            self.sums.push(sum);
        }
    }

    /// A usable partition, drawn by weight; `None` if there is none.
    fn draw(&self, random: &mut dyn Random) -> Option<u32> {
        let drawn = random.below(*self.sums.last()?);
        Some(self.usable[self.sums.partition_point(|&sum| sum <= drawn)])
    }
}

/// The adaptive partition of one topic.
///
/// A mutex, since partition and bytes move together. It is held for arithmetic, and for a pass over the partitions when a
/// choice is due.
#[derive(Debug)]
pub struct Adaptive {
    state: Mutex<State>,
    /// Bytes after which the partition is left, at least 1.
    batch_size: u64,
}

#[derive(Debug, Default)]
struct State {
    current: Option<u32>,
    /// Bytes that went to the current partition.
    produced: u64,
    /// Bytes of the last record counted, in case that it is asked for again.
    last: u64,
    load: Option<Load>,
    /// Whether the load is newer than the table.
    reloaded: bool,
    table: Table,
}

impl State {
    fn choose(&mut self, partitions: &Partitions, random: &mut dyn Random) -> u32 {
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
    /// A topic whose partition is left after `batch_size` bytes; 0 acts as 1.
    #[must_use]
    pub fn new(batch_size: u64) -> Self {
        Self { state: Mutex::default(), batch_size: batch_size.max(1) }
    }

    /// What the queues look like now; `None`: not known, so that all partitions are equally likely.
    pub fn update_load(&self, load: Option<Load>) {
        let mut state = self.lock();
        state.load = load;
        state.reloaded = true;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The partition that is not to be left whatever its batch looks like.
    fn kept(&self, state: &State) -> Option<u32> {
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

    fn partition(&self, size: u64, partitions: &Partitions, random: &mut dyn Random) -> u32 {
        let mut state = self.lock();
        let partition = self.kept(&state).unwrap_or_else(|| state.choose(partitions, random));
        state.count(size);
        partition
    }

    /// The batches of `previous` are all full or sent. If enough bytes went there, it is left. The record that opens the
    /// new batch is going to be asked for again, and must not count twice.
    fn settle(&self, previous: i64) -> bool {
        let mut state = self.lock();
        let Some(current) = state.current else { return false };
        if i64::from(current) != previous {
            return true;
        }
        state.produced -= state.last;
        state.last = 0;
        let stays = state.produced < self.batch_size;
        if stays {
            state.produced = state.produced.saturating_add(BATCH_OVERHEAD);
        }
        stays
    }

    fn next(&self, previous: i64, partitions: &Partitions, random: &mut dyn Random) {
        let mut state = self.lock();
        if state.current.is_none_or(|current| i64::from(current) == previous) {
            state.choose(partitions, random);
            state.produced = BATCH_OVERHEAD;
        }
    }

    fn keyed(&self) {
        self.lock().last = 0;
    }
}

impl TopicState for Adaptive {
    fn refresh(&self, partitions: &Partitions) {
        let mut state = self.lock();
        if state.current.is_some_and(|current| !partitions.contains(current)) {
            (state.current, state.produced, state.last) = (None, 0, 0);
        }
    }
}

/// What a record adds to a batch of version 2, without headers: attributes, one byte each for the differences of timestamp
/// and offset, the count of headers, and key and value with their lengths.
#[must_use]
pub fn record_size(key: Option<usize>, value: Option<usize>) -> u64 {
    let field = |bytes: Option<usize>| bytes.map_or(1, |length| varint(length as u64) + length as u64);
    let body = 4 + field(key) + field(value);
    varint(body) + body
}

/// The bytes of a zigzag varint of a number that is not negative.
fn varint(number: u64) -> u64 {
    let bits = u64::from(u64::BITS - number.leading_zeros()) + 1;
    bits.div_ceil(7)
}
