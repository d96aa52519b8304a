//! FindCoordinator, and the connections to the coordinator and to any broker.

use super::backoff::{Backoff, Jitter};
use super::connections::Broken;
use super::event::Role;
use super::metadata::Address;
use super::{Membership, Progress};
use crate::protocol::cluster::{FindCoordinatorRequest, FindCoordinatorResponse};
use crate::protocol::{ApiKey, ErrorCode, RequestHeader, read_response};

/// Newer versions ask for several groups at once.
pub(super) const FIND_COORDINATOR: i16 = 3;

/// The coordinator, and when to look for it.
#[derive(Debug)]
pub(super) struct Discovery {
    pub(super) coordinator: Option<Address>,
    pub(super) backoff: Backoff,
    pub(super) bootstrap_backoff: Backoff,
    pub(super) offsets_not_before: u64,
    /// Which of the brokers comes next.
    pub(super) turn: usize,
    /// Whether Metadata must be asked for again because its brokers may be gone.
    pub(super) brokers_stale: bool,
}

impl Discovery {
    pub(super) fn new(backoff: Backoff, bootstrap_backoff: Backoff) -> Self {
        Self { coordinator: None, backoff, bootstrap_backoff, offsets_not_before: 0, turn: 0, brokers_stale: true }
    }

    pub(super) fn failed(&mut self, now: u64, jitter: &mut Jitter) {
        self.backoff.failed(now, jitter);
    }

    /// The coordinator has answered, and not that it is none.
    pub(super) fn succeeded(&mut self) {
        self.backoff.succeeded();
    }

    pub(super) fn bootstrap_lost(&mut self, now: u64, quiet: bool, jitter: &mut Jitter) {
        self.turn = self.turn.wrapping_add(1);
        if !quiet {
            self.bootstrap_backoff.failed(now, jitter);
        }
    }

    pub(super) fn offsets_lost(&mut self, now: u64, quiet: bool, jitter: &mut Jitter) {
        if !quiet {
            self.backoff.failed(now, jitter);
            self.offsets_not_before = self.backoff.not_before();
        }
    }

    pub(super) fn deadlines(&self) -> [Option<u64>; 3] {
        [Some(self.backoff.not_before()), Some(self.bootstrap_backoff.not_before()), Some(self.offsets_not_before)]
    }
}

/// The connection to any broker.
pub(super) enum Bootstrap {
    /// A request may be sent on it now.
    Ready(u64),
    /// It has just been begun.
    Begun,
    /// It is not open yet, throttled, or must not be begun before a back-off is over.
    Waits,
}

impl Membership {
    fn needs_coordinator(&self) -> bool {
        !self.closed
            && (self.leave_group.is_some()
                || !self.failed && (self.subscription.is_some() || !self.commits.is_idle() || !self.fetches.is_idle()))
    }

    pub(super) fn drive_discovery(&mut self) -> Progress {
        if !self.needs_coordinator() {
            return false;
        }
        let Some(coordinator) = self.discovery.coordinator.clone() else {
            return self.look_for_coordinator();
        };
        let mut progress = false;
        if self.subscription.is_some() && !self.failed && self.connections.with_role(Role::Group).is_none() {
            self.connect(Role::Group, coordinator.node_id, coordinator.host.clone(), coordinator.port);
            progress = true;
        }
        if self.connections.with_role(Role::Offsets).is_none() && self.now >= self.discovery.offsets_not_before {
            self.connect(Role::Offsets, coordinator.node_id, coordinator.host, coordinator.port);
            progress = true;
        }
        progress
    }

    /// The connection to any broker. A new one goes to the next in turn: first the brokers that Metadata named, then the
    /// bootstrap servers.
    pub(super) fn bootstrap(&mut self) -> Bootstrap {
        if self.connections.with_role(Role::Bootstrap).is_some() {
            return self.ready(Role::Bootstrap).map_or(Bootstrap::Waits, Bootstrap::Ready);
        }
        if !self.discovery.bootstrap_backoff.ready(self.now) {
            return Bootstrap::Waits;
        }
        let brokers = &self.cluster.brokers;
        let at = self.discovery.turn % (brokers.len() + self.config.bootstrap.len());
        let (node_id, host, port) = match brokers.get(at) {
            Some(broker) => (broker.node_id, broker.host.clone(), broker.port),
            None => {
                let (host, port) = self.config.bootstrap[at - brokers.len()].clone();
                (-1, host, port)
            }
        };
        self.connect(Role::Bootstrap, node_id, host, port);
        Bootstrap::Begun
    }

    fn look_for_coordinator(&mut self) -> Progress {
        let conn = match self.bootstrap() {
            Bootstrap::Ready(conn) => conn,
            Bootstrap::Begun => return true,
            Bootstrap::Waits => return false,
        };
        let asked = self.connections.get(conn).is_some_and(|connection| connection.awaits(ApiKey::FindCoordinator));
        if asked || !self.discovery.backoff.ready(self.now) {
            return false;
        }
        let body = FindCoordinatorRequest { key: self.config.group_id.clone(), ..Default::default() };
        self.ask(conn, &body, FIND_COORDINATOR, self.now + self.config.request_timeout_ms);
        true
    }

    pub(super) fn on_coordinator(&mut self, conn: u64, header: &RequestHeader, frame: &[u8]) -> Result<(), Broken> {
        let response: FindCoordinatorResponse = read_response(header, frame)?;
        self.throttle(conn, response.throttle_time_ms);
        self.discovery.bootstrap_backoff.succeeded();
        match response.error_code {
            ErrorCode::NONE => {
                if response.host.is_empty() || !(1..=65_535).contains(&response.port) {
                    return Err(Broken(format!("the coordinator is said to be at port {}", response.port)));
                }
                let FindCoordinatorResponse { node_id, host, port, .. } = response;
                self.discovery.coordinator = Some(Address { node_id, host, port });
            }
            code if is_fatal(code) => {
                let why = response.error_message.unwrap_or_default();
                self.fail(code, &format!("FindCoordinator for group '{}': {code} {why}", self.config.group_id), false);
            }
            code => {
                self.info(format!("no coordinator yet: {code}"));
                self.discovery.brokers_stale |= code == ErrorCode::COORDINATOR_NOT_AVAILABLE;
                self.discovery.failed(self.now, &mut self.jitter);
            }
        }
        Ok(())
    }
}

/// Whether every repetition would fail too.
pub(super) fn is_fatal(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::GROUP_AUTHORIZATION_FAILED
            | ErrorCode::CLUSTER_AUTHORIZATION_FAILED
            | ErrorCode::INVALID_GROUP_ID
            | ErrorCode::UNSUPPORTED_VERSION
            | ErrorCode::SASL_AUTHENTICATION_FAILED
            | ErrorCode::UNSUPPORTED_SASL_MECHANISM
            | ErrorCode::ILLEGAL_SASL_STATE
            | ErrorCode::INVALID_REQUEST
    )
}
