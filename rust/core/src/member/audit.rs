//! The audit of a static member that comes back, as a new process or because its application polls again.
//!
//! The coordinator gives such a member its old assignment without a rebalance, even if the member is the leader (KIP-814). If the
//! subscription or a topic has grown since, the new partitions have no owner, and no member notices that. So a static member that
//! was in no generation sends DescribeGroups after its first assignment. The answer shows whether each known partition has an
//! owner.

use super::connections::Broken;
use super::course::Trigger;
use super::event::Role;
use super::machine::Machine;
use super::{Membership, Phase, Progress};
use crate::protocol::assignment::Assignment;
use crate::protocol::group_admin::{DescribeGroupsRequest, DescribeGroupsResponse, DescribedGroup};
use crate::protocol::{RequestHeader, read_response};
use std::collections::HashSet;

/// The state of the audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audit {
    /// The audit begins after the next assignment.
    Ahead,
    /// DescribeGroups is to be sent.
    Wanted,
    /// DescribeGroups is unanswered.
    Asked,
    /// The audit is over, or not needed.
    Over,
}

impl Membership {
    /// Whether the member must request Metadata: the topics may have grown while the member was away.
    pub(super) fn audit_needs_topics(&self) -> bool {
        let wanted = self.subscription.as_ref().filter(|_| self.generation.audit == Audit::Wanted);
        matches!(self.generation.phase, Phase::Stable)
            && wanted.is_some_and(|wanted| !self.cluster.covers(&wanted.topics, self.attempt.sent_at))
    }

    pub(super) fn drive_audit(&mut self) -> Progress {
        if self.generation.audit != Audit::Wanted
            || !matches!(self.generation.phase, Phase::Stable)
            || self.notice.is_some()
            || self.generation.unchecked.is_some()
        {
            return false;
        }
        if self.generation.rejoin.is_some() {
            // The member joins again anyway, and the next plan covers all partitions.
            self.generation.audit = Audit::Over;
            return true;
        }
        let Some(wanted) = &self.subscription else { return false };
        let known = self.cluster.covers(&wanted.topics, self.attempt.sent_at)
            && self
                .generation
                .watched
                .as_ref()
                .is_none_or(|watched| self.cluster.covers(&watched.names, self.attempt.sent_at));
        let Some(conn) = self.network.ready(Role::Offsets).filter(|_| known) else { return false };
        let body =
            DescribeGroupsRequest { groups: vec![self.config.group_id.clone()], include_authorized_operations: false };
        let asked = self.ask(conn, &body, i16::MAX, self.network.request_deadline());
        self.generation.audit = if asked { Audit::Asked } else { Audit::Over };
        true
    }

    /// Runs with each JoinGroup: a member in no generation may get an old assignment.
    pub(super) fn audit_comeback(&mut self) {
        if self.config.is_static() && self.generation.id < 0 {
            self.generation.audit = Audit::Ahead;
        }
    }

    pub(super) fn audit_interrupted(&mut self) {
        if self.generation.audit == Audit::Asked {
            self.generation.audit = Audit::Wanted;
        }
    }

    pub(super) fn on_described(&mut self, conn: u64, header: &RequestHeader, frame: &[u8]) -> Result<(), Broken> {
        let response: DescribeGroupsResponse = read_response(header, frame)?;
        self.network.throttle(conn, response.throttle_time_ms);
        if self.generation.audit != Audit::Asked {
            // DescribeGroups was sent in an earlier generation.
            return Ok(());
        }
        self.generation.audit = Audit::Over;
        let Some(group) = response.groups.into_iter().find(|group| group.group_id == self.config.group_id) else {
            return Ok(());
        };
        if !group.error_code.is_none() {
            self.network.info(format!(
                "DescribeGroups failed, so the plan could not be compared with the members' subscriptions: {}",
                group.error_code
            ));
            return Ok(());
        }
        if group.group_state == "Stable"
            && matches!(self.generation.phase, Phase::Stable)
            && let Some((topic, partition)) = self.unowned(&group)
        {
            self.network
                .info(format!("nobody owns {topic}-{partition}: the plan is older than this member's subscription"));
            self.change_metadata();
            self.want_rejoin(Trigger::Asked, "the plan does not cover every partition");
        }
        Ok(())
    }

    /// A partition that is in no member's assignment. It belongs to a topic of this member's subscription or, for a leader, of
    /// any member's.
    fn unowned(&self, group: &DescribedGroup) -> Option<(String, u32)> {
        let mut owned: HashSet<(&[u8], i32)> = HashSet::new();
        for member in &group.members {
            // The leader wrote these bytes for another member. An assignment that cannot be read counts as empty.
            let Ok(read) = Assignment::read(&member.member_assignment) else { continue };
            for (topic, numbers) in read.partitions.iter() {
                owned.extend(numbers.iter().map(|number| (topic, number)));
            }
        }
        let wanted = self.subscription.iter().flat_map(|wanted| &wanted.topics);
        let watched = self.generation.watched.iter().flat_map(|watched| &watched.names);
        for topic in wanted.chain(watched) {
            let partitions = self.cluster.topics.get(topic).map_or(0, |shape| shape.partitions);
            let free = (0..partitions).find(|&number| !owned.contains(&(topic.as_bytes(), number as i32)));
            if let Some(number) = free {
                return Some((topic.clone(), number));
            }
        }
        None
    }
}
