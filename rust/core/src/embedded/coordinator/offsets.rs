//! Committed offsets, and the responses to OffsetCommit and OffsetFetch.

use crate::embedded::refusal::{MANY_GROUPS_FROM, no_offset};
use crate::protocol::ErrorCode;
use crate::protocol::offsets::{
    OffsetCommitPartition, OffsetCommitPartitionResponse, OffsetCommitRequest, OffsetCommitResponse,
    OffsetCommitTopicResponse, OffsetFetchGroup, OffsetFetchGroupResponse, OffsetFetchPartitionResponse,
    OffsetFetchRequest, OffsetFetchResponse, OffsetFetchTopic, OffsetFetchTopicResponse,
};
use std::collections::{BTreeMap, BTreeSet};

/// The committed offsets of a group, by topic and partition. An empty group keeps them.
pub(super) type Offsets = BTreeMap<String, BTreeMap<i32, Committed>>;

/// A committed offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The next offset to read.
    pub offset: i64,
    /// The leader epoch of the last record read, or -1.
    pub leader_epoch: i32,
    /// The metadata of the member.
    pub metadata: String,
}

/// The topics of the cluster and their partition counts; `None` before
/// [`Coordinator::set_topics`](super::Coordinator::set_topics).
pub(super) type PartitionCounts = Option<BTreeMap<String, i32>>;

/// The response to a commit, with the `code` of each partition.
pub(super) fn commit_answer(
    request: &OffsetCommitRequest,
    mut code: impl FnMut(&str, &OffsetCommitPartition) -> ErrorCode,
) -> OffsetCommitResponse {
    let topics = request.topics.iter().map(|topic| OffsetCommitTopicResponse {
        name: topic.name.clone(),
        partitions: topic
            .partitions
            .iter()
            .map(|partition| OffsetCommitPartitionResponse {
                partition_index: partition.partition_index,
                error_code: code(&topic.name, partition),
            })
            .collect(),
    });
    OffsetCommitResponse { throttle_time_ms: 0, topics: topics.collect() }
}

/// The response to a refused commit. A partition that does not exist gets its own error, because a broker checks the
/// topics before the group.
pub(super) fn refuse_commit(
    request: &OffsetCommitRequest,
    topics: &PartitionCounts,
    code: ErrorCode,
) -> OffsetCommitResponse {
    commit_answer(request, |topic, partition| known(topics, topic, partition).err().unwrap_or(code))
}

/// Whether a commit contains an existing partition. Without one, the broker answers before it reads the group.
pub(super) fn reaches_group(request: &OffsetCommitRequest, topics: &PartitionCounts) -> bool {
    let exists = |topic: &str, partition| known(topics, topic, partition).is_ok();
    request.topics.iter().any(|topic| topic.partitions.iter().any(|partition| exists(&topic.name, partition)))
}

/// Whether a partition exists. Before `set_topics`, every partition does.
pub(super) fn known(topics: &PartitionCounts, topic: &str, partition: &OffsetCommitPartition) -> Result<(), ErrorCode> {
    match topics {
        Some(topics) if !topics.get(topic).is_some_and(|count| (0..*count).contains(&partition.partition_index)) => {
            Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
        }
        _ => Ok(()),
    }
}

fn found(partition_index: i32, committed: &Committed) -> OffsetFetchPartitionResponse {
    OffsetFetchPartitionResponse {
        partition_index,
        committed_offset: committed.offset,
        committed_leader_epoch: committed.leader_epoch,
        metadata: Some(committed.metadata.clone()),
        error_code: ErrorCode::NONE,
    }
}

/// The requested offsets; all offsets if `asked` is null.
///
/// A duplicate of a partition gets INVALID_REQUEST instead of its offset and metadata. Otherwise the response could
/// have a thousand times the bytes of the request.
fn select(offsets: Option<&Offsets>, asked: Option<Vec<OffsetFetchTopic>>) -> Vec<OffsetFetchTopicResponse> {
    let mut seen: BTreeMap<String, BTreeSet<i32>> = BTreeMap::new();
    match asked {
        Some(asked) => asked
            .into_iter()
            .map(|topic| {
                let committed = offsets.and_then(|offsets| offsets.get(&topic.name));
                let seen = seen.entry(topic.name.clone()).or_default();
                let partition = |index: i32| match committed.and_then(|committed| committed.get(&index)) {
                    _ if !seen.insert(index) => no_offset(index, ErrorCode::INVALID_REQUEST),
                    Some(committed) => found(index, committed),
                    None => no_offset(index, ErrorCode::NONE),
                };
                let partitions = topic.partition_indexes.into_iter().map(partition).collect();
                OffsetFetchTopicResponse { name: topic.name, partitions }
            })
            .collect(),
        None => offsets
            .into_iter()
            .flatten()
            .map(|(name, partitions)| OffsetFetchTopicResponse {
                name: name.clone(),
                partitions: partitions.iter().map(|(&index, committed)| found(index, committed)).collect(),
            })
            .collect(),
    }
}

/// Serves an OffsetFetch. `offsets` returns the offsets of a group; an unknown group has none, which is no error. There
/// are no transactions, so every offset is stable. A duplicate of a group gets INVALID_REQUEST: otherwise a request
/// with 10,000 duplicates would get all offsets 10,000 times.
pub(super) fn fetch<'a>(
    offsets: impl Fn(&str) -> Option<&'a Offsets>,
    request: OffsetFetchRequest,
    version: i16,
) -> OffsetFetchResponse {
    if version < MANY_GROUPS_FROM {
        let topics = select(offsets(&request.group_id), request.topics);
        return OffsetFetchResponse { topics, ..Default::default() };
    }
    let mut seen = BTreeSet::new();
    let group = |group: OffsetFetchGroup| {
        let again = !seen.insert(group.group_id.clone());
        let (topics, error_code) = match again {
            true => (Vec::new(), ErrorCode::INVALID_REQUEST),
            false => (select(offsets(&group.group_id), group.topics), ErrorCode::NONE),
        };
        OffsetFetchGroupResponse { group_id: group.group_id, topics, error_code }
    };
    OffsetFetchResponse { groups: request.groups.into_iter().map(group).collect(), ..Default::default() }
}
