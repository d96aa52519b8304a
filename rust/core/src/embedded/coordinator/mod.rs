//! A group coordinator as a state machine without I/O. Input: request frames and the time. Output: response frames and
//! the next deadline.
//!
//! It implements a broker's coordinator of classic groups and of KIP-848 groups ([`ConsumerGroupView`]), for any number of
//! groups. It has no socket, clock or randomness: the same calls return the same bytes. Groups, members and offsets are in
//! ordered maps, because the iteration order of a hash map differs between runs.
//!
//! Transactions are not served, so no offset is unstable. A test can inject the error with [`Coordinator::inject`].

mod admin;
mod answers;
mod commit;
mod config;
mod connections;
mod consumer;
mod conversion;
mod group;
mod groups;
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
mod topics;

pub use config::{Config, MigrationPolicy};
pub use connections::Reply;
pub use consumer::{ConsumerGroupState, ConsumerGroupView, ConsumerMemberView, MemberState};
pub use group::ClassicGroupState;
pub use offsets::Committed;
pub use topics::Topic;

use crate::embedded::faults::Faults;
use crate::protocol::consumer_group_heartbeat::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, JOIN_EPOCH,
};
use crate::protocol::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use crate::protocol::join_group::JoinGroupRequest;
use crate::protocol::leave_group::LeaveGroupResponse;
use crate::protocol::offsets::{OffsetCommitRequest, OffsetCommitResponse, OffsetFetchGroup};
use crate::protocol::sync_group::SyncGroupRequest;
use crate::protocol::{ApiKey, ErrorCode, FrameError};
use answers::{answer_join, refuse, refuse_join, refuse_sync};
use connections::{Connections, Ticket};
use consumer::{ConsumerGroup, Refusal};
use group::{ClassicGroup, Context};
use groups::{AnyGroup, Groups};
use ids::MemberIds;
use request::Request;
use std::collections::BTreeMap;
use timers::{Timer, Timers};
use topics::ClusterTopics;

/// The current state of a group, for tests and tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupView {
    /// The group.
    pub group_id: String,
    /// The state.
    pub state: ClassicGroupState,
    /// The current generation; 0 before the first.
    pub generation: i32,
    /// `None` before the first member joins.
    pub protocol_type: Option<String>,
    /// The protocol of the generation.
    pub protocol: Option<String>,
    /// The leader's member id.
    pub leader: Option<String>,
    /// The members, in order of member id.
    pub members: Vec<MemberView>,
}

/// The current state of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberView {
    /// The member.
    pub member_id: String,
    /// Set for static members.
    pub instance_id: Option<String>,
    /// The client's `client.id`.
    pub client_id: String,
    /// Whether its JoinGroup is unanswered.
    pub joining: bool,
    /// Whether its SyncGroup is unanswered.
    pub syncing: bool,
    /// Its assignment in the current plan.
    pub assignment: Vec<u8>,
}

/// The coordinator. All times are milliseconds on the caller's clock. If the clock runs backwards, the coordinator uses
/// the latest time up to then.
#[derive(Debug)]
pub struct Coordinator {
    config: Config,
    now: u64,
    groups: Groups,
    topics: ClusterTopics,
    timers: Timers,
    connections: Connections,
    ids: MemberIds,
    faults: Faults,
}

impl Coordinator {
    /// A coordinator without groups.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let ids = MemberIds::new(config.seed);
        Self {
            config,
            now: 0,
            groups: Groups::default(),
            topics: ClusterTopics::default(),
            timers: Timers::default(),
            connections: Connections::default(),
            ids,
            faults: Faults::default(),
        }
    }

    /// The requests that [`Coordinator::handle`] serves. Their versions: [`ApiKey::versions`].
    #[must_use]
    pub fn apis() -> &'static [ApiKey] {
        request::SERVED
    }

    /// Serves a request frame without its length. Returns every response that is now due, for any connection. A later
    /// call may answer a JoinGroup or SyncGroup; further requests of the same connection wait until then, as on a
    /// broker.
    ///
    /// # Errors
    /// The frame is unreadable, and a broker closes the connection. The coordinator is unchanged.
    pub fn handle(&mut self, now_ms: u64, connection: u64, frame: &[u8]) -> Result<Vec<Reply>, FrameError> {
        let (header, request) = Request::read(frame)?;
        self.expire(now_ms);
        self.connections.accept(connection, header, request);
        self.serve_ready();
        Ok(self.connections.take_replies())
    }

    /// Advances the time. Returns the responses that are now due.
    pub fn tick(&mut self, now_ms: u64) -> Vec<Reply> {
        self.expire(now_ms);
        self.serve_ready();
        self.connections.take_replies()
    }

    /// The time to call [`Coordinator::tick`], unless another call comes before.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        self.timers.next()
    }

    /// A connection was closed. A member with an unanswered request on it stays in its group until its session ends, as
    /// on a broker. The replies are for other connections.
    pub fn disconnect(&mut self, now_ms: u64, connection: u64) -> Vec<Reply> {
        self.connections.forget(connection);
        self.tick(now_ms)
    }

    /// Whether a request of the connection is unanswered.
    #[must_use]
    pub fn is_waiting(&self, connection: u64) -> bool {
        self.connections.is_busy(connection)
    }

    /// Answers the next `times` requests of this API with the code instead of serving them. Later calls take effect
    /// after earlier ones.
    pub fn inject(&mut self, api: ApiKey, code: ErrorCode, times: u32) {
        self.faults.inject(api, code, times);
    }

    /// Sets `max.message.bytes` of `__consumer_offsets`, as an operator can at run time.
    pub fn set_record_limit(&mut self, bytes: u64) {
        self.config.max_record_bytes = bytes;
    }

    /// Sets the existing topics. Then commits for other topics are refused, the offsets of deleted topics are removed, and
    /// KIP-848 groups make a new plan with their next heartbeats if topics of their subscriptions changed. Before the first call,
    /// offsets of any topic may be committed, and KIP-848 groups have no partitions.
    pub fn set_topics(&mut self, topics: BTreeMap<String, Topic>) {
        for group in self.groups.iter_mut() {
            group.offsets_mut().retain(|topic, _| topics.contains_key(topic));
        }
        self.topics.set(topics);
    }

    /// The classic groups, by id.
    #[must_use]
    pub fn groups(&self) -> Vec<GroupView> {
        let view = |group: &ClassicGroup| GroupView {
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
        let classic = |(_, group): (_, &AnyGroup)| match group {
            AnyGroup::Classic(group) => Some(view(group)),
            AnyGroup::Consumer(_) => None,
        };
        self.groups.iter().filter_map(classic).collect()
    }

    /// The groups of KIP-848, by id.
    #[must_use]
    pub fn consumer_groups(&self) -> Vec<ConsumerGroupView> {
        let consumer = |(_, group): (_, &AnyGroup)| match group {
            AnyGroup::Consumer(group) => Some(group.view(&self.config)),
            AnyGroup::Classic(_) => None,
        };
        self.groups.iter().filter_map(consumer).collect()
    }

    /// The committed offsets of a group, by topic and partition.
    #[must_use]
    pub fn committed(&self, group_id: &str) -> BTreeMap<String, BTreeMap<i32, Committed>> {
        self.groups.get(group_id).map(|group| group.offsets().clone()).unwrap_or_default()
    }

    /// Serves the ready requests and expires timers that are due now, until no request is ready.
    fn serve_ready(&mut self) {
        loop {
            self.expire(self.now);
            let Some((ticket, request)) = self.connections.next() else { return };
            self.serve(ticket, request);
        }
    }

    fn expire(&mut self, now_ms: u64) {
        self.now = self.now.max(now_ms);
        while let Some(timer) = self.timers.take_due(self.now) {
            let (groups, mut context, _) = self.context();
            let (Timer::Join(id)
            | Timer::Sync(id)
            | Timer::Session(id, _)
            | Timer::Revocation(id, _)
            | Timer::Rejoin(id, _)) = &timer;
            match (groups.get_mut(id), &timer) {
                (Some(AnyGroup::Classic(group)), Timer::Join(_)) => group.join_phase_expired(&mut context),
                (Some(AnyGroup::Classic(group)), Timer::Sync(_)) => group.sync_phase_expired(&mut context),
                (Some(AnyGroup::Classic(group)), Timer::Session(_, id)) => group.session_expired(&mut context, id),
                (Some(AnyGroup::Consumer(group)), Timer::Session(_, id)) => group.session_expired(&mut context, id),
                (Some(AnyGroup::Consumer(group)), Timer::Revocation(_, id)) => {
                    group.revocation_expired(&mut context, id)
                }
                (Some(AnyGroup::Consumer(group)), Timer::Rejoin(_, id)) => group.rejoin_expired(&mut context, id),
                _ => {}
            }
            conversion::downgrade(groups, &mut context, id);
        }
    }

    fn context(&mut self) -> (&mut Groups, Context<'_>, &ClusterTopics) {
        let context = Context {
            now: self.now,
            config: &self.config,
            timers: &mut self.timers,
            connections: &mut self.connections,
            ids: &mut self.ids,
        };
        (&mut self.groups, context, &self.topics)
    }

    fn serve(&mut self, ticket: Ticket, request: Request) {
        if let Some(code) = self.faults.take(ticket.header.api) {
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
                    let id = request.group_id.clone();
                    let response = leave::leave(groups.get_mut(&id), &mut context, request, version);
                    conversion::downgrade(groups, &mut context, &id);
                    response
                };
                self.connections.answer(ticket, &response);
            }
            Request::OffsetCommit(request) => {
                let response = self.commit(request, version);
                self.connections.answer(ticket, &response);
            }
            Request::OffsetFetch(request) => {
                let offsets = |asked: &OffsetFetchGroup| match self.groups.get(&asked.group_id) {
                    Some(AnyGroup::Consumer(group)) => group.validate_fetch(asked).map(|()| Some(&group.offsets)),
                    other => Ok(other.map(AnyGroup::offsets)),
                };
                let response = offsets::fetch(offsets, &self.topics, request, version);
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
            Request::ConsumerGroupHeartbeat(request) => {
                let response = self.consumer_heartbeat(request, &ticket).unwrap_or_else(|refusal| {
                    let Refusal { code, message } = refusal;
                    let error_message = Some(message);
                    ConsumerGroupHeartbeatResponse { error_code: code, error_message, ..Default::default() }
                });
                self.connections.answer(ticket, &response);
            }
            Request::ConsumerGroupDescribe(request) => {
                let response = admin::describe_consumers(&self.groups, &self.config, &self.topics, request);
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
        } else if !request.member_id.is_empty() && self.groups.get(&request.group_id).is_none() {
            ErrorCode::UNKNOWN_MEMBER_ID
        } else {
            let (groups, mut context, topics) = self.context();
            if let Some(group) = groups.classic_or_new(&request.group_id) {
                return group.join(&mut context, request, ticket);
            }
            let Some(group) = groups.consumer_mut(&request.group_id) else { return };
            let id = request.group_id.clone();
            match group.join_classic(&mut context, &request, &ticket, topics) {
                Ok(response) => answer_join(context.connections, ticket, response),
                Err((code, member_id)) => refuse_join(context.connections, ticket, member_id, code),
            }
            return conversion::downgrade(groups, &mut context, &id);
        };
        refuse_join(&mut self.connections, ticket, request.member_id, refusal);
    }

    fn sync(&mut self, request: SyncGroupRequest, ticket: Ticket) {
        let (groups, mut context, topics) = self.context();
        let code = match groups.get_mut(&request.group_id) {
            Some(AnyGroup::Classic(group)) => return group.sync(&mut context, request, ticket),
            Some(AnyGroup::Consumer(group)) => match group.sync_classic(&mut context, &request, topics) {
                Ok(response) => return context.connections.answer(ticket, &response),
                Err(code) => code,
            },
            None if request.group_id.is_empty() => ErrorCode::INVALID_GROUP_ID,
            None => ErrorCode::UNKNOWN_MEMBER_ID,
        };
        refuse_sync(&mut self.connections, ticket, code);
    }

    fn heartbeat(&mut self, request: &HeartbeatRequest) -> Result<(), ErrorCode> {
        let (groups, mut context, topics) = self.context();
        match groups.get_mut(&request.group_id) {
            Some(AnyGroup::Classic(group)) => group.heartbeat(&mut context, request),
            Some(AnyGroup::Consumer(group)) => group.heartbeat_classic(&mut context, request, topics),
            None if request.group_id.is_empty() => Err(ErrorCode::INVALID_GROUP_ID),
            None => Err(ErrorCode::UNKNOWN_MEMBER_ID),
        }
    }

    /// Serves an OffsetCommit. For an unknown group, a commit without a generation creates the group; a commit with a
    /// generation is refused.
    fn commit(&mut self, mut request: OffsetCommitRequest, version: i16) -> OffsetCommitResponse {
        let (groups, mut context, topics) = self.context();
        offsets::name_topics(&mut request, topics, version);
        if !offsets::reaches_group(&request, topics) {
            return offsets::refuse_commit(&request, topics, ErrorCode::ILLEGAL_GENERATION);
        }
        if let Some(group) = groups.get_mut(&request.group_id) {
            return commit::commit(group, &mut context, &request, topics, version);
        }
        if request.generation_id >= 0 {
            // Since version 9 the generation may be the epoch of a KIP-848 member, for which the protocol has another error.
            let epochs = version >= 9;
            let code = if epochs { ErrorCode::GROUP_ID_NOT_FOUND } else { ErrorCode::ILLEGAL_GENERATION };
            return offsets::refuse_commit(&request, topics, code);
        }
        let group = groups.create(&request.group_id);
        commit::commit(group, &mut context, &request, topics, version)
    }

    /// Serves a ConsumerGroupHeartbeat.
    fn consumer_heartbeat(
        &mut self,
        mut request: ConsumerGroupHeartbeatRequest,
        ticket: &Ticket,
    ) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
        consumer::validate(&request, ticket.version(), &self.config)?;
        if request.member_id.is_empty() {
            request.member_id = self.ids.uuid();
        }
        let (groups, mut context, topics) = self.context();
        let id = &request.group_id;
        let unknown = |is_known: bool| {
            let message = match is_known {
                true => format!("Group {id} is not a consumer group."),
                false => format!("Group {id} not found."),
            };
            Refusal::new(ErrorCode::GROUP_ID_NOT_FOUND, message)
        };
        let is_known = groups.get(id).is_some();
        if request.member_epoch < JOIN_EPOCH {
            let group = groups.consumer_mut(id).ok_or_else(|| unknown(is_known))?;
            let answer = group.leave(&mut context, &request);
            conversion::downgrade(groups, &mut context, id);
            return answer;
        }
        if request.member_epoch == JOIN_EPOCH {
            conversion::upgrade(groups, &mut context, id, topics)?;
        }
        let config = context.config;
        let group = match request.member_epoch {
            JOIN_EPOCH => groups.consumer_or_new(id, || ConsumerGroup::new(id.clone(), config)),
            _ => groups.consumer_mut(id),
        };
        let group = group.ok_or_else(|| unknown(is_known))?;
        let answer = group.heartbeat(&mut context, &request, ticket.client_id(), topics);
        if answer.is_err() && !is_known {
            groups.remove(id);
        }
        answer
    }
}
