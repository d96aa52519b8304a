//! Injected errors: the frame that refuses a request.

use super::Hangup;
use crate::embedded::refusal::Refuse;
use crate::protocol::cluster::*;
use crate::protocol::reader::Reader;
use crate::protocol::records::*;
use crate::protocol::topics::*;
use crate::protocol::{ApiKey, ErrorCode, FrameError, RequestHeader, read_request, write_response};

fn refused<R: Refuse>(header: &RequestHeader, reader: &mut Reader<'_>, code: ErrorCode) -> Result<Vec<u8>, Hangup> {
    let request: R = read_request(reader, header.version)?;
    Ok(write_response(header, &request.refusal(header.version, code))?)
}

/// The response that refuses a request; `None` for a Produce that wants no response.
pub(super) fn refuse(
    header: &RequestHeader,
    reader: &mut Reader<'_>,
    code: ErrorCode,
) -> Result<Option<Vec<u8>>, Hangup> {
    let refused = match header.api {
        ApiKey::Produce => {
            let request: ProduceRequest = read_request(reader, header.version)?;
            if request.acks == 0 {
                return Ok(None);
            }
            return Ok(Some(write_response(header, &request.refusal(header.version, code))?));
        }
        ApiKey::ApiVersions if !header.api.speaks(header.version) => {
            // Always version 0, because the client does not know the broker's versions yet.
            let header = RequestHeader { version: 0, ..header.clone() };
            let response = ApiVersionsRequest::default().refusal(0, code);
            return Ok(Some(write_response(&header, &response)?));
        }
        ApiKey::Fetch => refused::<FetchRequest>,
        ApiKey::ListOffsets => refused::<ListOffsetsRequest>,
        ApiKey::OffsetForLeaderEpoch => refused::<OffsetForLeaderEpochRequest>,
        ApiKey::Metadata => refused::<MetadataRequest>,
        ApiKey::FindCoordinator => refused::<FindCoordinatorRequest>,
        ApiKey::ApiVersions => refused::<ApiVersionsRequest>,
        ApiKey::InitProducerId => refused::<InitProducerIdRequest>,
        ApiKey::CreateTopics => refused::<CreateTopicsRequest>,
        ApiKey::DeleteTopics => refused::<DeleteTopicsRequest>,
        ApiKey::DeleteRecords => refused::<DeleteRecordsRequest>,
        ApiKey::CreatePartitions => refused::<CreatePartitionsRequest>,
        ApiKey::DescribeConfigs => refused::<DescribeConfigsRequest>,
        ApiKey::IncrementalAlterConfigs => refused::<IncrementalAlterConfigsRequest>,
        other => return Err(FrameError::UnknownApi(other.code()).into()),
    };
    refused(header, reader, code).map(Some)
}
