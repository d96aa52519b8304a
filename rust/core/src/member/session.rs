//! The member's own clock for its session. A coordinator without a request from a member for `session.timeout.ms` gives the
//! member's partitions to others and cannot reach the member. A member whose requests stay unanswered for as long therefore
//! counts its partitions as lost and joins again.
//!
//! ```text
//! request sent      request arrives        answer
//!      │──────────────────│──────────────────│
//!      ├── session of the member ──────┤
//!                         ├── session of the coordinator ──┤
//! ```
//!
//! The member's session begins first, so it never ends after the coordinator's.

use super::machine::Machine;
use super::{Leaves, Membership, Phase, Progress};

/// The state of the member's own clock for its session.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// The time at which the newest accepted request was sent.
    since: u64,
    /// The time of the unanswered JoinGroup or SyncGroup. The coordinator expels no member that waits for its answer.
    parked_at: Option<u64>,
}

impl Session {
    /// The coordinator has accepted a request that was sent at `sent_at`.
    pub(super) fn renewed(&mut self, sent_at: u64) {
        self.since = self.since.max(sent_at);
    }

    /// JoinGroup or SyncGroup is sent.
    pub(super) fn parked(&mut self, now: u64) {
        self.parked_at = Some(now);
    }

    /// JoinGroup or SyncGroup was answered with success: the coordinator's clock begins with the answer.
    pub(super) fn answered(&mut self, now: u64) {
        self.parked_at = None;
        self.since = self.since.max(now);
    }

    /// JoinGroup or SyncGroup was not answered in time. The coordinator may have been gone, so the clock counts that time too.
    pub(super) fn unheard(&mut self) {
        self.parked_at = None;
    }
}

impl Membership {
    fn is_parked(&self) -> bool {
        matches!(self.generation.phase, Phase::Joining | Phase::Syncing(None))
    }

    /// The end of the session, unless a request is answered before; `None` outside a generation, and while JoinGroup or SyncGroup
    /// is unanswered.
    #[must_use]
    pub fn session_end(&self) -> Option<u64> {
        let counts = self.generation.id >= 0 && !self.is_parked() && !self.closed;
        counts.then(|| self.generation.session.since.saturating_add(self.config.session_timeout_ms))
    }

    /// Whether another member may already own the member's partitions. Then the application must stop reading.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.generation.id < 0 && !self.ownership.is_empty()
    }

    pub(super) fn drive_session(&mut self) -> Progress {
        let mut progress = false;
        if !self.is_parked()
            && let Some(at) = self.generation.session.parked_at.take()
        {
            // An error or a broken connection ended the wait. The clock stood still during the wait.
            self.generation.session.since =
                self.generation.session.since.saturating_add(self.network.now.saturating_sub(at)).min(self.network.now);
            progress = true;
        }
        if self.session_end().is_none_or(|end| self.network.now < end) {
            return progress;
        }
        let silence = format!("the coordinator has not answered for {} ms, a session", self.config.session_timeout_ms);
        // The member id stays. A coordinator that was only unreachable still has it and would wait for it in the next rebalance.
        self.expelled(Leaves::Generation, &silence);
        self.coordinator_lost(&silence);
        true
    }
}
