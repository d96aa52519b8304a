//! JoinGroup.

use super::answers::{answer_join, refuse_join};
use super::connections::Ticket;
use super::group::{ClassicGroup, ClassicGroupState, ClassicMember, Context};
use super::record;
use super::timers::Timer;
use crate::protocol::ErrorCode;
use crate::protocol::join_group::{JoinGroupMember, JoinGroupRequest, JoinGroupResponse};

/// Since this version the first JoinGroup of a new member returns a member id, and the member joins with it (KIP-394).
pub(super) const MEMBER_ID_REQUIRED_FROM: i16 = 4;
/// Since this version the response can request a restarted leader to skip the assignment (KIP-814).
const SKIP_ASSIGNMENT_FROM: i16 = 9;

/// The session timeout and the rebalance timeout of a request, in milliseconds. Version 0 has one field for both. A
/// negative timeout counts as 0.
pub(super) fn timeouts(request: &JoinGroupRequest, version: i16) -> (u64, u64) {
    let session = request.session_timeout_ms;
    let rebalance = if version == 0 { session } else { request.rebalance_timeout_ms };
    (u64::try_from(session).unwrap_or(0), u64::try_from(rebalance).unwrap_or(0))
}

impl ClassicGroup {
    /// Serves a JoinGroup. The caller has validated the group id and the session timeout.
    pub(super) fn join(&mut self, context: &mut Context<'_>, request: JoinGroupRequest, ticket: Ticket) {
        if !self.has_room_for(context, &request.member_id) {
            self.remove(context, &request.member_id);
            return refuse_join(context.connections, ticket, String::new(), ErrorCode::GROUP_MAX_SIZE_REACHED);
        }
        if !self.supports(&request.protocol_type, &request.protocols) {
            let code = ErrorCode::INCONSISTENT_GROUP_PROTOCOL;
            return refuse_join(context.connections, ticket, request.member_id, code);
        }
        if !request.member_id.is_empty() {
            self.rejoin(context, request, ticket);
        } else if let Some(instance_id) = request.group_instance_id.clone() {
            let new = context.ids.generate(&instance_id);
            match self.static_members.get(&instance_id).cloned() {
                Some(old) => self.restart_static(context, request, ticket, &instance_id, &old, &new),
                None => self.add_joining(context, request, ticket, new),
            }
        } else {
            let new = context.ids.generate(ticket.client_id());
            if ticket.version() < MEMBER_ID_REQUIRED_FROM {
                return self.add_joining(context, request, ticket, new);
            }
            let (session, _) = timeouts(&request, ticket.version());
            let deadline = context.now.saturating_add(session);
            context.timers.set(Timer::Session(self.id.clone(), new.clone()), deadline);
            self.pending.insert(new.clone());
            refuse_join(context.connections, ticket, new, ErrorCode::MEMBER_ID_REQUIRED);
        }
    }

    /// Whether the group may have this member. In the join phase only members with an unanswered JoinGroup count,
    /// otherwise all members. So a lowered limit excludes the members that rejoin last.
    fn has_room_for(&self, context: &Context<'_>, member_id: &str) -> bool {
        let limit = context.config.max_group_size;
        let member = self.members.get(member_id);
        match self.state {
            ClassicGroupState::Empty => true,
            ClassicGroupState::PreparingRebalance => {
                member.is_some_and(|member| member.joining.is_some()) || self.waiting_to_join() < limit
            }
            ClassicGroupState::CompletingRebalance | ClassicGroupState::Stable => {
                member.is_some() || self.members.len() < limit
            }
        }
    }

    fn rejoin(&mut self, context: &mut Context<'_>, request: JoinGroupRequest, ticket: Ticket) {
        let member_id = request.member_id.clone();
        if self.pending.contains(&member_id) {
            if request.group_instance_id.is_some() {
                // A static member never has a pending id.
                return refuse_join(context.connections, ticket, member_id, ErrorCode::UNKNOWN_SERVER_ERROR);
            }
            return self.add_joining(context, request, ticket, member_id);
        }
        if let Err(code) = self.validate_member(&member_id, request.group_instance_id.as_deref()) {
            return refuse_join(context.connections, ticket, member_id, code);
        }
        let unchanged = self.members[&member_id].protocols == request.protocols;
        let leads = self.is_leader(&member_id);
        match self.state {
            // The response was lost, or a follower joins again without a change. The member is in this generation
            // already.
            ClassicGroupState::CompletingRebalance if unchanged => {
                let response = self.join_response(&member_id, leads);
                answer_join(context.connections, ticket, response);
            }
            ClassicGroupState::Stable if unchanged && !leads => {
                let response = self.join_response(&member_id, false);
                answer_join(context.connections, ticket, response);
            }
            // Rebalance even if the leader's metadata is unchanged: a leader rejoins for other changes, for example of
            // the topics.
            ClassicGroupState::PreparingRebalance
            | ClassicGroupState::CompletingRebalance
            | ClassicGroupState::Stable => {
                let (session, rebalance) = timeouts(&request, ticket.version());
                self.update(&member_id, request.protocols, rebalance, session, Some(ticket));
                self.rebalance_or_complete_join(context);
            }
            // An empty group has no members to validate.
            ClassicGroupState::Empty => {
                refuse_join(context.connections, ticket, member_id, ErrorCode::UNKNOWN_MEMBER_ID)
            }
        }
    }

    fn add_joining(&mut self, context: &mut Context<'_>, request: JoinGroupRequest, ticket: Ticket, member_id: String) {
        let (session_timeout_ms, rebalance_timeout_ms) = timeouts(&request, ticket.version());
        let member = ClassicMember {
            instance_id: request.group_instance_id,
            client_id: ticket.client_id().to_owned(),
            client_host: context.config.client_host.clone(),
            session_timeout_ms,
            rebalance_timeout_ms,
            protocols: request.protocols,
            assignment: Vec::new(),
            joining: Some(ticket),
            syncing: None,
            is_new: true,
        };
        if self.initial.is_some() {
            self.new_member_added = true;
        }
        self.add(member_id.clone(), request.protocol_type, member);
        // The member does not know its id yet, so it cannot send heartbeats.
        let deadline = context.now.saturating_add(context.config.new_member_join_timeout_ms);
        context.timers.set(Timer::Session(self.id.clone(), member_id), deadline);
        self.rebalance_or_complete_join(context);
    }

    /// A static member joins without its member id: it was restarted.
    fn restart_static(
        &mut self,
        context: &mut Context<'_>,
        request: JoinGroupRequest,
        ticket: Ticket,
        instance_id: &str,
        old: &str,
        new: &str,
    ) {
        let version = ticket.version();
        let leader_before = self.leader.clone();
        self.replace_static(context, instance_id, old, new);
        self.renew_session(context, new);
        let Some(member) = self.members.get(new) else { return };
        let before = (member.protocols.clone(), member.rebalance_timeout_ms, member.session_timeout_ms);
        let (session, rebalance) = timeouts(&request, version);
        self.update(new, request.protocols, rebalance, session, Some(ticket));

        match self.state {
            ClassicGroupState::Stable if self.elect_protocol() == self.protocol => {
                let Some(ticket) = self.members.get_mut(new).and_then(|member| member.joining.take()) else { return };
                let size = record::batch_bytes(self, |id| self.members.get(id).map_or(0, |m| m.assignment.len()));
                if size > context.config.max_record_bytes {
                    self.update(new, before.0, before.1, before.2, None);
                    self.replace_static(context, instance_id, new, old);
                    self.renew_session(context, old);
                    let code = ErrorCode::UNKNOWN_SERVER_ERROR;
                    return refuse_join(context.connections, ticket, String::new(), code);
                }
                let leads = self.is_leader(new);
                let response = if version >= SKIP_ASSIGNMENT_FROM {
                    JoinGroupResponse { skip_assignment: leads, ..self.join_response(new, leads) }
                } else {
                    // With the old member id as leader in the response, a restarted leader computes no assignment.
                    let leader = leader_before.unwrap_or_default();
                    JoinGroupResponse { leader, ..self.join_response(new, false) }
                };
                answer_join(context.connections, ticket, response);
            }
            // In CompletingRebalance the leader may be computing the assignment for the old member id: rebalance again.
            ClassicGroupState::Stable | ClassicGroupState::CompletingRebalance => self.prepare_rebalance(context),
            ClassicGroupState::PreparingRebalance | ClassicGroupState::Empty => self.maybe_complete_join(context),
        }
    }

    /// The successful response: the member is in the current generation.
    pub(super) fn join_response(&self, member_id: &str, with_members: bool) -> JoinGroupResponse {
        let members = self.members.iter().filter(|_| with_members).map(|(id, member)| JoinGroupMember {
            member_id: id.clone(),
            group_instance_id: member.instance_id.clone(),
            metadata: self.metadata_of(member).to_vec(),
        });
        JoinGroupResponse {
            throttle_time_ms: 0,
            error_code: ErrorCode::NONE,
            generation_id: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol.clone(),
            leader: self.leader.clone().unwrap_or_default(),
            skip_assignment: false,
            member_id: member_id.to_owned(),
            members: members.collect(),
        }
    }
}
