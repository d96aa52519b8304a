//! The requests that a coordinator serves.

use crate::protocol::consumer_group_heartbeat::ConsumerGroupHeartbeatRequest;
use crate::protocol::group_admin::{
    ConsumerGroupDescribeRequest, DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest,
};
use crate::protocol::heartbeat::HeartbeatRequest;
use crate::protocol::join_group::JoinGroupRequest;
use crate::protocol::leave_group::LeaveGroupRequest;
use crate::protocol::offsets::{OffsetCommitRequest, OffsetFetchRequest};
use crate::protocol::reader::Reader;
use crate::protocol::sync_group::SyncGroupRequest;
use crate::protocol::{ApiKey, FrameError, RequestHeader, read_request};

macro_rules! requests {
    ($($api:ident($body:ty),)*) => {
        /// A request for the coordinator.
        #[derive(Debug)]
        pub(super) enum Request { $($api($body),)* }

        /// The APIs that the coordinator serves.
        pub(super) const SERVED: &[ApiKey] = &[$(ApiKey::$api,)*];

        impl Request {
            /// Reads the header and the body.
            pub(super) fn read(frame: &[u8]) -> Result<(RequestHeader, Self), FrameError> {
                let mut reader = Reader::of_frame(frame);
                let header = RequestHeader::read(&mut reader)?;
                let request = match header.api {
                    $(ApiKey::$api => Request::$api(read_request(&mut reader, header.version)?),)*
                    other => return Err(FrameError::UnknownApi(other.code())),
                };
                Ok((header, request))
            }
        }
    };
}

requests! {
    OffsetCommit(OffsetCommitRequest),
    OffsetFetch(OffsetFetchRequest),
    JoinGroup(JoinGroupRequest),
    Heartbeat(HeartbeatRequest),
    LeaveGroup(LeaveGroupRequest),
    SyncGroup(SyncGroupRequest),
    DescribeGroups(DescribeGroupsRequest),
    ListGroups(ListGroupsRequest),
    DeleteGroups(DeleteGroupsRequest),
    ConsumerGroupHeartbeat(ConsumerGroupHeartbeatRequest),
    ConsumerGroupDescribe(ConsumerGroupDescribeRequest),
}
