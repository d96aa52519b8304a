//! The member's own clock for its session. A coordinator that has not heard of a member for `session.timeout.ms` gives its
//! partitions to others, and has no way to tell it. So a member whose requests are not answered for as long counts itself
//! out: what it owns is lost, and it joins again.
//!
//! An answered request counts from when it was sent. The coordinator counts from when it came, which is later.

use super::{Membership, Phase};

/// How long the coordinator may have been without news.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// When the newest request was sent that the coordinator has accepted from this member.
    since: u64,
    /// When JoinGroup or SyncGroup was sent that is unanswered: the coordinator expels nobody who waits for it.
    parked_at: Option<u64>,
}

impl Session {
    /// The coordinator has accepted a request that was sent then.
    pub(super) fn renewed(&mut self, sent_at: u64) {
        self.since = self.since.max(sent_at);
    }

    /// JoinGroup or SyncGroup goes out.
    pub(super) fn parked(&mut self, now: u64) {
        self.parked_at = Some(now);
    }

    /// It was answered with success: the coordinator's clock begins with the answer.
    pub(super) fn answered(&mut self, now: u64) {
        self.parked_at = None;
        self.since = self.since.max(now);
    }

    /// It was never answered: nobody knows for how long the coordinator waited with it.
    pub(super) fn unheard(&mut self) {
        self.parked_at = None;
    }
}

impl Membership {
    fn is_parked(&self) -> bool {
        matches!(self.phase, Phase::Joining | Phase::Syncing(None))
    }

    /// When the session ends unless a request is answered before; `None` outside a generation, and while the coordinator
    /// holds JoinGroup or SyncGroup.
    #[must_use]
    pub fn session_end(&self) -> Option<u64> {
        let counts = self.identity.generation >= 0 && !self.is_parked() && !self.closed;
        counts.then(|| self.session.since.saturating_add(self.config.session_timeout_ms))
    }

    /// Whether what the member owns may be somebody else's already: its application must not read on.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.identity.generation < 0 && !self.ownership.is_empty()
    }

    pub(super) fn drive_session(&mut self) {
        if !self.is_parked()
            && let Some(at) = self.session.parked_at.take()
        {
            // An error or a broken connection ended the wait. Until then the clock stood, and it goes on from there.
            self.session.since = self.session.since.saturating_add(self.now.saturating_sub(at)).min(self.now);
        }
        if self.session_end().is_none_or(|end| self.now < end) {
            return;
        }
        let silence = format!("the coordinator has not answered for {} ms, a session", self.config.session_timeout_ms);
        // The id stays: a coordinator that was only away still counts it, and would wait for a member without a process.
        self.reset_generation(true, &silence);
        self.coordinator_lost(&silence);
    }
}
