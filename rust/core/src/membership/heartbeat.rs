//! Saying that the member lives, and hearing that the group moves on.

use super::config::Config;
use super::connections::{Broken, Pending};
use super::event::{Action, Role};
use super::{Membership, Phase};
use crate::protocol::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use crate::protocol::{ApiKey, ErrorCode, read_response};

/// More heartbeats than one in so many milliseconds bring neighbours no news that matters, but wake them all.
const CLOSEST_MS: u64 = 100;

/// When the next one is due.
#[derive(Debug)]
pub(super) struct Heartbeat {
    next_at: u64,
    /// From here on an interval is counted: where the first one of the generation is due, without neighbours.
    origin: u64,
    /// Which part of an interval this member takes, from 0, and how many there are.
    place: u64,
    parts: u64,
    /// A neighbour has heard that the group rebalances: one more, now.
    urgent: bool,
    /// Whether the generation is known to be over.
    told: bool,
    /// UNKNOWN_SERVER_ERROR in a row.
    puzzled: u32,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self { next_at: 0, origin: 0, place: 0, parts: 1, urgent: false, told: false, puzzled: 0 }
    }
}

impl Heartbeat {
    /// The members of a process take turns in the interval.
    pub(super) fn spread(&mut self, place: u32, count: u32, config: &Config) {
        let most = (config.heartbeat_interval_ms / CLOSEST_MS).max(1);
        self.parts = u64::from(count).clamp(1, most);
        self.place = u64::from(place) % self.parts;
    }

    /// A generation begins: the first one comes early, for cooperative groups go on to a second rebalance.
    pub(super) fn begin(&mut self, now: u64, config: &Config) {
        let first = config.heartbeat_interval_ms.min(config.early_heartbeat_ms);
        self.origin = now + first;
        self.next_at = now + self.part_of(first).max(1);
        self.urgent = false;
        self.told = false;
        self.puzzled = 0;
    }

    /// What has gone of a time when this member's turn comes: all of it for the last one, and whoever is alone.
    fn part_of(&self, time: u64) -> u64 {
        time * (self.place + 1) / self.parts
    }

    /// On a grid that begins with the generation, and not an interval after whenever this thread woke: members that were
    /// given their shares at the same moment go on to ask at the same moment, so that a rebalance waits for half an
    /// interval on average and not for the last of many clocks that drifted apart.
    fn schedule(&mut self, now: u64, interval: u64) {
        // The origin is at most an interval ahead, and so is the turn in it: never negative.
        let since = (now + 2 * interval).saturating_sub(self.origin + self.part_of(interval));
        self.next_at = now + interval - since % interval;
    }
}

impl Membership {
    /// A member in a generation, also while its application works on a notice and while it plans; but nothing gets out
    /// behind a JoinGroup or SyncGroup that waits, and members that wait there do not expire.
    pub(super) fn heartbeat_due(&self) -> Option<u64> {
        let parked = matches!(self.phase, Phase::Joining | Phase::Syncing(_));
        let lives = self.identity.generation >= 0 && !parked && !self.failed && !self.liveness.expired;
        let due = if self.heartbeat.urgent { self.now } else { self.heartbeat.next_at };
        (lives && self.subscription.is_some()).then_some(due)
    }

    pub(super) fn drive_heartbeat(&mut self) {
        if self.heartbeat_due().is_none_or(|due| self.now < due) {
            return;
        }
        let Some(conn) = self.ready(Role::Group) else { return };
        if self.net.get(conn).is_some_and(|connection| connection.awaits(ApiKey::Heartbeat)) {
            return;
        }
        self.heartbeat.urgent = false;
        if self.heartbeat.next_at <= self.now {
            self.heartbeat.schedule(self.now, self.config.heartbeat_interval_ms);
        }
        let body = HeartbeatRequest {
            group_id: self.config.group_id.clone(),
            generation_id: self.identity.generation,
            member_id: self.identity.member_id.clone(),
            group_instance_id: self.config.group_instance_id.clone(),
        };
        // Unanswered for a session, the coordinator counts as unknown.
        self.ask(conn, &body, i16::MAX, self.now + self.config.session_timeout_ms);
    }

    pub(super) fn on_heartbeat(&mut self, conn: u64, pending: &Pending, frame: &[u8]) -> Result<(), Broken> {
        let response: HeartbeatResponse = read_response(&pending.header, frame)?;
        self.throttle(conn, response.throttle_time_ms);
        if !self.is_current(&pending.stamp) || self.identity.generation < 0 {
            return Ok(());
        }
        let code = response.error_code;
        if code != ErrorCode::UNKNOWN_SERVER_ERROR {
            self.heartbeat.puzzled = 0;
        }
        match code {
            ErrorCode::NONE => {
                self.session.renewed(pending.sent_at);
                self.discovery.succeeded();
            }
            ErrorCode::REBALANCE_IN_PROGRESS => {
                self.session.renewed(pending.sent_at);
                self.discovery.succeeded();
                self.group_rebalances();
            }
            ErrorCode::COORDINATOR_NOT_AVAILABLE | ErrorCode::NOT_COORDINATOR => {
                self.coordinator_lost(&format!("Heartbeat: {code}"));
            }
            // Brokers answer success while they load; should one not, it means no harm.
            ErrorCode::COORDINATOR_LOAD_IN_PROGRESS => {}
            ErrorCode::ILLEGAL_GENERATION => self.reset_generation(true, "Heartbeat: ILLEGAL_GENERATION"),
            ErrorCode::UNKNOWN_MEMBER_ID => self.reset_generation(false, "Heartbeat: UNKNOWN_MEMBER_ID"),
            ErrorCode::UNKNOWN_SERVER_ERROR => {
                self.heartbeat.puzzled += 1;
                if self.heartbeat.puzzled > 1 {
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
            // Fatal for the heartbeat, not for the member: look for a coordinator that answers better.
            code => self.coordinator_lost(&format!("Heartbeat: {code}")),
        }
        Ok(())
    }

    /// The coordinator has said so.
    pub(super) fn group_rebalances(&mut self) {
        self.heartbeat.urgent = false;
        if !self.heartbeat.told {
            self.heartbeat.told = true;
            self.out.push(Action::GroupRebalances { generation: self.identity.generation });
        }
        self.want_rejoin("the group rebalances");
    }

    /// A neighbour says so. It may be wrong, or late; the coordinator is asked, but by nobody who knows.
    pub(super) fn on_group_rebalances(&mut self, generation: i32) {
        let known = self.heartbeat.told || self.rejoin.is_some();
        if generation == self.identity.generation && !known && self.heartbeat_due().is_some() {
            self.heartbeat.urgent = true;
        }
    }
}
