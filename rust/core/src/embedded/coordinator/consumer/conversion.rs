//! Makes a group of one protocol into a group of the other, with the same members and offsets.

use super::member::{AssignedPartitions, Classic, ConsumerMember};
use super::request::Refusal;
use super::{ConsumerGroup, MemberState};
use crate::embedded::coordinator::answers::{refuse_join, refuse_sync};
use crate::embedded::coordinator::config::Config;
use crate::embedded::coordinator::group::{self, ClassicGroup, ClassicGroupState, Context};
use crate::embedded::coordinator::offsets::Offsets;
use crate::embedded::coordinator::timers::Timer;
use crate::embedded::coordinator::topics::ClusterTopics;
use crate::planning::server_side::Described;
use crate::protocol::assignment::Assignment;
use crate::protocol::subscription::Subscription;
use crate::protocol::{CONSUMER, ErrorCode};
use std::collections::{BTreeMap, BTreeSet};

/// The subscription and the assignment of a classic member, decoded.
struct DecodedMember {
    names: BTreeSet<String>,
    rack: Option<String>,
    assigned: BTreeMap<String, BTreeSet<u32>>,
}

/// The reason why the group stays a classic one, with a broker's message.
fn refusal(id: &str, reason: &str) -> Refusal {
    let message = format!("Cannot upgrade classic group {id} to consumer group because {reason}.");
    Refusal::new(ErrorCode::GROUP_ID_NOT_FOUND, message)
}

fn decode(group: &ClassicGroup, member: &group::ClassicMember) -> Result<DecodedMember, &'static str> {
    const MALFORMED: &str = "the embedded consumer protocol is malformed";
    let chosen = match group.metadata_of(member) {
        // The first generation is not formed yet.
        [] => member.protocols.first().map_or(&[][..], |protocol| &protocol.metadata),
        metadata => metadata,
    };
    let subscription = Subscription::read(chosen).map_err(|_| MALFORMED)?;
    if subscription.fault.is_some() {
        return Err(MALFORMED);
    }
    let text = |bytes: &[u8]| str::from_utf8(bytes).map(str::to_owned).map_err(|_| MALFORMED);
    let names: Result<_, _> = subscription.topics.iter().map(text).collect();
    let mut read =
        DecodedMember { names: names?, rack: subscription.rack.map(text).transpose()?, assigned: BTreeMap::new() };
    if !member.assignment.is_empty() {
        let assignment = Assignment::read(&member.assignment).map_err(|_| MALFORMED)?;
        if assignment.user_data.is_some() || assignment.fault.is_some() {
            return Err("an unsupported custom assignor is in use");
        }
        for (name, numbers) in assignment.partitions.iter() {
            let list = read.assigned.entry(text(name)?).or_default();
            list.extend(numbers.iter().filter_map(|number| u32::try_from(number).ok()));
        }
    }
    Ok(read)
}

/// Ends a classic group. Returns its offsets.
fn dissolve(mut classic: ClassicGroup, context: &mut Context<'_>, group: &ConsumerGroup) -> Offsets {
    context.timers.cancel(Timer::Join(classic.id.clone()));
    context.timers.cancel(Timer::Sync(classic.id.clone()));
    for id in &classic.pending {
        context.timers.cancel(Timer::Session(classic.id.clone(), id.clone()));
    }
    for (id, member) in &mut classic.members {
        if let Some(ticket) = member.joining.take() {
            refuse_join(context.connections, ticket, id.clone(), ErrorCode::REBALANCE_IN_PROGRESS);
        }
        if let Some(ticket) = member.syncing.take() {
            refuse_sync(context.connections, ticket, ErrorCode::REBALANCE_IN_PROGRESS);
        }
        group.renew_classic_session(context, id);
    }
    classic.offsets
}

impl ConsumerGroup {
    /// The group of KIP-848 that a classic group becomes: the members keep their partitions. Offsets and timers stay with the
    /// classic group until [`ConsumerGroup::replace_classic`].
    ///
    /// # Errors
    /// The policy, the size, or the bytes of a member do not allow it.
    pub(in crate::embedded::coordinator) fn of_classic(
        classic: &ClassicGroup,
        config: &Config,
        topics: &ClusterTopics,
    ) -> Result<Self, Refusal> {
        let id = &classic.id;
        if !config.consumer_migration_policy.upgrades() {
            return Err(refusal(id, "the online upgrade is disabled"));
        }
        if classic.protocol_type.as_deref() != Some(CONSUMER) {
            return Err(refusal(id, "the group does not use the consumer embedded protocol"));
        }
        if classic.members.len() > config.consumer_max_group_size {
            return Err(refusal(id, "the group size exceeds the consumer group maximum size"));
        }
        let mut decoded = BTreeMap::new();
        for (member_id, member) in &classic.members {
            decoded.insert(member_id.clone(), decode(classic, member).map_err(|reason| refusal(id, reason))?);
        }
        let mut group = Self::new(id.clone(), config);
        group.adopt(classic, decoded, topics)?;
        Ok(group)
    }

    /// Takes the place of the classic group from which it was made.
    pub(in crate::embedded::coordinator) fn replace_classic(
        &mut self,
        classic: ClassicGroup,
        context: &mut Context<'_>,
    ) {
        self.offsets = dissolve(classic, context, self);
    }

    /// Whether only classic members are left, and the policy and the size allow a classic group.
    pub(in crate::embedded::coordinator) fn may_become_classic(&self, config: &Config) -> bool {
        config.consumer_migration_policy.downgrades()
            && (1..=config.max_group_size).contains(&self.members.len())
            && self.members.values().all(|member| member.classic.is_some())
    }

    /// Takes the members of a classic group over, each with its partitions.
    fn adopt(
        &mut self,
        classic: &ClassicGroup,
        decoded: BTreeMap<String, DecodedMember>,
        topics: &ClusterTopics,
    ) -> Result<(), Refusal> {
        self.topics_version = topics.version();
        self.epoch = classic.generation;
        self.assignment_epoch = classic.generation;
        let mut taken = BTreeSet::new();
        let mut targets = BTreeMap::new();
        for (id, read) in decoded {
            let Some(old) = classic.members.get(&id) else { continue };
            self.track(read.names.iter().chain(read.assigned.keys()).map(String::as_str), topics);
            let (mut assigned, mut target) = (AssignedPartitions::new(), Vec::new());
            for (name, numbers) in read.assigned {
                let Some(topic) = topics.get(&name) else { continue };
                let exists = |&number: &u32| i32::try_from(number).is_ok_and(|number| number < topic.partitions);
                // A leader may have assigned a partition to two members, which is wrong: the first member keeps it.
                let list: Vec<u32> =
                    numbers.into_iter().filter(exists).filter(|&number| taken.insert((topic.id, number))).collect();
                if !list.is_empty() {
                    let held = list.iter().map(|&number| (number as i32, self.epoch)).collect();
                    assigned.insert(topic.id, held);
                    target.push((name, list));
                }
            }
            if let Some(instance_id) = &old.instance_id {
                self.statics.insert(instance_id.clone(), id.clone());
            }
            targets.insert(id.clone(), target);
            let member = ConsumerMember {
                instance_id: old.instance_id.clone(),
                rack_id: read.rack,
                client_id: old.client_id.clone(),
                client_host: old.client_host.clone(),
                rebalance_timeout_ms: old.rebalance_timeout_ms,
                names: read.names,
                epoch: self.epoch,
                previous_epoch: self.epoch,
                state: MemberState::Stable,
                assigned,
                classic: Some(Classic { session_timeout_ms: old.session_timeout_ms, protocols: old.protocols.clone() }),
                ..Default::default()
            };
            self.held.extend(member.held());
            self.members.insert(id, member);
        }
        let described = self.members.iter().map(|(id, member)| Described {
            id,
            instance: member.instance_id.as_deref(),
            names: member.names.iter().map(String::as_str).collect(),
            expression: None,
            target: targets[id].iter().map(|(name, list)| (name.as_str(), list.clone())).collect(),
        });
        let described: Vec<_> = described.collect();
        self.planner.restore(&described).map(drop).map_err(|error| refusal(&self.id, &error.to_string()))
    }

    /// The classic group with the same members.
    pub(in crate::embedded::coordinator) fn into_classic(self, context: &mut Context<'_>) -> ClassicGroup {
        let mut group = ClassicGroup::new(self.id.clone());
        group.generation = self.epoch;
        for (id, member) in &self.members {
            self.cancel_timers(context, id);
            let Some(classic) = &member.classic else { continue };
            let member = group::ClassicMember {
                instance_id: member.instance_id.clone(),
                client_id: member.client_id.clone(),
                client_host: member.client_host.clone(),
                session_timeout_ms: classic.session_timeout_ms,
                rebalance_timeout_ms: member.rebalance_timeout_ms,
                protocols: classic.protocols.clone(),
                // The members rebalance at once, and get the assignments of the next generation.
                assignment: Vec::new(),
                joining: None,
                syncing: None,
                is_new: false,
            };
            group.add(id.clone(), CONSUMER.to_owned(), member);
            group.renew_session(context, id);
        }
        group.state = ClassicGroupState::Stable;
        group.protocol = group.elect_protocol();
        group.offsets = self.offsets;
        group
    }
}
