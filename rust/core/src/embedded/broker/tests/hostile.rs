//! Malformed requests and batches.

use super::*;
use crate::protocol::consumer_group_heartbeat::ConsumerGroupHeartbeatRequest;
use crate::protocol::field::Field;
use crate::protocol::group_admin::ConsumerGroupDescribeRequest;
use crate::protocol::offsets::{OffsetCommitRequest, OffsetFetchRequest};
use crate::protocol::samples::Sample;
use crate::protocol::topics::*;
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};

/// Sends the broker requests of a kind, unchanged and with one changed byte. The broker must not panic, and each
/// request must get a response or a closed connection. With `fault`, an injected error refuses each request as well.
fn survives<B: Body + Sample>() {
    let (least, most) = B::KEY.versions();
    for version in least..=most {
        let format = crate::protocol::format_of::<B>(version).unwrap();
        let mut runner = TestRunner::new(Cases { cases: 24, failure_persistence: None, ..Cases::default() });
        let inputs = (B::sample(format), any::<prop::sample::Index>(), any::<u8>(), any::<bool>());
        let tested = runner.run(&inputs, |(body, place, byte, fault)| {
            let header = RequestHeader { api: B::KEY, version, correlation_id: 1, client_id: None };
            let mut frame = Vec::new();
            header.write(&mut frame).unwrap();
            let head = frame.len();
            Field::write(&body, &mut frame, format, "body").unwrap();
            for changed in [false, true] {
                if changed && frame.len() > head {
                    let at = head + place.index(frame.len() - head);
                    frame[at] = byte;
                }
                let mut client = Client::new(Config { auto_create_topics: true, ..Config::default() }, &[("a", 2)]);
                if fault {
                    client.broker.inject(B::KEY, ErrorCode::REQUEST_TIMED_OUT, 1);
                }
                if let Ok(handled) = client.broker.handle(5, 1, &frame) {
                    let silent = handled.replies.is_empty() && !handled.parked;
                    prop_assert!(!silent || B::KEY == ApiKey::Produce);
                }
                client.broker.tick(u64::MAX);
                prop_assert!(client.broker.next_deadline().is_none());
            }
            Ok(())
        });
        tested.unwrap_or_else(|error| panic!("{} version {version}: {error}", B::KEY.name()));
    }
}

#[test]
fn bytes_behind_a_request_are_ignored_as_kafka_does() {
    // The request of librdkafka 2.16 for all topics. Kafka reads the first six bytes after the client id.
    let mut frame = vec![0, 3, 0, 9, 0, 0, 0, 3, 0, 7];
    frame.extend(b"rdkafka");
    frame.extend([0, 0, 0, 0, 1, 0, 0, 0]);
    let mut client = Client::new(Config::default(), &[("t", 3)]);
    let handled = client.broker.handle(0, 1, &frame).unwrap();
    let header = RequestHeader { api: ApiKey::Metadata, version: 9, correlation_id: 3, client_id: None };
    let response: MetadataResponse = read_response(&header, &handled.replies[0].frame).unwrap();
    assert_eq!(response.topics[0].partitions.len(), 3);
}

#[test]
fn no_request_breaks_the_broker() {
    survives::<ProduceRequest>();
    survives::<FetchRequest>();
    survives::<ListOffsetsRequest>();
    survives::<MetadataRequest>();
    survives::<FindCoordinatorRequest>();
    survives::<ApiVersionsRequest>();
    survives::<InitProducerIdRequest>();
    survives::<OffsetForLeaderEpochRequest>();
    survives::<CreateTopicsRequest>();
    survives::<DeleteTopicsRequest>();
    survives::<DeleteRecordsRequest>();
    survives::<CreatePartitionsRequest>();
    survives::<DescribeConfigsRequest>();
    survives::<IncrementalAlterConfigsRequest>();
    survives::<ConsumerGroupHeartbeatRequest>();
    survives::<ConsumerGroupDescribeRequest>();
    survives::<OffsetCommitRequest>();
    survives::<OffsetFetchRequest>();
}

proptest! {
    #[test]
    fn no_batch_breaks_the_log(bytes in proptest::collection::vec(any::<u8>(), 0..200), time in any::<i64>(), valid in any::<bool>()) {
        let mut bytes = bytes;
        if valid && bytes.len() >= 61 {
            // Make the header valid, so that the malformed records reach the search by time.
            bytes[16] = 2;
            bytes[21..23].fill(0);
            let length = bytes.len() as i32 - 12;
            bytes[8..12].copy_from_slice(&length.to_be_bytes());
            bytes[23..27].copy_from_slice(&2i32.to_be_bytes());
            bytes[43..57].fill(0xff);
            bytes[57..61].copy_from_slice(&3i32.to_be_bytes());
            let crc = crc32c::crc32c(&bytes[21..]);
            bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        }
        let whole = bytes.len() >= 61;
        match batch::Batch::parse(bytes) {
            Ok(batch) => if let Some((offset, found)) = batch.first_at(time, 0) {
                prop_assert!((batch.base_offset..=batch.last_offset).contains(&offset));
                prop_assert!(found >= time);
            },
            Err(_) => prop_assert!(!valid || !whole),
        }
    }
}
