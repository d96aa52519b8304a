//! OffsetFetch: one in flight at a time. A fetch goes on across rebalances until its answer or its deadline.

use super::backoff::{Backoff, Jitter};
use super::connections::{Broken, Pending};
use super::event::{Action, FetchedOffset, Partitions, Role};
use super::machine::Machine;
use super::network::NetworkClient;
use super::{Membership, Progress};
use crate::protocol::offsets::{
    OffsetFetchPartitionResponse, OffsetFetchRequest, OffsetFetchResponse, OffsetFetchTopic,
};
use crate::protocol::{ApiKey, ErrorCode, read_response};
use std::collections::{HashMap, VecDeque};

/// Version 8 asks for several groups, 10 needs topic ids.
const OFFSET_FETCH: i16 = 7;

#[derive(Debug)]
pub(super) struct Fetch {
    pub(super) id: u64,
    pub(super) partitions: Partitions,
    pub(super) deadline: u64,
    /// Whether the application has the result already.
    pub(super) answered: bool,
}

impl Fetch {
    /// The offsets of an answer; a partition that the answer does not contain gets the code `missing`.
    pub(super) fn found(&self, mut read: Read, missing: ErrorCode) -> Vec<FetchedOffset> {
        let mut offsets = Vec::new();
        for (topic, numbers) in &self.partitions {
            for &partition in numbers {
                let found = read.remove(&(topic.clone(), partition));
                offsets.push(FetchedOffset {
                    topic: topic.clone(),
                    partition,
                    offset: found.as_ref().map_or(-1, |found| found.committed_offset),
                    leader_epoch: found.as_ref().map_or(-1, |found| found.committed_leader_epoch),
                    code: found.as_ref().map_or(missing, |found| found.error_code),
                    metadata: found.and_then(|found| found.metadata),
                });
            }
        }
        offsets
    }

    /// Gives the application the result, once.
    pub(super) fn answer(
        &mut self,
        code: ErrorCode,
        offsets: Vec<FetchedOffset>,
        actions: &mut Vec<Action>,
    ) -> Progress {
        if std::mem::replace(&mut self.answered, true) {
            return false;
        }
        actions.push(Action::OffsetsFetched { id: self.id, code, offsets });
        true
    }
}

/// The results in an answer, by topic and partition.
pub(super) type Read = HashMap<(String, i32), OffsetFetchPartitionResponse>;

/// The fetches that are not done.
#[derive(Debug)]
pub(super) struct Fetches {
    pub(super) waiting: VecDeque<Fetch>,
    pub(super) in_flight: Option<Fetch>,
    pub(super) backoff: Backoff,
    /// Whether the warning that the broker cannot wait for transactions has been logged.
    warned: bool,
}

impl Fetches {
    pub(super) fn new(backoff: Backoff) -> Self {
        Self { waiting: VecDeque::new(), in_flight: None, backoff, warned: false }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.in_flight.is_none()
    }

    /// Takes a fetch that the application asked for. If the member is out of the group for good (`over`), the fetch is refused and
    /// not sent.
    pub(super) fn take_in(
        &mut self,
        id: u64,
        partitions: Partitions,
        timeout_ms: u64,
        over: bool,
        network: &mut NetworkClient,
    ) {
        let deadline = network.now.saturating_add(timeout_ms);
        let mut fetch = Fetch { id, partitions, deadline, answered: false };
        if over {
            fetch.answer(ErrorCode::UNKNOWN_MEMBER_ID, Vec::new(), &mut network.actions);
        } else if fetch.partitions.iter().all(|(_, numbers)| numbers.is_empty()) {
            fetch.answer(ErrorCode::NONE, Vec::new(), &mut network.actions);
        } else {
            self.waiting.push_back(fetch);
        }
    }

    pub(super) fn interrupted(&mut self, now: u64, jitter: &mut Jitter) {
        if let Some(fetch) = self.in_flight.take() {
            self.again(fetch, now, jitter);
        }
    }

    pub(super) fn again(&mut self, fetch: Fetch, now: u64, jitter: &mut Jitter) {
        self.backoff.failed(now, jitter);
        if !fetch.answered {
            self.waiting.push_front(fetch);
        }
    }

    pub(super) fn deadlines(&self) -> [Option<u64>; 2] {
        let open = self.waiting.iter().chain(&self.in_flight).filter(|fetch| !fetch.answered);
        let backoff = (!self.waiting.is_empty()).then(|| self.backoff.not_before());
        [open.map(|fetch| fetch.deadline).min(), backoff]
    }

    /// Answers the fetches whose time is over, and forgets those that are not in flight.
    pub(super) fn expire(&mut self, now: u64, actions: &mut Vec<Action>) -> Progress {
        let mut progress = false;
        for fetch in self.waiting.iter_mut().chain(&mut self.in_flight).filter(|fetch| fetch.deadline <= now) {
            progress |= fetch.answer(ErrorCode::REQUEST_TIMED_OUT, Vec::new(), actions);
        }
        self.waiting.retain(|fetch| !fetch.answered);
        progress
    }

    pub(super) fn refuse_all(&mut self, code: ErrorCode, actions: &mut Vec<Action>) {
        for fetch in self.waiting.iter_mut().chain(&mut self.in_flight) {
            fetch.answer(code, Vec::new(), actions);
        }
        self.waiting.clear();
    }

    pub(super) fn fail_all(&mut self, actions: &mut Vec<Action>) {
        self.refuse_all(ErrorCode::REQUEST_TIMED_OUT, actions);
        self.in_flight = None;
    }
}

impl Membership {
    pub(super) fn drive_fetches(&mut self) -> Progress {
        let now = self.network.now;
        let progress = self.fetches.expire(now, &mut self.network.actions);
        if self.fetches.in_flight.is_some() || !self.fetches.backoff.ready(now) {
            return progress;
        }
        let Some(conn) = self.network.ready(Role::Offsets) else { return progress };
        let Some(mut fetch) = self.fetches.waiting.pop_front() else { return progress };
        let stable = self.network.version(conn, ApiKey::OffsetFetch, OFFSET_FETCH) >= Some(7);
        if !stable && !std::mem::replace(&mut self.fetches.warned, true) {
            self.network.warn(
                "the broker cannot be asked for stable offsets only (KIP-447, Kafka 2.5): offsets that a running \
                 transaction is about to replace may be read"
                    .to_owned(),
            );
        }
        let topic = |(name, numbers): &(String, Vec<i32>)| OffsetFetchTopic {
            name: name.clone(),
            partition_indexes: numbers.clone(),
            ..Default::default()
        };
        let body = OffsetFetchRequest {
            group_id: self.config.group_id.clone(),
            topics: Some(fetch.partitions.iter().map(topic).collect()),
            require_stable: true,
            ..Default::default()
        };
        if self.ask(conn, &body, OFFSET_FETCH, self.network.request_deadline()) {
            self.fetches.in_flight = Some(fetch);
        } else {
            fetch.answer(ErrorCode::INVALID_REQUEST, Vec::new(), &mut self.network.actions);
        }
        true
    }

    pub(super) fn on_fetched(&mut self, conn: u64, pending: &Pending, frame: &[u8]) -> Result<(), Broken> {
        let response: OffsetFetchResponse = read_response(&pending.header, frame)?;
        self.network.throttle(conn, response.throttle_time_ms);
        let Some(mut fetch) = self.fetches.in_flight.take() else { return Ok(()) };
        let mut read = HashMap::new();
        let mut waits = response.error_code;
        for topic in response.topics {
            for partition in topic.partitions {
                if is_retriable(partition.error_code) {
                    waits = partition.error_code;
                }
                read.insert((topic.name.clone(), partition.partition_index), partition);
            }
        }
        if is_retriable(waits) {
            self.fetches.again(fetch, self.network.now, &mut self.network.jitter);
            if matches!(waits, ErrorCode::NOT_COORDINATOR | ErrorCode::COORDINATOR_NOT_AVAILABLE) {
                self.coordinator_lost(&format!("OffsetFetch: {waits}"));
            }
            return Ok(());
        }
        self.fetches.backoff.succeeded();
        if !response.error_code.is_none() {
            fetch.answer(response.error_code, Vec::new(), &mut self.network.actions);
            return Ok(());
        }
        let offsets = fetch.found(read, ErrorCode::NONE);
        fetch.answer(ErrorCode::NONE, offsets, &mut self.network.actions);
        Ok(())
    }
}

/// Whether the same request may succeed later, after the end of a transaction or once the coordinator has loaded the group.
pub(super) fn is_retriable(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::UNSTABLE_OFFSET_COMMIT
            | ErrorCode::COORDINATOR_LOAD_IN_PROGRESS
            | ErrorCode::COORDINATOR_NOT_AVAILABLE
            | ErrorCode::NOT_COORDINATOR
            | ErrorCode::REQUEST_TIMED_OUT
    )
}
