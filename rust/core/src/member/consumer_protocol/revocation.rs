//! The time limit of a revocation: the member's rebalance timeout, which is `max.poll.interval.ms`.
//!
//! The coordinator removes a member that takes longer, and gives its partitions to others at once. The member learns of its
//! removal from its next heartbeat, which may be seconds later. Therefore the member counts the time itself, from the moment at
//! which it sent the first heartbeat whose answer may have revoked the partitions. The coordinator's count begins later, so the
//! member stops reading before another member begins.

use super::ConsumerMembership;
use super::holdings::{PartitionsByTopic, without};
use crate::member::Progress;

#[derive(Debug, Default)]
pub(super) struct Revocation {
    /// The time of the oldest heartbeat whose answer has not been read and may have revoked partitions.
    unanswered_since: Option<u64>,
    /// The partitions that the heartbeat in flight names, if it names any.
    named: Option<PartitionsByTopic>,
    /// The partitions that the coordinator waits for: no accepted heartbeat has left them out yet.
    wanted: PartitionsByTopic,
    /// The earliest time at which the coordinator may have begun to wait.
    since: u64,
}

impl Revocation {
    pub(super) fn sent(&mut self, now: u64, named: Option<PartitionsByTopic>) {
        self.unanswered_since.get_or_insert(now);
        self.named = named;
    }

    /// A heartbeat was refused: its answer revoked no partition.
    pub(super) fn refused(&mut self, sent_at: u64) {
        self.unanswered_since = self.unanswered_since.filter(|&since| since != sent_at);
        self.named = None;
    }

    /// A heartbeat was accepted. `gone` are the partitions that an assignment in the answer takes away.
    pub(super) fn accepted(&mut self, sent_at: u64, gone: PartitionsByTopic) {
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
    /// The time at which the coordinator removes the member, unless the member has given up the wanted partitions.
    pub(super) fn revocation_due(&self) -> Option<u64> {
        self.current.revocation.end(self.config.max_poll_interval_ms)
    }

    pub(super) fn drive_revocation(&mut self) -> Progress {
        if self.revocation_due().is_none_or(|due| self.network.now < due) {
            return false;
        }
        self.fenced("partitions that the coordinator wants back were not given up within max.poll.interval.ms");
        true
    }
}
