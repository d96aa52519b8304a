//! Requests of the Kafka protocol as bytes, and their responses as dicts with Kafka's names: for whoever asks a broker
//! from Python. Conversions only.

use kafka_assignors_core::protocol::cluster::*;
use kafka_assignors_core::protocol::group_admin::*;
use kafka_assignors_core::protocol::offsets::*;
use kafka_assignors_core::protocol::records::*;
use kafka_assignors_core::protocol::sasl::*;
use kafka_assignors_core::protocol::topics::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResponse,
};
use kafka_assignors_core::protocol::{ApiKey, Body, ErrorCode, RequestHeader, format_of, read_response, write_request};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;

use crate::errors::ProtocolError;

fn refused(error: impl std::error::Error) -> PyErr {
    ProtocolError::new_err(error.to_string())
}

/// The frame with its length in front, ready to be sent.
fn frame<'py, B: Body>(
    py: Python<'py>,
    version: i16,
    correlation_id: i32,
    client_id: Option<String>,
    body: &B,
) -> PyResult<Bound<'py, PyBytes>> {
    format_of::<B>(version).map_err(refused)?;
    let header = RequestHeader { api: B::KEY, version, correlation_id, client_id };
    let frame = write_request(&header, body).map_err(refused)?;
    let length = i32::try_from(frame.len())
        .map_err(|_| ProtocolError::new_err(format!("a request of {} bytes is too long: ask for less", frame.len())))?;
    PyBytes::new_with(py, frame.len() + 4, |bytes| {
        bytes[..4].copy_from_slice(&length.to_be_bytes());
        bytes[4..].copy_from_slice(&frame);
        Ok(())
    })
}

/// The body of a frame without its length.
fn body<B: Body + Send>(py: Python<'_>, version: i16, correlation_id: i32, frame: &[u8]) -> PyResult<B> {
    format_of::<B>(version).map_err(refused)?;
    let header = RequestHeader { api: B::KEY, version, correlation_id, client_id: None };
    py.detach(|| read_response(&header, frame)).map_err(refused)
}

/// Every request that there is a codec for: Kafka's name to key, lowest and highest version.
#[pyfunction]
pub(crate) fn protocol_versions() -> BTreeMap<&'static str, (i16, i16, i16)> {
    let row = |&api: &ApiKey| (api.name(), (api.code(), api.versions().0, api.versions().1));
    ApiKey::ALL.iter().map(row).collect()
}

/// Kafka's name of an error code, such as `NOT_COORDINATOR`; `None` for a code without a name here.
#[pyfunction]
pub(crate) fn error_name(code: i16) -> Option<&'static str> {
    ErrorCode(code).name()
}

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
}

/// A broker that does not know the version answers in version 0, with UNSUPPORTED_VERSION and what it knows.
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
    })
}

#[pyfunction]
pub(crate) fn encode_sasl_handshake(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    client_id: Option<String>,
    mechanism: String,
) -> PyResult<Bound<'_, PyBytes>> {
    frame(py, version, correlation_id, client_id, &SaslHandshakeRequest { mechanism })
}

#[derive(IntoPyObject)]
pub(crate) struct SaslHandshake {
    error_code: i16,
    mechanisms: Vec<String>,
}

#[pyfunction]
pub(crate) fn decode_sasl_handshake(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    frame: &[u8],
) -> PyResult<SaslHandshake> {
    let read: SaslHandshakeResponse = body(py, version, correlation_id, frame)?;
    Ok(SaslHandshake { error_code: read.error_code.0, mechanisms: read.mechanisms })
}

#[pyfunction]
pub(crate) fn encode_sasl_authenticate<'py>(
    py: Python<'py>,
    version: i16,
    correlation_id: i32,
    client_id: Option<String>,
    auth_bytes: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    frame(py, version, correlation_id, client_id, &SaslAuthenticateRequest { auth_bytes: auth_bytes.to_vec() })
}

#[derive(IntoPyObject)]
pub(crate) struct SaslAuthenticate<'py> {
    error_code: i16,
    error_message: Option<String>,
    auth_bytes: Bound<'py, PyBytes>,
    session_lifetime_ms: i64,
}

#[pyfunction]
pub(crate) fn decode_sasl_authenticate<'py>(
    py: Python<'py>,
    version: i16,
    correlation_id: i32,
    frame: &[u8],
) -> PyResult<SaslAuthenticate<'py>> {
    let read: SaslAuthenticateResponse = body(py, version, correlation_id, frame)?;
    Ok(SaslAuthenticate {
        error_code: read.error_code.0,
        error_message: read.error_message,
        auth_bytes: PyBytes::new(py, &read.auth_bytes),
        session_lifetime_ms: read.session_lifetime_ms,
    })
}

/// `topics` is `None` for all of them. No topic is ever created.
#[pyfunction]
pub(crate) fn encode_metadata(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    client_id: Option<String>,
    topics: Option<Vec<String>>,
) -> PyResult<Bound<'_, PyBytes>> {
    // Version 0 has no null: there the empty list asks for all. Below 4 a broker may create what is asked for.
    let named = |name| MetadataRequestTopic { name, ..Default::default() };
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
    is_internal: bool,
    partitions: Vec<Partition>,
}

#[derive(IntoPyObject)]
pub(crate) struct Metadata {
    throttle_time_ms: i32,
    brokers: Vec<Node>,
    cluster_id: Option<String>,
    controller_id: i32,
    topics: Vec<Topic>,
}

#[pyfunction]
pub(crate) fn decode_metadata(py: Python<'_>, version: i16, correlation_id: i32, frame: &[u8]) -> PyResult<Metadata> {
    let read: MetadataResponse = body(py, version, correlation_id, frame)?;
    let partition = |partition: MetadataPartition| Partition {
        error_code: partition.error_code.0,
        partition_index: partition.partition_index,
        leader_id: partition.leader_id,
        leader_epoch: partition.leader_epoch,
        replica_nodes: partition.replica_nodes,
        isr_nodes: partition.isr_nodes,
        offline_replicas: partition.offline_replicas,
    };
    let topic = |topic: MetadataTopic| Topic {
        error_code: topic.error_code.0,
        name: topic.name,
        is_internal: topic.is_internal,
        partitions: topic.partitions.into_iter().map(partition).collect(),
    };
    let node = |broker: MetadataBroker| Node {
        node_id: broker.node_id,
        host: broker.host,
        port: broker.port,
        rack: broker.rack,
    };
    Ok(Metadata {
        throttle_time_ms: read.throttle_time_ms,
        brokers: read.brokers.into_iter().map(node).collect(),
        cluster_id: read.cluster_id,
        controller_id: read.controller_id,
        topics: read.topics.into_iter().map(topic).collect(),
    })
}

/// Asks who coordinates a group.
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

/// `topics` maps a topic to `(partition, timestamp)` or `(partition, timestamp, current leader epoch)`.
type AskedOffsets = Vec<(String, Vec<(i32, i64, i32)>)>;

#[pyfunction]
pub(crate) fn encode_list_offsets(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    client_id: Option<String>,
    topics: AskedOffsets,
    isolation_level: i8,
) -> PyResult<Bound<'_, PyBytes>> {
    let partition = |(partition_index, timestamp, current_leader_epoch)| ListOffsetsPartition {
        partition_index,
        current_leader_epoch,
        timestamp,
    };
    let topics = topics.into_iter().map(|(name, partitions)| ListOffsetsTopic {
        name,
        partitions: partitions.into_iter().map(partition).collect(),
    });
    let body = ListOffsetsRequest { replica_id: -1, isolation_level, topics: topics.collect() };
    frame(py, version, correlation_id, client_id, &body)
}

#[derive(IntoPyObject)]
pub(crate) struct ListedOffset {
    topic: String,
    partition_index: i32,
    error_code: i16,
    timestamp: i64,
    offset: i64,
    leader_epoch: i32,
}

#[derive(IntoPyObject)]
pub(crate) struct ListOffsets {
    throttle_time_ms: i32,
    partitions: Vec<ListedOffset>,
}

#[pyfunction]
pub(crate) fn decode_list_offsets(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    frame: &[u8],
) -> PyResult<ListOffsets> {
    let read: ListOffsetsResponse = body(py, version, correlation_id, frame)?;
    let rows = read.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|partition| ListedOffset {
            topic: topic.name.clone(),
            partition_index: partition.partition_index,
            error_code: partition.error_code.0,
            timestamp: partition.timestamp,
            offset: partition.offset,
            leader_epoch: partition.leader_epoch,
        })
    });
    Ok(ListOffsets { throttle_time_ms: read.throttle_time_ms, partitions: rows.collect() })
}

#[pyfunction]
pub(crate) fn encode_describe_groups(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    client_id: Option<String>,
    groups: Vec<String>,
) -> PyResult<Bound<'_, PyBytes>> {
    let body = DescribeGroupsRequest { groups, include_authorized_operations: false };
    frame(py, version, correlation_id, client_id, &body)
}

#[derive(IntoPyObject)]
pub(crate) struct GroupMember<'py> {
    member_id: String,
    group_instance_id: Option<String>,
    client_id: String,
    client_host: String,
    member_metadata: Bound<'py, PyBytes>,
    member_assignment: Bound<'py, PyBytes>,
}

#[derive(IntoPyObject)]
pub(crate) struct Group<'py> {
    error_code: i16,
    group_id: String,
    group_state: String,
    protocol_type: String,
    protocol_data: String,
    members: Vec<GroupMember<'py>>,
}

#[derive(IntoPyObject)]
pub(crate) struct DescribeGroups<'py> {
    throttle_time_ms: i32,
    groups: Vec<Group<'py>>,
}

#[pyfunction]
pub(crate) fn decode_describe_groups<'py>(
    py: Python<'py>,
    version: i16,
    correlation_id: i32,
    frame: &[u8],
) -> PyResult<DescribeGroups<'py>> {
    let read: DescribeGroupsResponse = body(py, version, correlation_id, frame)?;
    let member = |member: DescribedGroupMember| GroupMember {
        member_id: member.member_id,
        group_instance_id: member.group_instance_id,
        client_id: member.client_id,
        client_host: member.client_host,
        member_metadata: PyBytes::new(py, &member.member_metadata),
        member_assignment: PyBytes::new(py, &member.member_assignment),
    };
    let group = |group: DescribedGroup| Group {
        error_code: group.error_code.0,
        group_id: group.group_id,
        group_state: group.group_state,
        protocol_type: group.protocol_type,
        protocol_data: group.protocol_data,
        members: group.members.into_iter().map(member).collect(),
    };
    Ok(DescribeGroups { throttle_time_ms: read.throttle_time_ms, groups: read.groups.into_iter().map(group).collect() })
}

/// Asks for groups that the broker assigns.
#[pyfunction]
pub(crate) fn encode_consumer_group_describe(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    client_id: Option<String>,
    group_ids: Vec<String>,
) -> PyResult<Bound<'_, PyBytes>> {
    let body = ConsumerGroupDescribeRequest { group_ids, include_authorized_operations: false };
    frame(py, version, correlation_id, client_id, &body)
}

#[derive(IntoPyObject)]
pub(crate) struct ConsumerMember {
    member_id: String,
    instance_id: Option<String>,
    rack_id: Option<String>,
    member_epoch: i32,
    client_id: String,
    client_host: String,
    subscribed_topic_names: Vec<String>,
    subscribed_topic_regex: Option<String>,
    assignment: Vec<(String, Vec<i32>)>,
    target_assignment: Vec<(String, Vec<i32>)>,
    member_type: i8,
}

#[derive(IntoPyObject)]
pub(crate) struct ConsumerGroup {
    error_code: i16,
    error_message: Option<String>,
    group_id: String,
    group_state: String,
    group_epoch: i32,
    assignment_epoch: i32,
    assignor_name: String,
    members: Vec<ConsumerMember>,
}

#[derive(IntoPyObject)]
pub(crate) struct ConsumerGroupDescribe {
    throttle_time_ms: i32,
    groups: Vec<ConsumerGroup>,
}

#[pyfunction]
pub(crate) fn decode_consumer_group_describe(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    frame: &[u8],
) -> PyResult<ConsumerGroupDescribe> {
    let read: ConsumerGroupDescribeResponse = body(py, version, correlation_id, frame)?;
    let partitions = |assignment: DescribedAssignment| {
        assignment.topic_partitions.into_iter().map(|topic| (topic.topic_name, topic.partitions)).collect()
    };
    let member = |member: DescribedConsumer| ConsumerMember {
        member_id: member.member_id,
        instance_id: member.instance_id,
        rack_id: member.rack_id,
        member_epoch: member.member_epoch,
        client_id: member.client_id,
        client_host: member.client_host,
        subscribed_topic_names: member.subscribed_topic_names,
        subscribed_topic_regex: member.subscribed_topic_regex,
        assignment: partitions(member.assignment),
        target_assignment: partitions(member.target_assignment),
        member_type: member.member_type,
    };
    let group = |group: DescribedConsumerGroup| ConsumerGroup {
        error_code: group.error_code.0,
        error_message: group.error_message,
        group_id: group.group_id,
        group_state: group.group_state,
        group_epoch: group.group_epoch,
        assignment_epoch: group.assignment_epoch,
        assignor_name: group.assignor_name,
        members: group.members.into_iter().map(member).collect(),
    };
    let groups = read.groups.into_iter().map(group).collect();
    Ok(ConsumerGroupDescribe { throttle_time_ms: read.throttle_time_ms, groups })
}

/// The resource type of a topic in DescribeConfigs.
const TOPIC_RESOURCE: i8 = 2;

/// Asks for settings of one topic.
#[pyfunction]
pub(crate) fn encode_describe_topic_configs(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    client_id: Option<String>,
    topic: String,
    settings: Vec<String>,
) -> PyResult<Bound<'_, PyBytes>> {
    let resource = DescribeConfigsResource {
        resource_type: TOPIC_RESOURCE,
        resource_name: topic,
        configuration_keys: Some(settings),
    };
    let body = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
    frame(py, version, correlation_id, client_id, &body)
}

#[derive(IntoPyObject)]
pub(crate) struct DescribeTopicConfigs {
    throttle_time_ms: i32,
    error_code: i16,
    error_message: Option<String>,
    configs: BTreeMap<String, Option<String>>,
}

#[pyfunction]
pub(crate) fn decode_describe_topic_configs(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    frame: &[u8],
) -> PyResult<DescribeTopicConfigs> {
    let read: DescribeConfigsResponse = body(py, version, correlation_id, frame)?;
    let found = read.results.into_iter().next();
    let found =
        found.ok_or_else(|| ProtocolError::new_err("DescribeConfigs answers nothing to one topic: ask again"))?;
    Ok(DescribeTopicConfigs {
        throttle_time_ms: read.throttle_time_ms,
        error_code: found.error_code.0,
        error_message: found.error_message,
        configs: found.configs.into_iter().map(|config| (config.name, config.value)).collect(),
    })
}

/// `states_filter` counts from version 4 on.
#[pyfunction]
pub(crate) fn encode_list_groups(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    client_id: Option<String>,
    states_filter: Vec<String>,
) -> PyResult<Bound<'_, PyBytes>> {
    frame(py, version, correlation_id, client_id, &ListGroupsRequest { states_filter })
}

#[derive(IntoPyObject)]
pub(crate) struct ListedGroupRow {
    group_id: String,
    protocol_type: String,
    group_state: String,
}

#[derive(IntoPyObject)]
pub(crate) struct ListGroups {
    throttle_time_ms: i32,
    error_code: i16,
    groups: Vec<ListedGroupRow>,
}

#[pyfunction]
pub(crate) fn decode_list_groups(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    frame: &[u8],
) -> PyResult<ListGroups> {
    let read: ListGroupsResponse = body(py, version, correlation_id, frame)?;
    let row = |group: ListedGroup| ListedGroupRow {
        group_id: group.group_id,
        protocol_type: group.protocol_type,
        group_state: group.group_state,
    };
    Ok(ListGroups {
        throttle_time_ms: read.throttle_time_ms,
        error_code: read.error_code.0,
        groups: read.groups.into_iter().map(row).collect(),
    })
}

/// `topics` is `None` for every offset that the group has (from version 2 on).
#[pyfunction]
pub(crate) fn encode_offset_fetch(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    client_id: Option<String>,
    group_id: String,
    topics: Option<Vec<(String, Vec<i32>)>>,
    require_stable: bool,
) -> PyResult<Bound<'_, PyBytes>> {
    if topics.is_none() && version < 2 {
        return Err(ProtocolError::new_err("OffsetFetch version 1 has no form for all offsets: name the topics"));
    }
    if require_stable && version < 7 {
        return Err(ProtocolError::new_err(format!(
            "OffsetFetch version {version} cannot ask for stable offsets only: use 7 or above"
        )));
    }
    let asked = |(name, partition_indexes)| OffsetFetchTopic { name, partition_indexes };
    let topics: Option<Vec<_>> = topics.map(|topics| topics.into_iter().map(asked).collect());
    let body = match version {
        ..8 => OffsetFetchRequest { group_id, topics, groups: Vec::new(), require_stable },
        _ => OffsetFetchRequest {
            groups: vec![OffsetFetchGroup { group_id, topics }],
            require_stable,
            ..Default::default()
        },
    };
    frame(py, version, correlation_id, client_id, &body)
}

#[derive(IntoPyObject)]
pub(crate) struct FetchedOffset {
    topic: String,
    partition_index: i32,
    committed_offset: i64,
    committed_leader_epoch: i32,
    metadata: Option<String>,
    error_code: i16,
}

#[derive(IntoPyObject)]
pub(crate) struct OffsetFetch {
    throttle_time_ms: i32,
    error_code: i16,
    partitions: Vec<FetchedOffset>,
}

#[pyfunction]
pub(crate) fn decode_offset_fetch(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    frame: &[u8],
) -> PyResult<OffsetFetch> {
    let read: OffsetFetchResponse = body(py, version, correlation_id, frame)?;
    let (error_code, topics) = match version {
        ..8 => (read.error_code, read.topics),
        _ => {
            let group = read.groups.into_iter().next();
            let group =
                group.ok_or_else(|| ProtocolError::new_err("OffsetFetch answers nothing to one group: ask again"))?;
            (group.error_code, group.topics)
        }
    };
    let rows = topics.into_iter().flat_map(|topic| {
        let name = topic.name;
        topic.partitions.into_iter().map(move |partition| FetchedOffset {
            topic: name.clone(),
            partition_index: partition.partition_index,
            committed_offset: partition.committed_offset,
            committed_leader_epoch: partition.committed_leader_epoch,
            metadata: partition.metadata,
            error_code: partition.error_code.0,
        })
    });
    Ok(OffsetFetch { throttle_time_ms: read.throttle_time_ms, error_code: error_code.0, partitions: rows.collect() })
}
