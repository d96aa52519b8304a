//! Leaving: the application gives its partitions up, waits for its commits, and the broker gets a LeaveGroup.

use super::connections::{Broken, Connection};
use super::course::Course;
use super::event::{Action, NoticeKind, Role};
use super::machine::Machine;
use super::{Generation, Leaves, Membership, Phase, Progress};
use crate::protocol::leave_group::{LeaveGroupMember, LeaveGroupRequest, LeaveGroupResponse};
use crate::protocol::{ApiKey, ErrorCode, RequestHeader, read_response};

/// The time that the other members take, after the heartbeat that announces a rebalance, to run their callbacks and to join.
const PREPARATION_MS: u64 = 1_000;

/// A LeaveGroup that is to be sent, or unanswered. It is best effort: without it the member's session ends on the broker.
#[derive(Debug, Clone)]
pub(super) struct PendingLeave {
    member_id: String,
    reason: String,
    pub(super) deadline: u64,
    sent: bool,
}

/// An `unsubscribe` or `close` of the application that has not ended.
#[derive(Debug, Clone)]
pub(super) struct Departure {
    /// Whether the member is closed, rather than only without a subscription.
    pub(super) closes: bool,
    pub(super) deadline: u64,
    /// Until this time the member keeps its partitions and waits for the answer to JoinGroup; None if it does not wait for the end
    /// of its rejoin. For the answer to SyncGroup it waits until `deadline`.
    joins_until: Option<u64>,
    /// Whether the application has given its partitions up.
    released: bool,
}

impl Membership {
    /// The application unsubscribes or closes.
    pub(super) fn depart(&mut self, closes: bool, timeout_ms: u64) {
        if self.closed {
            return;
        }
        let deadline = self.network.now.saturating_add(timeout_ms);
        if let Some(departure) = &mut self.departure {
            departure.closes |= closes;
            departure.deadline = departure.deadline.min(deadline);
            return;
        }
        if !closes && self.subscription.is_none() {
            return;
        }
        self.cancel_notice();
        // From the end of the group's join to its plan the coordinator refuses commits, and the records since the last commit would
        // be read again. So the member completes its rejoin first.
        let waits = closes && self.is_rejoining() && !self.ownership.is_empty();
        let joined = self.network.now.saturating_add(self.config.heartbeat_interval_ms).saturating_add(PREPARATION_MS);
        self.departure = Some(Departure { closes, deadline, joins_until: waits.then_some(joined), released: false });
    }

    /// Whether the member is between JoinGroup and the answer to SyncGroup.
    fn is_rejoining(&self) -> bool {
        matches!(self.generation.phase, Phase::Joining | Phase::Planning(_) | Phase::Syncing(_))
    }

    /// JoinGroup or SyncGroup was answered with REBALANCE_IN_PROGRESS, or a departure waits no longer for JoinGroup. A member that
    /// departs does not join again: the coordinator still counts it in its last generation, and the member commits with that
    /// generation.
    pub(super) fn ends_its_rejoin(&mut self) {
        if self.departure.is_some() {
            self.generation.rejoining = false;
        }
    }

    /// The time until which a departure waits for the answer to JoinGroup or SyncGroup; `None` if it waits for neither.
    pub(super) fn departure_rejoins_until(&self) -> Option<u64> {
        let departure = self.departure.as_ref().filter(|departure| !departure.released && self.is_rejoining())?;
        let joins_until = departure.joins_until?;
        let joining = matches!(self.generation.phase, Phase::Joining);
        Some(if joining { joins_until.min(departure.deadline) } else { departure.deadline })
    }

    /// The next step of the departure: the partitions, the commits, LeaveGroup, the end.
    pub(super) fn drive_departure(&mut self) -> Progress {
        let Some(Departure { closes, deadline, released, .. }) = self.departure else { return false };
        let late = self.network.now >= deadline;
        if !released {
            if self.is_rejoining() {
                if self.departure_rejoins_until().is_some_and(|until| self.network.now < until) {
                    return false;
                }
                // As far as this member knows, others have not joined yet: the coordinator counts it in its last generation.
                if matches!(self.generation.phase, Phase::Joining) {
                    self.ends_its_rejoin();
                }
                self.stop_waiting("the member goes");
            }
            return self.release_for_departure();
        }
        let mut progress = late && self.commits.refuse_all(ErrorCode::REQUEST_TIMED_OUT, &mut self.network.actions);
        // The callbacks' commits go first: a coordinator refuses those of a member that has left.
        if !late && !self.commits.is_idle() {
            return progress;
        }
        if self.subscription.take().is_some() {
            self.want_leave_group("the consumer unsubscribed or is being closed", deadline);
            self.leave_generation(Leaves::Group);
            self.course = Course::default();
            self.close_group("the member has left");
            progress = true;
        }
        if !closes {
            self.departure = None;
            return true;
        }
        if self.leave_group.is_some() && !late {
            return progress;
        }
        self.leave_group = None;
        self.finish();
        true
    }

    /// Makes the application give its partitions up, even after the deadline: the application waits in `unsubscribe` or `close`
    /// for its callbacks.
    fn release_for_departure(&mut self) -> Progress {
        if self.notice.is_some() {
            return false;
        }
        if !self.ownership.is_empty() {
            let lost = self.generation.id < 0 || self.generation.rejoining || self.failed;
            let revoked = self.ownership.partitions();
            self.notify(NoticeKind::Leave, lost, revoked);
        } else if let Some(departure) = &mut self.departure {
            departure.released = true;
        }
        true
    }

    /// Schedules LeaveGroup. Static members send none: the coordinator keeps their place for a session.
    pub(super) fn want_leave_group(&mut self, reason: &str, deadline: u64) {
        if self.config.is_static() || self.member_id.is_empty() || self.failed {
            return;
        }
        let member_id = self.member_id.clone();
        self.leave_group = Some(PendingLeave { member_id, reason: reason.to_owned(), deadline, sent: false });
    }

    pub(super) fn drive_leave_group(&mut self) -> Progress {
        let Some(PendingLeave { member_id, reason, deadline, sent }) = self.leave_group.clone() else { return false };
        if self.network.now >= deadline {
            self.leave_group = None;
            return true;
        }
        let Some(conn) = self.network.ready(Role::Offsets).filter(|_| !sent) else { return false };
        let member =
            LeaveGroupMember { member_id: member_id.clone(), group_instance_id: None, reason: Some(reason.clone()) };
        let body = LeaveGroupRequest {
            group_id: self.config.group_id.clone(),
            member_id: member_id.clone(),
            members: vec![member],
        };
        let sent = self.ask(conn, &body, i16::MAX, deadline.min(self.network.request_deadline()));
        self.leave_group = sent.then_some(PendingLeave { member_id, reason, deadline, sent });
        true
    }

    /// Takes the answer to LeaveGroup. The member has left, regardless of the answer.
    pub(super) fn on_leave(&mut self, header: &RequestHeader, frame: &[u8]) -> Result<(), Broken> {
        let response: LeaveGroupResponse = read_response(header, frame)?;
        self.leave_group = None;
        let code = response.members.first().map_or(response.error_code, |member| member.error_code);
        if !code.is_none() {
            self.network.info(format!("LeaveGroup was answered with {code}; the session's end does the rest"));
        }
        Ok(())
    }

    /// Leaves the generation. Until its application has given them up, the member's partitions count as lost.
    pub(super) fn leave_generation(&mut self, leaves: Leaves) {
        self.stop_waiting(if leaves == Leaves::Group { "the member goes" } else { "the generation is over" });
        self.generation = Generation::default();
        if leaves != Leaves::Generation {
            self.member_id.clear();
        }
        self.ownership.forget_released();
        self.ownership.forget_outgoing();
        self.cancel_notice();
        // The prepared metadata names the owned partitions, which are lost now.
        if leaves == Leaves::Group || !self.ownership.is_empty() {
            self.attempt.prepared = None;
        }
    }

    /// Closes the connection with an unanswered JoinGroup or SyncGroup: the answer would come too late, and before it the broker
    /// would serve no other request of that connection.
    pub(super) fn stop_waiting(&mut self, reason: &str) {
        let waits =
            |connection: &Connection| connection.awaits(ApiKey::JoinGroup) || connection.awaits(ApiKey::SyncGroup);
        if self.network.connections.with_role(Role::Group).is_some_and(|(_, connection)| waits(connection)) {
            self.close_group(reason);
        }
        self.generation.phase = Phase::Unjoined;
    }

    fn finish(&mut self) {
        for role in [Role::Bootstrap, Role::Group, Role::Offsets] {
            self.network.close_where("the member is closed", |connection| connection.role == role);
        }
        self.commits.fail_all(&mut self.network.actions);
        self.fetches.fail_all(&mut self.network.actions);
        self.departure = None;
        self.notice = None;
        self.closed = true;
        self.network.actions.push(Action::Closed);
    }
}
