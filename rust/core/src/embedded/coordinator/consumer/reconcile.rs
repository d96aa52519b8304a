//! The steps of a member towards its target: it gives partitions up before other members are assigned them, and it is assigned
//! partitions that no member has.

use super::ConsumerGroup;
use super::member::{AssignedPartitions, MemberState, has, still_owns};
use crate::embedded::coordinator::topics::ClusterTopics;
use crate::protocol::TopicId;
use crate::protocol::consumer_group_heartbeat::HeartbeatTopicPartitions;
use std::collections::BTreeMap;

impl ConsumerGroup {
    /// Brings a member one step nearer to its target. `owned` are the owned partitions in its request. If the member
    /// `resubscribed`, its target can change before the new plan is made. Returns whether its assigned partitions changed.
    ///
    /// A partition that a member has, or has not acknowledged as given up, is not assigned to another member. So a partition
    /// never has two owners.
    pub(super) fn reconcile(
        &mut self,
        member_id: &str,
        owned: Option<&[HeartbeatTopicPartitions]>,
        resubscribed: bool,
        topics: &ClusterTopics,
    ) -> bool {
        let Some(member) = self.members.get(member_id) else { return false };
        let waits = member.state == MemberState::UnrevokedPartitions && still_owns(owned, &member.pending);
        if waits || (member.state == MemberState::Stable && self.is_reconciled(member) && !resubscribed) {
            return false;
        }
        let target = self.target_of(member_id, topics);
        let (mut assigned, mut lost) = (AssignedPartitions::new(), AssignedPartitions::new());
        for (topic, held) in &member.assigned {
            for (&partition, &since) in held {
                let stays = target.get(topic).is_some_and(|wanted| wanted.contains(&partition));
                let side = if stays { &mut assigned } else { &mut lost };
                side.entry(*topic).or_default().insert(partition, since);
            }
        }
        let must_revoke = !lost.is_empty() && still_owns(owned, &lost);
        let mut unreleased = false;
        if !must_revoke {
            for (topic, wanted) in &target {
                for &partition in wanted.iter().filter(|&&partition| !has(&member.assigned, topic, partition)) {
                    if self.held.contains(&(*topic, partition)) {
                        unreleased = true;
                    } else {
                        assigned.entry(*topic).or_default().insert(partition, self.assignment_epoch);
                    }
                }
            }
        }
        let epoch = if must_revoke { member.epoch } else { self.assignment_epoch };
        let state = match (must_revoke, unreleased) {
            (true, _) => MemberState::UnrevokedPartitions,
            (false, true) => MemberState::UnreleasedPartitions,
            (false, false) => MemberState::Stable,
        };
        let pending = if must_revoke { lost } else { AssignedPartitions::new() };
        self.change_member(member_id, |member| {
            member.previous_epoch = std::mem::replace(&mut member.epoch, epoch);
            member.state = state;
            member.pending = pending;
            std::mem::replace(&mut member.assigned, assigned)
        })
        .is_some_and(|before| self.members.get(member_id).is_some_and(|member| member.assigned != before))
    }

    /// The member's target, without topics to which it does not subscribe any more.
    pub(super) fn target_of(&self, member_id: &str, topics: &ClusterTopics) -> BTreeMap<TopicId, Vec<i32>> {
        let (Ok(target), Some(member)) = (self.planner.target(member_id), self.members.get(member_id)) else {
            return BTreeMap::new();
        };
        let matched = member.expression.as_ref().and_then(|expression| self.expressions.get(expression));
        let subscribes = |name: &str| {
            member.names.contains(name) || matched.is_some_and(|expression| expression.topics.contains(name))
        };
        let wanted = target.filter(|(name, _)| subscribes(name));
        let with_id = |(name, list): (&str, &[u32])| {
            Some((topics.get(name)?.id, list.iter().map(|&partition| partition as i32).collect()))
        };
        wanted.filter_map(with_id).collect()
    }
}
