//! The records of KIP-848 groups. All values are flexible and have version 0.

use super::fields::{Fields, tagged};
use crate::protocol::Utf8;
use crate::protocol::reader::{ReadError, Reader};
use crate::protocol::topic_partitions::Numbers;

/// ConsumerGroupMemberMetadataValue: a member and its subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsumerGroupMember<'a> {
    /// Its `group.instance.id`.
    pub instance_id: Option<Utf8<'a>>,
    /// Its rack.
    pub rack: Option<Utf8<'a>>,
    /// Its client id.
    pub client_id: Utf8<'a>,
    /// The host from which it connects.
    pub client_host: Utf8<'a>,
    /// The topics that it names.
    pub topics: TopicList<'a>,
    /// The regular expression that it subscribes to.
    pub topic_regex: Option<Utf8<'a>>,
    /// In milliseconds.
    pub rebalance_timeout: i32,
    /// The assignor of the broker that the member requests.
    pub server_assignor: Option<Utf8<'a>>,
    /// The assignors of a member that uses the classic protocol in a KIP-848 group.
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
        // A nullable structure begins with a byte: 1 if the structure follows. For null it is 0 in a tagged field and
        // -1 elsewhere.
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

    fn read_one(fields: &mut Fields<'a>) -> Result<(Utf8<'a>, &'a [u8]), ReadError> {
        let protocol = (fields.string("name")?, fields.bytes("metadata")?);
        fields.end("protocol")?;
        Ok(protocol)
    }

    /// Names and subscriptions, in the member's order of preference.
    pub fn iter(&self) -> impl Iterator<Item = (Utf8<'a>, &'a [u8])> + use<'a> {
        let mut fields = self.fields;
        (0..self.count).map_while(move |_| Self::read_one(&mut fields).ok())
    }
}

/// A compact list of topic names: checked as a whole, then read name by name without a copy.
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
        let count = reader.required(what, |reader| reader.elements(true, 1, what))?;
        let list = Self { reader: *reader, count };
        for _ in 0..count {
            Self::read_one(reader, what)?;
        }
        Ok(list)
    }

    fn read_one(reader: &mut Reader<'a>, what: &'static str) -> Result<Utf8<'a>, ReadError> {
        reader.required(what, |reader| reader.utf8(true, what))
    }

    /// The number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The names, in the record's order.
    pub fn iter(&self) -> impl Iterator<Item = Utf8<'a>> + use<'a> {
        let mut reader = self.reader;
        (0..self.count).map_while(move |_| Self::read_one(&mut reader, "topics").ok())
    }
}

/// ConsumerGroupCurrentMemberAssignmentValue: the partitions that a member has, and those that it must still revoke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CurrentAssignment<'a> {
    /// The member's epoch.
    pub epoch: i32,
    /// The member's epoch before that.
    pub previous_epoch: i32,
    /// The broker's number of the member's state.
    pub state: i8,
    /// The partitions that it has.
    pub assigned: TopicIdPartitions<'a>,
    /// The partitions that it must revoke.
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

/// Partitions by topic id: checked as a whole, then read topic by topic without a copy.
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
        // The shortest element: an id of 16 bytes, an empty list and no tagged fields.
        let count = reader.required(what, |reader| reader.elements(true, 18, what))?;
        let partitions = Self { reader: *reader, count };
        for _ in 0..count {
            Self::read_one(reader, what)?;
        }
        Ok(partitions)
    }

    fn read_one(reader: &mut Reader<'a>, what: &'static str) -> Result<([u8; 16], PartitionNumbers<'a>), ReadError> {
        let mut id = [0; 16];
        id.copy_from_slice(reader.take(16, what)?);
        let count = reader.required(what, |reader| reader.elements(true, 4, what))?;
        let bytes = reader.take(4 * count, what)?;
        reader.skip_tagged_fields(what)?;
        Ok((id, PartitionNumbers { bytes }))
    }

    /// The number of elements. Several elements may have the same topic id.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the list is empty.
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

/// Partition numbers in the record's bytes.
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
