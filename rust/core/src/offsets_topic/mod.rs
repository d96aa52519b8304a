//! The records of `__consumer_offsets`, in which the group coordinator stores commits and groups.
//!
//! ```text
//! key    INT16 kind      fields of the kind
//! value  INT16 version   fields of the kind and the version     (a null value deletes the subject of the key)
//! ```
//!
//! No byte is copied: the decoded values borrow from the record's bytes. The layouts are Kafka's `coordinator-key` and
//! `coordinator-value` schemas.

mod fields;
mod group;
mod key;
mod member;
mod offset;
mod row;
mod rows;
mod topic_id;

#[cfg(test)]
mod row_tests;
#[cfg(test)]
mod tests;

use thiserror::Error;

pub use group::{GroupMetadata, GroupMetadataMember};
pub use key::Key;
pub use member::{
    ClassicProtocols, ConsumerGroupMember, CurrentAssignment, PartitionNumbers, TopicIdPartitions,
    TopicIdPartitionsIter, TopicList,
};
pub use offset::OffsetCommit;
pub use row::{
    AssignmentRow, Claim, Commit, EventKind, Held, Matches, MemberRecord, MembershipEvent, RejectReason, Rejected, Row,
    Source, SubscribedTopics, TopicNameOrId,
};
pub use rows::{Epochs, MOST_BYTES, Record, rows};
pub use topic_id::{parse_topic_id, topic_id_characters, topic_id_text};

use crate::protocol::reader::{ReadError, Reader};

/// The value of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value<'a> {
    /// The value is null: the subject of the key was deleted.
    Tombstone,
    /// A committed offset ([`Key::OffsetCommit`]).
    OffsetCommit(OffsetCommit<'a>),
    /// A classic group in one generation ([`Key::Group`]).
    Group(GroupMetadata<'a>),
    /// The epoch of a KIP-848 group ([`Key::ConsumerGroup`]).
    GroupEpoch(i32),
    /// A member of a KIP-848 group ([`Key::ConsumerGroupMember`]).
    Member(ConsumerGroupMember<'a>),
    /// The epoch of the target assignment of a KIP-848 group ([`Key::TargetAssignment`]).
    TargetEpoch(i32),
    /// The target assignment of a member of a KIP-848 group ([`Key::TargetAssignmentMember`]).
    Target(TopicIdPartitions<'a>),
    /// The current assignment of a member of a KIP-848 group ([`Key::CurrentAssignment`]).
    Current(CurrentAssignment<'a>),
    /// The topics that a group's regular expression matched ([`Key::RegularExpression`]).
    Matches(TopicList<'a>),
    /// A value that does not concern consumers ([`Key::Other`]).
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
        /// The field that could not be read.
        error: ReadError,
    },
    /// A version of the value that is newer than the known ones.
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

/// Reads a record in O(bytes). Every length is checked before a slice is borrowed. The bytes of a member's subscription
/// and assignment are not decoded.
///
/// A record of a share group or a streams group, or of an unknown kind, is no error: it is [`Key::Other`] with
/// [`Value::Other`]. Bytes after the known fields and unknown tagged fields are ignored.
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
