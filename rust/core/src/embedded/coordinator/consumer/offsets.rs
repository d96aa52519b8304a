//! The checks of a KIP-848 group for commits and fetches of offsets.

use super::ConsumerGroup;
use crate::embedded::coordinator::topics::ClusterTopics;
use crate::protocol::ErrorCode;
use crate::protocol::offsets::{OffsetCommitRequest, OffsetFetchGroup};

/// Since this version the generation of a commit is a member's epoch.
const MEMBER_EPOCH_FROM: i16 = 9;

impl ConsumerGroup {
    /// Whether a commit is valid. A commit with an older epoch than the member's is valid if the member has had all partitions of
    /// the commit since that epoch (KIP-1251, brokers from 4.3 on). At the present epoch a member may also commit partitions that
    /// it does not own.
    pub(in crate::embedded::coordinator) fn validate_commit(
        &self,
        request: &OffsetCommitRequest,
        version: i16,
        topics: &ClusterTopics,
    ) -> Result<(), ErrorCode> {
        if request.generation_id < 0 && self.members.is_empty() {
            return Ok(());
        }
        let member = self.members.get(&request.member_id).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
        if member.classic.is_some() {
            // The generation of a classic member is its epoch.
            return if request.generation_id == member.epoch { Ok(()) } else { Err(ErrorCode::ILLEGAL_GENERATION) };
        }
        if version < MEMBER_EPOCH_FROM {
            return Err(ErrorCode::UNSUPPORTED_VERSION);
        }
        let epoch = request.generation_id;
        let had = |topic: &str, partition| {
            let since = topics.get(topic).and_then(|topic| member.has_since(&topic.id, partition));
            since.is_some_and(|since| since <= epoch)
        };
        let all_had = || {
            let topics = request.topics.iter();
            topics
                .flat_map(|topic| topic.partitions.iter().map(|one| (&topic.name, one.partition_index)))
                .all(|(topic, partition)| had(topic, partition))
        };
        if epoch == member.epoch || (epoch < member.epoch && all_had()) {
            return Ok(());
        }
        Err(ErrorCode::STALE_MEMBER_EPOCH)
    }

    /// Whether a fetch of offsets is valid. A fetch from outside the group contains no member id.
    pub(in crate::embedded::coordinator) fn validate_fetch(&self, request: &OffsetFetchGroup) -> Result<(), ErrorCode> {
        if request.member_id.is_none() && request.member_epoch < 0 {
            return Ok(());
        }
        let member =
            request.member_id.as_ref().and_then(|id| self.members.get(id)).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
        if request.member_epoch == member.epoch { Ok(()) } else { Err(ErrorCode::STALE_MEMBER_EPOCH) }
    }
}
