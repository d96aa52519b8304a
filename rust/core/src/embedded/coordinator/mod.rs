//! A group coordinator as a sans-IO state machine: request frames and the time in, response frames and the next
//! deadline out.
//!
//! It behaves as a broker's coordinator of classic consumer groups does, and holds any number of groups. There is no
//! socket, clock or randomness inside: the same calls give the same bytes. Groups, members and offsets live in ordered
//! maps, so nothing depends on a hash seed.
//!
//! Transactions are not served: nothing here is ever an unstable offset, unless a test says so with
//! [`Coordinator::inject`].

mod admin;
mod config;
mod connections;
mod group;
mod ids;
mod join;
mod leave;
mod offsets;
mod rebalance;
mod record;
mod request;
mod sync;
#[cfg(test)]
mod tests;
mod timers;

pub use config::Config;
pub use connections::Reply;
pub use group::State;
pub use offsets::Committed;

use crate::protocol::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use crate::protocol::join_group::JoinGroupRequest;
use crate::protocol::leave_group::LeaveGroupResponse;
use crate::protocol::offsets::OffsetCommitRequest;
use crate::protocol::sync_group::SyncGroupRequest;
use crate::protocol::{ApiKey, ErrorCode, FrameError};
use connections::{Connections, Ticket};
use group::{Context, Group};
use ids::MemberIds;
use request::{Request, refuse, refuse_join, refuse_sync};
use std::collections::{BTreeMap, VecDeque};
use timers::{Timer, Timers};

/// A group as it stands, for tests and tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupView {
    /// The group.
    pub group_id: String,
    /// Where it is in its life.
    pub state: State,
    /// The current generation; 0 before the first.
    pub generation: i32,
    /// Null until the first member.
    pub protocol_type: Option<String>,
    /// The protocol of the generation.
    pub protocol: Option<String>,
    /// The leader's member id.
    pub leader: Option<String>,
    /// By member id.
    pub members: Vec<MemberView>,
}

/// A member as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberView {
    /// The member.
    pub member_id: String,
    /// Set for static members.
    pub instance_id: Option<String>,
    /// The client's name for itself.
    pub client_id: String,
    /// Whether its JoinGroup is unanswered.
    pub joining: bool,
    /// Whether its SyncGroup is unanswered.
    pub syncing: bool,
    /// Its share of the current plan.
    pub assignment: Vec<u8>,
}

/// The coordinator. All times are milliseconds on the caller's clock, which must not run backwards; if it does, the
/// latest time seen counts.
#[derive(Debug)]
pub struct Coordinator {
    config: Config,
    now: u64,
    groups: BTreeMap<String, Group>,
    topics: offsets::Topics,
    timers: Timers,
    connections: Connections,
    ids: MemberIds,
    faults: BTreeMap<ApiKey, VecDeque<(ErrorCode, u32)>>,
}

impl Coordinator {
    /// A coordinator without groups.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let ids = MemberIds::new(config.seed);
        Self {
            config,
            now: 0,
            groups: BTreeMap::new(),
            topics: None,
            timers: Timers::default(),
            connections: Connections::default(),
            ids,
            faults: BTreeMap::new(),
        }
    }

    /// The requests that [`Coordinator::handle`] serves. Their versions: [`ApiKey::versions`].
    #[must_use]
    pub fn apis() -> &'static [ApiKey] {
        request::SERVED
    }

    /// Takes a request, without the length in front, and gives every response that is now due, to whichever connection.
    /// A JoinGroup or SyncGroup may be answered by a later call; requests that come behind it on its connection wait, as
    /// on a broker.
    ///
    /// # Errors
    /// The frame cannot be read: a broker closes the connection. Nothing else has happened then.
    pub fn handle(&mut self, now_ms: u64, connection: u64, frame: &[u8]) -> Result<Vec<Reply>, FrameError> {
        let (header, request) = Request::read(frame)?;
        self.expire(now_ms);
        self.connections.accept(connection, header, request);
        self.settle();
        Ok(self.connections.take_replies())
    }

    /// Lets time pass and gives the responses that this makes due.
    pub fn tick(&mut self, now_ms: u64) -> Vec<Reply> {
        self.expire(now_ms);
        self.settle();
        self.connections.take_replies()
    }

    /// When to call [`Coordinator::tick`] next, if nothing else happens.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        self.timers.next()
    }

    /// A connection is gone. A member whose request was pending on it stays in its group until its session ends: brokers
    /// do not look at connections. The replies are to other connections.
    pub fn disconnect(&mut self, now_ms: u64, connection: u64) -> Vec<Reply> {
        self.connections.forget(connection);
        self.tick(now_ms)
    }

    /// Whether a request of the connection is unanswered.
    #[must_use]
    pub fn is_waiting(&self, connection: u64) -> bool {
        self.connections.is_busy(connection)
    }

    /// Answers the next `times` requests of this API with the code instead of serving them. Calls add up, in order.
    pub fn inject(&mut self, api: ApiKey, code: ErrorCode, times: u32) {
        if times > 0 {
            self.faults.entry(api).or_default().push_back((code, times));
        }
    }

    /// Sets `max.message.bytes` of `__consumer_offsets`, as an operator can at run time.
    pub fn set_record_limit(&mut self, bytes: u64) {
        self.config.max_record_bytes = bytes;
    }

    /// Tells which topics exist, with their partition counts: from then on commits for others are refused, and the
    /// offsets of topics that are gone are forgotten. Before the first call every commit is for a topic that exists.
    pub fn set_topics(&mut self, topics: BTreeMap<String, i32>) {
        for group in self.groups.values_mut() {
            group.offsets.retain(|topic, _| topics.contains_key(topic));
        }
        self.topics = Some(topics);
    }

    /// All groups, by id.
    #[must_use]
    pub fn groups(&self) -> Vec<GroupView> {
        let view = |group: &Group| GroupView {
            group_id: group.id.clone(),
            state: group.state,
            generation: group.generation,
            protocol_type: group.protocol_type.clone(),
            protocol: group.protocol.clone(),
            leader: group.leader.clone(),
            members: group
                .members
                .iter()
                .map(|(id, member)| MemberView {
                    member_id: id.clone(),
                    instance_id: member.instance_id.clone(),
                    client_id: member.client_id.clone(),
                    joining: member.joining.is_some(),
                    syncing: member.syncing.is_some(),
                    assignment: member.assignment.clone(),
                })
                .collect(),
        };
        self.groups.values().map(view).collect()
    }

    /// What a group has committed, by topic and partition.
    #[must_use]
    pub fn committed(&self, group_id: &str) -> BTreeMap<String, BTreeMap<i32, Committed>> {
        self.groups.get(group_id).map(|group| group.offsets.clone()).unwrap_or_default()
    }

    /// Serves what is ready, and lets waits of no time end, until nothing is left to do.
    fn settle(&mut self) {
        loop {
            self.expire(self.now);
            let Some((ticket, request)) = self.connections.next() else { return };
            self.serve(ticket, request);
        }
    }

    fn expire(&mut self, now_ms: u64) {
        self.now = self.now.max(now_ms);
        while let Some(timer) = self.timers.take_due(self.now) {
            let (Timer::Join(id) | Timer::Sync(id) | Timer::Session(id, _)) = &timer;
            let Some((group, mut context)) = self.group(id) else { continue };
            match &timer {
                Timer::Join(_) => group.join_phase_expired(&mut context),
                Timer::Sync(_) => group.sync_phase_expired(&mut context),
                Timer::Session(_, member_id) => group.session_expired(&mut context, member_id),
            }
        }
    }

    fn context(&mut self) -> (&mut BTreeMap<String, Group>, Context<'_>, &offsets::Topics) {
        let context = Context {
            now: self.now,
            config: &self.config,
            timers: &mut self.timers,
            connections: &mut self.connections,
            ids: &mut self.ids,
        };
        (&mut self.groups, context, &self.topics)
    }

    fn group(&mut self, id: &str) -> Option<(&mut Group, Context<'_>)> {
        let (groups, context, _) = self.context();
        groups.get_mut(id).map(|group| (group, context))
    }

    fn fault(&mut self, api: ApiKey) -> Option<ErrorCode> {
        let faults = self.faults.get_mut(&api)?;
        let (code, times) = faults.front_mut()?;
        let code = *code;
        *times -= 1;
        if *times == 0 {
            faults.pop_front();
        }
        Some(code)
    }

    fn serve(&mut self, ticket: Ticket, request: Request) {
        if let Some(code) = self.fault(ticket.header.api) {
            return refuse(&mut self.connections, ticket, request, code);
        }
        let version = ticket.version();
        match request {
            Request::JoinGroup(request) => self.join(request, ticket),
            Request::SyncGroup(request) => self.sync(request, ticket),
            Request::Heartbeat(request) => {
                let error_code = self.heartbeat(&request).err().unwrap_or_default();
                self.connections.answer(ticket, &HeartbeatResponse { throttle_time_ms: 0, error_code });
            }
            Request::LeaveGroup(request) => {
                let response = if request.group_id.is_empty() {
                    LeaveGroupResponse { error_code: ErrorCode::INVALID_GROUP_ID, ..Default::default() }
                } else {
                    let (groups, mut context, _) = self.context();
                    leave::leave(groups.get_mut(&request.group_id), &mut context, request, version)
                };
                self.connections.answer(ticket, &response);
            }
            Request::OffsetCommit(request) => {
                let response = self.commit(&request);
                self.connections.answer(ticket, &response);
            }
            Request::OffsetFetch(request) => {
                let response = offsets::fetch(&self.groups, request, version);
                self.connections.answer(ticket, &response);
            }
            Request::DescribeGroups(request) => {
                let response = admin::describe(&self.groups, request);
                self.connections.answer(ticket, &response);
            }
            Request::ListGroups(request) => {
                let response = admin::list(&self.groups, &request);
                self.connections.answer(ticket, &response);
            }
            Request::DeleteGroups(request) => {
                let response = admin::delete(&mut self.groups, request);
                self.connections.answer(ticket, &response);
            }
        }
    }

    fn join(&mut self, request: JoinGroupRequest, ticket: Ticket) {
        let session = self.config.min_session_timeout_ms..=self.config.max_session_timeout_ms;
        let refusal = if request.group_id.is_empty() {
            ErrorCode::INVALID_GROUP_ID
        } else if !session.contains(&request.session_timeout_ms) {
            ErrorCode::INVALID_SESSION_TIMEOUT
        } else if !request.member_id.is_empty() && !self.groups.contains_key(&request.group_id) {
            ErrorCode::UNKNOWN_MEMBER_ID
        } else {
            let (groups, mut context, _) = self.context();
            let id = request.group_id.clone();
            return groups.entry(id.clone()).or_insert_with(|| Group::new(id)).join(&mut context, request, ticket);
        };
        refuse_join(&mut self.connections, ticket, request.member_id, refusal);
    }

    fn sync(&mut self, request: SyncGroupRequest, ticket: Ticket) {
        let code = match self.group(&request.group_id) {
            Some((group, mut context)) => return group.sync(&mut context, request, ticket),
            None if request.group_id.is_empty() => ErrorCode::INVALID_GROUP_ID,
            None => ErrorCode::UNKNOWN_MEMBER_ID,
        };
        refuse_sync(&mut self.connections, ticket, code);
    }

    fn heartbeat(&mut self, request: &HeartbeatRequest) -> Result<(), ErrorCode> {
        match self.group(&request.group_id) {
            Some((group, mut context)) => group.heartbeat(&mut context, request),
            None if request.group_id.is_empty() => Err(ErrorCode::INVALID_GROUP_ID),
            None => Err(ErrorCode::UNKNOWN_MEMBER_ID),
        }
    }

    /// A commit from outside makes the group; one from a member of a group that is gone is too late.
    fn commit(&mut self, request: &OffsetCommitRequest) -> crate::protocol::offsets::OffsetCommitResponse {
        let (groups, mut context, topics) = self.context();
        let too_late = !groups.contains_key(&request.group_id) && request.generation_id >= 0;
        if too_late || !offsets::reaches_group(request, topics) {
            return offsets::refuse_commit(request, topics, ErrorCode::ILLEGAL_GENERATION);
        }
        let id = request.group_id.clone();
        groups.entry(id.clone()).or_insert_with(|| Group::new(id)).commit(&mut context, request, topics)
    }
}
