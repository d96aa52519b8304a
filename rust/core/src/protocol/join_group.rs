//! JoinGroup: a member enters a generation.

use super::field::message;
use super::{ApiKey, Body, ErrorCode};

message! {
    /// One protocol (for consumers: an assignor) that a member can follow, with its metadata for it.
    pub struct JoinGroupProtocol {
        /// The protocol's name.
        name: String [0..],
        /// What the leader gets to see: for consumers a subscription.
        metadata: Vec<u8> [0..],
    }

    /// The request.
    pub struct JoinGroupRequest {
        /// The group.
        group_id: String [0..],
        /// How long the member may stay silent.
        session_timeout_ms: i32 [0..],
        /// How long the others wait for this member in a rebalance; in version 0 the session timeout stands for it.
        rebalance_timeout_ms: i32 [1..] = -1,
        /// Empty for a newcomer.
        member_id: String [0..],
        /// Makes the member static (KIP-345).
        group_instance_id: Option<String> [5..],
        /// `consumer` for consumers.
        protocol_type: String [0..],
        /// In the member's order of preference.
        protocols: Vec<JoinGroupProtocol> [0..],
        /// Why it joins (KIP-800).
        reason: Option<String> [8..],
    }

    /// A member as the leader sees it.
    pub struct JoinGroupMember {
        /// The member.
        member_id: String [0..],
        /// Set for static members.
        group_instance_id: Option<String> [5..],
        /// Its metadata for the chosen protocol.
        metadata: Vec<u8> [0..],
    }

    /// The response.
    pub struct JoinGroupResponse {
        /// How long the broker throttled the client.
        throttle_time_ms: i32 [2..],
        /// Success or why not.
        error_code: ErrorCode [0..],
        /// The generation the member is in.
        generation_id: i32 [0..] = -1,
        /// The group's protocol type.
        protocol_type: Option<String> [7..],
        /// The protocol chosen. Null is possible from version 7 only.
        protocol_name: Option<String> [0..],
        /// The leader's member id. Empty with success: the broker assigns (KIP-848).
        leader: String [0..],
        /// The leader shall keep the old plan (KIP-814).
        skip_assignment: bool [9..],
        /// The id given to the member.
        member_id: String [0..],
        /// Everyone, for the leader only.
        members: Vec<JoinGroupMember> [0..],
    }
}

impl Body for JoinGroupRequest {
    const KEY: ApiKey = ApiKey::JoinGroup;
}

impl Body for JoinGroupResponse {
    const KEY: ApiKey = ApiKey::JoinGroup;
}
