//! The events that a member takes, and the actions that it asks for.

use super::course::Course;
use crate::protocol::ErrorCode;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Topics with partitions, both ascending and without repeats.
pub type Partitions = Vec<(String, Vec<i32>)>;

/// Racks, ascending and without repeats. Partitions whose replicas are in the same racks share one.
pub type RackSet = Arc<[Arc<str>]>;

/// The purpose of a connection.
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
    /// The application's metadata of the commit.
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
    /// `NONE`, or the error.
    pub code: ErrorCode,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A connection asked for is open, authenticated, and its broker speaks these versions.
    Connected {
        /// As in [`Action::Connect`].
        conn: u64,
        /// API key to lowest and highest version, as ApiVersions answered.
        versions: BTreeMap<i16, (i16, i16)>,
    },
    /// A connection asked for could not be made, or is gone. The member ignores this event for an unknown connection and for one
    /// that it has closed.
    Disconnected {
        /// The connection.
        conn: u64,
        /// For logs and errors.
        reason: String,
        /// Set where another attempt would fail too: TLS or SASL refused the client.
        fatal: Option<ErrorCode>,
    },
    /// A response came.
    Received {
        /// The connection.
        conn: u64,
        /// The whole frame, without its length. The host bounds the length: the member keeps memory in proportion to it.
        frame: Vec<u8>,
    },
    /// The time has advanced, and no other event has happened.
    Tick,
    /// The application polled.
    Poll,
    /// The application subscribes. An eager member gives its partitions up even if the topics are the same as before, as Kafka's
    /// clients do; a cooperative member then keeps its partitions.
    Subscribe {
        /// Names, not expressions.
        topics: Vec<String>,
        /// Whether the names come from expressions, so that all topics of the cluster matter.
        all_topics: bool,
    },
    /// The topics that match a subscription by expressions now, as an answer to [`Action::Topics`]. An unchanged list has no
    /// effect.
    Matched {
        /// All names, including those subscribed to by name.
        topics: Vec<String>,
    },
    /// The application unsubscribes.
    Unsubscribe,
    /// A [`Notice`] has been carried out.
    Done {
        /// The ticket of the notice.
        ticket: u64,
        /// For [`NoticeKind::Prepare`]: each assignor's metadata, in the order of
        /// [`Config::assignors`](super::Config::assignors). Otherwise empty.
        protocols: Vec<(String, Vec<u8>)>,
    },
    /// The plan that [`Action::Plan`] asked for.
    Planned {
        /// The ticket of the action.
        ticket: u64,
        /// Each member's assignment.
        assignments: Vec<(String, Vec<u8>)>,
    },
    /// The assignor failed.
    PlanFailed {
        /// The ticket of the action.
        ticket: u64,
        /// The assignor's message.
        message: String,
    },
    /// Offsets to commit.
    Commit {
        /// The caller's number of the commit, repeated in [`Action::CommitDone`].
        id: u64,
        /// The offsets.
        offsets: Vec<CommitOffset>,
        /// The time limit of all attempts.
        timeout_ms: u64,
    },
    /// A request for committed offsets.
    FetchOffsets {
        /// The caller's number of the fetch, repeated in [`Action::OffsetsFetched`].
        id: u64,
        /// The partitions.
        partitions: Partitions,
        /// The time limit of all attempts.
        timeout_ms: u64,
    },
    /// The members of the group in this process. Their heartbeats are spread over the interval, and the first that learns of a
    /// rebalance informs the others.
    Neighbours {
        /// The place of this member among them, from 0.
        place: u32,
        /// The number of these members, this one included.
        count: u32,
    },
    /// [`Action::GroupRebalances`] of another member of the group: a hint. The next heartbeat is sent now, and only its answer
    /// counts.
    GroupRebalances {
        /// As in the action.
        generation: i32,
    },
    /// The host requests a rebalance, for example because the lags have changed.
    Rejoin {
        /// The reason in JoinGroup (KIP-800).
        reason: String,
    },
    /// The application closes.
    Close {
        /// The time limit for all steps.
        timeout_ms: u64,
    },
}

/// The kinds of notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeKind {
    /// Before the member joins: give `revoked` up and write the assignors' metadata.
    Prepare,
    /// A new assignment: give `revoked` up, then take `added`.
    Assign,
    /// Before the member leaves, or after it failed for good: give `revoked` up.
    Leave,
}

/// A change for the application's thread. At most one is outstanding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Unique, ascending.
    pub ticket: u64,
    /// The kind.
    pub kind: NoticeKind,
    /// Whether other members may own `revoked` already. Then `on_lost` is called, not `on_revoke`, and nothing is committed.
    pub lost: bool,
    /// The partitions to give up.
    pub revoked: Partitions,
    /// The partitions to take.
    pub added: Partitions,
    /// The partitions that are owned afterwards.
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
    /// For [`NoticeKind::Assign`]: the course of the rebalance.
    pub course: Course,
}

/// A member, for its leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanMember {
    /// Its id.
    pub member_id: String,
    /// Set for static members.
    pub group_instance_id: Option<String>,
    /// Its metadata in JoinGroup.
    pub metadata: Vec<u8>,
}

/// A topic, for a leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanTopic {
    /// Its name.
    pub name: String,
    /// How many partitions it has.
    pub partitions: u32,
    /// The racks that have a replica, for each partition; empty if no broker has a rack.
    pub racks: Vec<RackSet>,
}

/// The level of a line of log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For information.
    Info,
    /// An operator or a developer must act.
    Warning,
}

/// An action for the host. The host carries the actions out in the order of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Open a connection, with its handshakes, and answer [`Event::Connected`] or [`Event::Disconnected`].
    Connect {
        /// The number of the connection; never used again.
        conn: u64,
        /// -1 for a bootstrap server.
        node_id: i32,
        /// The broker's host name.
        host: String,
        /// The broker's port.
        port: i32,
        /// The purpose of the connection.
        role: Role,
    },
    /// Send these bytes, a whole frame with its length.
    Send {
        /// The number of the connection.
        conn: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Close a connection, or stop opening it. The member ignores later events of this connection.
    Close {
        /// The number of the connection.
        conn: u64,
        /// For logs.
        reason: String,
    },
    /// All topics of the cluster: match the expressions, and answer [`Event::Matched`].
    Topics {
        /// The name of each topic, and whether it is an internal topic of Kafka.
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
        /// All members of the group.
        members: Vec<PlanMember>,
        /// Every existing topic that a member subscribes to.
        topics: Vec<PlanTopic>,
    },
    /// The result of a commit.
    CommitDone {
        /// The `id` of the event.
        id: u64,
        /// `NONE`, or the error of the whole commit.
        code: ErrorCode,
        /// Each partition's own result, where the broker gave one.
        partitions: Vec<(String, i32, ErrorCode)>,
        /// Partitions left out because the member no longer owned them.
        dropped: Vec<(String, i32)>,
    },
    /// The result of a fetch of committed offsets.
    OffsetsFetched {
        /// The `id` of the event.
        id: u64,
        /// `NONE`, or the error of the whole fetch.
        code: ErrorCode,
        /// The offsets.
        offsets: Vec<FetchedOffset>,
    },
    /// The coordinator has answered that a rebalance has begun. Comes once a generation.
    GroupRebalances {
        /// The generation that the rebalance ends (KIP-848: the new epoch).
        generation: i32,
    },
    /// The application has not polled for `max.poll.interval.ms`. The member is out of the group until the next poll, and its
    /// partitions are lost.
    MaxPollExceeded {
        /// The setting.
        interval_ms: u64,
    },
    /// The brokers' own assignor serves the group (KIP-848). Comes once each time the group is converted.
    ConvertedByBroker {
        /// The cause and the remedy.
        message: String,
    },
    /// To be raised in the application's thread; the member carries on.
    Error {
        /// Kafka's code, or UNKNOWN_SERVER_ERROR for an error without a code.
        code: ErrorCode,
        /// The subscribed topic that the error is about, if it is about one.
        topic: Option<String>,
        /// The cause and the remedy.
        message: String,
    },
    /// To be raised in the application's thread; the member is out of the group for good.
    Fatal {
        /// Kafka's code.
        code: ErrorCode,
        /// The cause and the remedy.
        message: String,
    },
    /// For the log.
    Log {
        /// The level.
        level: Level,
        /// The text.
        message: String,
    },
    /// The member is closed. No action follows.
    Closed,
}
