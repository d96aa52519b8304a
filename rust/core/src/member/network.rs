//! Opens and closes connections, sends requests and hands each answer to the step that waits for it.

use super::connections::{Broken, Pending};
use super::event::{Action, Role};
use super::{Membership, Phase, Progress};
use crate::protocol::{ApiKey, Body, ErrorCode};
use std::collections::BTreeMap;

impl Membership {
    pub(super) fn connect(&mut self, role: Role, node_id: i32, host: String, port: i32) {
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
            self.fail(code, &format!("{reason}: trying again would be no use"), false);
        }
    }

    pub(super) fn on_received(&mut self, conn: u64, frame: Vec<u8>) {
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

    fn on_answer(&mut self, conn: u64, pending: &Pending, frame: Vec<u8>) -> Result<(), Broken> {
        let header = &pending.header;
        match header.api {
            ApiKey::FindCoordinator => self.on_coordinator(conn, header, &frame),
            ApiKey::Metadata => self.on_metadata(conn, pending, frame),
            ApiKey::JoinGroup => self.on_joined(conn, pending, &frame),
            ApiKey::SyncGroup => self.on_synced(conn, pending, &frame),
            ApiKey::Heartbeat => self.on_heartbeat(conn, pending, &frame),
            ApiKey::OffsetCommit => self.on_committed(conn, pending, &frame),
            ApiKey::OffsetFetch => self.on_fetched(conn, pending, &frame),
            ApiKey::DescribeGroups => self.on_described(conn, header, &frame),
            ApiKey::LeaveGroup => self.on_leave(header, &frame),
            other => Err(Broken(format!("{} was never asked", other.name()))),
        }
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

    /// Sends a request in the newest version that both sides speak, up to `most`. Returns whether it was sent. If not, there is
    /// no such version and the member has failed, or the body has no form in the protocol.
    pub(super) fn ask<B: Body>(&mut self, conn: u64, body: &B, most: i16, deadline: u64) -> bool {
        let Some(version) = self.connections.get(conn).and_then(|connection| connection.version(B::KEY, most)) else {
            let message = format!(
                "the broker does not speak {} in a version that this package speaks ({} to {}): use brokers from 2.0 on",
                B::KEY.name(),
                B::KEY.versions().0,
                B::KEY.versions().1.min(most),
            );
            self.fail(ErrorCode::UNSUPPORTED_VERSION, &message, false);
            return false;
        };
        let stamp = (self.stamp(), self.now, deadline);
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
        let late: Vec<u64> = self
            .connections
            .iter()
            .filter(|(_, connection)| connection.deadline().is_some_and(|deadline| deadline <= now))
            .map(|(conn, _)| conn)
            .collect();
        let mut progress = !late.is_empty();
        for conn in late {
            if self.connections.get(conn).is_some_and(|connection| connection.role == Role::Group) {
                self.generation.session.unheard();
            }
            self.close(conn, "no answer in time");
        }
        let idle = |connection: &super::connections::Connection| {
            connection.retiring && (connection.is_idle() || !connection.is_open())
        };
        let retired: Vec<u64> =
            self.connections.iter().filter(|(_, connection)| idle(connection)).map(|(conn, _)| conn).collect();
        progress |= !retired.is_empty();
        for conn in retired {
            self.connections.remove(conn);
            self.actions.push(Action::Close { conn, reason: "the coordinator has moved".to_owned() });
        }
        progress
    }

    /// Closes a connection and counts it as lost.
    pub(super) fn close(&mut self, conn: u64, reason: &str) {
        if self.connections.get(conn).is_some() {
            self.actions.push(Action::Close { conn, reason: reason.to_owned() });
            self.lose(conn, reason);
        }
    }

    /// Closes a connection that is not needed any more. No back-off follows.
    pub(super) fn close_role(&mut self, role: Role, reason: &str) {
        while let Some((conn, _)) = self.connections.with_role(role) {
            self.connections.remove(conn);
            self.actions.push(Action::Close { conn, reason: reason.to_owned() });
        }
    }

    pub(super) fn close_all(&mut self, reason: &str) {
        for role in [Role::Bootstrap, Role::Group, Role::Offsets] {
            self.close_role(role, reason);
        }
    }

    /// The connection is gone, and the requests on it stay unanswered.
    fn lose(&mut self, conn: u64, reason: &str) {
        let Some(connection) = self.connections.remove(conn) else { return };
        let quiet = connection.is_open() && connection.is_idle();
        match connection.role {
            Role::Bootstrap => self.discovery.bootstrap_lost(self.now, quiet, &mut self.jitter),
            Role::Group => {
                if matches!(self.generation.phase, Phase::Joining) || connection.awaits(ApiKey::SyncGroup) {
                    // The member id stays: the coordinator may count the member to the new generation.
                    self.generation.phase = Phase::Unjoined;
                    self.attempt.backoff.failed(self.now, &mut self.jitter);
                }
                self.coordinator_lost(reason);
            }
            Role::Offsets => {
                self.commits.interrupted(self.now, &mut self.jitter);
                self.fetches.interrupted(self.now, &mut self.jitter);
                self.audit_interrupted();
                if connection.awaits(ApiKey::LeaveGroup) {
                    self.leave_group = None;
                }
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
}
