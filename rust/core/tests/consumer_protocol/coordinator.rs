//! A model of the brokers' coordinator of consumer groups, written from the rules of `GroupMetadataManager` of Kafka 4.3.1, and
//! not from the member. It plans for balance only.

use kafka_assignors_core::protocol::ErrorCode;
use kafka_assignors_core::protocol::consumer_group_heartbeat::*;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) type Id = [u8; 16];
pub(crate) type ByTopic = BTreeMap<Id, BTreeSet<i32>>;

/// The state of a member (`MemberState`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Stable,
    Unrevoked { until: u64 },
    Unreleased,
}

#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) instance: Option<String>,
    pub(crate) epoch: i32,
    previous: i32,
    pub(crate) state: State,
    pub(crate) names: BTreeSet<String>,
    pub(crate) expression: String,
    /// Whether the broker has resolved the expression: it does so in the background.
    resolved: bool,
    pub(crate) assigned: ByTopic,
    pub(crate) pending: ByTopic,
    /// By partition, the epoch since which the member has it (KIP-1251).
    since: BTreeMap<(Id, i32), i32>,
    timeout: u64,
    session_end: u64,
}

/// The rules that differ between Kafka's releases.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// `group.consumer.assignment.interval.ms`: 1,000 from 4.3 on, before 0.
    pub(crate) plan_interval: u64,
    /// Whether a commit with an older epoch is accepted for partitions that the member has had since that epoch (4.3).
    pub(crate) older_epochs_commit: bool,
    /// Whether a known member may join again with epoch 0 (KAFKA-19233, 4.2).
    pub(crate) known_may_join: bool,
    /// The session, in milliseconds.
    pub(crate) session: u64,
    /// The heartbeat interval in answers.
    pub(crate) interval: i32,
}

#[derive(Debug)]
pub(crate) struct Coordinator {
    pub(crate) rules: Rules,
    pub(crate) topics: BTreeMap<String, (Id, i32)>,
    /// The names of all topics so far, including deleted ones.
    pub(crate) names: BTreeMap<Id, String>,
    pub(crate) members: BTreeMap<String, Member>,
    pub(crate) group_epoch: i32,
    assignment_epoch: i32,
    target: BTreeMap<String, ByTopic>,
    planned_at: Option<u64>,
    last_id: u8,
    metadata_changed: bool,
}

fn contains(all: &ByTopic, part: &ByTopic) -> bool {
    part.iter().all(|(id, numbers)| numbers.is_empty() || all.get(id).is_some_and(|all| numbers.is_subset(all)))
}

fn flat(partitions: &ByTopic) -> BTreeSet<(Id, i32)> {
    partitions.iter().flat_map(|(&id, numbers)| numbers.iter().map(move |&number| (id, number))).collect()
}

fn nested(partitions: impl IntoIterator<Item = (Id, i32)>) -> ByTopic {
    let mut nested = ByTopic::new();
    for (id, number) in partitions {
        nested.entry(id).or_default().insert(number);
    }
    nested
}

impl Coordinator {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            topics: BTreeMap::new(),
            names: BTreeMap::new(),
            members: BTreeMap::new(),
            group_epoch: 0,
            assignment_epoch: 0,
            target: BTreeMap::new(),
            planned_at: None,
            last_id: 0,
            metadata_changed: false,
        }
    }

    /// Creates a topic, or increases its partition count.
    pub(crate) fn topic(&mut self, name: &str, partitions: i32) {
        self.last_id += 1;
        let id = [self.last_id; 16];
        self.topics.entry(name.to_owned()).or_insert((id, 0)).1 = partitions;
        self.names.insert(id, name.to_owned());
        self.metadata_changed = true;
    }

    pub(crate) fn delete(&mut self, name: &str) {
        self.topics.remove(name);
        self.metadata_changed = true;
    }

    /// Another broker has loaded the group: the sessions begin anew.
    pub(crate) fn loaded(&mut self, now: u64) {
        for member in self.members.values_mut() {
            member.session_end = now + self.rules.session;
        }
    }

    /// Removes a member, which learns of it only from its next heartbeat.
    pub(crate) fn evict(&mut self, id: &str) {
        self.remove(id);
    }

    fn remove(&mut self, id: &str) {
        self.members.remove(id);
        self.target.remove(id);
        self.group_epoch += 1;
    }

    /// Ends sessions, and memberships that did not revoke in time.
    pub(crate) fn expire(&mut self, now: u64) {
        let over = |member: &Member| {
            now >= member.session_end || matches!(member.state, State::Unrevoked { until } if now >= until)
        };
        let ids: Vec<String> =
            self.members.iter().filter(|(_, member)| over(member)).map(|(id, _)| id.clone()).collect();
        for id in ids {
            self.remove(&id);
        }
    }

    fn topics_of(&self, member: &Member) -> BTreeSet<Id> {
        let wants = |name: &String| {
            member.names.contains(name)
                || member.resolved && !member.expression.is_empty() && name.starts_with(&member.expression[..1])
        };
        self.topics.iter().filter(|(name, _)| wants(name)).map(|(_, &(id, _))| id).collect()
    }

    fn plan(&mut self, now: u64) {
        let waits = self.planned_at.is_some_and(|at| now < at + self.rules.plan_interval);
        if self.group_epoch == self.assignment_epoch || waits {
            return;
        }
        self.planned_at = Some(now);
        self.assignment_epoch = self.group_epoch;
        let wanted: BTreeMap<String, BTreeSet<Id>> =
            self.members.iter().map(|(id, member)| (id.clone(), self.topics_of(member))).collect();
        let mut plan: BTreeMap<String, BTreeSet<(Id, i32)>> =
            self.members.keys().map(|id| (id.clone(), BTreeSet::new())).collect();
        for &(topic, partitions) in self.topics.values() {
            let subscribers: Vec<&String> =
                wanted.iter().filter(|(_, topics)| topics.contains(&topic)).map(|(id, _)| id).collect();
            if subscribers.is_empty() {
                continue;
            }
            let least = partitions as usize / subscribers.len();
            let mut extras = partitions as usize % subscribers.len();
            let mut count: BTreeMap<&String, usize> = BTreeMap::new();
            let mut free = Vec::new();
            for number in 0..partitions {
                let had = |id: &&&String| {
                    self.target.get(**id).and_then(|had| had.get(&topic)).is_some_and(|had| had.contains(&number))
                };
                let owner = subscribers.iter().find(had).filter(|&&id| {
                    let had = count.get(id).copied().unwrap_or(0);
                    // A member may keep one partition more than the least number, as long as there are such extra partitions.
                    let extra = had == least && extras > 0;
                    extras -= usize::from(extra);
                    had < least || extra
                });
                match owner {
                    Some(&owner) => {
                        *count.entry(owner).or_default() += 1;
                        plan.get_mut(owner).unwrap().insert((topic, number));
                    }
                    None => free.push(number),
                }
            }
            for number in free {
                let least = subscribers.iter().min_by_key(|&&id| count.get(id).copied().unwrap_or(0)).unwrap();
                *count.entry(least).or_default() += 1;
                plan.get_mut(*least).unwrap().insert((topic, number));
            }
        }
        self.target = plan.into_iter().map(|(id, partitions)| (id, nested(partitions))).collect();
    }

    fn taken_by_others(&self, id: &str) -> BTreeSet<(Id, i32)> {
        let others = self.members.iter().filter(|&(other, _)| other != id);
        others.flat_map(|(_, member)| flat(&member.assigned).into_iter().chain(flat(&member.pending))).collect()
    }

    /// `CurrentAssignmentBuilder`: one step of this member towards its target.
    fn reconcile(&mut self, now: u64, id: &str, owned: Option<&ByTopic>) {
        let target = flat(self.target.get(id).unwrap_or(&ByTopic::new()));
        let taken = self.taken_by_others(id);
        let epoch = self.assignment_epoch;
        let member = self.members.get_mut(id).unwrap();
        let holds = |pending: &BTreeSet<(Id, i32)>| {
            owned.is_none_or(|owned| flat(owned).iter().any(|partition| pending.contains(partition)))
        };
        match member.state {
            State::Stable if member.epoch == epoch => return,
            State::Unrevoked { .. } if holds(&flat(&member.pending)) => return,
            _ => {}
        }
        let assigned = flat(&member.assigned);
        let kept: BTreeSet<_> = assigned.intersection(&target).copied().collect();
        let revoked: BTreeSet<_> = assigned.difference(&target).copied().collect();
        if !revoked.is_empty() && holds(&revoked) {
            member.assigned = nested(kept);
            member.pending = nested(revoked);
            member.state = State::Unrevoked { until: now + member.timeout };
            return;
        }
        let missing: BTreeSet<_> = target.difference(&kept).copied().collect();
        let free: BTreeSet<_> = missing.difference(&taken).copied().collect();
        member.state = if free.len() < missing.len() { State::Unreleased } else { State::Stable };
        member.assigned = nested(kept.iter().chain(&free).copied());
        member.pending = ByTopic::new();
        if member.epoch != epoch {
            member.previous = member.epoch;
            member.epoch = epoch;
        }
        member.since.retain(|partition, _| kept.contains(partition));
        for &partition in &free {
            member.since.insert(partition, epoch);
        }
    }

    /// Serves a request that leaves. Returns the epoch of the answer.
    fn leave(&mut self, request: &ConsumerGroupHeartbeatRequest) -> Result<i32, ErrorCode> {
        let Some(member) = self.members.get_mut(&request.member_id) else { return Err(ErrorCode::UNKNOWN_MEMBER_ID) };
        if request.member_epoch == LEAVE_STATIC_EPOCH && member.instance.is_some() {
            member.epoch = LEAVE_STATIC_EPOCH;
        } else {
            self.remove(&request.member_id);
        }
        Ok(request.member_epoch)
    }

    /// Finds or creates the member of a request that joins.
    fn enter(&mut self, now: u64, request: &ConsumerGroupHeartbeatRequest) -> Result<(), ErrorCode> {
        let id = &request.member_id;
        let mut fresh = Member {
            instance: request.instance_id.clone(),
            epoch: 0,
            previous: 0,
            state: State::Stable,
            names: BTreeSet::new(),
            expression: String::new(),
            resolved: false,
            assigned: ByTopic::new(),
            pending: ByTopic::new(),
            since: BTreeMap::new(),
            timeout: u64::try_from(request.rebalance_timeout_ms).map_err(|_| ErrorCode::INVALID_REQUEST)?,
            session_end: now + self.rules.session,
        };
        if request.topic_partitions.as_ref().is_none_or(|held| !held.is_empty()) {
            return Err(ErrorCode::INVALID_REQUEST);
        }
        if let Some(instance) = &request.instance_id {
            let held = self.members.iter().find(|(_, member)| member.instance.as_ref() == Some(instance));
            if let Some((other, member)) = held.map(|(other, member)| (other.clone(), member.clone())) {
                if member.epoch != LEAVE_STATIC_EPOCH {
                    return if other == *id {
                        Err(ErrorCode::FENCED_MEMBER_EPOCH)
                    } else {
                        Err(ErrorCode::UNRELEASED_INSTANCE_ID)
                    };
                }
                // The new member takes the place of the other one: its target and its assigned partitions.
                self.members.remove(&other);
                let target = self.target.remove(&other).unwrap_or_default();
                self.target.insert(id.clone(), target);
                fresh.assigned = member.assigned;
                fresh.names = member.names;
                fresh.expression = member.expression;
                fresh.resolved = member.resolved;
                // Each partition keeps the epoch since which the other member had it.
                fresh.since = member.since;
                self.members.insert(id.clone(), fresh);
                return Ok(());
            }
        }
        if let Some(member) = self.members.get_mut(id) {
            if member.previous != 0 && !self.rules.known_may_join {
                return Err(ErrorCode::FENCED_MEMBER_EPOCH);
            }
            // A request that joins names no owned partitions.
            member.epoch = 0;
            member.previous = 0;
            member.assigned = ByTopic::new();
            member.pending = ByTopic::new();
            member.state = State::Stable;
            return Ok(());
        }
        self.members.insert(id.clone(), fresh);
        self.group_epoch += 1;
        Ok(())
    }

    /// Serves a heartbeat.
    pub(crate) fn heartbeat(
        &mut self,
        now: u64,
        request: &ConsumerGroupHeartbeatRequest,
    ) -> ConsumerGroupHeartbeatResponse {
        self.expire(now);
        if std::mem::take(&mut self.metadata_changed) && !self.members.is_empty() {
            self.group_epoch += 1;
        }
        let refused = |error_code| ConsumerGroupHeartbeatResponse { error_code, ..Default::default() };
        if request.member_epoch < 0 {
            return match self.leave(request) {
                Ok(member_epoch) => ConsumerGroupHeartbeatResponse {
                    member_id: Some(request.member_id.clone()),
                    member_epoch,
                    ..Default::default()
                },
                Err(code) => refused(code),
            };
        }
        let owned: Option<ByTopic> = request
            .topic_partitions
            .as_ref()
            .map(|rows| rows.iter().map(|row| (row.topic_id, row.partitions.iter().copied().collect())).collect());
        if request.member_epoch == 0 {
            if let Err(code) = self.enter(now, request) {
                return refused(code);
            }
        } else {
            let Some(member) = self.members.get(&request.member_id) else {
                return refused(ErrorCode::UNKNOWN_MEMBER_ID);
            };
            let repeats = request.member_epoch == member.previous
                && owned.as_ref().is_some_and(|owned| contains(&member.assigned, owned));
            if request.member_epoch != member.epoch && !repeats {
                return refused(ErrorCode::FENCED_MEMBER_EPOCH);
            }
        }
        let session = now + self.rules.session;
        let member = self.members.get_mut(&request.member_id).unwrap();
        member.session_end = session;
        if request.rebalance_timeout_ms > 0 {
            member.timeout = request.rebalance_timeout_ms as u64;
        }
        // An expression is resolved only at the heartbeat after the one that contained it.
        let mut changed = !member.resolved && !member.expression.is_empty();
        member.resolved |= changed;
        if let Some(names) = &request.subscribed_topic_names {
            let names = names.iter().cloned().collect();
            changed |= member.names != names;
            member.names = names;
        }
        if let Some(expression) = &request.subscribed_topic_regex
            && member.expression != *expression
        {
            changed |= expression.is_empty();
            member.resolved = false;
            member.expression.clone_from(expression);
        }
        let before = member.assigned.clone();
        self.group_epoch += i32::from(changed);
        self.plan(now);
        self.reconcile(now, &request.member_id, owned.as_ref());
        let member = &self.members[&request.member_id];
        let full = request.member_epoch == 0
            || request.rebalance_timeout_ms > 0
                && (request.subscribed_topic_names.is_some() || request.subscribed_topic_regex.is_some())
                && owned.is_some();
        let says = full || member.assigned != before;
        let rows = |assigned: &ByTopic| HeartbeatAssignment {
            topic_partitions: assigned
                .iter()
                .map(|(&topic_id, numbers)| HeartbeatTopicPartitions {
                    topic_id,
                    partitions: numbers.iter().copied().collect(),
                })
                .collect(),
        };
        ConsumerGroupHeartbeatResponse {
            member_id: Some(request.member_id.clone()),
            member_epoch: member.epoch,
            heartbeat_interval_ms: self.rules.interval,
            assignment: says.then(|| rows(&member.assigned)),
            ..Default::default()
        }
    }

    /// The code that answers a commit of this partition.
    pub(crate) fn commit(&mut self, now: u64, member_id: &str, epoch: i32, partition: (Id, i32)) -> ErrorCode {
        self.expire(now);
        let Some(member) = self.members.get(member_id) else { return ErrorCode::UNKNOWN_MEMBER_ID };
        if epoch == member.epoch {
            return ErrorCode::NONE;
        }
        let had = member.since.get(&partition).is_some_and(|&since| since <= epoch);
        if self.rules.older_epochs_commit && epoch < member.epoch && had {
            return ErrorCode::NONE;
        }
        ErrorCode::STALE_MEMBER_EPOCH
    }
}
