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

/// A request for the committed offsets of `topics`, or of all topics if it is `None` (since version 2).
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
    if version > 9 {
        return Err(ProtocolError::new_err(format!(
            "OffsetFetch version {version} has no names of topics: use 9 or below"
        )));
    }
    let asked = |(name, partition_indexes)| OffsetFetchTopic { name, partition_indexes, ..Default::default() };
    let topics: Option<Vec<_>> = topics.map(|topics| topics.into_iter().map(asked).collect());
    let body = match version {
        ..8 => OffsetFetchRequest { group_id, topics, groups: Vec::new(), require_stable },
        _ => OffsetFetchRequest {
            groups: vec![OffsetFetchGroup { group_id, topics, ..Default::default() }],
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
    partitions: Rows,
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
    let row = |row: Shared<(Arc<str>, OffsetFetchPartitionResponse)>| {
        let (topic, partition) = &*row;
        FetchedOffset {
            topic: topic.to_string(),
            partition_index: partition.partition_index,
            committed_offset: partition.committed_offset,
            committed_leader_epoch: partition.committed_leader_epoch,
            metadata: partition.metadata.clone(),
            error_code: partition.error_code.0,
        }
    };
    let partitions = flat(topics.into_iter().map(|topic| (topic.name, topic.partitions)));
    Ok(OffsetFetch {
        throttle_time_ms: read.throttle_time_ms,
        error_code: error_code.0,
        partitions: Rows::of(partitions, row),
    })
}
