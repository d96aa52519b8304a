//! KIP-480: records without a key stick to one partition of their topic until a new batch is opened.

use std::sync::atomic::{AtomicI64, Ordering};

use super::{Chooser, Partitions, Random, TopicState};

/// Before the first choice. No client calls a partition so: a notice of it is compared with a choice only.
const NONE: i64 = i64::MIN;

/// The sticky partition of one topic.
///
/// All there is to it is one number, and it changes by compare-and-replace only: of threads that race to replace the same
/// partition one wins, and all go on with its choice.
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
    /// The sticky partition, if one was chosen.
    #[must_use]
    pub fn current(&self) -> Option<u32> {
        match self.current.load(Ordering::Acquire) {
            NONE => None,
            current => Some(current as u32),
        }
    }

    /// Puts another partition in place of `previous` and returns what is sticky then. Does nothing if another one is
    /// already: the notice is stale.
    pub fn replace(&self, previous: i64, partitions: &Partitions, random: &mut dyn Random) -> u32 {
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

/// A partition with a leader other than `old`, each equally likely. The only one with a leader may be the old one, and
/// without any leader every partition is as good.
fn choose(partitions: &Partitions, old: Option<u32>, random: &mut dyn Random) -> u32 {
    let candidates = partitions.candidates();
    let at = match partitions.available() {
        available if available.len() >= 2 => old.and_then(|old| available.binary_search(&old).ok()),
        [only] => return *only,
        _ => None,
    };
    // One draw instead of drawing until another one comes: the same distribution, in bounded time.
    let drawn = random.below(candidates.len() as u64 - u64::from(at.is_some())) as usize;
    candidates[drawn + usize::from(at.is_some_and(|at| drawn >= at))]
}

impl Chooser for Sticky {
    fn peek(&self, _size: u64) -> Option<u32> {
        self.current()
    }

    fn partition(&self, _size: u64, partitions: &Partitions, random: &mut dyn Random) -> u32 {
        self.current().unwrap_or_else(|| self.replace(-1, partitions, random))
    }

    fn settle(&self, previous: i64) -> bool {
        let current = self.current.load(Ordering::Acquire);
        current != NONE && current != previous
    }

    fn next(&self, previous: i64, partitions: &Partitions, random: &mut dyn Random) {
        self.replace(previous, partitions, random);
    }
}

impl TopicState for Sticky {
    fn refresh(&self, partitions: &Partitions) {
        let current = self.current.load(Ordering::Acquire);
        if u32::try_from(current).is_ok_and(|current| !partitions.contains(current)) {
            // Whoever replaced it meanwhile has chosen among newer partitions.
            let _ = self.current.compare_exchange(current, NONE, Ordering::AcqRel, Ordering::Acquire);
        }
    }
}
