//! ConsumerProtocolAssignment, versions 0 to 3: a member's assignment in SyncGroup. All versions have the same layout.

use super::reader::{ReadError, Reader};
use super::topic_partitions::{CanonicalPartitions, TopicPartitions};
use super::user_data;
use super::writer::{Write, WriteError};

/// The newest known version, and the only one that this package writes.
pub const VERSION: i16 = 3;

/// An assignment that borrows from its bytes. A follower must not trust it more than a leader trusts a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assignment<'a> {
    /// The version that was sent, which may be newer than [`VERSION`].
    pub version: i16,
    /// The assigned partitions.
    pub partitions: TopicPartitions<'a>,
    /// The assignor's user data; `None` for null and for zero bytes.
    pub user_data: Option<&'a [u8]>,
    /// The error of unreadable user data.
    pub fault: Option<ReadError>,
}

impl<'a> Assignment<'a> {
    /// Reads an assignment. Bytes after the known fields are ignored.
    ///
    /// # Errors
    /// A missing or negative version, or unreadable partitions. The bytes are empty if the leader's request did not
    /// contain the member.
    pub fn read(bytes: &'a [u8]) -> Result<Self, ReadError> {
        let mut reader = Reader::new(bytes);
        let version = reader.version()?;
        let partitions = TopicPartitions::read(&mut reader, "assigned_partitions")?;
        let (user_data, fault) = match reader.nullable_bytes("user_data") {
            Ok(user_data) => (user_data.filter(|data| !data.is_empty()), None),
            Err(fault) => (None, Some(fault)),
        };
        Ok(Self { version, partitions, user_data, fault })
    }

    /// The generation that a leader of this package writes into the user data.
    #[must_use]
    pub fn generation(&self) -> Option<i32> {
        user_data::read_assignment_generation(self.user_data)
    }
}

/// The canonical bytes of an assignment, version 3. The user data contains `generation`, or is null without one.
///
/// # Errors
/// A topic's name of more than 32,767 bytes.
pub fn encode(partitions: &CanonicalPartitions<'_>, generation: Option<i32>) -> Result<Vec<u8>, WriteError> {
    encode_with(partitions, generation.map(i32::to_be_bytes).as_ref().map(<[u8; 4]>::as_slice))
}

/// As [`encode`], with the given user data.
///
/// # Errors
/// A topic's name of more than 32,767 bytes.
pub fn encode_with(partitions: &CanonicalPartitions<'_>, user_data: Option<&[u8]>) -> Result<Vec<u8>, WriteError> {
    let mut out = Vec::new();
    out.i16(VERSION);
    partitions.write(&mut out)?;
    out.nullable_bytes(user_data, "user_data")?;
    Ok(out)
}
