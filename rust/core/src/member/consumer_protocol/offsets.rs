//! OffsetCommit and OffsetFetch with the member's epoch. One of each is in flight at a time.

use super::ConsumerMembership;
use super::holdings::Holdings;
use crate::member::Progress;
use crate::member::commits::{OffsetVerdict, PendingCommit, is_retriable};
use crate::member::connections::{Broken, Pending};
use crate::member::event::{CommitOffset, Role};
use crate::member::fetches;
use crate::member::machine::Machine;
use crate::protocol::offsets::{
    OffsetCommitPartition, OffsetCommitRequest, OffsetCommitResponse, OffsetCommitTopic, OffsetFetchGroup,
    OffsetFetchRequest, OffsetFetchResponse, OffsetFetchTopic,
};
use crate::protocol::{ErrorCode, TopicId, read_response};
use std::collections::{BTreeMap, HashMap};

/// The last version of both requests with topic names.
const NAMES_UNTIL: i16 = 9;

/// The largest number of refusals in a row, because of the epoch, after which a commit is repeated. The first refusals are normal
/// in a rebalance.
const MOST_STALE: u32 = 8;

impl ConsumerMembership {
    pub(super) fn on_commit_wanted(&mut self, id: u64, offsets: Vec<CommitOffset>, timeout_ms: u64) {
        let deadline = self.network.now.saturating_add(timeout_ms);
        let since = |offset: &CommitOffset| self.holdings.since(&offset.topic, offset.partition);
        let commit = PendingCommit::new(id, deadline, offsets, self.subscription.is_some(), since);
        self.commits.take_in(commit, self.failed || self.closed, &mut self.network.actions);
    }

    pub(super) fn drive_commits(&mut self) -> Progress {
        let mut progress = self.commits.expire(self.network.now, &mut self.network.actions);
        if self.commits.in_flight.is_some() || self.commits.waiting.is_empty() {
            return progress;
        }
        if self.subscription.is_some() && self.current.epoch < 0 {
            // Other members may own the partitions of these offsets.
            return progress | self.commits.refuse_all(ErrorCode::ILLEGAL_GENERATION, &mut self.network.actions);
        }
        progress |=
            self.commits.answer_where(ErrorCode::NONE, &mut self.network.actions, |commit| commit.offsets.is_empty());
        if !self.commits.backoff.ready(self.network.now) {
            return progress;
        }
        let Some(conn) = self.network.ready(Role::Offsets) else { return progress };
        progress |= !self.commits.waiting.is_empty();
        let subscribed = self.subscription.is_some();
        let since = |holdings: &Holdings, offset: &CommitOffset| holdings.since(&offset.topic, offset.partition);
        while let Some(mut commit) =
            self.commits.next(subscribed, |offset| since(&self.holdings, offset), &mut self.network.actions)
        {
            let (body, most) = self.commit_request(&commit);
            if self.ask(conn, &body, most, self.network.request_deadline()) {
                self.commits.in_flight = Some(commit);
                break;
            }
            commit.answer(ErrorCode::OFFSET_METADATA_TOO_LARGE, &mut self.network.actions);
        }
        progress
    }

    /// The request, and the newest version in which it can be sent: newer versions than `NAMES_UNTIL` need the id of every topic.
    fn commit_request(&self, commit: &PendingCommit) -> (OffsetCommitRequest, i16) {
        let mut topics: BTreeMap<(&str, TopicId), Vec<OffsetCommitPartition>> = BTreeMap::new();
        let mut most = if self.by_name { NAMES_UNTIL } else { i16::MAX };
        for (offset, _) in &commit.offsets {
            let found = self.holdings.find(&offset.topic, offset.partition);
            if found.is_none() {
                most = NAMES_UNTIL;
            }
            let id = found.map_or([0; 16], |(id, _)| id);
            topics.entry((&offset.topic, id)).or_default().push(OffsetCommitPartition {
                partition_index: offset.partition,
                committed_offset: offset.offset,
                committed_leader_epoch: offset.leader_epoch,
                committed_metadata: Some(offset.metadata.clone().unwrap_or_default()),
            });
        }
        let topic = |((name, topic_id), partitions): ((&str, TopicId), _)| OffsetCommitTopic {
            name: name.to_owned(),
            topic_id,
            partitions,
        };
        let is_member = self.current.epoch >= 0;
        let request = OffsetCommitRequest {
            group_id: self.config.group_id.clone(),
            generation_id: self.current.epoch,
            member_id: if is_member { self.member_id.clone() } else { String::new() },
            group_instance_id: self.config.group_instance_id.clone().filter(|_| is_member),
            topics: topics.into_iter().map(topic).collect(),
            ..Default::default()
        };
        (request, most)
    }

    pub(super) fn on_committed(&mut self, conn: u64, pending: &Pending, frame: &[u8]) -> Result<(), Broken> {
        let response: OffsetCommitResponse = read_response(&pending.header, frame)?;
        self.network.throttle(conn, response.throttle_time_ms);
        let Some(commit) = self.commits.in_flight.take() else { return Ok(()) };
        let has_ids = pending.header.version > NAMES_UNTIL;
        let names = self.holdings.names();
        let mut codes: HashMap<(&str, i32), ErrorCode> = HashMap::new();
        for topic in &response.topics {
            let name = if has_ids { names.get(&topic.topic_id) } else { Some(&topic.name) };
            let Some(name) = name else { continue };
            for partition in &topic.partitions {
                codes.insert((name, partition.partition_index), partition.error_code);
            }
        }
        let current = self.is_current(&pending.stamp);
        let mut by_name = self.by_name;
        let keeps_trying = self.current.stale < MOST_STALE && self.current.epoch >= 0;
        let verdict = |offset: &CommitOffset| match codes.get(&(offset.topic.as_str(), offset.partition)).copied() {
            // The answer names topics by id only, and the member no longer owns a partition of the topic with the requested id.
            None if has_ids => OffsetVerdict::Dropped,
            None => OffsetVerdict::Unanswered,
            Some(ErrorCode::UNKNOWN_TOPIC_ID) => {
                by_name = true;
                OffsetVerdict::Again(ErrorCode::UNKNOWN_TOPIC_ID)
            }
            Some(ErrorCode::STALE_MEMBER_EPOCH) if keeps_trying => OffsetVerdict::Again(ErrorCode::STALE_MEMBER_EPOCH),
            Some(code) if is_retriable(code) => OffsetVerdict::Again(code),
            // The clients have an error for an old generation, and none for an old epoch.
            Some(ErrorCode::STALE_MEMBER_EPOCH) => OffsetVerdict::Refused(ErrorCode::ILLEGAL_GENERATION),
            Some(code @ (ErrorCode::ILLEGAL_GENERATION | ErrorCode::UNKNOWN_MEMBER_ID)) => OffsetVerdict::Refused(code),
            Some(code) => OffsetVerdict::Done(code),
        };
        let taken = self.commits.take_answer(commit, verdict, &mut self.network);
        self.by_name = by_name;
        let refused = taken?;
        if refused.is_none() {
            self.current.stale = 0;
        }
        match refused {
            ErrorCode::COORDINATOR_NOT_AVAILABLE | ErrorCode::NOT_COORDINATOR | ErrorCode::REQUEST_TIMED_OUT => {
                self.coordinator_lost(&format!("OffsetCommit: {refused}"));
            }
            // The answer to the next heartbeat decides whether the member is still in the group.
            ErrorCode::STALE_MEMBER_EPOCH | ErrorCode::ILLEGAL_GENERATION | ErrorCode::UNKNOWN_MEMBER_ID
                if current && self.current.epoch >= 0 =>
            {
                self.current.stale += u32::from(refused == ErrorCode::STALE_MEMBER_EPOCH);
                self.pace.urgent = true;
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn drive_fetches(&mut self) -> Progress {
        let mut progress = self.fetches.expire(self.network.now, &mut self.network.actions);
        if self.fetches.in_flight.is_some() || !self.fetches.backoff.ready(self.network.now) {
            return progress;
        }
        let Some(conn) = self.network.ready(Role::Offsets) else { return progress };
        let Some(mut fetch) = self.fetches.waiting.pop_front() else { return progress };
        progress = true;
        let mut most = if self.by_name { NAMES_UNTIL } else { i16::MAX };
        let mut topics = Vec::new();
        for (name, numbers) in &fetch.partitions {
            let id = numbers.first().and_then(|&number| self.holdings.find(name, number));
            if id.is_none() {
                most = NAMES_UNTIL;
            }
            topics.push(OffsetFetchTopic {
                name: name.clone(),
                topic_id: id.map_or([0; 16], |(id, _)| id),
                partition_indexes: numbers.clone(),
            });
        }
        let is_member = self.current.epoch >= 0;
        let body = OffsetFetchRequest {
            group_id: self.config.group_id.clone(),
            topics: Some(topics.clone()),
            groups: vec![OffsetFetchGroup {
                group_id: self.config.group_id.clone(),
                member_id: is_member.then(|| self.member_id.clone()),
                member_epoch: self.current.epoch,
                topics: Some(topics),
            }],
            require_stable: true,
        };
        if self.ask(conn, &body, most, self.network.request_deadline()) {
            self.fetches.in_flight = Some(fetch);
        } else {
            fetch.answer(ErrorCode::INVALID_REQUEST, Vec::new(), &mut self.network.actions);
        }
        progress
    }

    pub(super) fn on_fetched(&mut self, conn: u64, pending: &Pending, frame: &[u8]) -> Result<(), Broken> {
        let mut response: OffsetFetchResponse = read_response(&pending.header, frame)?;
        self.network.throttle(conn, response.throttle_time_ms);
        let Some(mut fetch) = self.fetches.in_flight.take() else { return Ok(()) };
        if let Some(group) = response.groups.pop() {
            response.error_code = group.error_code;
            response.topics = group.topics;
        }
        let has_ids = pending.header.version > NAMES_UNTIL;
        let names = self.holdings.names();
        let mut read = HashMap::new();
        let mut waits = response.error_code;
        for topic in response.topics {
            for partition in topic.partitions {
                if fetches::is_retriable(partition.error_code) || partition.error_code == ErrorCode::UNKNOWN_TOPIC_ID {
                    waits = partition.error_code;
                }
                let name = if has_ids { names.get(&topic.topic_id) } else { Some(&topic.name) };
                if let Some(name) = name {
                    read.insert((name.clone(), partition.partition_index), partition);
                }
            }
        }
        match waits {
            ErrorCode::STALE_MEMBER_EPOCH | ErrorCode::UNKNOWN_MEMBER_ID => self.pace.urgent = true,
            ErrorCode::UNKNOWN_TOPIC_ID => self.by_name = true,
            ErrorCode::NOT_COORDINATOR | ErrorCode::COORDINATOR_NOT_AVAILABLE => {
                self.fetches.again(fetch, self.network.now, &mut self.network.jitter);
                self.coordinator_lost(&format!("OffsetFetch: {waits}"));
                return Ok(());
            }
            code if fetches::is_retriable(code) => {}
            _ => {
                self.fetches.backoff.succeeded();
                let code = response.error_code;
                // A partition has no result if its topic was requested by id, and the member no longer owns a partition of that
                // topic.
                let offsets =
                    if code.is_none() { fetch.found(read, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) } else { Vec::new() };
                fetch.answer(code, offsets, &mut self.network.actions);
                return Ok(());
            }
        }
        self.fetches.again(fetch, self.network.now, &mut self.network.jitter);
        Ok(())
    }
}
