//! The data path: Produce, Fetch, ListOffsets, OffsetForLeaderEpoch, InitProducerId. Record batches stay bytes here.

use super::ErrorCode;
use super::field::{bodies, message};

message! {
    /// Append record batches.
    pub struct ProduceRequest {
        /// The transaction that the batches belong to.
        transactional_id: Option<String> [3..],
        /// How many replicas must have them before the answer: 0 (no answer at all), 1 or -1 (all in sync).
        acks: i16 [0..],
        /// How long to wait for the replicas, in milliseconds.
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

    /// Where the batches went.
    pub struct ProduceResponse {
        /// The answers by topic.
        responses: Vec<TopicProduceResponse> [0..],
        /// How long the client was held back, in milliseconds.
        throttle_time_ms: i32 [1..],
    }

    /// The answers of one topic.
    pub struct TopicProduceResponse {
        /// The topic.
        name: String [0..],
        /// The answers by partition.
        partition_responses: Vec<PartitionProduceResponse> [0..],
    }

    /// The answer of one partition.
    pub struct PartitionProduceResponse {
        /// The partition.
        index: i32 [0..],
        /// The error.
        error_code: ErrorCode [0..],
        /// The offset of the first record, -1 after an error.
        base_offset: i64 [0..] = -1,
        /// The broker's timestamp, -1 where the producer's counts.
        log_append_time_ms: i64 [2..] = -1,
        /// The first offset that the partition still has.
        log_start_offset: i64 [5..] = -1,
        /// The records that caused the error.
        record_errors: Vec<BatchIndexAndErrorMessage> [8..],
        /// More about the error.
        error_message: Option<String> [8..],
    }

    /// A record that caused a batch to be refused.
    pub struct BatchIndexAndErrorMessage {
        /// Its index in the batch.
        batch_index: i32 [8..],
        /// What is wrong with it.
        batch_index_error_message: Option<String> [8..],
    }

    /// Read record batches.
    pub struct FetchRequest {
        /// -1 for a consumer.
        replica_id: i32 [0..] = -1,
        /// How long to wait for `min_bytes`, in milliseconds.
        max_wait_ms: i32 [0..],
        /// How many bytes are worth an answer before `max_wait_ms` has passed.
        min_bytes: i32 [0..],
        /// How many bytes to answer at most; the first batch is answered whatever its size.
        max_bytes: i32 [3..] = i32::MAX,
        /// 0 reads everything, 1 only committed transactions.
        isolation_level: i8 [4..],
        /// The fetch session (KIP-227), 0 without one.
        session_id: i32 [7..],
        /// -1 asks for no session, 0 for a new one.
        session_epoch: i32 [7..] = -1,
        /// What to read.
        topics: Vec<FetchTopic> [0..],
        /// What to drop from the session.
        forgotten_topics_data: Vec<ForgottenTopic> [7..],
        /// The consumer's rack.
        rack_id: String [11..],
    }

    /// What to read of one topic.
    pub struct FetchTopic {
        /// The topic.
        topic: String [0..],
        /// The partitions.
        partitions: Vec<FetchPartition> [0..],
    }

    /// What to read of one partition.
    pub struct FetchPartition {
        /// The partition.
        partition: i32 [0..],
        /// The leader epoch that the client knows, -1 when none.
        current_leader_epoch: i32 [9..] = -1,
        /// The offset to start at.
        fetch_offset: i64 [0..],
        /// For followers.
        log_start_offset: i64 [5..] = -1,
        /// How many bytes of this partition to answer at most.
        partition_max_bytes: i32 [0..],
    }

    /// What to drop from the session.
    pub struct ForgottenTopic {
        /// The topic.
        topic: String [7..],
        /// The partitions.
        partitions: Vec<i32> [7..],
    }

    /// The record batches read.
    pub struct FetchResponse {
        /// How long the client was held back, in milliseconds.
        throttle_time_ms: i32 [1..],
        /// The error of the whole request.
        error_code: ErrorCode [7..],
        /// The fetch session, 0 without one.
        session_id: i32 [7..],
        /// The answers by topic.
        responses: Vec<FetchableTopicResponse> [0..],
    }

    /// The answers of one topic.
    pub struct FetchableTopicResponse {
        /// The topic.
        topic: String [0..],
        /// The answers by partition.
        partitions: Vec<FetchedPartition> [0..],
    }

    /// The answer of one partition.
    pub struct FetchedPartition {
        /// The partition.
        partition_index: i32 [0..],
        /// The error.
        error_code: ErrorCode [0..],
        /// The offset behind the last record that all replicas in sync have, -1 after an error.
        high_watermark: i64 [0..] = -1,
        /// The offset behind the last record whose transaction is decided, -1 after an error.
        last_stable_offset: i64 [4..] = -1,
        /// The first offset that the partition still has, -1 after an error.
        log_start_offset: i64 [5..] = -1,
        /// The aborted transactions among the records.
        aborted_transactions: Option<Vec<AbortedTransaction>> [4..],
        /// The replica to read from instead, -1 for none.
        preferred_read_replica: i32 [11..] = -1,
        /// The record batches.
        records: Option<Vec<u8>> [0..],
    }

    /// A transaction whose records do not count.
    pub struct AbortedTransaction {
        /// Its producer.
        producer_id: i64 [4..],
        /// Its first record.
        first_offset: i64 [4..],
    }

    /// Which offset has this time?
    pub struct ListOffsetsRequest {
        /// -1 for a consumer.
        replica_id: i32 [0..] = -1,
        /// 0 counts everything, 1 only committed transactions.
        isolation_level: i8 [2..],
        /// The topics.
        topics: Vec<ListOffsetsTopic> [0..],
    }

    /// One topic asked for.
    pub struct ListOffsetsTopic {
        /// The topic.
        name: String [0..],
        /// The partitions.
        partitions: Vec<ListOffsetsPartition> [0..],
    }

    /// One partition asked for.
    pub struct ListOffsetsPartition {
        /// The partition.
        partition_index: i32 [0..],
        /// The leader epoch that the client knows, -1 when none.
        current_leader_epoch: i32 [4..] = -1,
        /// Milliseconds since 1970, or one of [`ListOffsetsPartition::LATEST`] and its kin.
        timestamp: i64 [0..],
    }

    /// The offsets.
    pub struct ListOffsetsResponse {
        /// How long the client was held back, in milliseconds.
        throttle_time_ms: i32 [2..],
        /// The answers by topic.
        topics: Vec<ListOffsetsTopicResponse> [0..],
    }

    /// The answers of one topic.
    pub struct ListOffsetsTopicResponse {
        /// The topic.
        name: String [0..],
        /// The answers by partition.
        partitions: Vec<ListOffsetsPartitionResponse> [0..],
    }

    /// The answer of one partition.
    pub struct ListOffsetsPartitionResponse {
        /// The partition.
        partition_index: i32 [0..],
        /// The error.
        error_code: ErrorCode [0..],
        /// The record's time in milliseconds since 1970; -1 for the symbolic times, and where no record is so late.
        timestamp: i64 [1..] = -1,
        /// The offset, -1 where no record is so late.
        offset: i64 [1..] = -1,
        /// The record's leader epoch, -1 when unknown.
        leader_epoch: i32 [4..] = -1,
    }

    /// Where does this leader's log end? (KIP-101, KIP-320)
    pub struct OffsetForLeaderEpochRequest {
        /// -2 for a consumer.
        replica_id: i32 [3..] = -2,
        /// The topics.
        topics: Vec<OffsetForLeaderTopic> [0..],
    }

    /// One topic asked for.
    pub struct OffsetForLeaderTopic {
        /// The topic.
        topic: String [0..],
        /// The partitions.
        partitions: Vec<OffsetForLeaderPartition> [0..],
    }

    /// One partition asked for.
    pub struct OffsetForLeaderPartition {
        /// The partition.
        partition: i32 [0..],
        /// The leader epoch that the client knows, -1 when none.
        current_leader_epoch: i32 [2..] = -1,
        /// The epoch asked for.
        leader_epoch: i32 [0..],
    }

    /// The ends of the epochs.
    pub struct OffsetForLeaderEpochResponse {
        /// How long the client was held back, in milliseconds.
        throttle_time_ms: i32 [2..],
        /// The answers by topic.
        topics: Vec<OffsetForLeaderTopicResult> [0..],
    }

    /// The answers of one topic.
    pub struct OffsetForLeaderTopicResult {
        /// The topic.
        topic: String [0..],
        /// The answers by partition.
        partitions: Vec<EpochEndOffset> [0..],
    }

    /// The answer of one partition.
    pub struct EpochEndOffset {
        /// The error.
        error_code: ErrorCode [0..],
        /// The partition.
        partition: i32 [0..],
        /// The largest epoch not above the one asked for, -1 when there is none.
        leader_epoch: i32 [1..] = -1,
        /// The offset behind that epoch's last record, -1 when there is none.
        end_offset: i64 [0..] = -1,
    }

    /// Give me an id to number my batches with (KIP-98).
    pub struct InitProducerIdRequest {
        /// Null without transactions.
        transactional_id: Option<String> [0..],
        /// When to abort an idle transaction, in milliseconds.
        transaction_timeout_ms: i32 [0..],
        /// The id to go on with, -1 for none.
        producer_id: i64 [3..] = -1,
        /// Its epoch, -1 for none.
        producer_epoch: i16 [3..] = -1,
    }

    /// The id.
    pub struct InitProducerIdResponse {
        /// How long the client was held back, in milliseconds.
        throttle_time_ms: i32 [0..],
        /// The error.
        error_code: ErrorCode [0..],
        /// The id, -1 after an error.
        producer_id: i64 [0..] = -1,
        /// Its epoch, -1 after an error.
        producer_epoch: i16 [0..] = -1,
    }
}

impl ListOffsetsPartition {
    /// Asks for the offset behind the last record.
    pub const LATEST: i64 = -1;
    /// Asks for the first offset that the partition still has.
    pub const EARLIEST: i64 = -2;
    /// Asks for the record with the latest time (version 7, KIP-734).
    pub const MAX_TIMESTAMP: i64 = -3;
}

bodies! {
    Produce: ProduceRequest, ProduceResponse;
    Fetch: FetchRequest, FetchResponse;
    ListOffsets: ListOffsetsRequest, ListOffsetsResponse;
    OffsetForLeaderEpoch: OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse;
    InitProducerId: InitProducerIdRequest, InitProducerIdResponse;
}
