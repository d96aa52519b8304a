//! Sets of small numbers, one bit for each. A search reads them anywhere in memory, so they have to stay in a near cache.
//!
//! Of a member's arcs, for example, one bit says whether the arc has a positive flow. A search goes from a member to the rows of
//! these arcs only: of the arcs of a member that reads thousands of topics, few have a flow.

/// One bit for each number below a limit.
pub(super) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// No bit is set.
    pub(super) fn zeros(count: usize) -> Self {
        Self { words: vec![0; count.div_ceil(64)] }
    }

    /// One bit for each item, by its place.
    pub(super) fn new<T>(items: &[T], is_set: impl Fn(&T) -> bool) -> Self {
        let word = |items: &[T]| (0..).zip(items).fold(0, |word, (at, item)| word | u64::from(is_set(item)) << at);
        Self { words: items.chunks(64).map(word).collect() }
    }

    #[inline]
    pub(super) fn has(&self, at: u32) -> bool {
        self.words[at as usize / 64] >> (at % 64) & 1 != 0
    }

    /// The first number in `from..end` whose bit is set.
    #[inline]
    pub(super) fn next(&self, from: u32, end: u32) -> Option<u32> {
        if from >= end {
            return None;
        }
        let mut at = from as usize / 64;
        let mut word = self.words[at] & (u64::MAX << (from % 64));
        while word == 0 {
            at += 1;
            if at * 64 >= end as usize {
                return None;
            }
            word = self.words[at];
        }
        let found = at as u32 * 64 + word.trailing_zeros();
        Some(found).filter(|&found| found < end)
    }

    #[inline]
    pub(super) fn put(&mut self, at: u32, is_set: bool) {
        let bit = 1u64 << (at % 64);
        if is_set {
            self.words[at as usize / 64] |= bit;
        } else {
            self.words[at as usize / 64] &= !bit;
        }
    }
}
