//! Clients of a coordinator, request by request.

use crate::embedded::coordinator::{ClassicGroupState, Config, Coordinator, GroupView, Reply, Topic};
use crate::protocol::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use crate::protocol::join_group::{JoinGroupProtocol, JoinGroupRequest, JoinGroupResponse};
use crate::protocol::leave_group::{LeaveGroupMember, LeaveGroupRequest, LeaveGroupResponse};
use crate::protocol::sync_group::{SyncGroupAssignment, SyncGroupRequest, SyncGroupResponse};
use crate::protocol::{Body, ErrorCode, RequestHeader, read_response, write_request};
use std::collections::BTreeMap;

pub(super) const GROUP: &str = "group";

/// Topics with these names and partition counts. The id of each is its number, from 1.
pub(super) fn topics(counts: &[(&str, i32)]) -> BTreeMap<String, Topic> {
    (1u8..).zip(counts).map(|(id, &(name, partitions))| (name.to_owned(), Topic { id: [id; 16], partitions })).collect()
}

/// A request that was sent.
#[derive(Debug, Clone)]
pub(super) struct Call {
    header: RequestHeader,
}

/// A member's own state.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) connection: u64,
    /// The version of JoinGroup and of SyncGroup: both change the tested behaviour with the same numbers.
    pub(super) version: i16,
    pub(super) id: String,
    pub(super) instance: Option<String>,
    pub(super) generation: i32,
    pub(super) protocols: Vec<(&'static str, Vec<u8>)>,
    pub(super) session_ms: i32,
    pub(super) rebalance_ms: i32,
}

impl Client {
    pub(super) fn new(connection: u64) -> Self {
        Self {
            connection,
            version: 9,
            id: String::new(),
            instance: None,
            generation: -1,
            protocols: vec![("sticky", vec![connection as u8])],
            session_ms: 10_000,
            rebalance_ms: 60_000,
        }
    }

    pub(super) fn static_member(connection: u64, instance: &str) -> Self {
        Self { instance: Some(instance.to_owned()), ..Self::new(connection) }
    }

    pub(super) fn listing(self, protocols: &[&'static str]) -> Self {
        let metadata = vec![self.connection as u8];
        Self { protocols: protocols.iter().map(|&name| (name, metadata.clone())).collect(), ..self }
    }

    pub(super) fn at_version(self, version: i16) -> Self {
        Self { version, ..self }
    }

    pub(super) fn join_request(&self) -> JoinGroupRequest {
        JoinGroupRequest {
            group_id: GROUP.to_owned(),
            session_timeout_ms: self.session_ms,
            rebalance_timeout_ms: self.rebalance_ms,
            member_id: self.id.clone(),
            group_instance_id: self.instance.clone(),
            protocol_type: "consumer".to_owned(),
            protocols: self
                .protocols
                .iter()
                .map(|(name, metadata)| JoinGroupProtocol { name: (*name).to_owned(), metadata: metadata.clone() })
                .collect(),
            reason: None,
        }
    }
}

/// A coordinator, its clock, and the responses that the test has not read.
pub(super) struct Cluster {
    pub(super) coordinator: Coordinator,
    pub(super) now: u64,
    correlation: i32,
    answers: BTreeMap<i32, Vec<u8>>,
}

impl Cluster {
    pub(super) fn new() -> Self {
        Self::with(Config::default())
    }

    pub(super) fn with(config: Config) -> Self {
        Self { coordinator: Coordinator::new(config), now: 1_000, correlation: 0, answers: BTreeMap::new() }
    }

    fn keep(&mut self, replies: Vec<Reply>) {
        for reply in replies {
            let id = i32::from_be_bytes(*reply.frame.first_chunk().expect("a header"));
            assert!(self.answers.insert(id, reply.frame).is_none(), "request {id} was answered twice");
        }
    }

    pub(super) fn send<B: Body>(&mut self, connection: u64, version: i16, body: &B) -> Call {
        self.correlation += 1;
        let header = RequestHeader {
            api: B::KEY,
            version,
            correlation_id: self.correlation,
            client_id: Some("client".to_owned()),
        };
        let frame = write_request(&header, body).expect("a request that fits");
        let replies = self.coordinator.handle(self.now, connection, &frame).expect("a request that can be read");
        self.keep(replies);
        Call { header }
    }

    /// Removes and returns the answer, if there is one.
    pub(super) fn poll<R: Body>(&mut self, call: &Call) -> Option<R> {
        let frame = self.answers.remove(&call.header.correlation_id)?;
        Some(read_response(&call.header, &frame).expect("an answer that can be read"))
    }

    pub(super) fn answer<R: Body>(&mut self, call: &Call) -> R {
        self.poll(call).expect("the request should have been answered")
    }

    pub(super) fn is_waiting(&self, call: &Call) -> bool {
        !self.answers.contains_key(&call.header.correlation_id)
    }

    pub(super) fn ask<B: Body, R: Body>(&mut self, connection: u64, version: i16, body: &B) -> R {
        let call = self.send(connection, version, body);
        self.answer(&call)
    }

    /// Advances the time, and stops at each deadline.
    pub(super) fn pass(&mut self, ms: u64) {
        let end = self.now + ms;
        while let Some(deadline) = self.coordinator.next_deadline().filter(|&deadline| deadline <= end) {
            assert!(deadline >= self.now, "a deadline in the past was left over");
            self.now = deadline;
            let replies = self.coordinator.tick(deadline);
            self.keep(replies);
            let next = self.coordinator.next_deadline();
            assert!(next.is_none_or(|next| next > deadline), "a deadline that is due was left over");
        }
        self.now = end;
        let replies = self.coordinator.tick(end);
        self.keep(replies);
    }

    pub(super) fn disconnect(&mut self, connection: u64) {
        let replies = self.coordinator.disconnect(self.now, connection);
        self.keep(replies);
    }

    pub(super) fn join(&mut self, client: &Client) -> Call {
        self.send(client.connection, client.version, &client.join_request())
    }

    /// Joins. A new dynamic member first gets its member id.
    pub(super) fn enter(&mut self, client: &mut Client) -> Call {
        let call = self.join(client);
        if client.id.is_empty() && client.instance.is_none() && client.version >= 4 {
            let response: JoinGroupResponse = self.answer(&call);
            assert_eq!(response.error_code, ErrorCode::MEMBER_ID_REQUIRED);
            client.id = response.member_id;
            return self.join(client);
        }
        call
    }

    /// Reads the response to a successful JoinGroup and updates the client.
    pub(super) fn joined(&mut self, client: &mut Client, call: &Call) -> JoinGroupResponse {
        let response: JoinGroupResponse = self.answer(call);
        assert_eq!(response.error_code, ErrorCode::NONE);
        client.id.clone_from(&response.member_id);
        client.generation = response.generation_id;
        response
    }

    pub(super) fn sync(&mut self, client: &Client, plan: &[(&str, &[u8])]) -> Call {
        let request = SyncGroupRequest {
            group_id: GROUP.to_owned(),
            generation_id: client.generation,
            member_id: client.id.clone(),
            group_instance_id: client.instance.clone(),
            protocol_type: Some("consumer".to_owned()),
            protocol_name: self.view().protocol,
            assignments: plan
                .iter()
                .map(|&(id, assignment)| SyncGroupAssignment {
                    member_id: id.to_owned(),
                    assignment: assignment.to_vec(),
                })
                .collect(),
        };
        self.send(client.connection, client.version.min(5), &request)
    }

    pub(super) fn synced(&mut self, call: &Call) -> (ErrorCode, Vec<u8>) {
        let response: SyncGroupResponse = self.answer(call);
        (response.error_code, response.assignment)
    }

    pub(super) fn heartbeat(&mut self, client: &Client) -> ErrorCode {
        let request = HeartbeatRequest {
            group_id: GROUP.to_owned(),
            generation_id: client.generation,
            member_id: client.id.clone(),
            group_instance_id: client.instance.clone(),
        };
        // Use another connection: the client's connection may have an unanswered request.
        self.ask::<_, HeartbeatResponse>(client.connection + 1_000_000, 4, &request).error_code
    }

    pub(super) fn leave(&mut self, version: i16, members: &[(&str, Option<&str>)]) -> LeaveGroupResponse {
        let request = LeaveGroupRequest {
            group_id: GROUP.to_owned(),
            member_id: members[0].0.to_owned(),
            members: members
                .iter()
                .map(|&(id, instance)| LeaveGroupMember {
                    member_id: id.to_owned(),
                    group_instance_id: instance.map(str::to_owned),
                    reason: Some("test".to_owned()).filter(|_| version >= 5),
                })
                .collect(),
        };
        self.ask(2_000_000, version, &request)
    }

    /// The group under test.
    pub(super) fn view(&self) -> GroupView {
        self.coordinator.groups().into_iter().find(|group| group.group_id == GROUP).expect("the group")
    }

    pub(super) fn state(&self) -> ClassicGroupState {
        self.view().state
    }

    /// Joins all clients into one generation and makes it Stable. Each assignment is the number of the client's
    /// connection.
    pub(super) fn stabilise(&mut self, clients: &mut [Client]) {
        let mut calls: Vec<_> = clients.iter_mut().map(|client| self.enter(client)).collect();
        // The first generation may consist of the first client only. Then each answered client joins once more. Only a
        // new member or the leader starts a rebalance by joining, so the leader joins last.
        if calls[1..].iter().any(|call| self.is_waiting(call)) {
            self.joined(&mut clients[0], &calls[0]);
            calls[0] = self.join(&clients[0]);
        }
        for (client, call) in clients.iter_mut().zip(&calls) {
            self.joined(client, call);
        }
        self.sync_all(clients);
    }

    /// Sends SyncGroup for all clients. They are in one generation.
    pub(super) fn sync_all(&mut self, clients: &[Client]) {
        let leader = self.view().leader.expect("a leader");
        let assignments: Vec<_> = clients.iter().map(|client| (client.id.clone(), [client.connection as u8])).collect();
        let plan: Vec<_> = assignments.iter().map(|(id, assignment)| (id.as_str(), &assignment[..])).collect();
        let calls: Vec<_> =
            clients.iter().map(|client| self.sync(client, if client.id == leader { &plan } else { &[] })).collect();
        for (client, call) in clients.iter().zip(&calls) {
            assert_eq!(self.synced(call), (ErrorCode::NONE, vec![client.connection as u8]));
        }
        assert_eq!(self.state(), ClassicGroupState::Stable);
    }

    /// A stable group of `count` dynamic members, in the order of their connections. The first is the leader.
    pub(super) fn stable(count: u64) -> (Self, Vec<Client>) {
        let mut cluster = Self::new();
        let mut clients: Vec<_> = (1..=count).map(Client::new).collect();
        cluster.stabilise(&mut clients);
        assert_eq!(cluster.view().leader.as_ref(), Some(&clients[0].id));
        (cluster, clients)
    }
}
