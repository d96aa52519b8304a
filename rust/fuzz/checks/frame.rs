//! A request or a response of the group protocol: a body that was read is the same after writing and reading it again.

use kafka_assignors_core::protocol::reader::Reader;
use kafka_assignors_core::protocol::{
    Body, cluster, consumer_group_heartbeat, format_of, group_admin, heartbeat, join_group, leave_group, offsets, read_body, records, sasl,
    sync_group, topics,
};

fn body<B: Body + PartialEq + std::fmt::Debug>(bytes: &[u8], version: i16) {
    let Ok(format) = format_of::<B>(version) else { return };
    let Ok(read) = read_body::<B>(&mut Reader::new(bytes), version) else { return };
    let mut written = Vec::new();
    read.write(&mut written, format, "body").expect("what was read can be written");
    assert_eq!(read_body::<B>(&mut Reader::new(&written), version).as_ref(), Ok(&read));
}

macro_rules! bodies {
    ($($kind:path),* $(,)?) => {
        const BODIES: &[fn(&[u8], i16)] = &[$(body::<$kind>),*];
    };
}

bodies![
    cluster::ApiVersionsRequest,
    cluster::ApiVersionsResponse,
    cluster::MetadataRequest,
    cluster::MetadataResponse,
    cluster::FindCoordinatorRequest,
    cluster::FindCoordinatorResponse,
    records::ProduceRequest,
    records::ProduceResponse,
    records::FetchRequest,
    records::FetchResponse,
    records::ListOffsetsRequest,
    records::ListOffsetsResponse,
    topics::CreateTopicsRequest,
    topics::CreateTopicsResponse,
    join_group::JoinGroupRequest,
    join_group::JoinGroupResponse,
    sync_group::SyncGroupRequest,
    sync_group::SyncGroupResponse,
    heartbeat::HeartbeatRequest,
    heartbeat::HeartbeatResponse,
    consumer_group_heartbeat::ConsumerGroupHeartbeatRequest,
    consumer_group_heartbeat::ConsumerGroupHeartbeatResponse,
    leave_group::LeaveGroupRequest,
    leave_group::LeaveGroupResponse,
    offsets::OffsetCommitRequest,
    offsets::OffsetCommitResponse,
    offsets::OffsetFetchRequest,
    offsets::OffsetFetchResponse,
    group_admin::DescribeGroupsRequest,
    group_admin::DescribeGroupsResponse,
    group_admin::ListGroupsRequest,
    group_admin::ListGroupsResponse,
    sasl::SaslHandshakeRequest,
    sasl::SaslHandshakeResponse,
    sasl::SaslAuthenticateRequest,
    sasl::SaslAuthenticateResponse,
    group_admin::ConsumerGroupDescribeRequest,
    group_admin::ConsumerGroupDescribeResponse,
    topics::DescribeConfigsRequest,
    topics::DescribeConfigsResponse,
];

/// Byte 0 selects the request or response, byte 1 is the version, then follows the body.
pub(crate) fn check(bytes: &[u8]) {
    let [kind, version, rest @ ..] = bytes else { return };
    BODIES[usize::from(*kind) % BODIES.len()](rest, i16::from(*version));
}
