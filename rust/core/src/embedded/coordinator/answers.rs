//! Responses that several modules send: those to JoinGroup, and the refusal of any request.

use super::connections::{Connections, Ticket};
use super::offsets::commit_answer;
use super::request::Request;
use crate::embedded::refusal::Refuse;
use crate::protocol::ErrorCode;
use crate::protocol::join_group::JoinGroupResponse;
use crate::protocol::sync_group::SyncGroupResponse;

/// Answers a request with an error code in each error field of its response.
pub(super) fn refuse(connections: &mut Connections, ticket: Ticket, request: Request, code: ErrorCode) {
    fn refused(connections: &mut Connections, ticket: Ticket, request: impl Refuse, code: ErrorCode) {
        let response = request.refusal(ticket.version(), code);
        connections.answer(ticket, &response);
    }
    match request {
        Request::OffsetCommit(request) => connections.answer(ticket, &commit_answer(&request, |_, _| code)),
        Request::OffsetFetch(request) => refused(connections, ticket, request, code),
        Request::JoinGroup(request) => refuse_join(connections, ticket, request.member_id, code),
        Request::Heartbeat(request) => refused(connections, ticket, request, code),
        Request::LeaveGroup(request) => refused(connections, ticket, request, code),
        Request::SyncGroup(_) => refuse_sync(connections, ticket, code),
        Request::DescribeGroups(request) => refused(connections, ticket, request, code),
        Request::ListGroups(request) => refused(connections, ticket, request, code),
        Request::DeleteGroups(request) => refused(connections, ticket, request, code),
        Request::ConsumerGroupHeartbeat(request) => refused(connections, ticket, request, code),
        Request::ConsumerGroupDescribe(request) => refused(connections, ticket, request, code),
    }
}

/// Answers a JoinGroup; before version 7 the protocol's name cannot be null.
pub(super) fn answer_join(connections: &mut Connections, ticket: Ticket, mut response: JoinGroupResponse) {
    if ticket.version() < 7 {
        response.protocol_name.get_or_insert_default();
    }
    connections.answer(ticket, &response);
}

/// Answers a JoinGroup with an error.
pub(super) fn refuse_join(connections: &mut Connections, ticket: Ticket, member_id: String, code: ErrorCode) {
    answer_join(connections, ticket, JoinGroupResponse { member_id, error_code: code, ..Default::default() });
}

/// Answers a SyncGroup with an error.
pub(super) fn refuse_sync(connections: &mut Connections, ticket: Ticket, code: ErrorCode) {
    connections.answer(ticket, &SyncGroupResponse { error_code: code, ..Default::default() });
}
