//! The brokers of the simulated world: the requests that they serve, and the checks of each request.

use super::{Happens, World};
use kafka_assignors_core::member::{MOST_HEARTBEATS, WINDOW_MS};
use kafka_assignors_core::protocol::cluster::*;
use kafka_assignors_core::protocol::consumer_group_heartbeat::*;
use kafka_assignors_core::protocol::offsets::*;
use kafka_assignors_core::protocol::reader::Reader;
use kafka_assignors_core::protocol::{ApiKey, Body, ErrorCode, RequestHeader, read_request, write_response};
use std::collections::BTreeSet;

impl World {
    fn answer<B: Body>(&mut self, host: usize, conn: u64, header: &RequestHeader, body: &B) {
        if self.cut_one_in > 0 && self.random.one_in(self.cut_one_in) {
            self.happens(self.now, Happens::Broken(host, conn));
            return;
        }
        let mut frame = write_response(header, body).unwrap();
        if self.spoiled_one_in > 0 && self.random.one_in(self.spoiled_one_in) {
            // The correlation id stays as it is: the member refuses a frame with a wrong one at once.
            let place = 4 + self.random.below(frame.len() as u64 - 4) as usize;
            match self.random.below(3) {
                0 => frame.truncate(place),
                1 => frame[place] = self.random.below(256) as u8,
                _ => frame[place..].iter_mut().for_each(|byte| *byte = 0xff),
            }
        }
        let at = self.arrival(host, conn);
        self.happens(at, Happens::Answer(host, conn, frame));
    }

    pub(super) fn serve(&mut self, host: usize, conn: u64, frame: &[u8]) {
        let mut reader = Reader::of_frame(frame);
        let header = RequestHeader::read(&mut reader).unwrap();
        // The world does not know the broker of a connection that the member has closed: it takes the coordinator.
        let node = self.hosts[host].conns.get(&conn).copied().unwrap_or(self.coordinator);
        if self.unreachable.contains(&host) || self.cut_one_in > 0 && self.random.one_in(self.cut_one_in) {
            self.happens(self.now + self.delay, Happens::Broken(host, conn));
            return;
        }
        let refusal = match () {
            () if node != self.coordinator => ErrorCode::NOT_COORDINATOR,
            () if self.now < self.loading_until => ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
            () => ErrorCode::NONE,
        };
        match header.api {
            ApiKey::FindCoordinator => {
                let body = FindCoordinatorResponse {
                    node_id: self.coordinator,
                    host: format!("b{}", self.coordinator),
                    port: 9092,
                    ..Default::default()
                };
                self.answer(host, conn, &header, &body);
            }
            ApiKey::Metadata => {
                let request: MetadataRequest = read_request(&mut reader, header.version).unwrap();
                let body = self.metadata(request);
                self.answer(host, conn, &header, &body);
            }
            ApiKey::ConsumerGroupHeartbeat => {
                let request: ConsumerGroupHeartbeatRequest = read_request(&mut reader, header.version).unwrap();
                let refusal = if refusal.is_none() { self.whims.pop_front().unwrap_or(refusal) } else { refusal };
                let body = match refusal {
                    ErrorCode::NONE if !self.script.is_empty() => self.script.pop_front().unwrap(),
                    ErrorCode::NONE => self.group.heartbeat(self.now, &request),
                    error_code => ConsumerGroupHeartbeatResponse { error_code, ..Default::default() },
                };
                if self.lost_answers > 0 {
                    self.lost_answers -= 1;
                    self.happens(self.now, Happens::Broken(host, conn));
                    return;
                }
                self.answer(host, conn, &header, &body);
            }
            ApiKey::OffsetCommit => {
                let request: OffsetCommitRequest = read_request(&mut reader, header.version).unwrap();
                let body = self.committed(header.version, refusal, &request);
                self.answer(host, conn, &header, &body);
            }
            other => panic!("{other:?} was asked"),
        }
    }

    fn metadata(&self, request: MetadataRequest) -> MetadataResponse {
        let names: Vec<String> = match request.topics {
            None => self.group.topics.keys().cloned().collect(),
            Some(topics) => topics.into_iter().filter_map(|topic| topic.name).collect(),
        };
        let stale = self.now < self.stale_metadata_until;
        let topic = |name: String| match self.group.topics.get(&name).filter(|_| !stale) {
            Some(&(topic_id, _)) => MetadataTopic { name: Some(name), topic_id, ..Default::default() },
            None => MetadataTopic {
                name: Some(name),
                error_code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                ..Default::default()
            },
        };
        let broker = |node_id| MetadataBroker { node_id, host: format!("b{node_id}"), port: 9092, rack: None };
        MetadataResponse {
            brokers: vec![broker(1), broker(2)],
            topics: names.into_iter().map(topic).collect(),
            ..Default::default()
        }
    }

    fn committed(&mut self, version: i16, refusal: ErrorCode, request: &OffsetCommitRequest) -> OffsetCommitResponse {
        let mut code = refusal;
        if code.is_none() && self.refused_commits > 0 {
            self.refused_commits -= 1;
            code = ErrorCode::STALE_MEMBER_EPOCH;
        }
        let mut partitions = Vec::new();
        for topic in &request.topics {
            let id = if version > 9 {
                topic.topic_id
            } else {
                self.group.topics.get(&topic.name).map_or([0; 16], |&(id, _)| id)
            };
            partitions.extend(topic.partitions.iter().map(|partition| (id, partition.partition_index)));
        }
        // One refused partition refuses the whole request.
        for &partition in &partitions {
            if code.is_none() {
                code = self.group.commit(self.now, &request.member_id, request.generation_id, partition);
            }
        }
        let topics = request.topics.iter().map(|topic| OffsetCommitTopicResponse {
            name: topic.name.clone(),
            topic_id: topic.topic_id,
            partitions: topic
                .partitions
                .iter()
                .map(|partition| OffsetCommitPartitionResponse {
                    partition_index: partition.partition_index,
                    error_code: code,
                })
                .collect(),
        });
        OffsetCommitResponse { topics: topics.collect(), ..Default::default() }
    }

    /// A member may commit only partitions that its application holds, or has given up without an acknowledgement. This check is
    /// needed because a broker accepts any partition at the member's epoch.
    pub(super) fn check_request(&mut self, host: usize, frame: &[u8]) {
        let mut reader = Reader::of_frame(frame);
        let header = RequestHeader::read(&mut reader).unwrap();
        if header.api == ApiKey::ConsumerGroupHeartbeat {
            let request = read_request(&mut reader, header.version).unwrap();
            return self.check_heartbeat(host, &request);
        }
        if header.api != ApiKey::OffsetCommit {
            return;
        }
        let request: OffsetCommitRequest = read_request(&mut reader, header.version).unwrap();
        let host = &self.hosts[host];
        assert!(!host.member.is_lost(), "a member that lost its partitions commits them");
        for topic in &request.topics {
            let held = host
                .holds
                .union(&host.given_up)
                .filter(|(name, _)| *name == topic.name || self.group.names.get(&topic.topic_id) == Some(name));
            let held: BTreeSet<i32> = held.map(|&(_, number)| number).collect();
            assert!(topic.partitions.iter().all(|partition| held.contains(&partition.partition_index)), "{request:?}");
        }
    }

    /// Checks the rate, the epochs, and the fields that must be present.
    fn check_heartbeat(&mut self, host: usize, request: &ConsumerGroupHeartbeatRequest) {
        let now = self.now;
        let member = &mut self.hosts[host];
        member.heartbeats += 1;
        member.sent.push(request.clone());
        if let Some(held) = &request.topic_partitions {
            // A partition that the request still names is not acknowledged.
            let names = |topic: &HeartbeatTopicPartitions, name: &str| {
                self.group.names.get(&topic.topic_id).is_some_and(|known| known == name)
            };
            member.given_up.retain(|(name, number)| {
                held.iter().any(|topic| topic.partitions.contains(number) && names(topic, name))
            });
        }
        if request.member_epoch < 0 {
            member.given_up.clear();
        }
        if request.member_epoch < 0 {
            member.epoch = 0;
            return;
        }
        member.beats.push_back(now);
        while member.beats.front().is_some_and(|&at| at + WINDOW_MS <= now) {
            member.beats.pop_front();
        }
        assert!(member.beats.len() <= MOST_HEARTBEATS, "{} heartbeats within {WINDOW_MS} ms", member.beats.len());
        assert!(request.member_epoch == 0 || request.member_epoch >= member.epoch, "epoch went back: {request:?}");
        member.epoch = request.member_epoch;
        if request.member_epoch == 0 {
            assert_eq!(request.topic_partitions, Some(vec![]), "a member that joins holds nothing");
            assert!(request.subscribed_topic_names.is_some() && request.rebalance_timeout_ms > 0);
        }
    }
}
