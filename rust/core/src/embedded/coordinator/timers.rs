//! Deadlines by key. Setting a key again replaces its deadline.

use std::collections::{BTreeMap, BTreeSet};

/// The event at a deadline.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// The join phase of a group ends.
    Join(String),
    /// The time for a group's members to send SyncGroup ends.
    Sync(String),
    /// The session of a member, or of a pending member id, ends.
    Session(String, String),
    /// The time within which a member must give partitions up (KIP-848) ends.
    Revocation(String, String),
    /// The time within which a classic member of a KIP-848 group must join again, or send SyncGroup, ends.
    Rejoin(String, String),
}

/// The deadlines, in milliseconds on the caller's clock.
#[derive(Debug, Default)]
pub(super) struct Timers {
    deadlines: BTreeMap<Timer, u64>,
    queue: BTreeSet<(u64, Timer)>,
}

impl Timers {
    pub(super) fn set(&mut self, timer: Timer, deadline: u64) {
        if let Some(old) = self.deadlines.insert(timer.clone(), deadline) {
            if old == deadline {
                return;
            }
            self.queue.remove(&(old, timer.clone()));
        }
        self.queue.insert((deadline, timer));
    }

    /// Sets a timer that is not set yet.
    pub(super) fn begin(&mut self, timer: Timer, deadline: u64) {
        if !self.deadlines.contains_key(&timer) {
            self.set(timer, deadline);
        }
    }

    pub(super) fn cancel(&mut self, timer: Timer) {
        if let Some(deadline) = self.deadlines.remove(&timer) {
            self.queue.remove(&(deadline, timer));
        }
    }

    /// The earliest deadline.
    pub(super) fn next(&self) -> Option<u64> {
        self.queue.first().map(|&(deadline, _)| deadline)
    }

    /// Removes and returns the earliest timer that is due.
    pub(super) fn take_due(&mut self, now: u64) -> Option<Timer> {
        if self.next()? > now {
            return None;
        }
        let (_, timer) = self.queue.pop_first()?;
        self.deadlines.remove(&timer);
        Some(timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_in_order_once_and_movable() {
        let mut timers = Timers::default();
        timers.set(Timer::Join("b".into()), 5);
        timers.set(Timer::Join("a".into()), 3);
        timers.set(Timer::Sync("a".into()), 4);
        timers.set(Timer::Join("a".into()), 9);
        timers.cancel(Timer::Sync("a".into()));
        assert_eq!(timers.next(), Some(5));
        assert_eq!(timers.take_due(4), None);
        assert_eq!(timers.take_due(9), Some(Timer::Join("b".into())));
        assert_eq!(timers.take_due(9), Some(Timer::Join("a".into())));
        assert_eq!(timers.take_due(9), None);
        assert_eq!(timers.next(), None);
    }
}
