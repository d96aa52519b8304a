//! JoinGroup: a member joins the next generation.

use super::field::message;
use super::{ApiKey, Body, ErrorCode};

message! {
    /// One protocol that a member supports (for consumers: an assignor), with the member's metadata for it.
    pub struct JoinGroupProtocol {
        /// The protocol's name.
        name: String [0..],
        /// The metadata for the leader; for consumers a subscription.
        metadata: Vec<u8> [0..],
    }

    /// The request.
    pub struct JoinGroupRequest {
        /// The group.
        group_id: String [0..],
        /// The session timeout.
        session_timeout_ms: i32 [0..],
        /// The time for which a rebalance waits for this member. Version 0 uses the session timeout instead.
        rebalance_timeout_ms: i32 [1..] = -1,
        /// The member id; empty for a new member.
        member_id: String [0..],
        /// The `group.instance.id` of a static member (KIP-345).
        group_instance_id: Option<String> [5..],
        /// `consumer` for consumers.
        protocol_type: String [0..],
        /// The protocols, in the member's order of preference.
        protocols: Vec<JoinGroupProtocol> [0..],
        /// The reason for the join (KIP-800).
        reason: Option<String> [8..],
    }

    /// A member in the response to the leader.
    pub struct JoinGroupMember {
        /// The member.
        member_id: String [0..],
        /// The `group.instance.id` of a static member.
        group_instance_id: Option<String> [5..],
        /// Its metadata for the selected protocol.
        metadata: Vec<u8> [0..],
    }

    /// The response.
    pub struct JoinGroupResponse {
        /// The time for which the broker throttled the client, in milliseconds.
        throttle_time_ms: i32 [2..],
        /// `NONE`, or the error.
        error_code: ErrorCode [0..],
        /// The new generation.
        generation_id: i32 [0..] = -1,
        /// The group's protocol type.
        protocol_type: Option<String> [7..],
        /// The selected protocol. Null is possible since version 7.
        protocol_name: Option<String> [0..],
        /// The leader's member id. If it is empty in a successful response, the broker assigns (KIP-848).
        leader: String [0..],
        /// Whether the leader must skip the assignment and keep the old one (KIP-814).
        skip_assignment: bool [9..],
        /// The member's id.
        member_id: String [0..],
        /// All members; empty for followers.
        members: Vec<JoinGroupMember> [0..],
    }
}

impl Body for JoinGroupRequest {
    const KEY: ApiKey = ApiKey::JoinGroup;
}

impl Body for JoinGroupResponse {
    const KEY: ApiKey = ApiKey::JoinGroup;
}
