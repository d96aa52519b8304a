//! A member of a consumer group as a sans-I/O state machine: `(now, event) -> actions`.
//!
//! There is no socket, clock, thread or randomness inside. The host (a thread with sockets, or a simulation) hands in
//! [`Event`]s with the time in milliseconds and carries out the [`Action`]s in their order. Without an event, the host calls
//! again at [`Membership::next_deadline`].
//!
//! # How it decides
//! An event changes the state. After each event `drive` runs all steps on the whole state: find the coordinator, connect,
//! prepare, join, plan, sync, send a heartbeat, commit, leave. A step does its part if that is possible now and returns whether
//! it changed anything; `drive` ends with a round that changed nothing. No step is remembered as the next one, so an event at an
//! unexpected moment can neither skip a step nor repeat one.
//!
//! # Connections
//! The member has three at most: one to any broker for Metadata and FindCoordinator, and two to the coordinator. A broker serves
//! the requests of a connection one by one and may park a JoinGroup for minutes, so the group's requests (JoinGroup, SyncGroup,
//! Heartbeat) and those about offsets (OffsetCommit, OffsetFetch, LeaveGroup) have a connection each.
//!
//! # The application's thread
//! The application's thread runs the callbacks and everything that touches the data path. The member asks for such work with a
//! [`Notice`], one at a time. The application takes a notice with [`Membership::begin`] and returns it with [`Event::Done`]. An
//! event may overtake a notice before it is begun (the group expels the member, for example); then `begin` returns false, and the
//! application must not carry out any part of the notice.
//!
//! # Guarantees
//! - An answer counts only if its request was sent with the present member id and generation.
//! - No commit is sent between JoinGroup and the answer to SyncGroup. For a member that departs, this time also ends with an
//!   answer of REBALANCE_IN_PROGRESS to either request, and as soon as the member does not wait for the answer to JoinGroup any
//!   more. One commit is in flight at a time. An offset is committed only for a partition that the member has owned without a
//!   break since the commit was asked for, or has given up since without the coordinator's knowledge. The connection of a commit
//!   in flight stays open until its answer, so that no newer commit overtakes it.
//! - Each repetition waits for a back-off, except the one that the protocol asks for.
//! - The memory that the member keeps of an answer is bounded by the bytes of its frame, and the host bounds those.

mod answers;
mod assigned;
mod audit;
mod backoff;
mod commits;
mod config;
mod connections;
mod consumer_protocol;
mod course;
mod discovery;
mod errors;
mod event;
mod fetches;
mod heartbeat;
mod join;
mod leader;
mod leave;
mod liveness;
mod machine;
mod metadata;
mod network;
mod notices;
mod ownership;
mod refresh;
mod session;
mod sync;

pub use config::{Assignor, Config, ConfigError, Converted, RebalanceProtocol};
pub use consumer_protocol::{ConsumerConfig, ConsumerMembership, MOST_HEARTBEATS, WINDOW_MS};
pub use course::{Course, Trigger};
pub use event::{
    Action, CommitOffset, Event, FetchedOffset, Level, Notice, NoticeKind, Partitions, PlanMember, PlanTopic, RackSet,
    Role,
};

use assigned::{Missing, Unchecked};
use audit::Audit;
use backoff::{Backoff, Jitter};
use commits::Commits;
use fetches::Fetches;
use heartbeat::{Heartbeat, HeartbeatTurn};
use join::Attempt;
use leader::{Planning, Watched};
use leave::{Departure, PendingLeave};
use liveness::Liveness;
use machine::Machine;
use metadata::Cluster;
use network::NetworkClient;
use notices::Outstanding;
use ownership::OwnedPartitions;
use session::Session;
use std::collections::BTreeSet;

/// The phases of a member on the way into a generation.
#[derive(Debug)]
enum Phase {
    /// The member is in no generation, or in one that it must leave.
    Unjoined,
    /// JoinGroup is unanswered.
    Joining,
    /// The member leads, and its assignor has not made the plan yet.
    Planning(Planning),
    /// SyncGroup is to be sent with these assignments; `None` once it is sent and unanswered.
    Syncing(Option<Vec<(String, Vec<u8>)>>),
    /// The member has its assignment.
    Stable,
}

/// The state of one generation. [`Membership::leave_generation`] drops all of it at once, so no state of an old generation is
/// used in the next one.
#[derive(Debug)]
struct Generation {
    /// -1 in no generation.
    id: i32,
    /// The assignor that the group chose.
    protocol: String,
    leads: bool,
    phase: Phase,
    /// Why a Stable member joins again.
    rejoin: Option<String>,
    /// Set from the first JoinGroup to the answer to SyncGroup. In between the coordinator may count the member in either
    /// generation.
    rejoining: bool,
    session: Session,
    heartbeat: Heartbeat,
    /// The topics that the leader watches.
    watched: Option<Watched>,
    /// An assignment that has not been handed to the application yet.
    unchecked: Option<Unchecked>,
    missing: Missing,
    audit: Audit,
}

impl Default for Generation {
    fn default() -> Self {
        Self {
            id: -1,
            protocol: String::new(),
            leads: false,
            phase: Phase::Unjoined,
            rejoin: None,
            rejoining: false,
            session: Session::default(),
            heartbeat: Heartbeat::default(),
            watched: None,
            unchecked: None,
            missing: Missing::default(),
            audit: Audit::Over,
        }
    }
}

/// The parts of the membership that the member leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaves {
    /// The generation: the member joins again under its member id.
    Generation,
    /// The member id too: the coordinator does not accept it any more.
    MemberId,
    /// The group: the member unsubscribed, closed, expired or failed. The metadata prepared for the next JoinGroup goes too.
    Group,
}

/// The stages of a member, for hosts that show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The member is in no generation.
    Unjoined,
    /// JoinGroup is unanswered.
    Joining,
    /// The member leads, and its assignor has not made the plan yet.
    Planning,
    /// SyncGroup is to be sent or unanswered.
    Syncing,
    /// The member has its assignment.
    Stable,
    /// The application is taking a new assignment, or the member has not acknowledged it to the coordinator yet (KIP-848).
    Reconciling,
    /// The member is out of the group for good.
    Failed,
    /// The member has left, and its connections are closed.
    Closed,
}

impl Stage {
    /// In lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unjoined => "unjoined",
            Self::Joining => "joining",
            Self::Planning => "planning",
            Self::Syncing => "syncing",
            Self::Stable => "stable",
            Self::Reconciling => "reconciling",
            Self::Failed => "failed",
            Self::Closed => "closed",
        }
    }
}

/// The topics that the application subscribes to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TopicSubscription {
    topics: BTreeSet<String>,
    all_topics: bool,
    /// The number of this subscription: each change makes a new one.
    epoch: u64,
}

/// A member of a consumer group. All times are milliseconds on the caller's clock; if it runs backwards, the latest time
/// seen counts.
#[derive(Debug)]
pub struct Membership {
    config: Config,
    network: NetworkClient,
    cluster: Cluster,
    subscription: Option<TopicSubscription>,
    subscriptions: u64,
    /// Empty until the coordinator has given one.
    member_id: String,
    generation: Generation,
    attempt: Attempt,
    /// The course of the running rebalance.
    course: Course,
    /// Member id and generation of the newest generation that the member was in.
    fencing: Option<(String, i32)>,
    notice: Option<Outstanding>,
    last_ticket: u64,
    ownership: OwnedPartitions,
    turn: HeartbeatTurn,
    commits: Commits,
    fetches: Fetches,
    liveness: Liveness,
    /// Whether the application knows that the brokers' own assignor serves the group.
    converted: bool,
    leave_group: Option<PendingLeave>,
    departure: Option<Departure>,
    failed: bool,
    closed: bool,
}

/// Whether a step has changed the member.
type Progress = bool;

impl Membership {
    /// A member that is not subscribed yet.
    ///
    /// # Errors
    /// The first setting with which no member can be made.
    pub fn new(config: Config, now: u64) -> Result<Self, ConfigError> {
        config.check()?;
        let backoff = || Backoff::new(config.backoff_ms, config.max_backoff_ms);
        Ok(Self {
            network: NetworkClient::new(config.network(), now, Jitter::new(config.seed), backoff()),
            cluster: Cluster::default(),
            subscription: None,
            subscriptions: 0,
            member_id: String::new(),
            generation: Generation::default(),
            attempt: Attempt::new(backoff()),
            course: Course::default(),
            fencing: None,
            notice: None,
            last_ticket: 0,
            ownership: OwnedPartitions::default(),
            turn: HeartbeatTurn::default(),
            commits: Commits::new(backoff()),
            fetches: Fetches::new(backoff()),
            liveness: Liveness::new(now),
            converted: false,
            leave_group: None,
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
            Event::Tick => {}
            Event::Poll => self.on_poll(),
            Event::Subscribe { topics, all_topics } => self.on_subscribe(topics, all_topics),
            Event::Matched { topics } => self.on_matched(topics),
            Event::Unsubscribe => self.depart(false, self.config.request_timeout_ms),
            Event::Done { ticket, protocols } => self.on_done(ticket, protocols),
            Event::Planned { ticket, assignments } => self.on_planned(ticket, assignments),
            Event::PlanFailed { ticket, message } => self.on_plan_failed(ticket, &message),
            Event::Commit { id, offsets, timeout_ms } => self.on_commit_wanted(id, offsets, timeout_ms),
            Event::FetchOffsets { id, partitions, timeout_ms } => {
                self.fetches.take_in(id, partitions, timeout_ms, self.failed || self.closed, &mut self.network);
            }
            Event::Neighbours { place, count } => self.turn = HeartbeatTurn::new(place, count, &self.config),
            Event::GroupRebalances { generation } => self.on_group_rebalances(generation),
            Event::Rejoin { reason } => self.on_rejoin_wanted(&reason),
            Event::Close { timeout_ms } => self.depart(true, timeout_ms),
        }
        self.drive()
    }

    /// The time of the next call if no event comes before; `None` if only an event can cause an action.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        if self.closed {
            return None;
        }
        let departure = self.departure.as_ref().map(|departure| departure.deadline);
        let leave_group = self.leave_group.as_ref().map(|pending| pending.deadline);
        let single = [
            departure,
            self.departure_rejoins_until(),
            leave_group,
            self.wants_to_join().then(|| self.attempt.backoff.not_before()),
            self.wants_to_join().then_some(self.attempt.commits_until),
            self.heartbeat_due(),
            self.metadata_due(),
            self.assignment_deadline(),
            self.liveness_due(),
            self.session_end(),
        ];
        self.network.earliest(single.into_iter().chain(self.commits.deadlines()).chain(self.fetches.deadlines()))
    }

    /// The stage of the member.
    #[must_use]
    pub fn stage(&self) -> Stage {
        match self.generation.phase {
            _ if self.closed => Stage::Closed,
            _ if self.failed => Stage::Failed,
            Phase::Unjoined => Stage::Unjoined,
            Phase::Joining => Stage::Joining,
            Phase::Planning(_) => Stage::Planning,
            Phase::Syncing(_) => Stage::Syncing,
            Phase::Stable => Stage::Stable,
        }
    }

    /// Member id (empty for none) and generation (-1 for none).
    #[must_use]
    pub fn identity(&self) -> (&str, i32) {
        (&self.member_id, self.generation.id)
    }

    /// Member id and generation for a transactional producer; `None` before the first generation. Outside a generation they are
    /// those of the last one, so that a broker refuses the producer's offsets. Without a member id a broker would accept them.
    #[must_use]
    pub fn fencing(&self) -> Option<(&str, i32)> {
        self.fencing.as_ref().map(|(member_id, generation)| (member_id.as_str(), *generation))
    }

    /// Whether the application is subscribed.
    #[must_use]
    pub fn is_subscribed(&self) -> bool {
        self.subscription.is_some()
    }

    /// The protocol by which the member gives partitions up: the highest one that all its assignors support.
    #[must_use]
    pub fn rebalance_protocol(&self) -> RebalanceProtocol {
        self.config.rebalance_protocol()
    }

    /// Whether the member leads its generation.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.generation.leads
    }

    /// The assignor of the generation; empty in none.
    #[must_use]
    pub fn protocol(&self) -> &str {
        &self.generation.protocol
    }

    /// The partitions that the application has taken.
    #[must_use]
    pub fn owned(&self) -> Partitions {
        self.ownership.partitions()
    }
}
