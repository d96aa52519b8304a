//! The assignors' own data inside a subscription or an assignment (KIP-54, KIP-341, KIP-429, KIP-315).
//!
//! None of these formats says of itself what it is or which version it has.

use thiserror::Error;

use super::reader::Reader;
use super::topic_partitions::{CanonicalPartitions, Elements, Numbers, TopicPartitions, write_numbers};
use super::writer::{Write, WriteError};
use crate::group::NO_GENERATION;

/// User data in none of the forms that its assignor has. It counts as none at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the user data of {0} bytes has no form that this assignor knows")]
pub struct UnknownForm(pub usize);

/// What a member of the sticky assignor held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StickyUserData<'a> {
    /// Its partitions.
    pub partitions: TopicPartitions<'a>,
    /// The generation in which it held them; [`NO_GENERATION`] if it did not say.
    pub generation: i32,
}

impl Default for StickyUserData<'_> {
    fn default() -> Self {
        Self { partitions: TopicPartitions::default(), generation: NO_GENERATION }
    }
}

impl<'a> StickyUserData<'a> {
    /// Reads the data of a `sticky` member; `None` and zero bytes are no history.
    ///
    /// The first of these forms that takes every byte is it: version 1, version 0, and the two behind an INT16 schema
    /// version (kafka-python 3.x). If none does: version 1, else version 0, ignoring what is left over, as Java.
    ///
    /// # Errors
    /// None of the forms fits.
    pub fn read(data: Option<&'a [u8]>) -> Result<Self, UnknownForm> {
        let Some(bytes) = data.filter(|bytes| !bytes.is_empty()) else { return Ok(Self::default()) };
        let bare = || Self::read_bare(bytes).map(|(data, _)| data);
        Self::read_whole(bytes).or_else(bare).ok_or(UnknownForm(bytes.len()))
    }

    /// Hands the partitions to `visit` in one pass, without looking first whether they are whole. The generation, if the
    /// data is bare version 1 or version 0 to the last byte, as nearly all data is; otherwise `None`, and what `visit` got
    /// is void: [`StickyUserData::read`] says what the data is.
    #[inline]
    pub fn visit_bare(bytes: &'a [u8], visit: impl FnOnce(&mut Elements<'a>)) -> Option<i32> {
        let mut elements = Elements::read(Reader::new(bytes));
        visit(&mut elements);
        let mut reader = elements.end()?;
        match reader.remaining() {
            0 => Some(NO_GENERATION),
            4 => reader.i32("generation").ok().map(|generation| generation.max(NO_GENERATION)),
            _ => None,
        }
    }

    /// The data in the first form that takes every byte.
    #[inline]
    fn read_whole(bytes: &'a [u8]) -> Option<Self> {
        match Self::read_bare(bytes) {
            Some((data, 0)) => Some(data),
            _ => Self::read_prefixed(bytes),
        }
    }

    /// The data as version 1, or as version 0 if the bytes end before the generation, and the number of bytes left over.
    /// No input fits both versions to the last byte.
    #[inline]
    fn read_bare(bytes: &'a [u8]) -> Option<(Self, usize)> {
        let mut reader = Reader::new(bytes);
        let partitions = TopicPartitions::read(&mut reader, "user_data").ok()?;
        let generation = reader.i32("generation").map_or(NO_GENERATION, |generation| generation.max(NO_GENERATION));
        Some((Self { partitions, generation }, reader.remaining()))
    }

    /// The data behind a schema version, if nothing is left over.
    fn read_prefixed(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let version = reader.version().ok().filter(|&version| version <= 1)?;
        let partitions = TopicPartitions::read(&mut reader, "user_data").ok()?;
        let generation = if version == 1 { reader.i32("generation").ok()?.max(NO_GENERATION) } else { NO_GENERATION };
        Some(Self { partitions, generation }).filter(|_| reader.remaining() == 0)
    }
}

/// The canonical bytes of sticky user data, version 1.
///
/// # Errors
/// A topic's name of more than 32,767 bytes.
pub fn encode_sticky(partitions: &CanonicalPartitions<'_>, generation: Option<i32>) -> Result<Vec<u8>, WriteError> {
    let mut out = Vec::new();
    partitions.write(&mut out)?;
    out.i32(generation.unwrap_or(NO_GENERATION).max(NO_GENERATION));
    Ok(out)
}

/// Reads the generation from the data of a `cooperative-sticky` member whose subscription has no generation field.
///
/// Four bytes are the generation (Java). Sticky user data under this name (librdkafka, franz-go) gives its generation, its
/// partitions do not count. `None` and zero bytes are [`NO_GENERATION`].
///
/// # Errors
/// Anything else; it counts as [`NO_GENERATION`].
pub fn read_cooperative_generation(data: Option<&[u8]>) -> Result<i32, UnknownForm> {
    let Some(bytes) = data.filter(|bytes| !bytes.is_empty()) else { return Ok(NO_GENERATION) };
    if let Ok(generation) = bytes.try_into() {
        return Ok(i32::from_be_bytes(generation).max(NO_GENERATION));
    }
    StickyUserData::read_whole(bytes).map(|data| data.generation).ok_or(UnknownForm(bytes.len()))
}

/// The user data of a `cooperative-sticky` member; `None` before its first assignment.
#[must_use]
pub fn encode_cooperative(generation: Option<i32>) -> [u8; 4] {
    generation.unwrap_or(NO_GENERATION).max(NO_GENERATION).to_be_bytes()
}

/// The partition numbers that a member of a stream-join assignor held, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamJoinUserData<'a> {
    /// Partition numbers, the same for all joined topics.
    pub numbers: Numbers<'a>,
    /// The epoch of the assignment; 0 before the first.
    pub epoch: i32,
}

impl<'a> StreamJoinUserData<'a> {
    /// Reads the data; `None` and zero bytes are no numbers and epoch 0, and a negative epoch is epoch 0. What follows is
    /// ignored.
    ///
    /// # Errors
    /// Numbers or epoch cannot be read; such data counts as none.
    pub fn read(data: Option<&'a [u8]>) -> Result<Self, UnknownForm> {
        let Some(bytes) = data.filter(|bytes| !bytes.is_empty()) else { return Ok(Self::default()) };
        let mut reader = Reader::new(bytes);
        let read = Numbers::read(&mut reader, "numbers").and_then(|numbers| Ok((numbers, reader.i32("epoch")?)));
        let (numbers, epoch) = read.or(Err(UnknownForm(bytes.len())))?;
        Ok(Self { numbers, epoch: epoch.max(0) })
    }
}

/// The canonical bytes of stream-join user data: numbers ascending, without repeats.
///
/// # Errors
/// More numbers than an ARRAY carries.
pub fn encode_stream_join(numbers: &[i32], epoch: i32) -> Result<Vec<u8>, WriteError> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let mut out = Vec::with_capacity(8 + 4 * numbers.len());
    write_numbers(&mut out, &numbers)?;
    out.i32(epoch.max(0));
    Ok(out)
}

/// The generation (or epoch) that a leader of ours puts into an assignment's user data; `None` if there is none or it is
/// negative. What follows the four bytes is ignored.
#[must_use]
pub fn read_assignment_generation(data: Option<&[u8]>) -> Option<i32> {
    let generation = Reader::new(data?).i32("generation").ok()?;
    Some(generation).filter(|&generation| generation >= 0)
}
