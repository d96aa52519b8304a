//! The records of KIP-848 groups; all of their values are flexible and have version 0.

use super::fields::{Fields, tagged, text};
use crate::wire::reader::{Problem, ReadError, Reader};
use crate::wire::topic_partitions::Numbers;

/// ConsumerGroupMemberMetadataValue: a member and what it subscribes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsumerGroupMember<'a> {
    /// Its `group.instance.id`.
    pub instance_id: Option<&'a str>,
    /// Its rack.
    pub rack: Option<&'a str>,
    /// Its client id.
    pub client_id: &'a str,
    /// Where it connects from.
    pub client_host: &'a str,
    /// The topics that it names.
    pub topics: TopicList<'a>,
    /// The regular expression that it subscribes to.
    pub topic_regex: Option<&'a str>,
    /// In milliseconds.
    pub rebalance_timeout: i32,
    /// The broker's assignor that it asks for.
    pub server_assignor: Option<&'a str>,
    /// The assignors of a member that speaks the classic protocol in a KIP-848 group.
    pub classic: Option<ClassicProtocols<'a>>,
}

impl<'a> ConsumerGroupMember<'a> {
    pub(super) fn read(reader: Reader<'a>) -> Result<Self, ReadError> {
        let mut fields = Fields::new(reader, true);
        Ok(Self {
            instance_id: fields.nullable_string("instance_id")?,
            rack: fields.nullable_string("rack_id")?,
            client_id: fields.string("client_id")?,
            client_host: fields.string("client_host")?,
            topics: TopicList::read(&mut fields.reader, "subscribed_topic_names")?,
            topic_regex: fields.nullable_string("subscribed_topic_regex")?,
            rebalance_timeout: fields.reader.i32("rebalance_timeout_ms")?,
            server_assignor: fields.nullable_string("server_assignor")?,
            classic: tagged(&mut fields.reader, 0, "classic_member_metadata", ClassicProtocols::read)?.flatten(),
        })
    }
}

/// The assignors that a classic member of a KIP-848 group lists, each with its ConsumerProtocolSubscription bytes.
#[derive(Debug, Clone, Copy)]
pub struct ClassicProtocols<'a> {
    /// In milliseconds.
    pub session_timeout: i32,
    fields: Fields<'a>,
    count: usize,
}

impl PartialEq for ClassicProtocols<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.session_timeout == other.session_timeout && self.iter().eq(other.iter())
    }
}

impl Eq for ClassicProtocols<'_> {}

impl<'a> ClassicProtocols<'a> {
    fn read(mut reader: Reader<'a>) -> Result<Option<Self>, ReadError> {
        // A nullable structure has a byte in front: 1 for one that follows, 0 for null in a tagged field, -1 elsewhere.
        if reader.i8("classic_member_metadata")? <= 0 {
            return Ok(None);
        }
        let session_timeout = reader.i32("session_timeout_ms")?;
        let mut fields = Fields::new(reader, true);
        let count = fields.count(3, "supported_protocols")?;
        let protocols = Self { session_timeout, fields, count };
        for _ in 0..count {
            Self::read_one(&mut fields)?;
        }
        Ok(Some(protocols))
    }

    fn read_one(fields: &mut Fields<'a>) -> Result<(&'a str, &'a [u8]), ReadError> {
        let protocol = (fields.string("name")?, fields.bytes("metadata")?);
        fields.end("protocol")?;
        Ok(protocol)
    }

    /// Names and subscriptions, in the member's order of preference.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + use<'a> {
        let mut fields = self.fields;
        (0..self.count).map_while(move |_| Self::read_one(&mut fields).ok())
    }
}

/// A compact list of topic names, checked as a whole and lent name by name.
#[derive(Debug, Clone, Copy)]
pub struct TopicList<'a> {
    reader: Reader<'a>,
    count: usize,
}

impl PartialEq for TopicList<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for TopicList<'_> {}

impl<'a> TopicList<'a> {
    pub(super) fn read(reader: &mut Reader<'a>, what: &'static str) -> Result<Self, ReadError> {
        let at = reader.position();
        let Some(count) = reader.compact_count(1, what)? else {
            return Err(ReadError { what, at, problem: Problem::Length(-1) });
        };
        let list = Self { reader: *reader, count };
        for _ in 0..count {
            Self::read_one(reader, what)?;
        }
        Ok(list)
    }

    fn read_one(reader: &mut Reader<'a>, what: &'static str) -> Result<&'a str, ReadError> {
        let at = reader.position();
        let bytes = reader.compact_nullable_bytes(what)?;
        text(bytes.ok_or(ReadError { what, at, problem: Problem::Length(-1) })?, at, what)
    }

    /// How many names there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The names, in the record's order.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut reader = self.reader;
        (0..self.count).map_while(move |_| Self::read_one(&mut reader, "topics").ok())
    }
}

/// ConsumerGroupCurrentMemberAssignmentValue: what a member has, and what it is still to give up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CurrentAssignment<'a> {
    /// The member's epoch.
    pub epoch: i32,
    /// The one before.
    pub previous_epoch: i32,
    /// The member's state, as the broker numbers it.
    pub state: i8,
    /// What it has.
    pub assigned: TopicIdPartitions<'a>,
    /// What it has been asked to give up.
    pub pending_revocation: TopicIdPartitions<'a>,
}

impl<'a> CurrentAssignment<'a> {
    pub(super) fn read(mut reader: Reader<'a>) -> Result<Self, ReadError> {
        Ok(Self {
            epoch: reader.i32("member_epoch")?,
            previous_epoch: reader.i32("previous_member_epoch")?,
            state: reader.i8("state")?,
            assigned: TopicIdPartitions::read(&mut reader, "assigned_partitions")?,
            pending_revocation: TopicIdPartitions::read(&mut reader, "partitions_pending_revocation")?,
        })
    }
}

/// Partitions by topic id, checked as a whole and lent topic by topic.
#[derive(Debug, Clone, Copy)]
pub struct TopicIdPartitions<'a> {
    reader: Reader<'a>,
    count: usize,
}

impl PartialEq for TopicIdPartitions<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().map(|(id, numbers)| (id, numbers.bytes)).eq(other.iter().map(|(id, numbers)| (id, numbers.bytes)))
    }
}

impl Eq for TopicIdPartitions<'_> {}

impl<'a> TopicIdPartitions<'a> {
    pub(super) fn read(reader: &mut Reader<'a>, what: &'static str) -> Result<Self, ReadError> {
        let at = reader.position();
        // An id of 16 bytes, an empty list and no tagged fields.
        let Some(count) = reader.compact_count(18, what)? else {
            return Err(ReadError { what, at, problem: Problem::Length(-1) });
        };
        let partitions = Self { reader: *reader, count };
        for _ in 0..count {
            Self::read_one(reader, what)?;
        }
        Ok(partitions)
    }

    fn read_one(reader: &mut Reader<'a>, what: &'static str) -> Result<([u8; 16], PartitionNumbers<'a>), ReadError> {
        let mut id = [0; 16];
        id.copy_from_slice(reader.take(16, what)?);
        let at = reader.position();
        let Some(count) = reader.compact_count(4, what)? else {
            return Err(ReadError { what, at, problem: Problem::Length(-1) });
        };
        let bytes = reader.take(4 * count, what)?;
        reader.skip_tagged_fields(what)?;
        Ok((id, PartitionNumbers { bytes }))
    }

    /// How many elements there are; a topic may have several.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Topic ids and partition numbers, in the record's order.
    #[must_use]
    pub fn iter(&self) -> TopicIdPartitionsIter<'a> {
        TopicIdPartitionsIter { reader: self.reader, left: self.count }
    }
}

/// See [`TopicIdPartitions::iter`].
#[derive(Debug, Clone)]
pub struct TopicIdPartitionsIter<'a> {
    reader: Reader<'a>,
    left: usize,
}

impl<'a> Iterator for TopicIdPartitionsIter<'a> {
    type Item = ([u8; 16], PartitionNumbers<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        TopicIdPartitions::read_one(&mut self.reader, "partitions").ok()
    }
}

/// Partition numbers, as they were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionNumbers<'a> {
    bytes: &'a [u8],
}

impl<'a> From<PartitionNumbers<'a>> for Numbers<'a> {
    fn from(numbers: PartitionNumbers<'a>) -> Self {
        Self::of(numbers.bytes)
    }
}

impl<'a> PartitionNumbers<'a> {
    /// The numbers, in the record's order.
    pub fn iter(&self) -> impl Iterator<Item = i32> + use<'a> {
        self.bytes.as_chunks::<4>().0.iter().map(|chunk| i32::from_be_bytes(*chunk))
    }
}
