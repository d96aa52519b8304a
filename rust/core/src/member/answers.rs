//! Passes each response to the step that sent its request, and handles a lost connection, in the classic protocol.

use super::connections::{Broken, Connection, Pending, Stamp};
use super::event::Role;
use super::machine::Machine;
use super::network::NetworkClient;
use super::{Membership, Phase, Progress};
use crate::protocol::{ApiKey, ErrorCode};

impl Machine for Membership {
    const STEPS: &'static [fn(&mut Self) -> Progress] = &[
        Self::drive_connections,
        Self::drive_session,
        Self::drive_liveness,
        Self::drive_departure,
        Self::drive_discovery,
        Self::drive_failure,
        Self::drive_assignment,
        Self::drive_join,
        Self::drive_metadata,
        Self::drive_plan,
        Self::drive_sync,
        Self::drive_heartbeat,
        Self::drive_commits,
        Self::drive_fetches,
        Self::drive_audit,
        Self::drive_leave_group,
    ];

    fn network(&mut self) -> &mut NetworkClient {
        &mut self.network
    }

    fn is_closed(&self) -> bool {
        self.closed
    }

    fn stamp(&self) -> Stamp {
        Stamp { member_id: self.member_id.clone(), generation: self.generation.id }
    }

    fn end(&mut self, code: ErrorCode, message: &str) {
        self.fail(code, message, false);
    }

    fn no_version(&self, api: ApiKey, most: i16) -> String {
        format!(
            "the broker does not speak {} in a version that this package speaks ({} to {}): use brokers from 2.0 on",
            api.name(),
            api.versions().0,
            api.versions().1.min(most),
        )
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

    fn unheard(&mut self, connection: &Connection) {
        if connection.role == Role::Group {
            self.generation.session.unheard();
        }
    }

    fn interrupted(&mut self, connection: &Connection) {
        match connection.role {
            Role::Bootstrap => {}
            Role::Group => {
                if matches!(self.generation.phase, Phase::Joining) || connection.awaits(ApiKey::SyncGroup) {
                    // The member id stays: the coordinator may already count the member in the new generation.
                    self.join_again();
                }
            }
            Role::Offsets => {
                self.commits.interrupted(self.network.now, &mut self.network.jitter);
                self.fetches.interrupted(self.network.now, &mut self.network.jitter);
                self.audit_interrupted();
                if connection.awaits(ApiKey::LeaveGroup) {
                    self.leave_group = None;
                }
            }
        }
    }

    fn needs_coordinator(&self) -> bool {
        self.leave_group.is_some()
            || !self.failed && (self.subscription.is_some() || !self.commits.is_idle() || !self.fetches.is_idle())
    }

    fn needs_group(&self) -> bool {
        self.subscription.is_some() && !self.failed
    }
}

impl Membership {
    /// Closes the connection of the group, which is not needed any more. No back-off follows.
    pub(super) fn close_group(&mut self, reason: &str) {
        self.network.close_where(reason, |connection| connection.role == Role::Group);
    }
}
