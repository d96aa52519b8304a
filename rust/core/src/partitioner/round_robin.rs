//! Round robin over the partitions with a leader. Keys have no effect.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::{PartitionList, TopicState};

/// The next partition of one topic.
#[derive(Debug, Default)]
pub struct Turn {
    next: AtomicU32,
    notices: AtomicU32,
}

impl Turn {
    /// The next of the partitions with a leader, or of all partitions if none has a leader.
    pub fn next(&self, partitions: &PartitionList) -> u32 {
        let candidates = partitions.candidates();
        // Clear the sign bit, as Java does for its counter, which becomes negative.
        candidates[(self.next.fetch_add(1, Ordering::Relaxed) & 0x7fff_ffff) as usize % candidates.len()]
    }

    /// Counts a new batch. Returns whether to read the leaders again: once in each round. The cost of reading them
    /// grows with their number, so a reading for each batch would not be constant.
    pub fn rounds(&self, partitions: &PartitionList) -> bool {
        let count = self.notices.fetch_add(1, Ordering::Relaxed) + 1;
        let due = count as usize >= partitions.candidates().len();
        if due {
            self.notices.store(0, Ordering::Relaxed);
        }
        due
    }
}

impl TopicState for Turn {
    /// No effect: a turn is an index that is valid for any partitions.
    fn refresh(&self, _partitions: &PartitionList) {}
}

/// The largest number of notes. More notes mean that the client never calls a second time for a record. Then the oldest
/// note is dropped; otherwise they would fill the memory.
const MAX_NOTES: usize = 1_024;

/// The partitions to return a second time.
///
/// A client that must open a batch calls the partitioner twice for the same record:
///
/// ```text
/// partition(record) -> 3      the first turn
/// on_new_batch(3)             a note: this thread, this topic, partition 3
/// partition(record) -> 3      the note, and not the second turn
/// ```
///
/// With a second turn, every second partition would get no records (KAFKA-9965, KAFKA-17632). The three calls come from
/// one thread, so only that thread gets the partition of the note.
#[derive(Debug)]
pub struct Repeats<C, T> {
    count: AtomicUsize,
    notes: Mutex<Vec<Note<C, T>>>,
}

#[derive(Debug)]
struct Note<C, T> {
    caller: C,
    topic: Arc<T>,
    partition: u32,
}

impl<C, T> Default for Repeats<C, T> {
    fn default() -> Self {
        Self { count: AtomicUsize::new(0), notes: Mutex::default() }
    }
}

impl<C: Eq, T> Repeats<C, T> {
    /// Notes that the caller opens a new batch for a record of this topic for `partition`.
    pub fn note(&self, caller: C, topic: &Arc<T>, partition: u32) {
        let note = Note { caller, topic: topic.clone(), partition };
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(old) = notes.iter_mut().find(|old| old.caller == note.caller) {
            *old = note;
            return;
        }
        if notes.len() == MAX_NOTES {
            notes.remove(0);
        }
        notes.push(note);
        self.count.store(notes.len(), Ordering::Release);
    }

    /// Removes and returns the caller's note. A call for another topic drops the note: no second call for its record
    /// will come.
    pub fn take(&self, caller: impl FnOnce() -> C, topic: &Arc<T>) -> Option<u32> {
        // Without notes, do not take the lock: a client that never calls `on_new_batch` does not pay for it.
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let caller = caller();
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let at = notes.iter().position(|note| note.caller == caller)?;
        let note = notes.remove(at);
        self.count.store(notes.len(), Ordering::Release);
        Arc::ptr_eq(&note.topic, topic).then_some(note.partition)
    }
}
