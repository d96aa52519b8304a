//! Heartbeats that leave: for good (epoch -1), or as a static member for a while (epoch -2).

use super::ConsumerGroup;
use super::request::Refusal;
use crate::embedded::coordinator::group::Context;
use crate::planning::server_side::When;
use crate::protocol::ErrorCode;
use crate::protocol::consumer_group_heartbeat::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, LEAVE_STATIC_EPOCH,
};

impl ConsumerGroup {
    /// A member leaves.
    pub(in crate::embedded::coordinator) fn leave(
        &mut self,
        context: &mut Context<'_>,
        request: &ConsumerGroupHeartbeatRequest,
    ) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
        let member_id = request.member_id.as_str();
        match &request.instance_id {
            Some(instance_id) => self.check_instance(instance_id, member_id)?,
            None => self.check_known(member_id)?,
        }
        if request.member_epoch == LEAVE_STATIC_EPOCH {
            self.leave_to_return(context, member_id);
        } else {
            self.remove(context, member_id);
        }
        Ok(ConsumerGroupHeartbeatResponse {
            member_id: Some(member_id.to_owned()),
            member_epoch: request.member_epoch,
            ..Default::default()
        })
    }

    /// A static member leaves for a while. It keeps its partitions until its session ends.
    fn leave_to_return(&mut self, context: &mut Context<'_>, member_id: &str) {
        self.change_member(member_id, |member| {
            member.epoch = LEAVE_STATIC_EPOCH;
            member.pending.clear();
            member.state = super::MemberState::Stable;
        });
        // The member is static, so the planner cannot refuse.
        let _ = self.planner.leave(member_id, true, When::Later);
        context.timers.cancel(super::Timer::Revocation(self.id.clone(), member_id.to_owned()));
    }

    pub(super) fn check_known(&self, member_id: &str) -> Result<(), Refusal> {
        if self.members.contains_key(member_id) {
            return Ok(());
        }
        let message = format!("ConsumerMember {member_id} is not a member of group {}.", self.id);
        Err(Refusal::new(ErrorCode::UNKNOWN_MEMBER_ID, message))
    }

    /// Whether the static member with this instance id is this one.
    pub(super) fn check_instance(&self, instance_id: &str, member_id: &str) -> Result<(), Refusal> {
        match self.statics.get(instance_id) {
            None => Err(Refusal::new(ErrorCode::UNKNOWN_MEMBER_ID, format!("Instance id {instance_id} is unknown."))),
            Some(holder) if holder != member_id => Err(Refusal::new(
                ErrorCode::FENCED_INSTANCE_ID,
                format!("Static member {member_id} with instance id {instance_id} was fenced by member {holder}."),
            )),
            Some(_) => Ok(()),
        }
    }
}
