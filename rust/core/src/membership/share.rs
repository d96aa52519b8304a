//! The member's share of a plan, and which of its partitions the member takes.
//!
//! A leader may have planned with other topics than there are, or be hostile: a megabyte names 250,000 partitions of a topic
//! that has six. Partitions that do not exist are left out, or the application would build objects, positions and claims for
//! them. The leader may also have newer metadata, since topics grow: before a partition is left out, the member asks for its
//! topics once more.

use super::audit::Audit;
use super::event::Partitions;
use super::{Membership, Phase};
use crate::wire::assignment::{self, Assignment};
use crate::wire::topic_partitions::CanonicalPartitions;
use std::collections::{BTreeMap, BTreeSet};

/// The most topics that a line of the log names.
const NAMED: usize = 3;

/// A share that has not been compared with the topics yet.
#[derive(Debug)]
pub(super) struct Unchecked {
    share: Partitions,
    /// Topics in the plan that the member does not subscribe to.
    foreign: Vec<String>,
    bytes: Vec<u8>,
    generation: i32,
    /// Metadata that was asked for at this time or later decides.
    since: u64,
    /// When the known topics decide, however old they are.
    deadline: u64,
}

/// Partitions of the last share that were left out because they do not exist.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    /// Topic to the least of its partitions that were left out.
    least: BTreeMap<String, i32>,
    /// Until when the topics are asked for often: a broker learns some time later that a topic has grown.
    hope_until: u64,
}

impl Membership {
    /// The member is in its generation and has a share, which it reads and checks.
    pub(super) fn take_share(&mut self, bytes: Vec<u8>) {
        let (share, foreign) = match self.read_share(&bytes) {
            Ok(read) => read,
            Err(reason) => {
                self.warn(format!("the leader's plan has no share for this member that can be read: {reason}"));
                // The same metadata would be answered with the same bytes.
                self.change_metadata();
                self.join_again();
                return;
            }
        };
        self.phase = Phase::Stable;
        self.rejoining = false;
        self.rejoin = None;
        self.heartbeat.begin(self.now, &self.config);
        self.prepared = None;
        self.discovery.succeeded();
        if self.owned_generation.checked_add(1) != Some(self.identity.generation) {
            // The generation between may have given what was released to somebody else.
            self.ownership.forget_released();
        }
        if self.audit == Audit::Ahead {
            self.audit = Audit::Wanted;
        }
        self.left_out = LeftOut::default();
        self.unchecked = Some(Unchecked {
            share,
            foreign,
            bytes,
            generation: self.identity.generation,
            since: self.now,
            deadline: self.now + self.config.request_timeout_ms,
        });
        self.drive_share();
    }

    /// Whether a share waits for newer metadata.
    pub(super) fn share_needs_topics(&self) -> bool {
        self.unchecked.as_ref().is_some_and(|unchecked| !self.has_topics_since(unchecked.since))
    }

    fn has_topics_since(&self, since: u64) -> bool {
        self.subscription.as_ref().is_some_and(|wanted| self.cluster.covers(&wanted.topics, since))
    }

    pub(super) fn share_deadline(&self) -> Option<u64> {
        self.unchecked.as_ref().map(|unchecked| unchecked.deadline)
    }

    /// Takes the share as soon as it is known which of its partitions exist.
    pub(super) fn drive_share(&mut self) {
        let Some(unchecked) = &self.unchecked else { return };
        if !matches!(self.phase, Phase::Stable) || unchecked.generation != self.identity.generation {
            self.unchecked = None;
            return;
        }
        let certain = self.has_topics_since(unchecked.since) || self.now >= unchecked.deadline;
        let doubtful = |(topic, numbers): &(String, Vec<i32>)| {
            self.existing(topic, numbers) < numbers.len() || !self.cluster.has_heard_of(topic)
        };
        if !certain && unchecked.share.iter().any(doubtful) {
            return;
        }
        let Some(unchecked) = self.unchecked.take() else { return };
        let Unchecked { mut share, foreign, mut bytes, .. } = unchecked;
        if self.leave_out_missing(&mut share)
            && let Some(rest) = encoded(&share, &bytes)
        {
            bytes = rest;
        }
        let (added, revoked) = self.ownership.compare(&share);
        self.notify_share(revoked, added, share, bytes);
        if foreign.is_empty() {
            self.join_backoff.succeeded();
        } else {
            // The subscription has changed since the plan was made (a static member came back with another one), or the
            // leader is wrong; either way, joining with what the broker knows already would bring the same plan.
            self.warn(format!("the share has topics that are not subscribed to: {}", foreign.join(", ")));
            self.change_metadata();
            self.want_rejoin("the assignment does not fit the subscription");
            self.join_backoff.failed(self.now, &mut self.jitter);
        }
        // A subscription that changed while the group rebalanced is for the next generation.
        if self.subscription.as_ref().map(|wanted| wanted.epoch) != self.joined_epoch {
            self.want_rejoin("the subscription has changed");
        }
    }

    /// How many of these partitions, ascending, exist as far as is known; all of a topic whose size is not known.
    fn existing(&self, topic: &str, numbers: &[i32]) -> usize {
        match self.cluster.count(topic) {
            Some(count) => numbers.partition_point(|&number| i64::from(number) < i64::from(count)),
            None => numbers.len(),
        }
    }

    /// Leaves out the partitions that do not exist. Whether there were any.
    fn leave_out_missing(&mut self, share: &mut Partitions) -> bool {
        let mut named = Vec::new();
        let (mut topics, mut partitions) = (0, 0);
        let mut least = BTreeMap::new();
        for (topic, numbers) in share.iter_mut() {
            let exist = self.existing(topic, numbers);
            let Some(&first) = numbers.get(exist) else { continue };
            let count = self.cluster.count(topic).unwrap_or_default();
            if named.len() < NAMED {
                named.push(format!("{} of {topic:?}, which has {count}", numbers.len() - exist));
            }
            topics += 1;
            partitions += numbers.len() - exist;
            least.insert(topic.clone(), first);
            numbers.truncate(exist);
            numbers.shrink_to_fit();
        }
        if topics == 0 {
            return false;
        }
        share.retain(|(_, numbers)| !numbers.is_empty());
        let more =
            if topics > named.len() { format!(", and of {} more topics", topics - named.len()) } else { String::new() };
        self.warn(format!(
            "the leader's plan gives this member {partitions} partitions that do not exist: {}{more}. They are left out until \
             they do",
            named.join(", ")
        ));
        self.left_out = LeftOut { least, hope_until: self.now + self.config.request_timeout_ms };
        true
    }

    /// Whether partitions were left out a short time ago, so that the topics are asked for more often.
    pub(super) fn hopes_for_partitions(&self) -> bool {
        !self.left_out.least.is_empty() && self.now < self.left_out.hope_until
    }

    /// Joins again once a partition that was left out exists: no member reads it before the next plan.
    pub(super) fn look_for_left_out(&mut self) {
        let exists = |(topic, &least): (&String, &i32)| self.existing(topic, &[least]) == 1;
        if matches!(self.phase, Phase::Stable) && self.left_out.least.iter().any(exists) {
            self.left_out = LeftOut::default();
            self.change_metadata();
            self.want_rejoin("partitions that were assigned exist now");
        }
    }

    /// The share, and the topics in the plan that are not subscribed to.
    fn read_share(&self, bytes: &[u8]) -> Result<(Partitions, Vec<String>), String> {
        let read = Assignment::read(bytes).map_err(|error| error.to_string())?;
        let wanted = self.subscription.as_ref();
        let mut share: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
        let mut foreign = BTreeSet::new();
        for (topic, numbers) in read.partitions.iter() {
            let topic = std::str::from_utf8(topic).map_err(|_| "a topic's name is not UTF-8".to_owned())?;
            if !wanted.is_some_and(|wanted| wanted.topics.contains(topic)) {
                foreign.insert(topic.to_owned());
                continue;
            }
            share.entry(topic).or_default().extend(numbers.iter().filter(|&number| number >= 0));
        }
        share.retain(|_, numbers| !numbers.is_empty());
        let share = share.into_iter().map(|(topic, mut numbers)| {
            numbers.sort_unstable();
            numbers.dedup();
            (topic.to_owned(), numbers)
        });
        Ok((share.collect(), foreign.into_iter().collect()))
    }
}

/// The assignment in `bytes` with this share in place of its partitions.
fn encoded(share: &Partitions, bytes: &[u8]) -> Option<Vec<u8>> {
    let user_data = Assignment::read(bytes).ok()?.user_data;
    let list = CanonicalPartitions::new(share.iter().map(|(topic, numbers)| (topic.as_str(), numbers.iter().copied())));
    assignment::encode_with(&list, user_data).ok()
}
