//! The rows of the tables. They borrow from the bytes of their record.

use super::TopicList;
use crate::protocol::subscription::TopicNames;
use crate::protocol::topic_partitions::{Numbers, TopicPartitions};
use crate::protocol::{TopicId, Utf8};

/// A row of one of the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row<'a> {
    /// A row of `membership_events`: a change of a group's members.
    Event(MembershipEvent<'a>),
    /// A row of `observed_assignments`: partitions that a member has or will get.
    Assignment(AssignmentRow<'a>),
    /// A committed offset.
    Commit(Commit<'a>),
    /// The topics that match a regular expression to which members of a KIP-848 group subscribe.
    Matches(Matches<'a>),
    /// A row of `rejected_records`: a record, or a part of one, that is not in the other tables.
    Rejected(Rejected<'a>),
}

/// The kinds of [`MembershipEvent`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// The member is in the group. All members of the group are in the same record.
    Snapshot,
    /// The member joined, or changed its subscription (KIP-848).
    Join,
    /// The member left (KIP-848).
    Leave,
}

impl EventKind {
    /// The value in the column `kind` of `membership_events`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Join => "join",
            Self::Leave => "leave",
        }
    }
}

/// A change of a group's members, or a snapshot of one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MembershipEvent<'a> {
    /// The group.
    pub group: Utf8<'a>,
    /// The kind of the event.
    pub kind: EventKind,
    /// The group's generation. In a KIP-848 group: the next epoch in a record of the group.
    pub generation: Option<i32>,
    /// The assignor that the coordinator selected. In a KIP-848 group: the assignor that the member requests.
    pub protocol: Option<Utf8<'a>>,
    /// The member; `None` for a group without members.
    pub member: Option<MemberRecord<'a>>,
}

/// A member, from its record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemberRecord<'a> {
    /// Its id.
    pub id: Utf8<'a>,
    /// Its `group.instance.id`.
    pub instance_id: Option<Utf8<'a>>,
    /// The bytes of its rack, not necessarily UTF-8.
    pub rack: Option<&'a [u8]>,
    /// The topics that it names.
    pub topics: SubscribedTopics<'a>,
    /// The regular expression that it subscribes to (KIP-848).
    pub topic_regex: Option<Utf8<'a>>,
    /// Its client id, and the host from which it connects.
    pub client: Option<(Utf8<'a>, Utf8<'a>)>,
    /// Its claim.
    pub claim: Option<Claim<'a>>,
}

/// The topic names in a member's subscription.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SubscribedTopics<'a> {
    /// No readable subscription.
    #[default]
    None,
    /// The topics of a ConsumerProtocolSubscription; not necessarily UTF-8.
    Subscription(TopicNames<'a>),
    /// The topics of a KIP-848 member.
    Listed(TopicList<'a>),
}

impl<'a> SubscribedTopics<'a> {
    /// Calls `visit` with each name.
    pub fn each(&self, visit: impl FnMut(&'a [u8])) {
        match self {
            Self::None => {}
            Self::Subscription(names) => names.iter().for_each(visit),
            Self::Listed(names) => names.iter().map(Utf8::bytes).for_each(visit),
        }
    }
}

/// The partitions that a member claimed when it joined. They are read from the field that its assignor reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim<'a> {
    /// The generation of the claim; the epoch for a stream join.
    pub generation: Option<i32>,
    /// The claimed partitions.
    pub held: Held<'a>,
}

/// The two forms of a [`Claim`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held<'a> {
    /// Partitions by topic.
    Partitions(TopicPartitions<'a>),
    /// The same numbers of each topic of a stream join (KIP-315).
    Numbers(Numbers<'a>),
}

/// The record that an [`AssignmentRow`] comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The record of a classic group's generation.
    Classic,
    /// The target assignment of a member of a KIP-848 group.
    Target,
    /// The assigned partitions in the current assignment of such a member.
    Current,
    /// The partitions in that current assignment that the member must revoke.
    PendingRevocation,
}

impl Source {
    /// The value in the column `source` of `observed_assignments`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Target => "target",
            Self::Current => "current",
            Self::PendingRevocation => "pending_revocation",
        }
    }
}

/// A topic by its name or by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopicNameOrId<'a> {
    /// The bytes of the name, not necessarily UTF-8.
    Name(&'a [u8]),
    /// The id; only KIP-848 groups use it.
    Id(TopicId),
}

/// The partitions of one topic that a member has or will get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignmentRow<'a> {
    /// The group.
    pub group: Utf8<'a>,
    /// The record that it comes from.
    pub source: Source,
    /// The generation; the epoch in a KIP-848 group.
    pub generation: Option<i32>,
    /// The member.
    pub member_id: Utf8<'a>,
    /// The topic.
    pub topic: TopicNameOrId<'a>,
    /// The partitions, in the order in which they were sent.
    pub partitions: Numbers<'a>,
}

/// A committed offset, or the deletion of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit<'a> {
    /// The group.
    pub group: Utf8<'a>,
    /// The time of the commit, in milliseconds since 1970.
    pub timestamp: i64,
    /// The topic.
    pub topic: Utf8<'a>,
    /// The topic's id.
    pub topic_id: Option<TopicId>,
    /// The partition.
    pub partition: i32,
    /// The offset; `None` for the deletion of the commit.
    pub committed: Option<i64>,
    /// The leader epoch of the record before the offset.
    pub leader_epoch: Option<i32>,
}

/// The topics that a regular expression matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matches<'a> {
    /// The group.
    pub group: Utf8<'a>,
    /// The expression.
    pub expression: Utf8<'a>,
    /// The topics; none after the deletion of the expression.
    pub topics: SubscribedTopics<'a>,
}

/// The reason why a record, or a part of it, is not in the other tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectReason {
    /// The record has no key.
    NoKey,
    /// The record has no partition, offset or timestamp, or its bytes cannot be read.
    Broken,
    /// The version of the value is newer than the known ones.
    UnknownVersion,
    /// The record belongs to a share group or a streams group, or its kind is unknown.
    OtherKind,
    /// The group, or a part of it, was deleted.
    Tombstone,
    /// The members of the group are not consumers, but for example workers of Connect.
    NotConsumer,
    /// A member's subscription is unreadable, in whole or in part.
    Subscription,
    /// The assignor of a member cannot read the member's user data.
    UserData,
    /// A member's assignment cannot be read.
    Assignment,
    /// The record would fill too much of a batch.
    TooLarge,
}

impl RejectReason {
    /// The value in the column `reason` of `rejected_records`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NoKey => "no_key",
            Self::Broken => "broken",
            Self::UnknownVersion => "unknown_version",
            Self::OtherKind => "other_kind",
            Self::Tombstone => "tombstone",
            Self::NotConsumer => "not_consumer",
            Self::Subscription => "subscription",
            Self::UserData => "user_data",
            Self::Assignment => "assignment",
            Self::TooLarge => "too_large",
        }
    }
}

/// A record, or a part of it, that is not in the other tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected<'a> {
    /// The kind of the record, if known.
    pub kind: Option<i16>,
    /// The group, if known.
    pub group: Option<Utf8<'a>>,
    /// The member, if the row concerns one member.
    pub member_id: Option<Utf8<'a>>,
    /// The reason.
    pub reason: RejectReason,
    /// The details. They contain no bytes of the record except a group's protocol type.
    pub detail: String,
}
