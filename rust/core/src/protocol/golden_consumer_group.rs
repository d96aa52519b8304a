//! The messages of KIP-848 compared with the bytes of the message classes of Java's kafka-clients 4.3.1.

use super::consumer_group_heartbeat::*;
use super::golden::{bytes, text};
use super::group_admin::*;
use super::offsets::*;
use super::*;

const T1: [u8; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
const T2: [u8; 16] = [17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32];
const MEMBER: &str = "wZ61xhiLmkLsGoCh3nAsSg";

/// The bytes are those of `body` in this version, in both directions.
fn check<B: Body + PartialEq + std::fmt::Debug>(version: i16, body: &B, hex: &str) {
    let format = format_of::<B>(version).unwrap();
    let mut written = Vec::new();
    body.write(&mut written, format, "body").unwrap();
    assert_eq!(written, bytes(hex), "{} version {version}", B::KEY.name());
    assert_eq!(&read_body::<B>(&mut Reader::of_frame(&written), version).unwrap(), body);
}

fn beat(member_epoch: i32) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        group_id: text("billing"),
        member_id: text(MEMBER),
        member_epoch,
        ..Default::default()
    }
}

fn held(topic_id: [u8; 16], partitions: &[i32]) -> HeartbeatTopicPartitions {
    HeartbeatTopicPartitions { topic_id, partitions: partitions.to_vec() }
}

fn names(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|&name| text(name)).collect())
}

#[test]
fn heartbeat_requests_that_join() {
    let join = ConsumerGroupHeartbeatRequest {
        rebalance_timeout_ms: 300_000,
        subscribed_topic_names: names(&["orders", "payments"]),
        topic_partitions: Some(vec![]),
        ..beat(JOIN_EPOCH)
    };
    check(
        1,
        &join,
        "0862696c6c696e6717775a36317868694c6d6b4c73476f4368336e41735367000000000000000493e003076f7264\
         657273097061796d656e747300000100",
    );
    let everything = ConsumerGroupHeartbeatRequest {
        instance_id: Some(text("i1")),
        rack_id: Some(text("r1")),
        subscribed_topic_names: Some(vec![]),
        subscribed_topic_regex: Some(text("ord.*")),
        server_assignor: Some(text("range")),
        ..join.clone()
    };
    check(
        1,
        &everything,
        "0862696c6c696e6717775a36317868694c6d6b4c73476f4368336e4173536700000000036931037231000493e001\
         066f72642e2a0672616e67650100",
    );
    let oldest =
        ConsumerGroupHeartbeatRequest { member_id: String::new(), subscribed_topic_names: names(&["orders"]), ..join };
    check(0, &oldest, "0862696c6c696e6701000000000000000493e002076f7264657273000100");
}

#[test]
fn heartbeat_requests_of_a_member() {
    check(1, &beat(7), "0862696c6c696e6717775a36317868694c6d6b4c73476f4368336e41735367000000070000ffffffff0000000000");
    check(0, &beat(7), "0862696c6c696e6717775a36317868694c6d6b4c73476f4368336e41735367000000070000ffffffff00000000");
    let acknowledge =
        |topic_partitions| ConsumerGroupHeartbeatRequest { topic_partitions: Some(topic_partitions), ..beat(7) };
    let all = acknowledge(vec![held(T1, &[0, 2]), held(T2, &[1])]);
    check(
        1,
        &all,
        "0862696c6c696e6717775a36317868694c6d6b4c73476f4368336e41735367000000070000ffffffff0000000301\
         02030405060708090a0b0c0d0e0f10030000000000000002001112131415161718191a1b1c1d1e1f200200000001\
         0000",
    );
    check(
        1,
        &acknowledge(vec![]),
        "0862696c6c696e6717775a36317868694c6d6b4c73476f4368336e41735367000000070000ffffffff0000000100",
    );
    let full = ConsumerGroupHeartbeatRequest {
        rebalance_timeout_ms: 300_000,
        subscribed_topic_names: names(&["orders"]),
        ..acknowledge(vec![held(T1, &[0])])
    };
    check(
        1,
        &full,
        "0862696c6c696e6717775a36317868694c6d6b4c73476f4368336e41735367000000070000000493e002076f7264\
         6572730000020102030405060708090a0b0c0d0e0f1002000000000000",
    );
    let regex_to_names = ConsumerGroupHeartbeatRequest {
        subscribed_topic_names: names(&["orders"]),
        subscribed_topic_regex: Some(String::new()),
        ..beat(7)
    };
    check(
        1,
        &regex_to_names,
        "0862696c6c696e6717775a36317868694c6d6b4c73476f4368336e41735367000000070000ffffffff02076f7264\
         65727301000000",
    );
}

#[test]
fn heartbeat_requests_that_leave() {
    check(
        1,
        &beat(LEAVE_EPOCH),
        "0862696c6c696e6717775a36317868694c6d6b4c73476f4368336e41735367ffffffff0000ffffffff0000000000",
    );
    let for_a_while = ConsumerGroupHeartbeatRequest { instance_id: Some(text("i1")), ..beat(LEAVE_STATIC_EPOCH) };
    check(
        1,
        &for_a_while,
        "0862696c6c696e6717775a36317868694c6d6b4c73476f4368336e41735367fffffffe03693100ffffffff000000\
         0000",
    );
}

fn answered(assignment: Option<Vec<HeartbeatTopicPartitions>>) -> ConsumerGroupHeartbeatResponse {
    ConsumerGroupHeartbeatResponse {
        member_id: Some(text(MEMBER)),
        member_epoch: 8,
        heartbeat_interval_ms: 5000,
        assignment: assignment.map(|topic_partitions| HeartbeatAssignment { topic_partitions }),
        ..Default::default()
    }
}

#[test]
fn heartbeat_responses() {
    check(1, &answered(None), "0000000000000017775a36317868694c6d6b4c73476f4368336e417353670000000800001388ff00");
    let assigned = answered(Some(vec![held(T1, &[0, 1]), held(T2, &[5])]));
    check(
        1,
        &assigned,
        "0000000000000017775a36317868694c6d6b4c73476f4368336e4173536700000008000013880103010203040506\
         0708090a0b0c0d0e0f10030000000000000001001112131415161718191a1b1c1d1e1f200200000005000000",
    );
    check(
        1,
        &answered(Some(vec![])),
        "0000000000000017775a36317868694c6d6b4c73476f4368336e41735367000000080000138801010000",
    );
    check(
        0,
        &answered(Some(vec![])),
        "0000000000000017775a36317868694c6d6b4c73476f4368336e41735367000000080000138801010000",
    );
    let fenced = ConsumerGroupHeartbeatResponse {
        throttle_time_ms: 100,
        error_code: ErrorCode::FENCED_MEMBER_EPOCH,
        error_message: Some(text("The member must abandon all its partitions and rejoin.")),
        ..Default::default()
    };
    check(
        1,
        &fenced,
        "00000064006e37546865206d656d626572206d757374206162616e646f6e20616c6c206974732070617274697469\
         6f6e7320616e642072656a6f696e2e000000000000000000ff00",
    );
    let left = ConsumerGroupHeartbeatResponse {
        member_id: Some(text(MEMBER)),
        member_epoch: LEAVE_EPOCH,
        ..Default::default()
    };
    check(1, &left, "0000000000000017775a36317868694c6d6b4c73476f4368336e41735367ffffffff00000000ff00");
}

#[test]
fn heartbeat_frames() {
    let header = RequestHeader {
        api: ApiKey::ConsumerGroupHeartbeat,
        version: 1,
        correlation_id: 5,
        client_id: Some(text("app")),
    };
    let framed = |frame: Vec<u8>| [&(frame.len() as u32).to_be_bytes()[..], &frame].concat();
    assert_eq!(
        framed(write_request(&header, &beat(7)).unwrap()),
        bytes(
            "0000003c00440001000000050003617070000862696c6c696e6717775a36317868694c6d6b4c73476f4368336e41\
         735367000000070000ffffffff0000000000"
        )
    );
    assert_eq!(
        framed(write_response(&header, &answered(None)).unwrap()),
        bytes(
            "0000002d00000005000000000000000017775a36317868694c6d6b4c73476f4368336e4173536700000008000013\
         88ff00"
        )
    );
}

fn of_topics(topics: &[([u8; 16], &str, &[i32])]) -> DescribedAssignment {
    let topic = |&(topic_id, name, partitions): &([u8; 16], &str, &[i32])| DescribedTopicPartitions {
        topic_id,
        topic_name: text(name),
        partitions: partitions.to_vec(),
    };
    DescribedAssignment { topic_partitions: topics.iter().map(topic).collect() }
}

#[test]
fn described_groups() {
    let request =
        ConsumerGroupDescribeRequest { group_ids: vec![text("billing")], include_authorized_operations: false };
    check(1, &request, "020862696c6c696e670000");
    let described = |types: [i8; 2]| ConsumerGroupDescribeResponse {
        throttle_time_ms: 0,
        groups: vec![DescribedConsumerGroup {
            group_id: text("billing"),
            group_state: text("Reconciling"),
            group_epoch: 8,
            assignment_epoch: 8,
            assignor_name: text("uniform"),
            members: vec![
                DescribedConsumer {
                    member_id: text(MEMBER),
                    member_epoch: 8,
                    client_id: text("c"),
                    client_host: text("/10.0.0.1"),
                    subscribed_topic_names: vec![text("orders")],
                    subscribed_topic_regex: Some(String::new()),
                    assignment: of_topics(&[(T1, "orders", &[0, 1])]),
                    target_assignment: of_topics(&[(T1, "orders", &[0, 1, 2])]),
                    member_type: types[0],
                    ..Default::default()
                },
                DescribedConsumer {
                    member_id: text("old"),
                    instance_id: Some(text("i1")),
                    rack_id: Some(text("r1")),
                    member_epoch: 7,
                    client_id: text("c2"),
                    client_host: text("/10.0.0.2"),
                    subscribed_topic_names: vec![text("orders"), text("payments")],
                    assignment: of_topics(&[(T1, "orders", &[2]), (T2, "payments", &[0])]),
                    target_assignment: of_topics(&[(T2, "payments", &[0])]),
                    member_type: types[1],
                    ..Default::default()
                },
            ],
            ..Default::default()
        }],
    };
    check(
        1,
        &described([1, 0]),
        "00000000020000000862696c6c696e670c5265636f6e63696c696e67000000080000000808756e69666f726d0317\
         775a36317868694c6d6b4c73476f4368336e4173536700000000000802630a2f31302e302e302e3102076f726465\
         727301020102030405060708090a0b0c0d0e0f10076f726465727303000000000000000100000201020304050607\
         08090a0b0c0d0e0f10076f72646572730400000000000000010000000200000100046f6c64036931037231000000\
         070363320a2f31302e302e302e3203076f7264657273097061796d656e747300030102030405060708090a0b0c0d\
         0e0f10076f72646572730200000002001112131415161718191a1b1c1d1e1f20097061796d656e74730200000000\
         0000021112131415161718191a1b1c1d1e1f20097061796d656e7473020000000000000000800000000000",
    );
    // Version 0 has no type.
    check(
        0,
        &described([-1, -1]),
        "00000000020000000862696c6c696e670c5265636f6e63696c696e67000000080000000808756e69666f726d0317\
         775a36317868694c6d6b4c73476f4368336e4173536700000000000802630a2f31302e302e302e3102076f726465\
         727301020102030405060708090a0b0c0d0e0f10076f726465727303000000000000000100000201020304050607\
         08090a0b0c0d0e0f10076f726465727304000000000000000100000002000000046f6c6403693103723100000007\
         0363320a2f31302e302e302e3203076f7264657273097061796d656e747300030102030405060708090a0b0c0d0e\
         0f10076f72646572730200000002001112131415161718191a1b1c1d1e1f20097061796d656e7473020000000000\
         00021112131415161718191a1b1c1d1e1f20097061796d656e74730200000000000000800000000000",
    );
    let classic = ConsumerGroupDescribeResponse {
        groups: vec![DescribedConsumerGroup {
            error_code: ErrorCode::GROUP_ID_NOT_FOUND,
            error_message: Some(text("Group billing is not a consumer group.")),
            group_id: text("billing"),
            ..Default::default()
        }],
        ..Default::default()
    };
    check(
        1,
        &classic,
        "000000000200452747726f75702062696c6c696e67206973206e6f74206120636f6e73756d65722067726f75702e\
         0862696c6c696e670100000000000000000101800000000000",
    );
}

#[test]
fn commits() {
    let commit = |name: &str, topic_id| OffsetCommitRequest {
        group_id: text("billing"),
        generation_id: 8,
        member_id: text(MEMBER),
        topics: vec![OffsetCommitTopic {
            name: text(name),
            topic_id,
            partitions: vec![OffsetCommitPartition {
                partition_index: 0,
                committed_offset: 42,
                committed_leader_epoch: 3,
                committed_metadata: Some(String::new()),
            }],
        }],
        ..Default::default()
    };
    check(
        9,
        &commit("orders", [0; 16]),
        "0862696c6c696e670000000817775a36317868694c6d6b4c73476f4368336e417353670002076f72646572730200\
         000000000000000000002a0000000301000000",
    );
    check(
        10,
        &commit("", T1),
        "0862696c6c696e670000000817775a36317868694c6d6b4c73476f4368336e417353670002010203040506070809\
         0a0b0c0d0e0f100200000000000000000000002a0000000301000000",
    );
    let stale = |name: &str, topic_id| OffsetCommitResponse {
        throttle_time_ms: 0,
        topics: vec![OffsetCommitTopicResponse {
            name: text(name),
            topic_id,
            partitions: vec![OffsetCommitPartitionResponse {
                partition_index: 0,
                error_code: ErrorCode::STALE_MEMBER_EPOCH,
            }],
        }],
    };
    check(9, &stale("orders", [0; 16]), "0000000002076f726465727302000000000071000000");
    check(10, &stale("", T1), "00000000020102030405060708090a0b0c0d0e0f1002000000000071000000");
}

#[test]
fn fetches() {
    let fetch = |name: &str, topic_id| OffsetFetchRequest {
        groups: vec![OffsetFetchGroup {
            group_id: text("billing"),
            member_id: Some(text(MEMBER)),
            member_epoch: 8,
            topics: Some(vec![OffsetFetchTopic { name: text(name), topic_id, partition_indexes: vec![0, 1] }]),
        }],
        require_stable: true,
        ..Default::default()
    };
    check(
        9,
        &fetch("orders", [0; 16]),
        "020862696c6c696e6717775a36317868694c6d6b4c73476f4368336e417353670000000802076f72646572730300\
         0000000000000100000100",
    );
    check(
        10,
        &fetch("", T1),
        "020862696c6c696e6717775a36317868694c6d6b4c73476f4368336e417353670000000802010203040506070809\
         0a0b0c0d0e0f1003000000000000000100000100",
    );
    let response = |error_code, topics| OffsetFetchResponse {
        groups: vec![OffsetFetchGroupResponse { group_id: text("billing"), topics, error_code }],
        ..Default::default()
    };
    let offset = |partition_index, committed_offset, committed_leader_epoch| OffsetFetchPartitionResponse {
        partition_index,
        committed_offset,
        committed_leader_epoch,
        metadata: Some(String::new()),
        error_code: ErrorCode::NONE,
    };
    let topic = |name: &str, topic_id| OffsetFetchTopicResponse {
        name: text(name),
        topic_id,
        partitions: vec![offset(0, 42, 3), offset(1, -1, -1)],
    };
    check(
        9,
        &response(ErrorCode::NONE, vec![topic("orders", [0; 16])]),
        "00000000020862696c6c696e6702076f72646572730300000000000000000000002a000000030100000000000001\
         ffffffffffffffffffffffff010000000000000000",
    );
    // Not in the golden file: version 9 with the id where the name was.
    let by_id = "00000000020862696c6c696e6702076f72646572730300000000000000000000002a000000030100000000000001\
         ffffffffffffffffffffffff010000000000000000"
        .replacen("076f7264657273", "0102030405060708090a0b0c0d0e0f10", 1);
    check(10, &response(ErrorCode::NONE, vec![topic("", T1)]), &by_id);
    let stale = response(ErrorCode::STALE_MEMBER_EPOCH, vec![]);
    check(9, &stale, "00000000020862696c6c696e670100710000");
}

#[test]
fn hostile_heartbeats_are_refused() {
    let head = bytes("000000000000000000000008000013880101");
    // An assignment of 2^32 - 2 topics, of a topic with as many partitions, a cut id, and a topic without its tags.
    let endless = [&head[..17], &[0xff, 0xff, 0xff, 0xff, 0x0f]].concat();
    let many = [&head[..17], &[2], &T1[..], &[0xff, 0xff, 0xff, 0xff, 0x0f]].concat();
    let cut = [&head[..17], &[2], &T1[..7]].concat();
    let untagged = [&head[..17], &[2], &T1[..], &[1]].concat();
    for frame in [endless, many, cut, untagged] {
        let read = read_body::<ConsumerGroupHeartbeatResponse>(&mut Reader::of_frame(&frame), 1);
        assert!(read.is_err(), "{frame:?} was read as {read:?}");
    }
}
