//! Requests of the admin client about groups.

use kafka_assignors_core::protocol::group_admin::*;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::rows::{Rows, Shared};
use super::{body, frame};
use crate::errors::ProtocolError;

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
pub(crate) struct GroupMember {
    member_id: String,
    group_instance_id: Option<String>,
    client_id: String,
    client_host: String,
    member_metadata: Py<PyBytes>,
    member_assignment: Py<PyBytes>,
}

#[derive(IntoPyObject)]
pub(crate) struct GroupRow {
    error_code: i16,
    group_id: String,
    group_state: String,
    protocol_type: String,
    protocol_data: String,
    members: Rows,
}

#[derive(IntoPyObject)]
pub(crate) struct DescribeGroups {
    throttle_time_ms: i32,
    groups: Rows,
}

#[pyfunction]
pub(crate) fn decode_describe_groups(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    frame: &[u8],
) -> PyResult<DescribeGroups> {
    let read: DescribeGroupsResponse = body(py, version, correlation_id, frame)?;
    let member = |py: Python<'_>, member: &DescribedGroupMember| GroupMember {
        member_id: member.member_id.clone(),
        group_instance_id: member.group_instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        member_metadata: PyBytes::new(py, &member.member_metadata).unbind(),
        member_assignment: PyBytes::new(py, &member.member_assignment).unbind(),
    };
    let group = move |group: Shared<DescribedGroup>| GroupRow {
        error_code: group.error_code.0,
        group_id: group.group_id.clone(),
        group_state: group.group_state.clone(),
        protocol_type: group.protocol_type.clone(),
        protocol_data: group.protocol_data.clone(),
        members: group.rows(|group| &group.members, member),
    };
    Ok(DescribeGroups { throttle_time_ms: read.throttle_time_ms, groups: Rows::of(read.groups, group) })
}

/// The largest number of partitions that is accepted for one group. As Python integers they take nine times the bytes
/// of the response, so a small response could fill the memory.
const MOST_PARTITIONS: usize = 1_000_000;

/// Requests the description of KIP-848 groups.
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
    members: Rows,
}

#[derive(IntoPyObject)]
pub(crate) struct ConsumerGroupDescribe {
    throttle_time_ms: i32,
    groups: Rows,
}

#[pyfunction]
pub(crate) fn decode_consumer_group_describe(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    frame: &[u8],
) -> PyResult<ConsumerGroupDescribe> {
    let read: ConsumerGroupDescribeResponse = body(py, version, correlation_id, frame)?;
    let assignments =
        read.groups.iter().flat_map(|group| &group.members).flat_map(|it| [&it.assignment, &it.target_assignment]);
    for assignment in assignments {
        let partitions: usize = assignment.topic_partitions.iter().map(|topic| topic.partitions.len()).sum();
        if partitions > MOST_PARTITIONS {
            return Err(ProtocolError::new_err(format!(
                "ConsumerGroupDescribe gives one member {partitions} partitions; at most {MOST_PARTITIONS} are believed"
            )));
        }
    }
    let member = |_: Python<'_>, member: &DescribedConsumer| ConsumerMember {
        member_id: member.member_id.clone(),
        instance_id: member.instance_id.clone(),
        rack_id: member.rack_id.clone(),
        member_epoch: member.member_epoch,
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        subscribed_topic_names: member.subscribed_topic_names.clone(),
        subscribed_topic_regex: member.subscribed_topic_regex.clone(),
        assignment: partitions_of(&member.assignment),
        target_assignment: partitions_of(&member.target_assignment),
        member_type: member.member_type,
    };
    let group = move |group: Shared<DescribedConsumerGroup>| ConsumerGroup {
        error_code: group.error_code.0,
        error_message: group.error_message.clone(),
        group_id: group.group_id.clone(),
        group_state: group.group_state.clone(),
        group_epoch: group.group_epoch,
        assignment_epoch: group.assignment_epoch,
        assignor_name: group.assignor_name.clone(),
        members: group.rows(|group| &group.members, member),
    };
    Ok(ConsumerGroupDescribe { throttle_time_ms: read.throttle_time_ms, groups: Rows::of(read.groups, group) })
}

fn partitions_of(assignment: &DescribedAssignment) -> Vec<(String, Vec<i32>)> {
    assignment.topic_partitions.iter().map(|topic| (topic.topic_name.clone(), topic.partitions.clone())).collect()
}

/// Before version 4, `states_filter` has no effect.
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
    groups: Rows,
}

#[pyfunction]
pub(crate) fn decode_list_groups(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    frame: &[u8],
) -> PyResult<ListGroups> {
    let read: ListGroupsResponse = body(py, version, correlation_id, frame)?;
    let row = |group: Shared<ListedGroup>| ListedGroupRow {
        group_id: group.group_id.clone(),
        protocol_type: group.protocol_type.clone(),
        group_state: group.group_state.clone(),
        group_type: group.group_type.clone(),
    };
    Ok(ListGroups {
        throttle_time_ms: read.throttle_time_ms,
        error_code: read.error_code.0,
        groups: Rows::of(read.groups, row),
    })
}
