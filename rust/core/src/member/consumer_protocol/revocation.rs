//! How long the coordinator waits until a member has given partitions up: the rebalance timeout, `max.poll.interval.ms` of the member.
//!
//! The coordinator removes a member that takes longer, and gives its partitions to others at once. The member hears of it with its
//! next heartbeat, which may be seconds later. Therefore it counts the time itself, from the request whose answer could have been the
//! first to ask: that is before the coordinator's count begins, so the member gives up reading before another member begins.

use super::ConsumerMembership;
use super::holdings::{ByTopic, without};
use crate::member::Progress;

#[derive(Debug, Default)]
pub(super) struct Revocation {
    /// When the oldest heartbeat was sent whose answer may have asked for partitions without being read.
    unanswered_since: Option<u64>,
    /// The partitions that the heartbeat in flight names, if it names any.
    named: Option<ByTopic>,
    /// What the coordinator waits for: no accepted heartbeat has said yet that the member does not hold it.
    wanted: ByTopic,
    /// Since when.
    since: u64,
}

impl Revocation {
    pub(super) fn sent(&mut self, now: u64, named: Option<ByTopic>) {
        self.unanswered_since.get_or_insert(now);
        self.named = named;
    }

    /// A heartbeat was refused: the coordinator asked for nothing.
    pub(super) fn refused(&mut self, sent_at: u64) {
        self.unanswered_since = self.unanswered_since.filter(|&since| since != sent_at);
        self.named = None;
    }

    /// A heartbeat was accepted. `gone` is what an assignment in the answer has no more.
    pub(super) fn accepted(&mut self, sent_at: u64, gone: ByTopic) {
        let since = self.unanswered_since.take().unwrap_or(sent_at);
        if let Some(named) = self.named.take() {
            let given_up = without(&self.wanted, &named);
            self.wanted = without(&self.wanted, &given_up);
        }
        if self.wanted.is_empty() {
            self.since = since;
        }
        for (id, numbers) in gone {
            self.wanted.entry(id).or_default().extend(numbers);
        }
    }

    fn end(&self, timeout_ms: u64) -> Option<u64> {
        (!self.wanted.is_empty()).then(|| self.since.saturating_add(timeout_ms))
    }
}

impl ConsumerMembership {
    /// When the coordinator removes the member unless it has given up what is wanted.
    pub(super) fn revocation_due(&self) -> Option<u64> {
        self.revocation.end(self.config.max_poll_interval_ms)
    }

    pub(super) fn drive_revocation(&mut self) -> Progress {
        if self.revocation_due().is_none_or(|due| self.network.now < due) {
            return false;
        }
        self.fenced("partitions that the coordinator wants back were not given up within max.poll.interval.ms");
        true
    }
}
