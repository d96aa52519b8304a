//! The steps that are the same in both protocols: incoming frames, lost connections, and the search for the coordinator.

use super::Progress;
use super::connections::{Broken, Connection, Pending, Stamp};
use super::discovery::{Bootstrap, FIND_COORDINATOR};
use super::event::Action;
use super::network::{NetworkClient, SendOutcome};
use crate::protocol::{ApiKey, Body, ErrorCode, RequestHeader};

/// A member as a state machine. The member of each protocol implements its own reaction to a failure, an answer or a lost
/// connection.
pub(super) trait Machine: Sized + 'static {
    /// The steps, in their order.
    const STEPS: &'static [fn(&mut Self) -> Progress];

    fn network(&mut self) -> &mut NetworkClient;

    fn is_closed(&self) -> bool;

    /// The stamp for a request sent now. The answer counts only if the stamp is still the same when it arrives.
    fn stamp(&self) -> Stamp;

    fn is_current(&self, stamp: &Stamp) -> bool {
        *stamp == self.stamp()
    }

    /// Takes the member out of the group for good, and raises the error in the application.
    fn end(&mut self, code: ErrorCode, message: &str);

    /// The error message for a broker that shares no version of a request, up to `most`, with this package.
    fn no_version(&self, api: ApiKey, most: i16) -> String;

    fn on_answer(&mut self, conn: u64, pending: &Pending, frame: Vec<u8>) -> Result<(), Broken>;

    /// A connection is closed because no answer came in time.
    fn unheard(&mut self, _connection: &Connection) {}

    /// A connection is gone, and the requests on it stay unanswered.
    fn interrupted(&mut self, connection: &Connection);

    /// Whether a request to the coordinator is to be sent, now or later.
    fn needs_coordinator(&self) -> bool;

    /// Whether one of these requests is sent on the connection of the group.
    fn needs_group(&self) -> bool;

    /// Acts on an event that has changed the state, and returns the actions for the host.
    fn drive(&mut self) -> Vec<Action> {
        self.run_steps();
        std::mem::take(&mut self.network().actions)
    }

    /// Runs the steps until a whole round of them changes nothing. A later step may make an earlier one possible, with or without
    /// an action.
    fn run_steps(&mut self) {
        // Each step that changes something makes itself impossible until an event, the time or another step allows it again. The
        // bound guards against a step without this property.
        for _ in 0..64 {
            let mut progress = false;
            for step in Self::STEPS {
                if self.is_closed() {
                    return;
                }
                progress |= step(self);
            }
            if !progress {
                return;
            }
        }
        self.network()
            .warn("the steps of the membership do not come to rest; this is a defect, please report it".to_owned());
        debug_assert!(false, "the member does not come to rest");
    }

    fn on_disconnected(&mut self, conn: u64, reason: &str, fatal: Option<ErrorCode>) {
        let Some(connection) = self.network().connections.remove(conn) else { return };
        self.lose(&connection, reason);
        if let Some(code) = fatal {
            self.end(code, &format!("{reason}: trying again would be no use"));
        }
    }

    fn on_received(&mut self, conn: u64, frame: Vec<u8>) {
        let Some(answered) = self.network().answered(conn) else { return };
        if let Err(Broken(reason)) = answered.and_then(|pending| self.on_answer(conn, &pending, frame)) {
            self.network().warn(format!("closing a connection that cannot be understood: {reason}"));
            self.close(conn, &reason);
        }
    }

    /// Sends a request in the newest version that both sides speak, up to `most`. Returns whether it was sent. If not, there is
    /// no such version and the member has failed, or the body has no form in the protocol.
    fn ask<B: Body>(&mut self, conn: u64, body: &B, most: i16, deadline: u64) -> bool {
        let stamp = self.stamp();
        let asked = self.network().ask(conn, body, most, stamp, deadline);
        if asked == SendOutcome::NoVersion {
            let message = self.no_version(B::KEY, most);
            self.end(ErrorCode::UNSUPPORTED_VERSION, &message);
        }
        asked == SendOutcome::Sent
    }

    /// Closes the connections that have timed out, and those to a former coordinator once all their requests are answered.
    fn drive_connections(&mut self) -> Progress {
        const REASON: &str = "no answer in time";
        let late = self.network().late();
        for &conn in &late {
            // The loss of one connection may have closed another.
            if let Some(connection) = self.network().close(conn, REASON) {
                self.unheard(&connection);
                self.lose(&connection, REASON);
            }
        }
        self.network().close_retired() || !late.is_empty()
    }

    /// Closes a connection and counts it as lost.
    fn close(&mut self, conn: u64, reason: &str) {
        if let Some(connection) = self.network().close(conn, reason) {
            self.lose(&connection, reason);
        }
    }

    /// A connection is gone, and the coordinator may be gone with it.
    fn lose(&mut self, connection: &Connection, reason: &str) {
        self.interrupted(connection);
        if self.network().lost(connection) {
            self.coordinator_lost(reason);
        }
    }

    /// Starts a new search for the coordinator.
    fn coordinator_lost(&mut self, reason: &str) {
        if let Some(group) = self.network().coordinator_lost(reason) {
            self.interrupted(&group);
        }
    }

    fn drive_discovery(&mut self) -> Progress {
        if !self.needs_coordinator() {
            return false;
        }
        let group = self.needs_group();
        match self.network().discovery.coordinator.clone() {
            Some(coordinator) => self.network().connect_to(&coordinator, group),
            None => self.look_for_coordinator(),
        }
    }

    fn look_for_coordinator(&mut self) -> Progress {
        let network = self.network();
        let conn = match network.bootstrap() {
            Bootstrap::Ready(conn) => conn,
            Bootstrap::Begun => return true,
            Bootstrap::Waits => return false,
        };
        if network.awaits(conn, ApiKey::FindCoordinator) || !network.discovery.backoff.ready(network.now) {
            return false;
        }
        let (body, deadline) = (network.find_coordinator(), network.request_deadline());
        self.ask(conn, &body, FIND_COORDINATOR, deadline);
        true
    }

    fn on_coordinator(&mut self, conn: u64, header: &RequestHeader, frame: &[u8]) -> Result<(), Broken> {
        if let Some((code, message)) = self.network().on_coordinator(conn, header, frame)? {
            self.end(code, &message);
        }
        Ok(())
    }
}
