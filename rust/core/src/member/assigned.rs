//! The member's assignment: which of its partitions the member takes.
//!
//! A leader may have planned with topics that do not exist, or be hostile: a megabyte names 250,000 partitions of a topic that
//! has six. For each of them the application would build objects, positions and claims, so the member leaves out partitions that
//! do not exist. The leader may also have newer metadata, since topics grow. Before the member leaves a partition out, it asks
//! for its topics once more.

use super::audit::Audit;
use super::course::Trigger;
use super::event::Partitions;
use super::heartbeat::Heartbeat;
use super::{Membership, Phase, Progress};
use crate::protocol::assignment::{self, Assignment};
use crate::protocol::topic_partitions::CanonicalPartitions;
use std::collections::{BTreeMap, BTreeSet};

/// The most topics that a line of the log names.
const NAMED: usize = 3;

/// An assignment that has not been compared with the topics yet.
#[derive(Debug)]
pub(super) struct Unchecked {
    partitions: Partitions,
    /// Topics in the plan that the member does not subscribe to.
    foreign: Vec<String>,
    bytes: Vec<u8>,
    /// Only Metadata requested at this time or later decides which partitions exist.
    since: u64,
    /// From this time on the known topics decide, regardless of their age.
    deadline: u64,
}

/// Partitions of the assignment that were left out because they do not exist.
#[derive(Debug, Default)]
pub(super) struct Missing {
    /// Topic to the least of its partitions that were left out.
    least: BTreeMap<String, i32>,
    /// Metadata is requested often until this time: some brokers learn later than others that a topic has grown.
    ask_often_until: u64,
}

impl Membership {
    /// SyncGroup has given the member its assignment.
    pub(super) fn take_assignment(&mut self, bytes: Vec<u8>) {
        let (partitions, foreign) = match self.read_assignment(&bytes) {
            Ok(read) => read,
            Err(reason) => {
                self.network
                    .warn(format!("the leader's plan has no assignment for this member that can be read: {reason}"));
                // After a JoinGroup with the same metadata the coordinator would send the same bytes.
                self.change_metadata();
                self.join_again();
                return;
            }
        };
        self.generation.phase = Phase::Stable;
        self.generation.rejoining = false;
        self.generation.rejoin = None;
        self.generation.heartbeat = Heartbeat::begin(self.network.now, self.turn, &self.config);
        self.attempt.prepared = None;
        self.network.discovery.succeeded();
        if self.ownership.taken_in.checked_add(1) != Some(self.generation.id) {
            // A generation in between may have given the released partitions to another member.
            self.ownership.forget_released();
        }
        if self.generation.audit == Audit::Ahead {
            self.generation.audit = Audit::Wanted;
        }
        self.generation.missing = Missing::default();
        self.generation.unchecked = Some(Unchecked {
            partitions,
            foreign,
            bytes,
            since: self.network.now,
            deadline: self.network.now + self.config.request_timeout_ms,
        });
    }

    /// Whether an assignment waits for newer metadata.
    pub(super) fn assignment_needs_topics(&self) -> bool {
        self.generation.unchecked.as_ref().is_some_and(|unchecked| !self.has_topics_since(unchecked.since))
    }

    fn has_topics_since(&self, since: u64) -> bool {
        self.subscription.as_ref().is_some_and(|wanted| self.cluster.covers(&wanted.topics, since))
    }

    pub(super) fn assignment_deadline(&self) -> Option<u64> {
        self.generation.unchecked.as_ref().map(|unchecked| unchecked.deadline)
    }

    /// Hands the assignment to the application as soon as it is known which of its partitions exist.
    pub(super) fn drive_assignment(&mut self) -> Progress {
        let Some(unchecked) = &self.generation.unchecked else { return false };
        if !matches!(self.generation.phase, Phase::Stable) {
            self.generation.unchecked = None;
            return true;
        }
        let certain = self.has_topics_since(unchecked.since) || self.network.now >= unchecked.deadline;
        let doubtful = |(topic, numbers): &(String, Vec<i32>)| {
            self.existing(topic, numbers) < numbers.len() || !self.cluster.has_heard_of(topic)
        };
        if !certain && unchecked.partitions.iter().any(doubtful) {
            return false;
        }
        let Some(unchecked) = self.generation.unchecked.take() else { return false };
        let Unchecked { mut partitions, foreign, mut bytes, .. } = unchecked;
        if self.leave_out_missing(&mut partitions)
            && let Some(rest) = encoded(&partitions, &bytes)
        {
            bytes = rest;
        }
        let (added, revoked) = self.ownership.compare(&partitions);
        self.notify_assignment(revoked, added, partitions, bytes);
        if foreign.is_empty() {
            self.attempt.backoff.succeeded();
        } else {
            // Either the subscription has changed since the plan was made (a static member came back with another one), or the
            // leader is wrong. After a JoinGroup with unchanged metadata the coordinator would send the same plan.
            self.network.warn(format!("the assignment has topics that are not subscribed to: {}", foreign.join(", ")));
            self.change_metadata();
            self.want_rejoin(Trigger::Asked, "the assignment does not fit the subscription");
            self.attempt.backoff.failed(self.network.now, &mut self.network.jitter);
        }
        // A subscription that changed during the rebalance is for the next generation.
        if self.subscription.as_ref().map(|wanted| wanted.epoch) != self.attempt.subscription_epoch {
            self.want_rejoin(Trigger::Subscription, "the subscription has changed");
        }
        true
    }

    /// How many of these ascending partitions exist. A topic of unknown size counts as empty: a leader could name any number.
    fn existing(&self, topic: &str, numbers: &[i32]) -> usize {
        let count = self.cluster.count(topic).unwrap_or(0);
        numbers.partition_point(|&number| i64::from(number) < i64::from(count))
    }

    /// Leaves out the partitions that do not exist. Returns whether there were any.
    fn leave_out_missing(&mut self, assigned: &mut Partitions) -> bool {
        let mut named = Vec::new();
        let (mut topics, mut partitions) = (0, 0);
        let mut least = BTreeMap::new();
        for (topic, numbers) in assigned.iter_mut() {
            let exist = self.existing(topic, numbers);
            let Some(&first) = numbers.get(exist) else { continue };
            if named.len() < NAMED {
                let size = self
                    .cluster
                    .count(topic)
                    .map_or("whose size is not known".to_owned(), |count| format!("which has {count}"));
                named.push(format!("{} of {topic:?}, {size}", numbers.len() - exist));
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
        assigned.retain(|(_, numbers)| !numbers.is_empty());
        let more =
            if topics > named.len() { format!(", and of {} more topics", topics - named.len()) } else { String::new() };
        self.network.warn(format!(
            "the leader's plan gives this member {partitions} partitions that do not exist: {}{more}. They are left out until \
             they do",
            named.join(", ")
        ));
        self.generation.missing = Missing { least, ask_often_until: self.network.now + self.config.request_timeout_ms };
        true
    }

    /// Whether Metadata is requested more often, because partitions were left out a short time ago.
    pub(super) fn asks_for_missing(&self) -> bool {
        let missing = &self.generation.missing;
        !missing.least.is_empty() && self.network.now < missing.ask_often_until
    }

    /// Joins again once a partition that was left out exists: no member reads it before the next plan.
    pub(super) fn look_for_missing(&mut self) {
        let exists = |(topic, &least): (&String, &i32)| self.existing(topic, &[least]) == 1;
        if matches!(self.generation.phase, Phase::Stable) && self.generation.missing.least.iter().any(exists) {
            self.generation.missing = Missing::default();
            self.change_metadata();
            self.want_rejoin(Trigger::Topics, "partitions that were assigned exist now");
        }
    }

    /// The assigned partitions, and the topics of the plan to which the member does not subscribe.
    fn read_assignment(&self, bytes: &[u8]) -> Result<(Partitions, Vec<String>), String> {
        let read = Assignment::read(bytes).map_err(|error| error.to_string())?;
        let wanted = self.subscription.as_ref();
        let mut assigned: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
        let mut foreign = BTreeSet::new();
        for (topic, numbers) in read.partitions.iter() {
            let topic = std::str::from_utf8(topic).map_err(|_| "a topic's name is not UTF-8".to_owned())?;
            if !wanted.is_some_and(|wanted| wanted.topics.contains(topic)) {
                foreign.insert(topic.to_owned());
                continue;
            }
            assigned.entry(topic).or_default().extend(numbers.iter().filter(|&number| number >= 0));
        }
        assigned.retain(|_, numbers| !numbers.is_empty());
        let assigned = assigned.into_iter().map(|(topic, mut numbers)| {
            numbers.sort_unstable();
            numbers.dedup();
            (topic.to_owned(), numbers)
        });
        Ok((assigned.collect(), foreign.into_iter().collect()))
    }
}

/// The assignment in `bytes` with `partitions` in place of its own.
fn encoded(partitions: &Partitions, bytes: &[u8]) -> Option<Vec<u8>> {
    let user_data = Assignment::read(bytes).ok()?.user_data;
    let list =
        CanonicalPartitions::new(partitions.iter().map(|(topic, numbers)| (topic.as_str(), numbers.iter().copied())));
    assignment::encode_with(&list, user_data).ok()
}
