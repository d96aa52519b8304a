//! OffsetCommitValue, versions 0 to 4.

use super::fields::{Fields, tagged};
use crate::protocol::Utf8;
use crate::protocol::reader::{ReadError, Reader};

/// The newest version; flexible.
pub(super) const NEWEST: i16 = 4;

/// A committed offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetCommit<'a> {
    /// The next offset that the group reads.
    pub offset: i64,
    /// The leader epoch of the record before the offset (since version 3); -1 if absent.
    pub leader_epoch: i32,
    /// The metadata of the client.
    pub metadata: Utf8<'a>,
    /// The time of the commit, in milliseconds since 1970.
    pub commit_timestamp: i64,
    /// The time at which the commit expires, in milliseconds since 1970 (version 1 only); -1 if it does not.
    pub expire_timestamp: i64,
    /// The topic's id (a tagged field since version 4, which brokers write from 4.1 on).
    pub topic_id: Option<[u8; 16]>,
}

impl<'a> OffsetCommit<'a> {
    #[inline]
    pub(super) fn read(reader: Reader<'a>, version: i16) -> Result<Self, ReadError> {
        let mut fields = Fields::new(reader, version >= NEWEST);
        let offset = fields.reader.i64("offset")?;
        let leader_epoch = if version >= 3 { fields.reader.i32("leader_epoch")? } else { -1 };
        let metadata = fields.string("metadata")?;
        let commit_timestamp = fields.reader.i64("commit_timestamp")?;
        let expire_timestamp = if version == 1 { fields.reader.i64("expire_timestamp")? } else { -1 };
        let topic_id = if version >= NEWEST {
            tagged(&mut fields.reader, 0, "topic_id", |mut content| {
                let mut id = [0; 16];
                id.copy_from_slice(content.take(16, "topic_id")?);
                Ok(id)
            })?
        } else {
            None
        };
        Ok(Self { offset, leader_epoch, metadata, commit_timestamp, expire_timestamp, topic_id })
    }
}
