//! Notices: changes for the application's thread, one at a time. Until the application begins a notice, an event may make it
//! void.

use super::course::{Course, Trigger};
use super::event::{Action, Notice, NoticeKind, Partitions};
use super::{Membership, RebalanceProtocol, TopicSubscription};
use crate::protocol::ErrorCode;
use std::collections::BTreeSet;

/// A notice that the application has not returned.
#[derive(Debug, Clone)]
pub(super) struct Outstanding {
    pub(super) notice: Notice,
    /// Whether the application has begun the notice. A begun notice is always carried out.
    pub(super) begun: bool,
    /// The epoch of the subscription that it was written for.
    epoch: u64,
}

impl Membership {
    pub(super) fn notify(&mut self, kind: NoticeKind, lost: bool, revoked: Partitions) {
        let mut after = self.ownership.clone();
        after.remove(&revoked);
        self.hand_out(kind, lost, revoked, Vec::new(), after.partitions(), Vec::new());
    }

    pub(super) fn notify_assignment(
        &mut self,
        revoked: Partitions,
        added: Partitions,
        owned: Partitions,
        bytes: Vec<u8>,
    ) {
        self.hand_out(NoticeKind::Assign, false, revoked, added, owned, bytes);
    }

    fn hand_out(
        &mut self,
        kind: NoticeKind,
        lost: bool,
        revoked: Partitions,
        added: Partitions,
        owned: Partitions,
        assignment: Vec<u8>,
    ) {
        // An assignment that is still unchecked belongs to the generation that ends here.
        self.generation.unchecked = None;
        self.last_ticket += 1;
        let subscription = self.subscription.as_ref();
        let notice = Notice {
            ticket: self.last_ticket,
            kind,
            lost,
            revoked,
            added,
            owned,
            generation: self.generation.id,
            member_id: self.member_id.clone(),
            protocol: if kind == NoticeKind::Assign { self.generation.protocol.clone() } else { String::new() },
            assignment,
            topics: subscription.map(|wanted| wanted.topics.iter().cloned().collect()).unwrap_or_default(),
            course: if kind == NoticeKind::Assign { self.course } else { Course::default() },
        };
        let epoch = subscription.map_or(0, |wanted| wanted.epoch);
        self.notice = Some(Outstanding { notice: notice.clone(), begun: false, epoch });
        self.network.actions.push(Action::Notify(notice));
    }

    /// The application's thread takes a notice. If the result is false, an event has overtaken the notice: the application must
    /// not carry it out, and it needs no [`Event::Done`](super::Event::Done).
    pub fn begin(&mut self, ticket: u64) -> bool {
        let generation = self.generation.id;
        let Some(outstanding) = self.notice.as_mut().filter(|outstanding| outstanding.notice.ticket == ticket) else {
            return false;
        };
        if !outstanding.begun {
            outstanding.begun = true;
            if outstanding.notice.kind == NoticeKind::Assign {
                self.ownership.add(&outstanding.notice.added);
                // Another member owns the released partitions that this assignment does not give back.
                self.ownership.forget_released();
                self.ownership.taken_in = generation;
                self.course = Course::default();
            }
        }
        true
    }

    /// Whether an eager member has an assignment that its application has not begun to take.
    pub(super) fn assignment_waits(&self) -> bool {
        let unbegun = |waits: &Outstanding| waits.notice.kind == NoticeKind::Assign && !waits.begun;
        self.config.rebalance_protocol() == RebalanceProtocol::Eager
            && (self.generation.unchecked.is_some() || self.notice.as_ref().is_some_and(unbegun))
    }

    /// Cancels the notice, unless the application has begun it.
    pub(super) fn cancel_notice(&mut self) {
        self.generation.unchecked = None;
        if self.notice.as_ref().is_some_and(|outstanding| !outstanding.begun) {
            self.notice = None;
        }
    }

    /// As [`Membership::cancel_notice`], for a notice that prepares JoinGroup.
    pub(super) fn cancel_preparation(&mut self) {
        if self.notice.as_ref().is_some_and(|outstanding| outstanding.notice.kind == NoticeKind::Prepare) {
            self.cancel_notice();
        }
    }

    pub(super) fn on_done(&mut self, ticket: u64, protocols: Vec<(String, Vec<u8>)>) {
        if !self.begin(ticket) {
            return;
        }
        let Some(Outstanding { notice, epoch, .. }) = self.notice.take() else { return };
        match notice.kind {
            NoticeKind::Prepare => {
                match self.config.rebalance_protocol() {
                    _ if notice.lost => self.ownership.remove(&notice.revoked),
                    RebalanceProtocol::Eager => self.ownership.release(&notice.revoked),
                    RebalanceProtocol::Cooperative => self.ownership.give_up(&notice.revoked),
                }
                self.take_protocols(epoch, protocols);
            }
            NoticeKind::Assign => {
                self.ownership.give_up(&notice.revoked);
                let cooperative = self.config.rebalance_protocol() == RebalanceProtocol::Cooperative;
                if cooperative && !notice.revoked.is_empty() && self.generation.id >= 0 {
                    self.want_rejoin(Trigger::Revoked, "partitions were given up for others to take");
                }
            }
            NoticeKind::Leave if notice.lost => self.ownership.remove(&notice.revoked),
            NoticeKind::Leave => self.ownership.give_up(&notice.revoked),
        }
    }

    fn take_protocols(&mut self, epoch: u64, protocols: Vec<(String, Vec<u8>)>) {
        let listed = protocols.iter().map(|(name, _)| name).eq(self.config.assignors.iter().map(|one| &one.name));
        if !listed {
            let message = "the metadata handed in is not that of the assignors listed, in their order";
            self.fail(ErrorCode::INCONSISTENT_GROUP_PROTOCOL, message, true);
            return;
        }
        // Metadata for an earlier subscription is not sent.
        if self.subscription.as_ref().map(|wanted| wanted.epoch) == Some(epoch) && self.may_be_prepared() {
            self.attempt.prepared = Some(protocols);
            self.attempt.commits_until =
                self.network.now + self.config.request_timeout_ms.min(self.config.rebalance_timeout_ms());
        }
    }

    pub(super) fn on_subscribe(&mut self, topics: Vec<String>, all_topics: bool) {
        if self.closed || self.failed || self.departure.as_ref().is_some_and(|departure| departure.closes) {
            return;
        }
        // A new subscription cancels the departure. The application still gives its partitions up, and gets them back only after
        // a JoinGroup, so even unchanged topics make the member join.
        let was_leaving = self.departure.take().is_some();
        let topics = topics.into_iter().collect();
        let keeps_partitions = self.config.rebalance_protocol() == RebalanceProtocol::Cooperative && !was_leaving;
        if keeps_partitions
            && let Some(wanted) = &mut self.subscription
            && wanted.topics == topics
        {
            wanted.all_topics = all_topics;
            return;
        }
        if self.subscription.is_none() {
            self.liveness.stamp(self.network.now);
        }
        self.want_topics(topics, all_topics);
    }

    pub(super) fn on_matched(&mut self, topics: Vec<String>) {
        if self.closed || self.failed || self.departure.is_some() {
            return;
        }
        let topics = topics.into_iter().collect();
        let Some(wanted) = &self.subscription else { return };
        if wanted.topics != topics {
            self.want_topics(topics, wanted.all_topics);
        }
    }

    fn want_topics(&mut self, topics: BTreeSet<String>, all_topics: bool) {
        self.subscriptions += 1;
        self.subscription = Some(TopicSubscription { topics, all_topics, epoch: self.subscriptions });
        self.attempt.prepared = None;
        self.cancel_preparation();
        self.want_rejoin(Trigger::Subscription, "the subscription has changed");
    }
}
