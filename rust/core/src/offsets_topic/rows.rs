//! What the records say, as rows of flat tables: members, what they have, what they committed, and what cannot be told.
//!
//! A record of a classic group gives a row for each of its members and for each topic of their assignments. Nothing
//! that a record holds is an error: what cannot be read is a row too, with the reason, and a member's own bytes cost
//! that member only.

use std::collections::HashMap;
use std::fmt::Display;

use super::{
    ConsumerGroupMember, GroupMetadata, GroupMetadataMember, Key, OffsetCommit, RecordError, TopicId,
    TopicIdPartitions, TopicList, Value, read,
};
use crate::wire::assignment;
use crate::wire::reader::Reader;
use crate::wire::subscription::{Subscription, TopicNames};
use crate::wire::topic_partitions::{Numbers, TopicPartitions};
use crate::wire::user_data::{StickyUserData, StreamJoinUserData, read_cooperative_generation};

/// The protocol type of groups of consumers.
const CONSUMER: &str = "consumer";

/// A record with its place. A part that is missing, as it may be in a dump, is `None`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Record<'a> {
    /// Its key.
    pub key: Option<&'a [u8]>,
    /// Its value; `None` takes the key's subject away.
    pub value: Option<&'a [u8]>,
    /// The partition of the offsets topic.
    pub partition: Option<i32>,
    /// Its offset there.
    pub offset: Option<i64>,
    /// When it was written, in milliseconds since 1970.
    pub timestamp: Option<i64>,
}

/// A row of one of the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row<'a> {
    /// Of what happened to a group's members.
    Event(Event<'a>),
    /// Of what members have, or are to have.
    Assignment(Assignment<'a>),
    /// Of commits.
    Commit(Commit<'a>),
    /// Of what the regular expressions match that members of KIP-848 groups subscribe to.
    Matches(Matches<'a>),
    /// Of what is not in the other tables.
    Rejected(Rejected<'a>),
}

/// What an [`Event`] says of its member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// It is in the group, and so is nobody else but those of the same record.
    Snapshot,
    /// It joined, or changed what it subscribes to (KIP-848).
    Join,
    /// It is gone (KIP-848).
    Leave,
}

impl EventKind {
    /// As the column `kind` of `membership_events` has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Join => "join",
            Self::Leave => "leave",
        }
    }
}

/// Something that happened to a member of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event<'a> {
    /// The group.
    pub group: &'a str,
    /// What.
    pub kind: EventKind,
    /// The group's generation; of a KIP-848 group its epoch: the next that is written down for it.
    pub generation: Option<i32>,
    /// The assignor that the group agreed on; of a KIP-848 group the one that the member asks for.
    pub protocol: Option<&'a str>,
    /// The member; `None` for a group without any.
    pub member: Option<Member<'a>>,
}

/// A member, as far as its record tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Member<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its `group.instance.id`.
    pub instance_id: Option<&'a str>,
    /// Its rack; as it was sent, not necessarily UTF-8.
    pub rack: Option<&'a [u8]>,
    /// The topics that it names.
    pub topics: Topics<'a>,
    /// The regular expression that it subscribes to (KIP-848).
    pub topic_regex: Option<&'a str>,
    /// Its client id, and where it connects from.
    pub client: Option<(&'a str, &'a str)>,
    /// What it said it held.
    pub claim: Option<Claim<'a>>,
}

/// The topics that a member names, as they were sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Topics<'a> {
    /// None could be read.
    #[default]
    None,
    /// Those of a subscription; not necessarily UTF-8.
    Subscription(TopicNames<'a>),
    /// Those of a KIP-848 member.
    Listed(TopicList<'a>),
}

impl<'a> Topics<'a> {
    /// Hands each name to `visit`.
    pub fn each(&self, visit: impl FnMut(&'a [u8])) {
        match self {
            Self::None => {}
            Self::Subscription(names) => names.iter().for_each(visit),
            Self::Listed(names) => names.iter().map(str::as_bytes).for_each(visit),
        }
    }
}

/// What a member said it held when it joined, where its assignor looks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim<'a> {
    /// Since which generation, for a stream join since which epoch.
    pub generation: Option<i32>,
    /// What.
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

/// Where an [`Assignment`] was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// In the record of a classic group's generation.
    Classic,
    /// In the target of a member of a KIP-848 group.
    Target,
    /// In what such a member has.
    Current,
    /// In what it has and is to give up.
    PendingRevocation,
}

impl Source {
    /// As the column `source` of `observed_assignments` has it.
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

/// A topic by name, or by its id alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic<'a> {
    /// As it was sent, not necessarily UTF-8.
    Name(&'a [u8]),
    /// In KIP-848 groups.
    Id(TopicId),
}

/// The partitions of one topic that a member has, or is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment<'a> {
    /// The group.
    pub group: &'a str,
    /// Where it was told.
    pub source: Source,
    /// The generation; the epoch in a KIP-848 group.
    pub generation: Option<i32>,
    /// The member.
    pub member_id: &'a str,
    /// The topic.
    pub topic: Topic<'a>,
    /// The partitions, in the order in which they were sent.
    pub partitions: Numbers<'a>,
}

/// A committed offset, or that there is none any longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit<'a> {
    /// The group.
    pub group: &'a str,
    /// When it was committed, in milliseconds since 1970.
    pub timestamp: i64,
    /// The topic.
    pub topic: &'a str,
    /// The topic's id.
    pub topic_id: Option<TopicId>,
    /// The partition.
    pub partition: i32,
    /// The offset; `None` once the commit has been taken away.
    pub committed: Option<i64>,
    /// The leader's epoch of the record before it.
    pub leader_epoch: Option<i32>,
}

/// The topics that a regular expression matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matches<'a> {
    /// The group.
    pub group: &'a str,
    /// The expression.
    pub expression: &'a str,
    /// The topics; none once the expression is no longer used.
    pub topics: Topics<'a>,
}

/// Why something is not in the other tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The record has no key.
    NoKey,
    /// The record has no partition, offset or timestamp, or its bytes cannot be read.
    Broken,
    /// The value has a version that was not known when this was written.
    UnknownVersion,
    /// The record is about share or streams groups, or of a kind that was not known.
    OtherKind,
    /// The group, or a part of it, has been taken away.
    Tombstone,
    /// The group is none of consumers: Connect's workers, say.
    NotConsumer,
    /// Some or all of a member's subscription cannot be read.
    Subscription,
    /// A member's user data has no form that its assignor knows.
    UserData,
    /// A member's assignment cannot be read.
    Assignment,
    /// The record would fill too much of a batch.
    TooLarge,
}

impl Reason {
    /// As the column `reason` of `rejected_records` has it.
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
    /// The kind of the record, where it is known.
    pub kind: Option<i16>,
    /// The group, where it is known.
    pub group: Option<&'a str>,
    /// The member, where it is about one.
    pub member_id: Option<&'a str>,
    /// Why.
    pub reason: Reason,
    /// What exactly, without the record's bytes, but for a group's protocol type.
    pub detail: String,
}

/// What the names that are repeated in the rows of a record may take, in bytes: a hostile record of a megabyte has a
/// hundred thousand members in a group with a long name.
pub const MOST_BYTES: usize = 64 << 20;

/// For each of a number of records, in the order of their partition, the epoch that a KIP-848 record without one
/// belongs to: the next that is written down for its group. `None` for all others, and where none follows.
#[derive(Debug, Clone, Default)]
pub struct Epochs(Vec<Option<i32>>);

impl Epochs {
    /// Reads them. O(bytes), and next to nothing for records of other kinds.
    pub fn read<'a>(count: usize, record: impl Fn(usize) -> Record<'a>) -> Self {
        // Members (5) belong to epochs of the group (3), targets of members (7) to epochs of the targets (6).
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

    /// That of a record.
    #[must_use]
    pub fn of(&self, index: usize) -> Option<i32> {
        self.0.get(index).copied().flatten()
    }
}

/// Hands all rows of a record to `visit`, in an order that depends on the record alone. O(bytes).
///
/// `epoch` is what [`Epochs`] has for it.
pub fn rows<'a>(record: Record<'a>, epoch: Option<i32>, mut visit: impl FnMut(Row<'a>)) {
    let timestamp = match record {
        Record { partition: Some(_), offset: Some(_), timestamp: Some(timestamp), .. } => timestamp,
        Record { partition, offset, .. } => {
            let missing = [("partition", partition.is_none()), ("offset", offset.is_none()), ("timestamp", true)];
            let missing = missing.iter().find(|(_, missing)| *missing).map_or("", |(name, _)| name);
            return visit(reject(None, None, Reason::Broken, format!("the record's {missing} is null")));
        }
    };
    let (key, value) = match read(record.key, record.value) {
        Ok(read) => read,
        Err(error) => {
            let reason = match error {
                RecordError::NoKey => Reason::NoKey,
                RecordError::UnknownVersion { .. } => Reason::UnknownVersion,
                RecordError::Key(_) | RecordError::Value { .. } => Reason::Broken,
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
        (Key::ConsumerGroupMember { group, member_id }, Value::Tombstone) => visit(Row::Event(Event {
            group,
            kind: EventKind::Leave,
            generation: epoch,
            protocol: None,
            member: Some(Member { id: member_id, ..Member::default() }),
        })),
        (Key::TargetAssignmentMember { .. }, Value::Target(target)) => {
            of_ids(key, Source::Target, epoch, target, &mut visit);
        }
        (Key::CurrentAssignment { .. }, Value::Current(current)) => {
            of_ids(key, Source::Current, Some(current.epoch), current.assigned, &mut visit);
            of_ids(key, Source::PendingRevocation, Some(current.epoch), current.pending_revocation, &mut visit);
        }
        (Key::RegularExpression { group, expression }, Value::Matches(topics)) => {
            visit(Row::Matches(Matches { group, expression, topics: Topics::Listed(topics) }));
        }
        (Key::RegularExpression { group, expression }, Value::Tombstone) => {
            visit(Row::Matches(Matches { group, expression, topics: Topics::None }));
        }
        // Their epochs are those of the members and targets before them: `Epochs`.
        (Key::ConsumerGroup { .. }, Value::GroupEpoch(_)) | (Key::TargetAssignment { .. }, Value::TargetEpoch(_)) => {}
        (Key::Other(kind), _) => visit(reject(Some(key), None, Reason::OtherKind, format!("a record of kind {kind}"))),
        (key, _) => {
            let member_id = key.member_id();
            visit(reject(Some(key), member_id, Reason::Tombstone, format!("a record of kind {}", key.kind())));
        }
    }
}

/// About a record of this kind; the detail is told without the record's bytes.
fn reject<'a>(key: Option<Key<'a>>, member_id: Option<&'a str>, reason: Reason, detail: impl Display) -> Row<'a> {
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
    // A coordinator writes a new group before its first member has said the type.
    let is_new = protocol_type.is_empty() && members.is_empty();
    if protocol_type != CONSUMER && !is_new {
        return visit(reject(Some(key), None, Reason::NotConsumer, protocol_type));
    }
    let mut left = MOST_BYTES;
    let names = group.len() + protocol.map_or(0, str::len);
    if !takes(&mut left, members.len(), names) {
        let detail = format!("{} members with names of {names} bytes", members.len());
        return visit(reject(Some(key), None, Reason::TooLarge, detail));
    }
    let event =
        |member| Row::Event(Event { group, kind: EventKind::Snapshot, generation: Some(generation), protocol, member });
    if members.is_empty() {
        return visit(event(None));
    }
    for member in members.iter() {
        let id = member.member_id;
        let mut found = Member {
            id,
            instance_id: not_empty(member.instance_id),
            client: Some((member.client_id, member.client_host)),
            ..Member::default()
        };
        let mut faults = Vec::new();
        fill(&mut found, protocol.unwrap_or_default(), member.subscription, |reason, detail| {
            faults.push(reject(Some(key), Some(id), reason, detail));
        });
        visit(event(Some(found)));
        faults.into_iter().for_each(&mut visit);
        // A member that the leader forgot has no bytes at all.
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
        Err(error) => return visit(reject(Some(key), Some(member_id), Reason::Assignment, error)),
    };
    if !takes(left, read.topics(), group.len() + member_id.len()) {
        return visit(too_many(key, member_id, read.topics()));
    }
    for (topic, partitions) in read.iter() {
        visit(Row::Assignment(Assignment {
            group,
            source: Source::Classic,
            generation: Some(generation),
            member_id,
            topic: Topic::Name(topic),
            partitions,
        }));
    }
}

/// Takes `count` repeats of so many bytes from what is left; not if it is too much.
fn takes(left: &mut usize, count: usize, bytes: usize) -> bool {
    let rest = count.checked_mul(bytes).and_then(|all| left.checked_sub(all));
    *left = rest.unwrap_or(*left);
    rest.is_some()
}

fn too_many<'a>(key: Key<'a>, member_id: &'a str, topics: usize) -> Row<'a> {
    let names = key.group().map_or(0, str::len) + member_id.len();
    reject(Some(key), Some(member_id), Reason::TooLarge, format!("{topics} topics with names of {names} bytes"))
}

fn not_empty(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

/// What a subscription says of its member.
fn fill<'a>(found: &mut Member<'a>, protocol: &str, bytes: &'a [u8], mut fault: impl FnMut(Reason, String)) {
    let subscription = match Subscription::read(bytes) {
        Ok(subscription) => subscription,
        Err(error) => return fault(Reason::Subscription, error.to_string()),
    };
    if let Some(error) = subscription.fault {
        fault(Reason::Subscription, error.to_string());
    }
    found.topics = Topics::Subscription(subscription.topics);
    found.rack = subscription.rack;
    match claim(protocol, &subscription) {
        Ok(claim) => found.claim = claim,
        Err(error) => fault(Reason::UserData, error),
    }
}

/// What a member said it held; `None` if it said nothing.
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
        "cooperative-sticky" if generation < 0 && user_data.is_some() => {
            let generation = read_cooperative_generation(user_data).map_err(|error| error.to_string())?;
            said(known(generation), Held::Partitions(owned))
        }
        // Range, round robin and assignors of others: what the subscription itself says.
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
    let mut found = Member { id, ..Member::default() };
    let mut protocol = not_empty(member.server_assignor);
    let mut faults = Vec::new();
    // One that speaks the classic protocol tells its partitions to the assignor that it prefers.
    if let Some((name, subscription)) = member.classic.and_then(|classic| classic.iter().next()) {
        protocol = protocol.or(Some(name));
        fill(&mut found, name, subscription, |reason, detail| {
            faults.push(reject(Some(Key::ConsumerGroupMember { group, member_id: id }), Some(id), reason, detail));
        });
    }
    found.instance_id = not_empty(member.instance_id);
    found.rack = not_empty(member.rack).map(str::as_bytes);
    found.topics = Topics::Listed(member.topics);
    found.topic_regex = not_empty(member.topic_regex);
    found.client = Some((member.client_id, member.client_host));
    visit(Row::Event(Event { group, kind: EventKind::Join, generation: epoch, protocol, member: Some(found) }));
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
        let (topic, partitions) = (Topic::Id(id), numbers.into());
        visit(Row::Assignment(Assignment { group, source, generation, member_id, topic, partitions }));
    }
}
