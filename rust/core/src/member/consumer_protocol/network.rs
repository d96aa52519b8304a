//! Connections, requests and answers, and the search for the coordinator.

use super::ConsumerMembership;
use crate::member::Progress;
use crate::member::connections::{Broken, Connection, Pending};
use crate::member::discovery::{Bootstrap, FIND_COORDINATOR, is_fatal};
use crate::member::event::{Action, Role};
use crate::member::metadata::Address;
use crate::protocol::cluster::{FindCoordinatorRequest, FindCoordinatorResponse};
use crate::protocol::{ApiKey, Body, ErrorCode, RequestHeader, read_response};
use std::collections::BTreeMap;

impl ConsumerMembership {
    fn connect(&mut self, role: Role, Address { node_id, host, port }: Address) {
        let conn = self.connections.begin(role, self.now + self.config.connect_timeout_ms);
        self.actions.push(Action::Connect { conn, node_id, host, port, role });
    }

    pub(super) fn on_connected(&mut self, conn: u64, versions: BTreeMap<i16, (i16, i16)>) {
        if let Some(connection) = self.connections.get_mut(conn).filter(|connection| !connection.is_open()) {
            connection.open(versions);
        }
    }

    pub(super) fn on_disconnected(&mut self, conn: u64, reason: &str, fatal: Option<ErrorCode>) {
        if self.connections.get(conn).is_none() {
            return;
        }
        self.lose(conn, reason);
        if let Some(code) = fatal {
            self.fail_with(code, &format!("{reason}: trying again would be no use"));
        }
    }

    pub(super) fn on_received(&mut self, conn: u64, frame: &[u8]) {
        let Some(connection) = self.connections.get_mut(conn) else { return };
        let answered = match connection.next_pending() {
            Some(pending) => self.on_answer(conn, &pending, frame),
            None => Err(Broken("a response came to no request".to_owned())),
        };
        if let Err(Broken(reason)) = answered {
            self.warn(format!("closing a connection that cannot be understood: {reason}"));
            self.close(conn, &reason);
        }
    }

    fn on_answer(&mut self, conn: u64, pending: &Pending, frame: &[u8]) -> Result<(), Broken> {
        let answered = match pending.header.api {
            ApiKey::FindCoordinator => self.on_coordinator(conn, &pending.header, frame),
            ApiKey::Metadata => self.on_metadata(conn, pending, frame),
            ApiKey::ConsumerGroupHeartbeat => self.on_heartbeat(conn, pending, frame),
            ApiKey::OffsetCommit => self.on_committed(conn, pending, frame),
            ApiKey::OffsetFetch => self.on_fetched(conn, pending, frame),
            other => Err(Broken(format!("{} was never asked", other.name()))),
        };
        if answered.is_err() && pending.header.api == ApiKey::ConsumerGroupHeartbeat {
            // The request is no longer among the unanswered ones of the connection that is about to be closed.
            self.heartbeat_lost(&pending.stamp);
        }
        answered
    }

    pub(super) fn throttle(&mut self, conn: u64, throttle_time_ms: i32) {
        let now = self.now;
        if let Some(connection) = self.connections.get_mut(conn) {
            connection.throttle(now, throttle_time_ms, self.config.longest_throttle_ms());
        }
    }

    /// The connection of this role, if a request may be sent on it now.
    pub(super) fn ready(&self, role: Role) -> Option<u64> {
        let (conn, connection) = self.connections.with_role(role)?;
        connection.may_send(self.now).then_some(conn)
    }

    /// Sends a request in the newest version that both sides speak, up to `most`. Returns whether it was sent. If not, there is no
    /// such version and the member has failed, or the body has no form in the protocol.
    pub(super) fn ask<B: Body>(&mut self, conn: u64, body: &B, most: i16) -> bool {
        let Some(version) = self.connections.get(conn).and_then(|connection| connection.version(B::KEY, most)) else {
            let message = format!("the broker does not speak {} in a version that this package speaks", B::KEY.name());
            self.fail_with(ErrorCode::UNSUPPORTED_VERSION, &message);
            return false;
        };
        let patience = match B::KEY {
            // A coordinator that does not answer for a session counts as lost.
            ApiKey::ConsumerGroupHeartbeat => self.config.request_timeout_ms.min(self.config.session_timeout_ms),
            _ => self.config.request_timeout_ms,
        };
        let stamp = (self.stamp(), self.now, self.now + patience);
        match self.connections.ask(conn, version, self.config.client_id.as_deref(), body, stamp) {
            Ok(bytes) => {
                self.actions.push(Action::Send { conn, bytes });
                true
            }
            Err(error) => {
                self.warn(format!("{} has no form in the protocol: {error}", B::KEY.name()));
                false
            }
        }
    }

    /// Closes the connections whose time is over, and those to a former coordinator once nothing is unanswered on them.
    pub(super) fn drive_connections(&mut self) -> Progress {
        let now = self.now;
        let late = |connection: &Connection| connection.deadline().is_some_and(|deadline| deadline <= now);
        let idle = |connection: &Connection| connection.retiring && (connection.is_idle() || !connection.is_open());
        let which = |connections: &super::Connections, is: &dyn Fn(&Connection) -> bool| -> Vec<u64> {
            connections.iter().filter(|(_, connection)| is(connection)).map(|(conn, _)| conn).collect()
        };
        let late = which(&self.connections, &late);
        for &conn in &late {
            self.close(conn, "no answer in time");
        }
        let retired = which(&self.connections, &idle);
        for &conn in &retired {
            self.connections.remove(conn);
            self.actions.push(Action::Close { conn, reason: "the coordinator has moved".to_owned() });
        }
        !late.is_empty() || !retired.is_empty()
    }

    /// Closes a connection and counts it as lost.
    pub(super) fn close(&mut self, conn: u64, reason: &str) {
        if self.connections.get(conn).is_some() {
            self.actions.push(Action::Close { conn, reason: reason.to_owned() });
            self.lose(conn, reason);
        }
    }

    pub(super) fn close_all(&mut self, reason: &str) {
        let all: Vec<u64> = self.connections.iter().map(|(conn, _)| conn).collect();
        for conn in all {
            self.connections.remove(conn);
            self.actions.push(Action::Close { conn, reason: reason.to_owned() });
        }
    }

    /// The connection is gone, and the requests on it stay unanswered.
    fn lose(&mut self, conn: u64, reason: &str) {
        let Some(mut connection) = self.connections.remove(conn) else { return };
        let quiet = connection.is_open() && connection.is_idle();
        match connection.role {
            Role::Bootstrap => self.discovery.bootstrap_lost(self.now, quiet, &mut self.jitter),
            Role::Group => {
                while let Some(pending) = connection.next_pending() {
                    self.heartbeat_lost(&pending.stamp);
                }
                if self.leaving.is_some_and(|leaving| leaving.sent) {
                    self.leaving = None;
                }
                self.coordinator_lost(reason);
            }
            Role::Offsets => {
                self.commits.interrupted(self.now, &mut self.jitter);
                self.fetches.interrupted(self.now, &mut self.jitter);
                if self.connections.with_role(Role::Group).is_some_and(|(_, group)| group.is_open()) {
                    // The coordinator still answers. Brokers close connections that are idle for long.
                    self.discovery.offsets_lost(self.now, quiet, &mut self.jitter);
                } else if !connection.retiring {
                    self.coordinator_lost(reason);
                }
            }
        }
    }

    /// The coordinator must be looked for again. The offsets connection stays open while a commit is unanswered on it: the broker
    /// could apply an abandoned commit after a newer one and move the offset back.
    pub(super) fn coordinator_lost(&mut self, reason: &str) {
        if self.discovery.coordinator.take().is_none() {
            return;
        }
        self.info(format!("looking for the coordinator again: {reason}"));
        self.discovery.failed(self.now, &mut self.jitter);
        if let Some((conn, _)) = self.connections.with_role(Role::Group) {
            self.close(conn, "the coordinator has moved");
        }
        if let Some((conn, _)) = self.connections.with_role(Role::Offsets)
            && let Some(connection) = self.connections.get_mut(conn)
        {
            connection.retiring = true;
        }
    }

    fn needs_coordinator(&self) -> bool {
        self.leaving.is_some()
            || !self.failed && (self.subscription.is_some() || !self.commits.is_idle() || !self.fetches.is_idle())
    }

    pub(super) fn drive_discovery(&mut self) -> Progress {
        if !self.needs_coordinator() {
            return false;
        }
        let Some(coordinator) = self.discovery.coordinator.clone() else {
            return self.look_for_coordinator();
        };
        let mut progress = false;
        let beats = self.subscription.is_some() && !self.failed || self.leaving.is_some();
        if beats && self.connections.with_role(Role::Group).is_none() {
            self.connect(Role::Group, coordinator.clone());
            progress = true;
        }
        if self.connections.with_role(Role::Offsets).is_none() && self.now >= self.discovery.offsets_not_before {
            self.connect(Role::Offsets, coordinator);
            progress = true;
        }
        progress
    }

    /// The connection to any broker. A new one goes to the next in turn: first the brokers that Metadata named, then the bootstrap
    /// servers.
    pub(super) fn bootstrap(&mut self) -> Bootstrap {
        if self.connections.with_role(Role::Bootstrap).is_some() {
            return self.ready(Role::Bootstrap).map_or(Bootstrap::Waits, Bootstrap::Ready);
        }
        if !self.discovery.bootstrap_backoff.ready(self.now) {
            return Bootstrap::Waits;
        }
        let brokers = &self.topics.brokers;
        let at = self.discovery.turn % (brokers.len() + self.config.bootstrap.len());
        let broker = match brokers.get(at) {
            Some(broker) => broker.clone(),
            None => {
                let (host, port) = self.config.bootstrap[at - brokers.len()].clone();
                Address { node_id: -1, host, port }
            }
        };
        self.connect(Role::Bootstrap, broker);
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
        self.ask(conn, &body, FIND_COORDINATOR);
        true
    }

    fn on_coordinator(&mut self, conn: u64, header: &RequestHeader, frame: &[u8]) -> Result<(), Broken> {
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
                self.fail_with(code, &format!("FindCoordinator for group '{}': {code} {why}", self.config.group_id));
            }
            code => {
                self.info(format!("no coordinator yet: {code}"));
                self.discovery.failed(self.now, &mut self.jitter);
            }
        }
        Ok(())
    }
}
