//! Produce, Fetch, ListOffsets, DeleteRecords, OffsetForLeaderEpoch, InitProducerId on the logs of the catalogue.

use super::batch::{Batch, Refused};
use super::catalogue::Catalogue;
use super::partition::{Found, LEADER_EPOCH, Partition};
use crate::protocol::ErrorCode;
use crate::protocol::records::*;
use crate::protocol::topics::*;
use std::collections::BTreeSet;

/// The largest number of record bytes in one response, even if the client allows more: a response is built in memory.
const MAX_FETCH: usize = 64 << 20;

/// A partition with new records: topic, partition, bytes.
pub(super) type Appended<'a> = (&'a str, i32, u64);

fn refused(code: ErrorCode, message: &'static str) -> Refused {
    Refused { code, message }
}

const UNKNOWN: Refused =
    Refused { code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, message: "there is no such topic or partition" };

/// Appends the batches of a request. `appended` is called for each partition with new records.
pub(super) fn produce(
    catalogue: &mut Catalogue,
    request: ProduceRequest,
    mut appended: impl FnMut(Appended<'_>),
) -> ProduceResponse {
    let refusal = if !matches!(request.acks, -1..=1) {
        Some(refused(ErrorCode::INVALID_REQUIRED_ACKS, "acks must be 0, 1 or -1"))
    } else if request.transactional_id.is_some() {
        Some(refused(ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "transactions are not served here"))
    } else {
        None
    };
    let mut responses = Vec::with_capacity(request.topic_data.len());
    for topic in request.topic_data {
        let mut partition_responses = Vec::with_capacity(topic.partition_data.len());
        for PartitionProduceData { index, records } in topic.partition_data {
            let size = records.as_ref().map_or(0, Vec::len) as u64;
            let result = match &refusal {
                Some(refusal) => Err(refusal.clone()),
                None => append(catalogue, &topic.name, index, records),
            };
            partition_responses.push(match result {
                Ok((base_offset, is_new, log_start_offset)) => {
                    if is_new {
                        appended((&topic.name, index, size));
                    }
                    PartitionProduceResponse { index, base_offset, log_start_offset, ..Default::default() }
                }
                Err(Refused { code, message }) => PartitionProduceResponse {
                    index,
                    error_code: code,
                    error_message: Some(message.to_owned()),
                    ..Default::default()
                },
            });
        }
        responses.push(TopicProduceResponse { name: topic.name, partition_responses });
    }
    ProduceResponse { responses, ..Default::default() }
}

/// Appends one batch. Returns its base offset, whether it is new, and the first offset of the log.
fn append(
    catalogue: &mut Catalogue,
    topic: &str,
    partition: i32,
    records: Option<Vec<u8>>,
) -> Result<(i64, bool, i64), Refused> {
    let (topic, partition) = catalogue.partition_mut(topic, partition).ok_or(UNKNOWN)?;
    let records = records.ok_or(refused(ErrorCode::INVALID_RECORD, "a partition without a record batch"))?;
    if records.len() > topic.max_message_bytes() {
        let message = "the record batch is larger than the topic's max.message.bytes";
        return Err(refused(ErrorCode::MESSAGE_TOO_LARGE, message));
    }
    let retain = topic.retention_bytes();
    let log = topic.log_mut(partition);
    let (base, is_new) = log.append(Batch::parse(records)?, retain)?;
    Ok((base, is_new, log.start()))
}

/// A summary of the response that a fetch would get now.
pub(super) struct Readiness {
    /// Bytes of records. Counting stops at the request's `min_bytes`.
    pub(super) bytes: u64,
    /// Whether a partition has an error: then the fetch is answered at once.
    pub(super) failed: bool,
}

/// The summary of a fetch's response, computed without copying records.
pub(super) fn readiness(catalogue: &Catalogue, request: &FetchRequest) -> Readiness {
    let enough = u64::try_from(request.min_bytes).unwrap_or(0);
    let mut bytes = 0;
    for topic in &request.topics {
        for partition in &topic.partitions {
            match locate(catalogue, &topic.topic, partition) {
                Ok(Some(log)) => match log.available(partition.fetch_offset, enough) {
                    Found::Bytes(found) => bytes += found,
                    Found::OutOfRange => return Readiness { bytes, failed: true },
                },
                Ok(None) => {}
                Err(_) => return Readiness { bytes, failed: true },
            }
            if bytes >= enough {
                return Readiness { bytes, failed: false };
            }
        }
    }
    Readiness { bytes, failed: false }
}

/// The log to read; `None` before the first record.
fn locate<'a>(
    catalogue: &'a Catalogue,
    topic: &str,
    asked: &FetchPartition,
) -> Result<Option<&'a Partition>, ErrorCode> {
    let (topic, partition) = catalogue.partition(topic, asked.partition).ok_or(UNKNOWN.code)?;
    check_epoch(asked.current_leader_epoch)?;
    match topic.log(partition) {
        None if asked.fetch_offset != 0 => Err(ErrorCode::OFFSET_OUT_OF_RANGE),
        log => Ok(log),
    }
}

fn check_epoch(epoch: i32) -> Result<(), ErrorCode> {
    if epoch > LEADER_EPOCH { Err(ErrorCode::UNKNOWN_LEADER_EPOCH) } else { Ok(()) }
}

/// Reads the batches of a fetch.
pub(super) fn fetch(catalogue: &Catalogue, request: &FetchRequest) -> FetchResponse {
    let mut room = usize::try_from(request.max_bytes).unwrap_or(0).min(MAX_FETCH);
    let mut found_any = false;
    let mut responses = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let read = |asked: &FetchPartition| {
            let empty = Some(Vec::new());
            let partition_index = asked.partition;
            let log = match locate(catalogue, &topic.topic, asked) {
                Ok(log) => log,
                Err(error_code) => {
                    return FetchedPartition { partition_index, error_code, records: empty, ..Default::default() };
                }
            };
            let Some(log) = log else {
                return FetchedPartition {
                    partition_index,
                    high_watermark: 0,
                    last_stable_offset: 0,
                    log_start_offset: 0,
                    records: empty,
                    ..Default::default()
                };
            };
            if log.available(asked.fetch_offset, 0) == Found::OutOfRange {
                let error_code = ErrorCode::OFFSET_OUT_OF_RANGE;
                return FetchedPartition { partition_index, error_code, records: empty, ..Default::default() };
            }
            let most = usize::try_from(asked.partition_max_bytes).unwrap_or(0).min(room);
            let records = log.read(asked.fetch_offset, most, !found_any);
            found_any |= !records.is_empty();
            room = room.saturating_sub(records.len());
            FetchedPartition {
                partition_index,
                high_watermark: log.end(),
                last_stable_offset: log.end(),
                log_start_offset: log.start(),
                records: Some(records),
                ..Default::default()
            }
        };
        let partitions = topic.partitions.iter().map(read).collect();
        responses.push(FetchableTopicResponse { topic: topic.topic.clone(), partitions });
    }
    FetchResponse { responses, ..Default::default() }
}

/// The offsets for the requested times.
pub(super) fn list_offsets(catalogue: &Catalogue, request: ListOffsetsRequest) -> ListOffsetsResponse {
    // A duplicate partition is an error, as in Kafka. Otherwise each duplicate would search the log again.
    let mut seen = BTreeSet::new();
    let mut answer = |name: &str, asked: &ListOffsetsPartition| {
        let empty = Partition::default();
        let mut response =
            ListOffsetsPartitionResponse { partition_index: asked.partition_index, ..Default::default() };
        let Some((topic, partition)) = catalogue.partition(name, asked.partition_index) else {
            response.error_code = UNKNOWN.code;
            return response;
        };
        if !seen.insert((name.to_owned(), partition)) {
            response.error_code = ErrorCode::INVALID_REQUEST;
            return response;
        }
        if let Err(code) = check_epoch(asked.current_leader_epoch) {
            response.error_code = code;
            return response;
        }
        let log = topic.log(partition).unwrap_or(&empty);
        let found = match asked.timestamp {
            ListOffsetsPartition::LATEST => Some((log.end(), -1)),
            ListOffsetsPartition::EARLIEST => Some((log.start(), -1)),
            ListOffsetsPartition::MAX_TIMESTAMP => log.latest_time(),
            time if time >= 0 => log.first_at(time),
            _ => {
                response.error_code = ErrorCode::UNSUPPORTED_VERSION;
                None
            }
        };
        if let Some((offset, timestamp)) = found {
            (response.offset, response.timestamp, response.leader_epoch) = (offset, timestamp, LEADER_EPOCH);
        }
        response
    };
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|asked| answer(&topic.name, asked)).collect();
        ListOffsetsTopicResponse { name: topic.name, partitions }
    });
    ListOffsetsResponse { topics: topics.collect(), ..Default::default() }
}

/// Deletes the records before an offset, or all records, of partitions.
pub(super) fn delete_records(catalogue: &mut Catalogue, request: DeleteRecordsRequest) -> DeleteRecordsResponse {
    let topics = request.topics.into_iter().map(|topic| {
        let delete = |asked: DeleteRecordsPartition| {
            let partition_index = asked.partition_index;
            match delete_before(catalogue, &topic.name, &asked) {
                Ok(low_watermark) => {
                    DeleteRecordsPartitionResult { partition_index, low_watermark, ..Default::default() }
                }
                Err(error_code) => DeleteRecordsPartitionResult { partition_index, error_code, ..Default::default() },
            }
        };
        let partitions = topic.partitions.into_iter().map(delete).collect();
        DeleteRecordsTopicResult { name: topic.name, partitions }
    });
    DeleteRecordsResponse { topics: topics.collect(), ..Default::default() }
}

/// Deletes the records before an offset of one partition. Returns the first remaining offset.
fn delete_before(catalogue: &mut Catalogue, topic: &str, asked: &DeleteRecordsPartition) -> Result<i64, ErrorCode> {
    let (topic, partition) = catalogue.partition_mut(topic, asked.partition_index).ok_or(UNKNOWN.code)?;
    if !topic.deletes_records() {
        return Err(ErrorCode::POLICY_VIOLATION);
    }
    // Do not create a log for a partition without records: it would take memory.
    let mut empty = Partition::default();
    let log = if topic.log(partition).is_some() { topic.log_mut(partition) } else { &mut empty };
    let offset = if asked.offset == DeleteRecordsPartition::EVERYTHING { log.end() } else { asked.offset };
    if !log.delete_before(offset) {
        return Err(ErrorCode::OFFSET_OUT_OF_RANGE);
    }
    Ok(log.start())
}

/// The end offsets of the leader epochs. There is only one epoch.
pub(super) fn epoch_ends(catalogue: &Catalogue, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse {
    let answer = |name: &str, asked: &OffsetForLeaderPartition| {
        let mut response = EpochEndOffset { partition: asked.partition, ..Default::default() };
        match catalogue.partition(name, asked.partition) {
            None => response.error_code = UNKNOWN.code,
            Some((topic, partition)) => match check_epoch(asked.current_leader_epoch) {
                Err(code) => response.error_code = code,
                Ok(()) if asked.leader_epoch == LEADER_EPOCH => {
                    response.leader_epoch = LEADER_EPOCH;
                    response.end_offset = topic.log(partition).map_or(0, Partition::end);
                }
                // An unknown epoch: undefined, as in Kafka.
                Ok(()) => {}
            },
        }
        response
    };
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|asked| answer(&topic.topic, asked)).collect();
        OffsetForLeaderTopicResult { topic: topic.topic, partitions }
    });
    OffsetForLeaderEpochResponse { topics: topics.collect(), ..Default::default() }
}

/// Returns a new producer id. A transactional request gets an error that clients do not retry.
pub(super) fn producer_id(next: &mut i64, request: &InitProducerIdRequest) -> InitProducerIdResponse {
    if request.transactional_id.is_some() {
        let error_code = ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
        return InitProducerIdResponse { error_code, ..Default::default() };
    }
    let producer_id = *next;
    *next += 1;
    InitProducerIdResponse { producer_id, producer_epoch: 0, ..Default::default() }
}
