//! Groups as an administrator sees them.

use kafka_assignors_core::protocol::group_admin::*;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{body, frame};

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

/// `states_filter` counts from version 4 on.
#[pyfunction]
pub(crate) fn encode_list_groups(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    client_id: Option<String>,
    states_filter: Vec<String>,
) -> PyResult<Bound<'_, PyBytes>> {
    frame(py, version, correlation_id, client_id, &ListGroupsRequest { states_filter, types_filter: Vec::new() })
}

#[derive(IntoPyObject)]
pub(crate) struct ListedGroupRow {
    group_id: String,
    protocol_type: String,
    group_state: String,
    group_type: String,
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
        group_type: group.group_type,
    };
    Ok(ListGroups {
        throttle_time_ms: read.throttle_time_ms,
        error_code: read.error_code.0,
        groups: read.groups.into_iter().map(row).collect(),
    })
}
