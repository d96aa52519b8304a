//! ConsumerProtocolAssignment, versions 0 to 3, which are all alike: what the leader sends in SyncGroup.

use super::reader::{ReadError, Reader};
use super::topic_partitions::{CanonicalPartitions, TopicPartitions};
use super::user_data;
use super::writer::{Write, WriteError};

/// The newest version that this package knows and the only one it writes.
pub const VERSION: i16 = 3;

/// An assignment, lent from its bytes. To a follower it is as untrusted as a subscription is to the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assignment<'a> {
    /// The version that was sent, which may be newer than [`VERSION`].
    pub version: i16,
    /// What the member gets.
    pub partitions: TopicPartitions<'a>,
    /// The assignor's own data; `None` for null and for zero bytes.
    pub user_data: Option<&'a [u8]>,
    /// Why the user data could not be read, if so.
    pub fault: Option<ReadError>,
}

impl<'a> Assignment<'a> {
    /// Reads an assignment. What follows the known fields is ignored.
    ///
    /// # Errors
    /// A missing or negative version (a broker hands a forgotten member zero bytes), or partitions that cannot be read.
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

    /// The generation that a leader of ours put into the user data.
    #[must_use]
    pub fn generation(&self) -> Option<i32> {
        user_data::read_assignment_generation(self.user_data)
    }
}

/// The canonical bytes of an assignment, version 3. `generation` goes into the user data; without it that is null.
///
/// # Errors
/// A topic's name of more than 32,767 bytes.
pub fn encode(partitions: &CanonicalPartitions<'_>, generation: Option<i32>) -> Result<Vec<u8>, WriteError> {
    encode_with(partitions, generation.map(i32::to_be_bytes).as_ref().map(<[u8; 4]>::as_slice))
}

/// As [`encode`], with user data as it is.
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
