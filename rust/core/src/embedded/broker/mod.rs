//! A Kafka cluster without disk, replication, transactions and security, as a state machine without I/O. Input: request
//! frames and the time. Output: response frames and the next deadline.
//!
//! Record batches are stored in memory as the producers sent them. A [`Coordinator`] serves the groups. There may be
//! several brokers with racks: they have different node ids and the same address.

mod admin;
mod batch;
mod catalogue;
mod config;
mod data;
mod partition;
mod refuse;
#[cfg(test)]
mod tests;

pub use catalogue::{MAX_PARTITIONS, OFFSETS_TOPIC, TopicError};
pub use config::Config;

use crate::embedded::coordinator::{Coordinator, GroupView, Reply, Topic};
use crate::embedded::faults::Faults;
use crate::protocol::cluster::ApiVersionsRequest;
use crate::protocol::reader::Reader;
use crate::protocol::records::{FetchRequest, FetchResponse, ProduceRequest};
use crate::protocol::writer::WriteError;
use crate::protocol::{ApiKey, Body, ErrorCode, FrameError, RequestHeader, TopicId, read_request, write_response};
use catalogue::{Catalogue, Placement};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// The APIs that are served besides those of the coordinator.
const SERVED: &[ApiKey] = &[
    ApiKey::Produce,
    ApiKey::Fetch,
    ApiKey::ListOffsets,
    ApiKey::Metadata,
    ApiKey::FindCoordinator,
    ApiKey::ApiVersions,
    ApiKey::CreateTopics,
    ApiKey::DeleteTopics,
    ApiKey::DeleteRecords,
    ApiKey::InitProducerId,
    ApiKey::OffsetForLeaderEpoch,
    ApiKey::DescribeConfigs,
    ApiKey::CreatePartitions,
    ApiKey::IncrementalAlterConfigs,
];

/// The limit of a fetch's `max_wait_ms`: without it, a fetch could wait for weeks.
const LONGEST_WAIT_MS: u64 = 3_600_000;

/// The reason to close the connection of a frame.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Hangup {
    /// The frame is no request, or its API is not served.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The protocol cannot represent the response.
    #[error(transparent)]
    Answer(#[from] WriteError),
    /// A Produce with acks=0 failed. It has no response, so the connection is closed, as Kafka does.
    #[error("a produce request with acks=0 was refused: {0}")]
    Unacknowledged(ErrorCode),
}

/// The result of [`Broker::handle`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Handled {
    /// The responses that are now due, for any connection.
    pub replies: Vec<Reply>,
    /// Whether the response to this frame comes later. Until then, do not pass further frames of the connection to
    /// [`Broker::handle`]: responses must be sent in the order of the requests.
    pub parked: bool,
}

/// A fetch that waits for bytes.
#[derive(Debug)]
struct Parked {
    header: RequestHeader,
    request: FetchRequest,
    /// The partitions whose records end the wait, by topic.
    watched: BTreeMap<String, BTreeSet<i32>>,
    bytes: u64,
    deadline: u64,
}

/// The cluster. All times are milliseconds on the caller's clock. The clock must not run backwards.
#[derive(Debug)]
pub struct Broker {
    config: Config,
    catalogue: Catalogue,
    coordinator: Coordinator,
    parked: BTreeMap<u64, Parked>,
    deadlines: BTreeSet<(u64, u64)>,
    next_producer_id: i64,
    faults: Faults,
}

impl Broker {
    /// A cluster without topics.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let mut broker = Self {
            catalogue: Catalogue::new(config.racks.len() as u32),
            coordinator: Coordinator::new(config.groups.clone()),
            parked: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            next_producer_id: 1000,
            faults: Faults::default(),
            config,
        };
        broker.topics_changed();
        broker
    }

    /// Every API that is served.
    pub fn apis() -> impl Iterator<Item = ApiKey> {
        ApiKey::ALL.iter().copied().filter(|api| SERVED.contains(api) || Coordinator::apis().contains(api))
    }

    /// Sets the address in Metadata and FindCoordinator. Before the call, the address of the settings is used.
    pub fn listen(&mut self, host: String, port: i32) {
        (self.config.host, self.config.port) = (host, port);
    }

    /// Serves a request frame without its length. The caller chooses the number of a connection and does not reuse it.
    ///
    /// # Errors
    /// The connection must be closed.
    pub fn handle(&mut self, now_ms: u64, connection: u64, frame: &[u8]) -> Result<Handled, Hangup> {
        let mut reader = Reader::of_frame(frame);
        let header = RequestHeader::read(&mut reader)?;
        if header.version > header.api.versions().1 && header.api != ApiKey::ApiVersions {
            return Err(FrameError::UnsupportedVersion { api: header.api, version: header.version }.into());
        }
        if Coordinator::apis().contains(&header.api) {
            let replies = self.coordinator.handle(now_ms, connection, frame)?;
            return Ok(Handled { replies, parked: self.coordinator.is_waiting(connection) });
        }
        if let Some(code) = self.faults.take(header.api) {
            let frame = refuse::refuse(&header, &mut reader, code)?;
            return Ok(Handled {
                replies: frame.map(|frame| Reply { connection, frame }).into_iter().collect(),
                parked: false,
            });
        }
        self.serve(now_ms, connection, header, reader)
    }

    fn serve(
        &mut self,
        now_ms: u64,
        connection: u64,
        header: RequestHeader,
        mut reader: Reader<'_>,
    ) -> Result<Handled, Hangup> {
        let version = header.version;
        let reader = &mut reader;
        let frame = match header.api {
            ApiKey::Produce => return self.produce(connection, &header, reader),
            ApiKey::Fetch => return self.fetch(now_ms, connection, header, reader),
            ApiKey::ApiVersions => Self::api_versions(&header, reader)?,
            ApiKey::Metadata => {
                let request = read_request(reader, version)?;
                let before = self.catalogue.count();
                let response = admin::metadata(&mut self.catalogue, &self.config, version, request);
                if self.catalogue.count() != before {
                    self.topics_changed();
                }
                answer(&header, &response)?
            }
            ApiKey::FindCoordinator => {
                answer(&header, &admin::coordinator(&self.config, version, read_request(reader, version)?))?
            }
            ApiKey::ListOffsets => {
                answer(&header, &data::list_offsets(&self.catalogue, read_request(reader, version)?))?
            }
            ApiKey::OffsetForLeaderEpoch => {
                answer(&header, &data::epoch_ends(&self.catalogue, read_request(reader, version)?))?
            }
            ApiKey::InitProducerId => {
                let request = read_request(reader, version)?;
                answer(&header, &data::producer_id(&mut self.next_producer_id, &request))?
            }
            ApiKey::CreateTopics => {
                let request = read_request(reader, version)?;
                let response = admin::create_topics(&mut self.catalogue, &self.config, request);
                self.topics_changed();
                answer(&header, &response)?
            }
            ApiKey::CreatePartitions => {
                let response = admin::create_partitions(&mut self.catalogue, read_request(reader, version)?);
                self.topics_changed();
                answer(&header, &response)?
            }
            ApiKey::DeleteTopics => {
                let response = admin::delete_topics(&mut self.catalogue, read_request(reader, version)?);
                self.topics_changed();
                answer(&header, &response)?
            }
            ApiKey::DeleteRecords => {
                answer(&header, &data::delete_records(&mut self.catalogue, read_request(reader, version)?))?
            }
            ApiKey::DescribeConfigs => {
                let request = read_request(reader, version)?;
                answer(&header, &admin::describe_configs(&self.catalogue, &self.config, request))?
            }
            ApiKey::IncrementalAlterConfigs => {
                let (groups, coordinator) = (&mut self.config.groups, &mut self.coordinator);
                let offsets_topic = |changes: &[_], validate_only: bool| {
                    let Some(bytes) = config::record_limit(changes)?.filter(|_| !validate_only) else { return Ok(()) };
                    groups.max_record_bytes = bytes;
                    coordinator.set_record_limit(bytes);
                    Ok(())
                };
                answer(
                    &header,
                    &admin::alter_configs(&mut self.catalogue, read_request(reader, version)?, offsets_topic),
                )?
            }
            other => return Err(FrameError::UnknownApi(other.code()).into()),
        };
        Ok(Handled { replies: vec![Reply { connection, frame }], parked: false })
    }

    /// Answers ApiVersions. An unsupported version is answered in version 0 with the version ranges: the client then
    /// retries with a supported one.
    fn api_versions(header: &RequestHeader, reader: &mut Reader<'_>) -> Result<Vec<u8>, Hangup> {
        if header.api.speaks(header.version) {
            read_request::<ApiVersionsRequest>(reader, header.version)?;
            return answer(header, &admin::versions(Self::apis(), ErrorCode::NONE));
        }
        let header = RequestHeader { version: 0, ..header.clone() };
        answer(&header, &admin::versions(Self::apis(), ErrorCode::UNSUPPORTED_VERSION))
    }

    fn produce(&mut self, connection: u64, header: &RequestHeader, reader: &mut Reader<'_>) -> Result<Handled, Hangup> {
        let request: ProduceRequest = read_request(reader, header.version)?;
        let acks = request.acks;
        let parked = &mut self.parked;
        let mut woken = BTreeSet::new();
        let response = data::produce(&mut self.catalogue, request, |(topic, partition, bytes)| {
            for (connection, fetch) in parked.iter_mut() {
                if fetch.watched.get(topic).is_some_and(|watched| watched.contains(&partition)) {
                    fetch.bytes = fetch.bytes.saturating_add(bytes);
                    if fetch.bytes >= u64::try_from(fetch.request.min_bytes).unwrap_or(0) {
                        woken.insert(*connection);
                    }
                }
            }
        });
        let mut replies = Vec::with_capacity(woken.len() + 1);
        for connection in woken {
            replies.extend(self.finish(connection)?);
        }
        if acks == 0 {
            let mut codes = response.responses.iter().flat_map(|topic| &topic.partition_responses);
            return match codes.find(|partition| !partition.error_code.is_none()) {
                Some(failed) => Err(Hangup::Unacknowledged(failed.error_code)),
                None => Ok(Handled { replies, parked: false }),
            };
        }
        replies.push(Reply { connection, frame: answer(header, &response)? });
        Ok(Handled { replies, parked: false })
    }

    fn fetch(
        &mut self,
        now_ms: u64,
        connection: u64,
        header: RequestHeader,
        reader: &mut Reader<'_>,
    ) -> Result<Handled, Hangup> {
        let request: FetchRequest = read_request(reader, header.version)?;
        // The broker never creates a fetch session, so every session epoch above 0 is invalid.
        if request.session_epoch > 0 {
            let response = FetchResponse { error_code: ErrorCode::FETCH_SESSION_ID_NOT_FOUND, ..Default::default() };
            return Ok(Handled {
                replies: vec![Reply { connection, frame: answer(&header, &response)? }],
                parked: false,
            });
        }
        let ready = data::readiness(&self.catalogue, &request);
        let wait = u64::try_from(request.max_wait_ms).unwrap_or(0).min(LONGEST_WAIT_MS);
        let enough = u64::try_from(request.min_bytes).unwrap_or(0);
        let mut watched: BTreeMap<String, BTreeSet<i32>> = BTreeMap::new();
        for topic in &request.topics {
            watched
                .entry(topic.topic.clone())
                .or_default()
                .extend(topic.partitions.iter().map(|asked| asked.partition));
        }
        if ready.failed || ready.bytes >= enough || wait == 0 || watched.is_empty() {
            let response = data::fetch(&self.catalogue, &request);
            return Ok(Handled {
                replies: vec![Reply { connection, frame: answer(&header, &response)? }],
                parked: false,
            });
        }
        let deadline = now_ms.saturating_add(wait);
        self.forget(connection);
        self.deadlines.insert((deadline, connection));
        self.parked.insert(connection, Parked { header, request, watched, bytes: ready.bytes, deadline });
        Ok(Handled { replies: Vec::new(), parked: true })
    }

    /// Answers a parked fetch with the available records.
    fn finish(&mut self, connection: u64) -> Result<Option<Reply>, WriteError> {
        let Some(parked) = self.forget(connection) else { return Ok(None) };
        let frame = write_response(&parked.header, &data::fetch(&self.catalogue, &parked.request))?;
        Ok(Some(Reply { connection, frame }))
    }

    fn forget(&mut self, connection: u64) -> Option<Parked> {
        let parked = self.parked.remove(&connection)?;
        self.deadlines.remove(&(parked.deadline, connection));
        Some(parked)
    }

    /// Advances the time. Returns the responses that are now due.
    pub fn tick(&mut self, now_ms: u64) -> Vec<Reply> {
        let mut replies = self.coordinator.tick(now_ms);
        while let Some(&(deadline, connection)) = self.deadlines.first().filter(|first| first.0 <= now_ms) {
            // Writing cannot fail: every string of the response was part of the request.
            if let Ok(reply) = self.finish(connection) {
                replies.extend(reply);
            }
            self.deadlines.remove(&(deadline, connection));
        }
        replies
    }

    /// The time to call [`Broker::tick`], unless another call comes before.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        let fetch = self.deadlines.first().map(|first| first.0);
        [fetch, self.coordinator.next_deadline()].into_iter().flatten().min()
    }

    /// A connection was closed. The replies are for other connections.
    pub fn disconnect(&mut self, now_ms: u64, connection: u64) -> Vec<Reply> {
        self.forget(connection);
        self.coordinator.disconnect(now_ms, connection)
    }

    /// Creates a topic. Fails unless `replication_factor` is between 1 and the number of brokers.
    pub fn create_topic(
        &mut self,
        name: &str,
        partitions: i32,
        replication_factor: u16,
        settings: Vec<(String, Option<String>)>,
    ) -> Result<(), TopicError> {
        self.catalogue.create(name, partitions, Placement::Dealt(replication_factor), settings)?;
        self.topics_changed();
        Ok(())
    }

    /// Increases the partition count of a topic to `count`.
    pub fn grow_topic(&mut self, name: &str, count: i32) -> Result<(), TopicError> {
        self.catalogue.grow(name, count, false)?;
        self.topics_changed();
        Ok(())
    }

    /// Deletes a topic, its records and the offsets committed for it.
    pub fn delete_topic(&mut self, name: &str) -> Result<(), TopicError> {
        self.catalogue.delete(name)?;
        self.topics_changed();
        Ok(())
    }

    /// The topics and their partition counts, in order of name.
    #[must_use]
    pub fn topics(&self) -> Vec<(String, u32)> {
        self.catalogue.iter().map(|(name, topic)| (name.clone(), topic.partitions())).collect()
    }

    /// The name of the topic with this id.
    #[must_use]
    pub fn topic_name(&self, id: &TopicId) -> Option<&str> {
        self.catalogue.name(id)
    }

    /// The first and the next offset of every partition of a topic.
    pub fn offsets(&self, name: &str) -> Result<Vec<(i64, i64)>, TopicError> {
        let topic = self.catalogue.get(name).ok_or_else(|| TopicError::unknown(name))?;
        let ends = |partition| topic.log(partition).map_or((0, 0), |log| (log.start(), log.end()));
        Ok((0..topic.partitions()).map(ends).collect())
    }

    /// The current state of the classic groups. Those of KIP-848: [`Coordinator::consumer_groups`].
    #[must_use]
    pub fn groups(&self) -> Vec<GroupView> {
        self.coordinator.groups()
    }

    /// The coordinator itself.
    pub fn coordinator(&mut self) -> &mut Coordinator {
        &mut self.coordinator
    }

    /// Answers the next `times` requests of this API with the code in each error field, instead of serving them. Later
    /// calls take effect after earlier ones. False for an API that is not served.
    pub fn inject(&mut self, api: ApiKey, code: ErrorCode, times: u32) -> bool {
        if Coordinator::apis().contains(&api) {
            self.coordinator.inject(api, code, times);
            return true;
        }
        let is_served = SERVED.contains(&api);
        if is_served {
            self.faults.inject(api, code, times);
        }
        is_served
    }

    fn topics_changed(&mut self) {
        let known = |topic: &catalogue::StoredTopic| Topic { id: topic.id(), partitions: topic.partitions() as i32 };
        let topics = self.catalogue.iter().map(|(name, topic)| (name.clone(), known(topic)));
        self.coordinator.set_topics(topics.collect());
    }
}

fn answer<B: Body>(header: &RequestHeader, body: &B) -> Result<Vec<u8>, Hangup> {
    Ok(write_response(header, body)?)
}
