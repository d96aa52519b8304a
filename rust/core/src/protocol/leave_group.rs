//! LeaveGroup: one member (versions 0 to 2) or several (from 3) go.

use super::field::message;
use super::{ApiKey, Body, ErrorCode};

message! {
    /// A member to remove. A static member may be named by its instance id alone.
    pub struct LeaveGroupMember {
        /// The member.
        member_id: String [3..],
        /// Set for static members.
        group_instance_id: Option<String> [3..],
        /// Why it leaves (KIP-800).
        reason: Option<String> [5..],
    }

    /// The request.
    pub struct LeaveGroupRequest {
        /// The group.
        group_id: String [0..],
        /// The member that goes, in old versions.
        member_id: String [0..=2],
        /// The members that go.
        members: Vec<LeaveGroupMember> [3..],
    }

    /// What became of one member of the request.
    pub struct LeaveGroupMemberResponse {
        /// As in the request.
        member_id: String [3..],
        /// As in the request.
        group_instance_id: Option<String> [3..],
        /// Success or why not.
        error_code: ErrorCode [3..],
    }

    /// The response.
    pub struct LeaveGroupResponse {
        /// How long the broker throttled the client.
        throttle_time_ms: i32 [1..],
        /// Of the request; from version 3 each member has its own.
        error_code: ErrorCode [0..],
        /// One for each member of the request, in its order.
        members: Vec<LeaveGroupMemberResponse> [3..],
    }
}

impl Body for LeaveGroupRequest {
    const KEY: ApiKey = ApiKey::LeaveGroup;
}

impl Body for LeaveGroupResponse {
    const KEY: ApiKey = ApiKey::LeaveGroup;
}
