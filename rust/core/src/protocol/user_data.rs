//! The assignors' user data in a subscription or an assignment (KIP-54, KIP-341, KIP-429, KIP-315).
//!
//! These formats contain neither their name nor their version. Therefore a reader tries the forms in turn.

use thiserror::Error;

use super::reader::{ReadError, Reader};
use super::subscription::{NO_GENERATION, Subscription};
use super::topic_partitions::{Elements, Numbers, TopicPartitions};

/// User data that matches no form of its assignor. Callers treat it as absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the user data of {0} bytes has no form that this assignor knows")]
pub struct UnknownForm(pub usize);

/// The claims of a member of the sticky assignor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StickyUserData<'a> {
    /// The claimed partitions.
    pub partitions: TopicPartitions<'a>,
    /// The generation of the claim; [`NO_GENERATION`] if absent.
    pub generation: i32,
}

impl Default for StickyUserData<'_> {
    fn default() -> Self {
        Self { partitions: TopicPartitions::default(), generation: NO_GENERATION }
    }
}

impl<'a> StickyUserData<'a> {
    /// Reads the data of a `sticky` member. `None` and zero bytes are no claims.
    ///
    /// The forms are tried in this order:
    /// - version 1, version 0, and the same two after an INT16 schema version (kafka-python 3.x). The first form that
    ///   leaves no byte over is taken.
    /// - version 1, then version 0, ignoring the bytes left over, as Java does.
    ///
    /// # Errors
    /// None of the forms fits.
    pub fn read(data: Option<&'a [u8]>) -> Result<Self, UnknownForm> {
        let Some(bytes) = data.filter(|bytes| !bytes.is_empty()) else { return Ok(Self::default()) };
        let bare = || Self::read_bare(bytes).map(|(data, _)| data);
        Self::read_whole(bytes).or_else(bare).ok_or(UnknownForm(bytes.len()))
    }

    /// A fast reader for nearly all data: version 1 or version 0 without bytes left over. Calls `visit` with the
    /// partitions while it reads, and returns the generation at the end. For other data it returns `None`: then the
    /// caller must undo the calls of `visit` and use [`StickyUserData::read`].
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

    /// The data in the first form that leaves no byte over.
    #[inline]
    fn read_whole(bytes: &'a [u8]) -> Option<Self> {
        match Self::read_bare(bytes) {
            Some((data, 0)) => Some(data),
            _ => Self::read_prefixed(bytes),
        }
    }

    /// The data as version 1, or as version 0 if the bytes end before the generation, and the number of bytes left
    /// over. No input fits both versions to the last byte.
    #[inline]
    fn read_bare(bytes: &'a [u8]) -> Option<(Self, usize)> {
        let mut reader = Reader::new(bytes);
        let partitions = TopicPartitions::read(&mut reader, "user_data").ok()?;
        let generation = reader.i32("generation").map_or(NO_GENERATION, |generation| generation.max(NO_GENERATION));
        Some((Self { partitions, generation }, reader.remaining()))
    }

    /// The data after a schema version, if no byte is left over.
    fn read_prefixed(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let version = reader.version().ok().filter(|&version| version <= 1)?;
        let partitions = TopicPartitions::read(&mut reader, "user_data").ok()?;
        let generation = if version == 1 { reader.i32("generation").ok()?.max(NO_GENERATION) } else { NO_GENERATION };
        Some(Self { partitions, generation }).filter(|_| reader.remaining() == 0)
    }
}

/// Reads the generation from the data of a `cooperative-sticky` member whose subscription has no generation field.
///
/// Four bytes are the generation (Java). librdkafka and franz-go write sticky user data under this name: its generation
/// is used, its partitions are ignored. `None` and zero bytes are [`NO_GENERATION`].
///
/// # Errors
/// All other data. Callers treat it as [`NO_GENERATION`].
pub fn read_cooperative_generation(data: Option<&[u8]>) -> Result<i32, UnknownForm> {
    let Some(bytes) = data.filter(|bytes| !bytes.is_empty()) else { return Ok(NO_GENERATION) };
    if let Ok(generation) = bytes.try_into() {
        return Ok(i32::from_be_bytes(generation).max(NO_GENERATION));
    }
    StickyUserData::read_whole(bytes).map(|data| data.generation).ok_or(UnknownForm(bytes.len()))
}

/// The generation that a `cooperative-sticky` member claims its owned partitions for: that of its subscription's field,
/// and without one that of its user data (KIP-429, KIP-792).
///
/// # Errors
/// The field has no generation, and the user data cannot be read. Callers treat it as [`NO_GENERATION`].
pub fn cooperative_generation(subscription: &Subscription<'_>) -> Result<i32, UnknownForm> {
    if subscription.generation == NO_GENERATION {
        read_cooperative_generation(subscription.user_data)
    } else {
        Ok(subscription.generation)
    }
}

/// The partition numbers that a member of a stream-join assignor claims, and the epoch of the claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamJoinUserData<'a> {
    /// Partition numbers, the same for all joined topics.
    pub numbers: Numbers<'a>,
    /// The epoch of the assignment; 0 before the first.
    pub epoch: i32,
}

impl<'a> StreamJoinUserData<'a> {
    /// Reads the data. `None` and zero bytes are no numbers and epoch 0. A negative epoch is read as epoch 0. Bytes
    /// after the epoch are ignored.
    ///
    /// # Errors
    /// Unreadable numbers or epoch. Callers treat such data as absent.
    pub fn read(data: Option<&'a [u8]>) -> Result<Self, UnknownForm> {
        let Some(bytes) = data.filter(|bytes| !bytes.is_empty()) else { return Ok(Self::default()) };
        let mut reader = Reader::new(bytes);
        let read = Numbers::read(&mut reader, "numbers").and_then(|numbers| Ok((numbers, reader.i32("epoch")?)));
        let (numbers, epoch) = read.or(Err(UnknownForm(bytes.len())))?;
        Ok(Self { numbers, epoch: epoch.max(0) })
    }
}

/// The largest number of bytes that a custom assignor may write about one member.
pub const MOST_MEMBER_DATA: usize = 65_536;

/// The user data of a member whose assignor is the user's own, version 0.
///
/// ```text
/// version INT16 · generation INT32 · partitions ARRAY (topic STRING, ARRAY INT32) · data BYTES
/// ```
///
/// A newer version begins with the same fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CustomUserData<'a> {
    /// The generation of the claim; [`NO_GENERATION`] if absent.
    pub generation: i32,
    /// The claimed partitions of an eager member. A cooperative member has its claimed partitions in its subscription.
    pub partitions: TopicPartitions<'a>,
    /// The assignor's data about this member.
    pub data: &'a [u8],
}

impl<'a> CustomUserData<'a> {
    /// Reads the data. `None` and zero bytes are no claims and no data. Bytes after the last field are ignored.
    ///
    /// # Errors
    /// A negative version, or a field that cannot be read. Callers treat such data as absent.
    pub fn read(data: Option<&'a [u8]>) -> Result<Self, UnknownForm> {
        let Some(bytes) = data.filter(|bytes| !bytes.is_empty()) else {
            return Ok(Self { generation: NO_GENERATION, ..Self::default() });
        };
        Self::read_fields(&mut Reader::new(bytes)).or(Err(UnknownForm(bytes.len())))
    }

    fn read_fields(reader: &mut Reader<'a>) -> Result<Self, ReadError> {
        reader.version()?;
        Ok(Self {
            generation: reader.i32("generation")?.max(NO_GENERATION),
            partitions: TopicPartitions::read(reader, "user_data")?,
            data: reader.nullable_bytes("data")?.unwrap_or_default(),
        })
    }
}

/// The generation (or epoch) that a leader of this package writes into an assignment's user data; `None` if absent or
/// negative. Bytes after the first four are ignored.
#[must_use]
pub fn read_assignment_generation(data: Option<&[u8]>) -> Option<i32> {
    let generation = Reader::new(data?).i32("generation").ok()?;
    Some(generation).filter(|&generation| generation >= 0)
}
