//! A static member that comes back, as a new process or because its application polls again, gets the plan that was made
//! for the one it was, without a rebalance, and so does a static leader (KIP-814). Nobody notices if the plan no longer fits:
//! topics were added to the subscription, partitions to a topic. So after the first share since it was in no generation, a
//! static member looks whether somebody owns each partition it knows of.

use super::connections::Broken;
use super::event::Role;
use super::{Membership, Phase};
use crate::protocol::group_admin::{DescribeGroupsRequest, DescribeGroupsResponse, DescribedGroup};
use crate::protocol::{RequestHeader, read_response};
use crate::wire::assignment::Assignment;
use std::collections::HashSet;

/// How far the look at the group is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audit {
    /// Before the share.
    Ahead,
    /// To be asked for.
    Wanted,
    /// Asked for.
    Asked,
    /// Over, or not needed.
    Over,
}

impl Membership {
    /// Whether topics have to be asked for: those that the member knew when it went away may have grown since.
    pub(super) fn audit_needs_topics(&self) -> bool {
        let wanted = self.subscription.as_ref().filter(|_| self.audit == Audit::Wanted);
        matches!(self.phase, Phase::Stable)
            && wanted.is_some_and(|wanted| !self.cluster.covers(&wanted.topics, self.join_sent_at))
    }

    pub(super) fn drive_audit(&mut self) {
        if self.audit != Audit::Wanted
            || !matches!(self.phase, Phase::Stable)
            || self.notice.is_some()
            || self.unchecked.is_some()
        {
            return;
        }
        if self.rejoin.is_some() {
            // A rebalance makes a plan that fits.
            self.audit = Audit::Over;
            return;
        }
        let Some(wanted) = &self.subscription else { return };
        let known = self.cluster.covers(&wanted.topics, self.join_sent_at)
            && self.watched.as_ref().is_none_or(|watched| self.cluster.covers(&watched.names, self.join_sent_at));
        let Some(conn) = self.ready(Role::Offsets).filter(|_| known) else { return };
        let body =
            DescribeGroupsRequest { groups: vec![self.config.group_id.clone()], include_authorized_operations: false };
        if self.ask(conn, &body, i16::MAX, self.now + self.config.request_timeout_ms) {
            self.audit = Audit::Asked;
        }
    }

    /// With each JoinGroup: of a member in no generation the share may be an old one.
    pub(super) fn audit_comeback(&mut self) {
        if self.config.is_static() && self.identity.generation < 0 {
            self.audit = Audit::Ahead;
        }
    }

    pub(super) fn audit_interrupted(&mut self) {
        if self.audit == Audit::Asked {
            self.audit = Audit::Wanted;
        }
    }

    pub(super) fn on_described(&mut self, conn: u64, header: &RequestHeader, frame: &[u8]) -> Result<(), Broken> {
        let response: DescribeGroupsResponse = read_response(header, frame)?;
        self.throttle(conn, response.throttle_time_ms);
        if self.audit != Audit::Asked {
            // Of the generation before.
            return Ok(());
        }
        self.audit = Audit::Over;
        let Some(group) = response.groups.into_iter().find(|group| group.group_id == self.config.group_id) else {
            return Ok(());
        };
        if !group.error_code.is_none() {
            self.info(format!("cannot look at the group to see whether the plan fits: {}", group.error_code));
            return Ok(());
        }
        if group.group_state == "Stable"
            && matches!(self.phase, Phase::Stable)
            && let Some((topic, partition)) = self.unowned(&group)
        {
            self.info(format!("nobody owns {topic}-{partition}: the plan is older than this member's subscription"));
            self.change_metadata();
            self.want_rejoin("the plan does not cover every partition");
        }
        Ok(())
    }

    /// A partition that is in nobody's assignment: of the topics subscribed to, and for a leader of those of all members.
    fn unowned(&self, group: &DescribedGroup) -> Option<(String, u32)> {
        let mut owned: HashSet<(&[u8], i32)> = HashSet::new();
        for member in &group.members {
            // Another member's bytes: what cannot be read owns nothing.
            let Ok(read) = Assignment::read(&member.member_assignment) else { continue };
            for (topic, numbers) in read.partitions.iter() {
                owned.extend(numbers.iter().map(|number| (topic, number)));
            }
        }
        let wanted = self.subscription.iter().flat_map(|wanted| &wanted.topics);
        let watched = self.watched.iter().flat_map(|watched| &watched.names);
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
