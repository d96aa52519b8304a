//! The first requests of a client: ApiVersions, Metadata, FindCoordinator.

use super::ErrorCode;
use super::field::{Field, Format, bodies, message};
use super::reader::{ReadError, Reader};
use super::writer::{Write, WriteError};

/// The tag of the finalized features in a response to ApiVersions (KIP-584).
const FINALIZED_FEATURES: u32 = 2;

/// ApiVersions: the response. To an unsupported version a broker responds in version 0 with UNSUPPORTED_VERSION.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApiVersionsResponse {
    /// The error.
    pub error_code: ErrorCode,
    /// The version ranges.
    pub api_keys: Vec<ApiVersion>,
    /// The time for which the broker throttled the client, in milliseconds (since version 1).
    pub throttle_time_ms: i32,
    /// The features that the cluster uses, such as `group.version` (a tagged field, since version 3).
    pub finalized_features: Vec<FinalizedFeature>,
}

impl Field for ApiVersionsResponse {
    fn read(reader: &mut Reader<'_>, format: Format, what: &'static str) -> Result<Self, ReadError> {
        let mut message = Self {
            error_code: Field::read(reader, format, "error_code")?,
            api_keys: Field::read(reader, format, "api_keys")?,
            ..Default::default()
        };
        if format.version >= 1 {
            message.throttle_time_ms = Field::read(reader, format, "throttle_time_ms")?;
        }
        if format.flexible {
            reader.tagged_fields(what, |tag, mut field| {
                if tag == FINALIZED_FEATURES {
                    message.finalized_features = Field::read(&mut field, format, "finalized_features")?;
                }
                Ok(())
            })?;
        }
        Ok(message)
    }

    fn write(&self, out: &mut Vec<u8>, format: Format, _: &'static str) -> Result<(), WriteError> {
        self.error_code.write(out, format, "error_code")?;
        self.api_keys.write(out, format, "api_keys")?;
        if format.version >= 1 {
            self.throttle_time_ms.write(out, format, "throttle_time_ms")?;
        }
        if format.flexible {
            let has_features = !self.finalized_features.is_empty();
            out.unsigned_varint(u32::from(has_features));
            if has_features {
                let mut features = Vec::new();
                self.finalized_features.write(&mut features, format, "finalized_features")?;
                out.unsigned_varint(FINALIZED_FEATURES);
                let length = features.len();
                let length =
                    u32::try_from(length).map_err(|_| WriteError::LongString { what: "finalized_features", length })?;
                out.unsigned_varint(length);
                out.raw(&features);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
impl super::samples::Sample for ApiVersionsResponse {
    fn sample(format: Format) -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::strategy::{Just, Strategy};
        let throttle = if format.version >= 1 { i32::sample(format) } else { Just(0).boxed() };
        let features = if format.flexible { Vec::sample(format) } else { Just(Vec::new()).boxed() };
        (ErrorCode::sample(format), Vec::sample(format), throttle, features)
            .prop_map(|(error_code, api_keys, throttle_time_ms, finalized_features)| Self {
                error_code,
                api_keys,
                throttle_time_ms,
                finalized_features,
            })
            .boxed()
    }
}

message! {
    /// ApiVersions: the request (KIP-35; the client's name since KIP-511).
    pub struct ApiVersionsRequest {
        /// The client library.
        client_software_name: String [3..],
        /// Its version.
        client_software_version: String [3..],
    }

    /// A feature that the cluster uses.
    pub struct FinalizedFeature {
        /// Its name.
        name: String [3..],
        /// The highest level in use.
        max_version_level: i16 [3..],
        /// The lowest level in use.
        min_version_level: i16 [3..],
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
