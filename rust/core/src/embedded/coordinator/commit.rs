//! OffsetCommit, with the checks of member and generation.

use super::group::{ClassicGroup, ClassicGroupState, Context};
use super::groups::AnyGroup;
use super::offsets::{Committed, commit_answer, known, refuse_commit};
use super::topics::ClusterTopics;
use crate::protocol::ErrorCode;
use crate::protocol::offsets::{OffsetCommitRequest, OffsetCommitResponse};

impl ClassicGroup {
    /// Whether a commit from this member and generation is valid. The checks are in the order of a broker's.
    fn validate_commit(&self, request: &OffsetCommitRequest) -> Result<(), ErrorCode> {
        let instance_id = request.group_instance_id.as_deref();
        if request.generation_id < 0 && self.state == ClassicGroupState::Empty {
            return Ok(());
        }
        if request.generation_id < 0 && request.member_id.is_empty() && instance_id.is_none() {
            return Err(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        self.validate_member(&request.member_id, instance_id)?;
        if request.generation_id != self.generation {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        if self.state == ClassicGroupState::CompletingRebalance {
            return Err(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        Ok(())
    }
}

/// Serves a commit. A valid commit renews the session of a member of a classic group; the session of a KIP-848 member is renewed
/// only by heartbeats.
pub(super) fn commit(
    group: &mut AnyGroup,
    context: &mut Context<'_>,
    request: &OffsetCommitRequest,
    topics: &ClusterTopics,
    version: i16,
) -> OffsetCommitResponse {
    let valid = match group {
        AnyGroup::Classic(group) => group.validate_commit(request),
        AnyGroup::Consumer(group) => group.validate_commit(request, version, topics),
    };
    if let Err(code) = valid {
        return refuse_commit(request, topics, code);
    }
    if let AnyGroup::Classic(group) = group
        && matches!(group.state, ClassicGroupState::Stable | ClassicGroupState::PreparingRebalance)
    {
        group.renew_session(context, &request.member_id);
    }
    let offsets = group.offsets_mut();
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
        offsets.entry(topic.name.clone()).or_default().insert(partition.partition_index, committed);
        ErrorCode::NONE
    })
}
