//! Passes each response to the step that sent its request, and handles a lost connection, in the new protocol.

use super::ConsumerMembership;
use crate::member::Progress;
use crate::member::connections::{Broken, Connection, Pending, Stamp};
use crate::member::event::Role;
use crate::member::machine::Machine;
use crate::member::network::NetworkClient;
use crate::protocol::{ApiKey, ErrorCode};

impl Machine for ConsumerMembership {
    const STEPS: &'static [fn(&mut Self) -> Progress] = &[
        Self::drive_connections,
        Self::drive_session,
        Self::drive_liveness,
        Self::drive_revocation,
        Self::drive_done,
        Self::drive_departure,
        Self::drive_discovery,
        Self::drive_lost,
        Self::drive_topics,
        Self::drive_target,
        Self::drive_leaving,
        Self::drive_heartbeat,
        Self::drive_commits,
        Self::drive_fetches,
    ];

    fn network(&mut self) -> &mut NetworkClient {
        &mut self.network
    }

    fn is_closed(&self) -> bool {
        self.closed
    }

    fn stamp(&self) -> Stamp {
        Stamp { member_id: String::new(), generation: self.membership }
    }

    fn end(&mut self, code: ErrorCode, message: &str) {
        self.fail_with(code, message);
    }

    fn no_version(&self, api: ApiKey, _most: i16) -> String {
        format!("the broker does not speak {} in a version that this package speaks", api.name())
    }

    fn on_answer(&mut self, conn: u64, pending: &Pending, frame: Vec<u8>) -> Result<(), Broken> {
        let answered = match pending.header.api {
            ApiKey::FindCoordinator => self.on_coordinator(conn, &pending.header, &frame),
            ApiKey::Metadata => self.on_metadata(conn, pending, &frame),
            ApiKey::ConsumerGroupHeartbeat => self.on_heartbeat(conn, pending, &frame),
            ApiKey::OffsetCommit => self.on_committed(conn, pending, &frame),
            ApiKey::OffsetFetch => self.on_fetched(conn, pending, &frame),
            other => Err(Broken(format!("{} was never asked", other.name()))),
        };
        if answered.is_err() && pending.header.api == ApiKey::ConsumerGroupHeartbeat {
            // The request is no longer among the unanswered ones of the connection that is about to be closed.
            self.heartbeat_lost(&pending.stamp);
        }
        answered
    }

    fn interrupted(&mut self, connection: &Connection) {
        match connection.role {
            Role::Bootstrap => {}
            Role::Group => {
                for pending in connection.unanswered() {
                    self.heartbeat_lost(&pending.stamp);
                }
                if self.leaving.is_some_and(|leaving| leaving.sent) {
                    self.leaving = None;
                }
            }
            Role::Offsets => {
                self.commits.interrupted(self.network.now, &mut self.network.jitter);
                self.fetches.interrupted(self.network.now, &mut self.network.jitter);
            }
        }
    }

    fn needs_coordinator(&self) -> bool {
        self.leaving.is_some()
            || !self.failed && (self.subscription.is_some() || !self.commits.is_idle() || !self.fetches.is_idle())
    }

    fn needs_group(&self) -> bool {
        self.subscription.is_some() && !self.failed || self.leaving.is_some()
    }
}
