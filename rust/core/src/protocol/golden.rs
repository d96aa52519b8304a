//! Compares messages with the bytes of kafka-python 3.0.12, whose encoders are generated from Kafka's message definitions.
//! kafka-python has no versions 9 and 10 of OffsetCommit and OffsetFetch: `golden_consumer_group.rs` compares those with Java's.

use super::group_admin::*;
use super::heartbeat::*;
use super::join_group::*;
use super::leave_group::*;
use super::offsets::*;
use super::sync_group::*;
use super::*;

pub(super) fn text(text: &str) -> String {
    text.to_owned()
}

pub(super) fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// `golden` contains the hexadecimal body of each version that has a codec, the lowest first. Versions with equal bytes
/// have one entry, which begins with their number.
pub(super) fn check<B: Body + PartialEq>(body: impl Fn(i16) -> B, golden: &[(i16, &str)]) {
    let (least, most) = B::KEY.versions();
    let mut version = least;
    for &(count, hex) in golden {
        for _ in 0..count {
            let format = format_of::<B>(version).unwrap();
            let mut written = Vec::new();
            body(version).write(&mut written, format, "body").unwrap();
            assert_eq!(written, bytes(hex), "{} version {version}", B::KEY.name());
            let read = read_body::<B>(&mut Reader::new(&written), version).unwrap();
            let mut again = Vec::new();
            read.write(&mut again, format, "body").unwrap();
            assert_eq!(again, written, "{} version {version} as read", B::KEY.name());
            version += 1;
        }
    }
    assert_eq!(version, most + 1, "every version");
}

const TOPIC_ID: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

fn asked_topics() -> Vec<OffsetFetchTopic> {
    vec![OffsetFetchTopic { name: text("t"), topic_id: TOPIC_ID, partition_indexes: vec![3, 4] }]
}

fn fetched_topics() -> Vec<OffsetFetchTopicResponse> {
    vec![OffsetFetchTopicResponse {
        name: text("t"),
        topic_id: TOPIC_ID,
        partitions: vec![OffsetFetchPartitionResponse {
            partition_index: 3,
            committed_offset: 1 << 40,
            committed_leader_epoch: 5,
            metadata: Some(text("note")),
            error_code: ErrorCode::NONE,
        }],
    }]
}

#[test]
fn join_group_request() {
    let body = |version: i16| JoinGroupRequest {
        group_id: text("g-é"),
        session_timeout_ms: 45_000,
        rebalance_timeout_ms: 300_000,
        member_id: text("m"),
        // Null in the even versions.
        group_instance_id: (version % 2 == 1).then(|| text("i")),
        protocol_type: text("consumer"),
        protocols: vec![
            JoinGroupProtocol { name: text("sticky"), metadata: vec![0, 1] },
            JoinGroupProtocol { name: text("range"), metadata: vec![] },
        ],
        reason: Some(text("why")),
    };
    check(
        body,
        &[
            (
                1,
                "0004672dc3a90000afc800016d0008636f6e73756d6572000000020006737469636b7900000002000100057261\
             6e676500000000",
            ),
            (
                4,
                "0004672dc3a90000afc8000493e000016d0008636f6e73756d6572000000020006737469636b79000000020001\
             000572616e676500000000",
            ),
            (
                1,
                "0004672dc3a90000afc8000493e000016d0001690008636f6e73756d6572000000020006737469636b79000000\
             020001000572616e676500000000",
            ),
            (
                1,
                "05672dc3a90000afc8000493e0026d0009636f6e73756d65720307737469636b79030001000672616e67650100\
             00",
            ),
            (
                1,
                "05672dc3a90000afc8000493e0026d026909636f6e73756d65720307737469636b79030001000672616e676501\
             0000",
            ),
            (
                1,
                "05672dc3a90000afc8000493e0026d0009636f6e73756d65720307737469636b79030001000672616e67650100\
             0477687900",
            ),
            (
                1,
                "05672dc3a90000afc8000493e0026d026909636f6e73756d65720307737469636b79030001000672616e676501\
             000477687900",
            ),
        ],
    );
}

#[test]
fn join_group_response() {
    let body = |_| JoinGroupResponse {
        throttle_time_ms: 3,
        error_code: ErrorCode::NONE,
        generation_id: 7,
        protocol_type: Some(text("consumer")),
        protocol_name: Some(text("sticky")),
        leader: text("m"),
        skip_assignment: true,
        member_id: text("m"),
        members: vec![JoinGroupMember { member_id: text("m"), group_instance_id: Some(text("i")), metadata: vec![5] }],
    };
    check(
        body,
        &[
            (2, "0000000000070006737469636b7900016d00016d0000000100016d0000000105"),
            (3, "000000030000000000070006737469636b7900016d00016d0000000100016d0000000105"),
            (1, "000000030000000000070006737469636b7900016d00016d0000000100016d0001690000000105"),
            (1, "0000000300000000000707737469636b79026d026d02026d026902050000"),
            (2, "0000000300000000000709636f6e73756d657207737469636b79026d026d02026d026902050000"),
            (1, "0000000300000000000709636f6e73756d657207737469636b79026d01026d02026d026902050000"),
        ],
    );
}

#[test]
fn sync_group_request() {
    let body = |_| SyncGroupRequest {
        group_id: text("g"),
        generation_id: 7,
        member_id: text("m"),
        group_instance_id: Some(text("i")),
        protocol_type: Some(text("consumer")),
        protocol_name: Some(text("sticky")),
        assignments: vec![SyncGroupAssignment { member_id: text("m"), assignment: vec![1, 2] }],
    };
    check(
        body,
        &[
            (3, "0001670000000700016d0000000100016d000000020102"),
            (1, "0001670000000700016d0001690000000100016d000000020102"),
            (1, "026700000007026d026902026d0301020000"),
            (1, "026700000007026d026909636f6e73756d657207737469636b7902026d0301020000"),
        ],
    );
}

#[test]
fn sync_group_response() {
    let body = |_| SyncGroupResponse {
        throttle_time_ms: 3,
        error_code: ErrorCode::REBALANCE_IN_PROGRESS,
        protocol_type: Some(text("consumer")),
        protocol_name: None,
        assignment: vec![9],
    };
    check(
        body,
        &[
            (1, "001b0000000109"),
            (3, "00000003001b0000000109"),
            (1, "00000003001b020900"),
            (1, "00000003001b09636f6e73756d657200020900"),
        ],
    );
}

#[test]
fn heartbeat_request() {
    let body =
        |_| HeartbeatRequest { group_id: text("g"), generation_id: 7, member_id: text("m"), group_instance_id: None };
    check(body, &[(3, "0001670000000700016d"), (1, "0001670000000700016dffff"), (1, "026700000007026d0000")]);
}

#[test]
fn heartbeat_response() {
    let body = |_| HeartbeatResponse { throttle_time_ms: 3, error_code: ErrorCode::FENCED_INSTANCE_ID };
    check(body, &[(1, "0052"), (3, "000000030052"), (1, "00000003005200")]);
}

#[test]
fn leave_group_request() {
    let body = |_| LeaveGroupRequest {
        group_id: text("g"),
        member_id: text("m"),
        members: vec![LeaveGroupMember {
            member_id: text("m"),
            group_instance_id: Some(text("i")),
            reason: Some(text("why")),
        }],
    };
    check(
        body,
        &[
            (3, "00016700016d"),
            (1, "0001670000000100016d000169"),
            (1, "026702026d02690000"),
            (1, "026702026d0269047768790000"),
        ],
    );
}

#[test]
fn leave_group_response() {
    let body = |_| LeaveGroupResponse {
        throttle_time_ms: 3,
        error_code: ErrorCode::NONE,
        members: vec![LeaveGroupMemberResponse {
            member_id: text("m"),
            group_instance_id: Some(text("i")),
            error_code: ErrorCode::UNKNOWN_MEMBER_ID,
        }],
    };
    check(
        body,
        &[
            (1, "0000"),
            (2, "000000030000"),
            (1, "0000000300000000000100016d0001690019"),
            (2, "00000003000002026d026900190000"),
        ],
    );
}

#[test]
fn offset_commit_request() {
    let body = |_| OffsetCommitRequest {
        group_id: text("g"),
        generation_id: 7,
        member_id: text("m"),
        group_instance_id: Some(text("i")),
        retention_time_ms: -1,
        topics: vec![OffsetCommitTopic {
            name: text("t"),
            topic_id: TOPIC_ID,
            partitions: vec![OffsetCommitPartition {
                partition_index: 3,
                committed_offset: 1 << 40,
                committed_leader_epoch: 5,
                committed_metadata: Some(text("note")),
            }],
        }],
    };
    check(
        body,
        &[
            (
                3,
                "0001670000000700016dffffffffffffffff000000010001740000000100000003000001000000000000046e6f\
             7465",
            ),
            (1, "0001670000000700016d000000010001740000000100000003000001000000000000046e6f7465"),
            (1, "0001670000000700016d00000001000174000000010000000300000100000000000000000500046e6f7465"),
            (
                1,
                "0001670000000700016d00016900000001000174000000010000000300000100000000000000000500046e6f74\
             65",
            ),
            (2, "026700000007026d02690202740200000003000001000000000000000005056e6f7465000000"),
            (
                1,
                "026700000007026d026902000102030405060708090a0b0c0d0e0f0200000003000001000000000000000005056e6f7465000000",
            ),
        ],
    );
}

#[test]
fn offset_commit_response() {
    let body = |_| OffsetCommitResponse {
        throttle_time_ms: 3,
        topics: vec![OffsetCommitTopicResponse {
            name: text("t"),
            topic_id: TOPIC_ID,
            partitions: vec![OffsetCommitPartitionResponse {
                partition_index: 3,
                error_code: ErrorCode::ILLEGAL_GENERATION,
            }],
        }],
    };
    check(
        body,
        &[
            (1, "0000000100017400000001000000030016"),
            (5, "000000030000000100017400000001000000030016"),
            (2, "0000000302027402000000030016000000"),
            (1, "0000000302000102030405060708090a0b0c0d0e0f02000000030016000000"),
        ],
    );
}

#[test]
fn offset_fetch_request() {
    let body = |_| OffsetFetchRequest {
        group_id: text("g"),
        topics: Some(asked_topics()),
        groups: vec![OffsetFetchGroup {
            group_id: text("g"),
            member_id: Some(text("m")),
            member_epoch: 6,
            topics: Some(asked_topics()),
        }],
        require_stable: true,
    };
    check(
        body,
        &[
            (5, "00016700000001000174000000020000000300000004"),
            (1, "02670202740300000003000000040000"),
            (1, "0267020274030000000300000004000100"),
            (1, "02026702027403000000030000000400000100"),
            (1, "020267026d0000000602027403000000030000000400000100"),
            (1, "020267026d0000000602000102030405060708090a0b0c0d0e0f03000000030000000400000100"),
        ],
    );
}

#[test]
fn offset_fetch_response() {
    let body = |_| OffsetFetchResponse {
        throttle_time_ms: 3,
        topics: fetched_topics(),
        error_code: ErrorCode::NOT_COORDINATOR,
        groups: vec![OffsetFetchGroupResponse {
            group_id: text("g"),
            topics: fetched_topics(),
            error_code: ErrorCode::NOT_COORDINATOR,
        }],
    };
    check(
        body,
        &[
            (1, "000000010001740000000100000003000001000000000000046e6f74650000"),
            (1, "000000010001740000000100000003000001000000000000046e6f746500000010"),
            (2, "00000003000000010001740000000100000003000001000000000000046e6f746500000010"),
            (1, "0000000300000001000174000000010000000300000100000000000000000500046e6f746500000010"),
            (2, "000000030202740200000003000001000000000000000005056e6f746500000000001000"),
            (2, "000000030202670202740200000003000001000000000000000005056e6f74650000000000100000"),
            (
                1,
                "0000000302026702000102030405060708090a0b0c0d0e0f0200000003000001000000000000000005056e6f74650000000000100000",
            ),
        ],
    );
}

#[test]
fn describe_groups_request() {
    let body = |_| DescribeGroupsRequest { groups: vec![text("g")], include_authorized_operations: true };
    check(body, &[(3, "00000001000167"), (2, "0000000100016701"), (1, "0202670100")]);
}

#[test]
fn describe_groups_response() {
    let body = |_| DescribeGroupsResponse {
        throttle_time_ms: 3,
        groups: vec![DescribedGroup {
            error_code: ErrorCode::NONE,
            group_id: text("g"),
            group_state: text("Stable"),
            protocol_type: text("consumer"),
            protocol_data: text("sticky"),
            members: vec![DescribedGroupMember {
                member_id: text("m"),
                group_instance_id: Some(text("i")),
                client_id: text("c"),
                client_host: text("/h"),
                member_metadata: vec![1],
                member_assignment: vec![2],
            }],
            authorized_operations: 1 << 3 | 1 << 8,
        }],
    };
    check(
        body,
        &[
            (
                1,
                "0000000100000001670006537461626c650008636f6e73756d65720006737469636b790000000100016d000163\
             00022f6800000001010000000102",
            ),
            (
                2,
                "000000030000000100000001670006537461626c650008636f6e73756d65720006737469636b79000000010001\
             6d00016300022f6800000001010000000102",
            ),
            (
                1,
                "000000030000000100000001670006537461626c650008636f6e73756d65720006737469636b79000000010001\
             6d00016300022f680000000101000000010200000108",
            ),
            (
                1,
                "000000030000000100000001670006537461626c650008636f6e73756d65720006737469636b79000000010001\
             6d00016900016300022f680000000101000000010200000108",
            ),
            (
                1,
                "00000003020000026707537461626c6509636f6e73756d657207737469636b7902026d02690263032f68020102\
             0200000001080000",
            ),
        ],
    );
}

#[test]
fn list_groups_request() {
    let body = |_| ListGroupsRequest { states_filter: vec![text("Stable")], types_filter: vec![text("classic")] };
    check(body, &[(3, ""), (1, "00"), (1, "0207537461626c6500"), (1, "0207537461626c650208636c617373696300")]);
}

#[test]
fn list_groups_response() {
    let body = |_| ListGroupsResponse {
        throttle_time_ms: 3,
        error_code: ErrorCode::NONE,
        groups: vec![ListedGroup {
            group_id: text("g"),
            protocol_type: text("consumer"),
            group_state: text("Stable"),
            group_type: text("classic"),
        }],
    };
    check(
        body,
        &[
            (1, "0000000000010001670008636f6e73756d6572"),
            (2, "000000030000000000010001670008636f6e73756d6572"),
            (1, "00000003000002026709636f6e73756d65720000"),
            (1, "00000003000002026709636f6e73756d657207537461626c650000"),
            (1, "00000003000002026709636f6e73756d657207537461626c6508636c61737369630000"),
        ],
    );
}

#[test]
fn delete_groups_request() {
    let body = |_| DeleteGroupsRequest { groups_names: vec![text("g")] };
    check(body, &[(2, "00000001000167"), (1, "02026700")]);
}

#[test]
fn delete_groups_response() {
    let body = |_| DeleteGroupsResponse {
        throttle_time_ms: 3,
        results: vec![DeleteGroupResult { group_id: text("g"), error_code: ErrorCode::NON_EMPTY_GROUP }],
    };
    check(body, &[(2, "00000003000000010001670044"), (1, "0000000302026700440000")]);
}

/// kafka-python does not have this message: the bytes are those of Java's kafka-clients 4.3.1.
#[test]
fn consumer_group_describe_request() {
    let body =
        |_| ConsumerGroupDescribeRequest { group_ids: vec![text("g"), text("h")], include_authorized_operations: true };
    check(body, &[(2, "03026702680100")]);
}

/// Also from kafka-clients 4.3.1.
#[test]
fn consumer_group_describe_response() {
    let topic_id = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
    let body = |_| ConsumerGroupDescribeResponse {
        throttle_time_ms: 3,
        groups: vec![DescribedConsumerGroup {
            group_id: text("g"),
            group_state: text("Stable"),
            group_epoch: 8,
            assignment_epoch: 7,
            assignor_name: text("uniform"),
            members: vec![DescribedConsumer {
                member_id: text("m"),
                instance_id: Some(text("i")),
                rack_id: Some(text("r")),
                member_epoch: 7,
                client_id: text("c"),
                client_host: text("/h"),
                subscribed_topic_names: vec![text("t")],
                subscribed_topic_regex: Some(text("t.*")),
                assignment: DescribedAssignment {
                    topic_partitions: vec![DescribedTopicPartitions {
                        topic_id,
                        topic_name: text("t"),
                        partitions: vec![0, 2],
                    }],
                },
                target_assignment: DescribedAssignment::default(),
                member_type: 1,
            }],
            authorized_operations: 9,
            ..Default::default()
        }],
    };
    check(
        body,
        &[
            (
                1,
                "0000000302000000026707537461626c65000000080000000708756e69666f726d02026d026902720000000702\
                 63032f6802027404742e2a020102030405060708090a0b0c0d0e0f1002740300000000000000020000010000000000090000",
            ),
            (
                1,
                "0000000302000000026707537461626c65000000080000000708756e69666f726d02026d026902720000000702\
                 63032f6802027404742e2a020102030405060708090a0b0c0d0e0f100274030000000000000002000001000100000000090000",
            ),
        ],
    );
}
