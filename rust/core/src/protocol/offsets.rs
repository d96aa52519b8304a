//! OffsetCommit and OffsetFetch. From version 9 on they contain the epoch of a KIP-848 member, from version 10 on the topics' ids
//! instead of their names.

use super::field::message;
use super::{ApiKey, Body, ErrorCode};

message! {
    /// An offset to commit.
    pub struct OffsetCommitPartition {
        /// The partition.
        partition_index: i32 [0..],
        /// The next offset to read.
        committed_offset: i64 [0..],
        /// The leader epoch of the last record read, or -1.
        committed_leader_epoch: i32 [6..] = -1,
        /// The metadata of the commit.
        committed_metadata: Option<String> [0..],
    }

    /// The offsets of one topic.
    pub struct OffsetCommitTopic {
        /// The topic, before version 10.
        name: String [0..=9],
        /// The topic's id, from version 10.
        topic_id: [u8; 16] [10..],
        /// Its partitions.
        partitions: Vec<OffsetCommitPartition> [0..],
    }

    /// The request.
    pub struct OffsetCommitRequest {
        /// The group.
        group_id: String [0..],
        /// The member's generation, or its epoch (KIP-848); negative for a commit from outside the group.
        generation_id: i32 [1..] = -1,
        /// The member; empty for a commit from outside the group.
        member_id: String [1..],
        /// The `group.instance.id` of a static member.
        group_instance_id: Option<String> [7..],
        /// The retention time of the offset, or -1 for the broker's setting.
        retention_time_ms: i64 [2..=4] = -1,
        /// The offsets to commit.
        topics: Vec<OffsetCommitTopic> [0..],
    }

    /// The result for one offset.
    pub struct OffsetCommitPartitionResponse {
        /// The partition.
        partition_index: i32 [0..],
        /// `NONE`, or the error.
        error_code: ErrorCode [0..],
    }

    /// The results for one topic.
    pub struct OffsetCommitTopicResponse {
        /// The topic, before version 10.
        name: String [0..=9],
        /// The topic's id, from version 10.
        topic_id: [u8; 16] [10..],
        /// Its partitions.
        partitions: Vec<OffsetCommitPartitionResponse> [0..],
    }

    /// The response.
    pub struct OffsetCommitResponse {
        /// The time for which the broker throttled the client, in milliseconds.
        throttle_time_ms: i32 [3..],
        /// One for each topic of the request.
        topics: Vec<OffsetCommitTopicResponse> [0..],
    }

    /// The partitions of one topic whose offsets are requested.
    pub struct OffsetFetchTopic {
        /// The topic, before version 10.
        name: String [0..=9],
        /// The topic's id, from version 10.
        topic_id: [u8; 16] [10..],
        /// Its partitions.
        partition_indexes: Vec<i32> [0..],
    }

    /// One group of a request for several.
    pub struct OffsetFetchGroup {
        /// The group.
        group_id: String [8..],
        /// The member (KIP-848); null for a fetch from outside the group.
        member_id: Option<String> [9..],
        /// The member's epoch; negative for a fetch from outside the group.
        member_epoch: i32 [9..] = -1,
        /// Null: all offsets of the group.
        topics: Option<Vec<OffsetFetchTopic>> [8..],
    }

    /// The request.
    pub struct OffsetFetchRequest {
        /// The group, before version 8.
        group_id: String [0..=7],
        /// Null (since version 2): all offsets of the group.
        topics: Option<Vec<OffsetFetchTopic>> [0..=7],
        /// The groups, from version 8.
        groups: Vec<OffsetFetchGroup> [8..],
        /// Whether to respond with UNSTABLE_OFFSET_COMMIT while a transaction has pending offsets (KIP-447).
        require_stable: bool [7..],
    }

    /// One offset.
    pub struct OffsetFetchPartitionResponse {
        /// The partition.
        partition_index: i32 [0..],
        /// The offset; -1 if there is none.
        committed_offset: i64 [0..],
        /// The leader epoch; -1 if unknown.
        committed_leader_epoch: i32 [5..] = -1,
        /// The metadata of the commit.
        metadata: Option<String> [0..],
        /// `NONE`, or the error.
        error_code: ErrorCode [0..],
    }

    /// The offsets of one topic.
    pub struct OffsetFetchTopicResponse {
        /// The topic, before version 10.
        name: String [0..=9],
        /// The topic's id, from version 10.
        topic_id: [u8; 16] [10..],
        /// Its partitions.
        partitions: Vec<OffsetFetchPartitionResponse> [0..],
    }

    /// One group of a response for several.
    pub struct OffsetFetchGroupResponse {
        /// The group.
        group_id: String [8..],
        /// Its offsets.
        topics: Vec<OffsetFetchTopicResponse> [8..],
        /// `NONE`, or the error.
        error_code: ErrorCode [8..],
    }

    /// The response.
    pub struct OffsetFetchResponse {
        /// The time for which the broker throttled the client, in milliseconds.
        throttle_time_ms: i32 [3..],
        /// The offsets, before version 8.
        topics: Vec<OffsetFetchTopicResponse> [0..=7],
        /// `NONE`, or the error, before version 8.
        error_code: ErrorCode [2..=7],
        /// The groups, from version 8.
        groups: Vec<OffsetFetchGroupResponse> [8..],
    }
}

impl Body for OffsetCommitRequest {
    const KEY: ApiKey = ApiKey::OffsetCommit;
}

impl Body for OffsetCommitResponse {
    const KEY: ApiKey = ApiKey::OffsetCommit;
}

impl Body for OffsetFetchRequest {
    const KEY: ApiKey = ApiKey::OffsetFetch;
}

impl Body for OffsetFetchResponse {
    const KEY: ApiKey = ApiKey::OffsetFetch;
}
