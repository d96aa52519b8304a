//! Topics made, grown, configured, emptied and deleted: CreateTopics, CreatePartitions, DeleteTopics, DeleteRecords,
//! DescribeConfigs, IncrementalAlterConfigs.

use super::ErrorCode;
use super::field::{bodies, message};

message! {
    /// Make topics.
    pub struct CreateTopicsRequest {
        /// The topics.
        topics: Vec<CreatableTopic> [0..],
        /// How long to wait, in milliseconds.
        timeout_ms: i32 [0..] = 60_000,
        /// Check only.
        validate_only: bool [1..],
    }

    /// One topic to make.
    pub struct CreatableTopic {
        /// Its name.
        name: String [0..],
        /// How many partitions; -1 for the broker's default (version 4), or with `assignments`.
        num_partitions: i32 [0..],
        /// How many replicas; -1 for the broker's default (version 4), or with `assignments`.
        replication_factor: i16 [0..],
        /// The replicas of each partition, when the client chooses them.
        assignments: Vec<CreatableReplicaAssignment> [0..],
        /// Its settings.
        configs: Vec<CreatableTopicConfig> [0..],
    }

    /// The replicas of one partition.
    pub struct CreatableReplicaAssignment {
        /// The partition.
        partition_index: i32 [0..],
        /// The brokers.
        broker_ids: Vec<i32> [0..],
    }

    /// One setting.
    pub struct CreatableTopicConfig {
        /// Its name.
        name: String [0..],
        /// Its value.
        value: Option<String> [0..],
    }

    /// What became of them.
    pub struct CreateTopicsResponse {
        /// How long the client was held back, in milliseconds.
        throttle_time_ms: i32 [2..],
        /// One answer for each topic.
        topics: Vec<CreatableTopicResult> [0..],
    }

    /// What became of one topic.
    pub struct CreatableTopicResult {
        /// Its name.
        name: String [0..],
        /// The error.
        error_code: ErrorCode [0..],
        /// More about it.
        error_message: Option<String> [1..],
        /// How many partitions it has.
        num_partitions: i32 [5..] = -1,
        /// How many replicas each has.
        replication_factor: i16 [5..] = -1,
        /// Its settings, where the client may see them.
        configs: Option<Vec<CreatedTopicConfig>> [5..],
    }

    /// One setting of a new topic.
    pub struct CreatedTopicConfig {
        /// Its name.
        name: String [5..],
        /// Its value.
        value: Option<String> [5..],
        /// Whether it cannot be changed.
        read_only: bool [5..],
        /// Where the value comes from.
        config_source: i8 [5..] = -1,
        /// Whether the value is a secret.
        is_sensitive: bool [5..],
    }

    /// Delete topics.
    pub struct DeleteTopicsRequest {
        /// The topics.
        topic_names: Vec<String> [0..],
        /// How long to wait, in milliseconds.
        timeout_ms: i32 [0..],
    }

    /// What became of them.
    pub struct DeleteTopicsResponse {
        /// How long the client was held back, in milliseconds.
        throttle_time_ms: i32 [1..],
        /// One answer for each topic.
        responses: Vec<DeletableTopicResult> [0..],
    }

    /// What became of one topic.
    pub struct DeletableTopicResult {
        /// Its name.
        name: String [0..],
        /// The error.
        error_code: ErrorCode [0..],
    }

    /// Delete the oldest records of partitions (KIP-107).
    pub struct DeleteRecordsRequest {
        /// The topics.
        topics: Vec<DeleteRecordsTopic> [0..],
        /// How long to wait, in milliseconds.
        timeout_ms: i32 [0..],
    }

    /// Partitions of one topic.
    pub struct DeleteRecordsTopic {
        /// Its name.
        name: String [0..],
        /// The partitions.
        partitions: Vec<DeleteRecordsPartition> [0..],
    }

    /// One partition to shorten.
    pub struct DeleteRecordsPartition {
        /// The partition.
        partition_index: i32 [0..],
        /// The first offset to stay; -1 deletes everything.
        offset: i64 [0..],
    }

    /// What became of them.
    pub struct DeleteRecordsResponse {
        /// How long the client was held back, in milliseconds.
        throttle_time_ms: i32 [0..],
        /// One answer for each topic.
        topics: Vec<DeleteRecordsTopicResult> [0..],
    }

    /// What became of the partitions of one topic.
    pub struct DeleteRecordsTopicResult {
        /// Its name.
        name: String [0..],
        /// One answer for each partition.
        partitions: Vec<DeleteRecordsPartitionResult> [0..],
    }

    /// What became of one partition.
    pub struct DeleteRecordsPartitionResult {
        /// The partition.
        partition_index: i32 [0..],
        /// The first offset that is left; -1 with an error.
        low_watermark: i64 [0..] = -1,
        /// The error.
        error_code: ErrorCode [0..],
    }

    /// Give topics more partitions (KIP-195).
    pub struct CreatePartitionsRequest {
        /// The topics.
        topics: Vec<CreatePartitionsTopic> [0..],
        /// How long to wait, in milliseconds.
        timeout_ms: i32 [0..],
        /// Check only.
        validate_only: bool [0..],
    }

    /// One topic to grow.
    pub struct CreatePartitionsTopic {
        /// Its name.
        name: String [0..],
        /// How many partitions it shall have in all.
        count: i32 [0..],
        /// The replicas of the new ones, when the client chooses them.
        assignments: Option<Vec<CreatePartitionsAssignment>> [0..],
    }

    /// The replicas of one new partition.
    pub struct CreatePartitionsAssignment {
        /// The brokers.
        broker_ids: Vec<i32> [0..],
    }

    /// What became of them.
    pub struct CreatePartitionsResponse {
        /// How long the client was held back, in milliseconds.
        throttle_time_ms: i32 [0..],
        /// One answer for each topic.
        results: Vec<CreatePartitionsTopicResult> [0..],
    }

    /// What became of one topic.
    pub struct CreatePartitionsTopicResult {
        /// Its name.
        name: String [0..],
        /// The error.
        error_code: ErrorCode [0..],
        /// More about it.
        error_message: Option<String> [0..],
    }

    /// Which settings does this have?
    pub struct DescribeConfigsRequest {
        /// The resources.
        resources: Vec<DescribeConfigsResource> [0..],
        /// Whether to name the settings that a value falls back to.
        include_synonyms: bool [1..],
        /// Whether to explain each setting.
        include_documentation: bool [3..],
    }

    /// One resource asked for.
    pub struct DescribeConfigsResource {
        /// 2 is a topic, 4 a broker.
        resource_type: i8 [0..],
        /// The topic, or the broker's id.
        resource_name: String [0..],
        /// The settings; null is all of them.
        configuration_keys: Option<Vec<String>> [0..],
    }

    /// The settings.
    pub struct DescribeConfigsResponse {
        /// How long the client was held back, in milliseconds.
        throttle_time_ms: i32 [0..],
        /// One answer for each resource.
        results: Vec<DescribeConfigsResult> [0..],
    }

    /// The settings of one resource.
    pub struct DescribeConfigsResult {
        /// The error.
        error_code: ErrorCode [0..],
        /// More about it.
        error_message: Option<String> [0..],
        /// As asked.
        resource_type: i8 [0..],
        /// As asked.
        resource_name: String [0..],
        /// The settings.
        configs: Vec<DescribedConfig> [0..],
    }

    /// One setting.
    pub struct DescribedConfig {
        /// Its name.
        name: String [0..],
        /// Its value.
        value: Option<String> [0..],
        /// Whether it cannot be changed.
        read_only: bool [0..],
        /// Whether nobody set it.
        is_default: bool [..=0],
        /// Where the value comes from: 1 the topic, 5 the default.
        config_source: i8 [1..] = -1,
        /// Whether the value is a secret.
        is_sensitive: bool [0..],
        /// The settings that the value falls back to.
        synonyms: Vec<DescribedSynonym> [1..],
        /// 0 unknown, 2 a string, 3 an int, 5 a long.
        config_type: i8 [3..],
        /// What it means.
        documentation: Option<String> [3..],
    }

    /// A setting that a value falls back to.
    pub struct DescribedSynonym {
        /// Its name.
        name: String [1..],
        /// Its value.
        value: Option<String> [1..],
        /// Where the value comes from.
        source: i8 [1..],
    }

    /// Change settings (KIP-339).
    pub struct IncrementalAlterConfigsRequest {
        /// The resources.
        resources: Vec<AlterConfigsResource> [0..],
        /// Check only.
        validate_only: bool [0..],
    }

    /// One resource to change.
    pub struct AlterConfigsResource {
        /// 2 is a topic, 4 a broker.
        resource_type: i8 [0..],
        /// The topic, or the broker's id.
        resource_name: String [0..],
        /// The changes.
        configs: Vec<AlterableConfig> [0..],
    }

    /// One change.
    pub struct AlterableConfig {
        /// The setting.
        name: String [0..],
        /// 0 sets it, 1 takes it back to the default, 2 and 3 add to and take from a list.
        config_operation: i8 [0..],
        /// The value.
        value: Option<String> [0..],
    }

    /// What became of them.
    pub struct IncrementalAlterConfigsResponse {
        /// How long the client was held back, in milliseconds.
        throttle_time_ms: i32 [0..],
        /// One answer for each resource.
        responses: Vec<AlterConfigsResourceResponse> [0..],
    }

    /// What became of one resource.
    pub struct AlterConfigsResourceResponse {
        /// The error.
        error_code: ErrorCode [0..],
        /// More about it.
        error_message: Option<String> [0..],
        /// As asked.
        resource_type: i8 [0..],
        /// As asked.
        resource_name: String [0..],
    }
}

impl DeleteRecordsPartition {
    /// As the offset: up to the end of the log.
    pub const EVERYTHING: i64 = -1;
}

bodies! {
    CreateTopics: CreateTopicsRequest, CreateTopicsResponse;
    DeleteTopics: DeleteTopicsRequest, DeleteTopicsResponse;
    DeleteRecords: DeleteRecordsRequest, DeleteRecordsResponse;
    CreatePartitions: CreatePartitionsRequest, CreatePartitionsResponse;
    DescribeConfigs: DescribeConfigsRequest, DescribeConfigsResponse;
    IncrementalAlterConfigs: IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse;
}
