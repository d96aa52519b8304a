//! Heartbeats: they renew the session, and their answers report a rebalance.

use super::config::Config;
use super::connections::{Broken, Pending};
use super::course::Trigger;
use super::event::{Action, Role};
use super::machine::Machine;
use super::{Leaves, Membership, Phase, Progress};
use crate::protocol::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use crate::protocol::{ApiKey, ErrorCode, read_response};

/// The least time between the heartbeats of two neighbours. With a shorter time every process would wake more often, and would
/// learn of a rebalance hardly sooner.
const CLOSEST_MS: u64 = 100;

/// The part of the heartbeat interval at whose end this member sends its heartbeat. The members of one process (neighbours) share
/// the interval, so that one of them soon learns of a rebalance. Three of them:
///
/// ```text
/// |····0····|····1····|····2····|····0····|…
/// ├───────── interval ──────────┤
/// ```
#[derive(Debug, Clone, Copy)]
pub(super) struct HeartbeatTurn {
    /// From 0.
    place: u64,
    parts: u64,
}

impl Default for HeartbeatTurn {
    fn default() -> Self {
        Self { place: 0, parts: 1 }
    }
}

impl HeartbeatTurn {
    pub(super) fn new(place: u32, count: u32, config: &Config) -> Self {
        let most = (config.heartbeat_interval_ms / CLOSEST_MS).max(1);
        let parts = u64::from(count).clamp(1, most);
        Self { place: u64::from(place) % parts, parts }
    }

    /// The end of this member's part of `time`.
    fn part_of(self, time: u64) -> u64 {
        time * (self.place + 1) / self.parts
    }
}

/// The schedule of a generation's heartbeats.
#[derive(Debug, Default)]
pub(super) struct Heartbeat {
    next_at: u64,
    /// The start of the generation's first interval.
    origin: u64,
    /// A neighbour has learnt that the group rebalances, so a heartbeat is due now.
    urgent: bool,
    /// Whether the coordinator has answered that the group rebalances.
    rebalances: bool,
    /// How many answers in a row were UNKNOWN_SERVER_ERROR.
    server_errors: u32,
}

impl Heartbeat {
    /// For a generation that begins now. The first heartbeat comes early: a cooperative group soon rebalances a second time.
    pub(super) fn begin(now: u64, turn: HeartbeatTurn, config: &Config) -> Self {
        let first = config.heartbeat_interval_ms.min(config.early_heartbeat_ms);
        Self { origin: now + first, next_at: now + turn.part_of(first).max(1), ..Self::default() }
    }

    /// The next heartbeat is due at the member's turn of the next interval from `origin`, however late this thread woke. Members
    /// that got their assignments at the same moment thus keep sending heartbeats at the same moment, and a rebalance waits for
    /// half an interval on average. If each interval began at a wake-up, the heartbeats would drift apart, and a rebalance would
    /// wait for the latest of them.
    fn schedule(&mut self, now: u64, interval: u64, turn: HeartbeatTurn) {
        // Origin and turn are each at most an interval ahead, so the difference is not negative.
        let since = (now + 2 * interval).saturating_sub(self.origin + turn.part_of(interval));
        self.next_at = now + interval - since % interval;
    }
}

impl Membership {
    /// The time at which a heartbeat is due: in a generation, also during callbacks and while the member plans. None is due while
    /// JoinGroup or SyncGroup is unanswered: the broker serves a heartbeat only after them, and does not end the session before.
    pub(super) fn heartbeat_due(&self) -> Option<u64> {
        let parked = matches!(self.generation.phase, Phase::Joining | Phase::Syncing(_));
        let lives = self.generation.id >= 0 && !parked && !self.failed && !self.liveness.expired;
        let due = if self.generation.heartbeat.urgent { self.network.now } else { self.generation.heartbeat.next_at };
        (lives && self.subscription.is_some()).then_some(due)
    }

    pub(super) fn drive_heartbeat(&mut self) -> Progress {
        if self.heartbeat_due().is_none_or(|due| self.network.now < due) {
            return false;
        }
        let Some(conn) = self.network.ready(Role::Group) else { return false };
        if self.network.awaits(conn, ApiKey::Heartbeat) {
            return false;
        }
        self.generation.heartbeat.urgent = false;
        if self.generation.heartbeat.next_at <= self.network.now {
            self.generation.heartbeat.schedule(self.network.now, self.config.heartbeat_interval_ms, self.turn);
        }
        let body = HeartbeatRequest {
            group_id: self.config.group_id.clone(),
            generation_id: self.generation.id,
            member_id: self.member_id.clone(),
            group_instance_id: self.config.group_instance_id.clone(),
        };
        // A coordinator that does not answer for a session counts as lost.
        self.ask(conn, &body, i16::MAX, self.network.now + self.config.session_timeout_ms);
        true
    }

    pub(super) fn on_heartbeat(&mut self, conn: u64, pending: &Pending, frame: &[u8]) -> Result<(), Broken> {
        let response: HeartbeatResponse = read_response(&pending.header, frame)?;
        self.network.throttle(conn, response.throttle_time_ms);
        if !self.is_current(&pending.stamp) || self.generation.id < 0 {
            return Ok(());
        }
        let code = response.error_code;
        if code != ErrorCode::UNKNOWN_SERVER_ERROR {
            self.generation.heartbeat.server_errors = 0;
        }
        match code {
            ErrorCode::NONE => {
                self.generation.session.renewed(pending.sent_at);
                self.network.discovery.succeeded();
            }
            ErrorCode::REBALANCE_IN_PROGRESS => {
                self.generation.session.renewed(pending.sent_at);
                self.network.discovery.succeeded();
                self.group_rebalances();
            }
            ErrorCode::COORDINATOR_NOT_AVAILABLE | ErrorCode::NOT_COORDINATOR => {
                self.coordinator_lost(&format!("Heartbeat: {code}"));
            }
            // A broker that loads the group answers a heartbeat with success. If it answers with this code, the member need not
            // act.
            ErrorCode::COORDINATOR_LOAD_IN_PROGRESS => {}
            ErrorCode::ILLEGAL_GENERATION => self.expelled(Leaves::Generation, "Heartbeat: ILLEGAL_GENERATION"),
            ErrorCode::UNKNOWN_MEMBER_ID => self.expelled(Leaves::MemberId, "Heartbeat: UNKNOWN_MEMBER_ID"),
            ErrorCode::UNKNOWN_SERVER_ERROR => {
                self.generation.heartbeat.server_errors += 1;
                if self.generation.heartbeat.server_errors > 1 {
                    self.coordinator_lost("Heartbeat: UNKNOWN_SERVER_ERROR twice");
                }
            }
            ErrorCode::GROUP_AUTHORIZATION_FAILED
            | ErrorCode::FENCED_INSTANCE_ID
            | ErrorCode::UNSUPPORTED_VERSION
            | ErrorCode::SASL_AUTHENTICATION_FAILED => {
                let message = self.explain("Heartbeat", code);
                self.fail(code, &message, false);
            }
            // The member can go on with another coordinator.
            code => self.coordinator_lost(&format!("Heartbeat: {code}")),
        }
        Ok(())
    }

    /// The coordinator has answered that the group rebalances.
    pub(super) fn group_rebalances(&mut self) {
        self.generation.heartbeat.urgent = false;
        if !self.generation.heartbeat.rebalances {
            self.generation.heartbeat.rebalances = true;
            self.network.actions.push(Action::GroupRebalances { generation: self.generation.id });
        }
        self.want_rejoin(Trigger::Group, "the group rebalances");
    }

    /// Takes a neighbour's hint, which may be late: sends a heartbeat now, unless the member already knows of the rebalance.
    pub(super) fn on_group_rebalances(&mut self, generation: i32) {
        let known = self.generation.heartbeat.rebalances || self.generation.rejoin.is_some();
        if generation == self.generation.id && !known && self.heartbeat_due().is_some() {
            self.generation.heartbeat.urgent = true;
        }
    }
}
