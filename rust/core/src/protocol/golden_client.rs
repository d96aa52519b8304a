//! The requests of a client before it joins, as in `golden.rs`.

use super::cluster::*;
use super::golden::{check, text};
use super::records::*;
use super::sasl::*;
use super::*;

const TOPIC_ID: [u8; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

#[test]
fn api_versions_request() {
    check(
        |_| ApiVersionsRequest { client_software_name: text("lib"), client_software_version: text("1.2") },
        &[(3, ""), (1, "046c696204312e3200")],
    );
}

#[test]
fn api_versions_response() {
    check(
        |_| ApiVersionsResponse {
            error_code: ErrorCode::UNSUPPORTED_VERSION,
            api_keys: vec![ApiVersion { api_key: 18, min_version: 0, max_version: 3 }],
            throttle_time_ms: 7,
            finalized_features: Vec::new(),
        },
        &[
            (1, "002300000001001200000003"),
            (2, "00230000000100120000000300000007"),
            (1, "002302001200000003000000000700"),
        ],
    );
}

/// A broker's tagged fields: the supported features (0), the epoch of the finalized features (1), and the finalized features (2).
#[test]
fn the_finalized_features_are_among_the_tagged_fields() {
    let list = [&[2, 14][..], b"group.version", &[0, 1, 0, 1, 0]].concat();
    let length = [list.len() as u8];
    let head = [0, 0, 1, 0, 0, 0, 0, 3];
    let bytes = [&head[..], &[0], &length, &list, &[1, 8, 0, 0, 0, 0, 0, 0, 0, 7], &[2], &length, &list].concat();
    let format = field::Format { version: 3, flexible: true };
    let read = <ApiVersionsResponse as field::Field>::read(&mut reader::Reader::new(&bytes), format, "body").unwrap();
    let feature = FinalizedFeature { name: text("group.version"), max_version_level: 1, min_version_level: 1 };
    assert_eq!(read.finalized_features, [feature]);
    let mut written = Vec::new();
    field::Field::write(&read, &mut written, format, "body").unwrap();
    assert_eq!(written, [&[0, 0, 1, 0, 0, 0, 0, 1, 2][..], &length, &list].concat());
}

#[test]
fn metadata_request() {
    check(
        |_| MetadataRequest {
            topics: Some(vec![MetadataRequestTopic { topic_id: TOPIC_ID, name: Some(text("t")) }]),
            allow_auto_topic_creation: false,
            include_cluster_authorized_operations: true,
            include_topic_authorized_operations: true,
        },
        &[
            (4, "00000001000174"),
            (4, "0000000100017400"),
            (1, "00000001000174000101"),
            (1, "0202740000010100"),
            (1, "020102030405060708090a0b0c0d0e0f1002740000010100"),
            (2, "020102030405060708090a0b0c0d0e0f10027400000100"),
        ],
    );
}

#[test]
fn metadata_response() {
    check(
        |_| MetadataResponse {
            throttle_time_ms: 3,
            brokers: vec![MetadataBroker { node_id: 1, host: text("h"), port: 9092, rack: Some(text("a")) }],
            cluster_id: Some(text("c")),
            controller_id: 1,
            topics: vec![MetadataTopic {
                error_code: ErrorCode::LEADER_NOT_AVAILABLE,
                name: Some(text("t")),
                topic_id: TOPIC_ID,
                is_internal: true,
                partitions: vec![MetadataPartition {
                    error_code: ErrorCode::NONE,
                    partition_index: 2,
                    leader_id: 1,
                    leader_epoch: 6,
                    replica_nodes: vec![1, 2],
                    isr_nodes: vec![1],
                    offline_replicas: vec![2],
                }],
                topic_authorized_operations: 8,
            }],
            cluster_authorized_operations: 9,
        },
        &[
            (
                1,
                "000000010000000100016800002384000000010005000174000000010000000000020000000100000002000000\
                 01000000020000000100000001",
            ),
            (
                1,
                "000000010000000100016800002384000161000000010000000100050001740100000001000000000002000000\
                 010000000200000001000000020000000100000001",
            ),
            (
                1,
                "000000010000000100016800002384000161000163000000010000000100050001740100000001000000000002\
                 000000010000000200000001000000020000000100000001",
            ),
            (
                2,
                "000000030000000100000001000168000023840001610001630000000100000001000500017401000000010000\
                 00000002000000010000000200000001000000020000000100000001",
            ),
            (
                2,
                "000000030000000100000001000168000023840001610001630000000100000001000500017401000000010000\
                 000000020000000100000002000000010000000200000001000000010000000100000002",
            ),
            (
                1,
                "000000030000000100000001000168000023840001610001630000000100000001000500017401000000010000\
                 00000002000000010000000600000002000000010000000200000001000000010000000100000002",
            ),
            (
                1,
                "000000030000000100000001000168000023840001610001630000000100000001000500017401000000010000\
                 000000020000000100000006000000020000000100000002000000010000000100000001000000020000000800\
                 000009",
            ),
            (
                1,
                "000000030200000001026800002384026100026300000001020005027401020000000000020000000100000006\
                 030000000100000002020000000102000000020000000008000000000900",
            ),
            (
                1,
                "00000003020000000102680000238402610002630000000102000502740102030405060708090a0b0c0d0e0f10\
                 010200000000000200000001000000060300000001000000020200000001020000000200000000080000000009\
                 00",
            ),
            (
                2,
                "00000003020000000102680000238402610002630000000102000502740102030405060708090a0b0c0d0e0f10\
                 010200000000000200000001000000060300000001000000020200000001020000000200000000080000",
            ),
        ],
    );
}

#[test]
fn find_coordinator_request() {
    check(
        |_| FindCoordinatorRequest { key: text("g"), key_type: 1, coordinator_keys: vec![text("g")] },
        &[(1, "000167"), (2, "00016701"), (1, "02670100"), (1, "0102026700")],
    );
}

#[test]
fn find_coordinator_response() {
    check(
        |_| FindCoordinatorResponse {
            throttle_time_ms: 3,
            error_code: ErrorCode::COORDINATOR_NOT_AVAILABLE,
            error_message: Some(text("no")),
            node_id: 1,
            host: text("h"),
            port: 9092,
            coordinators: vec![FoundCoordinator {
                key: text("g"),
                node_id: 1,
                host: text("h"),
                port: 9092,
                error_code: ErrorCode::COORDINATOR_NOT_AVAILABLE,
                error_message: Some(text("no")),
            }],
        },
        &[
            (1, "000f0000000100016800002384"),
            (2, "00000003000f00026e6f0000000100016800002384"),
            (1, "00000003000f036e6f0000000102680000238400"),
            (1, "0000000302026700000001026800002384000f036e6f0000"),
        ],
    );
}

#[test]
fn sasl_handshake_request() {
    check(|_| SaslHandshakeRequest { mechanism: text("PLAIN") }, &[(2, "0005504c41494e")]);
}

#[test]
fn sasl_handshake_response() {
    check(
        |_| SaslHandshakeResponse {
            error_code: ErrorCode::UNSUPPORTED_SASL_MECHANISM,
            mechanisms: vec![text("PLAIN"), text("SCRAM-SHA-256")],
        },
        &[(2, "0021000000020005504c41494e000d534352414d2d5348412d323536")],
    );
}

#[test]
fn sasl_authenticate_request() {
    check(|_| SaslAuthenticateRequest { auth_bytes: vec![0, 97] }, &[(2, "000000020061"), (1, "03006100")]);
}

#[test]
fn sasl_authenticate_response() {
    check(
        |_| SaslAuthenticateResponse {
            error_code: ErrorCode::SASL_AUTHENTICATION_FAILED,
            error_message: Some(text("no")),
            auth_bytes: vec![1],
            session_lifetime_ms: 3_600_000,
        },
        &[
            (1, "003a00026e6f0000000101"),
            (1, "003a00026e6f0000000101000000000036ee80"),
            (1, "003a036e6f0201000000000036ee8000"),
        ],
    );
}

#[test]
fn list_offsets_request() {
    check(
        |_| ListOffsetsRequest {
            replica_id: -1,
            isolation_level: 1,
            topics: vec![ListOffsetsTopic {
                name: text("t"),
                partitions: vec![ListOffsetsPartition { partition_index: 3, current_leader_epoch: 5, timestamp: -2 }],
            }],
        },
        &[
            (1, "ffffffff000000010001740000000100000003fffffffffffffffe"),
            (2, "ffffffff01000000010001740000000100000003fffffffffffffffe"),
            (2, "ffffffff0100000001000174000000010000000300000005fffffffffffffffe"),
            (2, "ffffffff01020274020000000300000005fffffffffffffffe000000"),
        ],
    );
}

#[test]
fn list_offsets_response() {
    check(
        |_| ListOffsetsResponse {
            throttle_time_ms: 3,
            topics: vec![ListOffsetsTopicResponse {
                name: text("t"),
                partitions: vec![ListOffsetsPartitionResponse {
                    partition_index: 3,
                    error_code: ErrorCode::NOT_LEADER_OR_FOLLOWER,
                    timestamp: -1,
                    offset: 1 << 40,
                    leader_epoch: 5,
                }],
            }],
        },
        &[
            (1, "0000000100017400000001000000030006ffffffffffffffff0000010000000000"),
            (2, "000000030000000100017400000001000000030006ffffffffffffffff0000010000000000"),
            (2, "000000030000000100017400000001000000030006ffffffffffffffff000001000000000000000005"),
            (2, "0000000302027402000000030006ffffffffffffffff000001000000000000000005000000"),
        ],
    );
}
