//! Refusing a request with a code, wherever its response carries one: scripted faults.

use super::Hangup;
use crate::protocol::cluster::*;
use crate::protocol::records::*;
use crate::protocol::topics::*;
use crate::protocol::{ApiKey, ErrorCode, FrameError, RequestHeader, read_request, write_response};
use crate::wire::reader::Reader;

/// The response that refuses a request; `None` for a Produce that wants no response.
pub(super) fn refuse(
    header: &RequestHeader,
    reader: &mut Reader<'_>,
    code: ErrorCode,
) -> Result<Option<Vec<u8>>, Hangup> {
    let version = header.version;
    let frame = match header.api {
        ApiKey::Produce => {
            let request: ProduceRequest = read_request(reader, version)?;
            if request.acks == 0 {
                return Ok(None);
            }
            write_response(header, &produce(&request, code))
        }
        ApiKey::Fetch => write_response(header, &fetch(&read_request(reader, version)?, code, false)),
        ApiKey::ListOffsets => write_response(header, &list_offsets(read_request(reader, version)?, code)),
        ApiKey::OffsetForLeaderEpoch => write_response(header, &epoch_ends(read_request(reader, version)?, code)),
        ApiKey::Metadata => {
            let request: MetadataRequest = read_request(reader, version)?;
            let refused = |topic: MetadataRequestTopic| MetadataTopic {
                error_code: code,
                name: topic.name,
                ..Default::default()
            };
            let topics = request.topics.into_iter().flatten().map(refused).collect();
            write_response(header, &MetadataResponse { topics, ..Default::default() })
        }
        ApiKey::FindCoordinator => {
            let request: FindCoordinatorRequest = read_request(reader, version)?;
            let refused = |key| FoundCoordinator { key, node_id: -1, port: -1, error_code: code, ..Default::default() };
            let coordinators = request.coordinator_keys.into_iter().map(refused).collect();
            let response =
                FindCoordinatorResponse { error_code: code, node_id: -1, port: -1, coordinators, ..Default::default() };
            write_response(header, &response)
        }
        ApiKey::ApiVersions if !header.api.speaks(version) => {
            // In version 0, as without a fault: the client does not know the broker's versions yet.
            let header = RequestHeader { version: 0, ..header.clone() };
            write_response(&header, &ApiVersionsResponse { error_code: code, ..Default::default() })
        }
        ApiKey::ApiVersions => {
            read_request::<ApiVersionsRequest>(reader, version)?;
            write_response(header, &ApiVersionsResponse { error_code: code, ..Default::default() })
        }
        ApiKey::InitProducerId => {
            read_request::<InitProducerIdRequest>(reader, version)?;
            write_response(header, &InitProducerIdResponse { error_code: code, ..Default::default() })
        }
        ApiKey::CreateTopics => {
            let request: CreateTopicsRequest = read_request(reader, version)?;
            let refused = |topic: CreatableTopic| CreatableTopicResult {
                name: topic.name,
                error_code: code,
                ..Default::default()
            };
            let topics = request.topics.into_iter().map(refused).collect();
            write_response(header, &CreateTopicsResponse { topics, ..Default::default() })
        }
        ApiKey::DeleteTopics => {
            let request: DeleteTopicsRequest = read_request(reader, version)?;
            let refused = |name| DeletableTopicResult { name, error_code: code };
            let responses = request.topic_names.into_iter().map(refused).collect();
            write_response(header, &DeleteTopicsResponse { responses, ..Default::default() })
        }
        ApiKey::DeleteRecords => write_response(header, &delete_records(read_request(reader, version)?, code)),
        ApiKey::CreatePartitions => {
            let request: CreatePartitionsRequest = read_request(reader, version)?;
            let refused = |topic: CreatePartitionsTopic| CreatePartitionsTopicResult {
                name: topic.name,
                error_code: code,
                error_message: None,
            };
            let results = request.topics.into_iter().map(refused).collect();
            write_response(header, &CreatePartitionsResponse { results, ..Default::default() })
        }
        ApiKey::DescribeConfigs => {
            let request: DescribeConfigsRequest = read_request(reader, version)?;
            let refused = |resource: DescribeConfigsResource| DescribeConfigsResult {
                error_code: code,
                resource_type: resource.resource_type,
                resource_name: resource.resource_name,
                ..Default::default()
            };
            let results = request.resources.into_iter().map(refused).collect();
            write_response(header, &DescribeConfigsResponse { results, ..Default::default() })
        }
        ApiKey::IncrementalAlterConfigs => {
            let request: IncrementalAlterConfigsRequest = read_request(reader, version)?;
            let refused = |resource: AlterConfigsResource| AlterConfigsResourceResponse {
                error_code: code,
                resource_type: resource.resource_type,
                resource_name: resource.resource_name,
                ..Default::default()
            };
            let responses = request.resources.into_iter().map(refused).collect();
            write_response(header, &IncrementalAlterConfigsResponse { responses, ..Default::default() })
        }
        other => return Err(FrameError::UnknownApi(other.code()).into()),
    };
    Ok(Some(frame?))
}

fn produce(request: &ProduceRequest, code: ErrorCode) -> ProduceResponse {
    let topics = request.topic_data.iter().map(|topic| {
        let refused = |partition: &PartitionProduceData| PartitionProduceResponse {
            index: partition.index,
            error_code: code,
            ..Default::default()
        };
        let partition_responses = topic.partition_data.iter().map(refused).collect();
        TopicProduceResponse { name: topic.name.clone(), partition_responses }
    });
    ProduceResponse { responses: topics.collect(), ..Default::default() }
}

/// Refuses a fetch as a whole, which versions before 7 cannot say, or each partition of it.
pub(super) fn fetch(request: &FetchRequest, code: ErrorCode, as_a_whole: bool) -> FetchResponse {
    if as_a_whole {
        return FetchResponse { error_code: code, ..Default::default() };
    }
    let topics = request.topics.iter().map(|topic| {
        let refused = |partition: &FetchPartition| FetchedPartition {
            partition_index: partition.partition,
            error_code: code,
            records: Some(Vec::new()),
            ..Default::default()
        };
        let partitions = topic.partitions.iter().map(refused).collect();
        FetchableTopicResponse { topic: topic.topic.clone(), partitions }
    });
    FetchResponse { responses: topics.collect(), ..Default::default() }
}

fn list_offsets(request: ListOffsetsRequest, code: ErrorCode) -> ListOffsetsResponse {
    let topics = request.topics.into_iter().map(|topic| {
        let refused = |partition: &ListOffsetsPartition| ListOffsetsPartitionResponse {
            partition_index: partition.partition_index,
            error_code: code,
            ..Default::default()
        };
        let partitions = topic.partitions.iter().map(refused).collect();
        ListOffsetsTopicResponse { name: topic.name, partitions }
    });
    ListOffsetsResponse { topics: topics.collect(), ..Default::default() }
}

fn delete_records(request: DeleteRecordsRequest, code: ErrorCode) -> DeleteRecordsResponse {
    let topics = request.topics.into_iter().map(|topic| {
        let refused = |partition: DeleteRecordsPartition| DeleteRecordsPartitionResult {
            partition_index: partition.partition_index,
            error_code: code,
            ..Default::default()
        };
        let partitions = topic.partitions.into_iter().map(refused).collect();
        DeleteRecordsTopicResult { name: topic.name, partitions }
    });
    DeleteRecordsResponse { topics: topics.collect(), ..Default::default() }
}

fn epoch_ends(request: OffsetForLeaderEpochRequest, code: ErrorCode) -> OffsetForLeaderEpochResponse {
    let topics = request.topics.into_iter().map(|topic| {
        let refused = |partition: &OffsetForLeaderPartition| EpochEndOffset {
            partition: partition.partition,
            error_code: code,
            ..Default::default()
        };
        let partitions = topic.partitions.iter().map(refused).collect();
        OffsetForLeaderTopicResult { topic: topic.topic, partitions }
    });
    OffsetForLeaderEpochResponse { topics: topics.collect(), ..Default::default() }
}
