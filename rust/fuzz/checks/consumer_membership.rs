//! A member of the consumer protocol (KIP-848) with arbitrary brokers and an arbitrary application: no sequence of events makes
//! it panic, send on a closed connection, send heartbeats too often, or name an earlier epoch.

use std::collections::{BTreeMap, VecDeque};

use kafka_assignors_core::embedded::broker::Broker;
use kafka_assignors_core::member::{
    Action, CommitOffset, ConsumerConfig, ConsumerMembership, Event, MOST_HEARTBEATS, WINDOW_MS,
};
use kafka_assignors_core::protocol::cluster::{
    FindCoordinatorResponse, MetadataBroker, MetadataResponse, MetadataTopic,
};
use kafka_assignors_core::protocol::consumer_group_heartbeat::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, HeartbeatAssignment, HeartbeatTopicPartitions,
};
use kafka_assignors_core::protocol::reader::Reader;
use kafka_assignors_core::protocol::{ApiKey, ErrorCode, RequestHeader, read_request, write_response};

const ERRORS: [i16; 16] = [0, 0, 0, 0, 7, 14, 15, 16, 25, 29, 42, 69, 82, 110, 111, 112];

struct Host {
    member: ConsumerMembership,
    now: u64,
    /// Connections, each with its unanswered requests.
    conns: BTreeMap<u64, VecDeque<RequestHeader>>,
    opening: VecDeque<u64>,
    ticket: u64,
    fatal: u32,
    closed: u32,
    /// The times of the latest heartbeats.
    beats: VecDeque<u64>,
    epoch: i32,
}

impl Host {
    fn handle(&mut self, event: Event) {
        let actions = self.member.handle(self.now, event);
        self.obey(actions);
    }

    fn obey(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Connect { conn, .. } => {
                    assert!(self.conns.insert(conn, VecDeque::new()).is_none(), "a number used twice");
                    self.opening.push_back(conn);
                }
                Action::Send { conn, bytes } => {
                    let mut reader = Reader::new(&bytes[4..]);
                    let header = RequestHeader::read(&mut reader).expect("a request that can be read");
                    if header.api == ApiKey::ConsumerGroupHeartbeat {
                        self.sent(&read_request(&mut reader, header.version).expect("a heartbeat that can be read"));
                    }
                    self.conns.get_mut(&conn).expect("an open connection").push_back(header);
                }
                Action::Close { conn, .. } => {
                    self.conns.remove(&conn);
                }
                Action::Notify(notice) => {
                    self.ticket = notice.ticket;
                }
                Action::Fatal { .. } => self.fatal += 1,
                Action::Closed => self.closed += 1,
                _ => {}
            }
        }
        let of = |api| self.conns.values().flatten().filter(|header| header.api == api).count();
        assert!(of(ApiKey::OffsetCommit) <= 1 && self.fatal <= 1 && self.closed <= 1);
        assert!(of(ApiKey::ConsumerGroupHeartbeat) <= 2, "one heartbeat, and one that leaves");
        assert!(self.member.session_end().is_none_or(|end| end > self.now), "a member past its session");
        assert!(self.conns.len() <= 4, "more connections than roles, and one that is retired");
        assert!(self.member.next_deadline().is_none_or(|deadline| deadline > self.now));
    }

    fn sent(&mut self, request: &ConsumerGroupHeartbeatRequest) {
        if request.member_epoch < 0 {
            self.epoch = 0;
            return;
        }
        assert!(request.member_epoch == 0 || request.member_epoch >= self.epoch, "an epoch from the past");
        self.epoch = request.member_epoch;
        self.beats.push_back(self.now);
        while self.beats.front().is_some_and(|&at| at + WINDOW_MS <= self.now) {
            self.beats.pop_front();
        }
        assert!(self.beats.len() <= MOST_HEARTBEATS, "it asks too often");
    }

    fn pick(&self, which: u8) -> Option<u64> {
        let open: Vec<u64> = self.conns.keys().copied().collect();
        open.get(usize::from(which) % open.len().max(1)).copied()
    }

    /// The oldest request on a connection.
    fn asked(&mut self, which: u8) -> Option<(u64, RequestHeader)> {
        let waiting: Vec<u64> =
            self.conns.iter().filter(|(_, pending)| !pending.is_empty()).map(|(&conn, _)| conn).collect();
        let conn = *waiting.get(usize::from(which) % waiting.len().max(1))?;
        self.conns.get_mut(&conn)?.pop_front().map(|header| (conn, header))
    }

    /// A response to it: a valid header, and any body.
    fn answer(&mut self, which: u8, body: &[u8]) {
        let Some((conn, header)) = self.asked(which) else { return };
        let mut frame = header.correlation_id.to_be_bytes().to_vec();
        if header.api.is_flexible(header.version) && header.api != ApiKey::ApiVersions {
            frame.push(0);
        }
        frame.extend_from_slice(body);
        self.handle(Event::Received { conn, frame });
    }

    /// A response that can be read. Of a heartbeat the bytes are the error, the epoch, whether there is an assignment, and its
    /// partitions, in which the upper four bits are the topic.
    fn answer_readably(&mut self, which: u8, bytes: &[u8]) {
        let Some((conn, header)) = self.asked(which) else { return };
        let error = |byte: Option<&u8>| ErrorCode(ERRORS[usize::from(byte.copied().unwrap_or(0)) % ERRORS.len()]);
        let frame = match header.api {
            ApiKey::FindCoordinator => {
                let body =
                    FindCoordinatorResponse { node_id: 1, host: "b".to_owned(), port: 1, ..Default::default() };
                write_response(&header, &body)
            }
            ApiKey::Metadata => {
                let named = |(id, name): (u8, &str)| MetadataTopic {
                    name: Some(name.to_owned()),
                    topic_id: [id; 16],
                    ..Default::default()
                };
                let brokers = vec![MetadataBroker { node_id: 1, host: "b".to_owned(), port: 1, rack: None }];
                let topics = (1..).zip(["t", "u"]).map(named).collect();
                write_response(&header, &MetadataResponse { brokers, topics, ..Default::default() })
            }
            ApiKey::ConsumerGroupHeartbeat => {
                let mut topics: BTreeMap<u8, Vec<i32>> = BTreeMap::new();
                for byte in bytes.get(3..).unwrap_or_default() {
                    topics.entry(1 + (byte >> 4)).or_default().push(i32::from(byte & 15));
                }
                let row = |(id, partitions)| HeartbeatTopicPartitions { topic_id: [id; 16], partitions };
                let rows = topics.into_iter().map(row).collect();
                let given = bytes.get(2).is_some_and(|byte| byte & 1 == 1);
                let body = ConsumerGroupHeartbeatResponse {
                    error_code: error(bytes.first()),
                    member_id: Some("m".to_owned()),
                    member_epoch: bytes.get(1).copied().map_or(0, i32::from),
                    heartbeat_interval_ms: 5_000,
                    assignment: given.then_some(HeartbeatAssignment { topic_partitions: rows }),
                    ..Default::default()
                };
                write_response(&header, &body)
            }
            _ => return,
        };
        self.handle(Event::Received { conn, frame: frame.expect("a response that can be written") });
    }
}

/// Each step is a byte for the event, a byte for its object, a byte for the length, and that many bytes of data.
pub(crate) fn check(bytes: &[u8]) {
    let (&kind, mut rest) = bytes.split_first().unwrap_or((&0, &[]));
    let config = ConsumerConfig {
        bootstrap: vec![("b".to_owned(), 1)],
        group_id: "g".to_owned(),
        member_id: "m".to_owned(),
        group_instance_id: (kind & 1 != 0).then(|| "i".to_owned()),
        remote_assignor: (kind & 2 != 0).then(|| "range".to_owned()),
        ..ConsumerConfig::default()
    };
    let member = ConsumerMembership::new(config, 0).expect("good settings");
    let mut host = Host {
        member,
        now: 0,
        conns: BTreeMap::new(),
        opening: VecDeque::new(),
        ticket: 0,
        fatal: 0,
        closed: 0,
        beats: VecDeque::new(),
        epoch: 0,
    };
    let versions: BTreeMap<i16, (i16, i16)> = Broker::apis().map(|api| (api.code(), api.versions())).collect();
    let expression = (kind & 4 != 0).then(|| "t.*".to_owned());
    let actions = host.member.subscribe(0, vec!["t".to_owned()], expression);
    host.obey(actions);
    while let [what, which, length, tail @ ..] = rest {
        let (body, tail) = tail.split_at(usize::from(*length).min(tail.len()));
        rest = tail;
        match what % 14 {
            0 => {
                host.now += u64::from(*which) * 200;
                host.handle(Event::Tick);
            }
            1 => {
                if let Some(conn) = host.opening.pop_front() {
                    host.handle(Event::Connected { conn, versions: versions.clone() });
                }
            }
            2 => host.answer(*which, body),
            3 => host.answer_readably(*which, body),
            4 => {
                if let Some(conn) = host.pick(*which) {
                    host.handle(Event::Received { conn, frame: body.to_vec() });
                }
            }
            5 => {
                if let Some(conn) = host.pick(*which) {
                    host.conns.remove(&conn);
                    host.handle(Event::Disconnected { conn, reason: "gone".to_owned(), fatal: None });
                }
            }
            6 => {
                host.member.begin(host.ticket);
            }
            7 => host.handle(Event::Done { ticket: host.ticket, protocols: Vec::new() }),
            8 => {
                let offset = |number: &u8| CommitOffset {
                    topic: "t".to_owned(),
                    partition: i32::from(*number),
                    offset: 1,
                    leader_epoch: -1,
                    metadata: None,
                };
                host.handle(Event::Commit { id: 1, offsets: body.iter().map(offset).collect(), timeout_ms: 9_000 });
            }
            9 => {
                let numbers = body.iter().map(|&number| i32::from(number)).collect();
                let partitions = vec![("t".to_owned(), numbers)];
                host.handle(Event::FetchOffsets { id: 2, partitions, timeout_ms: 9_000 });
            }
            10 => {
                let topics = [&["t"][..], &["t", "u"], &["u"], &[]][usize::from(*which % 4)];
                let topics = topics.iter().map(|&topic| topic.to_owned()).collect();
                let expression = (which & 4 != 0).then(|| String::from_utf8_lossy(body).into_owned());
                let actions = host.member.subscribe(host.now, topics, expression);
                host.obey(actions);
            }
            11 => host.handle(Event::Poll),
            12 => match which & 3 {
                0 => host.handle(Event::Unsubscribe),
                1 => host.handle(Event::GroupRebalances { generation: i32::from(*length) }),
                _ => host.handle(Event::Neighbours { place: u32::from(*which), count: u32::from(*length) }),
            },
            _ => host.handle(Event::Close { timeout_ms: u64::from(*which) * 100 }),
        }
    }
}
