//! The keys of the records. None of them has a flexible version.

use super::fields::Fields;
use crate::protocol::Utf8;
use crate::protocol::reader::{Problem, ReadError, Reader};

/// The fields of the key of a commit.
pub(super) struct CommitKey<'a> {
    pub(super) group: Utf8<'a>,
    pub(super) topic: Utf8<'a>,
    pub(super) partition: i32,
}

impl<'a> CommitKey<'a> {
    /// Reads the fields after the kind.
    #[inline]
    pub(super) fn read(reader: Reader<'a>) -> Result<Self, ReadError> {
        let mut fields = Fields::new(reader, false);
        let (group, topic) = (fields.string("group")?, fields.string("topic")?);
        let at = fields.reader.position();
        let partition = fields.reader.i32("partition")?;
        if partition < 0 {
            return Err(ReadError { what: "partition", at, problem: Problem::Length(partition.into()) });
        }
        Ok(Self { group, topic, partition })
    }
}

/// The key of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key<'a> {
    /// Kinds 0 and 1: the offset that a group committed for a partition.
    OffsetCommit {
        /// The group.
        group: Utf8<'a>,
        /// The topic.
        topic: Utf8<'a>,
        /// The partition's number, not negative.
        partition: i32,
    },
    /// Kind 2: a classic group.
    Group {
        /// The group.
        group: Utf8<'a>,
    },
    /// Kind 3: a KIP-848 group.
    ConsumerGroup {
        /// The group.
        group: Utf8<'a>,
    },
    /// Kind 5: a member of a KIP-848 group.
    ConsumerGroupMember {
        /// The group.
        group: Utf8<'a>,
        /// The member.
        member_id: Utf8<'a>,
    },
    /// Kind 6: the target assignment of a KIP-848 group as a whole.
    TargetAssignment {
        /// The group.
        group: Utf8<'a>,
    },
    /// Kind 7: the target assignment of a member of a KIP-848 group.
    TargetAssignmentMember {
        /// The group.
        group: Utf8<'a>,
        /// The member.
        member_id: Utf8<'a>,
    },
    /// Kind 8: the current assignment of a member of a KIP-848 group.
    CurrentAssignment {
        /// The group.
        group: Utf8<'a>,
        /// The member.
        member_id: Utf8<'a>,
    },
    /// Kind 16: a regular expression that members of a KIP-848 group subscribe to.
    RegularExpression {
        /// The group.
        group: Utf8<'a>,
        /// The expression.
        expression: Utf8<'a>,
    },
    /// Any other kind: partition metadata of early KIP-848 brokers, share groups, streams groups, future kinds.
    Other(i16),
}

impl<'a> Key<'a> {
    /// Reads a key. Bytes after the known fields are ignored.
    ///
    /// # Errors
    /// The first field that cannot be read, a negative partition, a negative kind.
    pub fn read(bytes: &'a [u8]) -> Result<Self, ReadError> {
        let mut reader = Reader::new(bytes);
        let kind = reader.version()?;
        let mut fields = Fields::new(reader, false);
        let mut group_and = |what| Ok((fields.string("group")?, fields.string(what)?));
        Ok(match kind {
            0 | 1 => {
                let CommitKey { group, topic, partition } = CommitKey::read(reader)?;
                Self::OffsetCommit { group, topic, partition }
            }
            2 => Self::Group { group: fields.string("group")? },
            3 => Self::ConsumerGroup { group: fields.string("group")? },
            5 => group_and("member_id").map(|(group, member_id)| Self::ConsumerGroupMember { group, member_id })?,
            6 => Self::TargetAssignment { group: fields.string("group")? },
            7 => group_and("member_id").map(|(group, member_id)| Self::TargetAssignmentMember { group, member_id })?,
            8 => group_and("member_id").map(|(group, member_id)| Self::CurrentAssignment { group, member_id })?,
            16 => {
                let (group, expression) = group_and("regular_expression")?;
                Self::RegularExpression { group, expression }
            }
            other => Self::Other(other),
        })
    }

    /// The INT16 at the start of the key. The result is 1 for both kinds of commits, 0 and 1.
    #[must_use]
    pub fn kind(&self) -> i16 {
        match self {
            Self::OffsetCommit { .. } => 1,
            Self::Group { .. } => 2,
            Self::ConsumerGroup { .. } => 3,
            Self::ConsumerGroupMember { .. } => 5,
            Self::TargetAssignment { .. } => 6,
            Self::TargetAssignmentMember { .. } => 7,
            Self::CurrentAssignment { .. } => 8,
            Self::RegularExpression { .. } => 16,
            Self::Other(kind) => *kind,
        }
    }

    /// The group; `None` for [`Key::Other`], whose fields are not read.
    #[must_use]
    pub fn group(&self) -> Option<Utf8<'a>> {
        match *self {
            Self::OffsetCommit { group, .. }
            | Self::Group { group }
            | Self::ConsumerGroup { group }
            | Self::ConsumerGroupMember { group, .. }
            | Self::TargetAssignment { group }
            | Self::TargetAssignmentMember { group, .. }
            | Self::CurrentAssignment { group, .. }
            | Self::RegularExpression { group, .. } => Some(group),
            Self::Other(_) => None,
        }
    }

    /// The member, for the kinds of a member's records.
    #[must_use]
    pub fn member_id(&self) -> Option<Utf8<'a>> {
        match *self {
            Self::ConsumerGroupMember { member_id, .. }
            | Self::TargetAssignmentMember { member_id, .. }
            | Self::CurrentAssignment { member_id, .. } => Some(member_id),
            _ => None,
        }
    }

    /// The newest known version of the value for this kind of record.
    pub(super) fn newest_value_version(&self) -> i16 {
        match self {
            Self::OffsetCommit { .. } => super::offset::NEWEST,
            Self::Group { .. } => super::group::NEWEST,
            _ => 0,
        }
    }
}
