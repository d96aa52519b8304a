//! What a client asks first: ApiVersions, Metadata, FindCoordinator.

use super::ErrorCode;
use super::field::{bodies, message};

message! {
    /// Which requests do you speak? (KIP-35; the client's name since KIP-511)
    pub struct ApiVersionsRequest {
        /// The client library.
        client_software_name: String [3..],
        /// Its version.
        client_software_version: String [3..],
    }

    /// The requests a broker speaks. To a version it does not know a broker answers version 0 with
    /// UNSUPPORTED_VERSION.
    pub struct ApiVersionsResponse {
        /// The error.
        error_code: ErrorCode [0..],
        /// The ranges.
        api_keys: Vec<ApiVersion> [0..],
        /// How long the client was held back, in milliseconds.
        throttle_time_ms: i32 [1..],
    }

    /// The versions of one request.
    pub struct ApiVersion {
        /// The request, also one that we have no name for.
        api_key: i16 [0..],
        /// The lowest version.
        min_version: i16 [0..],
        /// The highest version.
        max_version: i16 [0..],
    }

    /// Which brokers and topics are there?
    pub struct MetadataRequest {
        /// The topics; null is all of them, in version 0 the empty list is.
        topics: Option<Vec<MetadataRequestTopic>> [0..],
        /// Whether missing topics may be created.
        allow_auto_topic_creation: bool [4..] = true,
        /// Whether to name what the client may do with the cluster.
        include_cluster_authorized_operations: bool [8..=10],
        /// Whether to name what the client may do with each topic.
        include_topic_authorized_operations: bool [8..],
    }

    /// One topic asked for.
    pub struct MetadataRequestTopic {
        /// Its id; all zero to ask by name, which is the only way to ask here.
        topic_id: [u8; 16] [10..],
        /// Its name.
        name: String [0..],
    }

    /// The brokers, and the topics asked for.
    pub struct MetadataResponse {
        /// How long the client was held back, in milliseconds.
        throttle_time_ms: i32 [3..],
        /// Every live broker.
        brokers: Vec<MetadataBroker> [0..],
        /// The cluster's id.
        cluster_id: Option<String> [2..],
        /// The controller's node id, -1 when unknown.
        controller_id: i32 [1..] = -1,
        /// The topics.
        topics: Vec<MetadataTopic> [0..],
        /// A bit set; the least integer when not asked for.
        cluster_authorized_operations: i32 [8..=10] = i32::MIN,
    }

    /// One broker.
    pub struct MetadataBroker {
        /// Its node id.
        node_id: i32 [0..],
        /// Where clients reach it.
        host: String [0..],
        /// Where clients reach it.
        port: i32 [0..],
        /// The rack it stands in.
        rack: Option<String> [1..],
    }

    /// One topic.
    pub struct MetadataTopic {
        /// Whether the topic could be described.
        error_code: ErrorCode [0..],
        /// Its name. Null (possible from version 12) answers only who asks by id.
        name: String [0..],
        /// Its id (KIP-516); all zero when unknown.
        topic_id: [u8; 16] [10..],
        /// Whether it belongs to Kafka itself.
        is_internal: bool [1..],
        /// Its partitions, in no promised order.
        partitions: Vec<MetadataPartition> [0..],
        /// A bit set; the least integer when not asked for.
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
        /// The brokers that have a replica.
        replica_nodes: Vec<i32> [0..],
        /// Those in sync.
        isr_nodes: Vec<i32> [0..],
        /// Those that are down.
        offline_replicas: Vec<i32> [5..],
    }

    /// Who coordinates this group?
    pub struct FindCoordinatorRequest {
        /// The group, or the transactional id.
        key: String [..=3],
        /// 0 for groups, 1 for transactions.
        key_type: i8 [1..],
        /// Several keys at once.
        coordinator_keys: Vec<String> [4..],
    }

    /// Who coordinates.
    pub struct FindCoordinatorResponse {
        /// How long the client was held back, in milliseconds.
        throttle_time_ms: i32 [1..],
        /// The error.
        error_code: ErrorCode [..=3],
        /// More about it.
        error_message: Option<String> [1..=3],
        /// The coordinator's node id.
        node_id: i32 [..=3],
        /// Where clients reach it.
        host: String [..=3],
        /// Where clients reach it.
        port: i32 [..=3],
        /// One answer for each key.
        coordinators: Vec<FoundCoordinator> [4..],
    }

    /// The coordinator of one key.
    pub struct FoundCoordinator {
        /// The key asked for.
        key: String [4..],
        /// The coordinator's node id.
        node_id: i32 [4..],
        /// Where clients reach it.
        host: String [4..],
        /// Where clients reach it.
        port: i32 [4..],
        /// The error.
        error_code: ErrorCode [4..],
        /// More about it.
        error_message: Option<String> [4..],
    }
}

bodies! {
    ApiVersions: ApiVersionsRequest, ApiVersionsResponse;
    Metadata: MetadataRequest, MetadataResponse;
    FindCoordinator: FindCoordinatorRequest, FindCoordinatorResponse;
}
