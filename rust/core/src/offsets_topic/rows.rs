//! Converts the records to rows of flat tables: members, assignments, commits, expressions, and rejected records.
//!
//! A record of a classic group gives one row for each member and one row for each topic of each assignment. No content
//! of a record is an error of the conversion. An unreadable record becomes a row of rejected records with the reason;
//! unreadable bytes of one member become such a row, and the other members are converted.

use std::collections::HashMap;
use std::fmt::Display;

use super::{
    ConsumerGroupMember, GroupMetadata, GroupMetadataMember, Key, OffsetCommit, RecordError, TopicIdPartitions,
    TopicList, Value, read,
};
use crate::protocol::assignment;
use crate::protocol::reader::Reader;
use crate::protocol::subscription::{Subscription, TopicNames};
use crate::protocol::topic_partitions::{Numbers, TopicPartitions};
use crate::protocol::user_data::{StickyUserData, StreamJoinUserData, cooperative_generation};
use crate::protocol::{CONSUMER, TopicId};

/// A record with its partition and offset. Each part is optional, because a dump of the topic may lack it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Record<'a> {
    /// Its key.
    pub key: Option<&'a [u8]>,
    /// Its value; `None` deletes the subject of the key.
    pub value: Option<&'a [u8]>,
    /// The partition of the offsets topic.
    pub partition: Option<i32>,
    /// Its offset in that partition.
    pub offset: Option<i64>,
    /// The time at which it was written, in milliseconds since 1970.
    pub timestamp: Option<i64>,
}

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
    pub group: &'a str,
    /// The kind of the event.
    pub kind: EventKind,
    /// The group's generation. In a KIP-848 group: the next epoch in a record of the group.
    pub generation: Option<i32>,
    /// The assignor that the coordinator selected. In a KIP-848 group: the assignor that the member requests.
    pub protocol: Option<&'a str>,
    /// The member; `None` for a group without members.
    pub member: Option<MemberRecord<'a>>,
}

/// A member, from its record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemberRecord<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its `group.instance.id`.
    pub instance_id: Option<&'a str>,
    /// The bytes of its rack, not necessarily UTF-8.
    pub rack: Option<&'a [u8]>,
    /// The topics that it names.
    pub topics: SubscribedTopics<'a>,
    /// The regular expression that it subscribes to (KIP-848).
    pub topic_regex: Option<&'a str>,
    /// Its client id, and the host from which it connects.
    pub client: Option<(&'a str, &'a str)>,
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
            Self::Listed(names) => names.iter().map(str::as_bytes).for_each(visit),
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
    pub group: &'a str,
    /// The record that it comes from.
    pub source: Source,
    /// The generation; the epoch in a KIP-848 group.
    pub generation: Option<i32>,
    /// The member.
    pub member_id: &'a str,
    /// The topic.
    pub topic: TopicNameOrId<'a>,
    /// The partitions, in the order in which they were sent.
    pub partitions: Numbers<'a>,
}

/// A committed offset, or the deletion of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit<'a> {
    /// The group.
    pub group: &'a str,
    /// The time of the commit, in milliseconds since 1970.
    pub timestamp: i64,
    /// The topic.
    pub topic: &'a str,
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
    pub group: &'a str,
    /// The expression.
    pub expression: &'a str,
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
    pub group: Option<&'a str>,
    /// The member, if the row concerns one member.
    pub member_id: Option<&'a str>,
    /// The reason.
    pub reason: RejectReason,
    /// The details. They contain no bytes of the record except a group's protocol type.
    pub detail: String,
}

/// The limit, in bytes, of the names that the rows of one record repeat. Without it a hostile record of one megabyte,
/// with 100,000 members in a group with a long name, would fill the memory.
pub const MOST_BYTES: usize = 64 << 20;

/// The epochs of KIP-848 records whose value contains none. For each record, in partition order: the next epoch in a
/// record of the same group. `None` for every other record, and if no epoch follows.
#[derive(Debug, Clone, Default)]
pub struct Epochs(Vec<Option<i32>>);

impl Epochs {
    /// Reads the epochs in O(bytes). Without such records, only the keys' kinds are read.
    pub fn read<'a>(count: usize, record: impl Fn(usize) -> Record<'a>) -> Self {
        // The record of a member (5) belongs to the next epoch of the group (3), the target assignment of a member (7)
        // to the next epoch of the target assignment (6).
        let kind = |index| record(index).key.and_then(|key| Reader::new(key).i16("kind").ok());
        if !(0..count).any(|index| matches!(kind(index), Some(5 | 7))) {
            return Self::default();
        }
        let mut epochs = vec![None; count];
        let mut next: HashMap<(bool, &str), (Record<'a>, i32)> = HashMap::new();
        for index in (0..count).rev().filter(|&index| matches!(kind(index), Some(3 | 5 | 6 | 7))) {
            let found = record(index);
            match read(found.key, found.value) {
                Ok((Key::ConsumerGroup { group }, Value::GroupEpoch(epoch))) => {
                    next.insert((false, group), (found, epoch));
                }
                Ok((Key::TargetAssignment { group }, Value::TargetEpoch(epoch))) => {
                    next.insert((true, group), (found, epoch));
                }
                Ok((key @ (Key::ConsumerGroupMember { group, .. } | Key::TargetAssignmentMember { group, .. }), _)) => {
                    let of_target = matches!(key, Key::TargetAssignmentMember { .. });
                    let follows = next
                        .get(&(of_target, group))
                        .filter(|(next, _)| next.partition == found.partition && next.offset > found.offset);
                    epochs[index] = follows.map(|(_, epoch)| *epoch);
                }
                _ => {}
            }
        }
        Self(epochs)
    }

    /// The epoch of the record at `index`.
    #[must_use]
    pub fn of(&self, index: usize) -> Option<i32> {
        self.0.get(index).copied().flatten()
    }
}

/// Calls `visit` with each row of a record, in O(bytes). The order depends on the record only.
///
/// `epoch` is the record's epoch in [`Epochs`].
pub fn rows<'a>(record: Record<'a>, epoch: Option<i32>, mut visit: impl FnMut(Row<'a>)) {
    let timestamp = match record {
        Record { partition: Some(_), offset: Some(_), timestamp: Some(timestamp), .. } => timestamp,
        Record { partition, offset, .. } => {
            let missing = [("partition", partition.is_none()), ("offset", offset.is_none()), ("timestamp", true)];
            let missing = missing.iter().find(|(_, missing)| *missing).map_or("", |(name, _)| name);
            return visit(reject(None, None, RejectReason::Broken, format!("the record's {missing} is null")));
        }
    };
    let (key, value) = match read(record.key, record.value) {
        Ok(read) => read,
        Err(error) => {
            let reason = match error {
                RecordError::NoKey => RejectReason::NoKey,
                RecordError::UnknownVersion { .. } => RejectReason::UnknownVersion,
                RecordError::Key(_) | RecordError::Value { .. } => RejectReason::Broken,
            };
            return visit(reject(record.key.and_then(|key| Key::read(key).ok()), None, reason, error));
        }
    };
    match (key, value) {
        (Key::OffsetCommit { group, topic, partition }, value @ (Value::OffsetCommit(_) | Value::Tombstone)) => {
            visit(Row::Commit(commit(group, topic, partition, value, timestamp)));
        }
        (Key::Group { group }, Value::Group(metadata)) => of_group(group, &metadata, visit),
        (Key::ConsumerGroupMember { group, member_id }, Value::Member(member)) => {
            of_member(group, member_id, &member, epoch, visit);
        }
        (Key::ConsumerGroupMember { group, member_id }, Value::Tombstone) => visit(Row::Event(MembershipEvent {
            group,
            kind: EventKind::Leave,
            generation: epoch,
            protocol: None,
            member: Some(MemberRecord { id: member_id, ..MemberRecord::default() }),
        })),
        (Key::TargetAssignmentMember { .. }, Value::Target(target)) => {
            of_ids(key, Source::Target, epoch, target, &mut visit);
        }
        (Key::CurrentAssignment { .. }, Value::Current(current)) => {
            of_ids(key, Source::Current, Some(current.epoch), current.assigned, &mut visit);
            of_ids(key, Source::PendingRevocation, Some(current.epoch), current.pending_revocation, &mut visit);
        }
        (Key::RegularExpression { group, expression }, Value::Matches(topics)) => {
            visit(Row::Matches(Matches { group, expression, topics: SubscribedTopics::Listed(topics) }));
        }
        (Key::RegularExpression { group, expression }, Value::Tombstone) => {
            visit(Row::Matches(Matches { group, expression, topics: SubscribedTopics::None }));
        }
        // No row: `Epochs` adds the epoch to the records of members and targets before it.
        (Key::ConsumerGroup { .. }, Value::GroupEpoch(_)) | (Key::TargetAssignment { .. }, Value::TargetEpoch(_)) => {}
        (Key::Other(kind), _) => {
            visit(reject(Some(key), None, RejectReason::OtherKind, format!("a record of kind {kind}")))
        }
        (key, _) => {
            let member_id = key.member_id();
            visit(reject(Some(key), member_id, RejectReason::Tombstone, format!("a record of kind {}", key.kind())));
        }
    }
}

/// The row for a rejected record. `detail` must not contain bytes of the record.
fn reject<'a>(key: Option<Key<'a>>, member_id: Option<&'a str>, reason: RejectReason, detail: impl Display) -> Row<'a> {
    let (kind, group) = (key.map(|key| key.kind()), key.and_then(|key| key.group()));
    Row::Rejected(Rejected { kind, group, member_id, reason, detail: detail.to_string() })
}

#[inline]
fn commit<'a>(group: &'a str, topic: &'a str, partition: i32, value: Value<'a>, written: i64) -> Commit<'a> {
    let gone =
        Commit { group, timestamp: written, topic, topic_id: None, partition, committed: None, leader_epoch: None };
    match value {
        Value::OffsetCommit(OffsetCommit { offset, leader_epoch, commit_timestamp, topic_id, .. }) => Commit {
            timestamp: if commit_timestamp < 0 { written } else { commit_timestamp },
            topic_id,
            committed: Some(offset),
            leader_epoch: Some(leader_epoch).filter(|&epoch| epoch >= 0),
            ..gone
        },
        _ => gone,
    }
}

fn of_group<'a>(group: &'a str, metadata: &GroupMetadata<'a>, mut visit: impl FnMut(Row<'a>)) {
    let GroupMetadata { protocol_type, generation, protocol, members, .. } = *metadata;
    let key = Key::Group { group };
    // The coordinator writes a record for a new group before the first member has sent the protocol type.
    let is_new = protocol_type.is_empty() && members.is_empty();
    if protocol_type != CONSUMER && !is_new {
        return visit(reject(Some(key), None, RejectReason::NotConsumer, protocol_type));
    }
    let mut left = MOST_BYTES;
    let names = group.len() + protocol.map_or(0, str::len);
    if !takes(&mut left, members.len(), names) {
        let detail = format!("{} members with names of {names} bytes", members.len());
        return visit(reject(Some(key), None, RejectReason::TooLarge, detail));
    }
    let event = |member| {
        Row::Event(MembershipEvent { group, kind: EventKind::Snapshot, generation: Some(generation), protocol, member })
    };
    if members.is_empty() {
        return visit(event(None));
    }
    for member in members.iter() {
        let id = member.member_id;
        let mut found = MemberRecord {
            id,
            instance_id: not_empty(member.instance_id),
            client: Some((member.client_id, member.client_host)),
            ..MemberRecord::default()
        };
        let mut faults = Vec::new();
        fill(&mut found, protocol.unwrap_or_default(), member.subscription, |reason, detail| {
            faults.push(reject(Some(key), Some(id), reason, detail));
        });
        visit(event(Some(found)));
        faults.into_iter().for_each(&mut visit);
        // The assignment is empty if the leader's SyncGroup did not contain the member.
        if !member.assignment.is_empty() {
            of_assignment(group, generation, &member, &mut left, &mut visit);
        }
    }
}

fn of_assignment<'a>(
    group: &'a str,
    generation: i32,
    member: &GroupMetadataMember<'a>,
    left: &mut usize,
    visit: &mut impl FnMut(Row<'a>),
) {
    let (key, member_id) = (Key::Group { group }, member.member_id);
    let read = match assignment::Assignment::read(member.assignment) {
        Ok(read) => read.partitions,
        Err(error) => return visit(reject(Some(key), Some(member_id), RejectReason::Assignment, error)),
    };
    if !takes(left, read.topics(), group.len() + member_id.len()) {
        return visit(too_many(key, member_id, read.topics()));
    }
    for (topic, partitions) in read.iter() {
        visit(Row::Assignment(AssignmentRow {
            group,
            source: Source::Classic,
            generation: Some(generation),
            member_id,
            topic: TopicNameOrId::Name(topic),
            partitions,
        }));
    }
}

/// Subtracts `count * bytes` from `left`; false, without a change, if fewer bytes are left.
fn takes(left: &mut usize, count: usize, bytes: usize) -> bool {
    let rest = count.checked_mul(bytes).and_then(|all| left.checked_sub(all));
    *left = rest.unwrap_or(*left);
    rest.is_some()
}

fn too_many<'a>(key: Key<'a>, member_id: &'a str, topics: usize) -> Row<'a> {
    let names = key.group().map_or(0, str::len) + member_id.len();
    reject(Some(key), Some(member_id), RejectReason::TooLarge, format!("{topics} topics with names of {names} bytes"))
}

fn not_empty(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

/// Sets the fields of a member from its subscription.
fn fill<'a>(
    found: &mut MemberRecord<'a>,
    protocol: &str,
    bytes: &'a [u8],
    mut fault: impl FnMut(RejectReason, String),
) {
    let subscription = match Subscription::read(bytes) {
        Ok(subscription) => subscription,
        Err(error) => return fault(RejectReason::Subscription, error.to_string()),
    };
    if let Some(error) = subscription.fault {
        fault(RejectReason::Subscription, error.to_string());
    }
    found.topics = SubscribedTopics::Subscription(subscription.topics);
    found.rack = subscription.rack;
    match claim(protocol, &subscription) {
        Ok(claim) => found.claim = claim,
        Err(error) => fault(RejectReason::UserData, error),
    }
}

/// The claim in a member's subscription; `None` if the subscription has no claim. A row contains the claim as the member wrote
/// it; a leader decides which claims count (`planning::leader::ClaimSource`).
fn claim<'a>(protocol: &str, subscription: &Subscription<'a>) -> Result<Option<Claim<'a>>, String> {
    let Subscription { user_data, owned, generation, .. } = *subscription;
    let known = |generation: i32| Some(generation).filter(|&generation| generation >= 0);
    let said = |generation, held| Ok(Some(Claim { generation, held }));
    match protocol {
        "sticky" | "lag" if user_data.is_some() => {
            let data = StickyUserData::read(user_data).map_err(|error| error.to_string())?;
            said(known(data.generation), Held::Partitions(data.partitions))
        }
        "sticky-join" | "cooperative-sticky-join" if user_data.is_some() => {
            let data = StreamJoinUserData::read(user_data).map_err(|error| error.to_string())?;
            said(Some(data.epoch), Held::Numbers(data.numbers))
        }
        "sticky" | "lag" | "sticky-join" | "cooperative-sticky-join" => Ok(None),
        "cooperative-sticky" if user_data.is_some() => {
            let generation = cooperative_generation(subscription).map_err(|error| error.to_string())?;
            said(known(generation), Held::Partitions(owned))
        }
        // Range, round robin and unknown assignors: the owned partitions in the subscription.
        _ if generation < 0 && owned.is_empty() => Ok(None),
        _ => said(known(generation), Held::Partitions(owned)),
    }
}

fn of_member<'a>(
    group: &'a str,
    id: &'a str,
    member: &ConsumerGroupMember<'a>,
    epoch: Option<i32>,
    mut visit: impl FnMut(Row<'a>),
) {
    let mut found = MemberRecord { id, ..MemberRecord::default() };
    let mut protocol = not_empty(member.server_assignor);
    let mut faults = Vec::new();
    // A member that uses the classic protocol sends its owned partitions to its preferred assignor.
    if let Some((name, subscription)) = member.classic.and_then(|classic| classic.iter().next()) {
        protocol = protocol.or(Some(name));
        fill(&mut found, name, subscription, |reason, detail| {
            faults.push(reject(Some(Key::ConsumerGroupMember { group, member_id: id }), Some(id), reason, detail));
        });
    }
    found.instance_id = not_empty(member.instance_id);
    found.rack = not_empty(member.rack).map(str::as_bytes);
    found.topics = SubscribedTopics::Listed(member.topics);
    found.topic_regex = not_empty(member.topic_regex);
    found.client = Some((member.client_id, member.client_host));
    visit(Row::Event(MembershipEvent {
        group,
        kind: EventKind::Join,
        generation: epoch,
        protocol,
        member: Some(found),
    }));
    faults.into_iter().for_each(visit);
}

fn of_ids<'a>(
    key: Key<'a>,
    source: Source,
    generation: Option<i32>,
    partitions: TopicIdPartitions<'a>,
    visit: &mut impl FnMut(Row<'a>),
) {
    let (group, member_id) = (key.group().unwrap_or_default(), key.member_id().unwrap_or_default());
    if !takes(&mut { MOST_BYTES }, partitions.len(), group.len() + member_id.len()) {
        return visit(too_many(key, member_id, partitions.len()));
    }
    for (id, numbers) in partitions.iter() {
        let (topic, partitions) = (TopicNameOrId::Id(id), numbers.into());
        visit(Row::Assignment(AssignmentRow { group, source, generation, member_id, topic, partitions }));
    }
}
