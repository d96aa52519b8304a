//! A member of the consumer protocol (KIP-848), in which the broker assigns, as a sans-I/O state machine:
//! `(now, event) -> actions`.
//!
//! It takes the events and returns the actions of the classic [`Membership`](super::Membership), so that one host drives either.
//! [`Event::Planned`], [`Event::Matched`] and their like have no effect: the broker plans, and matches expressions.
//!
//! # How it decides
//! An event changes the state. After each event `drive` runs all steps on the whole state until a round changes nothing.
//!
//! ```text
//! no epoch ── join (epoch 0) ──► epoch e ──┬─ assignment ── notice ── acknowledgement ─┐
//!     ▲                                    └───────────────◄───────────────────────────┘
//!     └── fenced, no answer for a session, max.poll.interval.ms, a late revocation, unsubscribed:
//!         the partitions are lost or given up first
//! ```
//!
//! # Guarantees
//! - One heartbeat is in flight at a time, except the one that leaves. An answer counts only in the membership (from join to
//!   loss) in which its request was sent.
//! - After a heartbeat that failed the next is a full request. Otherwise an assignment in a lost answer would be lost for good.
//! - A heartbeat names the partitions that the application holds at this moment, including those that it is giving up, and those
//!   that it may take before the answer. The coordinator hands a partition on only after a heartbeat without it.
//! - Partitions that were lost are given up by the application before the member joins again.
//! - At most [`MOST_HEARTBEATS`] heartbeats are sent within [`WINDOW_MS`].
//! - The epoch only grows, and begins anew at a join.

mod answers;
mod config;
mod heartbeat;
mod holdings;
mod leave;
mod offsets;
mod pace;
mod reconcile;
mod refusals;
mod revocation;
mod topics;

pub use config::ConsumerConfig;
pub use pace::{MOST_HEARTBEATS, WINDOW_MS};

use super::Stage;
use super::backoff::{Backoff, Jitter};
use super::commits::Commits;
use super::config::ConfigError;
use super::course::{Course, Trigger};
use super::event::{Action, Event, Partitions};
use super::fetches::Fetches;
use super::liveness::Liveness;
use super::machine::Machine;
use super::network::NetworkClient;
use heartbeat::Beats;
use holdings::{Holdings, PartitionsByTopic};
use leave::{Departure, Leaving};
use pace::Pace;
use reconcile::Outstanding;
use revocation::Revocation;
use std::collections::BTreeSet;
use topics::KnownTopicNames;

/// The subscription of the application.
#[derive(Debug, Clone)]
struct ConsumerSubscription {
    topics: BTreeSet<String>,
    expression: Option<String>,
    /// The number of this subscription; each change has a new one.
    number: u64,
}

/// The state of one membership. [`ConsumerMembership::leave_membership`] drops all of it at once, so no state of an old
/// membership is used in the next one.
#[derive(Debug)]
struct MembershipState {
    /// -1 in no epoch.
    epoch: i32,
    /// Whether a heartbeat of this membership is unanswered.
    in_flight: bool,
    /// Whether the next heartbeat must be full (contain every field), so that its answer contains the assignment.
    full: bool,
    /// The number of the subscription that was last sent, perhaps in the heartbeat in flight.
    reported: Option<u64>,
    /// The newest assignment.
    target: Option<PartitionsByTopic>,
    /// Set by a new assignment, until the member has compared it with the owned partitions. Without it, an assignment that is
    /// equal to them would not be acknowledged.
    fresh: bool,
    /// Set until the application receives its first assignment of this membership, which is a notice even if it is empty.
    first: bool,
    revocation: Revocation,
    /// Whether the next heartbeat must name the partitions that the application holds.
    owes_acknowledgement: bool,
    /// How many commits in a row were refused because of their epoch.
    stale: u32,
}

impl Default for MembershipState {
    fn default() -> Self {
        Self {
            epoch: -1,
            in_flight: false,
            full: true,
            reported: None,
            target: None,
            fresh: false,
            first: true,
            revocation: Revocation::default(),
            owes_acknowledgement: false,
            stale: 0,
        }
    }
}

/// A member of the consumer protocol. All times are milliseconds on the caller's clock; if it runs backwards, the latest time
/// seen counts.
#[derive(Debug)]
pub struct ConsumerMembership {
    config: ConsumerConfig,
    network: NetworkClient,
    topics: KnownTopicNames,
    subscription: Option<ConsumerSubscription>,
    subscriptions: u64,
    /// Empty only before the first answer of a broker that speaks version 0.
    member_id: String,
    /// The number of the membership: it grows whenever the epoch is left.
    membership: i32,
    current: MembershipState,
    beats: Beats,
    pace: Pace,
    /// The place of this member among the members of the group in this process, and their number.
    place: (u64, u64),
    holdings: Holdings,
    notice: Option<Outstanding>,
    last_ticket: u64,
    /// The course of the running rebalance.
    course: Course,
    /// The time at which the newest accepted heartbeat was sent.
    heard: u64,
    fencing: Option<(String, i32)>,
    commits: Commits,
    fetches: Fetches,
    /// Whether the broker did not know a topic id. The next request uses topic names.
    by_name: bool,
    liveness: Liveness,
    leaving: Option<Leaving>,
    departure: Option<Departure>,
    failed: bool,
    closed: bool,
}

impl ConsumerMembership {
    /// A member that is not subscribed yet.
    ///
    /// # Errors
    /// The first setting with which no member can be made.
    pub fn new(config: ConsumerConfig, now: u64) -> Result<Self, ConfigError> {
        config.check()?;
        let backoff = || Backoff::new(config.backoff_ms, config.max_backoff_ms);
        Ok(Self {
            network: NetworkClient::new(config.network(), now, Jitter::new(config.seed), backoff()),
            topics: KnownTopicNames::new(backoff()),
            subscription: None,
            subscriptions: 0,
            member_id: config.member_id.clone(),
            membership: 0,
            current: MembershipState::default(),
            beats: Beats::new(backoff(), backoff()),
            pace: Pace::new(config.longest_heartbeat_ms),
            place: (0, 1),
            holdings: Holdings::default(),
            notice: None,
            last_ticket: 0,
            course: Course::default(),
            heard: now,
            fencing: None,
            commits: Commits::new(backoff()),
            fetches: Fetches::new(backoff()),
            by_name: false,
            liveness: Liveness::new(now),
            leaving: None,
            departure: None,
            failed: false,
            closed: false,
            config,
        })
    }

    /// Takes an event. Returns the actions for the host, in the order in which it must carry them out.
    pub fn handle(&mut self, now: u64, event: Event) -> Vec<Action> {
        self.network.advance(now);
        match event {
            Event::Connected { conn, versions } => self.network.on_connected(conn, versions),
            Event::Disconnected { conn, reason, fatal } => self.on_disconnected(conn, &reason, fatal),
            Event::Received { conn, frame } => self.on_received(conn, frame),
            Event::Poll => self.liveness.stamp(self.network.now),
            Event::Subscribe { topics, .. } => self.on_subscribe(topics, None),
            Event::Unsubscribe => self.depart(false, self.config.request_timeout_ms),
            Event::Done { ticket, .. } => self.on_done(ticket),
            Event::Commit { id, offsets, timeout_ms } => self.on_commit_wanted(id, offsets, timeout_ms),
            Event::FetchOffsets { id, partitions, timeout_ms } => {
                self.fetches.take_in(id, partitions, timeout_ms, self.failed || self.closed, &mut self.network);
            }
            Event::Neighbours { place, count } => self.place = (u64::from(place), u64::from(count.max(1))),
            Event::GroupRebalances { generation } => self.on_neighbour(generation),
            Event::Close { timeout_ms } => self.depart(true, timeout_ms),
            Event::Tick
            | Event::Matched { .. }
            | Event::Planned { .. }
            | Event::PlanFailed { .. }
            | Event::Rejoin { .. } => {}
        }
        self.drive()
    }

    /// Subscribes to topics by name, and to those that a regular expression (RE2/J) of the broker matches with their whole names.
    pub fn subscribe(&mut self, now: u64, topics: Vec<String>, expression: Option<String>) -> Vec<Action> {
        self.network.advance(now);
        self.on_subscribe(topics, expression.filter(|expression| !expression.is_empty()));
        self.drive()
    }

    /// The time of the next call if no event comes before; `None` if only an event can cause an action.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        if self.closed {
            return None;
        }
        let single = [
            self.departure.as_ref().map(|departure| departure.deadline),
            self.leaving.as_ref().map(|leaving| leaving.deadline),
            self.heartbeat_due(),
            self.liveness_due(),
            self.done_due(),
            self.session_end(),
            self.revocation_due(),
            Some(self.topics.not_before()),
        ];
        self.network.earliest(single.into_iter().chain(self.commits.deadlines()).chain(self.fetches.deadlines()))
    }

    /// The stage of the member.
    #[must_use]
    pub fn stage(&self) -> Stage {
        match self.current.epoch {
            _ if self.closed => Stage::Closed,
            _ if self.failed => Stage::Failed,
            ..0 if self.current.in_flight => Stage::Joining,
            ..0 => Stage::Unjoined,
            _ if self.current.fresh || self.notice.is_some() || self.current.owes_acknowledgement => Stage::Reconciling,
            _ => Stage::Stable,
        }
    }

    /// Member id and epoch (-1 for none).
    #[must_use]
    pub fn identity(&self) -> (&str, i32) {
        (&self.member_id, self.current.epoch)
    }

    /// Member id and epoch for a transactional producer; `None` before the first epoch. Outside a membership they are those of
    /// the last one, so that a broker refuses the producer's offsets.
    #[must_use]
    pub fn fencing(&self) -> Option<(&str, i32)> {
        self.fencing.as_ref().map(|(member_id, epoch)| (member_id.as_str(), *epoch))
    }

    /// Whether the application is subscribed.
    #[must_use]
    pub fn is_subscribed(&self) -> bool {
        self.subscription.is_some()
    }

    /// The partitions that the application has taken.
    #[must_use]
    pub fn owned(&self) -> Partitions {
        self.holdings.partitions()
    }

    /// The end of the session, unless a heartbeat is answered before; `None` outside a membership.
    #[must_use]
    pub fn session_end(&self) -> Option<u64> {
        (self.current.epoch >= 0 && !self.closed).then(|| self.heard.saturating_add(self.config.session_timeout_ms))
    }

    /// Whether another member may already own the member's partitions. Then the application must stop reading.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.current.epoch < 0 && !self.holdings.is_empty()
    }

    fn on_subscribe(&mut self, topics: Vec<String>, expression: Option<String>) {
        if self.closed || self.failed || self.departure.as_ref().is_some_and(|departure| departure.closes) {
            return;
        }
        // A new subscription cancels the departure. The partitions that the application still gives up remain assigned, so the
        // member takes them again.
        self.departure = None;
        let topics = topics.into_iter().collect();
        if self.subscription.as_ref().is_some_and(|wanted| wanted.topics == topics && wanted.expression == expression) {
            return;
        }
        if self.subscription.is_none() {
            self.course.begin(self.network.now, Trigger::Joined);
            self.liveness.stamp(self.network.now);
        }
        self.subscriptions += 1;
        self.subscription = Some(ConsumerSubscription { topics, expression, number: self.subscriptions });
    }

    /// Ends the membership and drops its state. Partitions that the application still holds are lost.
    fn leave_membership(&mut self) {
        self.membership = self.membership.wrapping_add(1) & i32::MAX;
        self.current = MembershipState::default();
        self.cancel_notice();
    }
}
