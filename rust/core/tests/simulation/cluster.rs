//! The brokers: several nodes that share one state. One node at a time is the coordinator.

use kafka_assignors_core::embedded::broker::{Broker, Config};
use kafka_assignors_core::embedded::coordinator;
use kafka_assignors_core::protocol::cluster::{FindCoordinatorResponse, MetadataBroker, MetadataResponse};
use kafka_assignors_core::protocol::reader::Reader;
use kafka_assignors_core::protocol::{ApiKey, ErrorCode, RequestHeader, read_response, write_response};
use std::collections::{BTreeMap, VecDeque};

pub(crate) const GROUP: &str = "g";
const PORT: i32 = 9000;

/// The requests for the group's coordinator.
const GROUP_REQUESTS: &[ApiKey] = &[
    ApiKey::JoinGroup,
    ApiKey::SyncGroup,
    ApiKey::Heartbeat,
    ApiKey::LeaveGroup,
    ApiKey::OffsetCommit,
    ApiKey::OffsetFetch,
];

/// A frame for a connection.
pub(crate) type Reply = (u64, Vec<u8>);

/// One connection as a broker sees it.
#[derive(Debug, Default)]
struct Served {
    node: i32,
    /// Frames after an unanswered request.
    queue: VecDeque<Vec<u8>>,
    parked: bool,
    /// The headers of the requests in service, to decode the replies.
    headers: BTreeMap<i32, RequestHeader>,
}

/// The brokers.
pub(crate) struct Cluster {
    pub(crate) broker: Broker,
    pub(crate) nodes: i32,
    pub(crate) coordinator: i32,
    pub(crate) up: BTreeMap<i32, bool>,
    /// Until this time the coordinator loads: it answers every request with error 14.
    pub(crate) loading_until: u64,
    /// The errors for the next requests of an API, in order.
    pub(crate) whims: BTreeMap<ApiKey, VecDeque<ErrorCode>>,
    served: BTreeMap<u64, Served>,
    /// The highest offered versions, if lower than the codec's.
    pub(crate) caps: BTreeMap<ApiKey, i16>,
    /// The committed offsets at the last check.
    committed: BTreeMap<(String, i32), i64>,
    /// Committed offsets that decreased.
    pub(crate) rewinds: Vec<String>,
    /// Requests seen, by API.
    pub(crate) seen: BTreeMap<ApiKey, u64>,
}

impl Cluster {
    pub(crate) fn new(nodes: i32, groups: coordinator::Config) -> Self {
        let broker = Broker::new(Config { groups, ..Config::default() });
        Self {
            broker,
            nodes,
            coordinator: 1,
            up: (1..=nodes).map(|node| (node, true)).collect(),
            loading_until: 0,
            whims: BTreeMap::new(),
            served: BTreeMap::new(),
            caps: BTreeMap::new(),
            committed: BTreeMap::new(),
            rewinds: Vec::new(),
            seen: BTreeMap::new(),
        }
    }

    pub(crate) fn address(node: i32) -> (String, i32) {
        (format!("b{node}"), PORT + node)
    }

    pub(crate) fn node_at(port: i32) -> i32 {
        port - PORT
    }

    pub(crate) fn is_up(&self, node: i32) -> bool {
        self.up.get(&node).copied().unwrap_or(false)
    }

    pub(crate) fn versions(&self) -> BTreeMap<i16, (i16, i16)> {
        let range = |api: ApiKey| {
            let (least, most) = api.versions();
            (api.code(), (least, self.caps.get(&api).map_or(most, |&cap| cap.min(most))))
        };
        Broker::apis().map(range).collect()
    }

    pub(crate) fn open(&mut self, connection: u64, node: i32) {
        self.served.insert(connection, Served { node, ..Served::default() });
    }

    /// The broker learns that a connection is closed.
    pub(crate) fn disconnect(&mut self, now: u64, connection: u64) -> Vec<Reply> {
        self.served.remove(&connection);
        let replies = self.broker.disconnect(now, connection);
        self.finish(now, replies)
    }

    pub(crate) fn tick(&mut self, now: u64) -> Vec<Reply> {
        let replies = self.broker.tick(now);
        self.finish(now, replies)
    }

    /// A frame arrives, without its length. `Err` closes the connection.
    pub(crate) fn arrive(&mut self, now: u64, connection: u64, frame: Vec<u8>) -> Result<Vec<Reply>, ()> {
        let Some(served) = self.served.get_mut(&connection) else { return Ok(Vec::new()) };
        if served.parked {
            served.queue.push_back(frame);
            return Ok(Vec::new());
        }
        self.handle(now, connection, &frame)
    }

    fn handle(&mut self, now: u64, connection: u64, frame: &[u8]) -> Result<Vec<Reply>, ()> {
        let header = RequestHeader::read(&mut Reader::new(frame)).map_err(|_| ())?;
        let Some(served) = self.served.get_mut(&connection) else { return Ok(Vec::new()) };
        let node = served.node;
        served.headers.insert(header.correlation_id, header.clone());
        *self.seen.entry(header.api).or_default() += 1;
        let group_request = GROUP_REQUESTS.contains(&header.api);
        let error = if group_request && node != self.coordinator {
            Some(ErrorCode::NOT_COORDINATOR)
        } else if group_request && now < self.loading_until && header.api != ApiKey::Heartbeat {
            Some(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS)
        } else {
            self.whims.get_mut(&header.api).and_then(VecDeque::pop_front)
        };
        if let Some(error) = error {
            self.broker.inject(header.api, error, 1);
        }
        let handled = self.broker.handle(now, connection, frame).map_err(|_| ())?;
        if handled.parked
            && let Some(served) = self.served.get_mut(&connection)
        {
            served.parked = true;
        }
        if header.api == ApiKey::OffsetCommit {
            self.look_for_rewinds(now);
        }
        Ok(self.finish(now, handled.replies))
    }

    fn look_for_rewinds(&mut self, now: u64) {
        for (topic, partitions) in self.broker.coordinator().committed(GROUP) {
            for (partition, committed) in partitions {
                let before = self.committed.insert((topic.clone(), partition), committed.offset);
                if let Some(before) = before.filter(|&before| before > committed.offset) {
                    self.rewinds.push(format!("{now}: {topic}-{partition} from {before} to {}", committed.offset));
                }
            }
        }
    }

    /// Replaces the addresses in the responses, and serves the requests that waited for them.
    fn finish(&mut self, now: u64, replies: Vec<coordinator::Reply>) -> Vec<Reply> {
        let mut out = Vec::new();
        for reply in replies {
            let Some(served) = self.served.get_mut(&reply.connection) else { continue };
            let correlation = reply.frame.first_chunk::<4>().map_or(0, |id| i32::from_be_bytes(*id));
            let header = served.headers.remove(&correlation);
            served.parked = false;
            let frame = match header {
                Some(header) if header.api == ApiKey::Metadata => self.metadata(&header, &reply.frame),
                Some(header) if header.api == ApiKey::FindCoordinator => self.found(&header, &reply.frame),
                _ => reply.frame,
            };
            out.push((reply.connection, frame));
            while let Some(served) = self.served.get_mut(&reply.connection).filter(|served| !served.parked) {
                let Some(frame) = served.queue.pop_front() else { break };
                match self.handle(now, reply.connection, &frame) {
                    Ok(more) => out.extend(more),
                    Err(()) => break,
                }
            }
        }
        out
    }

    fn metadata(&self, header: &RequestHeader, frame: &[u8]) -> Vec<u8> {
        let mut response: MetadataResponse = read_response(header, frame).unwrap();
        let broker = |node: i32| {
            let (host, port) = Self::address(node);
            MetadataBroker { node_id: node, host, port, rack: None }
        };
        response.brokers = (1..=self.nodes).filter(|&node| self.is_up(node)).map(broker).collect();
        write_response(header, &response).unwrap()
    }

    fn found(&self, header: &RequestHeader, frame: &[u8]) -> Vec<u8> {
        let mut response: FindCoordinatorResponse = read_response(header, frame).unwrap();
        if response.error_code.is_none() {
            if self.is_up(self.coordinator) {
                response.node_id = self.coordinator;
                (response.host, response.port) = Self::address(self.coordinator);
            } else {
                response.error_code = ErrorCode::COORDINATOR_NOT_AVAILABLE;
            }
        }
        write_response(header, &response).unwrap()
    }
}
