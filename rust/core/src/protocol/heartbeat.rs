//! Heartbeat: a member renews its session.

use super::field::message;
use super::{ApiKey, Body, ErrorCode};

message! {
    /// The request.
    pub struct HeartbeatRequest {
        /// The group.
        group_id: String [0..],
        /// The member's generation.
        generation_id: i32 [0..],
        /// The member.
        member_id: String [0..],
        /// The `group.instance.id` of a static member.
        group_instance_id: Option<String> [3..],
    }

    /// The response.
    pub struct HeartbeatResponse {
        /// The time for which the broker throttled the client, in milliseconds.
        throttle_time_ms: i32 [1..],
        /// `NONE`, or the error.
        error_code: ErrorCode [0..],
    }
}

impl Body for HeartbeatRequest {
    const KEY: ApiKey = ApiKey::Heartbeat;
}

impl Body for HeartbeatResponse {
    const KEY: ApiKey = ApiKey::Heartbeat;
}
