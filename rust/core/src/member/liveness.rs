//! `max.poll.interval.ms` (KIP-62): a member whose application does not poll must not keep its partitions.

use super::course::Trigger;
use super::event::Action;
use super::network::NetworkClient;
use super::{Leaves, Membership, Phase, Progress};

/// The time of the application's last poll.
#[derive(Debug)]
pub(super) struct Liveness {
    last_poll: u64,
    /// Set from the end of the interval until the application polls again.
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

    /// The end of the interval.
    pub(super) fn end(&self, interval_ms: u64) -> u64 {
        self.last_poll + interval_ms + 1
    }

    /// Marks the interval as over, and reports that to the application.
    pub(super) fn expire(&mut self, interval_ms: u64, network: &mut NetworkClient) {
        self.expired = true;
        network.warn(format!("the application has not polled for {interval_ms} ms: leaving the group until it does"));
        network.actions.push(Action::MaxPollExceeded { interval_ms });
    }
}

impl Membership {
    pub(super) fn on_poll(&mut self) {
        self.liveness.stamp(self.network.now);
    }

    fn is_in_group(&self) -> bool {
        self.generation.id >= 0 || !self.member_id.is_empty() || !matches!(self.generation.phase, Phase::Unjoined)
    }

    pub(super) fn liveness_due(&self) -> Option<u64> {
        let watched = self.subscription.is_some() && self.departure.is_none() && !self.failed;
        (watched && !self.liveness.expired && self.is_in_group())
            .then(|| self.liveness.end(self.config.max_poll_interval_ms))
    }

    /// A dynamic member sends LeaveGroup. A static one only stops its heartbeats, so the coordinator keeps its place for a
    /// session.
    pub(super) fn drive_liveness(&mut self) -> Progress {
        if self.liveness_due().is_none_or(|due| self.network.now < due) {
            return false;
        }
        self.liveness.expire(self.config.max_poll_interval_ms, &mut self.network);
        let deadline = self.network.request_deadline();
        self.want_leave_group("max.poll.interval.ms exceeded", deadline);
        self.leave_generation(Leaves::Group);
        self.course.begin(self.network.now, Trigger::Expelled);
        true
    }
}
