//! The records of `__consumer_offsets`: what the group coordinator writes down of commits and of groups.
//!
//! The INT16 at the head of the key says what the record is about, the INT16 at the head of the value its version; a null
//! value takes the record's subject away. Nothing is copied: what is read lends from the record's bytes. Layouts: Kafka's
//! `coordinator-key` and `coordinator-value` schemas.

mod fields;
mod group;
mod key;
mod member;
mod offset;
mod rows;
mod topic_id;

#[cfg(test)]
mod row_tests;
#[cfg(test)]
mod tests;

use thiserror::Error;

pub use group::{GroupMembers, GroupMetadata, GroupMetadataMember};
pub use key::Key;
pub use member::{
    ClassicProtocols, ConsumerGroupMember, CurrentAssignment, PartitionNumbers, TopicIdPartitions,
    TopicIdPartitionsIter, TopicList,
};
pub use offset::OffsetCommit;
pub use rows::{
    Assignment, Claim, Commit, Epochs, Event, EventKind, Held, MOST_BYTES, Matches, Member, Reason, Record, Rejected,
    Row, Source, Topic, Topics, rows,
};
pub use topic_id::{TopicId, parse_topic_id, topic_id_text};

use crate::wire::reader::{ReadError, Reader};

/// What a record says of its key's subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// The subject is gone: the value is null.
    Tombstone,
    /// A committed offset ([`Key::OffsetCommit`]).
    OffsetCommit(OffsetCommit<'a>),
    /// A classic group in one generation ([`Key::Group`]).
    Group(GroupMetadata<'a>),
    /// The epoch of a KIP-848 group ([`Key::ConsumerGroup`]).
    GroupEpoch(i32),
    /// A member of a KIP-848 group ([`Key::ConsumerGroupMember`]).
    Member(ConsumerGroupMember<'a>),
    /// The epoch of the targets of a KIP-848 group ([`Key::TargetAssignment`]).
    TargetEpoch(i32),
    /// What a member of a KIP-848 group is to have ([`Key::TargetAssignmentMember`]).
    Target(TopicIdPartitions<'a>),
    /// What a member of a KIP-848 group has ([`Key::CurrentAssignment`]).
    Current(CurrentAssignment<'a>),
    /// The topics that a group's regular expression matched ([`Key::RegularExpression`]).
    Matches(TopicList<'a>),
    /// Nothing that concerns consumers ([`Key::Other`]).
    Other,
}

/// Why a record could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RecordError {
    /// A record without a key.
    #[error("the record has no key")]
    NoKey,
    /// The key's bytes.
    #[error("the record's key: {0}")]
    Key(ReadError),
    /// The value's bytes.
    #[error("the value of a record of kind {kind}: {error}")]
    Value {
        /// The key's kind.
        kind: i16,
        /// What could not be read.
        error: ReadError,
    },
    /// A version of the value that did not exist when this was written.
    #[error("the value of a record of kind {kind} has version {version}; versions 0 to {newest} are known")]
    UnknownVersion {
        /// The key's kind.
        kind: i16,
        /// The value's version.
        version: i16,
        /// The newest known one.
        newest: i16,
    },
}

/// Reads a record. O(bytes); every length is checked before anything is lent, members' own bytes are not looked into.
///
/// A kind of record that belongs to other groups (share, streams) or that is unknown is [`Key::Other`] with
/// [`Value::Other`], and no error. Bytes behind the known fields are ignored, as are unknown tagged fields.
///
/// # Errors
/// [`RecordError`].
pub fn read<'a>(key: Option<&'a [u8]>, value: Option<&'a [u8]>) -> Result<(Key<'a>, Value<'a>), RecordError> {
    let key = Key::read(key.ok_or(RecordError::NoKey)?).map_err(RecordError::Key)?;
    Ok((key, read_value(key, value)?))
}

fn read_value<'a>(key: Key<'a>, value: Option<&'a [u8]>) -> Result<Value<'a>, RecordError> {
    let kind = key.kind();
    if matches!(key, Key::Other(_)) {
        return Ok(Value::Other);
    }
    let Some(bytes) = value else { return Ok(Value::Tombstone) };
    let mut reader = Reader::new(bytes);
    let error = |error| RecordError::Value { kind, error };
    let version = reader.version().map_err(error)?;
    let newest = key.newest_value_version();
    if version > newest {
        return Err(RecordError::UnknownVersion { kind, version, newest });
    }
    let read = match key {
        Key::OffsetCommit { .. } => OffsetCommit::read(reader, version).map(Value::OffsetCommit),
        Key::Group { .. } => GroupMetadata::read(reader, version).map(Value::Group),
        Key::ConsumerGroup { .. } => reader.i32("epoch").map(Value::GroupEpoch),
        Key::ConsumerGroupMember { .. } => ConsumerGroupMember::read(reader).map(Value::Member),
        Key::TargetAssignment { .. } => reader.i32("assignment_epoch").map(Value::TargetEpoch),
        Key::TargetAssignmentMember { .. } => {
            TopicIdPartitions::read(&mut reader, "topic_partitions").map(Value::Target)
        }
        Key::CurrentAssignment { .. } => CurrentAssignment::read(reader).map(Value::Current),
        Key::RegularExpression { .. } => TopicList::read(&mut reader, "topics").map(Value::Matches),
        Key::Other(_) => Ok(Value::Other),
    };
    read.map_err(error)
}
