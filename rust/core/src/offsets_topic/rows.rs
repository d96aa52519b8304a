//! Converts the records to rows of flat tables: members, assignments, commits, expressions, and rejected records.
//!
//! A record of a classic group gives one row for each member and one row for each topic of each assignment. No content
//! of a record is an error of the conversion. An unreadable record becomes a row of rejected records with the reason;
//! unreadable bytes of one member become such a row, and the other members are converted.

use std::collections::HashMap;
use std::fmt::Display;

use super::key::CommitKey;
use super::row::{
    AssignmentRow, Claim, Commit, EventKind, Held, Matches, MemberRecord, MembershipEvent, RejectReason, Rejected, Row,
    Source, SubscribedTopics, TopicNameOrId,
};
use super::{
    ConsumerGroupMember, GroupMetadata, GroupMetadataMember, Key, OffsetCommit, RecordError, TopicIdPartitions, Value,
    offset, read,
};
use crate::protocol::assignment;
use crate::protocol::reader::Reader;
use crate::protocol::subscription::Subscription;
use crate::protocol::user_data::{StickyUserData, StreamJoinUserData, cooperative_generation};
use crate::protocol::{CONSUMER, Utf8};

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

/// The limit, in bytes, of the names that the rows of one record repeat. Without it a hostile record of one megabyte,
/// with 100,000 members in a group with a long name, would fill the memory.
pub const MOST_BYTES: usize = 64 << 20;

/// The epochs of KIP-848 records whose value contains none. For each record, in partition order: the next epoch in a
/// record of the same group. `None` for every other record, and if no epoch follows.
#[derive(Debug, Clone, Default)]
pub struct Epochs(Vec<Option<i32>>);

impl Epochs {
    /// Reads the epochs of records in O(bytes): `keys` are the keys of all records in their order, `record` is the record of an
    /// index. Without such records, only the keys' kinds are read.
    pub fn read<'a>(keys: impl IntoIterator<Item = Option<&'a [u8]>>, record: impl Fn(usize) -> Record<'a>) -> Self {
        // The record of a member (5) belongs to the next epoch of the group (3), the target assignment of a member (7)
        // to the next epoch of the target assignment (6).
        let (mut found, mut count, mut wanted) = (Vec::new(), 0, false);
        for key in keys {
            let kind = key.and_then(|key| Reader::new(key).i16("kind").ok());
            if let Some(kind @ (3 | 5 | 6 | 7)) = kind {
                found.push(count);
                wanted |= matches!(kind, 5 | 7);
            }
            count += 1;
        }
        if !wanted {
            return Self::default();
        }
        let mut epochs = vec![None; count];
        let mut next: HashMap<(bool, Utf8<'a>), (Record<'a>, i32)> = HashMap::new();
        for &index in found.iter().rev() {
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
    // Most records are commits. The enums of all keys and values would take an eighth more instructions for them.
    if let Some(commit) = readable_commit(record, timestamp) {
        return visit(Row::Commit(commit));
    }
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
fn reject<'a>(
    key: Option<Key<'a>>,
    member_id: Option<Utf8<'a>>,
    reason: RejectReason,
    detail: impl Display,
) -> Row<'a> {
    let (kind, group) = (key.map(|key| key.kind()), key.and_then(|key| key.group()));
    Row::Rejected(Rejected { kind, group, member_id, reason, detail: detail.to_string() })
}

/// The row of a commit, or of the deletion of one. `None` for other records, and for those that cannot be read.
#[inline]
fn readable_commit(record: Record<'_>, written: i64) -> Option<Commit<'_>> {
    let mut reader = Reader::new(record.key?);
    if !matches!(reader.version(), Ok(0 | 1)) {
        return None;
    }
    let CommitKey { group, topic, partition } = CommitKey::read(reader).ok()?;
    let gone =
        Commit { group, timestamp: written, topic, topic_id: None, partition, committed: None, leader_epoch: None };
    let Some(value) = record.value else { return Some(gone) };
    let mut reader = Reader::new(value);
    let version = reader.version().ok().filter(|&version| version <= offset::NEWEST)?;
    let OffsetCommit { offset, leader_epoch, commit_timestamp, topic_id, .. } =
        OffsetCommit::read(reader, version).ok()?;
    Some(Commit {
        timestamp: if commit_timestamp < 0 { written } else { commit_timestamp },
        topic_id,
        committed: Some(offset),
        leader_epoch: Some(leader_epoch).filter(|&epoch| epoch >= 0),
        ..gone
    })
}

fn of_group<'a>(group: Utf8<'a>, metadata: &GroupMetadata<'a>, mut visit: impl FnMut(Row<'a>)) {
    let GroupMetadata { protocol_type, generation, protocol, ref members, .. } = *metadata;
    let key = Key::Group { group };
    // The coordinator writes a record for a new group before the first member has sent the protocol type.
    let is_new = protocol_type.is_empty() && members.is_empty();
    if protocol_type.bytes() != CONSUMER.as_bytes() && !is_new {
        return visit(reject(Some(key), None, RejectReason::NotConsumer, protocol_type));
    }
    let mut left = MOST_BYTES;
    let names = group.len() + protocol.map_or(0, Utf8::len);
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
    for member in members {
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
            of_assignment(group, generation, member, &mut left, &mut visit);
        }
    }
}

fn of_assignment<'a>(
    group: Utf8<'a>,
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

fn too_many<'a>(key: Key<'a>, member_id: Utf8<'a>, topics: usize) -> Row<'a> {
    let names = key.group().map_or(0, Utf8::len) + member_id.len();
    reject(Some(key), Some(member_id), RejectReason::TooLarge, format!("{topics} topics with names of {names} bytes"))
}

fn not_empty(text: Option<Utf8<'_>>) -> Option<Utf8<'_>> {
    text.filter(|text| !text.is_empty())
}

/// Sets the fields of a member from its subscription.
fn fill<'a>(
    found: &mut MemberRecord<'a>,
    protocol: Utf8<'_>,
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
fn claim<'a>(protocol: Utf8<'_>, subscription: &Subscription<'a>) -> Result<Option<Claim<'a>>, String> {
    let Subscription { user_data, owned, generation, .. } = *subscription;
    let known = |generation: i32| Some(generation).filter(|&generation| generation >= 0);
    let said = |generation, held| Ok(Some(Claim { generation, held }));
    match protocol.bytes() {
        b"sticky" | b"lag" if user_data.is_some() => {
            let data = StickyUserData::read(user_data).map_err(|error| error.to_string())?;
            said(known(data.generation), Held::Partitions(data.partitions))
        }
        b"sticky-join" | b"cooperative-sticky-join" if user_data.is_some() => {
            let data = StreamJoinUserData::read(user_data).map_err(|error| error.to_string())?;
            said(Some(data.epoch), Held::Numbers(data.numbers))
        }
        b"sticky" | b"lag" | b"sticky-join" | b"cooperative-sticky-join" => Ok(None),
        b"cooperative-sticky" if user_data.is_some() => {
            let generation = cooperative_generation(subscription).map_err(|error| error.to_string())?;
            said(known(generation), Held::Partitions(owned))
        }
        // Range, round robin and unknown assignors: the owned partitions in the subscription.
        _ if generation < 0 && owned.is_empty() => Ok(None),
        _ => said(known(generation), Held::Partitions(owned)),
    }
}

fn of_member<'a>(
    group: Utf8<'a>,
    id: Utf8<'a>,
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
    found.rack = not_empty(member.rack).map(Utf8::bytes);
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
