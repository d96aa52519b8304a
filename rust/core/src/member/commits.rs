//! OffsetCommit: one in flight at a time, in the order of the application's calls, and only for partitions that the member has
//! owned without a break since the call.

use super::backoff::{Backoff, Jitter};
use super::connections::{Broken, Pending};
use super::event::{Action, CommitOffset, Role};
use super::machine::Machine;
use super::network::NetworkClient;
use super::ownership::OwnedPartitions;
use super::{Leaves, Membership, Progress};
use crate::protocol::offsets::{OffsetCommitPartition, OffsetCommitRequest, OffsetCommitResponse, OffsetCommitTopic};
use crate::protocol::{ErrorCode, read_response};
use std::collections::{BTreeMap, VecDeque};

/// One commit that the application asked for.
#[derive(Debug, Clone)]
pub(super) struct PendingCommit {
    pub(super) id: u64,
    /// Each with the acquisition of its partition; `None` outside a subscription.
    pub(super) offsets: Vec<(CommitOffset, Option<u64>)>,
    pub(super) deadline: u64,
    pub(super) done: Vec<(String, i32, ErrorCode)>,
    pub(super) dropped: Vec<(String, i32)>,
    /// Whether the application already has the result. If the commit is in flight, the member waits for its answer, and never
    /// sends it again.
    pub(super) answered: bool,
}

impl PendingCommit {
    /// In a subscription, only offsets of owned partitions are kept: those with an acquisition in `since`.
    pub(super) fn new(
        id: u64,
        deadline: u64,
        offsets: Vec<CommitOffset>,
        subscribed: bool,
        since: impl Fn(&CommitOffset) -> Option<u64>,
    ) -> Self {
        let offsets = offsets
            .into_iter()
            .map(|offset| {
                let since = since(&offset);
                (offset, since)
            })
            .collect();
        let mut commit = Self { id, offsets, deadline, done: Vec::new(), dropped: Vec::new(), answered: false };
        commit.drop_unless(|_, since| !subscribed || since.is_some());
        commit
    }

    /// Leaves out the offsets for which `kept` does not hold.
    fn drop_unless(&mut self, kept: impl Fn(&CommitOffset, Option<u64>) -> bool) {
        let (kept, gone): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.offsets).into_iter().partition(|(offset, since)| kept(offset, *since));
        self.offsets = kept;
        self.dropped.extend(gone.into_iter().map(|(offset, _)| (offset.topic, offset.partition)));
    }

    /// Gives the application the result, once.
    pub(super) fn answer(&mut self, code: ErrorCode, actions: &mut Vec<Action>) -> Progress {
        if std::mem::replace(&mut self.answered, true) {
            return false;
        }
        let partitions = std::mem::take(&mut self.done);
        let dropped = std::mem::take(&mut self.dropped);
        actions.push(Action::CommitDone { id: self.id, code, partitions, dropped });
        true
    }
}

/// The meaning of the broker's answer for one offset of a commit.
pub(super) enum OffsetVerdict {
    /// The offset is committed again, because of this error.
    Again(ErrorCode),
    /// The result of the offset.
    Done(ErrorCode),
    /// The result of the offset and of the whole commit: the code refuses the member.
    Refused(ErrorCode),
    /// The member does not own the partition any more.
    Dropped,
    /// The answer does not contain the offset.
    Unanswered,
}

/// The commits that are not done.
#[derive(Debug)]
pub(super) struct Commits {
    pub(super) waiting: VecDeque<PendingCommit>,
    pub(super) in_flight: Option<PendingCommit>,
    pub(super) backoff: Backoff,
}

impl Commits {
    pub(super) fn new(backoff: Backoff) -> Self {
        Self { waiting: VecDeque::new(), in_flight: None, backoff }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.in_flight.is_none()
    }

    /// Takes a commit. If the member is out of the group for good (`over`), the commit is refused and not sent.
    pub(super) fn take_in(&mut self, mut commit: PendingCommit, over: bool, actions: &mut Vec<Action>) {
        if over {
            commit.answer(ErrorCode::UNKNOWN_MEMBER_ID, actions);
        } else {
            self.waiting.push_back(commit);
        }
    }

    /// The next commit to send. In a subscription it contains only the offsets of partitions that the member has owned without a
    /// break: a broker from 4.3 on refuses a whole commit because of one other offset. A commit without offsets is answered, not
    /// sent.
    pub(super) fn next(
        &mut self,
        subscribed: bool,
        since: impl Fn(&CommitOffset) -> Option<u64>,
        actions: &mut Vec<Action>,
    ) -> Option<PendingCommit> {
        while let Some(mut commit) = self.waiting.pop_front() {
            commit.drop_unless(|offset, acquired| !subscribed || since(offset) == acquired);
            if !commit.offsets.is_empty() {
                return Some(commit);
            }
            commit.answer(ErrorCode::NONE, actions);
        }
        None
    }

    /// Takes the broker's answer for a commit that was in flight. Returns the error that concerns the whole commit, or success.
    pub(super) fn take_answer(
        &mut self,
        mut commit: PendingCommit,
        mut verdict: impl FnMut(&CommitOffset) -> OffsetVerdict,
        network: &mut NetworkClient,
    ) -> Result<ErrorCode, Broken> {
        let (mut again, mut refused, mut unanswered) = (Vec::new(), ErrorCode::NONE, false);
        for (offset, since) in std::mem::take(&mut commit.offsets) {
            match verdict(&offset) {
                OffsetVerdict::Again(code) => {
                    refused = code;
                    again.push((offset, since));
                }
                OffsetVerdict::Done(code) => commit.done.push((offset.topic, offset.partition, code)),
                OffsetVerdict::Refused(code) => {
                    refused = code;
                    commit.done.push((offset.topic, offset.partition, code));
                }
                OffsetVerdict::Dropped => commit.dropped.push((offset.topic, offset.partition)),
                OffsetVerdict::Unanswered => unanswered = true,
            }
        }
        if unanswered {
            commit.answer(ErrorCode::UNKNOWN_SERVER_ERROR, &mut network.actions);
            return Err(Broken("OffsetCommit answers other partitions than were committed".to_owned()));
        }
        if again.is_empty() {
            if refused.is_none() {
                self.backoff.succeeded();
            }
            commit.answer(refused, &mut network.actions);
        } else {
            commit.offsets = again;
            self.backoff.failed(network.now, &mut network.jitter);
            if !commit.answered {
                self.waiting.push_front(commit);
            }
        }
        Ok(refused)
    }

    /// The connection broke. The broker may or may not have applied the commit in flight. It is repeated before any newer one.
    pub(super) fn interrupted(&mut self, now: u64, jitter: &mut Jitter) {
        if let Some(commit) = self.in_flight.take() {
            self.backoff.failed(now, jitter);
            if !commit.answered {
                self.waiting.push_front(commit);
            }
        }
    }

    pub(super) fn deadlines(&self) -> [Option<u64>; 2] {
        let deadline = self.waiting.iter().chain(&self.in_flight).filter(|commit| !commit.answered);
        let backoff = (!self.waiting.is_empty()).then(|| self.backoff.not_before());
        [deadline.map(|commit| commit.deadline).min(), backoff]
    }

    /// Answers all commits with `code`. Those that were waiting are not sent any more.
    pub(super) fn refuse_all(&mut self, code: ErrorCode, actions: &mut Vec<Action>) -> Progress {
        self.answer_where(code, actions, |_| true)
    }

    pub(super) fn fail_all(&mut self, actions: &mut Vec<Action>) {
        self.refuse_all(ErrorCode::REQUEST_TIMED_OUT, actions);
        self.in_flight = None;
    }

    /// Answers the commits for which `is_over` holds, and forgets those that are not in flight.
    pub(super) fn answer_where(
        &mut self,
        code: ErrorCode,
        actions: &mut Vec<Action>,
        is_over: impl Fn(&PendingCommit) -> bool,
    ) -> Progress {
        let mut progress = false;
        for commit in self.waiting.iter_mut().chain(&mut self.in_flight).filter(|commit| is_over(commit)) {
            progress |= commit.answer(code, actions);
        }
        self.waiting.retain(|commit| !commit.answered);
        progress
    }

    pub(super) fn expire(&mut self, now: u64, actions: &mut Vec<Action>) -> Progress {
        self.answer_where(ErrorCode::REQUEST_TIMED_OUT, actions, |commit| commit.deadline <= now)
    }
}

impl Membership {
    pub(super) fn on_commit_wanted(&mut self, id: u64, offsets: Vec<CommitOffset>, timeout_ms: u64) {
        let deadline = self.network.now.saturating_add(timeout_ms);
        let since = |offset: &CommitOffset| self.ownership.since(&offset.topic, offset.partition);
        let commit = PendingCommit::new(id, deadline, offsets, self.subscription.is_some(), since);
        self.commits.take_in(commit, self.failed || self.closed, &mut self.network.actions);
    }

    /// The error for every waiting commit; `None` if the member may commit now.
    fn commits_refused(&self) -> Option<ErrorCode> {
        // A consumer without a subscription assigns its partitions itself, and commits outside any generation.
        self.subscription.as_ref()?;
        // Without this error there is a deadlock: the commit waits for the end of the rebalance, the rebalance for the callback,
        // and the callback for the commit.
        if self.generation.rejoining && (self.notice.is_some() || self.departure.is_some()) {
            return Some(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        if self.member_id.is_empty() {
            return Some(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        (self.generation.id < 0).then_some(ErrorCode::ILLEGAL_GENERATION)
    }

    pub(super) fn drive_commits(&mut self) -> Progress {
        let mut progress = self.commits.expire(self.network.now, &mut self.network.actions);
        if self.departure.as_ref().is_some_and(|departure| self.network.now >= departure.deadline) {
            progress |= self.commits.refuse_all(ErrorCode::REQUEST_TIMED_OUT, &mut self.network.actions);
        }
        if self.commits.in_flight.is_some() || self.commits.waiting.is_empty() {
            return progress;
        }
        if let Some(code) = self.commits_refused() {
            return progress | self.commits.refuse_all(code, &mut self.network.actions);
        }
        // These commits have no offsets left to send. A callback that waits for one of them would keep the application from
        // taking its assignment.
        progress |=
            self.commits.answer_where(ErrorCode::NONE, &mut self.network.actions, |commit| commit.offsets.is_empty());
        // Before the application has taken its assignment, the member does not know which released partitions it has again.
        if self.generation.rejoining || self.assignment_waits() || !self.commits.backoff.ready(self.network.now) {
            return progress;
        }
        let Some(conn) = self.network.ready(Role::Offsets) else { return progress };
        progress |= !self.commits.waiting.is_empty();
        let subscribed = self.subscription.is_some();
        let since = |ownership: &OwnedPartitions, offset: &CommitOffset| {
            ownership.committed_since(&offset.topic, offset.partition)
        };
        while let Some(mut commit) =
            self.commits.next(subscribed, |offset| since(&self.ownership, offset), &mut self.network.actions)
        {
            let body = self.commit_request(&commit);
            let deadline = self.network.now + self.config.request_timeout_ms.max(self.config.session_timeout_ms);
            if self.ask(conn, &body, 8, deadline) {
                self.commits.in_flight = Some(commit);
                break;
            }
            commit.answer(ErrorCode::OFFSET_METADATA_TOO_LARGE, &mut self.network.actions);
        }
        progress
    }

    fn commit_request(&self, commit: &PendingCommit) -> OffsetCommitRequest {
        let mut topics: BTreeMap<&str, Vec<OffsetCommitPartition>> = BTreeMap::new();
        for (offset, _) in &commit.offsets {
            topics.entry(&offset.topic).or_default().push(OffsetCommitPartition {
                partition_index: offset.partition,
                committed_offset: offset.offset,
                committed_leader_epoch: offset.leader_epoch,
                committed_metadata: Some(offset.metadata.clone().unwrap_or_default()),
            });
        }
        let topic = |(name, partitions): (&str, _)| OffsetCommitTopic {
            name: name.to_owned(),
            partitions,
            ..Default::default()
        };
        OffsetCommitRequest {
            group_id: self.config.group_id.clone(),
            generation_id: self.generation.id,
            member_id: self.member_id.clone(),
            // Outside a generation the broker would find no static member with this instance id, and refuse the commit.
            group_instance_id: self.config.group_instance_id.clone().filter(|_| self.generation.id >= 0),
            topics: topics.into_iter().map(topic).collect(),
            ..Default::default()
        }
    }

    pub(super) fn on_committed(&mut self, conn: u64, pending: &Pending, frame: &[u8]) -> Result<(), Broken> {
        let response: OffsetCommitResponse = read_response(&pending.header, frame)?;
        self.network.throttle(conn, response.throttle_time_ms);
        let Some(commit) = self.commits.in_flight.take() else { return Ok(()) };
        let mut codes: BTreeMap<(&str, i32), ErrorCode> = BTreeMap::new();
        for topic in &response.topics {
            for partition in &topic.partitions {
                codes.insert((&topic.name, partition.partition_index), partition.error_code);
            }
        }
        let current = self.is_current(&pending.stamp);
        let subscribed = self.subscription.is_some();
        // Whether the partition of the offset was given up. If its topic is deleted too, another attempt would only delay the
        // next generation.
        let given_up =
            |offset: &CommitOffset| subscribed && self.ownership.since(&offset.topic, offset.partition).is_none();
        let verdict = |offset: &CommitOffset| match codes.get(&(offset.topic.as_str(), offset.partition)).copied() {
            None => OffsetVerdict::Unanswered,
            Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) if given_up(offset) => OffsetVerdict::Dropped,
            Some(code) if is_retriable(code) || !current && is_about_the_member(code) => OffsetVerdict::Again(code),
            Some(code) if is_about_the_member(code) || code == ErrorCode::GROUP_AUTHORIZATION_FAILED => {
                OffsetVerdict::Refused(code)
            }
            Some(code) => OffsetVerdict::Done(code),
        };
        let refused = self.commits.take_answer(commit, verdict, &mut self.network)?;
        if refused.is_none() {
            if current {
                self.generation.session.renewed(pending.sent_at);
            }
            self.network.discovery.succeeded();
        }
        self.react_to_commit(refused, current);
        Ok(())
    }

    /// Acts on an error that concerns the member or the coordinator.
    fn react_to_commit(&mut self, code: ErrorCode, current: bool) {
        match code {
            ErrorCode::COORDINATOR_NOT_AVAILABLE | ErrorCode::NOT_COORDINATOR | ErrorCode::REQUEST_TIMED_OUT => {
                self.coordinator_lost(&format!("OffsetCommit: {code}"));
            }
            ErrorCode::REBALANCE_IN_PROGRESS if current => self.group_rebalances(),
            _ if !current || self.generation.id < 0 => {}
            ErrorCode::ILLEGAL_GENERATION | ErrorCode::GROUP_ID_NOT_FOUND => {
                self.expelled(Leaves::Generation, &format!("OffsetCommit: {code}"));
            }
            ErrorCode::UNKNOWN_MEMBER_ID => self.expelled(Leaves::MemberId, "OffsetCommit: UNKNOWN_MEMBER_ID"),
            ErrorCode::FENCED_INSTANCE_ID => {
                let message = self.explain("OffsetCommit", code);
                self.fail(code, &message, false);
            }
            _ => {}
        }
    }
}

pub(super) fn is_retriable(code: ErrorCode) -> bool {
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

/// Whether the code refuses the member, not the offset.
fn is_about_the_member(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::ILLEGAL_GENERATION
            | ErrorCode::UNKNOWN_MEMBER_ID
            | ErrorCode::FENCED_INSTANCE_ID
            | ErrorCode::GROUP_ID_NOT_FOUND
    )
}
