//! What goes into a member, and what comes out.

use crate::protocol::ErrorCode;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Topics with partitions, both ascending and without repeats.
pub type Partitions = Vec<(String, Vec<i32>)>;

/// Racks, ascending and without repeats. Partitions whose replicas are in the same racks share one.
pub type RackSet = Arc<[Arc<str>]>;

/// What one connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Metadata and FindCoordinator, to any broker.
    Bootstrap,
    /// JoinGroup, SyncGroup and Heartbeat, to the coordinator.
    Group,
    /// OffsetCommit, OffsetFetch and LeaveGroup, to the coordinator: a parked JoinGroup must not hold them up.
    Offsets,
}

impl Role {
    /// For logs and thread names.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bootstrap => "bootstrap",
            Self::Group => "group",
            Self::Offsets => "offsets",
        }
    }
}

/// An offset to commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitOffset {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The next offset to read.
    pub offset: i64,
    /// The leader epoch of the last record read, or -1.
    pub leader_epoch: i32,
    /// Anything the application wants to remember.
    pub metadata: Option<String>,
}

/// A committed offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedOffset {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The next offset to read; -1 when nothing is committed.
    pub offset: i64,
    /// The leader epoch of the last record read, or -1.
    pub leader_epoch: i32,
    /// As committed.
    pub metadata: Option<String>,
    /// Success or why not.
    pub code: ErrorCode,
}

/// What happens to a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A connection asked for is open, authenticated, and its broker speaks these versions.
    Connected {
        /// As in [`Action::Connect`].
        conn: u64,
        /// API key to lowest and highest version, as ApiVersions answered.
        versions: BTreeMap<i16, (i16, i16)>,
    },
    /// A connection asked for could not be made, or is gone. Unknown ones, and those that the member closed, are ignored.
    Disconnected {
        /// The connection.
        conn: u64,
        /// For logs and errors.
        reason: String,
        /// Set where trying again is no use: TLS or SASL refused us.
        fatal: Option<ErrorCode>,
    },
    /// Bytes came, cut anywhere.
    Received {
        /// The connection.
        conn: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Only time has passed.
    Tick,
    /// The application asked for records: it lives.
    Poll,
    /// The application subscribes. An eager member gives its share up even if these are the topics that it had, as the
    /// clients do; a cooperative one then keeps it.
    Subscribe {
        /// Names, not expressions.
        topics: Vec<String>,
        /// Whether the names come from expressions, so that all topics of the cluster matter.
        all_topics: bool,
    },
    /// The topics that a subscription by expressions stands for now, as an answer to [`Action::Topics`]. Without a change
    /// nothing happens.
    Matched {
        /// Names, those that are subscribed to by name among them.
        topics: Vec<String>,
    },
    /// The application gives its subscription up.
    Unsubscribe,
    /// A [`Notice`] has been obeyed.
    Done {
        /// Of the notice.
        ticket: u64,
        /// For [`NoticeKind::Prepare`]: each assignor's metadata, as the config's list has them. Else empty.
        protocols: Vec<(String, Vec<u8>)>,
    },
    /// The plan that [`Action::Plan`] asked for.
    Planned {
        /// Of the action.
        ticket: u64,
        /// Each member's assignment.
        assignments: Vec<(String, Vec<u8>)>,
    },
    /// The assignor failed.
    PlanFailed {
        /// Of the action.
        ticket: u64,
        /// What it said.
        message: String,
    },
    /// Offsets to commit.
    Commit {
        /// The caller's, repeated in [`Action::CommitDone`].
        id: u64,
        /// What to commit.
        offsets: Vec<CommitOffset>,
        /// For how long to try.
        timeout_ms: u64,
    },
    /// Committed offsets wanted.
    FetchOffsets {
        /// The caller's, repeated in [`Action::OffsetsFetched`].
        id: u64,
        /// Of which partitions.
        partitions: Partitions,
        /// For how long to try.
        timeout_ms: u64,
    },
    /// Members of the group that share a process tell each other when it rebalances, so that they hear of it as soon as one
    /// of them does: their heartbeats are spread over the interval.
    Neighbours {
        /// Which of them this one is, from 0.
        place: u32,
        /// How many they are with this one.
        count: u32,
    },
    /// [`Action::GroupRebalances`] of another member of the group. It is no more than a hint: the next heartbeat is sent now,
    /// and only its answer counts.
    GroupRebalances {
        /// As in the action.
        generation: i32,
    },
    /// The host wants the group to be planned anew: the lags have changed, say.
    Rejoin {
        /// Told to the broker.
        reason: String,
    },
    /// The application goes.
    Close {
        /// How long it may take in all.
        timeout_ms: u64,
    },
}

/// What the application's thread has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeKind {
    /// Before the member joins: give `revoked` up and write the assignors' metadata.
    Prepare,
    /// A new share: give `revoked` up, then take `added`.
    Assign,
    /// Before the member leaves, or after it failed for good: give `revoked` up.
    Leave,
}

/// A change for the application's thread. At most one is outstanding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Unique, ascending.
    pub ticket: u64,
    /// What for.
    pub kind: NoticeKind,
    /// Whether somebody else may own `revoked` already: `on_lost` rather than `on_revoke`, and nothing is committed.
    pub lost: bool,
    /// What to give up.
    pub revoked: Partitions,
    /// What is new.
    pub added: Partitions,
    /// What is owned once the notice has been obeyed.
    pub owned: Partitions,
    /// The generation the member is in, -1 when in none.
    pub generation: i32,
    /// The member's id, empty when it has none.
    pub member_id: String,
    /// For [`NoticeKind::Assign`]: the name of the assignor whose plan it is.
    pub protocol: String,
    /// For [`NoticeKind::Assign`]: the assignment as the broker sent it.
    pub assignment: Vec<u8>,
    /// The topics subscribed to.
    pub topics: Vec<String>,
}

/// A member as its leader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanMember {
    /// Its id.
    pub member_id: String,
    /// Set for static members.
    pub group_instance_id: Option<String>,
    /// What it joined with.
    pub metadata: Vec<u8>,
}

/// A topic as a leader plans with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanTopic {
    /// Its name.
    pub name: String,
    /// How many partitions it has.
    pub partitions: u32,
    /// The racks that have a replica, for each partition; empty if no broker has a rack.
    pub racks: Vec<RackSet>,
}

/// How urgent a line of log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What happens.
    Info,
    /// What somebody should look at.
    Warning,
}

/// What a member wants done, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Open a connection, with its handshakes, and answer [`Event::Connected`] or [`Event::Disconnected`].
    Connect {
        /// The number it goes by; never used again.
        conn: u64,
        /// -1 for a bootstrap server.
        node_id: i32,
        /// Where.
        host: String,
        /// Where.
        port: i32,
        /// What for.
        role: Role,
    },
    /// Send these bytes, a whole frame with its length.
    Send {
        /// On which connection.
        conn: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Close a connection, or stop opening it. Nothing more is heard of it.
    Close {
        /// Which.
        conn: u64,
        /// For logs.
        reason: String,
    },
    /// All topics of the cluster: match the expressions, and answer [`Event::Matched`].
    Topics {
        /// Name, and whether it belongs to Kafka itself.
        topics: Vec<(String, bool)>,
    },
    /// For the application's thread.
    Notify(Notice),
    /// Compute a plan, away from the thread that drives the member, and answer [`Event::Planned`] or
    /// [`Event::PlanFailed`].
    Plan {
        /// Unique, ascending.
        ticket: u64,
        /// The generation that is being formed.
        generation: i32,
        /// The assignor that the group chose.
        protocol: String,
        /// Everybody.
        members: Vec<PlanMember>,
        /// Every existing topic that anybody subscribes to.
        topics: Vec<PlanTopic>,
    },
    /// What became of a commit.
    CommitDone {
        /// Of the event.
        id: u64,
        /// Success, or why none of it was committed.
        code: ErrorCode,
        /// Each partition's own result, where the broker gave one.
        partitions: Vec<(String, i32, ErrorCode)>,
        /// Partitions left out because the member no longer owned them.
        dropped: Vec<(String, i32)>,
    },
    /// What became of a fetch of committed offsets.
    OffsetsFetched {
        /// Of the event.
        id: u64,
        /// Success, or why there is nothing.
        code: ErrorCode,
        /// The offsets.
        offsets: Vec<FetchedOffset>,
    },
    /// The coordinator says that a rebalance has begun. Told once a generation.
    GroupRebalances {
        /// The one that it ends.
        generation: i32,
    },
    /// The application has not polled for `max.poll.interval.ms`: the member is out of the group until it does, and what it
    /// owned is lost then.
    MaxPollExceeded {
        /// The setting.
        interval_ms: u64,
    },
    /// The brokers' own assignor serves the group (KIP-848). Told once each time the group is converted.
    ConvertedByBroker {
        /// What happened and what to do.
        message: String,
    },
    /// To be raised in the application's thread; the member carries on.
    Error {
        /// Kafka's code, or UNKNOWN_SERVER_ERROR for what has none.
        code: ErrorCode,
        /// The subscribed topic that the error is about, if it is about one.
        topic: Option<String>,
        /// What happened and what to do.
        message: String,
    },
    /// To be raised in the application's thread; the member is out of the group for good.
    Fatal {
        /// Kafka's code.
        code: ErrorCode,
        /// What happened and what to do.
        message: String,
    },
    /// For the log.
    Log {
        /// How urgent.
        level: Level,
        /// What.
        message: String,
    },
    /// The member has left; nothing more comes.
    Closed,
}
