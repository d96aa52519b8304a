//! The wait before the next attempt: exponential, with jitter.

use crate::split_mix::SplitMix64;

/// The random part of the waits: the same seed gives the same waits.
#[derive(Debug, Clone)]
pub(super) struct Jitter(SplitMix64);

impl Jitter {
    pub(super) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }
}

/// The number of failures in a row, and the earliest time of the next attempt.
#[derive(Debug, Clone)]
pub(super) struct Backoff {
    least_ms: u64,
    most_ms: u64,
    failures: u32,
    not_before: u64,
}

impl Backoff {
    pub(super) fn new(least_ms: u64, most_ms: u64) -> Self {
        Self { least_ms, most_ms, failures: 0, not_before: 0 }
    }

    /// Counts a failure: the next wait is twice as long as the last one, plus or minus at most a fifth.
    pub(super) fn failed(&mut self, now: u64, jitter: &mut Jitter) {
        let wait = self.least_ms.saturating_mul(1 << self.failures.min(20)).min(self.most_ms);
        let wait = wait - wait / 5 + jitter.below(2 * (wait / 5) + 1);
        self.failures = self.failures.saturating_add(1);
        self.not_before = self.not_before.max(now.saturating_add(wait.max(1)));
    }

    /// Counts a failure. After the first one in a row the next attempt follows at once, after each later one it waits.
    pub(super) fn failed_once_free(&mut self, now: u64, jitter: &mut Jitter) {
        if self.failures == 0 {
            self.failures = 1;
        } else {
            self.failed(now, jitter);
        }
    }

    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
        self.not_before = 0;
    }

    pub(super) fn ready(&self, now: u64) -> bool {
        now >= self.not_before
    }

    pub(super) fn not_before(&self) -> u64 {
        self.not_before
    }
}
