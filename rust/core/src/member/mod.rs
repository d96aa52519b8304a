//! A member of a consumer group as a sans-IO state machine: `(now, event) -> actions`.
//!
//! There is no socket, clock, thread or randomness inside. The host (a thread with sockets, or a simulation) hands in
//! [`Event`]s with the time in milliseconds and does what the [`Action`]s say, in their order; when nothing happens it
//! calls again at [`Membership::next_deadline`].
//!
//! # How it decides
//! State is changed by events only; after each of them `drive` looks at the whole state and does
//! whatever has become possible: find the coordinator, connect, prepare, join, plan, sync, beat, commit, leave. Nothing is
//! remembered as "what comes next", so an event in an unexpected moment cannot leave a step out or do it twice.
//!
//! # Who it talks to
//! Three connections at most: one to any broker for Metadata and FindCoordinator, and two to the coordinator, since a broker
//! serves the requests of a connection one by one and a JoinGroup may be parked for minutes: group (JoinGroup, SyncGroup,
//! Heartbeat) and offsets (OffsetCommit, OffsetFetch, LeaveGroup).
//!
//! # Who it works for
//! Callbacks and everything that touches the data path happen in the application's thread. It is told by a [`Notice`], one
//! at a time, which it takes with [`Membership::begin`] and returns with [`Event::Done`]. A notice that was overtaken
//! before it was begun (the group expelled the member, say) is void: `begin` says so, and nothing must be done.
//!
//! # What it never does
//! - Believe an answer to somebody it no longer is: each is compared with the member id and generation of its request.
//! - Commit between JoinGroup and the answer to SyncGroup, two commits at a time, or for a partition that it has not owned
//!   without a break since the commit was asked for. A commit in flight is never overtaken by closing its connection.
//! - Repeat anything without a back-off, except the one repetition that the protocol asks for.
//! - Believe a length: frames are bounded before they are kept, and whatever is in them by their bytes.

mod audit;
mod backoff;
mod commits;
mod config;
mod connections;
mod discovery;
mod errors;
mod event;
mod fetches;
mod heartbeat;
mod join;
mod leader;
mod leave;
mod liveness;
mod metadata;
mod network;
mod notices;
mod ownership;
mod session;
mod share;
mod sync;
mod watch;

pub use config::{Assignor, Config, ConfigError, Converted, RebalanceProtocol};
pub use event::{
    Action, CommitOffset, Event, FetchedOffset, Level, Notice, NoticeKind, Partitions, PlanMember, PlanTopic, RackSet,
    Role,
};

use audit::Audit;
use backoff::{Backoff, Jitter};
use commits::Commits;
use connections::{Connections, Stamp};
use discovery::Discovery;
use fetches::Fetches;
use heartbeat::Heartbeat;
use leader::{Planning, Watched};
use leave::{Departure, Farewell};
use liveness::Liveness;
use metadata::Cluster;
use notices::Outstanding;
use ownership::Ownership;
use session::Session;
use share::{LeftOut, Unchecked};
use std::collections::BTreeSet;

/// Where the member is on its way into a generation.
#[derive(Debug)]
enum Phase {
    /// In no generation, or in one that it has to leave.
    Unjoined,
    /// JoinGroup is unanswered.
    Joining,
    /// It leads, and the plan is not there yet.
    Planning(Planning),
    /// SyncGroup is to be sent or unanswered.
    Syncing(Option<Vec<(String, Vec<u8>)>>),
    /// It has its share.
    Stable,
}

/// Where the member is, for hosts that show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// In no generation.
    Unjoined,
    /// JoinGroup is unanswered.
    Joining,
    /// It leads, and the plan is not there yet.
    Planning,
    /// SyncGroup is to be sent or unanswered.
    Syncing,
    /// It has its share.
    Stable,
    /// Out of the group for good.
    Failed,
    /// Left.
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
            Self::Failed => "failed",
            Self::Closed => "closed",
        }
    }
}

/// Who the member is in the group.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Identity {
    /// Empty for a newcomer.
    member_id: String,
    /// -1 in no generation.
    generation: i32,
    /// The assignor of the generation.
    protocol: String,
    leads: bool,
}

impl Default for Identity {
    fn default() -> Self {
        Self { member_id: String::new(), generation: -1, protocol: String::new(), leads: false }
    }
}

/// What the application wants to read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Subscription {
    topics: BTreeSet<String>,
    all_topics: bool,
    /// Counts changes.
    epoch: u64,
}

/// A member of a consumer group. All times are milliseconds on the caller's clock; if it runs backwards, the latest time
/// seen counts.
#[derive(Debug)]
pub struct Membership {
    config: Config,
    now: u64,
    jitter: Jitter,
    out: Vec<Action>,
    net: Connections,
    discovery: Discovery,
    cluster: Cluster,
    subscription: Option<Subscription>,
    subscriptions: u64,
    identity: Identity,
    /// Member id and generation of the newest generation that the member was in.
    fencing: Option<(String, i32)>,
    session: Session,
    phase: Phase,
    /// Why a Stable member wants to join again.
    rejoin: Option<String>,
    /// Between the first JoinGroup and the answer to SyncGroup: the coordinator may count it to either generation.
    rejoining: bool,
    join_backoff: Backoff,
    /// When it began to want to join.
    join_wanted_at: Option<u64>,
    /// When JoinGroup was sent last.
    join_sent_at: u64,
    /// The assignors' metadata, once the application has prepared.
    prepared: Option<Vec<(String, Vec<u8>)>>,
    /// The subscription that the last JoinGroup was for.
    joined_epoch: Option<u64>,
    /// Until when JoinGroup waits for the commits that the application asked for while it prepared.
    commits_until: u64,
    /// Stands behind the metadata: makes it another one for the broker, which is the only way for a follower to force a
    /// rebalance, and says nothing to a leader, who ignores what follows the fields it knows.
    nonce: u32,
    notice: Option<Outstanding>,
    last_ticket: u64,
    ownership: Ownership,
    /// The generation in which the share was last taken.
    owned_generation: i32,
    /// The newest generation whose leader was told what this member owns.
    claimed_in: i32,
    heartbeat: Heartbeat,
    commits: Commits,
    fetches: Fetches,
    liveness: Liveness,
    /// What the leader watches.
    watched: Option<Watched>,
    converted: bool,
    /// A share that the application has not been told of yet.
    unchecked: Option<Unchecked>,
    left_out: LeftOut,
    audit: Audit,
    farewell: Option<Farewell>,
    departure: Option<Departure>,
    failed: bool,
    closed: bool,
}

impl Membership {
    /// A member that is not subscribed yet.
    ///
    /// # Errors
    /// The first setting that makes no member.
    pub fn new(config: Config, now: u64) -> Result<Self, ConfigError> {
        config.check()?;
        let backoff = || Backoff::new(config.backoff_ms, config.max_backoff_ms);
        Ok(Self {
            now,
            jitter: Jitter::new(config.seed),
            out: Vec::new(),
            net: Connections::default(),
            discovery: Discovery::new(backoff(), backoff()),
            cluster: Cluster::default(),
            subscription: None,
            subscriptions: 0,
            identity: Identity::default(),
            fencing: None,
            session: Session::default(),
            phase: Phase::Unjoined,
            rejoin: None,
            rejoining: false,
            join_backoff: backoff(),
            join_wanted_at: None,
            join_sent_at: 0,
            prepared: None,
            joined_epoch: None,
            commits_until: 0,
            nonce: 0,
            notice: None,
            last_ticket: 0,
            ownership: Ownership::default(),
            owned_generation: -1,
            claimed_in: -1,
            heartbeat: Heartbeat::default(),
            commits: Commits::new(backoff()),
            fetches: Fetches::new(backoff()),
            liveness: Liveness::new(now),
            watched: None,
            converted: false,
            unchecked: None,
            left_out: LeftOut::default(),
            audit: Audit::Over,
            farewell: None,
            departure: None,
            failed: false,
            closed: false,
            config,
        })
    }

    /// Takes an event; what is to be done about it, in this order.
    pub fn handle(&mut self, now: u64, event: Event) -> Vec<Action> {
        self.now = self.now.max(now);
        match event {
            Event::Connected { conn, versions } => self.on_connected(conn, versions),
            Event::Disconnected { conn, reason, fatal } => self.on_disconnected(conn, &reason, fatal),
            Event::Received { conn, bytes } => self.on_received(conn, bytes),
            Event::Tick => {}
            Event::Poll => self.on_poll(),
            Event::Subscribe { topics, all_topics } => self.on_subscribe(topics, all_topics),
            Event::Matched { topics } => self.on_matched(topics),
            Event::Unsubscribe => self.depart(false, self.config.request_timeout_ms),
            Event::Done { ticket, protocols } => self.on_done(ticket, protocols),
            Event::Planned { ticket, assignments } => self.on_planned(ticket, assignments),
            Event::PlanFailed { ticket, message } => self.on_plan_failed(ticket, &message),
            Event::Commit { id, offsets, timeout_ms } => self.on_commit_wanted(id, offsets, timeout_ms),
            Event::FetchOffsets { id, partitions, timeout_ms } => self.on_fetch_wanted(id, partitions, timeout_ms),
            Event::Neighbours { place, count } => self.heartbeat.spread(place, count, &self.config),
            Event::GroupRebalances { generation } => self.on_group_rebalances(generation),
            Event::Rejoin { reason } => self.on_rejoin_wanted(&reason),
            Event::Close { timeout_ms } => self.depart(true, timeout_ms),
        }
        self.drive();
        std::mem::take(&mut self.out)
    }

    /// Does whatever has become possible. What one step did may allow an earlier one, so it starts over until a round
    /// changes nothing.
    fn drive(&mut self) {
        // Each round that goes on has put out something, and every step that puts something out makes itself impossible
        // until an answer comes: the bound is a guard against a defect here, not a limit that is ever met.
        for _ in 0..64 {
            if self.closed {
                return;
            }
            let before = self.out.len();
            self.drive_network();
            self.drive_session();
            self.drive_liveness();
            self.expire_farewell();
            self.drive_departure();
            self.drive_discovery();
            self.drive_join();
            self.drive_metadata();
            self.drive_share();
            self.drive_plan();
            self.drive_sync();
            self.drive_heartbeat();
            self.drive_commits();
            self.drive_fetches();
            self.drive_audit();
            self.drive_farewell();
            if self.out.len() == before {
                return;
            }
        }
    }

    /// When to call again if nothing happens; `None` when only an event can change anything.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        if self.closed {
            return None;
        }
        // Whatever was due by now has been done, or waits for something else.
        let later = |&at: &u64| at > self.now;
        let network =
            self.net.iter().flat_map(|(_, connection)| [connection.deadline(), Some(connection.muted_until())]);
        let departure = self.departure.as_ref().map(|departure| departure.deadline);
        let farewell = self.farewell.as_ref().map(|farewell| farewell.deadline);
        let single = [
            departure,
            farewell,
            self.wants_to_join().then(|| self.join_backoff.not_before()),
            self.wants_to_join().then_some(self.commits_until),
            self.heartbeat_due(),
            self.metadata_due(),
            self.share_deadline(),
            self.liveness_due(),
            self.session_end(),
        ];
        network
            .chain(single)
            .chain(self.discovery.deadlines())
            .chain(self.commits.deadlines())
            .chain(self.fetches.deadlines())
            .flatten()
            .filter(later)
            .min()
    }

    /// Where the member is.
    #[must_use]
    pub fn stage(&self) -> Stage {
        match self.phase {
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
        (&self.identity.member_id, self.identity.generation)
    }

    /// Member id and generation for a transactional producer; `None` before the first generation. A member outside a generation
    /// keeps the last ones: a broker refuses their offsets, whereas it accepts offsets without a member id from any client.
    #[must_use]
    pub fn fencing(&self) -> Option<(&str, i32)> {
        self.fencing.as_ref().map(|(member_id, generation)| (member_id.as_str(), *generation))
    }

    /// Whether the application is subscribed.
    #[must_use]
    pub fn is_subscribed(&self) -> bool {
        self.subscription.is_some()
    }

    /// How the member hands partitions on: the highest protocol that all its assignors have in common.
    #[must_use]
    pub fn rebalance_protocol(&self) -> RebalanceProtocol {
        self.config.rebalance_protocol()
    }

    /// Whether the member leads its generation.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.identity.leads
    }

    /// The assignor of the generation; empty in none.
    #[must_use]
    pub fn protocol(&self) -> &str {
        &self.identity.protocol
    }

    /// What the member owns, as far as its application has taken it.
    #[must_use]
    pub fn owned(&self) -> Partitions {
        self.ownership.partitions()
    }

    fn stamp(&self) -> Stamp {
        Stamp { member_id: self.identity.member_id.clone(), generation: self.identity.generation }
    }

    fn is_current(&self, stamp: &Stamp) -> bool {
        stamp.member_id == self.identity.member_id && stamp.generation == self.identity.generation
    }

    fn info(&mut self, message: String) {
        self.out.push(Action::Log { level: Level::Info, message });
    }

    fn warn(&mut self, message: String) {
        self.out.push(Action::Log { level: Level::Warning, message });
    }
}
