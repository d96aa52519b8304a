//! Brings the application's partitions to the assignment: revoke, take, acknowledge; one change at a time, towards the newest
//! assignment.

use super::ConsumerMembership;
use super::holdings::{PartitionsByTopic, named};
use crate::member::Progress;
use crate::member::course::Course;
use crate::member::event::{Action, Notice, NoticeKind};

/// A notice that the application has not returned.
#[derive(Debug)]
pub(super) struct Outstanding {
    ticket: u64,
    pub(super) kind: NoticeKind,
    added: PartitionsByTopic,
    revoked: PartitionsByTopic,
    /// Whether the application has begun the notice. A begun notice is always carried out.
    begun: bool,
    /// The time until which the member waits for the last commits of the revoked partitions. Set once the application is done
    /// with the notice.
    until: Option<u64>,
}

/// The longest wait for the last commits of given-up partitions. After it the member acknowledges the revocation.
const LAST_COMMITS_MS: u64 = 5_000;

impl ConsumerMembership {
    /// Compares the assignment with the partitions that the application holds. A topic without a name waits for its name; the
    /// other topics do not wait for it.
    pub(super) fn drive_target(&mut self) -> Progress {
        if self.notice.is_some() || self.current.epoch < 0 || self.departure.is_some() {
            return false;
        }
        let Some(target) = &self.current.target else { return false };
        let names = &self.topics.names;
        let (added, revoked) = self.holdings.compare(target, names);
        let waits = target.iter().any(|(id, numbers)| !numbers.is_empty() && !names.contains_key(id));
        if added.is_empty() && revoked.is_empty() && (!self.current.first || waits) {
            // The application already holds this assignment. The member must acknowledge it anyway: the coordinator may have
            // revoked some of the partitions before it changed its plan, and waits for an acknowledgement.
            let fresh = std::mem::take(&mut self.current.fresh);
            self.current.owes_acknowledgement |= fresh;
            if fresh && !self.current.first {
                self.course = Course::default();
            }
            return fresh;
        }
        self.current.fresh = false;
        self.current.first = false;
        if !added.is_empty() {
            // A new member is assigned its partitions a few at a time, as other members give them up.
            self.pace.waits(self.network.now);
        }
        self.hand_out(NoticeKind::Assign, false, revoked, added);
        true
    }

    /// Before the member joins again, the application must give up the partitions that were lost with the membership.
    pub(super) fn drive_lost(&mut self) -> Progress {
        if self.notice.is_some() || self.current.epoch >= 0 || self.departure.is_some() || self.holdings.is_empty() {
            return false;
        }
        self.hand_out(NoticeKind::Leave, true, self.holdings.by_topic(), PartitionsByTopic::new());
        true
    }

    pub(super) fn hand_out(
        &mut self,
        kind: NoticeKind,
        lost: bool,
        revoked: PartitionsByTopic,
        added: PartitionsByTopic,
    ) {
        self.last_ticket += 1;
        let names = &self.topics.names;
        let mut owned = self.holdings.by_topic();
        for (id, numbers) in &revoked {
            if let Some(left) = owned.get_mut(id) {
                left.retain(|number| !numbers.contains(number));
            }
        }
        for (id, numbers) in &added {
            owned.entry(*id).or_default().extend(numbers);
        }
        owned.retain(|_, numbers| !numbers.is_empty());
        let held = self.holdings.names();
        let name = |id: &_| names.get(id).or_else(|| held.get(id)).map(String::as_str);
        let notice = Notice {
            ticket: self.last_ticket,
            kind,
            lost,
            revoked: self.holdings.named(&revoked),
            added: named(&added, name),
            owned: named(&owned, name),
            generation: self.current.epoch,
            member_id: self.member_id.clone(),
            protocol: String::new(),
            assignment: Vec::new(),
            topics: self
                .subscription
                .as_ref()
                .map(|wanted| wanted.topics.iter().cloned().collect())
                .unwrap_or_default(),
            course: if kind == NoticeKind::Assign { self.course } else { Course::default() },
        };
        self.notice = Some(Outstanding { ticket: self.last_ticket, kind, added, revoked, begun: false, until: None });
        self.network.actions.push(Action::Notify(notice));
    }

    /// The application's thread takes a notice. If the result is false, an event has overtaken the notice: the application must
    /// not carry it out, and it needs no [`Event::Done`](crate::member::Event::Done).
    pub fn begin(&mut self, ticket: u64) -> bool {
        let Some(outstanding) = self.notice.as_mut().filter(|outstanding| outstanding.ticket == ticket) else {
            return false;
        };
        if !outstanding.begun {
            outstanding.begun = true;
            self.holdings.add(&outstanding.added, &self.topics.names);
            if outstanding.kind == NoticeKind::Assign {
                self.course = Course::default();
            }
        }
        true
    }

    /// Cancels the notice, unless the application has begun it.
    pub(super) fn cancel_notice(&mut self) {
        if self.notice.as_ref().is_some_and(|outstanding| !outstanding.begun) {
            self.notice = None;
        }
    }

    pub(super) fn on_done(&mut self, ticket: u64) {
        if !self.begin(ticket) {
            return;
        }
        let until = self.network.now.saturating_add(LAST_COMMITS_MS);
        if let Some(outstanding) = &mut self.notice {
            outstanding.until.get_or_insert(until);
        }
        self.drive_done();
    }

    /// Ends a notice with which the application is done, once the commits of the revoked partitions are answered: the next owner
    /// starts at the committed offsets, and the coordinator accepts none after the member has acknowledged the revocation.
    pub(super) fn drive_done(&mut self) -> Progress {
        let Some(until) = self.notice.as_ref().and_then(|outstanding| outstanding.until) else { return false };
        if self.current.epoch >= 0 && self.network.now < until && self.is_committing_revoked() {
            return false;
        }
        let Some(Outstanding { kind, revoked, .. }) = self.notice.take() else { return false };
        self.holdings.remove(&revoked);
        if kind == NoticeKind::Assign && self.current.epoch >= 0 {
            self.current.owes_acknowledgement = true;
        }
        true
    }

    /// Whether a commit of a partition that the notice revokes is unanswered.
    fn is_committing_revoked(&self) -> bool {
        let Some(outstanding) = &self.notice else { return false };
        let is_revoked = |topic: &str, partition: i32| {
            let found = self.holdings.find(topic, partition);
            found
                .is_some_and(|(id, _)| outstanding.revoked.get(&id).is_some_and(|numbers| numbers.contains(&partition)))
        };
        let commits = self.commits.in_flight.iter().chain(&self.commits.waiting);
        commits.flat_map(|commit| &commit.offsets).any(|(offset, _)| is_revoked(&offset.topic, offset.partition))
    }

    /// The end of the wait for the last commits.
    pub(super) fn done_due(&self) -> Option<u64> {
        self.notice.as_ref().and_then(|outstanding| outstanding.until)
    }
}
