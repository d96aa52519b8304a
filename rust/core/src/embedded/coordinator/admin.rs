//! DescribeGroups, ConsumerGroupDescribe, ListGroups and DeleteGroups.

use super::config::Config;
use super::group::{ClassicGroup, ClassicGroupState};
use super::groups::{AnyGroup, Groups};
use super::topics::ClusterTopics;
use crate::protocol::group_admin::{
    ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, DeleteGroupResult, DeleteGroupsRequest,
    DeleteGroupsResponse, DescribeGroupsRequest, DescribeGroupsResponse, DescribedConsumerGroup, DescribedGroup,
    DescribedGroupMember, ListGroupsRequest, ListGroupsResponse, ListedGroup,
};
use crate::protocol::{CONSUMER, ErrorCode};
use std::collections::BTreeSet;

/// The type of a group whose leader plans.
const CLASSIC_GROUP: &str = "classic";
/// The type of a group of KIP-848.
const CONSUMER_GROUP: &str = "consumer";

/// The description of a group. Metadata and the protocol's name are empty unless the group is Stable.
fn describe_one(group_id: String, group: Option<&ClassicGroup>) -> DescribedGroup {
    let Some(group) = group else {
        return DescribedGroup { group_id, group_state: "Dead".to_owned(), ..Default::default() };
    };
    let stable = group.state == ClassicGroupState::Stable;
    let members = group.members.iter().map(|(id, member)| DescribedGroupMember {
        member_id: id.clone(),
        group_instance_id: member.instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        member_metadata: if stable { group.metadata_of(member).to_vec() } else { Vec::new() },
        member_assignment: member.assignment.clone(),
    });
    DescribedGroup {
        error_code: ErrorCode::NONE,
        group_id,
        group_state: group.state.name().to_owned(),
        protocol_type: group.protocol_type.clone().unwrap_or_default(),
        protocol_data: group.protocol.clone().filter(|_| stable).unwrap_or_default(),
        members: members.collect(),
        ..Default::default()
    }
}

pub(super) fn describe(groups: &Groups, request: DescribeGroupsRequest) -> DescribeGroupsResponse {
    let describe = |id: String| {
        // A KIP-848 group is described like a group that does not exist.
        let group = groups.classic(&id);
        describe_one(id, group)
    };
    // Describe each group once. Otherwise duplicates in a short request would cause a very long response.
    let mut seen = BTreeSet::new();
    let once = request.groups.into_iter().filter(|id| seen.insert(id.clone()));
    DescribeGroupsResponse { throttle_time_ms: 0, groups: once.map(describe).collect() }
}

pub(super) fn list(groups: &Groups, request: &ListGroupsRequest) -> ListGroupsResponse {
    let wanted = |filter: &[String], value: &str| {
        filter.is_empty() || filter.iter().any(|wanted| wanted.eq_ignore_ascii_case(value))
    };
    let listed = groups.iter().map(|(id, group)| {
        let (protocol_type, state, group_type) = match group {
            AnyGroup::Classic(group) => {
                (group.protocol_type.clone().unwrap_or_default(), group.state.name(), CLASSIC_GROUP)
            }
            AnyGroup::Consumer(group) => (CONSUMER.to_owned(), group.state().name(), CONSUMER_GROUP),
        };
        ListedGroup {
            group_id: id.to_owned(),
            protocol_type,
            group_state: state.to_owned(),
            group_type: group_type.to_owned(),
        }
    });
    let listed = listed.filter(|group| {
        wanted(&request.states_filter, &group.group_state) && wanted(&request.types_filter, &group.group_type)
    });
    ListGroupsResponse { throttle_time_ms: 0, error_code: ErrorCode::NONE, groups: listed.collect() }
}

/// The descriptions of groups of KIP-848. Each group is described once, as above.
pub(super) fn describe_consumers(
    groups: &Groups,
    config: &Config,
    topics: &ClusterTopics,
    request: ConsumerGroupDescribeRequest,
) -> ConsumerGroupDescribeResponse {
    let mut seen = BTreeSet::new();
    let once = request.group_ids.into_iter().filter(|id| seen.insert(id.clone()));
    let described = once.map(|group_id| match groups.get(&group_id) {
        Some(AnyGroup::Consumer(group)) => group.describe(config, topics),
        other => DescribedConsumerGroup {
            error_code: ErrorCode::GROUP_ID_NOT_FOUND,
            error_message: Some(match other {
                Some(_) => format!("Group {group_id} is not a consumer group."),
                None => format!("Group {group_id} not found."),
            }),
            group_id,
            ..Default::default()
        },
    });
    ConsumerGroupDescribeResponse { throttle_time_ms: 0, groups: described.collect() }
}

/// Deletes groups and their offsets. Only an empty group can be deleted.
pub(super) fn delete(groups: &mut Groups, request: DeleteGroupsRequest) -> DeleteGroupsResponse {
    let mut delete = |group_id: String| {
        let error_code = match groups.get(&group_id).map(AnyGroup::is_empty) {
            None => ErrorCode::GROUP_ID_NOT_FOUND,
            Some(true) => {
                groups.remove(&group_id);
                ErrorCode::NONE
            }
            Some(false) => ErrorCode::NON_EMPTY_GROUP,
        };
        DeleteGroupResult { group_id, error_code }
    };
    let results = request.groups_names.into_iter().map(&mut delete).collect();
    DeleteGroupsResponse { throttle_time_ms: 0, results }
}
