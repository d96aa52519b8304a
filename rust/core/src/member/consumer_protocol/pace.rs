//! The time of the next heartbeat.
//!
//! The broker's interval is no lower limit: a broker accepts heartbeats that come sooner. A member learns of a rebalance only
//! from a heartbeat, so it sends them more often, and most often while it waits for partitions.

use std::collections::VecDeque;

/// The most heartbeats of a member within [`WINDOW_MS`].
pub const MOST_HEARTBEATS: usize = 10;

/// The window of [`MOST_HEARTBEATS`].
pub const WINDOW_MS: u64 = 1_000;

const FIRST_GAP_MS: u64 = 100;
const WAITING_GAP_MS: u64 = 250;
/// The time after the last change in which a member waits for more partitions. A broker from 4.3 on plans at most once a second,
/// and the members that give partitions up must first learn of the plan.
const WAITS_MS: u64 = 3_000;

/// The pace of one membership.
#[derive(Debug)]
pub(super) struct Pace {
    /// The longest time between two heartbeats.
    interval: u64,
    gap: u64,
    waits_until: u64,
    next_at: u64,
    /// The times of the latest heartbeats, the oldest first.
    sent: VecDeque<u64>,
    /// A heartbeat is due as soon as the window allows it.
    pub(super) urgent: bool,
}

impl Pace {
    pub(super) fn new(interval: u64) -> Self {
        Self { interval, gap: interval, waits_until: 0, next_at: 0, sent: VecDeque::new(), urgent: false }
    }

    /// `interval` is the broker's, or the longest one that the members of the process together allow, if that is shorter. `place` spreads the
    /// heartbeats of the members of a process.
    pub(super) fn set_interval(&mut self, now: u64, interval: u64, (place, count): (u64, u64)) {
        if self.interval == interval {
            return;
        }
        self.interval = interval;
        self.gap = self.gap.min(interval);
        self.next_at = self.next_at.min(now + interval * (place + 1) / count);
    }

    /// The member waits for partitions from now on.
    pub(super) fn waits(&mut self, now: u64) {
        self.waits_until = now + WAITS_MS;
        self.gap = FIRST_GAP_MS;
    }

    pub(super) fn sent(&mut self, now: u64) {
        self.urgent = false;
        if self.sent.len() == MOST_HEARTBEATS {
            self.sent.pop_front();
        }
        self.sent.push_back(now);
    }

    /// A heartbeat was answered, or lost with its connection.
    pub(super) fn answered(&mut self, now: u64) {
        self.gap = self.gap.min(self.interval);
        self.next_at = now + self.gap;
        self.gap = if now < self.waits_until {
            (self.gap + self.gap / 4).min(WAITING_GAP_MS)
        } else {
            self.gap.saturating_mul(2)
        };
    }

    /// The time at which the next heartbeat is due; `at_least` is the end of a back-off.
    pub(super) fn due(&self, now: u64, at_least: u64) -> u64 {
        let wanted = if self.urgent { now } else { self.next_at };
        let window = match self.sent.front() {
            Some(&oldest) if self.sent.len() == MOST_HEARTBEATS => oldest + WINDOW_MS,
            _ => 0,
        };
        wanted.max(window).max(at_least)
    }
}
