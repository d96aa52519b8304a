//! Finding the coordinator, and keeping the connections to it and to some broker.

use super::Membership;
use super::backoff::{Backoff, Jitter};
use super::connections::Broken;
use super::event::Role;
use super::metadata::Address;
use crate::protocol::cluster::{FindCoordinatorRequest, FindCoordinatorResponse};
use crate::protocol::{ApiKey, ErrorCode, RequestHeader, read_response};

/// Newer versions ask for several groups at once, which nobody needs here.
const FIND_COORDINATOR: i16 = 3;

/// Which broker to ask, and who coordinates.
#[derive(Debug)]
pub(super) struct Discovery {
    pub(super) coordinator: Option<Address>,
    backoff: Backoff,
    bootstrap_backoff: Backoff,
    offsets_not_before: u64,
    /// Counts through the brokers.
    turn: usize,
    /// Whether the brokers should be asked who they are first.
    pub(super) brokers_stale: bool,
}

impl Discovery {
    pub(super) fn new(backoff: Backoff, bootstrap_backoff: Backoff) -> Self {
        Self { coordinator: None, backoff, bootstrap_backoff, offsets_not_before: 0, turn: 0, brokers_stale: true }
    }

    pub(super) fn failed(&mut self, now: u64, jitter: &mut Jitter) {
        self.backoff.failed(now, jitter);
    }

    /// The coordinator has answered as one.
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

impl Membership {
    fn needs_coordinator(&self) -> bool {
        !self.closed
            && (self.farewell.is_some()
                || !self.failed && (self.subscription.is_some() || !self.commits.is_idle() || !self.fetches.is_idle()))
    }

    pub(super) fn drive_discovery(&mut self) {
        if !self.needs_coordinator() {
            return;
        }
        let Some(coordinator) = self.discovery.coordinator.clone() else {
            self.look_for_coordinator();
            return;
        };
        if self.subscription.is_some() && !self.failed && self.net.with_role(Role::Group).is_none() {
            self.connect(Role::Group, coordinator.node_id, coordinator.host.clone(), coordinator.port);
        }
        if self.net.with_role(Role::Offsets).is_none() && self.now >= self.discovery.offsets_not_before {
            self.connect(Role::Offsets, coordinator.node_id, coordinator.host, coordinator.port);
        }
    }

    /// A connection to any broker, the next in turn: those that Metadata named, then the bootstrap servers.
    pub(super) fn bootstrap(&mut self) -> Option<u64> {
        if self.net.with_role(Role::Bootstrap).is_some() {
            return self.ready(Role::Bootstrap);
        }
        if self.discovery.bootstrap_backoff.ready(self.now) {
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
        }
        None
    }

    fn look_for_coordinator(&mut self) {
        let Some(conn) = self.bootstrap() else { return };
        let asked = self.net.get(conn).is_some_and(|connection| connection.awaits(ApiKey::FindCoordinator));
        if asked || !self.discovery.backoff.ready(self.now) {
            return;
        }
        let body = FindCoordinatorRequest { key: self.config.group_id.clone(), ..Default::default() };
        self.ask(conn, &body, FIND_COORDINATOR, self.now + self.config.request_timeout_ms);
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

/// What no other try can change.
fn is_fatal(code: ErrorCode) -> bool {
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
