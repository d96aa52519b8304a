//! SyncGroup and Heartbeat.

use super::answers::refuse_sync;
use super::connections::Ticket;
use super::group::{ClassicGroup, ClassicGroupState, Context};
use super::record;
use super::timers::Timer;
use crate::protocol::ErrorCode;
use crate::protocol::heartbeat::HeartbeatRequest;
use crate::protocol::sync_group::{SyncGroupRequest, SyncGroupResponse};
use std::collections::BTreeMap;

/// Since this version a member must send its protocol type and protocol (KIP-559).
const PROTOCOL_REQUIRED_FROM: i16 = 5;

impl ClassicGroup {
    fn validate_sync(&self, request: &SyncGroupRequest, version: i16) -> Result<(), ErrorCode> {
        if version >= PROTOCOL_REQUIRED_FROM && (request.protocol_type.is_none() || request.protocol_name.is_none()) {
            return Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        if self.state == ClassicGroupState::Empty {
            return Err(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        self.validate_member(&request.member_id, request.group_instance_id.as_deref())?;
        if request.generation_id != self.generation {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        let differs = |given: &Option<String>, ours: &Option<String>| given.is_some() && given != ours;
        if differs(&request.protocol_type, &self.protocol_type) || differs(&request.protocol_name, &self.protocol) {
            return Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        if self.state == ClassicGroupState::PreparingRebalance {
            return Err(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        Ok(())
    }

    /// Serves a SyncGroup. A member's SyncGroup may come before or after the leader's.
    pub(super) fn sync(&mut self, context: &mut Context<'_>, request: SyncGroupRequest, ticket: Ticket) {
        if let Err(code) = self.validate_sync(&request, ticket.version()) {
            return refuse_sync(context.connections, ticket, code);
        }
        self.pending_sync.remove(&request.member_id);
        if self.pending_sync.is_empty() {
            context.timers.cancel(Timer::Sync(self.id.clone()));
        }
        if self.state == ClassicGroupState::Stable {
            let response = self.sync_response(&request.member_id);
            return context.connections.answer(ticket, &response);
        }
        if let Some(member) = self.members.get_mut(&request.member_id) {
            member.syncing = Some(ticket);
        }
        if self.is_leader(&request.member_id) {
            let plan = request.assignments.into_iter().map(|one| (one.member_id, one.assignment)).collect();
            self.accept_plan(context, plan);
        }
    }

    /// Answers every SyncGroup with the member's assignment. If the group does not fit one record, it rebalances instead. That
    /// repeats without end.
    fn accept_plan(&mut self, context: &mut Context<'_>, mut plan: BTreeMap<String, Vec<u8>>) {
        let size = record::batch_bytes(self, |id| plan.get(id).map_or(0, Vec::len));
        if size > context.config.max_record_bytes {
            self.drop_plan(context, ErrorCode::UNKNOWN_SERVER_ERROR);
            return self.prepare_rebalance(context);
        }
        self.state = ClassicGroupState::Stable;
        for (id, member) in &mut self.members {
            // A member that is not in the plan gets an empty assignment.
            member.assignment = plan.remove(id).unwrap_or_default();
        }
        for id in self.members.keys().cloned().collect::<Vec<_>>() {
            if let Some(ticket) = self.members.get_mut(&id).and_then(|member| member.syncing.take()) {
                let response = self.sync_response(&id);
                context.connections.answer(ticket, &response);
                // While the request waited, the session timeout had no effect, and it may have passed. Restart it.
                self.renew_session(context, &id);
            }
        }
    }

    fn sync_response(&self, member_id: &str) -> SyncGroupResponse {
        SyncGroupResponse {
            throttle_time_ms: 0,
            error_code: ErrorCode::NONE,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol.clone(),
            assignment: self.members.get(member_id).map(|member| member.assignment.clone()).unwrap_or_default(),
        }
    }

    /// Serves a Heartbeat.
    pub(super) fn heartbeat(&self, context: &mut Context<'_>, request: &HeartbeatRequest) -> Result<(), ErrorCode> {
        self.validate_member(&request.member_id, request.group_instance_id.as_deref())?;
        if request.generation_id != self.generation {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        self.renew_session(context, &request.member_id);
        match self.state {
            ClassicGroupState::Empty => Err(ErrorCode::UNKNOWN_MEMBER_ID),
            ClassicGroupState::PreparingRebalance => Err(ErrorCode::REBALANCE_IN_PROGRESS),
            ClassicGroupState::CompletingRebalance | ClassicGroupState::Stable => Ok(()),
        }
    }
}
