//! Saying that the member lives, and hearing that the group moves on.

use super::config::Config;
use super::connections::{Broken, Pending};
use super::event::Role;
use super::{Membership, Phase};
use crate::protocol::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use crate::protocol::{ApiKey, ErrorCode, read_response};

/// When the next one is due.
#[derive(Debug, Default)]
pub(super) struct Heartbeat {
    next_at: u64,
    /// UNKNOWN_SERVER_ERROR in a row.
    puzzled: u32,
}

impl Heartbeat {
    /// A generation begins: the first one comes early, for cooperative groups go on to a second rebalance.
    pub(super) fn begin(&mut self, now: u64, config: &Config) {
        self.next_at = now + config.heartbeat_interval_ms.min(config.early_heartbeat_ms);
        self.puzzled = 0;
    }
}

impl Membership {
    /// A member in a generation, also while its application works on a notice and while it plans; but nothing gets out
    /// behind a JoinGroup or SyncGroup that waits, and members that wait there do not expire.
    pub(super) fn heartbeat_due(&self) -> Option<u64> {
        let parked = matches!(self.phase, Phase::Joining | Phase::Syncing(_));
        let lives = self.identity.generation >= 0 && !parked && !self.failed && !self.liveness.expired;
        (lives && self.subscription.is_some()).then_some(self.heartbeat.next_at)
    }

    pub(super) fn drive_heartbeat(&mut self) {
        if self.heartbeat_due().is_none_or(|due| self.now < due) {
            return;
        }
        let Some(conn) = self.ready(Role::Group) else { return };
        if self.net.get(conn).is_some_and(|connection| connection.awaits(ApiKey::Heartbeat)) {
            return;
        }
        // On a grid that begins with the generation, and not an interval after whenever this thread woke: members that were
        // given their shares at the same moment go on to ask at the same moment, so that a rebalance waits for half an
        // interval on average and not for the last of many clocks that drifted apart.
        let interval = self.config.heartbeat_interval_ms;
        let next = self.heartbeat.next_at + interval;
        self.heartbeat.next_at = if next > self.now { next } else { self.now + interval };
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
            ErrorCode::NONE => self.discovery.succeeded(),
            ErrorCode::REBALANCE_IN_PROGRESS => {
                self.discovery.succeeded();
                self.want_rejoin("the group rebalances");
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
}
