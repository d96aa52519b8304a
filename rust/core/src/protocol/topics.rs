//! The requests that create, extend, configure, empty and delete topics: CreateTopics, CreatePartitions, DeleteTopics,
//! DeleteRecords, DescribeConfigs, IncrementalAlterConfigs.

use super::ErrorCode;
use super::field::{bodies, message};

message! {
    /// CreateTopics: the request.
    pub struct CreateTopicsRequest {
        /// The topics.
        topics: Vec<CreatableTopic> [0..],
        /// The request's timeout, in milliseconds.
        timeout_ms: i32 [0..] = 60_000,
        /// Whether to validate the request only.
        validate_only: bool [1..],
    }

    /// One topic to create.
    pub struct CreatableTopic {
        /// Its name.
        name: String [0..],
        /// The number of partitions; -1 for the broker's default (version 4), or with `assignments`.
        num_partitions: i32 [0..],
        /// The number of replicas; -1 for the broker's default (version 4), or with `assignments`.
        replication_factor: i16 [0..],
        /// The replicas of each partition, if the client chooses them.
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

    /// CreateTopics: the response.
    pub struct CreateTopicsResponse {
        /// The time for which the broker throttled the client, in milliseconds.
        throttle_time_ms: i32 [2..],
        /// One result for each topic.
        topics: Vec<CreatableTopicResult> [0..],
    }

    /// The result for one topic.
    pub struct CreatableTopicResult {
        /// Its name.
        name: String [0..],
        /// The error.
        error_code: ErrorCode [0..],
        /// The error message.
        error_message: Option<String> [1..],
        /// The number of partitions.
        num_partitions: i32 [5..] = -1,
        /// The number of replicas of each partition.
        replication_factor: i16 [5..] = -1,
        /// Its settings, if the client is authorized to see them.
        configs: Option<Vec<CreatedTopicConfig>> [5..],
    }

    /// One setting of a new topic.
    pub struct CreatedTopicConfig {
        /// Its name.
        name: String [5..],
        /// Its value.
        value: Option<String> [5..],
        /// Whether it is read-only.
        read_only: bool [5..],
        /// The source of the value.
        config_source: i8 [5..] = -1,
        /// Whether the value is a secret.
        is_sensitive: bool [5..],
    }

    /// DeleteTopics: the request.
    pub struct DeleteTopicsRequest {
        /// The topics.
        topic_names: Vec<String> [0..],
        /// The request's timeout, in milliseconds.
        timeout_ms: i32 [0..],
    }

    /// DeleteTopics: the response.
    pub struct DeleteTopicsResponse {
        /// The time for which the broker throttled the client, in milliseconds.
        throttle_time_ms: i32 [1..],
        /// One result for each topic.
        responses: Vec<DeletableTopicResult> [0..],
    }

    /// The result for one topic.
    pub struct DeletableTopicResult {
        /// Its name.
        name: String [0..],
        /// The error.
        error_code: ErrorCode [0..],
    }

    /// DeleteRecords: the request (KIP-107).
    pub struct DeleteRecordsRequest {
        /// The topics.
        topics: Vec<DeleteRecordsTopic> [0..],
        /// The request's timeout, in milliseconds.
        timeout_ms: i32 [0..],
    }

    /// Partitions of one topic.
    pub struct DeleteRecordsTopic {
        /// Its name.
        name: String [0..],
        /// The partitions.
        partitions: Vec<DeleteRecordsPartition> [0..],
    }

    /// One partition whose oldest records are deleted.
    pub struct DeleteRecordsPartition {
        /// The partition.
        partition_index: i32 [0..],
        /// The first offset to keep; -1 deletes all records.
        offset: i64 [0..],
    }

    /// DeleteRecords: the response.
    pub struct DeleteRecordsResponse {
        /// The time for which the broker throttled the client, in milliseconds.
        throttle_time_ms: i32 [0..],
        /// One result for each topic.
        topics: Vec<DeleteRecordsTopicResult> [0..],
    }

    /// The results for the partitions of one topic.
    pub struct DeleteRecordsTopicResult {
        /// Its name.
        name: String [0..],
        /// One result for each partition.
        partitions: Vec<DeleteRecordsPartitionResult> [0..],
    }

    /// The result for one partition.
    pub struct DeleteRecordsPartitionResult {
        /// The partition.
        partition_index: i32 [0..],
        /// The first remaining offset; -1 after an error.
        low_watermark: i64 [0..] = -1,
        /// The error.
        error_code: ErrorCode [0..],
    }

    /// CreatePartitions: the request (KIP-195).
    pub struct CreatePartitionsRequest {
        /// The topics.
        topics: Vec<CreatePartitionsTopic> [0..],
        /// The request's timeout, in milliseconds.
        timeout_ms: i32 [0..],
        /// Whether to validate the request only.
        validate_only: bool [0..],
    }

    /// One topic with its new partition count.
    pub struct CreatePartitionsTopic {
        /// Its name.
        name: String [0..],
        /// The new partition count.
        count: i32 [0..],
        /// The replicas of the new partitions, if the client chooses them.
        assignments: Option<Vec<CreatePartitionsAssignment>> [0..],
    }

    /// The replicas of one new partition.
    pub struct CreatePartitionsAssignment {
        /// The brokers.
        broker_ids: Vec<i32> [0..],
    }

    /// CreatePartitions: the response.
    pub struct CreatePartitionsResponse {
        /// The time for which the broker throttled the client, in milliseconds.
        throttle_time_ms: i32 [0..],
        /// One result for each topic.
        results: Vec<CreatePartitionsTopicResult> [0..],
    }

    /// The result for one topic.
    pub struct CreatePartitionsTopicResult {
        /// Its name.
        name: String [0..],
        /// The error.
        error_code: ErrorCode [0..],
        /// The error message.
        error_message: Option<String> [0..],
    }

    /// DescribeConfigs: the request.
    pub struct DescribeConfigsRequest {
        /// The resources.
        resources: Vec<DescribeConfigsResource> [0..],
        /// Whether to list the synonyms: the settings that apply if this one is not set.
        include_synonyms: bool [1..],
        /// Whether to include the documentation of each setting.
        include_documentation: bool [3..],
    }

    /// One requested resource.
    pub struct DescribeConfigsResource {
        /// 2 is a topic, 4 a broker.
        resource_type: i8 [0..],
        /// The topic, or the broker's id.
        resource_name: String [0..],
        /// The settings; null for all.
        configuration_keys: Option<Vec<String>> [0..],
    }

    /// The settings.
    pub struct DescribeConfigsResponse {
        /// The time for which the broker throttled the client, in milliseconds.
        throttle_time_ms: i32 [0..],
        /// One result for each resource.
        results: Vec<DescribeConfigsResult> [0..],
    }

    /// The settings of one resource.
    pub struct DescribeConfigsResult {
        /// The error.
        error_code: ErrorCode [0..],
        /// The error message.
        error_message: Option<String> [0..],
        /// As in the request.
        resource_type: i8 [0..],
        /// As in the request.
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
        /// Whether it is read-only.
        read_only: bool [0..],
        /// Whether the value is the default.
        is_default: bool [..=0],
        /// The source of the value: 1 the topic, 5 the default.
        config_source: i8 [1..] = -1,
        /// Whether the value is a secret.
        is_sensitive: bool [0..],
        /// The synonyms: the settings that apply if this one is not set.
        synonyms: Vec<DescribedSynonym> [1..],
        /// 0 unknown, 2 a string, 3 an int, 5 a long.
        config_type: i8 [3..],
        /// Its documentation.
        documentation: Option<String> [3..],
    }

    /// A synonym of a setting.
    pub struct DescribedSynonym {
        /// Its name.
        name: String [1..],
        /// Its value.
        value: Option<String> [1..],
        /// The source of the value.
        source: i8 [1..],
    }

    /// IncrementalAlterConfigs: the request (KIP-339).
    pub struct IncrementalAlterConfigsRequest {
        /// The resources.
        resources: Vec<AlterConfigsResource> [0..],
        /// Whether to validate the request only.
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
        /// 0 sets the value, 1 resets it to the default, 2 appends to a list, 3 removes from a list.
        config_operation: i8 [0..],
        /// The value.
        value: Option<String> [0..],
    }

    /// IncrementalAlterConfigs: the response.
    pub struct IncrementalAlterConfigsResponse {
        /// The time for which the broker throttled the client, in milliseconds.
        throttle_time_ms: i32 [0..],
        /// One result for each resource.
        responses: Vec<AlterConfigsResourceResponse> [0..],
    }

    /// The result for one resource.
    pub struct AlterConfigsResourceResponse {
        /// The error.
        error_code: ErrorCode [0..],
        /// The error message.
        error_message: Option<String> [0..],
        /// As in the request.
        resource_type: i8 [0..],
        /// As in the request.
        resource_name: String [0..],
    }
}

impl DeleteRecordsPartition {
    /// The value of `offset` that deletes up to the end of the log.
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
