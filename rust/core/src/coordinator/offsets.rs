//! OffsetCommit with its fencing, and OffsetFetch.

use super::group::{Context, Group, State};
use crate::protocol::ErrorCode;
use crate::protocol::offsets::{
    OffsetCommitPartition, OffsetCommitPartitionResponse, OffsetCommitRequest, OffsetCommitResponse,
    OffsetCommitTopicResponse, OffsetFetchGroup, OffsetFetchGroupResponse, OffsetFetchPartitionResponse,
    OffsetFetchRequest, OffsetFetchResponse, OffsetFetchTopic, OffsetFetchTopicResponse,
};
use std::collections::{BTreeMap, BTreeSet};

/// From this version on OffsetFetch asks for several groups at once.
const MANY_GROUPS_FROM: i16 = 8;

/// The offsets a group committed, by topic and partition. Kept while the group is empty.
pub(super) type Offsets = BTreeMap<String, BTreeMap<i32, Committed>>;

/// A committed offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The next offset to read.
    pub offset: i64,
    /// The leader epoch of the last record read, or -1.
    pub leader_epoch: i32,
    /// What the member added.
    pub metadata: String,
}

/// The topics of the cluster and their partition counts; `None` when nobody told.
pub(super) type Topics = Option<BTreeMap<String, i32>>;

/// The answer to a commit with what `code` says of each partition.
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

impl Group {
    /// Whether a commit from this member and generation counts, in the order of a broker's checks.
    fn validate_commit(&self, request: &OffsetCommitRequest) -> Result<(), ErrorCode> {
        let instance_id = request.group_instance_id.as_deref();
        if request.generation_id < 0 && self.state == State::Empty {
            return Ok(());
        }
        if request.generation_id < 0 && request.member_id.is_empty() && instance_id.is_none() {
            return Err(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        self.validate_member(&request.member_id, instance_id)?;
        if request.generation_id != self.generation {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        if self.state == State::CompletingRebalance {
            return Err(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        Ok(())
    }

    /// Serves a commit. A valid one keeps its member's session alive.
    pub(super) fn commit(
        &mut self,
        context: &mut Context<'_>,
        request: &OffsetCommitRequest,
        topics: &Topics,
    ) -> OffsetCommitResponse {
        if let Err(code) = self.validate_commit(request) {
            return refuse_commit(request, topics, code);
        }
        if matches!(self.state, State::Stable | State::PreparingRebalance) {
            self.renew_session(context, &request.member_id);
        }
        commit_answer(request, |topic, partition| {
            if let Err(code) = known(topics, topic, partition) {
                return code;
            }
            let metadata = partition.committed_metadata.as_deref().unwrap_or_default();
            if metadata.encode_utf16().count() > context.config.max_offset_metadata {
                return ErrorCode::OFFSET_METADATA_TOO_LARGE;
            }
            let committed = Committed {
                offset: partition.committed_offset,
                leader_epoch: partition.committed_leader_epoch,
                metadata: metadata.to_owned(),
            };
            self.offsets.entry(topic.to_owned()).or_default().insert(partition.partition_index, committed);
            ErrorCode::NONE
        })
    }
}

/// The answer to a commit that does not count. Partitions that do not exist are told apart all the same: a broker looks
/// at the topics before it looks at the group.
pub(super) fn refuse_commit(request: &OffsetCommitRequest, topics: &Topics, code: ErrorCode) -> OffsetCommitResponse {
    commit_answer(request, |topic, partition| known(topics, topic, partition).err().unwrap_or(code))
}

/// Whether a commit has any partition that exists. One that has none never gets to its group.
pub(super) fn reaches_group(request: &OffsetCommitRequest, topics: &Topics) -> bool {
    let exists = |topic: &str, partition| known(topics, topic, partition).is_ok();
    request.topics.iter().any(|topic| topic.partitions.iter().any(|partition| exists(&topic.name, partition)))
}

fn known(topics: &Topics, topic: &str, partition: &OffsetCommitPartition) -> Result<(), ErrorCode> {
    match topics {
        Some(topics) if !topics.get(topic).is_some_and(|count| (0..*count).contains(&partition.partition_index)) => {
            Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
        }
        _ => Ok(()),
    }
}

fn no_offset(partition_index: i32, error_code: ErrorCode) -> OffsetFetchPartitionResponse {
    OffsetFetchPartitionResponse {
        partition_index,
        committed_offset: -1,
        committed_leader_epoch: -1,
        metadata: Some(String::new()),
        error_code,
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

/// The offsets asked for; all there are when `asked` is null.
///
/// A partition that is named again gets INVALID_REQUEST instead of its offset and metadata: the answer to a request of a
/// megabyte would otherwise be a thousand times as large.
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

/// Serves a fetch. An unknown group has no offsets; that is no error. There are no transactions here, so every offset is
/// stable. A group that is named again gets INVALID_REQUEST: a request that names it 10,000 times would get its offsets as often.
pub(super) fn fetch(
    groups: &BTreeMap<String, Group>,
    request: OffsetFetchRequest,
    version: i16,
) -> OffsetFetchResponse {
    let offsets = |group_id: &str| groups.get(group_id).map(|group| &group.offsets);
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

/// The answer to a fetch that is refused: UNSTABLE_OFFSET_COMMIT and the like concern partitions, other codes the group.
pub(super) fn fetch_refusal(request: OffsetFetchRequest, version: i16, code: ErrorCode) -> OffsetFetchResponse {
    let of_partitions = [
        ErrorCode::UNSTABLE_OFFSET_COMMIT,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode::TOPIC_AUTHORIZATION_FAILED,
    ]
    .contains(&code);
    // Version 1 has no code but those of the partitions.
    let for_group = if of_partitions { ErrorCode::NONE } else { code };
    let for_partitions = if of_partitions || version < 2 { code } else { ErrorCode::NONE };
    let refused = |topics: Option<Vec<OffsetFetchTopic>>| {
        if for_partitions.is_none() {
            return Vec::new();
        }
        let topic = |topic: OffsetFetchTopic| OffsetFetchTopicResponse {
            name: topic.name,
            partitions: topic.partition_indexes.into_iter().map(|index| no_offset(index, for_partitions)).collect(),
        };
        topics.unwrap_or_default().into_iter().map(topic).collect()
    };
    if version < MANY_GROUPS_FROM {
        let topics = refused(request.topics);
        return OffsetFetchResponse { topics, error_code: for_group, ..Default::default() };
    }
    let group = |group: OffsetFetchGroup| OffsetFetchGroupResponse {
        group_id: group.group_id,
        topics: refused(group.topics),
        error_code: for_group,
    };
    OffsetFetchResponse { groups: request.groups.into_iter().map(group).collect(), ..Default::default() }
}
