//! SyncGroup: the leader hands in the plan, every member gets its share.

use super::field::message;
use super::{ApiKey, Body, ErrorCode};

message! {
    /// One member's share.
    pub struct SyncGroupAssignment {
        /// The member.
        member_id: String [0..],
        /// For consumers an assignment of the embedded consumer protocol.
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
        /// Set for static members.
        group_instance_id: Option<String> [3..],
        /// What the member believes the group's protocol type is (KIP-559).
        protocol_type: Option<String> [5..],
        /// What the member believes the chosen protocol is.
        protocol_name: Option<String> [5..],
        /// The plan, from the leader only.
        assignments: Vec<SyncGroupAssignment> [0..],
    }

    /// The response.
    pub struct SyncGroupResponse {
        /// How long the broker throttled the client.
        throttle_time_ms: i32 [1..],
        /// Success or why not.
        error_code: ErrorCode [0..],
        /// The group's protocol type.
        protocol_type: Option<String> [5..],
        /// The chosen protocol.
        protocol_name: Option<String> [5..],
        /// The member's share; empty when the leader forgot the member.
        assignment: Vec<u8> [0..],
    }
}

impl Body for SyncGroupRequest {
    const KEY: ApiKey = ApiKey::SyncGroup;
}

impl Body for SyncGroupResponse {
    const KEY: ApiKey = ApiKey::SyncGroup;
}
