//! Lists of topics with partition numbers. Subscriptions, assignments and user data contain them.

use std::collections::BTreeMap;
use std::str::Utf8Error;

use super::reader::{ReadError, Reader};
use super::writer::{Write, WriteError};

/// The smallest element: an empty name and an empty list.
const LEAST: usize = 6;

/// An ARRAY of INT32, as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbers<'a> {
    items: &'a [[u8; 4]],
}

impl<'a> Numbers<'a> {
    /// Reads the count and skips the numbers.
    ///
    /// # Errors
    /// A count that is negative or exceeds the remaining bytes.
    #[inline]
    pub fn read(reader: &mut Reader<'a>, what: &'static str) -> Result<Self, ReadError> {
        let count = reader.count(4, what)?;
        Ok(Self::of(reader.take(count * 4, what)?))
    }

    /// The numbers in these bytes. Up to three bytes at the end are ignored.
    #[inline]
    pub(crate) fn of(bytes: &'a [u8]) -> Self {
        Self { items: bytes.as_chunks().0 }
    }

    /// The number of numbers, duplicates included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The numbers in the order of the bytes.
    #[inline]
    #[must_use]
    pub fn iter(&self) -> NumbersIter<'a> {
        self.into_iter()
    }

    /// Appends the numbers in the order of the bytes. Faster than `out.extend(numbers)`, which checks the vector's capacity for each.
    #[inline]
    pub fn append_to(self, out: &mut Vec<i32>) {
        out.extend(self.items.iter().map(|item| i32::from_be_bytes(*item)));
    }
}

/// The numbers in the order of the bytes.
#[derive(Debug, Clone)]
pub struct NumbersIter<'a>(std::slice::Iter<'a, [u8; 4]>);

impl Iterator for NumbersIter<'_> {
    type Item = i32;

    #[inline]
    fn next(&mut self) -> Option<i32> {
        self.0.next().copied().map(i32::from_be_bytes)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for NumbersIter<'_> {}

impl<'a> IntoIterator for Numbers<'a> {
    type Item = i32;
    type IntoIter = NumbersIter<'a>;

    #[inline]
    fn into_iter(self) -> NumbersIter<'a> {
        NumbersIter(self.items.iter())
    }
}

/// An ARRAY of topics with partition numbers: checked as a whole, then read element by element without a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TopicPartitions<'a> {
    bytes: &'a [u8],
    topics: usize,
    partitions: usize,
}

impl<'a> TopicPartitions<'a> {
    /// Checks every length up to the end of the array, in O(elements). Then the reader is at the first byte after it.
    ///
    /// # Errors
    /// The first length or count that exceeds the remaining bytes.
    #[inline]
    pub fn read(reader: &mut Reader<'a>, what: &'static str) -> Result<Self, ReadError> {
        let topics = reader.count(LEAST, what)?;
        let start = reader.rest();
        let mut partitions = 0;
        for _ in 0..topics {
            reader.string_bytes(what)?;
            partitions += Numbers::read(reader, what)?.len();
        }
        Ok(Self { bytes: &start[..start.len() - reader.remaining()], topics, partitions })
    }

    /// The number of elements. Several elements may have the same topic.
    #[must_use]
    pub fn topics(&self) -> usize {
        self.topics
    }

    /// The number of partition numbers in all elements, duplicates included.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.partitions
    }

    /// Whether no element contains a partition.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.partitions == 0
    }

    /// The elements in the order of the bytes. A name is not necessarily UTF-8.
    #[inline]
    #[must_use]
    pub fn iter(&self) -> Elements<'a> {
        Elements { reader: Reader::new(self.bytes), left: self.topics }
    }
}

/// Reads an array of topics with partition numbers element by element, without a check in advance. A later element may
/// be malformed.
#[derive(Debug, Clone)]
pub struct Elements<'a> {
    reader: Reader<'a>,
    left: usize,
}

impl<'a> Elements<'a> {
    /// Starts at the count. With an invalid count there are no elements, and [`end`](Self::end) is `None`.
    #[inline]
    #[must_use]
    pub fn read(mut reader: Reader<'a>) -> Self {
        match reader.count(LEAST, "topics") {
            Ok(left) => Self { reader, left },
            Err(_) => Self { reader, left: usize::MAX },
        }
    }

    /// The reader after the last element. `None` before that, and always after a malformed element.
    #[inline]
    #[must_use]
    pub fn end(self) -> Option<Reader<'a>> {
        (self.left == 0).then_some(self.reader)
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = (&'a [u8], Numbers<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 || self.left == usize::MAX {
            return None;
        }
        let read = self.reader.string_bytes("topic").and_then(|name| Ok((name, Numbers::read(&mut self.reader, "")?)));
        self.left = if read.is_ok() { self.left - 1 } else { usize::MAX };
        read.ok()
    }
}

/// Partitions by topic in canonical form: names in byte order, one element per topic, numbers ascending without
/// duplicates, no topic without numbers. Equal content has equal bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CanonicalPartitions<'a> {
    topics: BTreeMap<&'a str, Vec<i32>>,
}

impl<'a> CanonicalPartitions<'a> {
    /// The canonical form of the given partitions.
    #[must_use]
    pub fn new<N: IntoIterator<Item = i32>>(given: impl IntoIterator<Item = (&'a str, N)>) -> Self {
        let mut topics: BTreeMap<&'a str, Vec<i32>> = BTreeMap::new();
        for (topic, numbers) in given {
            topics.entry(topic).or_default().extend(numbers);
        }
        for numbers in topics.values_mut() {
            numbers.sort_unstable();
            numbers.dedup();
        }
        topics.retain(|_, numbers| !numbers.is_empty());
        Self { topics }
    }

    /// The canonical form of partitions that were read.
    ///
    /// # Errors
    /// A name that is not UTF-8, and so cannot be a topic's.
    pub fn of(read: TopicPartitions<'a>) -> Result<Self, Utf8Error> {
        let lists: Result<Vec<_>, _> =
            read.iter().map(|(name, numbers)| Ok((str::from_utf8(name)?, numbers))).collect();
        Ok(Self::new(lists?))
    }

    /// The topics with their numbers, in the order of the bytes.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'a str, &[i32])> {
        self.topics.iter().map(|(&topic, numbers)| (topic, numbers.as_slice()))
    }

    /// Appends the array.
    ///
    /// # Errors
    /// A topic's name of more than 32,767 bytes.
    pub fn write(&self, out: &mut impl Write) -> Result<(), WriteError> {
        out.count(self.topics.len(), "topics")?;
        for (topic, numbers) in self.iter() {
            out.string(topic, "topic")?;
            write_numbers(out, numbers)?;
        }
        Ok(())
    }
}

/// Appends an ARRAY of INT32.
pub(super) fn write_numbers(out: &mut impl Write, numbers: &[i32]) -> Result<(), WriteError> {
    out.count(numbers.len(), "partitions")?;
    for &number in numbers {
        out.i32(number);
    }
    Ok(())
}
