//! Produce, Fetch, ListOffsets, OffsetForLeaderEpoch, InitProducerId. Record batches are not decoded here.

use super::ErrorCode;
use super::field::{bodies, message};

message! {
    /// Produce: the request.
    pub struct ProduceRequest {
        /// The transaction that the batches belong to.
        transactional_id: Option<String> [3..],
        /// The replicas that must store the batches before the response: 1 the leader, -1 all in sync. 0: no response.
        acks: i16 [0..],
        /// The time to wait for the replicas, in milliseconds.
        timeout_ms: i32 [0..],
        /// The batches by topic.
        topic_data: Vec<TopicProduceData> [0..],
    }

    /// The batches of one topic.
    pub struct TopicProduceData {
        /// The topic.
        name: String [0..],
        /// The batches by partition.
        partition_data: Vec<PartitionProduceData> [0..],
    }

    /// The batch of one partition.
    pub struct PartitionProduceData {
        /// The partition.
        index: i32 [0..],
        /// One record batch.
        records: Option<Vec<u8>> [0..],
    }

    /// Produce: the response.
    pub struct ProduceResponse {
        /// The results by topic.
        responses: Vec<TopicProduceResponse> [0..],
        /// The time for which the broker throttled the client, in milliseconds.
        throttle_time_ms: i32 [1..],
    }

    /// The results for one topic.
    pub struct TopicProduceResponse {
        /// The topic.
        name: String [0..],
        /// The results by partition.
        partition_responses: Vec<PartitionProduceResponse> [0..],
    }

    /// The result for one partition.
    pub struct PartitionProduceResponse {
        /// The partition.
        index: i32 [0..],
        /// The error.
        error_code: ErrorCode [0..],
        /// The offset of the first record, -1 after an error.
        base_offset: i64 [0..] = -1,
        /// The broker's timestamp, -1 if the records keep the producer's.
        log_append_time_ms: i64 [2..] = -1,
        /// The first offset that is not deleted.
        log_start_offset: i64 [5..] = -1,
        /// The records that caused the error.
        record_errors: Vec<BatchIndexAndErrorMessage> [8..],
        /// The error message.
        error_message: Option<String> [8..],
    }

    /// A record that caused a batch to be refused.
    pub struct BatchIndexAndErrorMessage {
        /// Its index in the batch.
        batch_index: i32 [8..],
        /// The error message.
        batch_index_error_message: Option<String> [8..],
    }

    /// Fetch: the request.
    pub struct FetchRequest {
        /// -1 for a consumer.
        replica_id: i32 [0..] = -1,
        /// The time to wait for `min_bytes`, in milliseconds.
        max_wait_ms: i32 [0..],
        /// The number of bytes at which the broker responds before `max_wait_ms` has passed.
        min_bytes: i32 [0..],
        /// The largest number of bytes in the response; the first batch may be larger.
        max_bytes: i32 [3..] = i32::MAX,
        /// The isolation level: 0 reads all records, 1 only those of committed transactions.
        isolation_level: i8 [4..],
        /// The fetch session (KIP-227), 0 without one.
        session_id: i32 [7..],
        /// The session epoch: -1 for no session, 0 for a new one.
        session_epoch: i32 [7..] = -1,
        /// The partitions to read.
        topics: Vec<FetchTopic> [0..],
        /// The partitions to remove from the session.
        forgotten_topics_data: Vec<ForgottenTopic> [7..],
        /// The consumer's rack.
        rack_id: String [11..],
    }

    /// The partitions of one topic to read.
    pub struct FetchTopic {
        /// The topic.
        topic: String [0..],
        /// The partitions.
        partitions: Vec<FetchPartition> [0..],
    }

    /// One partition to read.
    pub struct FetchPartition {
        /// The partition.
        partition: i32 [0..],
        /// The leader epoch that the client knows, -1 when none.
        current_leader_epoch: i32 [9..] = -1,
        /// The first offset to read.
        fetch_offset: i64 [0..],
        /// The log start offset of a follower; -1 for a consumer.
        log_start_offset: i64 [5..] = -1,
        /// The largest number of bytes of this partition in the response.
        partition_max_bytes: i32 [0..],
    }

    /// The partitions to remove from the session.
    pub struct ForgottenTopic {
        /// The topic.
        topic: String [7..],
        /// The partitions.
        partitions: Vec<i32> [7..],
    }

    /// Fetch: the response.
    pub struct FetchResponse {
        /// The time for which the broker throttled the client, in milliseconds.
        throttle_time_ms: i32 [1..],
        /// The error of the whole request.
        error_code: ErrorCode [7..],
        /// The fetch session, 0 without one.
        session_id: i32 [7..],
        /// The results by topic.
        responses: Vec<FetchableTopicResponse> [0..],
    }

    /// The results for one topic.
    pub struct FetchableTopicResponse {
        /// The topic.
        topic: String [0..],
        /// The results by partition.
        partitions: Vec<FetchedPartition> [0..],
    }

    /// The result for one partition.
    pub struct FetchedPartition {
        /// The partition.
        partition_index: i32 [0..],
        /// The error.
        error_code: ErrorCode [0..],
        /// The high watermark: the offset after the last record that all in-sync replicas have. -1 after an error.
        high_watermark: i64 [0..] = -1,
        /// The last stable offset: no open transaction has a record before it. -1 after an error.
        last_stable_offset: i64 [4..] = -1,
        /// The first offset that is not deleted, -1 after an error.
        log_start_offset: i64 [5..] = -1,
        /// The aborted transactions in the records.
        aborted_transactions: Option<Vec<AbortedTransaction>> [4..],
        /// The replica to read from instead, -1 for none.
        preferred_read_replica: i32 [11..] = -1,
        /// The record batches.
        records: Option<Vec<u8>> [0..],
    }

    /// An aborted transaction.
    pub struct AbortedTransaction {
        /// The producer id.
        producer_id: i64 [4..],
        /// The offset of its first record.
        first_offset: i64 [4..],
    }

    /// ListOffsets: the request.
    pub struct ListOffsetsRequest {
        /// -1 for a consumer.
        replica_id: i32 [0..] = -1,
        /// The isolation level: 0 counts all records, 1 only those of committed transactions.
        isolation_level: i8 [2..],
        /// The topics.
        topics: Vec<ListOffsetsTopic> [0..],
    }

    /// One requested topic.
    pub struct ListOffsetsTopic {
        /// The topic.
        name: String [0..],
        /// The partitions.
        partitions: Vec<ListOffsetsPartition> [0..],
    }

    /// One requested partition.
    pub struct ListOffsetsPartition {
        /// The partition.
        partition_index: i32 [0..],
        /// The leader epoch that the client knows, -1 when none.
        current_leader_epoch: i32 [4..] = -1,
        /// Milliseconds since 1970, or a symbolic time such as [`ListOffsetsPartition::LATEST`].
        timestamp: i64 [0..],
    }

    /// ListOffsets: the response.
    pub struct ListOffsetsResponse {
        /// The time for which the broker throttled the client, in milliseconds.
        throttle_time_ms: i32 [2..],
        /// The results by topic.
        topics: Vec<ListOffsetsTopicResponse> [0..],
    }

    /// The results for one topic.
    pub struct ListOffsetsTopicResponse {
        /// The topic.
        name: String [0..],
        /// The results by partition.
        partitions: Vec<ListOffsetsPartitionResponse> [0..],
    }

    /// The result for one partition.
    pub struct ListOffsetsPartitionResponse {
        /// The partition.
        partition_index: i32 [0..],
        /// The error.
        error_code: ErrorCode [0..],
        /// The record's time in milliseconds since 1970. -1 for a symbolic time, and if no record is late enough.
        timestamp: i64 [1..] = -1,
        /// The offset; -1 if no record is late enough.
        offset: i64 [1..] = -1,
        /// The record's leader epoch, -1 when unknown.
        leader_epoch: i32 [4..] = -1,
    }

    /// OffsetForLeaderEpoch: the request for the end offsets of leader epochs (KIP-101, KIP-320).
    pub struct OffsetForLeaderEpochRequest {
        /// -2 for a consumer.
        replica_id: i32 [3..] = -2,
        /// The topics.
        topics: Vec<OffsetForLeaderTopic> [0..],
    }

    /// One requested topic.
    pub struct OffsetForLeaderTopic {
        /// The topic.
        topic: String [0..],
        /// The partitions.
        partitions: Vec<OffsetForLeaderPartition> [0..],
    }

    /// One requested partition.
    pub struct OffsetForLeaderPartition {
        /// The partition.
        partition: i32 [0..],
        /// The leader epoch that the client knows, -1 when none.
        current_leader_epoch: i32 [2..] = -1,
        /// The requested epoch.
        leader_epoch: i32 [0..],
    }

    /// OffsetForLeaderEpoch: the response.
    pub struct OffsetForLeaderEpochResponse {
        /// The time for which the broker throttled the client, in milliseconds.
        throttle_time_ms: i32 [2..],
        /// The results by topic.
        topics: Vec<OffsetForLeaderTopicResult> [0..],
    }

    /// The results for one topic.
    pub struct OffsetForLeaderTopicResult {
        /// The topic.
        topic: String [0..],
        /// The results by partition.
        partitions: Vec<EpochEndOffset> [0..],
    }

    /// The result for one partition.
    pub struct EpochEndOffset {
        /// The error.
        error_code: ErrorCode [0..],
        /// The partition.
        partition: i32 [0..],
        /// The largest epoch that is not above the requested one, -1 if there is none.
        leader_epoch: i32 [1..] = -1,
        /// The offset after the last record of that epoch, -1 if there is none.
        end_offset: i64 [0..] = -1,
    }

    /// InitProducerId: the request (KIP-98).
    pub struct InitProducerIdRequest {
        /// Null without transactions.
        transactional_id: Option<String> [0..],
        /// The time after which an idle transaction is aborted, in milliseconds.
        transaction_timeout_ms: i32 [0..],
        /// The current producer id, -1 for none.
        producer_id: i64 [3..] = -1,
        /// Its epoch, -1 for none.
        producer_epoch: i16 [3..] = -1,
    }

    /// InitProducerId: the response.
    pub struct InitProducerIdResponse {
        /// The time for which the broker throttled the client, in milliseconds.
        throttle_time_ms: i32 [0..],
        /// The error.
        error_code: ErrorCode [0..],
        /// The producer id, -1 after an error.
        producer_id: i64 [0..] = -1,
        /// Its epoch, -1 after an error.
        producer_epoch: i16 [0..] = -1,
    }
}

impl ListOffsetsPartition {
    /// Requests the offset after the last record.
    pub const LATEST: i64 = -1;
    /// Requests the first offset that is not deleted.
    pub const EARLIEST: i64 = -2;
    /// Requests the record with the latest time (version 7, KIP-734).
    pub const MAX_TIMESTAMP: i64 = -3;
}

bodies! {
    Produce: ProduceRequest, ProduceResponse;
    Fetch: FetchRequest, FetchResponse;
    ListOffsets: ListOffsetsRequest, ListOffsetsResponse;
    OffsetForLeaderEpoch: OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse;
    InitProducerId: InitProducerIdRequest, InitProducerIdResponse;
}
