//! Going: what is given up, what is told to the broker, and how long that may take.

use super::connections::{Broken, Connection};
use super::event::{Action, NoticeKind, Role};
use super::{Identity, Membership, Phase};
use crate::protocol::leave_group::{LeaveGroupMember, LeaveGroupRequest, LeaveGroupResponse};
use crate::protocol::{ApiKey, ErrorCode, RequestHeader, read_response};

/// A LeaveGroup to send, best effort.
#[derive(Debug, Clone)]
pub(super) struct Farewell {
    member_id: String,
    reason: String,
    pub(super) deadline: u64,
    sent: bool,
}

/// How far an application that goes has come.
#[derive(Debug, Clone)]
pub(super) struct Departure {
    /// Whether the member is closed, rather than only without a subscription.
    pub(super) closes: bool,
    pub(super) deadline: u64,
    /// Whether the application has given its partitions up.
    pub(super) released: bool,
}

impl Membership {
    /// The application unsubscribes or closes: give everything up, commit what was asked for, and go.
    pub(super) fn depart(&mut self, closes: bool, timeout_ms: u64) {
        if self.closed {
            return;
        }
        let deadline = self.now.saturating_add(timeout_ms);
        if let Some(departure) = &mut self.departure {
            departure.closes |= closes;
            departure.deadline = departure.deadline.min(deadline);
            return;
        }
        if !closes && self.subscription.is_none() {
            return;
        }
        self.cancel_notice();
        if !matches!(self.phase, Phase::Stable) {
            self.stop_waiting("the member goes");
        }
        self.departure = Some(Departure { closes, deadline, released: false });
    }

    /// The next step of going, if it can be done.
    pub(super) fn drive_departure(&mut self) {
        let Some(departure) = self.departure.clone() else { return };
        let late = self.now >= departure.deadline;
        if !departure.released {
            // However late it is: the application is waiting in unsubscribe or close, and has its callbacks run.
            if self.notice.is_some() {
                return;
            }
            if !self.ownership.is_empty() {
                let lost = self.identity.generation < 0 || self.rejoining || self.failed;
                let revoked = self.ownership.partitions();
                self.notify(NoticeKind::Leave, lost, revoked);
                return;
            }
            self.departure = Some(Departure { released: true, ..departure.clone() });
        }
        if late {
            self.commits.refuse_all(ErrorCode::REQUEST_TIMED_OUT, &mut self.out);
        }
        // Offsets that the callbacks committed go first: a member that has left may not.
        if !late && !self.commits.is_idle() {
            return;
        }
        if self.subscription.take().is_some() {
            self.say_farewell("the consumer unsubscribed or is being closed", departure.deadline);
            self.abandon_group();
            self.close_role(Role::Group, "the member has left");
            self.identity = Identity::default();
        }
        if departure.closes {
            if self.farewell.is_some() && !late {
                return;
            }
            self.farewell = None;
            self.finish();
        } else {
            self.departure = None;
        }
    }

    /// Tells the broker that this member goes. Static members do not: their place is kept for a session.
    pub(super) fn say_farewell(&mut self, reason: &str, deadline: u64) {
        if self.config.is_static() || self.identity.member_id.is_empty() || self.failed {
            return;
        }
        let member_id = self.identity.member_id.clone();
        self.farewell = Some(Farewell { member_id, reason: reason.to_owned(), deadline, sent: false });
    }

    /// Out of whatever phase it is: an answer to JoinGroup or SyncGroup would come too late, and until it came nothing
    /// else would get through.
    pub(super) fn stop_waiting(&mut self, reason: &str) {
        let waits =
            |connection: &Connection| connection.awaits(ApiKey::JoinGroup) || connection.awaits(ApiKey::SyncGroup);
        if self.net.with_role(Role::Group).is_some_and(|(_, connection)| waits(connection)) {
            self.close_role(Role::Group, reason);
        }
        self.phase = Phase::Unjoined;
    }

    /// No longer in the group: what was asked on the way in means nothing any more.
    pub(super) fn abandon_group(&mut self) {
        self.stop_waiting("the member goes");
        self.rejoining = false;
        self.rejoin = None;
        self.prepared = None;
        self.watched = None;
        self.ownership.forget_released();
    }

    /// Ends a farewell at its deadline. It must run before the steps that wait for the farewell: its end gives no action, so they
    /// would not run again before another deadline.
    pub(super) fn expire_farewell(&mut self) {
        if self.farewell.as_ref().is_some_and(|farewell| self.now >= farewell.deadline) {
            self.farewell = None;
        }
    }

    pub(super) fn drive_farewell(&mut self) {
        let Some(farewell) = self.farewell.clone() else { return };
        if farewell.sent {
            return;
        }
        let Some(conn) = self.ready(Role::Offsets) else { return };
        let body = LeaveGroupRequest {
            group_id: self.config.group_id.clone(),
            member_id: farewell.member_id.clone(),
            members: vec![LeaveGroupMember {
                member_id: farewell.member_id.clone(),
                group_instance_id: None,
                reason: Some(farewell.reason.clone()),
            }],
        };
        let deadline = farewell.deadline.min(self.now + self.config.request_timeout_ms);
        if self.ask(conn, &body, i16::MAX, deadline) {
            self.farewell = Some(Farewell { sent: true, ..farewell });
        } else {
            self.farewell = None;
        }
    }

    /// Best effort: whatever the broker says, the member is gone, by its session's end at the latest.
    pub(super) fn on_leave(&mut self, header: &RequestHeader, frame: &[u8]) -> Result<(), Broken> {
        let response: LeaveGroupResponse = read_response(header, frame)?;
        self.farewell = None;
        let code = response.members.first().map_or(response.error_code, |member| member.error_code);
        if !code.is_none() {
            self.info(format!("LeaveGroup was answered with {code}; the session's end does the rest"));
        }
        Ok(())
    }

    /// The connection that LeaveGroup was sent on is gone: it was best effort.
    pub(super) fn farewell_failed(&mut self, api: ApiKey) {
        if api == ApiKey::LeaveGroup {
            self.farewell = None;
        }
    }

    pub(super) fn finish(&mut self) {
        self.close_all("the member is closed");
        self.commits.fail_all(&mut self.out);
        self.fetches.fail_all(&mut self.out);
        self.departure = None;
        self.notice = None;
        self.closed = true;
        self.out.push(Action::Closed);
    }
}
