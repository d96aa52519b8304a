//! ConsumerProtocolSubscription, versions 0 to 3: a member's metadata in JoinGroup (KIP-429, KIP-792, KIP-881).

use super::reader::{ReadError, Reader};
use super::topic_partitions::TopicPartitions;

/// The newest known version. Members of this package write it.
pub const VERSION: i16 = 3;

/// The generation of a claim without a generation. It is older than every real generation.
pub const NO_GENERATION: i32 = -1;

/// A list of topic names: checked as a whole, then read name by name without a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TopicNames<'a> {
    /// The array with its count. Equal bytes are equal lists.
    section: &'a [u8],
    count: usize,
}

impl<'a> TopicNames<'a> {
    /// Checks every length up to the end of the array. Then the reader is at the first byte after it.
    ///
    /// # Errors
    /// The first length or count that exceeds the remaining bytes.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, ReadError> {
        let start = reader.rest();
        let count = reader.count(2, "topics")?;
        for _ in 0..count {
            reader.string_bytes("topics")?;
        }
        Ok(Self { section: &start[..start.len() - reader.remaining()], count })
    }

    /// As [`TopicNames::read`]. If the next bytes begin with a list in `known`, the result is that list and its index,
    /// and its names are not read again: mostly the members of a group send the same list.
    #[inline]
    fn read_known(reader: &mut Reader<'a>, known: &[TopicNames<'_>]) -> Result<(Self, Option<usize>), ReadError> {
        let ahead = reader.rest();
        match known.iter().position(|list| ahead.starts_with(list.section)) {
            Some(index) => {
                let section = reader.take(known[index].section.len(), "topics")?;
                Ok((Self { section, count: known[index].count }, Some(index)))
            }
            None => Ok((Self::read(reader)?, None)),
        }
    }

    /// The number of names, duplicates included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The names in the order of the bytes; not necessarily UTF-8, not necessarily distinct.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut reader = Reader::new(self.section.get(4..).unwrap_or_default());
        (0..self.count).map_while(move |_| reader.string_bytes("topics").ok())
    }
}

/// A subscription that borrows from its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscription<'a> {
    /// The version that was sent, which may be newer than [`VERSION`].
    pub version: i16,
    /// The topics subscribed to.
    pub topics: TopicNames<'a>,
    /// The assignor's user data; `None` for null and for zero bytes, which have the same meaning.
    pub user_data: Option<&'a [u8]>,
    /// Owned partitions (since version 1).
    pub owned: TopicPartitions<'a>,
    /// The generation of the owned partitions (since version 2); [`NO_GENERATION`] if absent or negative.
    pub generation: i32,
    /// The rack (since version 3); `None` for null and for empty.
    pub rack: Option<&'a [u8]>,
    /// The error of the first unreadable field after the topics. This field and all later fields have their defaults.
    pub fault: Option<ReadError>,
}

impl<'a> Subscription<'a> {
    /// Reads a subscription. A version above [`VERSION`] is read as [`VERSION`]. Bytes after the known fields are
    /// ignored. If the bytes end before a field, the field has its default. A malformed field after the topics is
    /// reported in [`Subscription::fault`].
    ///
    /// # Errors
    /// A missing or negative version, or topics that cannot be read.
    pub fn read(bytes: &'a [u8]) -> Result<Self, ReadError> {
        Self::read_known(bytes, &[]).map(|(subscription, _)| subscription)
    }

    /// As [`Subscription::read`]. A list of topics in `known` is recognised without reading its names; the index is its
    /// position in `known`.
    ///
    /// # Errors
    /// As [`Subscription::read`].
    #[inline]
    pub fn read_known(bytes: &'a [u8], known: &[TopicNames<'_>]) -> Result<(Self, Option<usize>), ReadError> {
        let mut reader = Reader::new(bytes);
        let version = reader.version()?;
        let (topics, index) = TopicNames::read_known(&mut reader, known)?;
        let mut subscription = Self {
            version,
            topics,
            user_data: None,
            owned: TopicPartitions::default(),
            generation: NO_GENERATION,
            rack: None,
            fault: None,
        };
        subscription.fault = subscription.read_later_fields(&mut reader).err();
        Ok((subscription, index))
    }

    fn read_later_fields(&mut self, reader: &mut Reader<'a>) -> Result<(), ReadError> {
        self.user_data = reader.nullable_bytes("user_data")?.filter(|data| !data.is_empty());
        if self.version >= 1 && reader.remaining() > 0 {
            self.owned = TopicPartitions::read(reader, "owned_partitions")?;
        }
        if self.version >= 2 && reader.remaining() > 0 {
            self.generation = reader.i32("generation_id")?.max(NO_GENERATION);
        }
        if self.version >= 3 && reader.remaining() > 0 {
            self.rack = reader.nullable_string_bytes("rack_id")?.filter(|rack| !rack.is_empty());
        }
        Ok(())
    }
}
