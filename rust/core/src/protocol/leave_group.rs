//! LeaveGroup: one member (versions 0 to 2) or several members (since 3) leave.

use super::field::message;
use super::{ApiKey, Body, ErrorCode};

message! {
    /// A member to remove. For a static member the instance id is enough.
    pub struct LeaveGroupMember {
        /// The member.
        member_id: String [3..],
        /// The `group.instance.id` of a static member.
        group_instance_id: Option<String> [3..],
        /// The reason for leaving (KIP-800).
        reason: Option<String> [5..],
    }

    /// The request.
    pub struct LeaveGroupRequest {
        /// The group.
        group_id: String [0..],
        /// The member that leaves, before version 3.
        member_id: String [0..=2],
        /// The members that leave.
        members: Vec<LeaveGroupMember> [3..],
    }

    /// The result for one member of the request.
    pub struct LeaveGroupMemberResponse {
        /// As in the request.
        member_id: String [3..],
        /// As in the request.
        group_instance_id: Option<String> [3..],
        /// `NONE`, or the error.
        error_code: ErrorCode [3..],
    }

    /// The response.
    pub struct LeaveGroupResponse {
        /// The time for which the broker throttled the client, in milliseconds.
        throttle_time_ms: i32 [1..],
        /// The error of the request. Since version 3 each member has its own.
        error_code: ErrorCode [0..],
        /// One for each member, in the order of the request.
        members: Vec<LeaveGroupMemberResponse> [3..],
    }
}

impl Body for LeaveGroupRequest {
    const KEY: ApiKey = ApiKey::LeaveGroup;
}

impl Body for LeaveGroupResponse {
    const KEY: ApiKey = ApiKey::LeaveGroup;
}
