//! Reads and checks the header of a record batch (magic 2), and searches the records by time.
//!
//! A batch is stored as the producer sent it, compressed or not. Only the base offset and the leader epoch are
//! overwritten. The checksum remains valid, because it does not cover them:
//!
//! ```text
//! byte 0            8       12            16     17   21
//!      base offset  length  leader epoch  magic  CRC  attributes … records
//!                                                     └ covered by the CRC
//! ```

use crate::protocol::ErrorCode;
use crate::protocol::reader::{Problem, ReadError, Reader};
use crate::protocol::record_batch::HEADER_BYTES;

const HEADER: usize = HEADER_BYTES as usize;
/// The number of bytes before those that the length field counts.
const LOG_OVERHEAD: usize = 12;
/// The position of the first byte that the checksum covers.
const CHECKED_FROM: usize = 21;
/// The bits of the attributes.
const COMPRESSION: i16 = 0b111;
const TRANSACTIONAL: i16 = 1 << 4;
const CONTROL: i16 = 1 << 5;

/// Why a batch is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    /// The error for the producer.
    pub(super) code: ErrorCode,
    /// The reason in words.
    pub(super) message: &'static str,
}

impl Refused {
    fn new(code: ErrorCode, message: &'static str) -> Self {
        Self { code, message }
    }
}

/// A record batch with its header decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Batch {
    /// The offset of its first record.
    pub(super) base_offset: i64,
    /// The offset of its last record.
    pub(super) last_offset: i64,
    /// The first record's time.
    base_timestamp: i64,
    /// The latest time of a record, milliseconds since 1970.
    pub(super) max_timestamp: i64,
    /// The producer's id, -1 for a producer without an id.
    pub(super) producer_id: i64,
    /// That producer's epoch.
    pub(super) producer_epoch: i16,
    /// The sequence number of the first record.
    pub(super) base_sequence: i32,
    compressed: bool,
    bytes: Vec<u8>,
}

impl Batch {
    /// Reads the bytes that a producer sends for one partition: exactly one whole batch of magic 2 with a valid
    /// checksum.
    pub(super) fn parse(bytes: Vec<u8>) -> Result<Self, Refused> {
        let corrupt = |message| Refused::new(ErrorCode::CORRUPT_MESSAGE, message);
        let invalid = |message| Refused::new(ErrorCode::INVALID_RECORD, message);
        // The magic byte is at the same position in every version of the format.
        match bytes.get(16) {
            None => return Err(corrupt("the record batch ends inside its header")),
            Some(2) => {}
            Some(_) => {
                return Err(invalid("only record batches of magic 2 are taken: use a client of Kafka 0.11 or later"));
            }
        }
        let header = BatchHeader::read(&bytes).map_err(|_| corrupt("the record batch ends inside its header"))?;
        let whole = usize::try_from(header.length).ok().and_then(|length| length.checked_add(LOG_OVERHEAD));
        match whole {
            Some(whole) if (HEADER..=bytes.len()).contains(&whole) => {
                if whole < bytes.len() {
                    return Err(invalid("exactly one record batch is taken for each partition"));
                }
            }
            _ => return Err(corrupt("the length of the record batch is not that of its bytes")),
        }
        if header.crc != crc32c::crc32c(&bytes[CHECKED_FROM..]) {
            return Err(corrupt("the checksum of the record batch is wrong"));
        }
        if header.records < 1 || header.last_offset_delta != header.records - 1 {
            return Err(invalid("the record batch counts its records wrongly"));
        }
        if header.attributes & (TRANSACTIONAL | CONTROL) != 0 {
            return Err(invalid("transactions are not served here"));
        }
        if header.producer_id >= 0 && (header.producer_epoch < 0 || header.base_sequence < 0) {
            return Err(invalid("a producer id comes with an epoch and a sequence number"));
        }
        Ok(Self {
            base_offset: 0,
            last_offset: i64::from(header.last_offset_delta),
            base_timestamp: header.base_timestamp,
            max_timestamp: header.max_timestamp,
            producer_id: header.producer_id,
            producer_epoch: header.producer_epoch,
            base_sequence: header.base_sequence,
            compressed: header.attributes & COMPRESSION != 0,
            bytes,
        })
    }

    /// The bytes for consumers.
    #[must_use]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of records minus one.
    #[must_use]
    pub(super) fn last_offset_delta(&self) -> i32 {
        (self.last_offset - self.base_offset) as i32
    }

    /// The sequence number of the last record. Sequence numbers wrap at 2^31.
    #[must_use]
    pub(super) fn last_sequence(&self) -> i32 {
        ((i64::from(self.base_sequence) + i64::from(self.last_offset_delta())) & i64::from(i32::MAX)) as i32
    }

    /// Writes the base offset and the leader epoch into the batch.
    pub(super) fn place(&mut self, base_offset: i64, leader_epoch: i32) {
        self.last_offset = base_offset + i64::from(self.last_offset_delta());
        self.base_offset = base_offset;
        self.bytes[..8].copy_from_slice(&base_offset.to_be_bytes());
        self.bytes[12..16].copy_from_slice(&leader_epoch.to_be_bytes());
    }

    /// Offset and time of the first record with an offset of at least `start` and a time of at least `timestamp`. A
    /// compressed batch is not decompressed: the result is its first record, so a consumer that starts there misses no
    /// record.
    #[must_use]
    pub(super) fn first_at(&self, timestamp: i64, start: i64) -> Option<(i64, i64)> {
        if self.max_timestamp < timestamp || self.last_offset < start {
            return None;
        }
        if self.compressed {
            return Some((self.base_offset.max(start), self.base_timestamp));
        }
        let mut deleted = false;
        let mut reader = Reader::new(&self.bytes[HEADER..]);
        loop {
            match self.next_record(&mut reader) {
                Ok((offset, _)) if !(self.base_offset..=self.last_offset).contains(&offset) => break,
                Ok((offset, time)) if time >= timestamp && offset >= start => return Some((offset, time)),
                Ok((_, time)) if time >= timestamp => deleted = true,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        // Every record that is late enough was deleted.
        if deleted {
            return None;
        }
        // The records do not match the header. Use the figures of the header.
        Some((self.base_offset.max(start), self.max_timestamp))
    }

    fn next_record(&self, reader: &mut Reader<'_>) -> Result<(i64, i64), ReadError> {
        let at = reader.position();
        let length = reader.varint("record length")?;
        let length = usize::try_from(length).map_err(|_| ReadError {
            what: "record length",
            at,
            problem: Problem::Length(length.into()),
        })?;
        let mut record = Reader::new(reader.take(length, "record")?);
        record.i8("record attributes")?;
        let time = record.varlong("record time")?;
        let delta = i64::from(record.varint("record offset")?);
        Ok((self.base_offset.saturating_add(delta), self.base_timestamp.saturating_add(time)))
    }
}

struct BatchHeader {
    length: i32,
    crc: u32,
    attributes: i16,
    last_offset_delta: i32,
    base_timestamp: i64,
    max_timestamp: i64,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    records: i32,
}

impl BatchHeader {
    fn read(bytes: &[u8]) -> Result<Self, ReadError> {
        let mut reader = Reader::new(bytes);
        reader.i64("base offset")?;
        let length = reader.i32("batch length")?;
        reader.i32("leader epoch")?;
        reader.i8("magic")?;
        Ok(Self {
            length,
            crc: reader.i32("crc")? as u32,
            attributes: reader.i16("attributes")?,
            last_offset_delta: reader.i32("last offset delta")?,
            base_timestamp: reader.i64("base timestamp")?,
            max_timestamp: reader.i64("max timestamp")?,
            producer_id: reader.i64("producer id")?,
            producer_epoch: reader.i16("producer epoch")?,
            base_sequence: reader.i32("base sequence")?,
            records: reader.i32("record count")?,
        })
    }
}
