//! A group: its members, its leader and its protocol.

use super::answers::{refuse_join, refuse_sync};
use super::config::Config;
use super::connections::{Connections, Ticket};
use super::ids::MemberIds;
use super::offsets::Offsets;
use super::timers::{Timer, Timers};
use crate::protocol::ErrorCode;
use crate::protocol::join_group::JoinGroupProtocol;
use std::collections::{BTreeMap, BTreeSet};

/// The states of a classic group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassicGroupState {
    /// No members.
    Empty,
    /// Waiting for the members to join.
    PreparingRebalance,
    /// Waiting for the leader's plan.
    CompletingRebalance,
    /// Every member has its assignment, or gets it with SyncGroup.
    Stable,
}

impl ClassicGroupState {
    /// Kafka's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ClassicGroupState::Empty => "Empty",
            ClassicGroupState::PreparingRebalance => "PreparingRebalance",
            ClassicGroupState::CompletingRebalance => "CompletingRebalance",
            ClassicGroupState::Stable => "Stable",
        }
    }
}

/// The parts of the coordinator that a group uses.
pub(super) struct Context<'a> {
    pub(super) now: u64,
    pub(super) config: &'a Config,
    pub(super) timers: &'a mut Timers,
    pub(super) connections: &'a mut Connections,
    pub(super) ids: &'a mut MemberIds,
}

/// A member.
#[derive(Debug)]
pub(super) struct ClassicMember {
    pub(super) instance_id: Option<String>,
    pub(super) client_id: String,
    pub(super) client_host: String,
    pub(super) session_timeout_ms: u64,
    pub(super) rebalance_timeout_ms: u64,
    /// In the member's order of preference.
    pub(super) protocols: Vec<JoinGroupProtocol>,
    pub(super) assignment: Vec<u8>,
    /// An unanswered JoinGroup.
    pub(super) joining: Option<Ticket>,
    /// An unanswered SyncGroup.
    pub(super) syncing: Option<Ticket>,
    /// Whether no response has contained the member's id yet. Such a member expires even while its JoinGroup is
    /// unanswered.
    pub(super) is_new: bool,
}

impl ClassicMember {
    fn protocol_names(&self) -> BTreeSet<&str> {
        self.protocols.iter().map(|protocol| protocol.name.as_str()).collect()
    }
}

/// The rest of the initial rebalance delay of a group that was empty.
#[derive(Debug, Clone, Copy)]
pub(super) struct InitialWait {
    pub(super) delay_ms: u64,
    pub(super) remaining_ms: u64,
}

/// A group.
#[derive(Debug)]
pub(super) struct ClassicGroup {
    pub(super) id: String,
    pub(super) state: ClassicGroupState,
    pub(super) generation: i32,
    /// `None` before the first member joins. An empty group keeps it.
    pub(super) protocol_type: Option<String>,
    /// The protocol of the current generation.
    pub(super) protocol: Option<String>,
    pub(super) leader: Option<String>,
    pub(super) members: BTreeMap<String, ClassicMember>,
    /// Instance id to member id.
    pub(super) static_members: BTreeMap<String, String>,
    /// Member ids that were sent with MEMBER_ID_REQUIRED and are not used yet.
    pub(super) pending: BTreeSet<String>,
    /// Members of this generation that have not sent SyncGroup.
    pub(super) pending_sync: BTreeSet<String>,
    /// Set while the group prepares its first rebalance since it was empty.
    pub(super) initial: Option<InitialWait>,
    /// Whether a member joined during the initial wait. Then the wait is extended.
    pub(super) new_member_added: bool,
    pub(super) offsets: Offsets,
    /// The number of members that support each protocol.
    supported: BTreeMap<String, usize>,
}

impl ClassicGroup {
    pub(super) fn new(id: String) -> Self {
        Self {
            id,
            state: ClassicGroupState::Empty,
            generation: 0,
            protocol_type: None,
            protocol: None,
            leader: None,
            members: BTreeMap::new(),
            static_members: BTreeMap::new(),
            pending: BTreeSet::new(),
            pending_sync: BTreeSet::new(),
            initial: None,
            new_member_added: false,
            offsets: Offsets::default(),
            supported: BTreeMap::new(),
        }
    }

    pub(super) fn is_leader(&self, member_id: &str) -> bool {
        self.leader.as_deref() == Some(member_id)
    }

    pub(super) fn waiting_to_join(&self) -> usize {
        self.members.values().filter(|member| member.joining.is_some()).count()
    }

    /// Whether every member has an unanswered JoinGroup and no pending member id is left.
    pub(super) fn all_joined(&self) -> bool {
        self.pending.is_empty() && self.members.values().all(|member| member.joining.is_some())
    }

    /// The largest rebalance timeout of the members.
    pub(super) fn rebalance_timeout_ms(&self) -> u64 {
        self.members.values().map(|member| member.rebalance_timeout_ms).max().unwrap_or(0)
    }

    /// Whether `member_id`, with the instance id if one is given, is a member now.
    pub(super) fn validate_member(&self, member_id: &str, instance_id: Option<&str>) -> Result<(), ErrorCode> {
        if let Some(instance_id) = instance_id {
            match self.static_members.get(instance_id) {
                None => return Err(ErrorCode::UNKNOWN_MEMBER_ID),
                Some(current) if current != member_id => return Err(ErrorCode::FENCED_INSTANCE_ID),
                Some(_) => {}
            }
        }
        if self.members.contains_key(member_id) { Ok(()) } else { Err(ErrorCode::UNKNOWN_MEMBER_ID) }
    }

    /// Whether a member with these protocols could be in the group: all members must share at least one.
    pub(super) fn supports(&self, protocol_type: &str, protocols: &[JoinGroupProtocol]) -> bool {
        if self.state == ClassicGroupState::Empty {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        self.protocol_type.as_deref() == Some(protocol_type)
            && protocols.iter().any(|protocol| self.is_supported_by_all(&protocol.name))
    }

    fn is_supported_by_all(&self, protocol: &str) -> bool {
        self.supported.get(protocol).copied().unwrap_or(0) == self.members.len()
    }

    /// The protocol with the most votes. Each member votes for the first protocol on its list that all members support.
    /// A tie goes to the first name in order, so that runs are reproducible; Kafka's choice is arbitrary.
    pub(super) fn elect_protocol(&self) -> Option<String> {
        let mut votes = BTreeMap::<&str, usize>::new();
        for member in self.members.values() {
            if let Some(vote) = member.protocols.iter().find(|protocol| self.is_supported_by_all(&protocol.name)) {
                *votes.entry(&vote.name).or_default() += 1;
            }
        }
        let most = votes.values().copied().max()?;
        votes.into_iter().find(|&(_, count)| count == most).map(|(name, _)| name.to_owned())
    }

    /// A member's metadata for the protocol of the generation; empty before there is one.
    pub(super) fn metadata_of<'a>(&self, member: &'a ClassicMember) -> &'a [u8] {
        let chosen = member.protocols.iter().find(|protocol| Some(&protocol.name) == self.protocol.as_ref());
        chosen.map_or(&[], |protocol| &protocol.metadata)
    }

    fn count_protocols(&mut self, member_id: &str, add: bool) {
        let Some(member) = self.members.get(member_id) else { return };
        for name in member.protocol_names() {
            if add {
                *self.supported.entry(name.to_owned()).or_default() += 1;
            } else if let Some(count) = self.supported.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    self.supported.remove(name);
                }
            }
        }
    }

    /// Adds a member. The first member becomes the leader.
    pub(super) fn add(&mut self, member_id: String, protocol_type: String, member: ClassicMember) {
        if let Some(instance_id) = &member.instance_id {
            self.static_members.insert(instance_id.clone(), member_id.clone());
        }
        if self.members.is_empty() {
            self.protocol_type = Some(protocol_type);
        }
        self.leader.get_or_insert_with(|| member_id.clone());
        self.pending.remove(&member_id);
        self.members.insert(member_id.clone(), member);
        self.count_protocols(&member_id, true);
    }

    /// Removes a member or a pending id, with its timers. Its unanswered request is answered with UNKNOWN_MEMBER_ID.
    pub(super) fn remove(&mut self, context: &mut Context<'_>, member_id: &str) {
        self.count_protocols(member_id, false);
        if let Some(member) = self.members.remove(member_id) {
            if let Some(instance_id) = &member.instance_id {
                self.static_members.remove(instance_id);
            }
            if let Some(ticket) = member.joining {
                refuse_join(context.connections, ticket, String::new(), ErrorCode::UNKNOWN_MEMBER_ID);
            }
            if let Some(ticket) = member.syncing {
                refuse_sync(context.connections, ticket, ErrorCode::UNKNOWN_MEMBER_ID);
            }
        }
        if self.is_leader(member_id) {
            self.leader = self.members.keys().next().cloned();
        }
        self.pending.remove(member_id);
        self.pending_sync.remove(member_id);
        context.timers.cancel(Timer::Session(self.id.clone(), member_id.to_owned()));
    }

    /// Replaces the data of a member's earlier JoinGroup. If that request is still unanswered, it never gets an answer,
    /// as on a broker: the member has already closed that connection.
    pub(super) fn update(
        &mut self,
        member_id: &str,
        protocols: Vec<JoinGroupProtocol>,
        rebalance_timeout_ms: u64,
        session_timeout_ms: u64,
        joining: Option<Ticket>,
    ) {
        self.count_protocols(member_id, false);
        if let Some(member) = self.members.get_mut(member_id) {
            member.protocols = protocols;
            member.rebalance_timeout_ms = rebalance_timeout_ms;
            member.session_timeout_ms = session_timeout_ms;
            member.joining = joining;
        }
        self.count_protocols(member_id, true);
    }

    /// Gives a static member a new member id. A request that waits under the old id is answered with
    /// FENCED_INSTANCE_ID.
    pub(super) fn replace_static(&mut self, context: &mut Context<'_>, instance_id: &str, old: &str, new: &str) {
        let Some(mut member) = self.members.remove(old) else { return };
        if let Some(ticket) = member.joining.take() {
            refuse_join(context.connections, ticket, old.to_owned(), ErrorCode::FENCED_INSTANCE_ID);
        }
        if let Some(ticket) = member.syncing.take() {
            refuse_sync(context.connections, ticket, ErrorCode::FENCED_INSTANCE_ID);
        }
        member.is_new = false;
        self.members.insert(new.to_owned(), member);
        if self.pending_sync.remove(old) {
            self.pending_sync.insert(new.to_owned());
        }
        if self.is_leader(old) {
            self.leader = Some(new.to_owned());
        }
        self.static_members.insert(instance_id.to_owned(), new.to_owned());
        context.timers.cancel(Timer::Session(self.id.clone(), old.to_owned()));
    }

    /// Restarts the session timeout of a member.
    pub(super) fn renew_session(&self, context: &mut Context<'_>, member_id: &str) {
        if let Some(member) = self.members.get(member_id) {
            let deadline = context.now.saturating_add(member.session_timeout_ms);
            context.timers.set(Timer::Session(self.id.clone(), member_id.to_owned()), deadline);
        }
    }
}
