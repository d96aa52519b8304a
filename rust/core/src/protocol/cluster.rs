//! The first requests of a client: ApiVersions, Metadata, FindCoordinator.

use super::ErrorCode;
use super::field::{bodies, message};

message! {
    /// ApiVersions: the request (KIP-35; the client's name since KIP-511).
    pub struct ApiVersionsRequest {
        /// The client library.
        client_software_name: String [3..],
        /// Its version.
        client_software_version: String [3..],
    }

    /// ApiVersions: the response. To an unsupported version a broker responds in version 0 with UNSUPPORTED_VERSION.
    pub struct ApiVersionsResponse {
        /// The error.
        error_code: ErrorCode [0..],
        /// The version ranges.
        api_keys: Vec<ApiVersion> [0..],
        /// The time for which the broker throttled the client, in milliseconds.
        throttle_time_ms: i32 [1..],
    }

    /// The versions of one request.
    pub struct ApiVersion {
        /// The API key; it may be unknown here.
        api_key: i16 [0..],
        /// The lowest version.
        min_version: i16 [0..],
        /// The highest version.
        max_version: i16 [0..],
    }

    /// Metadata: the request.
    pub struct MetadataRequest {
        /// The topics. Null means all topics; in version 0 the empty list does.
        topics: Option<Vec<MetadataRequestTopic>> [0..],
        /// Whether missing topics may be created.
        allow_auto_topic_creation: bool [4..] = true,
        /// Whether to include the client's authorized operations on the cluster.
        include_cluster_authorized_operations: bool [8..=10],
        /// Whether to include the client's authorized operations on each topic.
        include_topic_authorized_operations: bool [8..],
    }

    /// One requested topic.
    pub struct MetadataRequestTopic {
        /// Its id; all zero to request it by name.
        topic_id: [u8; 16] [10..],
        /// Its name. Null, since version 10, requests it by id.
        name: Option<String> [0..],
    }

    /// Metadata: the response.
    pub struct MetadataResponse {
        /// The time for which the broker throttled the client, in milliseconds.
        throttle_time_ms: i32 [3..],
        /// Every live broker.
        brokers: Vec<MetadataBroker> [0..],
        /// The cluster's id.
        cluster_id: Option<String> [2..],
        /// The controller's node id, -1 when unknown.
        controller_id: i32 [1..] = -1,
        /// The topics.
        topics: Vec<MetadataTopic> [0..],
        /// A bit set; the smallest integer if it was not requested.
        cluster_authorized_operations: i32 [8..=10] = i32::MIN,
    }

    /// One broker.
    pub struct MetadataBroker {
        /// Its node id.
        node_id: i32 [0..],
        /// Its address for clients.
        host: String [0..],
        /// Its address for clients.
        port: i32 [0..],
        /// Its rack.
        rack: Option<String> [1..],
    }

    /// One topic.
    pub struct MetadataTopic {
        /// Whether the topic could be described.
        error_code: ErrorCode [0..],
        /// Its name. Null, since version 12, answers the request for an id that is unknown.
        name: Option<String> [0..],
        /// Its id (KIP-516); all zero when unknown.
        topic_id: [u8; 16] [10..],
        /// Whether it is an internal topic of Kafka.
        is_internal: bool [1..],
        /// Its partitions, in any order.
        partitions: Vec<MetadataPartition> [0..],
        /// A bit set; the smallest integer if it was not requested.
        topic_authorized_operations: i32 [8..] = i32::MIN,
    }

    /// One partition.
    pub struct MetadataPartition {
        /// Whether it has a leader.
        error_code: ErrorCode [0..],
        /// Its index in the topic.
        partition_index: i32 [0..],
        /// The leader's node id, -1 without one.
        leader_id: i32 [0..],
        /// The leader's epoch, -1 when unknown.
        leader_epoch: i32 [7..] = -1,
        /// The brokers with a replica.
        replica_nodes: Vec<i32> [0..],
        /// The replicas in sync.
        isr_nodes: Vec<i32> [0..],
        /// The replicas on brokers that are down.
        offline_replicas: Vec<i32> [5..],
    }

    /// FindCoordinator: the request.
    pub struct FindCoordinatorRequest {
        /// The group, or the transactional id.
        key: String [..=3],
        /// 0 for groups, 1 for transactions.
        key_type: i8 [1..],
        /// Several keys at once.
        coordinator_keys: Vec<String> [4..],
    }

    /// FindCoordinator: the response.
    pub struct FindCoordinatorResponse {
        /// The time for which the broker throttled the client, in milliseconds.
        throttle_time_ms: i32 [1..],
        /// The error.
        error_code: ErrorCode [..=3],
        /// The error message.
        error_message: Option<String> [1..=3],
        /// The coordinator's node id.
        node_id: i32 [..=3],
        /// Its address for clients.
        host: String [..=3],
        /// Its address for clients.
        port: i32 [..=3],
        /// One result for each key.
        coordinators: Vec<FoundCoordinator> [4..],
    }

    /// The coordinator of one key.
    pub struct FoundCoordinator {
        /// The requested key.
        key: String [4..],
        /// The coordinator's node id.
        node_id: i32 [4..],
        /// Its address for clients.
        host: String [4..],
        /// Its address for clients.
        port: i32 [4..],
        /// The error.
        error_code: ErrorCode [4..],
        /// The error message.
        error_message: Option<String> [4..],
    }
}

bodies! {
    ApiVersions: ApiVersionsRequest, ApiVersionsResponse;
    Metadata: MetadataRequest, MetadataResponse;
    FindCoordinator: FindCoordinatorRequest, FindCoordinatorResponse;
}
