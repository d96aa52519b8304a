//! Groups of KIP-848: the coordinator plans, and heartbeats carry subscriptions, assignments and acknowledgements.
//!
//! The group's epoch rises with every change of its members, their subscriptions or their topics. A plan is made in some
//! member's heartbeat as soon as the group's epoch is above the plan's; its targets are those of
//! [`planning::server_side`](crate::planning::server_side), as a broker computes them. Each member then goes towards its target
//! in its own heartbeats ([`reconcile`]).

mod classic;
mod conversion;
mod describe;
mod heartbeat;
mod leave;
mod member;
mod offsets;
mod reconcile;
mod request;
mod subscription;

use super::config::Config;
use super::group::Context;
use super::offsets::Offsets;
use super::timers::Timer;
use crate::planning::server_side::{Assignor, Release, ServerSideGroup};
use crate::protocol::TopicId;
use member::ConsumerMember;
use std::collections::{BTreeMap, BTreeSet};
use subscription::Resolved;

pub use member::MemberState;
pub(super) use request::{Refusal, validate};

/// The states of a KIP-848 group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsumerGroupState {
    /// No members.
    Empty,
    /// The group has a change that is not planned yet.
    Assigning,
    /// At least one member has not reached its target.
    Reconciling,
    /// Every member has its target.
    Stable,
}

impl ConsumerGroupState {
    /// Kafka's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ConsumerGroupState::Empty => "Empty",
            ConsumerGroupState::Assigning => "Assigning",
            ConsumerGroupState::Reconciling => "Reconciling",
            ConsumerGroupState::Stable => "Stable",
        }
    }
}

/// The current state of a KIP-848 group, for tests and tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerGroupView {
    /// The group.
    pub group_id: String,
    /// The state.
    pub state: ConsumerGroupState,
    /// The group's epoch.
    pub epoch: i32,
    /// The epoch of the last plan.
    pub assignment_epoch: i32,
    /// The assignor of the next plan.
    pub assignor: &'static str,
    /// The members, in order of member id.
    pub members: Vec<ConsumerMemberView>,
}

/// The current state of a member of a KIP-848 group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerMemberView {
    /// The member.
    pub member_id: String,
    /// Set for static members.
    pub instance_id: Option<String>,
    /// The client's `client.id`.
    pub client_id: String,
    /// The epoch in the last answer to the member; -2 for a static member that has left for a while.
    pub epoch: i32,
    /// The progress of the member towards its target.
    pub state: MemberState,
    /// Its partitions, by topic.
    pub assigned: BTreeMap<TopicId, Vec<i32>>,
    /// The partitions that the member must give up, by topic.
    pub pending: BTreeMap<TopicId, Vec<i32>>,
    /// The partitions that the member should have, by topic.
    pub target: BTreeMap<String, Vec<i32>>,
    /// Whether the member speaks the classic protocol.
    pub classic: bool,
}

/// A group of KIP-848.
#[derive(Debug)]
pub(super) struct ConsumerGroup {
    id: String,
    epoch: i32,
    assignment_epoch: i32,
    members: BTreeMap<String, ConsumerMember>,
    /// Instance id to member id.
    statics: BTreeMap<String, String>,
    planner: ServerSideGroup,
    /// The partitions that are assigned to a member or that a member has not given up yet.
    held: BTreeSet<(TopicId, i32)>,
    expressions: BTreeMap<String, Resolved>,
    /// The version of the topics that were last passed to the planner.
    topics_version: u64,
    /// The version of the topics with which all expressions were last resolved, and the time of that.
    resolved_version: u64,
    resolved_at: u64,
    /// The time of the last plan.
    planned_at: Option<u64>,
    pub(super) offsets: Offsets,
}

impl ConsumerGroup {
    pub(super) fn new(id: String, config: &Config) -> Self {
        Self {
            id,
            // The first member raises the epoch to 2, as on brokers from 4.3 on (KAFKA-20268).
            epoch: 1,
            assignment_epoch: 0,
            members: BTreeMap::new(),
            statics: BTreeMap::new(),
            planner: ServerSideGroup::new(config.default_assignor(), Release::V4),
            held: BTreeSet::new(),
            expressions: BTreeMap::new(),
            topics_version: 0,
            resolved_version: 0,
            resolved_at: 0,
            planned_at: None,
            offsets: Offsets::default(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) fn state(&self) -> ConsumerGroupState {
        if self.members.is_empty() {
            ConsumerGroupState::Empty
        } else if self.epoch > self.assignment_epoch {
            ConsumerGroupState::Assigning
        } else if self.members.values().all(|member| self.is_reconciled(member) && member.state == MemberState::Stable)
        {
            ConsumerGroupState::Stable
        } else {
            ConsumerGroupState::Reconciling
        }
    }

    fn is_reconciled(&self, member: &ConsumerMember) -> bool {
        member.epoch == self.assignment_epoch
    }

    /// The assignor with the most votes. With equal numbers of votes it is `uniform`, without votes the first of the settings.
    fn elected(&self, config: &Config) -> Assignor {
        let votes = |wanted| self.members.values().filter(|member| member.vote == Some(wanted)).count();
        match (votes(Assignor::Uniform), votes(Assignor::Range)) {
            (0, 0) => config.default_assignor(),
            (uniform, range) if uniform >= range => Assignor::Uniform,
            _ => Assignor::Range,
        }
    }

    /// Changes a member, and updates `held`. Returns the result of `change`.
    fn change_member<T>(&mut self, member_id: &str, change: impl FnOnce(&mut ConsumerMember) -> T) -> Option<T> {
        let member = self.members.get_mut(member_id)?;
        for one in member.held() {
            self.held.remove(&one);
        }
        let result = change(member);
        self.held.extend(member.held());
        Some(result)
    }

    /// Removes a member for good: it left, or one of its timers has expired.
    fn remove(&mut self, context: &mut Context<'_>, member_id: &str) {
        self.change_member(member_id, |member| {
            member.assigned.clear();
            member.pending.clear();
        });
        let Some(member) = self.members.remove(member_id) else { return };
        if let Some(instance_id) = &member.instance_id
            && self.statics.get(instance_id).is_some_and(|holder| holder == member_id)
        {
            self.statics.remove(instance_id);
        }
        // The planner has the same members, so it cannot refuse.
        let _ = self.planner.leave(member_id, false, crate::planning::server_side::When::Later);
        self.forget_expressions();
        self.cancel_timers(context, member_id);
        // If the group becomes a classic one now, the epoch stays: it is the generation of the members, with which they can still
        // commit before they join.
        if member.classic.is_some() || !self.may_become_classic(context.config) {
            self.raise_epoch();
        }
    }

    fn raise_epoch(&mut self) {
        // The epoch is an int32 on the wire.
        self.epoch = self.epoch.saturating_add(1);
    }

    fn cancel_timers(&self, context: &mut Context<'_>, member_id: &str) {
        context.timers.cancel(Timer::Session(self.id.clone(), member_id.to_owned()));
        context.timers.cancel(Timer::Revocation(self.id.clone(), member_id.to_owned()));
        context.timers.cancel(Timer::Rejoin(self.id.clone(), member_id.to_owned()));
    }

    /// The session of a member has ended.
    pub(super) fn session_expired(&mut self, context: &mut Context<'_>, member_id: &str) {
        self.remove(context, member_id);
    }

    /// A member has not acknowledged a revocation within its rebalance timeout.
    pub(super) fn revocation_expired(&mut self, context: &mut Context<'_>, member_id: &str) {
        let waiting = |member: &ConsumerMember| member.state == MemberState::UnrevokedPartitions;
        if self.members.get(member_id).is_some_and(waiting) {
            self.remove(context, member_id);
        }
    }

    /// A classic member has not joined again, or not sent SyncGroup, within its rebalance timeout.
    pub(super) fn rejoin_expired(&mut self, context: &mut Context<'_>, member_id: &str) {
        self.remove(context, member_id);
    }

    pub(super) fn view(&self, config: &Config) -> ConsumerGroupView {
        let lists = |partitions: &member::AssignedPartitions| {
            partitions.iter().map(|(topic, held)| (*topic, held.keys().copied().collect())).collect()
        };
        let target = |id: &str| {
            let listed = self.planner.target(id).into_iter().flatten();
            let sorted = |list: &[u32]| list.iter().map(|&partition| partition as i32).collect::<BTreeSet<_>>();
            listed.map(|(name, list)| (name.to_owned(), sorted(list).into_iter().collect())).collect()
        };
        let member = |(id, member): (&String, &ConsumerMember)| ConsumerMemberView {
            member_id: id.clone(),
            instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            epoch: member.epoch,
            state: member.state,
            assigned: lists(&member.assigned),
            pending: lists(&member.pending),
            target: target(id),
            classic: member.classic.is_some(),
        };
        ConsumerGroupView {
            group_id: self.id.clone(),
            state: self.state(),
            epoch: self.epoch,
            assignment_epoch: self.assignment_epoch,
            assignor: self.elected(config).name(),
            members: self.members.iter().map(member).collect(),
        }
    }
}
