//! OffsetCommit and OffsetFetch.

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
        /// Anything the member wants to remember.
        committed_metadata: Option<String> [0..],
    }

    /// The offsets of one topic.
    pub struct OffsetCommitTopic {
        /// The topic.
        name: String [0..],
        /// Its partitions.
        partitions: Vec<OffsetCommitPartition> [0..],
    }

    /// The request.
    pub struct OffsetCommitRequest {
        /// The group.
        group_id: String [0..],
        /// The member's generation; negative for a commit from outside the group.
        generation_id: i32 [1..] = -1,
        /// The member; empty for a commit from outside the group.
        member_id: String [1..],
        /// Set for static members.
        group_instance_id: Option<String> [7..],
        /// How long to keep the offset, or -1 for the broker's setting.
        retention_time_ms: i64 [2..=4] = -1,
        /// What to commit.
        topics: Vec<OffsetCommitTopic> [0..],
    }

    /// What became of one offset.
    pub struct OffsetCommitPartitionResponse {
        /// The partition.
        partition_index: i32 [0..],
        /// Success or why not.
        error_code: ErrorCode [0..],
    }

    /// What became of the offsets of one topic.
    pub struct OffsetCommitTopicResponse {
        /// The topic.
        name: String [0..],
        /// Its partitions.
        partitions: Vec<OffsetCommitPartitionResponse> [0..],
    }

    /// The response.
    pub struct OffsetCommitResponse {
        /// How long the broker throttled the client.
        throttle_time_ms: i32 [3..],
        /// One for each topic of the request.
        topics: Vec<OffsetCommitTopicResponse> [0..],
    }

    /// The partitions of one topic whose offsets are asked for.
    pub struct OffsetFetchTopic {
        /// The topic.
        name: String [0..],
        /// Its partitions.
        partition_indexes: Vec<i32> [0..],
    }

    /// One group of a request for several.
    pub struct OffsetFetchGroup {
        /// The group.
        group_id: String [8..],
        /// Null: every offset the group has.
        topics: Option<Vec<OffsetFetchTopic>> [8..],
    }

    /// The request.
    pub struct OffsetFetchRequest {
        /// The group, before version 8.
        group_id: String [0..=7],
        /// Null (from version 2): every offset the group has.
        topics: Option<Vec<OffsetFetchTopic>> [0..=7],
        /// The groups, from version 8.
        groups: Vec<OffsetFetchGroup> [8..],
        /// Answer UNSTABLE_OFFSET_COMMIT while a transaction has offsets pending (KIP-447).
        require_stable: bool [7..],
    }

    /// One offset.
    pub struct OffsetFetchPartitionResponse {
        /// The partition.
        partition_index: i32 [0..],
        /// -1 when there is none.
        committed_offset: i64 [0..],
        /// -1 when unknown.
        committed_leader_epoch: i32 [5..] = -1,
        /// As committed.
        metadata: Option<String> [0..],
        /// Success or why not.
        error_code: ErrorCode [0..],
    }

    /// The offsets of one topic.
    pub struct OffsetFetchTopicResponse {
        /// The topic.
        name: String [0..],
        /// Its partitions.
        partitions: Vec<OffsetFetchPartitionResponse> [0..],
    }

    /// One group of a response for several.
    pub struct OffsetFetchGroupResponse {
        /// The group.
        group_id: String [8..],
        /// Its offsets.
        topics: Vec<OffsetFetchTopicResponse> [8..],
        /// Success or why not.
        error_code: ErrorCode [8..],
    }

    /// The response.
    pub struct OffsetFetchResponse {
        /// How long the broker throttled the client.
        throttle_time_ms: i32 [3..],
        /// The offsets, before version 8.
        topics: Vec<OffsetFetchTopicResponse> [0..=7],
        /// Success or why not, before version 8.
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
