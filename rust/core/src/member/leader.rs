//! The leader: its plan, and the topics that it watches afterwards.

use super::course::Trigger;
use super::event::{Action, Level, PlanMember};
use super::metadata::{TopicShape, plan_topics};
use super::{Membership, Phase, Progress, RebalanceProtocol};
use crate::protocol::ErrorCode;
use crate::protocol::assignment::{self, Assignment};
use crate::protocol::join_group::JoinGroupMember;
use crate::protocol::subscription::Subscription;
use crate::protocol::topic_partitions::CanonicalPartitions;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A plan that is being made.
#[derive(Debug)]
pub(super) struct Planning {
    members: Vec<PlanMember>,
    /// The union of the topics to which these members subscribe.
    pub(super) names: BTreeSet<String>,
    /// The topics must have been requested at this time or later.
    pub(super) since: u64,
    joined_at: u64,
    /// The ticket of [`Action::Plan`]; `None` before this action.
    ticket: Option<u64>,
}

/// The topics whose change makes the leader plan again.
#[derive(Debug)]
pub(super) struct Watched {
    /// The union of the topics to which the members subscribe.
    pub(super) names: BTreeSet<String>,
    /// The topics with which the plan was made. If the plan is an old one: `None`, until the topics are known.
    pub(super) shapes: Option<BTreeMap<String, TopicShape>>,
    pub(super) with_racks: bool,
    /// The plan's topics were older than this time, and must be requested once more at this time or later.
    pub(super) verify_since: Option<u64>,
}

/// The topics of one member's metadata; none if it cannot be read. That member wrote the bytes: wrong bytes may cost it its
/// partitions, but must not affect any other member.
fn topics(metadata: &[u8]) -> impl Iterator<Item = String> {
    let names = Subscription::read(metadata).map(|read| read.topics).unwrap_or_default();
    let names: Vec<String> =
        names.iter().filter_map(|name| std::str::from_utf8(name).ok().map(str::to_owned)).collect();
    names.into_iter()
}

impl Membership {
    pub(super) fn lead(&mut self, members: Vec<JoinGroupMember>, skip: bool) {
        let mut names: BTreeSet<String> = members.iter().flat_map(|member| topics(&member.metadata)).collect();
        if let Some(wanted) = &self.subscription {
            names.extend(wanted.topics.iter().cloned());
        }
        let member = |member: JoinGroupMember| PlanMember {
            member_id: member.member_id,
            group_instance_id: member.group_instance_id,
            metadata: member.metadata,
        };
        if skip {
            // A static leader has come back. The old plan holds (KIP-814), and the leader watches its topics.
            self.course.trigger = Trigger::LeaderReturned;
            self.watch(names, None, Some(self.attempt.sent_at));
            self.generation.phase = Phase::Syncing(Some(Vec::new()));
            return;
        }
        let members = members.into_iter().map(member).collect();
        self.generation.phase = Phase::Planning(Planning {
            members,
            names,
            since: self.attempt.sent_at,
            joined_at: self.network.now,
            ticket: None,
        });
    }

    fn watch(
        &mut self,
        names: BTreeSet<String>,
        shapes: Option<BTreeMap<String, TopicShape>>,
        verify_since: Option<u64>,
    ) {
        let with_racks = self.config.assignor(&self.generation.protocol).is_some_and(|assignor| assignor.uses_racks);
        self.generation.watched = Some(Watched { names, shapes, with_racks, verify_since });
    }

    /// Requests the plan from the host once the topics are known.
    pub(super) fn drive_plan(&mut self) -> Progress {
        let Phase::Planning(planning) = &mut self.generation.phase else { return false };
        if planning.ticket.is_some() || !self.cluster.covers(&planning.names, planning.since) {
            return false;
        }
        self.last_ticket += 1;
        planning.ticket = Some(self.last_ticket);
        let shapes = self.cluster.shapes(&planning.names);
        let topics = plan_topics(&shapes);
        let members = planning.members.clone();
        let names = planning.names.clone();
        // Topics that were requested while JoinGroup was parked may have changed before its answer. They are requested once more.
        let joined_at = planning.joined_at;
        let verify = self.cluster.asked_at.filter(|&at| at < joined_at).map(|_| joined_at);
        self.watch(names, Some(shapes), verify);
        self.network.actions.push(Action::Plan {
            ticket: self.last_ticket,
            generation: self.generation.id,
            protocol: self.generation.protocol.clone(),
            members,
            topics,
        });
        true
    }

    fn plan_of(&self, ticket: u64) -> Option<&Planning> {
        match &self.generation.phase {
            Phase::Planning(planning) if planning.ticket == Some(ticket) => Some(planning),
            _ => None,
        }
    }

    pub(super) fn on_planned(&mut self, ticket: u64, assignments: Vec<(String, Vec<u8>)>) {
        let Some(planning) = self.plan_of(ticket) else { return };
        let mut given: BTreeMap<String, Vec<u8>> = assignments.into_iter().collect();
        // A member without an entry would get zero bytes, which are no assignment.
        let nothing = assignment::encode(
            &CanonicalPartitions::new(std::iter::empty::<(&str, [i32; 0])>()),
            Some(self.generation.id),
        );
        let nothing = nothing.unwrap_or_default();
        let entries: Vec<(String, Vec<u8>)> = planning
            .members
            .iter()
            .map(|member| {
                let bytes = given.remove(&member.member_id).unwrap_or_else(|| nothing.clone());
                (member.member_id.clone(), bytes)
            })
            .collect();
        let settles = self.config.assignor(&self.generation.protocol).is_some_and(|assignor| assignor.settles_claims);
        if self.config.rebalance_protocol() == RebalanceProtocol::Cooperative && !settles {
            let members = planning.members.iter().map(|member| (member.member_id.as_str(), member.metadata.as_slice()));
            if let Some(message) = still_owned(members, &entries) {
                self.plan_failed(&message);
                return;
            }
        }
        self.generation.phase = Phase::Syncing(Some(entries));
    }

    pub(super) fn on_plan_failed(&mut self, ticket: u64, message: &str) {
        if self.plan_of(ticket).is_some() {
            self.plan_failed(message);
        }
    }

    /// The assignor made no plan, and the members wait for one. After a back-off the leader joins again and plans once more. If
    /// that never succeeds, another member becomes the leader after the rebalance timeout.
    fn plan_failed(&mut self, message: &str) {
        let protocol = &self.generation.protocol;
        let message = format!("assignor '{protocol}' made no plan for group '{}': {message}", self.config.group_id);
        self.network.actions.push(Action::Log { level: Level::Warning, message: message.clone() });
        self.network.actions.push(Action::Error { code: ErrorCode::UNKNOWN_SERVER_ERROR, topic: None, message });
        self.generation.watched = None;
        self.join_again();
    }
}

/// A partition that a cooperative plan gives to one member while another still owns it: both would read it. Only the owned
/// partitions of members in the newest generation count.
fn still_owned<'a>(
    members: impl Iterator<Item = (&'a str, &'a [u8])>,
    entries: &[(String, Vec<u8>)],
) -> Option<String> {
    let read: Vec<_> = members.filter_map(|(id, bytes)| Some((id, Subscription::read(bytes).ok()?))).collect();
    let newest = read.iter().map(|(_, subscription)| subscription.generation).max()?;
    let mut owners: HashMap<(&[u8], i32), Vec<&str>> = HashMap::new();
    for (id, subscription) in read.iter().filter(|(_, subscription)| subscription.generation == newest) {
        for (topic, numbers) in subscription.owned.iter() {
            for number in numbers.iter() {
                owners.entry((topic, number)).or_default().push(id);
            }
        }
    }
    for (id, bytes) in entries {
        let Ok(read) = Assignment::read(bytes) else { continue };
        for (topic, numbers) in read.partitions.iter() {
            for number in numbers.iter() {
                let claimed = owners.get(&(topic, number));
                if let Some(owner) = claimed.filter(|ids| !ids.contains(&id.as_str())).and_then(|ids| ids.first()) {
                    let topic = String::from_utf8_lossy(topic);
                    return Some(format!(
                        "its cooperative plan gives {topic}-{number} to '{id}' while '{owner}' still owns it: take it away in \
                         one rebalance and give it in the next"
                    ));
                }
            }
        }
    }
    None
}
