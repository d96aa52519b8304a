//! The response that refuses a request: it contains the code in each error field. Those of JoinGroup, SyncGroup and
//! OffsetCommit are in `coordinator/answers.rs`, because other modules of the coordinator send them too.

use crate::protocol::cluster::*;
use crate::protocol::consumer_group_heartbeat::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};
use crate::protocol::group_admin::*;
use crate::protocol::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use crate::protocol::leave_group::{LeaveGroupRequest, LeaveGroupResponse};
use crate::protocol::offsets::*;
use crate::protocol::records::*;
use crate::protocol::topics::*;
use crate::protocol::{Body, ErrorCode};

/// Since this version an OffsetFetch contains several groups.
pub(super) const MANY_GROUPS_FROM: i16 = 8;

/// A request that can be refused.
pub(super) trait Refuse: Body {
    type Response: Body;

    /// The response in the version of the request.
    fn refusal(self, version: i16, code: ErrorCode) -> Self::Response;
}

macro_rules! refuse {
    ($($request:ident => $response:ident: |$given:pat_param, $version:pat_param, $code:ident| $refusal:expr;)*) => {$(
        impl Refuse for $request {
            type Response = $response;

            fn refusal(self, $version: i16, $code: ErrorCode) -> $response {
                let $given = self;
                $refusal
            }
        }
    )*};
}

/// One element of the response for each element of the request.
fn each<A, B>(asked: impl IntoIterator<Item = A>, refused: impl FnMut(A) -> B) -> Vec<B> {
    asked.into_iter().map(refused).collect()
}

refuse! {
    ProduceRequest => ProduceResponse: |request, _, code| ProduceResponse {
        responses: each(request.topic_data, |topic| TopicProduceResponse {
            name: topic.name,
            partition_responses: each(topic.partition_data, |partition| PartitionProduceResponse {
                index: partition.index,
                error_code: code,
                ..Default::default()
            }),
        }),
        ..Default::default()
    };
    FetchRequest => FetchResponse: |request, _, code| FetchResponse {
        responses: each(request.topics, |topic| FetchableTopicResponse {
            topic: topic.topic,
            partitions: each(topic.partitions, |partition| FetchedPartition {
                partition_index: partition.partition,
                error_code: code,
                records: Some(Vec::new()),
                ..Default::default()
            }),
        }),
        ..Default::default()
    };
    ListOffsetsRequest => ListOffsetsResponse: |request, _, code| ListOffsetsResponse {
        topics: each(request.topics, |topic| ListOffsetsTopicResponse {
            name: topic.name,
            partitions: each(topic.partitions, |partition| ListOffsetsPartitionResponse {
                partition_index: partition.partition_index,
                error_code: code,
                ..Default::default()
            }),
        }),
        ..Default::default()
    };
    OffsetForLeaderEpochRequest => OffsetForLeaderEpochResponse: |request, _, code| OffsetForLeaderEpochResponse {
        topics: each(request.topics, |topic| OffsetForLeaderTopicResult {
            topic: topic.topic,
            partitions: each(topic.partitions, |partition| EpochEndOffset {
                partition: partition.partition,
                error_code: code,
                ..Default::default()
            }),
        }),
        ..Default::default()
    };
    DeleteRecordsRequest => DeleteRecordsResponse: |request, _, code| DeleteRecordsResponse {
        topics: each(request.topics, |topic| DeleteRecordsTopicResult {
            name: topic.name,
            partitions: each(topic.partitions, |partition| DeleteRecordsPartitionResult {
                partition_index: partition.partition_index,
                error_code: code,
                ..Default::default()
            }),
        }),
        ..Default::default()
    };
    MetadataRequest => MetadataResponse: |request, _, code| MetadataResponse {
        topics: each(request.topics.unwrap_or_default(), |topic| MetadataTopic {
            error_code: code,
            name: topic.name,
            ..Default::default()
        }),
        ..Default::default()
    };
    FindCoordinatorRequest => FindCoordinatorResponse: |request, _, code| FindCoordinatorResponse {
        error_code: code,
        node_id: -1,
        port: -1,
        coordinators: each(request.coordinator_keys, |key| FoundCoordinator {
            key,
            node_id: -1,
            port: -1,
            error_code: code,
            ..Default::default()
        }),
        ..Default::default()
    };
    ApiVersionsRequest => ApiVersionsResponse: |_, _, code| ApiVersionsResponse { error_code: code, ..Default::default() };
    InitProducerIdRequest => InitProducerIdResponse: |_, _, code| {
        InitProducerIdResponse { error_code: code, ..Default::default() }
    };
    CreateTopicsRequest => CreateTopicsResponse: |request, _, code| CreateTopicsResponse {
        topics: each(request.topics, |topic| CreatableTopicResult {
            name: topic.name,
            error_code: code,
            ..Default::default()
        }),
        ..Default::default()
    };
    DeleteTopicsRequest => DeleteTopicsResponse: |request, _, code| DeleteTopicsResponse {
        responses: each(request.topic_names, |name| DeletableTopicResult { name, error_code: code }),
        ..Default::default()
    };
    CreatePartitionsRequest => CreatePartitionsResponse: |request, _, code| CreatePartitionsResponse {
        results: each(request.topics, |topic| CreatePartitionsTopicResult {
            name: topic.name,
            error_code: code,
            error_message: None,
        }),
        ..Default::default()
    };
    DescribeConfigsRequest => DescribeConfigsResponse: |request, _, code| DescribeConfigsResponse {
        results: each(request.resources, |resource| DescribeConfigsResult {
            error_code: code,
            resource_type: resource.resource_type,
            resource_name: resource.resource_name,
            ..Default::default()
        }),
        ..Default::default()
    };
    IncrementalAlterConfigsRequest => IncrementalAlterConfigsResponse: |request, _, code| IncrementalAlterConfigsResponse {
        responses: each(request.resources, |resource| AlterConfigsResourceResponse {
            error_code: code,
            resource_type: resource.resource_type,
            resource_name: resource.resource_name,
            ..Default::default()
        }),
        ..Default::default()
    };
    OffsetFetchRequest => OffsetFetchResponse: |request, version, code| fetch_refusal(request, version, code);
    HeartbeatRequest => HeartbeatResponse: |_, _, code| HeartbeatResponse { error_code: code, ..Default::default() };
    LeaveGroupRequest => LeaveGroupResponse: |_, _, code| LeaveGroupResponse { error_code: code, ..Default::default() };
    DescribeGroupsRequest => DescribeGroupsResponse: |request, _, code| DescribeGroupsResponse {
        groups: each(request.groups, |group_id| DescribedGroup { error_code: code, group_id, ..Default::default() }),
        ..Default::default()
    };
    ListGroupsRequest => ListGroupsResponse: |_, _, code| ListGroupsResponse { error_code: code, ..Default::default() };
    DeleteGroupsRequest => DeleteGroupsResponse: |request, _, code| DeleteGroupsResponse {
        results: each(request.groups_names, |group_id| DeleteGroupResult { group_id, error_code: code }),
        ..Default::default()
    };
    ConsumerGroupHeartbeatRequest => ConsumerGroupHeartbeatResponse: |_, _, code| {
        ConsumerGroupHeartbeatResponse { error_code: code, ..Default::default() }
    };
    ConsumerGroupDescribeRequest => ConsumerGroupDescribeResponse: |request, _, code| ConsumerGroupDescribeResponse {
        groups: each(request.group_ids, |group_id| DescribedConsumerGroup {
            error_code: code,
            group_id,
            ..Default::default()
        }),
        ..Default::default()
    };
}

/// The response for a partition without a committed offset.
pub(super) fn no_offset(partition_index: i32, error_code: ErrorCode) -> OffsetFetchPartitionResponse {
    OffsetFetchPartitionResponse {
        partition_index,
        committed_offset: -1,
        committed_leader_epoch: -1,
        metadata: Some(String::new()),
        error_code,
    }
}

/// Some codes, such as UNSTABLE_OFFSET_COMMIT, are errors of partitions; the others are errors of the group.
fn fetch_refusal(request: OffsetFetchRequest, version: i16, code: ErrorCode) -> OffsetFetchResponse {
    let of_partitions = [
        ErrorCode::UNSTABLE_OFFSET_COMMIT,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode::TOPIC_AUTHORIZATION_FAILED,
    ]
    .contains(&code);
    // Version 1 has only the error fields of the partitions.
    let for_group = if of_partitions { ErrorCode::NONE } else { code };
    let for_partitions = if of_partitions || version < 2 { code } else { ErrorCode::NONE };
    let refused = |topics: Option<Vec<OffsetFetchTopic>>| {
        if for_partitions.is_none() {
            return Vec::new();
        }
        let topic = |topic: OffsetFetchTopic| OffsetFetchTopicResponse {
            name: topic.name,
            topic_id: topic.topic_id,
            partitions: each(topic.partition_indexes, |index| no_offset(index, for_partitions)),
        };
        topics.unwrap_or_default().into_iter().map(topic).collect()
    };
    if version < MANY_GROUPS_FROM {
        let topics = refused(request.topics);
        return OffsetFetchResponse { topics, error_code: for_group, ..Default::default() };
    }
    let group = |group: OffsetFetchGroup| OffsetFetchGroupResponse {
        group_id: group.group_id,
        topics: refused(group.topics),
        error_code: for_group,
    };
    OffsetFetchResponse { groups: request.groups.into_iter().map(group).collect(), ..Default::default() }
}
