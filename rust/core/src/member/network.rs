//! The network side of a member, the same for both group protocols: connections, requests, the search for the coordinator, and
//! the actions that the host must carry out.
//!
//! Nothing here depends on the state of a group. A method that removes a connection returns it: its requests stay unanswered,
//! and the member must act on that ([`Machine`](super::machine::Machine)).

use super::backoff::{Backoff, Jitter};
use super::config::NetworkConfig;
use super::connections::{Broken, Connection, Connections, Pending, Stamp};
use super::discovery::{Address, Bootstrap, Discovery, is_fatal};
use super::event::{Action, Level, Role};
use crate::protocol::cluster::{FindCoordinatorRequest, FindCoordinatorResponse};
use crate::protocol::{ApiKey, Body, ErrorCode, RequestHeader, read_response};
use std::collections::BTreeMap;

/// Whether a request was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendOutcome {
    /// The request waits for its answer.
    Sent,
    /// There is no version that both sides speak.
    NoVersion,
    /// The body has no form in the protocol.
    NoForm,
}

/// A member's connections, requests and actions, and the time.
#[derive(Debug)]
pub(super) struct NetworkClient {
    config: NetworkConfig,
    /// The latest time seen.
    pub(super) now: u64,
    pub(super) jitter: Jitter,
    /// The actions for the host, in this order.
    pub(super) actions: Vec<Action>,
    pub(super) connections: Connections,
    pub(super) discovery: Discovery,
}

impl NetworkClient {
    pub(super) fn new(config: NetworkConfig, now: u64, jitter: Jitter, backoff: Backoff) -> Self {
        Self {
            config,
            now,
            jitter,
            actions: Vec::new(),
            connections: Connections::default(),
            discovery: Discovery::new(backoff),
        }
    }

    /// If the caller's clock runs backwards, the latest time counts.
    pub(super) fn advance(&mut self, now: u64) {
        self.now = self.now.max(now);
    }

    pub(super) fn info(&mut self, message: String) {
        self.actions.push(Action::Log { level: Level::Info, message });
    }

    pub(super) fn warn(&mut self, message: String) {
        self.actions.push(Action::Log { level: Level::Warning, message });
    }

    fn connect(&mut self, role: Role, Address { node_id, host, port }: Address) {
        let conn = self.connections.begin(role, self.now + self.config.connect_timeout_ms);
        self.actions.push(Action::Connect { conn, node_id, host, port, role });
    }

    pub(super) fn on_connected(&mut self, conn: u64, versions: BTreeMap<i16, (i16, i16)>) {
        if let Some(connection) = self.connections.get_mut(conn).filter(|connection| !connection.is_open()) {
            connection.open(versions);
        }
    }

    /// The request that a frame answers; `None` if the connection is gone.
    pub(super) fn answered(&mut self, conn: u64) -> Option<Result<Pending, Broken>> {
        let pending = self.connections.get_mut(conn)?.next_pending();
        Some(pending.ok_or_else(|| Broken("a response came to no request".to_owned())))
    }

    pub(super) fn throttle(&mut self, conn: u64, throttle_time_ms: i32) {
        if let Some(connection) = self.connections.get_mut(conn) {
            connection.throttle(self.now, throttle_time_ms, self.config.longest_throttle_ms);
        }
    }

    /// The connection of this role, if a request may be sent on it now.
    pub(super) fn ready(&self, role: Role) -> Option<u64> {
        let (conn, connection) = self.connections.with_role(role)?;
        connection.may_send(self.now).then_some(conn)
    }

    /// Whether a request of this kind is unanswered on the connection.
    pub(super) fn awaits(&self, conn: u64, api: ApiKey) -> bool {
        self.connections.get(conn).is_some_and(|connection| connection.awaits(api))
    }

    /// The newest version that both sides of the connection speak, up to `most`.
    pub(super) fn version(&self, conn: u64, api: ApiKey, most: i16) -> Option<i16> {
        self.connections.get(conn)?.version(api, most)
    }

    /// The deadline of a request that is sent now.
    pub(super) fn request_deadline(&self) -> u64 {
        self.now + self.config.request_timeout_ms
    }

    /// Sends a request in the newest version that both sides speak, up to `most`.
    pub(super) fn ask<B: Body>(&mut self, conn: u64, body: &B, most: i16, stamp: Stamp, deadline: u64) -> SendOutcome {
        let Some(version) = self.version(conn, B::KEY, most) else { return SendOutcome::NoVersion };
        let client_id = self.config.client_id.as_deref();
        match self.connections.ask(conn, version, client_id, body, (stamp, self.now, deadline)) {
            Ok(bytes) => {
                self.actions.push(Action::Send { conn, bytes });
                SendOutcome::Sent
            }
            Err(error) => {
                self.warn(format!("{} has no form in the protocol: {error}", B::KEY.name()));
                SendOutcome::NoForm
            }
        }
    }

    /// The connections that have timed out.
    pub(super) fn late(&self) -> Vec<u64> {
        self.connections.which(|connection| connection.deadline().is_some_and(|deadline| deadline <= self.now))
    }

    /// Closes a connection, which is lost with the requests on it.
    pub(super) fn close(&mut self, conn: u64, reason: &str) -> Option<Connection> {
        let connection = self.connections.remove(conn)?;
        self.actions.push(Action::Close { conn, reason: reason.to_owned() });
        Some(connection)
    }

    /// Closes connections that are not needed any more. No back-off follows.
    pub(super) fn close_where(&mut self, reason: &str, is_over: impl Fn(&Connection) -> bool) -> bool {
        let over = self.connections.which(is_over);
        for &conn in &over {
            self.close(conn, reason);
        }
        !over.is_empty()
    }

    /// Closes the connections to a former coordinator on which no request is unanswered.
    pub(super) fn close_retired(&mut self) -> bool {
        self.close_where("the coordinator has moved", |connection| {
            connection.retiring && (connection.is_idle() || !connection.is_open())
        })
    }

    /// A connection is gone. Returns whether the coordinator may be gone with it.
    pub(super) fn lost(&mut self, connection: &Connection) -> bool {
        let quiet = connection.is_open() && connection.is_idle();
        match connection.role {
            Role::Bootstrap => self.discovery.bootstrap_lost(self.now, quiet, &mut self.jitter),
            Role::Group => return true,
            Role::Offsets if self.connections.with_role(Role::Group).is_some_and(|(_, group)| group.is_open()) => {
                // The coordinator still answers. Brokers close connections that are idle for long.
                self.discovery.offsets_lost(self.now, quiet, &mut self.jitter);
            }
            Role::Offsets => return !connection.retiring,
        }
        false
    }

    /// Starts a new search for the coordinator. The offsets connection stays open while a commit is unanswered on it: the broker
    /// could apply an abandoned commit after a newer one and move the offset back. The group's connection is closed and returned.
    pub(super) fn coordinator_lost(&mut self, reason: &str) -> Option<Connection> {
        self.discovery.coordinator.take()?;
        self.info(format!("looking for the coordinator again: {reason}"));
        self.discovery.failed(self.now, &mut self.jitter);
        if let Some((conn, _)) = self.connections.with_role(Role::Offsets)
            && let Some(connection) = self.connections.get_mut(conn)
        {
            connection.retiring = true;
        }
        let (conn, _) = self.connections.with_role(Role::Group)?;
        self.close(conn, "the coordinator has moved")
    }

    /// Begins the connections to the coordinator; the one of the group only if `group` is true.
    pub(super) fn connect_to(&mut self, coordinator: &Address, group: bool) -> bool {
        let mut begun = false;
        if group && self.connections.with_role(Role::Group).is_none() {
            self.connect(Role::Group, coordinator.clone());
            begun = true;
        }
        if self.connections.with_role(Role::Offsets).is_none() && self.now >= self.discovery.offsets_not_before {
            self.connect(Role::Offsets, coordinator.clone());
            begun = true;
        }
        begun
    }

    /// The connection to any broker. A new connection goes to the next broker in turn.
    pub(super) fn bootstrap(&mut self) -> Bootstrap {
        if self.connections.with_role(Role::Bootstrap).is_some() {
            return self.ready(Role::Bootstrap).map_or(Bootstrap::Waits, Bootstrap::Ready);
        }
        if !self.discovery.bootstrap_backoff.ready(self.now) {
            return Bootstrap::Waits;
        }
        let broker = self.discovery.next_broker(&self.config.bootstrap);
        self.connect(Role::Bootstrap, broker);
        Bootstrap::Begun
    }

    pub(super) fn find_coordinator(&self) -> FindCoordinatorRequest {
        FindCoordinatorRequest { key: self.config.group_id.clone(), ..Default::default() }
    }

    /// Takes the answer of FindCoordinator. Returns the error with which the member fails, if every repetition would fail too.
    pub(super) fn on_coordinator(
        &mut self,
        conn: u64,
        header: &RequestHeader,
        frame: &[u8],
    ) -> Result<Option<(ErrorCode, String)>, Broken> {
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
                let message = format!("FindCoordinator for group '{}': {code} {why}", self.config.group_id);
                return Ok(Some((code, message)));
            }
            code => {
                self.info(format!("no coordinator yet: {code}"));
                self.discovery.brokers_stale |= code == ErrorCode::COORDINATOR_NOT_AVAILABLE;
                self.discovery.failed(self.now, &mut self.jitter);
            }
        }
        Ok(None)
    }

    /// The earliest future time among `others`, those of the connections and those of the search. A step whose time has passed
    /// has run, or waits for an event.
    pub(super) fn earliest(&self, others: impl Iterator<Item = Option<u64>>) -> Option<u64> {
        let connections =
            self.connections.iter().flat_map(|(_, connection)| [connection.deadline(), Some(connection.muted_until())]);
        let all = connections.chain(self.discovery.deadlines()).chain(others);
        all.flatten().filter(|&at| at > self.now).min()
    }
}
