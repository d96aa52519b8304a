//! Round robin over the partitions with a leader, keys or not.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Partitions, TopicState};

/// Whose turn it is in one topic.
#[derive(Debug, Default)]
pub struct Turn {
    next: AtomicU32,
    notices: AtomicU32,
}

impl Turn {
    /// The next partition: of those with a leader, or of all if none has one.
    pub fn next(&self, partitions: &Partitions) -> u32 {
        let candidates = partitions.candidates();
        // Masked, as in Java, where the counter turns negative.
        candidates[(self.next.fetch_add(1, Ordering::Relaxed) & 0x7fff_ffff) as usize % candidates.len()]
    }

    /// Counts a new batch, and says whether to read the leaders again: once a round, so that the cost of reading them,
    /// which grows with their number, stays constant per record.
    pub fn rounds(&self, partitions: &Partitions) -> bool {
        let count = self.notices.fetch_add(1, Ordering::Relaxed) + 1;
        let due = count as usize >= partitions.candidates().len();
        if due {
            self.notices.store(0, Ordering::Relaxed);
        }
        due
    }
}

impl TopicState for Turn {
    /// A turn is an index into whatever partitions there are.
    fn refresh(&self, _partitions: &Partitions) {}
}

/// More callers than this cannot have been told of a new batch and not have asked again: theirs is a client that never
/// asks again, and what it was told is forgotten from the oldest on.
const MAX_NOTES: usize = 1_024;

/// The partitions to repeat.
///
/// A client that opens a new batch tells so and then asks a second time for the same record. A second turn would skip
/// every second partition (KAFKA-9965, KAFKA-17632): the answer is the partition of the first time, for the caller that was
/// told and for nobody else. A caller is a thread, since asking, telling and asking again are one thread's doing.
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
    /// The caller was told of a new batch for a record of this topic that was to go to `partition`.
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

    /// The partition to repeat, once. Asking for another topic says that no second question comes.
    pub fn take(&self, caller: impl FnOnce() -> C, topic: &Arc<T>) -> Option<u32> {
        // Without notes, which is every record of a client that tells of no batch, there is no lock to take.
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
