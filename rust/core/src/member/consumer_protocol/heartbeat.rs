//! ConsumerGroupHeartbeat: its time, its fields, and the effects of its answer.

use super::ConsumerMembership;
use super::holdings::{PartitionsByTopic, without};
use crate::member::Progress;
use crate::member::backoff::Backoff;
use crate::member::connections::{Broken, Pending, Stamp};
use crate::member::course::Trigger;
use crate::member::event::{Action, Role};
use crate::member::machine::Machine;
use crate::protocol::consumer_group_heartbeat::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, HeartbeatAssignment, HeartbeatTopicPartitions,
    JOIN_EPOCH, REGEX_FROM,
};
use crate::protocol::{ApiKey, ErrorCode, read_response};

/// The state of the heartbeats that outlives a membership.
#[derive(Debug)]
pub(super) struct Beats {
    /// Whether a join was lost with its connection: the coordinator may have added the member to the group.
    pub(super) unanswered_join: bool,
    /// Whether the coordinator may have an expression of this member.
    had_expression: bool,
    /// Whether the application has received the error that it may not describe a subscribed topic.
    unauthorized: bool,
    backoff: Backoff,
    rejoin: Backoff,
    /// The broker's interval; `None` before its first answer.
    interval: Option<u64>,
}

impl Beats {
    pub(super) fn new(backoff: Backoff, rejoin: Backoff) -> Self {
        Self { unanswered_join: false, had_expression: false, unauthorized: false, backoff, rejoin, interval: None }
    }
}

fn rows(partitions: &PartitionsByTopic) -> Vec<HeartbeatTopicPartitions> {
    let row = |(&topic_id, numbers): (&[u8; 16], &std::collections::BTreeSet<i32>)| HeartbeatTopicPartitions {
        topic_id,
        partitions: numbers.iter().copied().collect(),
    };
    partitions.iter().map(row).collect()
}

fn by_topic(assignment: HeartbeatAssignment) -> PartitionsByTopic {
    let mut target = PartitionsByTopic::new();
    for topic in assignment.topic_partitions {
        let numbers = topic.partitions.into_iter().filter(|&number| number >= 0);
        target.entry(topic.topic_id).or_default().extend(numbers);
    }
    target
}

impl ConsumerMembership {
    /// The time at which a heartbeat is due. In a membership, heartbeats continue during callbacks and while the member departs.
    /// Outside a membership, the heartbeat that joins is due as soon as the application has given up the lost partitions.
    pub(super) fn heartbeat_due(&self) -> Option<u64> {
        let lives = self.subscription.is_some() && !self.failed && !self.closed && !self.liveness.expired;
        if !lives || self.current.in_flight {
            return None;
        }
        if self.current.epoch >= 0 {
            return Some(self.pace.due(self.network.now, self.beats.backoff.not_before()));
        }
        let may_join = self.departure.is_none()
            && self.notice.is_none()
            && self.holdings.is_empty()
            && self.leaving.is_none_or(|leaving| !leaving.sent);
        let not_before = self.beats.backoff.not_before().max(self.beats.rejoin.not_before());
        may_join.then(|| self.pace.due(self.network.now, not_before))
    }

    /// The deadline of a heartbeat that is sent now. A coordinator that does not answer for a session counts as lost.
    pub(super) fn heartbeat_deadline(&self) -> u64 {
        self.network.now + self.config.request_timeout_ms.min(self.config.session_timeout_ms)
    }

    pub(super) fn drive_heartbeat(&mut self) -> Progress {
        let number = self.subscription.as_ref().map(|wanted| wanted.number);
        let has_news = self.current.epoch < 0
            || self.current.full
            || self.current.owes_acknowledgement
            || self.departure.is_none() && self.current.reported != number;
        if has_news && !self.pace.urgent {
            self.pace.urgent = true;
        }
        if self.heartbeat_due().is_none_or(|due| self.network.now < due) {
            return false;
        }
        let Some(conn) = self.network.ready(Role::Group) else { return false };
        let Some(version) = self.network.version(conn, ApiKey::ConsumerGroupHeartbeat, i16::MAX) else {
            self.fail_with(ErrorCode::UNSUPPORTED_VERSION, &self.too_old());
            return true;
        };
        let has_expression = self.subscription.as_ref().is_some_and(|wanted| wanted.expression.is_some());
        if version < REGEX_FROM && has_expression {
            let message =
                "the broker matches no regular expressions: subscribe to topics by name, or use brokers from 4.0 on";
            self.fail_with(ErrorCode::UNSUPPORTED_VERSION, message);
            return true;
        }
        // The member joins again, so the heartbeat that leaves is not sent any more.
        self.leaving = None;
        let body = self.heartbeat(version);
        if !self.ask(conn, &body, i16::MAX, self.heartbeat_deadline()) {
            let message = "the member cannot subscribe: a topic name or the expression is longer than 32,767 bytes";
            self.fail_with(ErrorCode::INVALID_REQUEST, message);
            return true;
        }
        if body.subscribed_topic_names.is_some() {
            self.current.reported = number;
            self.beats.had_expression |= has_expression;
            self.pace.waits(self.network.now);
        }
        self.current.in_flight = true;
        let named = body.topic_partitions.is_some().then(|| self.claimed());
        self.current.revocation.sent(self.network.now, named);
        self.course.attempts = self.course.attempts.saturating_add(u32::from(self.current.epoch < 0));
        self.current.owes_acknowledgement = false;
        self.pace.sent(self.network.now);
        true
    }

    /// The partitions that the application holds, and those that it may take before the answer. To the coordinator, a partition
    /// that is not named is given up: if it plans anew meanwhile, it would hand that partition to another member.
    fn claimed(&self) -> PartitionsByTopic {
        let mut claimed = self.holdings.by_topic();
        for (&id, numbers) in self.current.target.iter().flatten().filter(|(_, numbers)| !numbers.is_empty()) {
            claimed.entry(id).or_default().extend(numbers);
        }
        claimed
    }

    /// The heartbeat to send: only the fields that have changed since the last one or, in a full one, every field.
    fn heartbeat(&self, version: i16) -> ConsumerGroupHeartbeatRequest {
        let joins = self.current.epoch < 0;
        let full = joins || self.current.full;
        let wanted = self.subscription.as_ref();
        let names_all = full || wanted.map(|wanted| wanted.number) != self.current.reported;
        let wanted = wanted.filter(|_| names_all);
        let expression = wanted.and_then(|wanted| match &wanted.expression {
            Some(expression) => Some(expression.clone()),
            None => self.beats.had_expression.then(String::new),
        });
        let claimed = self.claimed();
        // In version 0 the broker makes the id of a member that joins for the first time.
        let made_by_broker = version < REGEX_FROM && joins && self.fencing.is_none();
        ConsumerGroupHeartbeatRequest {
            group_id: self.config.group_id.clone(),
            member_id: if made_by_broker { String::new() } else { self.member_id.clone() },
            member_epoch: if joins { JOIN_EPOCH } else { self.current.epoch },
            instance_id: self.config.group_instance_id.clone(),
            rack_id: self.config.rack.clone().filter(|_| full),
            rebalance_timeout_ms: if full { self.config.max_poll_interval_ms as i32 } else { -1 },
            subscribed_topic_names: wanted.map(|wanted| wanted.topics.iter().cloned().collect()),
            subscribed_topic_regex: expression,
            server_assignor: self.config.remote_assignor.clone().filter(|_| full),
            topic_partitions: (full || self.current.owes_acknowledgement).then(|| rows(&claimed)),
        }
    }

    /// Notes that a heartbeat stays unanswered. Its fields, or those of its answer, may be lost, so the next heartbeat is full.
    pub(super) fn heartbeat_lost(&mut self, stamp: &Stamp) {
        if !self.is_current(stamp) || !std::mem::take(&mut self.current.in_flight) {
            return;
        }
        self.current.full = true;
        self.beats.unanswered_join |= self.current.epoch < 0;
        self.pace.answered(self.network.now);
    }

    pub(super) fn on_heartbeat(&mut self, conn: u64, pending: &Pending, frame: &[u8]) -> Result<(), Broken> {
        let response: ConsumerGroupHeartbeatResponse = read_response(&pending.header, frame)?;
        self.network.throttle(conn, response.throttle_time_ms);
        if !self.is_current(&pending.stamp) {
            return Ok(());
        }
        if self.leaving.is_some_and(|leaving| leaving.sent) {
            // The member has left, regardless of the broker's answer.
            self.leaving = None;
            return Ok(());
        }
        let code = response.error_code;
        if code.is_none() {
            return self.accepted(pending, response);
        }
        self.heartbeat_lost(&pending.stamp);
        self.current.revocation.refused(pending.sent_at);
        self.beats.backoff.failed(self.network.now, &mut self.network.jitter);
        match code {
            ErrorCode::COORDINATOR_LOAD_IN_PROGRESS => {}
            ErrorCode::COORDINATOR_NOT_AVAILABLE
            | ErrorCode::NOT_COORDINATOR
            | ErrorCode::REQUEST_TIMED_OUT
            | ErrorCode::NETWORK_EXCEPTION => {
                self.beats.backoff.succeeded();
                self.coordinator_lost(&format!("ConsumerGroupHeartbeat: {code}"));
            }
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::FENCED_MEMBER_EPOCH => {
                self.beats.backoff.succeeded();
                self.fenced(&format!("ConsumerGroupHeartbeat: {code}"));
            }
            ErrorCode::TOPIC_AUTHORIZATION_FAILED => {
                if !std::mem::replace(&mut self.beats.unauthorized, true) {
                    let message = self.explain(code, response.error_message.as_deref());
                    self.network.actions.push(Action::Error { code, topic: None, message });
                }
            }
            code => {
                let message = self.explain(code, response.error_message.as_deref());
                self.fail_with(code, &message);
            }
        }
        Ok(())
    }

    /// The group has continued without this member: other members may already own its partitions.
    pub(super) fn fenced(&mut self, why: &str) {
        self.network.warn(format!("out of epoch {}: {why}", self.current.epoch));
        self.leave_membership();
        self.course.begin(self.network.now, Trigger::Expelled);
        // The first return comes at once. A member that is fenced again waits for a back-off.
        self.beats.rejoin.failed_once_free(self.network.now, &mut self.network.jitter);
    }

    fn accepted(&mut self, pending: &Pending, response: ConsumerGroupHeartbeatResponse) -> Result<(), Broken> {
        let epoch = response.member_epoch;
        if epoch < self.current.epoch.max(0) {
            return Err(Broken(format!(
                "the coordinator answers with epoch {epoch} after epoch {}",
                self.current.epoch
            )));
        }
        let joined = self.current.epoch < 0;
        if joined && pending.header.version < REGEX_FROM {
            match response.member_id.filter(|id| !id.is_empty()) {
                Some(id) => self.member_id = id,
                None => return Err(Broken("the coordinator gives a member that joins no id".to_owned())),
            }
        }
        self.current.in_flight = false;
        self.current.full = false;
        self.beats.unauthorized = false;
        self.beats.unanswered_join = false;
        self.beats.backoff.succeeded();
        self.network.discovery.succeeded();
        self.heard = self.heard.max(pending.sent_at);
        if let Ok(interval @ 1..) = u64::try_from(response.heartbeat_interval_ms) {
            self.beats.interval = Some(interval);
        }
        self.keep_pace();
        if epoch == JOIN_EPOCH {
            // The group has no plan yet, so the member has not joined.
            self.current.revocation.refused(pending.sent_at);
            self.current.full = true;
            self.beats.unanswered_join = true;
            self.beats.backoff.failed(self.network.now, &mut self.network.jitter);
            return Ok(());
        }
        if joined {
            self.pace.waits(self.network.now);
        } else {
            self.beats.rejoin.succeeded();
        }
        let grew = epoch > self.current.epoch;
        self.current.epoch = epoch;
        self.fencing = Some((self.member_id.clone(), epoch));
        let mut moves = false;
        let mut gone = PartitionsByTopic::new();
        if let Some(assignment) = response.assignment {
            let target = by_topic(assignment);
            // The new assignment replaces one that the application has not begun to take.
            self.cancel_notice();
            moves = target != self.holdings.by_topic();
            gone = without(&self.claimed(), &target);
            self.current.target = Some(target);
            self.current.fresh = true;
            self.course.begin(self.network.now, Trigger::Group);
            self.course.joined_at = Some(self.network.now);
        }
        self.current.revocation.accepted(pending.sent_at, gone);
        if grew || moves {
            // A member that must give partitions up stays in its epoch, and the group is in a newer one.
            self.network
                .actions
                .push(Action::GroupRebalances { generation: if grew { epoch } else { epoch.saturating_add(1) } });
        }
        self.pace.answered(self.network.now);
        Ok(())
    }

    /// Another member of the group in this process has received this epoch. If this member's epoch is older, its heartbeat is due
    /// now.
    pub(super) fn on_neighbour(&mut self, epoch: i32) {
        if (0..epoch).contains(&self.current.epoch) {
            self.pace.urgent = true;
        }
    }

    /// Sets this member's interval. The members of one process inform each other, so together they send as many heartbeats as a
    /// single member would.
    pub(super) fn keep_pace(&mut self) {
        let longest = self.config.longest_heartbeat_ms.saturating_mul(self.place.1);
        let interval = self.beats.interval.map_or(longest, |interval| interval.min(longest));
        self.pace.set_interval(self.network.now, interval.max(100), self.place);
    }

    /// The coordinator has not answered for a session: other members may own the member's partitions.
    pub(super) fn drive_session(&mut self) -> Progress {
        if self.session_end().is_none_or(|end| self.network.now < end) {
            return false;
        }
        let silence = format!("the coordinator has not answered for {} ms, a session", self.config.session_timeout_ms);
        self.fenced(&silence);
        self.coordinator_lost(&silence);
        true
    }
}
