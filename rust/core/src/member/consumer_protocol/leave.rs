//! Leaving: for good (-1), or for a while (-2) as a static member, whose partitions no other member gets before its session ends.

use super::ConsumerMembership;
use crate::member::Progress;
use crate::member::course::{Course, Trigger};
use crate::member::event::{Action, NoticeKind, Role};
use crate::member::machine::Machine;
use crate::protocol::ErrorCode;
use crate::protocol::consumer_group_heartbeat::{ConsumerGroupHeartbeatRequest, LEAVE_EPOCH, LEAVE_STATIC_EPOCH};

/// A heartbeat that leaves, to be sent or unanswered. It is best effort: without it the session ends on the broker.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaving {
    pub(super) deadline: u64,
    pub(super) sent: bool,
}

/// An `unsubscribe` or `close` of the application that has not ended.
#[derive(Debug, Clone)]
pub(super) struct Departure {
    /// Whether the member is closed, rather than only without a subscription.
    pub(super) closes: bool,
    pub(super) deadline: u64,
}

impl ConsumerMembership {
    /// The application unsubscribes or closes.
    pub(super) fn depart(&mut self, closes: bool, timeout_ms: u64) {
        if self.closed || !closes && self.subscription.is_none() && self.departure.is_none() {
            return;
        }
        let deadline = self.network.now.saturating_add(timeout_ms);
        match &mut self.departure {
            Some(departure) => {
                departure.closes |= closes;
                departure.deadline = departure.deadline.min(deadline);
            }
            None => {
                self.cancel_notice();
                self.departure = Some(Departure { closes, deadline });
            }
        }
    }

    /// The next step of the departure: the partitions, the commits, the heartbeat that leaves, the end. Even after the deadline
    /// the application gives its partitions up: it waits in `unsubscribe` or `close` for its callbacks.
    pub(super) fn drive_departure(&mut self) -> Progress {
        let Some(Departure { closes, deadline }) = self.departure else { return false };
        if self.notice.is_some() {
            return false;
        }
        if !self.holdings.is_empty() {
            let lost = self.current.epoch < 0;
            self.hand_out(NoticeKind::Leave, lost, self.holdings.by_topic(), Default::default());
            return true;
        }
        let late = self.network.now >= deadline;
        let mut progress = late && self.commits.refuse_all(ErrorCode::REQUEST_TIMED_OUT, &mut self.network.actions);
        // The callbacks' commits go first: a coordinator refuses those of a member that has left.
        if !late && !self.commits.is_idle() {
            return progress;
        }
        if self.subscription.take().is_some() {
            self.want_leave(deadline);
            self.leave_membership();
            self.course = Course::default();
            progress = true;
        }
        if !closes {
            self.departure = None;
            return true;
        }
        if self.leaving.is_some() && !late {
            return progress;
        }
        self.finish();
        true
    }

    /// Schedules the heartbeat that leaves, if the coordinator may count this process as a member.
    pub(super) fn want_leave(&mut self, deadline: u64) {
        let known = self.current.epoch >= 0 || self.current.in_flight || self.beats.unanswered_join;
        if known && !self.member_id.is_empty() && !self.failed {
            self.leaving = Some(Leaving { deadline, sent: false });
        }
    }

    pub(super) fn drive_leaving(&mut self) -> Progress {
        let Some(Leaving { deadline, sent }) = self.leaving else { return false };
        if self.network.now >= deadline {
            self.leaving = None;
            return true;
        }
        // The broker serves an unanswered heartbeat on the same connection before this one.
        let Some(conn) = self.network.ready(Role::Group).filter(|_| !sent) else { return false };
        let instance_id = self.config.group_instance_id.clone();
        let body = ConsumerGroupHeartbeatRequest {
            group_id: self.config.group_id.clone(),
            member_id: self.member_id.clone(),
            member_epoch: if instance_id.is_some() { LEAVE_STATIC_EPOCH } else { LEAVE_EPOCH },
            instance_id,
            ..Default::default()
        };
        self.beats.unanswered_join = false;
        let sent = self.ask(conn, &body, i16::MAX, self.heartbeat_deadline());
        self.leaving = sent.then_some(Leaving { deadline, sent });
        true
    }

    /// The member is done: no action follows [`Action::Closed`].
    fn finish(&mut self) {
        self.leaving = None;
        self.commits.fail_all(&mut self.network.actions);
        self.fetches.fail_all(&mut self.network.actions);
        self.network.close_where("the member is closed", |_| true);
        self.closed = true;
        self.network.actions.push(Action::Closed);
    }

    pub(super) fn liveness_due(&self) -> Option<u64> {
        let watched = self.subscription.is_some() && self.departure.is_none() && !self.failed && !self.liveness.expired;
        (watched && (self.current.epoch >= 0 || self.current.in_flight || self.beats.unanswered_join))
            .then(|| self.liveness.end(self.config.max_poll_interval_ms))
    }

    /// A member whose application does not poll leaves, a static one too (for a while), and joins again after the next poll.
    pub(super) fn drive_liveness(&mut self) -> Progress {
        if self.liveness_due().is_none_or(|due| self.network.now < due) {
            return false;
        }
        self.liveness.expire(self.config.max_poll_interval_ms, &mut self.network);
        self.want_leave(self.network.request_deadline());
        self.leave_membership();
        self.course.begin(self.network.now, Trigger::Expelled);
        true
    }
}
