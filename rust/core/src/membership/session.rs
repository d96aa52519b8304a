//! The member's own clock for its session. A coordinator that has not heard from a member for `session.timeout.ms` gives its
//! partitions to others and cannot tell the member. So a member whose requests stay unanswered for as long counts itself as
//! expelled: its partitions are lost, and it joins again.
//!
//! An answered request renews the session from the time it was sent. The coordinator counts from its arrival, which is later, so
//! the member's session never ends after the coordinator's.

use super::{Membership, Phase};

/// Since when the coordinator may not have heard from the member.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// When the newest request that the coordinator accepted was sent.
    since: u64,
    /// When the unanswered JoinGroup or SyncGroup was sent: the coordinator does not expel a member that waits for its answer.
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

    /// JoinGroup or SyncGroup was not answered in time. The clock does not stand for that time, in which the coordinator may
    /// have been gone.
    pub(super) fn unheard(&mut self) {
        self.parked_at = None;
    }
}

impl Membership {
    fn is_parked(&self) -> bool {
        matches!(self.phase, Phase::Joining | Phase::Syncing(None))
    }

    /// When the session ends unless a request is answered before; `None` outside a generation, and while JoinGroup or SyncGroup
    /// is unanswered.
    #[must_use]
    pub fn session_end(&self) -> Option<u64> {
        let counts = self.identity.generation >= 0 && !self.is_parked() && !self.closed;
        counts.then(|| self.session.since.saturating_add(self.config.session_timeout_ms))
    }

    /// Whether the member's partitions may belong to another member already: its application must not read on.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.identity.generation < 0 && !self.ownership.is_empty()
    }

    pub(super) fn drive_session(&mut self) {
        if !self.is_parked()
            && let Some(at) = self.session.parked_at.take()
        {
            // An error or a broken connection ended the wait, during which the clock stood.
            self.session.since = self.session.since.saturating_add(self.now.saturating_sub(at)).min(self.now);
        }
        if self.session_end().is_none_or(|end| self.now < end) {
            return;
        }
        let silence = format!("the coordinator has not answered for {} ms, a session", self.config.session_timeout_ms);
        // The member id stays: a coordinator that was only unreachable still has it, and would wait for it in the next rebalance.
        self.reset_generation(true, &silence);
        self.coordinator_lost(&silence);
    }
}
