//! One member. The test itself writes the brokers' responses.

use crate::{assignors, cluster};
use kafka_assignors_core::member::{Action, Config, Event, Membership, Notice, NoticeKind, Partitions, Role, Stage};
use kafka_assignors_core::protocol::assignment;
use kafka_assignors_core::protocol::cluster::{
    FindCoordinatorResponse, MetadataPartition, MetadataRequest, MetadataResponse, MetadataTopic,
};
use kafka_assignors_core::protocol::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use kafka_assignors_core::protocol::join_group::{JoinGroupMember, JoinGroupRequest, JoinGroupResponse};
use kafka_assignors_core::protocol::offsets::{
    OffsetCommitPartitionResponse, OffsetCommitRequest, OffsetCommitResponse, OffsetCommitTopicResponse,
};
use kafka_assignors_core::protocol::reader::Reader;
use kafka_assignors_core::protocol::sync_group::{SyncGroupRequest, SyncGroupResponse};
use kafka_assignors_core::protocol::topic_partitions::CanonicalPartitions;
use kafka_assignors_core::protocol::{ApiKey, Body, ErrorCode, RequestHeader, read_request, write_response};
use std::collections::{BTreeMap, VecDeque};

/// A request that the test has not answered.
#[derive(Debug, Clone)]
pub(crate) struct Asked<B> {
    pub(crate) conn: u64,
    pub(crate) header: RequestHeader,
    pub(crate) body: B,
}

/// The member and its unanswered requests.
pub(crate) struct Script {
    pub(crate) member: Membership,
    pub(crate) now: u64,
    /// Connections that are open or being opened.
    pub(crate) conns: BTreeMap<u64, Role>,
    /// Whether connections open without the test's help.
    pub(crate) connects: bool,
    pub(crate) connected: u64,
    sent: VecDeque<(u64, RequestHeader, Vec<u8>)>,
    /// All actions except those about connections, in order.
    pub(crate) actions: Vec<Action>,
    pub(crate) versions: BTreeMap<i16, (i16, i16)>,
    /// The assignors of the member.
    listed: Vec<String>,
    /// The existing topics and their partition counts.
    pub(crate) topics: BTreeMap<String, i32>,
    /// Topics that exist, but that the broker cannot describe yet.
    pub(crate) leaderless: Vec<String>,
}

pub(crate) fn assignment(partitions: &[(&str, &[i32])], generation: i32) -> Vec<u8> {
    let list = CanonicalPartitions::new(partitions.iter().map(|&(topic, numbers)| (topic, numbers.to_vec())));
    assignment::encode(&list, Some(generation)).unwrap()
}

pub(crate) fn owned(partitions: &[(&str, &[i32])]) -> Partitions {
    partitions.iter().map(|&(topic, numbers)| (topic.to_owned(), numbers.to_vec())).collect()
}

impl Script {
    /// A member of group `g`, subscribed to `t`, of which four partitions exist.
    pub(crate) fn new(config: Config) -> Self {
        let listed = config.assignors.iter().map(|assignor| assignor.name.clone()).collect();
        let mut script = Self {
            listed,
            member: Membership::new(config, 0).unwrap(),
            now: 0,
            conns: BTreeMap::new(),
            connects: true,
            connected: 0,
            sent: VecDeque::new(),
            actions: Vec::new(),
            versions: cluster::Cluster::new(1, Default::default()).versions(),
            topics: [("t".to_owned(), 4)].into(),
            leaderless: Vec::new(),
        };
        script.subscribe(&["t"]);
        script
    }

    pub(crate) fn subscribe(&mut self, topics: &[&str]) {
        let topics = topics.iter().map(|&topic| topic.to_owned()).collect();
        self.handle(Event::Subscribe { topics, all_topics: false });
    }

    pub(crate) fn handle(&mut self, event: Event) {
        let actions = self.member.handle(self.now, event);
        // A second call at the same time must have no effect.
        assert_eq!(self.member.handle(self.now, Event::Tick), []);
        for action in actions {
            match action {
                Action::Connect { conn, role, .. } => {
                    self.conns.insert(conn, role);
                    self.connected += 1;
                    if self.connects {
                        let versions = self.versions.clone();
                        self.handle(Event::Connected { conn, versions });
                    }
                }
                Action::Send { conn, bytes } => {
                    assert!(self.conns.contains_key(&conn), "sent on a connection that is closed");
                    let frame = bytes[4..].to_vec();
                    let header = RequestHeader::read(&mut Reader::new(&frame)).unwrap();
                    self.sent.push_back((conn, header, frame));
                }
                Action::Close { conn, .. } => self.forget(conn),
                other => self.actions.push(other),
            }
        }
    }

    fn forget(&mut self, conn: u64) {
        self.conns.remove(&conn);
        self.sent.retain(|(other, _, _)| *other != conn);
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, milliseconds: u64) {
        let end = self.now + milliseconds;
        while let Some(deadline) = self.member.next_deadline().filter(|&deadline| deadline <= end) {
            assert!(deadline > self.now, "a deadline in the past");
            self.now = deadline;
            self.handle(Event::Tick);
        }
        self.now = end;
    }

    pub(crate) fn conn(&self, role: Role) -> u64 {
        *self.conns.iter().find(|(_, other)| **other == role).expect("a connection").0
    }

    pub(crate) fn cut(&mut self, role: Role) {
        let conn = self.conn(role);
        self.forget(conn);
        self.handle(Event::Disconnected { conn, reason: "cut".to_owned(), fatal: None });
    }

    /// Whether a request of this API is unanswered.
    pub(crate) fn asks(&self, api: ApiKey) -> bool {
        self.sent.iter().any(|(_, header, _)| header.api == api)
    }

    /// The oldest request of this kind.
    #[track_caller]
    pub(crate) fn asked<B: Body>(&mut self) -> Asked<B> {
        let at = self.sent.iter().position(|(_, header, _)| header.api == B::KEY);
        let Some((conn, header, frame)) = at.and_then(|at| self.sent.remove(at)) else {
            panic!("{} is not asked, but {:?}; {:?}", B::KEY.name(), self.sent, self.actions);
        };
        let mut reader = Reader::new(&frame);
        RequestHeader::read(&mut reader).unwrap();
        let body = read_request(&mut reader, header.version).unwrap();
        Asked { conn, header, body }
    }

    pub(crate) fn answer<B, R: Body>(&mut self, asked: &Asked<B>, body: &R) {
        let frame = write_response(&asked.header, body).unwrap();
        self.handle(Event::Received { conn: asked.conn, frame });
    }

    /// Answers every FindCoordinator and Metadata request.
    pub(crate) fn discover(&mut self) {
        while self.asks(ApiKey::FindCoordinator) || self.asks(ApiKey::Metadata) {
            if self.asks(ApiKey::FindCoordinator) {
                self.find(ErrorCode::NONE);
            } else {
                self.describe();
            }
        }
    }

    pub(crate) fn find(&mut self, error_code: ErrorCode) {
        let asked: Asked<kafka_assignors_core::protocol::cluster::FindCoordinatorRequest> = self.asked();
        let (host, port) = cluster::Cluster::address(1);
        let body = FindCoordinatorResponse { error_code, node_id: 1, host, port, ..Default::default() };
        self.answer(&asked, &body);
    }

    pub(crate) fn describe(&mut self) {
        let asked: Asked<MetadataRequest> = self.asked();
        let names: Vec<String> = match &asked.body.topics {
            Some(topics) => topics.iter().filter_map(|topic| topic.name.clone()).collect(),
            None => self.topics.keys().cloned().collect(),
        };
        let topics = names.into_iter().map(|name| match self.topics.get(&name) {
            Some(&count) => {
                let partition =
                    |number| MetadataPartition { partition_index: number, leader_id: 1, ..Default::default() };
                MetadataTopic {
                    name: Some(name),
                    partitions: (0..count).map(partition).collect(),
                    ..Default::default()
                }
            }
            None if self.leaderless.contains(&name) => {
                MetadataTopic { name: Some(name), error_code: ErrorCode::LEADER_NOT_AVAILABLE, ..Default::default() }
            }
            None => MetadataTopic {
                name: Some(name),
                error_code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                ..Default::default()
            },
        });
        let body = MetadataResponse { topics: topics.collect(), ..Default::default() };
        self.answer(&asked, &body);
    }

    /// The current notice, if any.
    pub(crate) fn notice(&self) -> Option<Notice> {
        self.actions.iter().rev().find_map(|action| match action {
            Action::Notify(notice) => Some(notice.clone()),
            _ => None,
        })
    }

    /// All notices up to now.
    pub(crate) fn notices(&self) -> Vec<Notice> {
        let notices = self.actions.iter().filter_map(|action| match action {
            Action::Notify(notice) => Some(notice.clone()),
            _ => None,
        });
        notices.collect()
    }

    /// Carries out the last notice.
    #[track_caller]
    pub(crate) fn obey(&mut self) -> Notice {
        let notice = self.notice().expect("a notice");
        assert!(self.member.begin(notice.ticket), "overtaken: {notice:?}");
        self.done(&notice);
        notice
    }

    pub(crate) fn done(&mut self, notice: &Notice) {
        let mut protocols = Vec::new();
        if notice.kind == NoticeKind::Prepare {
            for name in &self.listed {
                let memory = assignors::Memory::default();
                protocols.push((name.clone(), assignors::metadata(name, &notice.topics, &notice.owned, &memory)));
            }
        }
        self.handle(Event::Done { ticket: notice.ticket, protocols });
    }

    /// Runs until the member sends JoinGroup.
    #[track_caller]
    pub(crate) fn joining(&mut self) -> Asked<JoinGroupRequest> {
        self.discover();
        self.obey();
        self.discover();
        self.asked()
    }

    /// The JoinGroup response to a follower.
    pub(crate) fn follows(&self, generation: i32) -> JoinGroupResponse {
        JoinGroupResponse {
            generation_id: generation,
            protocol_type: Some("consumer".to_owned()),
            protocol_name: Some(self.listed[0].clone()),
            leader: "boss".to_owned(),
            member_id: "me".to_owned(),
            ..Default::default()
        }
    }

    /// The JoinGroup response to a leader: the members are itself and another one with a subscription to these topics.
    pub(crate) fn leads(&self, generation: i32, others: &[&str]) -> JoinGroupResponse {
        let metadata = |topics: &[&str]| {
            let topics: Vec<String> = topics.iter().map(|&topic| topic.to_owned()).collect();
            assignors::metadata(&self.listed[0], &topics, &Vec::new(), &assignors::Memory::default())
        };
        let member = |id: &str, topics: &[&str]| JoinGroupMember {
            member_id: id.to_owned(),
            group_instance_id: None,
            metadata: metadata(topics),
        };
        JoinGroupResponse {
            leader: "me".to_owned(),
            members: vec![member("me", &["t"]), member("other", others)],
            ..self.follows(generation)
        }
    }

    pub(crate) fn sync(&mut self, assignment: Vec<u8>) -> SyncGroupRequest {
        let asked: Asked<SyncGroupRequest> = self.asked();
        let body = SyncGroupResponse {
            protocol_type: Some("consumer".to_owned()),
            protocol_name: Some(self.listed[0].clone()),
            assignment,
            ..Default::default()
        };
        self.answer(&asked, &body);
        asked.body
    }

    /// Brings the member into generation 1 as `me`, with these partitions, and finishes all callbacks.
    #[track_caller]
    pub(crate) fn stable(&mut self, partitions: &[(&str, &[i32])]) {
        let asked = self.joining();
        self.answer(&asked, &self.follows(1));
        self.sync(assignment(partitions, 1));
        self.discover();
        self.obey();
        self.discover();
        assert_eq!(self.member.stage(), Stage::Stable);
        self.actions.clear();
    }

    /// Answers the next heartbeat with this code.
    #[track_caller]
    pub(crate) fn heartbeat(&mut self, error_code: ErrorCode) {
        if !self.asks(ApiKey::Heartbeat) {
            self.pass(3_000);
        }
        let asked: Asked<HeartbeatRequest> = self.asked();
        self.answer(&asked, &HeartbeatResponse { error_code, ..Default::default() });
    }

    pub(crate) fn commit(&mut self, id: u64, offsets: &[(&str, i32, i64)]) {
        let offset = |&(topic, partition, offset): &(&str, i32, i64)| kafka_assignors_core::member::CommitOffset {
            topic: topic.to_owned(),
            partition,
            offset,
            leader_epoch: -1,
            metadata: None,
        };
        self.handle(Event::Commit { id, offsets: offsets.iter().map(offset).collect(), timeout_ms: 60_000 });
    }

    /// Answers the commit in flight with the same code for each partition. Returns the request.
    #[track_caller]
    pub(crate) fn committed(&mut self, error_code: ErrorCode) -> OffsetCommitRequest {
        let asked: Asked<OffsetCommitRequest> = self.asked();
        let topics = asked.body.topics.iter().map(|topic| OffsetCommitTopicResponse {
            name: topic.name.clone(),
            partitions: topic
                .partitions
                .iter()
                .map(|partition| OffsetCommitPartitionResponse {
                    partition_index: partition.partition_index,
                    error_code,
                })
                .collect(),
            ..Default::default()
        });
        let body = OffsetCommitResponse { topics: topics.collect(), ..Default::default() };
        self.answer(&asked, &body);
        asked.body
    }

    /// The result of the commit with this id.
    pub(crate) fn ended(&self, id: u64) -> Option<ErrorCode> {
        self.actions.iter().find_map(|action| match action {
            Action::CommitDone { id: other, code, .. } if *other == id => Some(*code),
            _ => None,
        })
    }

    pub(crate) fn fatal(&self) -> Vec<ErrorCode> {
        let codes = self.actions.iter().filter_map(|action| match action {
            Action::Fatal { code, .. } => Some(*code),
            _ => None,
        });
        codes.collect()
    }
}
