//! The requests a coordinator serves, and refusing each of them with a code.

use super::connections::{Connections, Ticket};
use crate::protocol::group_admin::{
    DeleteGroupResult, DeleteGroupsRequest, DeleteGroupsResponse, DescribeGroupsRequest, DescribeGroupsResponse,
    DescribedGroup, ListGroupsRequest, ListGroupsResponse,
};
use crate::protocol::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use crate::protocol::join_group::{JoinGroupRequest, JoinGroupResponse};
use crate::protocol::leave_group::{LeaveGroupRequest, LeaveGroupResponse};
use crate::protocol::offsets::{OffsetCommitRequest, OffsetFetchRequest};
use crate::protocol::sync_group::{SyncGroupRequest, SyncGroupResponse};
use crate::protocol::{ApiKey, ErrorCode, FrameError, RequestHeader, read_request};
use crate::wire::reader::Reader;

macro_rules! requests {
    ($($api:ident($body:ty),)*) => {
        /// A request for the coordinator.
        #[derive(Debug)]
        pub(super) enum Request { $($api($body),)* }

        /// What the coordinator serves.
        pub(super) const SERVED: &[ApiKey] = &[$(ApiKey::$api,)*];

        impl Request {
            /// Reads the header and the body.
            pub(super) fn read(frame: &[u8]) -> Result<(RequestHeader, Self), FrameError> {
                let mut reader = Reader::of_frame(frame);
                let header = RequestHeader::read(&mut reader)?;
                let request = match header.api {
                    $(ApiKey::$api => Request::$api(read_request(&mut reader, header.version)?),)*
                    other => return Err(FrameError::UnknownApi(other.code())),
                };
                Ok((header, request))
            }
        }
    };
}

requests! {
    OffsetCommit(OffsetCommitRequest),
    OffsetFetch(OffsetFetchRequest),
    JoinGroup(JoinGroupRequest),
    Heartbeat(HeartbeatRequest),
    LeaveGroup(LeaveGroupRequest),
    SyncGroup(SyncGroupRequest),
    DescribeGroups(DescribeGroupsRequest),
    ListGroups(ListGroupsRequest),
    DeleteGroups(DeleteGroupsRequest),
}

/// Answers a request with a code, wherever its response carries one.
pub(super) fn refuse(connections: &mut Connections, ticket: Ticket, request: Request, code: ErrorCode) {
    match request {
        Request::OffsetCommit(request) => {
            let response = super::offsets::commit_answer(&request, |_, _| code);
            connections.answer(ticket, &response);
        }
        Request::OffsetFetch(request) => {
            let response = super::offsets::fetch_refusal(request, ticket.version(), code);
            connections.answer(ticket, &response);
        }
        Request::JoinGroup(request) => {
            refuse_join(connections, ticket, request.member_id, code);
        }
        Request::Heartbeat(_) => {
            connections.answer(ticket, &HeartbeatResponse { error_code: code, ..Default::default() });
        }
        Request::LeaveGroup(_) => {
            connections.answer(ticket, &LeaveGroupResponse { error_code: code, ..Default::default() });
        }
        Request::SyncGroup(_) => refuse_sync(connections, ticket, code),
        Request::DescribeGroups(request) => {
            let describe = |group_id| DescribedGroup { error_code: code, group_id, ..Default::default() };
            let groups = request.groups.into_iter().map(describe).collect();
            connections.answer(ticket, &DescribeGroupsResponse { groups, ..Default::default() });
        }
        Request::ListGroups(_) => {
            connections.answer(ticket, &ListGroupsResponse { error_code: code, ..Default::default() });
        }
        Request::DeleteGroups(request) => {
            let results = request.groups_names.into_iter();
            let results = results.map(|group_id| DeleteGroupResult { group_id, error_code: code }).collect();
            connections.answer(ticket, &DeleteGroupsResponse { results, ..Default::default() });
        }
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
