//! Whether the application still asks for records (KIP-62): a member whose application does not must not keep its
//! partitions.

use super::event::Action;
use super::{Identity, Membership, Phase};

/// When the application last asked.
#[derive(Debug)]
pub(super) struct Liveness {
    last_poll: u64,
    /// Whether the member has left because of it, until the application asks again.
    pub(super) expired: bool,
}

impl Liveness {
    pub(super) fn new(now: u64) -> Self {
        Self { last_poll: now, expired: false }
    }

    pub(super) fn stamp(&mut self, now: u64) {
        self.last_poll = now;
        self.expired = false;
    }
}

impl Membership {
    pub(super) fn on_poll(&mut self) {
        self.liveness.stamp(self.now);
    }

    fn is_in_group(&self) -> bool {
        self.identity.generation >= 0 || !self.identity.member_id.is_empty() || !matches!(self.phase, Phase::Unjoined)
    }

    pub(super) fn liveness_due(&self) -> Option<u64> {
        let watched = self.subscription.is_some() && self.departure.is_none() && !self.failed;
        (watched && !self.liveness.expired && self.is_in_group())
            .then(|| self.liveness.last_poll + self.config.max_poll_interval_ms + 1)
    }

    /// A dynamic member leaves; a static one only stops its heartbeats, so that its place is kept for a session.
    pub(super) fn drive_liveness(&mut self) {
        if self.liveness_due().is_none_or(|due| self.now < due) {
            return;
        }
        self.liveness.expired = true;
        let interval_ms = self.config.max_poll_interval_ms;
        self.warn(format!("the application has not polled for {interval_ms} ms: leaving the group until it does"));
        self.out.push(Action::MaxPollExceeded { interval_ms });
        let deadline = self.now + self.config.request_timeout_ms;
        self.say_farewell("max.poll.interval.ms exceeded", deadline);
        self.abandon_group();
        self.identity = Identity::default();
        self.cancel_notice();
    }
}
