//! The log of one partition, and the sequence numbers of its producers.

use super::batch::{Batch, Refused};
use crate::protocol::ErrorCode;
use std::collections::{HashMap, VecDeque};

/// The only leader epoch: the leader never changes.
pub(super) const LEADER_EPOCH: i32 = 0;
/// The number of batches of a producer that are remembered to recognise a retry (KIP-98, KAFKA-5494).
const REMEMBERED: usize = 5;
/// The number of producers that a partition remembers. Above it, the least recent producers are forgotten. An unknown
/// producer may begin with any sequence number (KIP-360), so the only loss is that a very late retry is appended twice.
const PRODUCERS: usize = 10_000;

/// The state of one producer in a partition.
#[derive(Debug)]
struct Producer {
    epoch: i16,
    /// The last batches: first sequence number, last sequence number, base offset. Never empty.
    recent: VecDeque<(i32, i32, i64)>,
}

/// The batches of one partition, in offset order and without gaps. Only the first batch may begin before `start`.
#[derive(Debug, Default)]
pub(super) struct Partition {
    batches: VecDeque<Batch>,
    start: i64,
    end: i64,
    size: u64,
    producers: HashMap<i64, Producer>,
}

/// The result of [`Partition::available`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// The bytes of whole batches, beginning with the batch of the offset.
    Bytes(u64),
    /// The offset is before the first or after the next offset.
    OutOfRange,
}

impl Partition {
    /// The first offset that is not deleted.
    #[must_use]
    pub(super) fn start(&self) -> i64 {
        self.start
    }

    /// The offset of the next record.
    #[must_use]
    pub(super) fn end(&self) -> i64 {
        self.end
    }

    /// Appends a batch, in amortised O(1). Returns its base offset and whether it is new: a retry of the producer is
    /// not appended again.
    pub(super) fn append(&mut self, mut batch: Batch, retain_bytes: Option<u64>) -> Result<(i64, bool), Refused> {
        if batch.producer_id >= 0
            && let Some(before) = self.sequence(&batch)?
        {
            return Ok((before, false));
        }
        let base = self.end;
        batch.place(base, LEADER_EPOCH);
        if batch.producer_id >= 0 {
            self.remember(&batch);
        }
        self.end = batch.last_offset + 1;
        self.size += batch.bytes().len() as u64;
        self.batches.push_back(batch);
        while retain_bytes.is_some_and(|retain| self.size > retain) && self.batches.len() > 1 {
            self.drop_first();
        }
        Ok((base, true))
    }

    /// Checks the sequence number of the batch: `None` if it is the producer's next, the first base offset if it is a
    /// retry.
    fn sequence(&self, batch: &Batch) -> Result<Option<i64>, Refused> {
        let Some(producer) = self.producers.get(&batch.producer_id) else { return Ok(None) };
        if batch.producer_epoch < producer.epoch {
            let message = "a newer epoch of this producer has produced here";
            return Err(Refused { code: ErrorCode::INVALID_PRODUCER_EPOCH, message });
        }
        let in_order = if batch.producer_epoch > producer.epoch {
            batch.base_sequence == 0
        } else {
            let (first, last) = (batch.base_sequence, batch.last_sequence());
            if let Some(seen) = producer.recent.iter().find(|seen| (seen.0, seen.1) == (first, last)) {
                return Ok(Some(seen.2));
            }
            let previous = producer.recent.back().map_or(-1, |seen| seen.1);
            first == previous.checked_add(1).unwrap_or(0)
        };
        if in_order {
            return Ok(None);
        }
        let message = "the sequence number is not the next one of this producer";
        Err(Refused { code: ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER, message })
    }

    fn remember(&mut self, batch: &Batch) {
        let seen = (batch.base_sequence, batch.last_sequence(), batch.base_offset);
        if !self.producers.contains_key(&batch.producer_id) && self.producers.len() >= PRODUCERS {
            let last = |producer: &Producer| producer.recent.back().map_or(0, |seen| seen.2);
            // Remove a tenth of the producers at once: then each of many new producers costs O(1) amortised.
            let mut ages: Vec<i64> = self.producers.values().map(last).collect();
            let (_, &mut limit, _) = ages.select_nth_unstable(PRODUCERS / 10);
            self.producers.retain(|_, producer| last(producer) > limit);
        }
        let fresh = || Producer { epoch: batch.producer_epoch, recent: VecDeque::new() };
        let producer = self.producers.entry(batch.producer_id).or_insert_with(fresh);
        if producer.epoch != batch.producer_epoch {
            *producer = fresh();
        }
        if producer.recent.len() == REMEMBERED {
            producer.recent.pop_front();
        }
        producer.recent.push_back(seen);
    }

    /// Deletes the records before `offset`; false if the offset is out of range. A batch that contains `offset` stays
    /// whole, as in Kafka: consumers skip the records before the fetch offset.
    #[must_use]
    pub(super) fn delete_before(&mut self, offset: i64) -> bool {
        if !(0..=self.end).contains(&offset) {
            return false;
        }
        while self.batches.front().is_some_and(|batch| batch.last_offset < offset) {
            self.drop_first();
        }
        self.start = self.start.max(offset);
        true
    }

    fn drop_first(&mut self) {
        if let Some(batch) = self.batches.pop_front() {
            self.size -= batch.bytes().len() as u64;
            self.start = batch.last_offset + 1;
        }
    }

    fn index_of(&self, offset: i64) -> usize {
        self.batches.partition_point(|batch| batch.last_offset < offset)
    }

    /// The bytes for a fetch from `offset`. Counting stops at the first batch that reaches `enough`.
    #[must_use]
    pub(super) fn available(&self, offset: i64, enough: u64) -> Found {
        if offset < self.start || offset > self.end {
            return Found::OutOfRange;
        }
        let mut bytes = 0;
        for batch in self.batches.range(self.index_of(offset)..) {
            bytes += batch.bytes().len() as u64;
            if bytes >= enough {
                break;
            }
        }
        Found::Bytes(bytes)
    }

    /// Whole batches, beginning with the batch of `offset`, of at most `max_bytes` in total. With `at_least_one` the
    /// first batch may be larger. `offset` must be in range.
    #[must_use]
    pub(super) fn read(&self, offset: i64, max_bytes: usize, at_least_one: bool) -> Vec<u8> {
        let mut out = Vec::new();
        for batch in self.batches.range(self.index_of(offset)..) {
            if out.len() + batch.bytes().len() > max_bytes && !(at_least_one && out.is_empty()) {
                break;
            }
            out.extend_from_slice(batch.bytes());
        }
        out
    }

    /// Offset and time of the first record with at least this time, in O(batches): the times need not ascend.
    #[must_use]
    pub(super) fn first_at(&self, timestamp: i64) -> Option<(i64, i64)> {
        self.batches.iter().find_map(|batch| batch.first_at(timestamp, self.start))
    }

    /// The first record with the latest time of all records. A partly deleted batch counts as a whole, as in Kafka.
    #[must_use]
    pub(super) fn latest_time(&self) -> Option<(i64, i64)> {
        let latest = self.batches.iter().map(|batch| batch.max_timestamp).max()?;
        self.batches.iter().find_map(|batch| batch.first_at(latest, 0))
    }
}
