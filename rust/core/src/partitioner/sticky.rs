//! KIP-480: records without a key stick to one partition of their topic until a new batch is opened.

use std::sync::atomic::{AtomicI64, Ordering};

use super::{Chooser, PartitionList, Random, TopicState};

/// The value before the first choice. No client has a partition with this number.
const NONE: i64 = i64::MIN;

/// The sticky partition of one topic.
///
/// The state is one number. It changes only by compare-and-exchange: if several threads replace the same partition at
/// the same time, one succeeds, and all of them use its choice.
#[derive(Debug)]
pub struct Sticky {
    current: AtomicI64,
}

impl Default for Sticky {
    fn default() -> Self {
        Self { current: AtomicI64::new(NONE) }
    }
}

impl Sticky {
    /// The sticky partition; `None` before the first choice.
    #[must_use]
    pub fn current(&self) -> Option<u32> {
        match self.current.load(Ordering::Acquire) {
            NONE => None,
            current => Some(current as u32),
        }
    }

    /// Replaces `previous` by another partition, and returns the sticky partition. If `previous` is not the sticky
    /// partition any more, the notice is stale and has no effect.
    pub fn replace(&self, previous: i64, partitions: &PartitionList, random: &mut dyn Random) -> u32 {
        let old = self.current.load(Ordering::Acquire);
        if old != NONE && old != previous {
            return old as u32;
        }
        let new = choose(partitions, u32::try_from(old).ok(), random);
        match self.current.compare_exchange(old, i64::from(new), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => new,
            Err(winner) if winner == NONE => new,
            Err(winner) => winner as u32,
        }
    }
}

/// A partition with a leader other than `old`, each equally likely. `old` again if only `old` has a leader; any
/// partition if none has a leader.
fn choose(partitions: &PartitionList, old: Option<u32>, random: &mut dyn Random) -> u32 {
    let candidates = partitions.candidates();
    let at = match partitions.available() {
        available if available.len() >= 2 => old.and_then(|old| available.binary_search(&old).ok()),
        [only] => return *only,
        _ => None,
    };
    // Draw once among the other candidates. Drawing until the result differs from `old` has the same distribution, but
    // no bound on its time.
    let drawn = random.below(candidates.len() as u64 - u64::from(at.is_some())) as usize;
    candidates[drawn + usize::from(at.is_some_and(|at| drawn >= at))]
}

impl Chooser for Sticky {
    fn peek(&self, _size: u64) -> Option<u32> {
        self.current()
    }

    fn partition(&self, _size: u64, partitions: &PartitionList, random: &mut dyn Random) -> u32 {
        self.current().unwrap_or_else(|| self.replace(-1, partitions, random))
    }

    fn keeps(&self, previous: i64) -> bool {
        let current = self.current.load(Ordering::Acquire);
        current != NONE && current != previous
    }

    fn next(&self, previous: i64, partitions: &PartitionList, random: &mut dyn Random) {
        self.replace(previous, partitions, random);
    }
}

impl TopicState for Sticky {
    fn refresh(&self, partitions: &PartitionList) {
        let current = self.current.load(Ordering::Acquire);
        if u32::try_from(current).is_ok_and(|current| !partitions.contains(current)) {
            // If this fails, another thread has replaced the partition, and it chose among newer partitions.
            let _ = self.current.compare_exchange(current, NONE, Ordering::AcqRel, Ordering::Acquire);
        }
    }
}
