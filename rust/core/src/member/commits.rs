//! Commits: one in flight, in the order in which they were asked for, each for what the member owns without a break.

use super::Membership;
use super::backoff::{Backoff, Jitter};
use super::connections::{Broken, Pending};
use super::event::{Action, CommitOffset, Role};
use crate::protocol::offsets::{OffsetCommitPartition, OffsetCommitRequest, OffsetCommitResponse, OffsetCommitTopic};
use crate::protocol::{ErrorCode, read_response};
use std::collections::{BTreeMap, VecDeque};

/// One commit that the application asked for.
#[derive(Debug, Clone)]
struct Commit {
    id: u64,
    /// Each with the acquisition of its partition; `None` outside a subscription.
    offsets: Vec<(CommitOffset, Option<u64>)>,
    deadline: u64,
    done: Vec<(String, i32, ErrorCode)>,
    dropped: Vec<(String, i32)>,
    /// Told to the application already: what is still in flight is waited for, never sent again.
    told: bool,
}

impl Commit {
    fn tell(&mut self, code: ErrorCode, out: &mut Vec<Action>) {
        if !std::mem::replace(&mut self.told, true) {
            let partitions = std::mem::take(&mut self.done);
            let dropped = std::mem::take(&mut self.dropped);
            out.push(Action::CommitDone { id: self.id, code, partitions, dropped });
        }
    }
}

/// The commits that are not done.
#[derive(Debug)]
pub(super) struct Commits {
    waiting: VecDeque<Commit>,
    in_flight: Option<Commit>,
    backoff: Backoff,
}

impl Commits {
    pub(super) fn new(backoff: Backoff) -> Self {
        Self { waiting: VecDeque::new(), in_flight: None, backoff }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.in_flight.is_none()
    }

    /// The connection broke. Whether the commit in flight was applied is unknown; it is repeated before any newer one.
    pub(super) fn interrupted(&mut self, now: u64, jitter: &mut Jitter) {
        if let Some(commit) = self.in_flight.take() {
            self.backoff.failed(now, jitter);
            if !commit.told {
                self.waiting.push_front(commit);
            }
        }
    }

    pub(super) fn deadlines(&self) -> [Option<u64>; 2] {
        let deadline = self.waiting.iter().chain(&self.in_flight).filter(|commit| !commit.told);
        let backoff = (!self.waiting.is_empty()).then(|| self.backoff.not_before());
        [deadline.map(|commit| commit.deadline).min(), backoff]
    }

    /// None of them will be sent.
    pub(super) fn refuse_all(&mut self, code: ErrorCode, out: &mut Vec<Action>) {
        for mut commit in self.waiting.drain(..) {
            commit.tell(code, out);
        }
        if let Some(commit) = &mut self.in_flight {
            commit.tell(code, out);
        }
    }

    pub(super) fn fail_all(&mut self, out: &mut Vec<Action>) {
        self.refuse_all(ErrorCode::REQUEST_TIMED_OUT, out);
        self.in_flight = None;
    }

    /// Those of which nothing is left to send: whoever waits for one could not take its share meanwhile.
    fn tell_the_empty(&mut self, out: &mut Vec<Action>) {
        self.waiting.retain_mut(|commit| {
            if commit.offsets.is_empty() {
                commit.tell(ErrorCode::NONE, out);
            }
            !commit.told
        });
    }

    fn expire(&mut self, now: u64, out: &mut Vec<Action>) {
        self.waiting.retain_mut(|commit| {
            let late = commit.deadline <= now;
            if late {
                commit.tell(ErrorCode::REQUEST_TIMED_OUT, out);
            }
            !late
        });
        if let Some(commit) = self.in_flight.as_mut().filter(|commit| commit.deadline <= now) {
            commit.tell(ErrorCode::REQUEST_TIMED_OUT, out);
        }
    }
}

impl Membership {
    pub(super) fn on_commit_wanted(&mut self, id: u64, offsets: Vec<CommitOffset>, timeout_ms: u64) {
        let subscribed = self.subscription.is_some();
        let since = |offset: &CommitOffset| self.ownership.since(&offset.topic, offset.partition);
        let (kept, dropped): (Vec<_>, Vec<_>) = offsets
            .into_iter()
            .map(|offset| {
                let since = since(&offset);
                (offset, since)
            })
            .partition(|(_, since)| !subscribed || since.is_some());
        let mut commit = Commit {
            id,
            offsets: kept,
            deadline: self.now.saturating_add(timeout_ms),
            done: Vec::new(),
            dropped: dropped.into_iter().map(|(offset, _)| (offset.topic, offset.partition)).collect(),
            told: false,
        };
        if self.failed || self.closed {
            commit.tell(ErrorCode::UNKNOWN_MEMBER_ID, &mut self.out);
        } else {
            self.commits.waiting.push_back(commit);
        }
    }

    /// Why none of the commits that wait may be sent in this generation, if so.
    fn commits_refused(&self) -> Option<ErrorCode> {
        // Assigned by hand, there is no generation to be in.
        self.subscription.as_ref()?;
        // The callback that waits for such a commit would hold up the rebalance that the commit waits for.
        if self.rejoining && (self.notice.is_some() || self.departure.is_some()) {
            return Some(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        if self.identity.member_id.is_empty() {
            return Some(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        (self.identity.generation < 0).then_some(ErrorCode::ILLEGAL_GENERATION)
    }

    pub(super) fn drive_commits(&mut self) {
        self.commits.expire(self.now, &mut self.out);
        if self.departure.as_ref().is_some_and(|departure| self.now >= departure.deadline) {
            self.commits.refuse_all(ErrorCode::REQUEST_TIMED_OUT, &mut self.out);
        }
        if self.commits.in_flight.is_some() || self.commits.waiting.is_empty() {
            return;
        }
        if let Some(code) = self.commits_refused() {
            self.commits.refuse_all(code, &mut self.out);
            return;
        }
        self.commits.tell_the_empty(&mut self.out);
        // Until the application has taken its share, nobody can say which of the partitions given up came straight back.
        if self.rejoining || self.share_waits() || !self.commits.backoff.ready(self.now) {
            return;
        }
        let Some(conn) = self.ready(Role::Offsets) else { return };
        while let Some(mut commit) = self.commits.waiting.pop_front() {
            if self.subscription.is_some() {
                let ownership = &self.ownership;
                let (kept, gone): (Vec<_>, Vec<_>) = commit
                    .offsets
                    .into_iter()
                    .partition(|(offset, since)| ownership.since(&offset.topic, offset.partition) == *since);
                commit.offsets = kept;
                commit.dropped.extend(gone.into_iter().map(|(offset, _)| (offset.topic, offset.partition)));
            }
            if commit.offsets.is_empty() {
                commit.tell(ErrorCode::NONE, &mut self.out);
                continue;
            }
            let body = self.commit_request(&commit);
            let deadline = self.now + self.config.request_timeout_ms.max(self.config.session_timeout_ms);
            if self.ask(conn, &body, 8, deadline) {
                self.commits.in_flight = Some(commit);
                return;
            }
            commit.tell(ErrorCode::OFFSET_METADATA_TOO_LARGE, &mut self.out);
        }
    }

    fn commit_request(&self, commit: &Commit) -> OffsetCommitRequest {
        let mut topics: BTreeMap<&str, Vec<OffsetCommitPartition>> = BTreeMap::new();
        for (offset, _) in &commit.offsets {
            topics.entry(&offset.topic).or_default().push(OffsetCommitPartition {
                partition_index: offset.partition,
                committed_offset: offset.offset,
                committed_leader_epoch: offset.leader_epoch,
                committed_metadata: Some(offset.metadata.clone().unwrap_or_default()),
            });
        }
        let topic = |(name, partitions): (&str, _)| OffsetCommitTopic { name: name.to_owned(), partitions };
        OffsetCommitRequest {
            group_id: self.config.group_id.clone(),
            generation_id: self.identity.generation,
            member_id: self.identity.member_id.clone(),
            // Outside a generation it would make the broker look for a member.
            group_instance_id: self.config.group_instance_id.clone().filter(|_| self.identity.generation >= 0),
            topics: topics.into_iter().map(topic).collect(),
            ..Default::default()
        }
    }

    pub(super) fn on_committed(&mut self, conn: u64, pending: &Pending, frame: &[u8]) -> Result<(), Broken> {
        let response: OffsetCommitResponse = read_response(&pending.header, frame)?;
        self.throttle(conn, response.throttle_time_ms);
        let Some(mut commit) = self.commits.in_flight.take() else { return Ok(()) };
        let mut codes: BTreeMap<(&str, i32), ErrorCode> = BTreeMap::new();
        for topic in &response.topics {
            for partition in &topic.partitions {
                codes.insert((&topic.name, partition.partition_index), partition.error_code);
            }
        }
        let current = self.is_current(&pending.stamp);
        let (mut again, mut refused, mut unanswered) = (Vec::new(), ErrorCode::NONE, false);
        for (offset, since) in std::mem::take(&mut commit.offsets) {
            match codes.get(&(offset.topic.as_str(), offset.partition)) {
                None => unanswered = true,
                Some(&code) if is_retriable(code) || !current && is_about_the_member(code) => {
                    refused = code;
                    again.push((offset, since));
                }
                Some(&code) => {
                    if is_about_the_member(code) || code == ErrorCode::GROUP_AUTHORIZATION_FAILED {
                        refused = code;
                    }
                    commit.done.push((offset.topic, offset.partition, code));
                }
            }
        }
        if unanswered {
            commit.tell(ErrorCode::UNKNOWN_SERVER_ERROR, &mut self.out);
            return Err(Broken("OffsetCommit answers other partitions than were committed".to_owned()));
        }
        if again.is_empty() {
            if refused.is_none() {
                if current {
                    self.session.renewed(pending.sent_at);
                }
                self.commits.backoff.succeeded();
                self.discovery.succeeded();
            }
            commit.tell(refused, &mut self.out);
        } else {
            commit.offsets = again;
            self.commits.backoff.failed(self.now, &mut self.jitter);
            if !commit.told {
                self.commits.waiting.push_front(commit);
            }
        }
        self.react_to_commit(refused, current);
        Ok(())
    }

    /// What the answer says about the member, beyond this commit.
    fn react_to_commit(&mut self, code: ErrorCode, current: bool) {
        match code {
            ErrorCode::COORDINATOR_NOT_AVAILABLE | ErrorCode::NOT_COORDINATOR | ErrorCode::REQUEST_TIMED_OUT => {
                self.coordinator_lost(&format!("OffsetCommit: {code}"));
            }
            ErrorCode::REBALANCE_IN_PROGRESS if current => self.group_rebalances(),
            _ if !current || self.identity.generation < 0 => {}
            ErrorCode::ILLEGAL_GENERATION | ErrorCode::GROUP_ID_NOT_FOUND => {
                self.reset_generation(true, &format!("OffsetCommit: {code}"));
            }
            ErrorCode::UNKNOWN_MEMBER_ID => self.reset_generation(false, "OffsetCommit: UNKNOWN_MEMBER_ID"),
            ErrorCode::FENCED_INSTANCE_ID => {
                let message = self.explain("OffsetCommit", code);
                self.fail(code, &message, false);
            }
            _ => {}
        }
    }
}

fn is_retriable(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
            | ErrorCode::REQUEST_TIMED_OUT
            | ErrorCode::COORDINATOR_LOAD_IN_PROGRESS
            | ErrorCode::COORDINATOR_NOT_AVAILABLE
            | ErrorCode::NOT_COORDINATOR
            | ErrorCode::REBALANCE_IN_PROGRESS
    )
}

/// The broker refuses whoever committed, not what.
fn is_about_the_member(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::ILLEGAL_GENERATION
            | ErrorCode::UNKNOWN_MEMBER_ID
            | ErrorCode::FENCED_INSTANCE_ID
            | ErrorCode::GROUP_ID_NOT_FOUND
    )
}
