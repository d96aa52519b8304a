//! The description of a KIP-848 group.

use super::ConsumerGroup;
use super::member::ConsumerMember;
use crate::embedded::coordinator::config::Config;
use crate::embedded::coordinator::topics::ClusterTopics;
use crate::protocol::group_admin::{
    DescribedAssignment, DescribedConsumer, DescribedConsumerGroup, DescribedTopicPartitions,
};

/// The types of members, by the protocol that they speak (KIP-1099).
const CLASSIC_TYPE: i8 = 0;
const CONSUMER_TYPE: i8 = 1;

impl ConsumerGroup {
    /// The answer to ConsumerGroupDescribe.
    pub(in crate::embedded::coordinator) fn describe(
        &self,
        config: &Config,
        topics: &ClusterTopics,
    ) -> DescribedConsumerGroup {
        let members = self.planner.listing().filter_map(|id| Some((id, self.members.get(id)?)));
        DescribedConsumerGroup {
            group_id: self.id.clone(),
            group_state: self.state().name().to_owned(),
            group_epoch: self.epoch,
            assignment_epoch: self.assignment_epoch,
            assignor_name: self.elected(config).name().to_owned(),
            members: members.map(|(id, member)| self.describe_member(id, member, topics)).collect(),
            ..Default::default()
        }
    }

    fn describe_member(&self, id: &str, member: &ConsumerMember, topics: &ClusterTopics) -> DescribedConsumer {
        let assigned = member.assigned.iter().filter_map(|(topic_id, held)| {
            Some(DescribedTopicPartitions {
                topic_id: *topic_id,
                topic_name: topics.name(topic_id)?.to_owned(),
                partitions: held.keys().copied().collect(),
            })
        });
        // The topics are in the order of the coordinator's maps. The next plan depends on it, so a reader can compute that plan.
        let target = self.planner.target(id).into_iter().flatten().filter_map(|(name, list)| {
            Some(DescribedTopicPartitions {
                topic_id: topics.get(name)?.id,
                topic_name: name.to_owned(),
                partitions: list.iter().map(|&partition| partition as i32).collect(),
            })
        });
        DescribedConsumer {
            member_id: id.to_owned(),
            instance_id: member.instance_id.clone(),
            rack_id: member.rack_id.clone(),
            member_epoch: member.epoch,
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            subscribed_topic_names: member.names.iter().cloned().collect(),
            subscribed_topic_regex: Some(member.expression.clone().unwrap_or_default()),
            assignment: DescribedAssignment { topic_partitions: assigned.collect() },
            target_assignment: DescribedAssignment { topic_partitions: target.collect() },
            member_type: if member.classic.is_some() { CLASSIC_TYPE } else { CONSUMER_TYPE },
        }
    }
}
