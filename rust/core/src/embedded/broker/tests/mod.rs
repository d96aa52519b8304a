//! Tests of the broker through its frames. This file contains the test client.

mod admin;
mod data;
mod hostile;

use super::*;
use crate::protocol::cluster::*;
use crate::protocol::read_response;
use crate::protocol::records::*;

/// A record batch of a producer. Record `i` has the time `times[i]` and no value.
struct Records<'a> {
    times: &'a [i64],
    producer: Option<(i64, i16, i32)>,
    padding: usize,
    attributes: i16,
}

impl Records<'_> {
    fn at(times: &[i64]) -> Records<'_> {
        Records { times, producer: None, padding: 0, attributes: 0 }
    }

    fn numbered(id: i64, epoch: i16, sequence: i32, times: &[i64]) -> Vec<u8> {
        Records { producer: Some((id, epoch, sequence)), ..Records::at(times) }.bytes()
    }

    fn bytes(&self) -> Vec<u8> {
        let first = self.times[0];
        let (id, epoch, sequence) = self.producer.unwrap_or((-1, -1, -1));
        let mut checked = Vec::new();
        checked.extend(self.attributes.to_be_bytes());
        checked.extend((self.times.len() as i32 - 1).to_be_bytes());
        checked.extend(first.to_be_bytes());
        checked.extend(self.times.iter().max().unwrap().to_be_bytes());
        checked.extend(id.to_be_bytes());
        checked.extend(epoch.to_be_bytes());
        checked.extend(sequence.to_be_bytes());
        checked.extend((self.times.len() as i32).to_be_bytes());
        for (delta, time) in self.times.iter().enumerate() {
            let mut record = vec![0];
            varint(&mut record, time - first);
            varint(&mut record, delta as i64);
            varint(&mut record, -1);
            varint(&mut record, self.padding as i64);
            record.extend(std::iter::repeat_n(0, self.padding));
            varint(&mut record, 0);
            varint(&mut checked, record.len() as i64);
            checked.extend(record);
        }
        let mut bytes = 77i64.to_be_bytes().to_vec();
        bytes.extend((checked.len() as i32 + 9).to_be_bytes());
        bytes.extend((-1i32).to_be_bytes());
        bytes.push(2);
        bytes.extend(crc32c::crc32c(&checked).to_be_bytes());
        bytes.extend(checked);
        bytes
    }
}

fn varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

struct Client {
    broker: Broker,
    now: u64,
    correlation_id: i32,
}

impl Client {
    fn new(config: Config, topics: &[(&str, i32)]) -> Self {
        let mut broker = Broker::new(config);
        for (name, partitions) in topics {
            broker.create_topic(name, *partitions, 1, Vec::new()).unwrap();
        }
        Self { broker, now: 0, correlation_id: 0 }
    }

    fn send<B: Body>(&mut self, connection: u64, version: i16, body: &B) -> (RequestHeader, Result<Handled, Hangup>) {
        self.correlation_id += 1;
        let correlation_id = self.correlation_id;
        let header = RequestHeader { api: B::KEY, version, correlation_id, client_id: Some("test".to_owned()) };
        let frame = crate::protocol::write_request(&header, body).unwrap();
        let handled = self.broker.handle(self.now, connection, &frame);
        (header, handled)
    }

    /// The only response to a request in the newest version.
    fn ask<B: Body, R: Body>(&mut self, body: &B) -> R {
        self.ask_version(B::KEY.versions().1, body)
    }

    fn ask_version<B: Body, R: Body>(&mut self, version: i16, body: &B) -> R {
        let (header, handled) = self.send(1, version, body);
        let handled = handled.unwrap();
        assert!(!handled.parked);
        assert_eq!(handled.replies.len(), 1);
        assert_eq!(handled.replies[0].connection, 1);
        read_response(&header, &handled.replies[0].frame).unwrap()
    }

    fn produce(&mut self, topic: &str, index: i32, records: Vec<u8>) -> PartitionProduceResponse {
        let response: ProduceResponse = self.ask(&produce_request(1, topic, index, records));
        response.responses[0].partition_responses[0].clone()
    }

    fn fetch_from(&mut self, topic: &str, partition: i32, offset: i64) -> FetchedPartition {
        let response: FetchResponse = self.ask(&fetch_request(topic, partition, offset, 0, 1));
        response.responses[0].partitions[0].clone()
    }

    fn offset_at(&mut self, topic: &str, partition: i32, timestamp: i64) -> (ErrorCode, i64, i64) {
        let asked = ListOffsetsPartition { partition_index: partition, timestamp, ..Default::default() };
        let topics = vec![ListOffsetsTopic { name: topic.to_owned(), partitions: vec![asked] }];
        let response: ListOffsetsResponse = self.ask(&ListOffsetsRequest { topics, ..Default::default() });
        let found = &response.topics[0].partitions[0];
        (found.error_code, found.offset, found.timestamp)
    }

    fn metadata(&mut self, topics: Option<&[&str]>) -> MetadataResponse {
        let names = topics.map(|names| {
            names
                .iter()
                .map(|&name| MetadataRequestTopic { name: Some(name.to_owned()), ..Default::default() })
                .collect()
        });
        self.ask(&MetadataRequest { topics: names, ..Default::default() })
    }
}

fn produce_request(acks: i16, topic: &str, index: i32, records: Vec<u8>) -> ProduceRequest {
    let partition_data = vec![PartitionProduceData { index, records: Some(records) }];
    let topic_data = vec![TopicProduceData { name: topic.to_owned(), partition_data }];
    ProduceRequest { acks, topic_data, ..Default::default() }
}

fn fetch_request(topic: &str, partition: i32, fetch_offset: i64, max_wait_ms: i32, min_bytes: i32) -> FetchRequest {
    let asked = FetchPartition { partition, fetch_offset, partition_max_bytes: 1 << 20, ..Default::default() };
    let topics = vec![FetchTopic { topic: topic.to_owned(), partitions: vec![asked] }];
    FetchRequest { max_wait_ms, min_bytes, topics, ..Default::default() }
}

/// The expected bytes of a batch in the log: only base offset and leader epoch are overwritten.
fn placed(mut records: Vec<u8>, base_offset: i64) -> Vec<u8> {
    records[..8].copy_from_slice(&base_offset.to_be_bytes());
    records[12..16].fill(0);
    records
}
