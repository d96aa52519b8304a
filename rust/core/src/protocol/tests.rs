//! Round trips of every message in every version, and hostile bytes.

use super::samples::Sample;
use super::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Writing and reading a random body of any version returns the same body. A prefix of the bytes is an error. A body
/// that is cut or changed anywhere is an error or readable, but never a panic.
fn round_trips<B: Body + Sample + PartialEq>() {
    let (least, most) = B::KEY.versions();
    for version in least..=most {
        let format = format_of::<B>(version).unwrap();
        let mut runner = TestRunner::new(Config { cases: 48, failure_persistence: None, ..Config::default() });
        runner
            .run(&(B::sample(format), any::<prop::sample::Index>(), any::<u8>()), |(body, place, byte)| {
                let mut bytes = Vec::new();
                body.write(&mut bytes, format, "body").unwrap();
                prop_assert_eq!(&read_body::<B>(&mut Reader::new(&bytes), version).unwrap(), &body);
                if bytes.is_empty() {
                    return Ok(());
                }
                let cut = place.index(bytes.len());
                let prefix = read_body::<B>(&mut Reader::new(&bytes[..cut]), version);
                prop_assert!(prefix.is_err(), "{} of {} bytes were read as {prefix:?}", cut, bytes.len());
                bytes.push(0);
                prop_assert!(read_body::<B>(&mut Reader::new(&bytes), version).is_err());
                bytes.pop();
                bytes[cut] = byte;
                if let Ok(changed) = read_body::<B>(&mut Reader::new(&bytes), version) {
                    let mut again = Vec::new();
                    changed.write(&mut again, format, "body").unwrap();
                    prop_assert_eq!(read_body::<B>(&mut Reader::new(&again), version).unwrap(), changed);
                }
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{} version {version}: {error}", B::KEY.name()));
    }
}

macro_rules! round_trip_tests {
    ($($name:ident: $($body:path),*;)*) => {$(
        #[test]
        fn $name() {
            $(round_trips::<$body>();)*
        }
    )*};
}

round_trip_tests! {
    api_versions_round_trips: cluster::ApiVersionsRequest, cluster::ApiVersionsResponse;
    metadata_round_trips: cluster::MetadataRequest, cluster::MetadataResponse;
    find_coordinator_round_trips: cluster::FindCoordinatorRequest, cluster::FindCoordinatorResponse;
    sasl_handshake_round_trips: sasl::SaslHandshakeRequest, sasl::SaslHandshakeResponse;
    sasl_authenticate_round_trips: sasl::SaslAuthenticateRequest, sasl::SaslAuthenticateResponse;
    produce_round_trips: records::ProduceRequest, records::ProduceResponse;
    fetch_round_trips: records::FetchRequest, records::FetchResponse;
    list_offsets_round_trips: records::ListOffsetsRequest, records::ListOffsetsResponse;
    offset_for_leader_epoch_round_trips: records::OffsetForLeaderEpochRequest, records::OffsetForLeaderEpochResponse;
    init_producer_id_round_trips: records::InitProducerIdRequest, records::InitProducerIdResponse;
    create_topics_round_trips: topics::CreateTopicsRequest, topics::CreateTopicsResponse;
    delete_topics_round_trips: topics::DeleteTopicsRequest, topics::DeleteTopicsResponse;
    delete_records_round_trips: topics::DeleteRecordsRequest, topics::DeleteRecordsResponse;
    create_partitions_round_trips: topics::CreatePartitionsRequest, topics::CreatePartitionsResponse;
    describe_configs_round_trips: topics::DescribeConfigsRequest, topics::DescribeConfigsResponse;
    incremental_alter_configs_round_trips: topics::IncrementalAlterConfigsRequest, topics::IncrementalAlterConfigsResponse;
    join_group_round_trips: join_group::JoinGroupRequest, join_group::JoinGroupResponse;
    sync_group_round_trips: sync_group::SyncGroupRequest, sync_group::SyncGroupResponse;
    heartbeat_round_trips: heartbeat::HeartbeatRequest, heartbeat::HeartbeatResponse;
    consumer_group_heartbeat_round_trips: consumer_group_heartbeat::ConsumerGroupHeartbeatRequest,
        consumer_group_heartbeat::ConsumerGroupHeartbeatResponse;
    leave_group_round_trips: leave_group::LeaveGroupRequest, leave_group::LeaveGroupResponse;
    offset_commit_round_trips: offsets::OffsetCommitRequest, offsets::OffsetCommitResponse;
    offset_fetch_round_trips: offsets::OffsetFetchRequest, offsets::OffsetFetchResponse;
    describe_groups_round_trips: group_admin::DescribeGroupsRequest, group_admin::DescribeGroupsResponse;
    consumer_group_describe_round_trips: group_admin::ConsumerGroupDescribeRequest, group_admin::ConsumerGroupDescribeResponse;
    list_groups_round_trips: group_admin::ListGroupsRequest, group_admin::ListGroupsResponse;
    delete_groups_round_trips: group_admin::DeleteGroupsRequest, group_admin::DeleteGroupsResponse;
}

#[test]
fn frames_round_trip_with_their_headers() {
    for &api in ApiKey::ALL {
        for version in api.versions().0..=api.versions().1 {
            for client_id in [None, Some("tests".to_owned())] {
                let header = RequestHeader { api, version, correlation_id: -7, client_id };
                let mut bytes = Vec::new();
                header.write(&mut bytes).unwrap();
                let mut reader = Reader::new(&bytes);
                assert_eq!(RequestHeader::read(&mut reader).unwrap(), header);
                assert_eq!(reader.remaining(), 0);
            }
        }
    }
}

#[test]
fn a_response_answers_its_request_only() {
    let header = RequestHeader { api: ApiKey::Heartbeat, version: 4, correlation_id: 9, client_id: None };
    let body = heartbeat::HeartbeatResponse { throttle_time_ms: 3, error_code: ErrorCode::REBALANCE_IN_PROGRESS };
    let frame = write_response(&header, &body).unwrap();
    assert_eq!(read_response::<heartbeat::HeartbeatResponse>(&header, &frame), Ok(body));
    let other = RequestHeader { correlation_id: 10, ..header };
    assert_eq!(
        read_response::<heartbeat::HeartbeatResponse>(&other, &frame),
        Err(FrameError::Correlation { got: 9, expected: 10 })
    );
}

#[test]
fn versions_we_do_not_speak_are_refused() {
    let error = read_body::<join_group::JoinGroupRequest>(&mut Reader::new(&[]), 10).unwrap_err();
    assert_eq!(error.to_string(), "JoinGroup version 10 is not spoken here: use 0 to 9");
    assert_eq!(
        format_of::<offsets::OffsetFetchRequest>(0).unwrap_err(),
        FrameError::UnsupportedVersion { api: ApiKey::OffsetFetch, version: 0 }
    );
    assert_eq!(
        RequestHeader::read(&mut Reader::new(&[0x7f, 0, 0, 0, 0, 0, 0, 1])),
        Err(FrameError::UnknownApi(0x7f00))
    );
}

#[test]
fn unknown_tagged_fields_are_skipped_and_bounded() {
    // Heartbeat v4 response: throttle 0, error 27, then tag 5 with two bytes.
    let body = [0, 0, 0, 0, 0, 27, 1, 5, 2, 0xaa, 0xbb];
    let read = read_body::<heartbeat::HeartbeatResponse>(&mut Reader::new(&body), 4).unwrap();
    assert_eq!(read.error_code, ErrorCode::REBALANCE_IN_PROGRESS);
    let hostile = [0, 0, 0, 0, 0, 27, 1, 5, 0xff, 0xff, 0xff, 0xff, 0x0f];
    assert!(read_body::<heartbeat::HeartbeatResponse>(&mut Reader::new(&hostile), 4).is_err());
    let endless = [0, 0, 0, 0, 0, 27, 0xff, 0xff, 0xff, 0xff, 0x0f];
    assert!(read_body::<heartbeat::HeartbeatResponse>(&mut Reader::new(&endless), 4).is_err());
}

#[test]
fn hostile_counts_are_refused_before_anything_is_reserved() {
    // DescribeGroups requests: 2^31 - 1 groups; 2^32 - 2 groups in the compact form; a count below -1 in a field that
    // must not be null.
    for (version, body) in [
        (0, vec![0x7f, 0xff, 0xff, 0xff]),
        (5, vec![0xff, 0xff, 0xff, 0xff, 0x0f]),
        (0, vec![0xff, 0xff, 0xff, 0xfe]),
        (5, vec![0]),
    ] {
        assert!(read_body::<group_admin::DescribeGroupsRequest>(&mut Reader::new(&body), version).is_err(), "{body:?}");
    }
}

#[test]
fn codes_have_names() {
    assert_eq!(ErrorCode(82).to_string(), "FENCED_INSTANCE_ID (82)");
    assert_eq!(ErrorCode(31000).to_string(), "error code 31000");
    for &api in ApiKey::ALL {
        assert_eq!(ApiKey::from_code(api.code()), Some(api));
    }
}

#[test]
fn bytes_behind_a_request_do_not_count() {
    // The request of librdkafka 2.16.0 for all topics in version 9: a tagged field without content, and one extra byte.
    let body = [0, 0, 0, 0, 1, 0, 0, 0];
    let strict = read_body::<cluster::MetadataRequest>(&mut Reader::new(&body), 9).unwrap_err();
    assert!(matches!(strict, FrameError::Trailing { remaining: 1, .. }), "{strict}");
    let read = read_request::<cluster::MetadataRequest>(&mut Reader::new(&body), 9).unwrap();
    assert_eq!(read.topics, None);
}

/// Numbers in protobuf's zigzag encoding, which Kafka's protocol guide names for VARINT and VARLONG.
#[test]
fn signed_numbers_of_records() {
    let longest = [0xff; 9];
    for (number, bytes) in [(0, &[0][..]), (-1, &[1]), (1, &[2]), (-2, &[3]), (300, &[0xd8, 0x04])] {
        assert_eq!(Reader::new(bytes).varint("number"), Ok(number));
        assert_eq!(Reader::new(bytes).varlong("number"), Ok(number.into()));
    }
    for (number, last) in [(i32::MAX, 0xfe), (i32::MIN, 0xff)] {
        let bytes = [last, 0xff, 0xff, 0xff, 0x0f];
        assert_eq!(Reader::new(&bytes).varint("number"), Ok(number));
    }
    for (number, first) in [(i64::MAX, 0xfe), (i64::MIN, 0xff)] {
        let bytes = [&[first], &longest[1..], &[1]].concat();
        assert_eq!(Reader::new(&bytes).varlong("number"), Ok(number));
    }
    let endless = [0x80; 11];
    let error = Err(ReadError { what: "number", at: 0, problem: reader::Problem::Varint });
    assert_eq!(Reader::new(&endless).varint("number").map(i64::from), error);
    assert_eq!(Reader::new(&endless).varlong("number"), error);
}

proptest! {
    /// Around the length of a word, with a byte or a character that is not ASCII at any place.
    #[test]
    fn utf8_is_what_str_takes(
        mut bytes in prop_oneof![
            "[ -~]{0,24}".prop_map(String::into_bytes),
            "\\PC{0,12}".prop_map(String::into_bytes),
            proptest::collection::vec(any::<u8>(), 0..24),
        ],
        change in proptest::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        if let Some((at, byte)) = change.filter(|_| !bytes.is_empty()) {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        prop_assert_eq!(Utf8::new(&bytes).map(Utf8::text), str::from_utf8(&bytes).ok());
    }
}
