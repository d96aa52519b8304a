//! Requests that any broker answers: versions, metadata, coordinators.

use kafka_assignors_core::offsets_topic::topic_id_text;
use kafka_assignors_core::protocol::ErrorCode;
use kafka_assignors_core::protocol::cluster::*;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;

use super::rows::{Rows, Shared};
use super::{body, frame};
use crate::errors::ProtocolError;

#[pyfunction]
pub(crate) fn encode_api_versions(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    client_id: Option<String>,
    client_software_name: String,
    client_software_version: String,
) -> PyResult<Bound<'_, PyBytes>> {
    let body = ApiVersionsRequest { client_software_name, client_software_version };
    frame(py, version, correlation_id, client_id, &body)
}

#[derive(IntoPyObject)]
pub(crate) struct ApiVersions {
    error_code: i16,
    /// Key to lowest and highest version.
    api_keys: BTreeMap<i16, (i16, i16)>,
    throttle_time_ms: i32,
    /// Finalized feature to its highest level.
    features: BTreeMap<String, i16>,
}

/// Reads version 0 too: a broker that does not support the request's version answers in version 0, with
/// UNSUPPORTED_VERSION and its version ranges.
#[pyfunction]
pub(crate) fn decode_api_versions(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    frame: &[u8],
) -> PyResult<ApiVersions> {
    let older = |error| {
        let read = body::<ApiVersionsResponse>(py, 0, correlation_id, frame);
        read.ok().filter(|read| read.error_code == ErrorCode::UNSUPPORTED_VERSION).ok_or(error)
    };
    let read: ApiVersionsResponse = body(py, version, correlation_id, frame).or_else(older)?;
    let ranges = read.api_keys.iter().map(|api| (api.api_key, (api.min_version, api.max_version)));
    Ok(ApiVersions {
        error_code: read.error_code.0,
        api_keys: ranges.collect(),
        throttle_time_ms: read.throttle_time_ms,
        features: read.finalized_features.into_iter().map(|each| (each.name, each.max_version_level)).collect(),
    })
}

/// A request for `topics`, or for all topics if it is `None`. The broker creates no topic.
#[pyfunction]
pub(crate) fn encode_metadata(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    client_id: Option<String>,
    topics: Option<Vec<String>>,
) -> PyResult<Bound<'_, PyBytes>> {
    // In version 0 an empty list requests all topics, because the version has no null. Before version 4 the broker may
    // create a requested topic.
    let named = |name| MetadataRequestTopic { name: Some(name), ..Default::default() };
    let topics = match topics {
        Some(topics) => Some(topics.into_iter().map(named).collect()),
        None if version == 0 => Some(Vec::new()),
        None => None,
    };
    let body = MetadataRequest { topics, allow_auto_topic_creation: false, ..Default::default() };
    frame(py, version, correlation_id, client_id, &body)
}

#[derive(IntoPyObject)]
pub(crate) struct Node {
    node_id: i32,
    host: String,
    port: i32,
    rack: Option<String>,
}

#[derive(IntoPyObject)]
pub(crate) struct Partition {
    error_code: i16,
    partition_index: i32,
    leader_id: i32,
    leader_epoch: i32,
    replica_nodes: Vec<i32>,
    isr_nodes: Vec<i32>,
    offline_replicas: Vec<i32>,
}

#[derive(IntoPyObject)]
pub(crate) struct Topic {
    error_code: i16,
    name: String,
    /// `None` below version 10, where the field is all zero.
    topic_id: Option<String>,
    is_internal: bool,
    partitions: Rows,
}

#[derive(IntoPyObject)]
pub(crate) struct Metadata {
    throttle_time_ms: i32,
    brokers: Rows,
    cluster_id: Option<String>,
    controller_id: i32,
    topics: Rows,
}

#[pyfunction]
pub(crate) fn decode_metadata(py: Python<'_>, version: i16, correlation_id: i32, frame: &[u8]) -> PyResult<Metadata> {
    let read: MetadataResponse = body(py, version, correlation_id, frame)?;
    let partition = |_: Python<'_>, partition: &MetadataPartition| Partition {
        error_code: partition.error_code.0,
        partition_index: partition.partition_index,
        leader_id: partition.leader_id,
        leader_epoch: partition.leader_epoch,
        replica_nodes: partition.replica_nodes.clone(),
        isr_nodes: partition.isr_nodes.clone(),
        offline_replicas: partition.offline_replicas.clone(),
    };
    let topic = move |topic: Shared<MetadataTopic>| Topic {
        error_code: topic.error_code.0,
        name: topic.name.clone().unwrap_or_default(),
        topic_id: (topic.topic_id != [0; 16]).then(|| topic_id_text(topic.topic_id)),
        is_internal: topic.is_internal,
        partitions: topic.rows(|topic| &topic.partitions, partition),
    };
    let node = |broker: Shared<MetadataBroker>| Node {
        node_id: broker.node_id,
        host: broker.host.clone(),
        port: broker.port,
        rack: broker.rack.clone(),
    };
    Ok(Metadata {
        throttle_time_ms: read.throttle_time_ms,
        brokers: Rows::of(read.brokers, node),
        cluster_id: read.cluster_id,
        controller_id: read.controller_id,
        topics: Rows::of(read.topics, topic),
    })
}

/// Requests the coordinator of a group.
#[pyfunction]
pub(crate) fn encode_find_coordinator(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    client_id: Option<String>,
    group_id: String,
) -> PyResult<Bound<'_, PyBytes>> {
    let body = FindCoordinatorRequest { key: group_id.clone(), key_type: 0, coordinator_keys: vec![group_id] };
    frame(py, version, correlation_id, client_id, &body)
}

#[derive(IntoPyObject)]
pub(crate) struct FindCoordinator {
    throttle_time_ms: i32,
    error_code: i16,
    error_message: Option<String>,
    node_id: i32,
    host: String,
    port: i32,
}

#[pyfunction]
pub(crate) fn decode_find_coordinator(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    frame: &[u8],
) -> PyResult<FindCoordinator> {
    let read: FindCoordinatorResponse = body(py, version, correlation_id, frame)?;
    let throttle_time_ms = read.throttle_time_ms;
    if version < 4 {
        let FindCoordinatorResponse { error_code, error_message, node_id, host, port, .. } = read;
        return Ok(FindCoordinator { throttle_time_ms, error_code: error_code.0, error_message, node_id, host, port });
    }
    let found = read.coordinators.into_iter().next();
    let FoundCoordinator { error_code, error_message, node_id, host, port, .. } =
        found.ok_or_else(|| ProtocolError::new_err("FindCoordinator answers nothing to one group: ask again"))?;
    Ok(FindCoordinator { throttle_time_ms, error_code: error_code.0, error_message, node_id, host, port })
}
