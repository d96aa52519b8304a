//! DescribeGroups, ListGroups and DeleteGroups.

use super::group::{ClassicGroup, State};
use crate::protocol::ErrorCode;
use crate::protocol::group_admin::{
    DeleteGroupResult, DeleteGroupsRequest, DeleteGroupsResponse, DescribeGroupsRequest, DescribeGroupsResponse,
    DescribedGroup, DescribedGroupMember, ListGroupsRequest, ListGroupsResponse, ListedGroup,
};
use std::collections::{BTreeMap, BTreeSet};

type Groups = BTreeMap<String, ClassicGroup>;

/// The type of every group here: the leader computes the assignment, not the broker.
const CLASSIC: &str = "classic";

/// The description of a group. Metadata and the protocol's name are empty unless the group is Stable.
fn describe_one(group_id: String, group: Option<&ClassicGroup>) -> DescribedGroup {
    let Some(group) = group else {
        return DescribedGroup { group_id, group_state: "Dead".to_owned(), ..Default::default() };
    };
    let stable = group.state == State::Stable;
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
        let group = groups.get(&id);
        describe_one(id, group)
    };
    // Describe each group once. Otherwise duplicates in a short request would cause a very long response.
    let mut seen = BTreeSet::new();
    let once = request.groups.into_iter().filter(|id| seen.insert(id.clone()));
    DescribeGroupsResponse { throttle_time_ms: 0, groups: once.map(describe).collect() }
}

pub(super) fn list(groups: &Groups, request: &ListGroupsRequest) -> ListGroupsResponse {
    let (states, types) = (&request.states_filter, &request.types_filter);
    let of_type = types.is_empty() || types.iter().any(|kind| kind.eq_ignore_ascii_case(CLASSIC));
    let wanted = |group: &&ClassicGroup| {
        of_type && (states.is_empty() || states.iter().any(|state| state.eq_ignore_ascii_case(group.state.name())))
    };
    let listed = groups.values().filter(wanted).map(|group| ListedGroup {
        group_id: group.id.clone(),
        protocol_type: group.protocol_type.clone().unwrap_or_default(),
        group_state: group.state.name().to_owned(),
        group_type: CLASSIC.to_owned(),
    });
    ListGroupsResponse { throttle_time_ms: 0, error_code: ErrorCode::NONE, groups: listed.collect() }
}

/// Deletes groups and their offsets. Only an empty group can be deleted.
pub(super) fn delete(groups: &mut Groups, request: DeleteGroupsRequest) -> DeleteGroupsResponse {
    let mut delete = |group_id: String| {
        let error_code = match groups.get(&group_id).map(|group| group.state) {
            None => ErrorCode::GROUP_ID_NOT_FOUND,
            Some(State::Empty) => {
                groups.remove(&group_id);
                ErrorCode::NONE
            }
            Some(_) => ErrorCode::NON_EMPTY_GROUP,
        };
        DeleteGroupResult { group_id, error_code }
    };
    let results = request.groups_names.into_iter().map(&mut delete).collect();
    DeleteGroupsResponse { throttle_time_ms: 0, results }
}
