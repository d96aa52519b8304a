//! ConsumerGroupHeartbeat (KIP-848): the one request by which a member joins, stays, acknowledges a revocation and leaves.

use super::ErrorCode;
use super::field::{Field, Format, Nullable, bodies, message};
use super::reader::{ReadError, Reader};
use super::writer::{Write, WriteError};

/// The epoch of a request that joins.
pub const JOIN_EPOCH: i32 = 0;

/// The epoch of a request that leaves for good.
pub const LEAVE_EPOCH: i32 = -1;

/// The epoch of a request with which a static member leaves until it returns within its session.
pub const LEAVE_STATIC_EPOCH: i32 = -2;

/// The first version with a regular expression, in which the member makes its id itself (KIP-1082).
pub const REGEX_FROM: i16 = 1;

message! {
    /// Partitions of one topic.
    pub struct HeartbeatTopicPartitions {
        /// The topic's id (KIP-516).
        topic_id: [u8; 16] [0..],
        /// The partitions.
        partitions: Vec<i32> [0..],
    }

    /// The request. A field that is null, or a rebalance timeout of -1, has not changed since the last request.
    pub struct ConsumerGroupHeartbeatRequest {
        /// The group.
        group_id: String [0..],
        /// The member. It makes the id itself from version 1; in version 0 the id is empty at the first join.
        member_id: String [0..],
        /// The last epoch received, or [`JOIN_EPOCH`], [`LEAVE_EPOCH`] or [`LEAVE_STATIC_EPOCH`].
        member_epoch: i32 [0..],
        /// The `group.instance.id` of a static member.
        instance_id: Option<String> [0..],
        /// The rack of the client.
        rack_id: Option<String> [0..],
        /// The time for which the coordinator waits for a revocation, in milliseconds.
        rebalance_timeout_ms: i32 [0..] = -1,
        /// The names of the topics; empty for none.
        subscribed_topic_names: Option<Vec<String>> [0..],
        /// The regular expression (RE2/J), which the broker matches with whole names; empty for none.
        subscribed_topic_regex: Option<String> [1..],
        /// The broker's assignor for which the member votes.
        server_assignor: Option<String> [0..],
        /// The partitions that the member holds.
        topic_partitions: Option<Vec<HeartbeatTopicPartitions>> [0..],
    }

    /// The partitions that a member is to hold.
    pub struct HeartbeatAssignment {
        /// The partitions, by topic.
        topic_partitions: Vec<HeartbeatTopicPartitions> [0..],
    }

    /// The response.
    pub struct ConsumerGroupHeartbeatResponse {
        /// The time for which the broker throttled the client, in milliseconds.
        throttle_time_ms: i32 [0..],
        /// `NONE`, or the error.
        error_code: ErrorCode [0..],
        /// The error message.
        error_message: Option<String> [0..],
        /// The member id, which the broker makes in version 0.
        member_id: Option<String> [0..],
        /// The member's epoch.
        member_epoch: i32 [0..],
        /// The time until the next heartbeat, in milliseconds; 0 with an error and after leaving.
        heartbeat_interval_ms: i32 [0..],
        /// The assignment; null if it has not changed since the last response.
        assignment: Option<HeartbeatAssignment> [0..],
    }
}

bodies! {
    ConsumerGroupHeartbeat: ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse;
}

/// A nullable structure has one byte before it: -1 for null, else 1.
impl Nullable for HeartbeatAssignment {
    fn read_nullable(reader: &mut Reader<'_>, format: Format, what: &'static str) -> Result<Option<Self>, ReadError> {
        match reader.i8(what)? {
            ..0 => Ok(None),
            0.. => Self::read(reader, format, what).map(Some),
        }
    }

    fn write_nullable(
        value: Option<&Self>,
        out: &mut Vec<u8>,
        format: Format,
        what: &'static str,
    ) -> Result<(), WriteError> {
        out.i8(if value.is_some() { 1 } else { -1 });
        value.map_or(Ok(()), |assignment| assignment.write(out, format, what))
    }
}
