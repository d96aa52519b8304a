//! Requests about offsets: the first and next offset of a partition, and the committed offsets of a group.

use kafka_assignors_core::protocol::offsets::*;
use kafka_assignors_core::protocol::records::*;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

use super::rows::{Rows, Shared};
use super::{body, frame};
use crate::errors::ProtocolError;

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
    partitions: Rows,
}

#[pyfunction]
pub(crate) fn decode_list_offsets(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    frame: &[u8],
) -> PyResult<ListOffsets> {
    let read: ListOffsetsResponse = body(py, version, correlation_id, frame)?;
    let row = |row: Shared<(Arc<str>, ListOffsetsPartitionResponse)>| {
        let (topic, partition) = &*row;
        ListedOffset {
            topic: topic.to_string(),
            partition_index: partition.partition_index,
            error_code: partition.error_code.0,
            timestamp: partition.timestamp,
            offset: partition.offset,
            leader_epoch: partition.leader_epoch,
        }
    };
    let partitions = flat(read.topics.into_iter().map(|topic| (topic.name, topic.partitions)));
    Ok(ListOffsets { throttle_time_ms: read.throttle_time_ms, partitions: Rows::of(partitions, row) })
}

/// Each partition with its topic. The partitions of a topic share one copy of the name.
fn flat<T>(topics: impl Iterator<Item = (String, Vec<T>)>) -> Vec<(Arc<str>, T)> {
    let of_topic = |(name, partitions): (String, Vec<T>)| {
        let name: Arc<str> = name.into();
        partitions.into_iter().map(move |partition| (name.clone(), partition))
    };
    topics.flat_map(of_topic).collect()
}

/// A group and its topics, each with partitions; `None` asks for every offset of the group.
type AskedGroup = (String, Option<Vec<(String, Vec<i32>)>>);

/// A request for the committed offsets of groups: several since version 8, all topics of a group since version 2.
#[pyfunction]
pub(crate) fn encode_offset_fetch(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    client_id: Option<String>,
    groups: Vec<AskedGroup>,
    require_stable: bool,
) -> PyResult<Bound<'_, PyBytes>> {
    if groups.iter().any(|(_, topics)| topics.is_none()) && version < 2 {
        return Err(ProtocolError::new_err("OffsetFetch version 1 has no form for all offsets: name the topics"));
    }
    if require_stable && version < 7 {
        return Err(ProtocolError::new_err(format!(
            "OffsetFetch version {version} cannot ask for stable offsets only: use 7 or above"
        )));
    }
    if version > 9 {
        return Err(ProtocolError::new_err(format!(
            "OffsetFetch version {version} has no names of topics: use 9 or below"
        )));
    }
    if version < 8 && groups.len() != 1 {
        return Err(ProtocolError::new_err(format!(
            "OffsetFetch version {version} asks for one group, not for {}: use 8 or above",
            groups.len()
        )));
    }
    let asked = |(name, partition_indexes)| OffsetFetchTopic { name, partition_indexes, ..Default::default() };
    let mut groups = groups.into_iter().map(|(group_id, topics)| OffsetFetchGroup {
        group_id,
        topics: topics.map(|topics| topics.into_iter().map(asked).collect()),
        ..Default::default()
    });
    let body = match version {
        ..8 => {
            let OffsetFetchGroup { group_id, topics, .. } = groups.next().unwrap_or_default();
            OffsetFetchRequest { group_id, topics, groups: Vec::new(), require_stable }
        }
        _ => OffsetFetchRequest { groups: groups.collect(), require_stable, ..Default::default() },
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

/// The offsets of one group. Before version 8 the answer does not name it.
#[derive(IntoPyObject)]
pub(crate) struct FetchedGroup {
    group_id: String,
    error_code: i16,
    partitions: Rows,
}

#[derive(IntoPyObject)]
pub(crate) struct OffsetFetch {
    throttle_time_ms: i32,
    groups: Rows,
}

#[pyfunction]
pub(crate) fn decode_offset_fetch(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    frame: &[u8],
) -> PyResult<OffsetFetch> {
    let read: OffsetFetchResponse = body(py, version, correlation_id, frame)?;
    let groups = match version {
        ..8 => {
            let (topics, error_code) = (read.topics, read.error_code);
            vec![OffsetFetchGroupResponse { group_id: String::new(), topics, error_code }]
        }
        _ => read.groups,
    };
    let groups: Vec<_> = groups
        .into_iter()
        .map(|OffsetFetchGroupResponse { group_id, topics, error_code }| {
            let partitions = flat(topics.into_iter().map(|topic| (topic.name, topic.partitions)));
            (group_id, error_code.0, partitions)
        })
        .collect();
    Ok(OffsetFetch { throttle_time_ms: read.throttle_time_ms, groups: Rows::of(groups, fetched_group) })
}

type OffsetsOfGroup = (String, i16, Vec<(Arc<str>, OffsetFetchPartitionResponse)>);

fn fetched_group(group: Shared<OffsetsOfGroup>) -> FetchedGroup {
    let row = |_: Python<'_>, (topic, partition): &(Arc<str>, OffsetFetchPartitionResponse)| FetchedOffset {
        topic: topic.to_string(),
        partition_index: partition.partition_index,
        committed_offset: partition.committed_offset,
        committed_leader_epoch: partition.committed_leader_epoch,
        metadata: partition.metadata.clone(),
        error_code: partition.error_code.0,
    };
    let (group_id, error_code) = (group.0.clone(), group.1);
    FetchedGroup { group_id, error_code, partitions: group.rows(|group| &group.2, row) }
}
