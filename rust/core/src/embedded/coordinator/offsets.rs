//! Committed offsets, and the responses to OffsetCommit and OffsetFetch.

use super::topics::ClusterTopics;
use crate::embedded::refusal::{MANY_GROUPS_FROM, no_offset};
use crate::protocol::offsets::{
    OffsetCommitPartition, OffsetCommitPartitionResponse, OffsetCommitRequest, OffsetCommitResponse, OffsetCommitTopic,
    OffsetCommitTopicResponse, OffsetFetchGroup, OffsetFetchGroupResponse, OffsetFetchPartitionResponse,
    OffsetFetchRequest, OffsetFetchResponse, OffsetFetchTopic, OffsetFetchTopicResponse,
};
use crate::protocol::{ErrorCode, TopicId};
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

/// Since this version topics have ids instead of names.
const TOPIC_IDS_FROM: i16 = 10;

/// Gives the topics of a commit their names; a topic that does not exist gets no name.
pub(super) fn name_topics(request: &mut OffsetCommitRequest, topics: &ClusterTopics, version: i16) {
    for topic in request.topics.iter_mut().filter(|_| version >= TOPIC_IDS_FROM) {
        topic.name = topics.name(&topic.topic_id).unwrap_or_default().to_owned();
    }
}

/// The response to a commit, with the `code` of each partition.
pub(super) fn commit_answer(
    request: &OffsetCommitRequest,
    mut code: impl FnMut(&OffsetCommitTopic, &OffsetCommitPartition) -> ErrorCode,
) -> OffsetCommitResponse {
    let topics = request.topics.iter().map(|topic| OffsetCommitTopicResponse {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: topic
            .partitions
            .iter()
            .map(|partition| OffsetCommitPartitionResponse {
                partition_index: partition.partition_index,
                error_code: code(topic, partition),
            })
            .collect(),
    });
    OffsetCommitResponse { throttle_time_ms: 0, topics: topics.collect() }
}

/// The response to a refused commit. A partition that does not exist gets its own error, because a broker checks the
/// topics before the group.
pub(super) fn refuse_commit(
    request: &OffsetCommitRequest,
    topics: &ClusterTopics,
    code: ErrorCode,
) -> OffsetCommitResponse {
    commit_answer(request, |topic, partition| known(topics, topic, partition).err().unwrap_or(code))
}

/// Whether a commit contains an existing partition. Without one, the broker answers before it reads the group.
pub(super) fn reaches_group(request: &OffsetCommitRequest, topics: &ClusterTopics) -> bool {
    let exists = |topic, partition| known(topics, topic, partition).is_ok();
    request.topics.iter().any(|topic| topic.partitions.iter().any(|partition| exists(topic, partition)))
}

/// The error of a partition that does not exist.
pub(super) fn known(
    topics: &ClusterTopics,
    topic: &OffsetCommitTopic,
    partition: &OffsetCommitPartition,
) -> Result<(), ErrorCode> {
    if topic.name.is_empty() {
        // The name is empty only for a topic that was requested by an unknown id.
        return Err(ErrorCode::UNKNOWN_TOPIC_ID);
    }
    if topics.has(&topic.name, partition.partition_index) {
        return Ok(());
    }
    Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
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
fn select(
    offsets: Option<&Offsets>,
    topics: &ClusterTopics,
    asked: Option<Vec<OffsetFetchTopic>>,
    version: i16,
) -> Vec<OffsetFetchTopicResponse> {
    let mut seen: BTreeMap<String, BTreeSet<i32>> = BTreeMap::new();
    match asked {
        Some(asked) => asked
            .into_iter()
            .map(|mut topic| {
                if version >= TOPIC_IDS_FROM {
                    let Some(name) = topics.name(&topic.topic_id) else {
                        let unknown = |index| no_offset(index, ErrorCode::UNKNOWN_TOPIC_ID);
                        let partitions = topic.partition_indexes.into_iter().map(unknown).collect();
                        return OffsetFetchTopicResponse { topic_id: topic.topic_id, partitions, ..Default::default() };
                    };
                    name.clone_into(&mut topic.name);
                }
                let committed = offsets.and_then(|offsets| offsets.get(&topic.name));
                let seen = seen.entry(topic.name.clone()).or_default();
                let partition = |index: i32| match committed.and_then(|committed| committed.get(&index)) {
                    _ if !seen.insert(index) => no_offset(index, ErrorCode::INVALID_REQUEST),
                    Some(committed) => found(index, committed),
                    None => no_offset(index, ErrorCode::NONE),
                };
                let partitions = topic.partition_indexes.into_iter().map(partition).collect();
                OffsetFetchTopicResponse { name: topic.name, topic_id: topic.topic_id, partitions }
            })
            .collect(),
        None => offsets
            .into_iter()
            .flatten()
            .map(|(name, partitions)| OffsetFetchTopicResponse {
                name: name.clone(),
                topic_id: topics.get(name).map_or(TopicId::default(), |topic| topic.id),
                partitions: partitions.iter().map(|(&index, committed)| found(index, committed)).collect(),
            })
            .collect(),
    }
}

/// Serves an OffsetFetch. `offsets` returns the offsets of a group, or why it has none for this request; an unknown group has
/// none, which is no error. There are no transactions, so every offset is stable. A duplicate of a group gets
/// INVALID_REQUEST: otherwise a request with 10,000 duplicates would get all offsets 10,000 times.
pub(super) fn fetch<'a>(
    offsets: impl Fn(&OffsetFetchGroup) -> Result<Option<&'a Offsets>, ErrorCode>,
    topics: &ClusterTopics,
    request: OffsetFetchRequest,
    version: i16,
) -> OffsetFetchResponse {
    if version < MANY_GROUPS_FROM {
        let group = OffsetFetchGroup { group_id: request.group_id, ..Default::default() };
        return match offsets(&group) {
            Ok(offsets) => {
                let topics = select(offsets, topics, request.topics, version);
                OffsetFetchResponse { topics, ..Default::default() }
            }
            Err(error_code) => OffsetFetchResponse { error_code, ..Default::default() },
        };
    }
    let mut seen = BTreeSet::new();
    let group = |group: OffsetFetchGroup| {
        let is_new = seen.insert(group.group_id.clone());
        let found = if is_new { offsets(&group) } else { Err(ErrorCode::INVALID_REQUEST) };
        let (topics, error_code) = match found {
            Ok(offsets) => (select(offsets, topics, group.topics, version), ErrorCode::NONE),
            Err(code) => (Vec::new(), code),
        };
        OffsetFetchGroupResponse { group_id: group.group_id, topics, error_code }
    };
    OffsetFetchResponse { groups: request.groups.into_iter().map(group).collect(), ..Default::default() }
}
