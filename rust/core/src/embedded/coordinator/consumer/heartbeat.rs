//! The heartbeat of a member that joins or stays.

use super::ConsumerGroup;
use super::member::{ConsumerMember, MemberState};
use super::request::{Refusal, assignor_named};
use crate::embedded::coordinator::group::Context;
use crate::embedded::coordinator::timers::Timer;
use crate::embedded::coordinator::topics::ClusterTopics;
use crate::expression::Expression;
use crate::planning::server_side::{CoordinatorError, Subscribing, When};
use crate::protocol::ErrorCode;
use crate::protocol::consumer_group_heartbeat::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, HeartbeatAssignment, HeartbeatTopicPartitions,
    JOIN_EPOCH, LEAVE_STATIC_EPOCH,
};

/// The member of a heartbeat.
enum Sender {
    /// The member is in the group.
    Known,
    /// The member joins.
    New,
    /// The member takes the place of a static member that left for a while (epoch -2).
    Returned { old: String },
}

/// The expression of a request.
enum RequestedExpression {
    Unchanged,
    None,
    Some(String, Option<Expression>),
}

impl ConsumerGroup {
    /// Serves the heartbeat of a member that joins or stays. The member id is not empty.
    pub(in crate::embedded::coordinator) fn heartbeat(
        &mut self,
        context: &mut Context<'_>,
        request: &ConsumerGroupHeartbeatRequest,
        client_id: &str,
        topics: &ClusterTopics,
    ) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
        let member_id = request.member_id.as_str();
        let owned = request.topic_partitions.as_deref();
        // All checks come before the first change.
        self.check_room(context, member_id)?;
        let sender = self.sender(request)?;
        let expression = self.expression(request)?;

        let before = self.planner.changes();
        self.refresh_topics(topics);
        if let Some(names) = &request.subscribed_topic_names {
            self.track(names.iter().map(String::as_str), topics);
        }
        let resubscribed = self.enter(context, request, client_id, &sender, expression);
        self.planner.set_assignor(self.elected(context.config));
        let (may_plan, when) = self.may_plan(context);
        let informed = self.inform(request, &sender, resubscribed, when);
        self.plan_after(context, before, informed, may_plan).map_err(|error| {
            // The group keeps its targets. The next heartbeat tries again.
            Refusal::new(ErrorCode::UNKNOWN_SERVER_ERROR, error.to_string())
        })?;

        let changed = self.reconcile(member_id, owned, resubscribed, topics);
        self.set_timers(context, member_id, changed);
        self.forget_expressions();
        self.resolve(context.config, context.now, topics);

        let is_full = request.rebalance_timeout_ms != -1
            && (request.subscribed_topic_names.is_some() || request.subscribed_topic_regex.is_some())
            && owned.is_some();
        let with_assignment = changed || is_full || request.member_epoch == JOIN_EPOCH;
        let member = self.members.get(member_id);
        Ok(ConsumerGroupHeartbeatResponse {
            member_id: Some(member_id.to_owned()),
            member_epoch: member.map_or(0, |member| member.epoch),
            heartbeat_interval_ms: context.config.consumer_heartbeat_interval_ms,
            assignment: member.filter(|_| with_assignment).map(assignment_of),
            ..Default::default()
        })
    }

    fn check_room(&self, context: &Context<'_>, member_id: &str) -> Result<(), Refusal> {
        let most = context.config.consumer_max_group_size;
        if self.members.len() < most || self.members.contains_key(member_id) {
            return Ok(());
        }
        let message = format!("The consumer group has reached its maximum capacity of {most} members.");
        Err(Refusal::new(ErrorCode::GROUP_MAX_SIZE_REACHED, message))
    }

    fn sender(&self, request: &ConsumerGroupHeartbeatRequest) -> Result<Sender, Refusal> {
        let member_id = request.member_id.as_str();
        let joins = request.member_epoch == JOIN_EPOCH;
        let Some(instance_id) = &request.instance_id else {
            if joins && !self.members.contains_key(member_id) {
                return Ok(Sender::New);
            }
            self.check_known(member_id)?;
            return self.check_epoch(request).map(|()| Sender::Known);
        };
        if !joins {
            self.check_instance(instance_id, member_id)?;
            return self.check_epoch(request).map(|()| Sender::Known);
        }
        let Some(holder) = self.statics.get(instance_id) else {
            // The instance id of a member id never changes.
            return match self.members.contains_key(member_id) {
                true => Err(Refusal::new(
                    ErrorCode::INVALID_REQUEST,
                    format!("ConsumerMember {member_id} is in the group already, without instance id {instance_id}."),
                )),
                false => Ok(Sender::New),
            };
        };
        // A member of the new protocol replaces one of the classic protocol even if that one has not left.
        let gives_way = |member: &ConsumerMember| member.epoch == LEAVE_STATIC_EPOCH || member.classic.is_some();
        if self.members.get(holder).is_some_and(gives_way) {
            let is_taken = holder != member_id && self.members.contains_key(member_id);
            if !is_taken {
                return Ok(Sender::Returned { old: holder.clone() });
            }
        }
        Err(Refusal::new(
            ErrorCode::UNRELEASED_INSTANCE_ID,
            format!(
                "Static member {member_id} with instance id {instance_id} cannot join the group because the instance id is \
                 owned by {holder} member."
            ),
        ))
    }

    /// Whether a known member has the right epoch. The epoch may be the previous one if the answer with the present one was lost:
    /// then the request names only partitions that are assigned to the member.
    fn check_epoch(&self, request: &ConsumerGroupHeartbeatRequest) -> Result<(), Refusal> {
        let Some(member) = self.members.get(&request.member_id) else { return Ok(()) };
        let (received, known) = (request.member_epoch, member.epoch);
        let answer_was_lost =
            received == member.previous_epoch && member.holds_only_its_own(request.topic_partitions.as_deref());
        if received == known || received == JOIN_EPOCH || (received < known && answer_was_lost) {
            return Ok(());
        }
        let side = if received > known { "greater" } else { "smaller" };
        Err(Refusal::new(
            ErrorCode::FENCED_MEMBER_EPOCH,
            format!(
                "The consumer group member has a {side} member epoch ({received}) than the one known by the group coordinator \
                 ({known}). The member must abandon all its partitions and rejoin."
            ),
        ))
    }

    /// The request's expression, compiled if the group does not have it yet.
    fn expression(&self, request: &ConsumerGroupHeartbeatRequest) -> Result<RequestedExpression, Refusal> {
        let text = match request.subscribed_topic_regex.as_deref() {
            None => return Ok(RequestedExpression::Unchanged),
            Some("") => return Ok(RequestedExpression::None),
            Some(text) => text,
        };
        if self.knows(text) {
            return Ok(RequestedExpression::Some(text.to_owned(), None));
        }
        let compiled = Expression::re2(text).map_err(|error| {
            let message = format!("SubscribedTopicRegex `{text}` is not a valid regular expression: {error}.");
            Refusal::new(ErrorCode::INVALID_REGULAR_EXPRESSION, message)
        })?;
        Ok(RequestedExpression::Some(text.to_owned(), Some(compiled)))
    }

    /// Creates or updates the member. Returns whether its subscription has changed.
    fn enter(
        &mut self,
        context: &mut Context<'_>,
        request: &ConsumerGroupHeartbeatRequest,
        client_id: &str,
        sender: &Sender,
        expression: RequestedExpression,
    ) -> bool {
        let member_id = &request.member_id;
        match sender {
            Sender::Known => {}
            Sender::New => {
                self.members.insert(member_id.clone(), ConsumerMember::default());
            }
            Sender::Returned { old } => self.replace(context, old, member_id),
        }
        if let Some(instance_id) = &request.instance_id {
            self.statics.insert(instance_id.clone(), member_id.clone());
        }
        let Some(member) = self.members.get_mut(member_id) else { return false };
        let before = (member.names.clone(), member.expression.clone());
        if request.instance_id.is_some() {
            member.instance_id.clone_from(&request.instance_id);
        }
        member.classic = None;
        client_id.clone_into(&mut member.client_id);
        member.client_host.clone_from(&context.config.client_host);
        if request.rack_id.is_some() {
            member.rack_id.clone_from(&request.rack_id);
        }
        if let Ok(timeout) = u64::try_from(request.rebalance_timeout_ms) {
            member.rebalance_timeout_ms = timeout;
        }
        if let Some(name) = &request.server_assignor {
            member.vote = assignor_named(name, context.config);
        }
        if let Some(names) = &request.subscribed_topic_names {
            member.names = names.iter().cloned().collect();
        }
        match expression {
            RequestedExpression::Unchanged => {}
            RequestedExpression::None => member.expression = None,
            RequestedExpression::Some(text, compiled) => {
                member.expression = Some(text.clone());
                self.add_expression(&text, compiled);
            }
        }
        self.members.get(member_id).is_some_and(|member| (&member.names, &member.expression) != (&before.0, &before.1))
    }

    /// Passes the member and its subscription to the planner.
    fn inform(
        &mut self,
        request: &ConsumerGroupHeartbeatRequest,
        sender: &Sender,
        resubscribed: bool,
        when: When,
    ) -> Result<(), CoordinatorError> {
        let member_id = request.member_id.as_str();
        let Some(member) = self.members.get(member_id) else { return Ok(()) };
        // A broker reads the names in the order of the request.
        let names: Vec<&str> = match &request.subscribed_topic_names {
            Some(names) => names.iter().map(String::as_str).collect(),
            None => member.names.iter().map(String::as_str).collect(),
        };
        let asked = Subscribing { names: &names, expression: member.expression.as_deref() };
        match sender {
            Sender::Known if !resubscribed => Ok(()),
            Sender::Known => self.planner.subscribe(member_id, asked, when).map(drop),
            Sender::New | Sender::Returned { .. } => {
                self.planner.join(member_id, request.instance_id.as_deref(), asked, when).map(drop)
            }
        }
    }

    /// Gives a static member's place to another member id.
    pub(super) fn replace(&mut self, context: &mut Context<'_>, old: &str, new: &str) {
        self.cancel_timers(context, old);
        if let Some(member) = self.members.remove(old) {
            self.members.insert(new.to_owned(), ConsumerMember { previous_epoch: 0, ..member });
        }
        // A member that has not left gives its target up now. The planner has the same members, so it cannot refuse.
        let _ = self.planner.leave(old, true, When::Later);
    }

    /// Whether the time between two plans is over.
    pub(super) fn may_plan(&self, context: &Context<'_>) -> (bool, When) {
        let interval = context.config.consumer_assignment_interval_ms;
        let may_plan = self.planned_at.is_none_or(|at| context.now >= at.saturating_add(interval));
        (may_plan, if may_plan { When::Now } else { When::Later })
    }

    /// Raises the group's epoch if the planner counts more changes than `before`, and plans.
    pub(super) fn plan_after(
        &mut self,
        context: &Context<'_>,
        before: u64,
        informed: Result<(), CoordinatorError>,
        may_plan: bool,
    ) -> Result<(), CoordinatorError> {
        if self.planner.changes() != before {
            self.raise_epoch();
        }
        informed.and_then(|()| self.plan(context, may_plan))
    }

    /// Brings the plan up to the group's epoch.
    fn plan(&mut self, context: &Context<'_>, may_plan: bool) -> Result<(), CoordinatorError> {
        if self.epoch > self.assignment_epoch && may_plan {
            self.planner.plan()?;
            self.assignment_epoch = self.epoch;
            self.planned_at = Some(context.now);
        }
        Ok(())
    }

    /// Each heartbeat restarts the timer of the session, and each new revocation starts the timer of the revocation.
    fn set_timers(&self, context: &mut Context<'_>, member_id: &str, changed: bool) {
        let Some(member) = self.members.get(member_id) else { return };
        let session = context.now.saturating_add(context.config.consumer_session_timeout_ms);
        context.timers.set(Timer::Session(self.id.clone(), member_id.to_owned()), session);
        let revocation = Timer::Revocation(self.id.clone(), member_id.to_owned());
        if member.state != MemberState::UnrevokedPartitions {
            context.timers.cancel(revocation);
        } else if changed {
            let deadline = context.now.saturating_add(member.rebalance_timeout_ms);
            context.timers.set(revocation, deadline);
        }
    }
}

fn assignment_of(member: &ConsumerMember) -> HeartbeatAssignment {
    let topics = member
        .assigned
        .iter()
        .map(|(topic, held)| HeartbeatTopicPartitions { topic_id: *topic, partitions: held.keys().copied().collect() });
    HeartbeatAssignment { topic_partitions: topics.collect() }
}
