//! Members of the classic protocol in a group of KIP-848. The group has no leader: the answer to JoinGroup contains no leader and
//! no members, and the answer to SyncGroup contains the coordinator's assignment. The generation is the member's epoch. A member
//! must give partitions up before other members are assigned them. It acknowledges that with the owned partitions of its
//! subscription.

use super::ConsumerGroup;
use super::member::{Classic, ConsumerMember, MemberState, has};
use crate::embedded::coordinator::config::{Config, MigrationPolicy};
use crate::embedded::coordinator::connections::Ticket;
use crate::embedded::coordinator::group::Context;
use crate::embedded::coordinator::join::{MEMBER_ID_REQUIRED_FROM, timeouts};
use crate::embedded::coordinator::timers::Timer;
use crate::embedded::coordinator::topics::ClusterTopics;
use crate::planning::server_side::Subscribing;
use crate::protocol::assignment;
use crate::protocol::consumer_group_heartbeat::HeartbeatTopicPartitions;
use crate::protocol::heartbeat::HeartbeatRequest;
use crate::protocol::join_group::{JoinGroupRequest, JoinGroupResponse};
use crate::protocol::leave_group::LeaveGroupMember;
use crate::protocol::subscription::Subscription;
use crate::protocol::sync_group::{SyncGroupRequest, SyncGroupResponse};
use crate::protocol::topic_partitions::{CanonicalPartitions, Numbers};
use crate::protocol::{CONSUMER, ErrorCode};
use std::collections::BTreeSet;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The owned partitions of a subscription, of topics that exist.
fn owned_partitions(subscription: &Subscription<'_>, topics: &ClusterTopics) -> Vec<HeartbeatTopicPartitions> {
    let of_topic = |(name, numbers): (&[u8], Numbers<'_>)| {
        let topic = topics.get(str::from_utf8(name).ok()?)?;
        Some(HeartbeatTopicPartitions { topic_id: topic.id, partitions: numbers.iter().collect() })
    };
    subscription.owned.iter().filter_map(of_topic).collect()
}

impl ConsumerGroup {
    /// Serves a JoinGroup.
    ///
    /// # Errors
    /// The code, and the member id of the answer.
    pub(in crate::embedded::coordinator) fn join_classic(
        &mut self,
        context: &mut Context<'_>,
        request: &JoinGroupRequest,
        ticket: &Ticket,
        topics: &ClusterTopics,
    ) -> Result<JoinGroupResponse, (ErrorCode, String)> {
        let refused = |code: ErrorCode| (code, request.member_id.clone());
        let subscription = self.classic_subscription(context.config, request).map_err(refused)?;
        let (member_id, replaced) = self.classic_sender(context, request, ticket)?;
        let is_full = self.members.len() >= context.config.consumer_max_group_size;
        if is_full && replaced.is_none() && !self.members.contains_key(&member_id) {
            return Err((ErrorCode::GROUP_MAX_SIZE_REACHED, String::new()));
        }

        let names: BTreeSet<String> = subscription.topics.iter().map(text).collect();
        let before = self.planner.changes();
        self.refresh_topics(topics);
        self.track(names.iter().map(String::as_str), topics);
        let is_new = replaced.is_some() || !self.members.contains_key(&member_id);
        if let Some(old) = &replaced {
            self.replace(context, old, &member_id);
        }
        let rack_id = subscription.rack.map(text);
        let resubscribed = self.update_classic(context.config, request, ticket, &member_id, &names, rack_id);
        self.planner.set_assignor(self.elected(context.config));
        let (may_plan, when) = self.may_plan(context);
        let named: Vec<&str> = names.iter().map(String::as_str).collect();
        let subscribing = Subscribing { names: &named, expression: None };
        let informed = match (is_new, resubscribed) {
            (true, _) => {
                self.planner.join(&member_id, request.group_instance_id.as_deref(), subscribing, when).map(drop)
            }
            (false, true) => self.planner.subscribe(&member_id, subscribing, when).map(drop),
            (false, false) => Ok(()),
        };
        self.plan_after(context, before, informed, may_plan).map_err(|_| refused(ErrorCode::UNKNOWN_SERVER_ERROR))?;

        let owned = owned_partitions(&subscription, topics);
        self.reconcile(&member_id, Some(&owned), resubscribed, topics);
        self.forget_expressions();
        self.renew_classic_session(context, &member_id);
        context.timers.cancel(Timer::Rejoin(self.id.clone(), member_id.clone()));
        self.await_classic(context, &member_id);
        let member = self.members.get(&member_id);
        Ok(JoinGroupResponse {
            generation_id: member.map_or(-1, |member| member.epoch),
            protocol_type: Some(CONSUMER.to_owned()),
            protocol_name: request.protocols.first().map(|protocol| protocol.name.clone()),
            member_id,
            ..Default::default()
        })
    }

    /// The subscription in a JoinGroup, if the group takes classic members and shares a protocol with this one.
    fn classic_subscription<'r>(
        &self,
        config: &Config,
        request: &'r JoinGroupRequest,
    ) -> Result<Subscription<'r>, ErrorCode> {
        let mixed = config.consumer_migration_policy != MigrationPolicy::Disabled;
        if !mixed || request.protocol_type != CONSUMER || !self.shares_a_protocol(request) {
            return Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        let asked = request.protocols.first().map_or(&[][..], |protocol| &protocol.metadata);
        Subscription::read(asked).map_err(|_| ErrorCode::INCONSISTENT_GROUP_PROTOCOL)
    }

    /// Stores what the JoinGroup says of the member. Returns whether the member subscribed to something else before.
    fn update_classic(
        &mut self,
        config: &Config,
        request: &JoinGroupRequest,
        ticket: &Ticket,
        member_id: &str,
        names: &BTreeSet<String>,
        rack_id: Option<String>,
    ) -> bool {
        let (session_timeout_ms, rebalance_timeout_ms) = timeouts(request, ticket.version());
        let member = self.members.entry(member_id.to_owned()).or_default();
        let resubscribed = member.names != *names || member.expression.is_some();
        member.names.clone_from(names);
        (member.expression, member.vote) = (None, None);
        member.rack_id = rack_id;
        ticket.client_id().clone_into(&mut member.client_id);
        member.client_host.clone_from(&config.client_host);
        member.rebalance_timeout_ms = rebalance_timeout_ms;
        member.classic = Some(Classic { session_timeout_ms, protocols: request.protocols.clone() });
        if let Some(instance_id) = &request.group_instance_id {
            member.instance_id = Some(instance_id.clone());
            self.statics.insert(instance_id.clone(), member_id.to_owned());
        }
        resubscribed
    }

    /// Whether all other classic members list one of the request's protocols.
    fn shares_a_protocol(&self, request: &JoinGroupRequest) -> bool {
        let is_itself = |id: &str, member: &ConsumerMember| {
            id == request.member_id || (member.instance_id.is_some() && member.instance_id == request.group_instance_id)
        };
        let others: Vec<&Classic> = self
            .members
            .iter()
            .filter(|(id, member)| !is_itself(id, member))
            .filter_map(|(_, member)| member.classic.as_ref())
            .collect();
        let listed = |name: &str| others.iter().all(|other| other.protocols.iter().any(|one| one.name == name));
        request.protocols.iter().any(|protocol| listed(&protocol.name))
    }

    /// The id of the member that joins, and the id of the static member whose place it takes.
    fn classic_sender(
        &self,
        context: &mut Context<'_>,
        request: &JoinGroupRequest,
        ticket: &Ticket,
    ) -> Result<(String, Option<String>), (ErrorCode, String)> {
        let id = &request.member_id;
        let Some(instance_id) = &request.group_instance_id else {
            if id.is_empty() {
                let new = context.ids.generate(ticket.client_id());
                let rejoins_with_id = ticket.version() >= MEMBER_ID_REQUIRED_FROM;
                return if rejoins_with_id { Err((ErrorCode::MEMBER_ID_REQUIRED, new)) } else { Ok((new, None)) };
            }
            let is_other = self.members.get(id).is_some_and(|member| member.classic.is_none());
            return if is_other { Err((ErrorCode::UNKNOWN_MEMBER_ID, id.clone())) } else { Ok((id.clone(), None)) };
        };
        let holder = self.statics.get(instance_id);
        if id.is_empty() {
            return Ok((context.ids.generate(instance_id), holder.cloned()));
        }
        match holder {
            None => Err((ErrorCode::UNKNOWN_MEMBER_ID, id.clone())),
            Some(holder) if holder != id => Err((ErrorCode::FENCED_INSTANCE_ID, id.clone())),
            Some(_) => Ok((id.clone(), None)),
        }
    }

    /// A member of the classic protocol.
    fn classic_member(&self, id: &str, instance_id: Option<&str>) -> Result<&ConsumerMember, ErrorCode> {
        if let Some(instance_id) = instance_id {
            match self.statics.get(instance_id) {
                None => return Err(ErrorCode::UNKNOWN_MEMBER_ID),
                Some(holder) if holder != id => return Err(ErrorCode::FENCED_INSTANCE_ID),
                Some(_) => {}
            }
        }
        self.members.get(id).filter(|member| member.classic.is_some()).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)
    }

    /// Serves a SyncGroup: the member's partitions.
    pub(in crate::embedded::coordinator) fn sync_classic(
        &mut self,
        context: &mut Context<'_>,
        request: &SyncGroupRequest,
        topics: &ClusterTopics,
    ) -> Result<SyncGroupResponse, ErrorCode> {
        let id = &request.member_id;
        let member = self.classic_member(id, request.group_instance_id.as_deref())?;
        if request.generation_id != member.epoch {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        let first = member.classic.iter().flat_map(|classic| &classic.protocols).next();
        let protocol = first.map(|protocol| protocol.name.clone());
        let differs = |given: &Option<String>, ours: Option<&str>| given.is_some() && given.as_deref() != ours;
        if differs(&request.protocol_type, Some(CONSUMER)) || differs(&request.protocol_name, protocol.as_deref()) {
            return Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        if self.epoch > member.epoch && member.state != MemberState::UnrevokedPartitions {
            self.await_classic(context, id);
            return Err(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        let assigned =
            member.assigned.iter().filter_map(|(topic, held)| Some((topics.name(topic)?, held.keys().copied())));
        let assignment = assignment::encode(&CanonicalPartitions::new(assigned), None)
            .map_err(|_| ErrorCode::UNKNOWN_SERVER_ERROR)?;
        context.timers.cancel(Timer::Rejoin(self.id.clone(), id.clone()));
        self.renew_classic_session(context, id);
        Ok(SyncGroupResponse {
            protocol_type: Some(CONSUMER.to_owned()),
            protocol_name: protocol,
            assignment,
            ..Default::default()
        })
    }

    /// Serves a Heartbeat. The member must join again to follow the group's epoch, to give partitions up, and to get partitions
    /// that became free.
    pub(in crate::embedded::coordinator) fn heartbeat_classic(
        &mut self,
        context: &mut Context<'_>,
        request: &HeartbeatRequest,
        topics: &ClusterTopics,
    ) -> Result<(), ErrorCode> {
        let id = &request.member_id;
        let before = self.planner.changes();
        self.classic_member(id, request.group_instance_id.as_deref())?;
        self.refresh_topics(topics);
        if self.planner.changes() != before {
            self.raise_epoch();
        }
        let member = self.classic_member(id, request.group_instance_id.as_deref())?;
        if request.generation_id != member.epoch {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        self.renew_classic_session(context, id);
        let must_join = self.epoch > member.epoch
            || match member.state {
                MemberState::Stable => false,
                MemberState::UnrevokedPartitions => true,
                MemberState::UnreleasedPartitions => self.all_awaited_are_free(id, member, topics),
            };
        if must_join {
            self.await_classic(context, id);
            return Err(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        Ok(())
    }

    /// Whether every partition that the member waits for is free now.
    fn all_awaited_are_free(&self, id: &str, member: &ConsumerMember, topics: &ClusterTopics) -> bool {
        let waits = |topic: &[u8; 16], partition: i32| {
            !has(&member.assigned, topic, partition) && self.held.contains(&(*topic, partition))
        };
        !self.target_of(id, topics).iter().any(|(topic, list)| list.iter().any(|&partition| waits(topic, partition)))
    }

    /// Serves one member of a LeaveGroup.
    pub(in crate::embedded::coordinator) fn leave_classic(
        &mut self,
        context: &mut Context<'_>,
        leaving: &LeaveGroupMember,
    ) -> ErrorCode {
        let instance_id = leaving.group_instance_id.as_deref();
        let id = match (leaving.member_id.as_str(), instance_id) {
            // An admin removes a static member by its instance id. The member may speak either protocol.
            ("", Some(instance_id)) => match self.statics.get(instance_id) {
                Some(id) => id.clone(),
                None => return ErrorCode::UNKNOWN_MEMBER_ID,
            },
            (id, _) => match self.classic_member(id, instance_id) {
                Ok(_) => id.to_owned(),
                Err(code) => return code,
            },
        };
        self.remove(context, &id);
        ErrorCode::NONE
    }

    pub(super) fn renew_classic_session(&self, context: &mut Context<'_>, id: &str) {
        if let Some(classic) = self.members.get(id).and_then(|member| member.classic.as_ref()) {
            let deadline = context.now.saturating_add(classic.session_timeout_ms);
            context.timers.set(Timer::Session(self.id.clone(), id.to_owned()), deadline);
        }
    }

    /// Starts the timer in which the member must send the next JoinGroup or SyncGroup (its rebalance timeout), unless it runs
    /// already.
    fn await_classic(&self, context: &mut Context<'_>, id: &str) {
        if let Some(member) = self.members.get(id) {
            let deadline = context.now.saturating_add(member.rebalance_timeout_ms.max(1));
            context.timers.begin(Timer::Rejoin(self.id.clone(), id.to_owned()), deadline);
        }
    }
}
