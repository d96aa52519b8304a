//! ConsumerProtocolSubscription, versions 0 to 3: what a member sends in JoinGroup (KIP-429, KIP-792, KIP-881).

use super::reader::{ReadError, Reader};
use super::topic_partitions::{CanonicalPartitions, TopicPartitions};
use super::writer::{Write, WriteError};
use crate::group::NO_GENERATION;

/// The newest version that this package knows and the only one it writes.
pub const VERSION: i16 = 3;

/// A list of topic names, checked as a whole and lent name by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TopicNames<'a> {
    /// The array with its count. Equal bytes are equal lists.
    section: &'a [u8],
    count: usize,
}

impl<'a> TopicNames<'a> {
    /// Checks every length up to the end of the array and leaves the reader behind it.
    ///
    /// # Errors
    /// The first length or count that does not fit.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, ReadError> {
        let start = reader.rest();
        let count = reader.count(2, "topics")?;
        for _ in 0..count {
            reader.string_bytes("topics")?;
        }
        Ok(Self { section: &start[..start.len() - reader.remaining()], count })
    }

    /// As [`TopicNames::read`], but if the bytes ahead start with one of these lists, that list is taken without walking over
    /// its names: members of a group mostly send the same list. The index is that of the list in `known`.
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

    /// How many names there are, repeats included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The names in the order in which they were sent; not necessarily UTF-8, not necessarily distinct.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut reader = Reader::new(self.section.get(4..).unwrap_or_default());
        (0..self.count).map_while(move |_| reader.string_bytes("topics").ok())
    }
}

/// A subscription, lent from its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscription<'a> {
    /// The version that was sent, which may be newer than [`VERSION`].
    pub version: i16,
    /// The topics subscribed to.
    pub topics: TopicNames<'a>,
    /// The assignor's own data; `None` for null and for zero bytes, which mean the same.
    pub user_data: Option<&'a [u8]>,
    /// Owned partitions (since version 1).
    pub owned: TopicPartitions<'a>,
    /// The generation of the owned partitions (since version 2); [`NO_GENERATION`] if absent or negative.
    pub generation: i32,
    /// The rack (since version 3); `None` for null and for empty.
    pub rack: Option<&'a [u8]>,
    /// The first field after the topics that could not be read. It and all after it have their defaults.
    pub fault: Option<ReadError>,
}

impl<'a> Subscription<'a> {
    /// Reads a subscription. A version above [`VERSION`] is read as [`VERSION`] and what follows the known fields is
    /// ignored; fields that a version promises but that are not there have their defaults; a field after the topics that is
    /// malformed is reported in [`Subscription::fault`].
    ///
    /// # Errors
    /// A missing or negative version, or topics that cannot be read.
    pub fn read(bytes: &'a [u8]) -> Result<Self, ReadError> {
        Self::read_known(bytes, &[]).map(|(subscription, _)| subscription)
    }

    /// As [`Subscription::read`]; lists of topics in `known` are recognised without walking over their names. The index is
    /// that of the list in `known`.
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

/// What [`SubscriptionFields::encode`] writes.
#[derive(Debug, Clone, Default)]
pub struct SubscriptionFields<'a> {
    /// The topics, in any order.
    pub topics: &'a [&'a str],
    /// The assignor's own data.
    pub user_data: Option<&'a [u8]>,
    /// Owned partitions.
    pub owned: CanonicalPartitions<'a>,
    /// The generation of the owned partitions, if there is one.
    pub generation: Option<i32>,
    /// The rack; empty is none.
    pub rack: Option<&'a str>,
}

impl SubscriptionFields<'_> {
    /// The canonical bytes, version 3: topics sorted, without repeats. The same value gives the same bytes, so that a
    /// follower that rejoins with it causes no rebalance.
    ///
    /// # Errors
    /// A string of more than 32,767 bytes.
    pub fn encode(&self) -> Result<Vec<u8>, WriteError> {
        let mut topics = self.topics.to_vec();
        topics.sort_unstable();
        topics.dedup();
        let mut out = Vec::new();
        out.i16(VERSION);
        out.count(topics.len(), "topics")?;
        for topic in topics {
            out.string(topic, "topic")?;
        }
        out.nullable_bytes(self.user_data, "user_data")?;
        self.owned.write(&mut out)?;
        out.i32(self.generation.unwrap_or(NO_GENERATION).max(NO_GENERATION));
        out.nullable_string(self.rack.filter(|rack| !rack.is_empty()), "rack_id")?;
        Ok(out)
    }
}
