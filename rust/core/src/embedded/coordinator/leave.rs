//! LeaveGroup.

use super::group::{ClassicGroup, ClassicGroupState, Context};
use super::groups::AnyGroup;
use crate::protocol::ErrorCode;
use crate::protocol::leave_group::{LeaveGroupMember, LeaveGroupMemberResponse, LeaveGroupRequest, LeaveGroupResponse};

/// Since this version a request contains several members.
const BATCH_FROM: i16 = 3;

/// The members in a request of any version.
fn leaving(request: LeaveGroupRequest, version: i16) -> Vec<LeaveGroupMember> {
    if version < BATCH_FROM {
        vec![LeaveGroupMember { member_id: request.member_id, ..Default::default() }]
    } else {
        request.members
    }
}

/// The response of `group`; `None` if the group does not exist.
pub(super) fn leave(
    group: Option<&mut AnyGroup>,
    context: &mut Context<'_>,
    request: LeaveGroupRequest,
    version: i16,
) -> LeaveGroupResponse {
    let members = leaving(request, version);
    let codes = match group {
        Some(AnyGroup::Classic(group)) => group.leave(context, &members),
        Some(AnyGroup::Consumer(group)) => members.iter().map(|member| group.leave_classic(context, member)).collect(),
        None => vec![ErrorCode::UNKNOWN_MEMBER_ID; members.len()],
    };
    if version < BATCH_FROM {
        return LeaveGroupResponse { error_code: codes.first().copied().unwrap_or_default(), ..Default::default() };
    }
    let answer = |(member, error_code): (LeaveGroupMember, _)| LeaveGroupMemberResponse {
        member_id: member.member_id,
        group_instance_id: member.group_instance_id,
        error_code,
    };
    LeaveGroupResponse { members: members.into_iter().zip(codes).map(answer).collect(), ..Default::default() }
}

impl ClassicGroup {
    /// Removes the members; one code for each.
    fn leave(&mut self, context: &mut Context<'_>, members: &[LeaveGroupMember]) -> Vec<ErrorCode> {
        let codes: Vec<_> = members.iter().map(|member| self.leave_one(context, member)).collect();
        if codes.contains(&ErrorCode::NONE) && self.state != ClassicGroupState::Empty {
            self.rebalance_or_complete_join(context);
        }
        codes
    }

    fn leave_one(&mut self, context: &mut Context<'_>, member: &LeaveGroupMember) -> ErrorCode {
        let instance_id = member.group_instance_id.as_deref();
        let id = if member.member_id.is_empty() {
            // The admin client removes a static member by its instance id, without a member id.
            match instance_id.and_then(|instance_id| self.static_members.get(instance_id)) {
                Some(id) => id.clone(),
                None => return ErrorCode::UNKNOWN_MEMBER_ID,
            }
        } else {
            if !self.pending.contains(&member.member_id)
                && let Err(code) = self.validate_member(&member.member_id, instance_id)
            {
                return code;
            }
            member.member_id.clone()
        };
        self.remove(context, &id);
        ErrorCode::NONE
    }
}
