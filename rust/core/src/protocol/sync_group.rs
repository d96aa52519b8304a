//! SyncGroup: the leader sends all assignments, every member receives its own.

use super::field::message;
use super::{ApiKey, Body, ErrorCode};

message! {
    /// One member's assignment.
    pub struct SyncGroupAssignment {
        /// The member.
        member_id: String [0..],
        /// For consumers a ConsumerProtocolAssignment.
        assignment: Vec<u8> [0..],
    }

    /// The request.
    pub struct SyncGroupRequest {
        /// The group.
        group_id: String [0..],
        /// The generation joined.
        generation_id: i32 [0..],
        /// The member.
        member_id: String [0..],
        /// The `group.instance.id` of a static member.
        group_instance_id: Option<String> [3..],
        /// The group's protocol type that the member expects (KIP-559).
        protocol_type: Option<String> [5..],
        /// The selected protocol that the member expects.
        protocol_name: Option<String> [5..],
        /// The assignments; empty except from the leader.
        assignments: Vec<SyncGroupAssignment> [0..],
    }

    /// The response.
    pub struct SyncGroupResponse {
        /// The time for which the broker throttled the client, in milliseconds.
        throttle_time_ms: i32 [1..],
        /// `NONE`, or the error.
        error_code: ErrorCode [0..],
        /// The group's protocol type.
        protocol_type: Option<String> [5..],
        /// The selected protocol.
        protocol_name: Option<String> [5..],
        /// The member's assignment; empty if the leader's request did not contain the member.
        assignment: Vec<u8> [0..],
    }
}

impl Body for SyncGroupRequest {
    const KEY: ApiKey = ApiKey::SyncGroup;
}

impl Body for SyncGroupResponse {
    const KEY: ApiKey = ApiKey::SyncGroup;
}
