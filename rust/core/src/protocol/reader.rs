//! A bounded reader of Kafka's big-endian primitives.
//!
//! The bytes come from other members and from the network. No length or count is believed: each is checked against the
//! bytes that remain before anything is sliced or reserved, so work and memory stay linear in the input. Linear is not
//! enough where a few bytes become a large structure: a reader of a whole frame also has an allowance of memory, from which
//! every structure that is kept takes its size.

use thiserror::Error;

/// Why bytes could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("cannot read {what} at byte {at}: {problem}")]
pub struct ReadError {
    /// The field.
    pub what: &'static str,
    /// The offset at which it starts.
    pub at: usize,
    /// What is wrong.
    pub problem: Problem,
}

/// The kinds of [`ReadError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Problem {
    /// The input ends inside the field.
    #[error("the input ends too early")]
    Truncated,
    /// A length that no such field can have, or a count whose elements cannot fit the bytes that remain.
    #[error("length {0} is impossible here")]
    Length(i64),
    /// A variable-length integer of more than its bytes.
    #[error("the variable-length integer is too long")]
    Varint,
    /// A string that is not UTF-8.
    #[error("the string is not UTF-8")]
    Utf8,
    /// A negative version.
    #[error("version {0} does not exist")]
    Version(i16),
    /// The message would take more memory than any honest message of its length.
    #[error("what the message describes takes more than {MEMORY_PER_BYTE} times its bytes")]
    Memory,
}

/// The most bytes of memory for each byte of a frame. A large honest frame needs at most 5: a partition of a Metadata answer
/// without replicas has 18 bytes and takes 88.
pub const MEMORY_PER_BYTE: usize = 6;

/// The bytes of memory that every frame may take: a short honest frame may exceed the ratio.
pub const MEMORY_AT_LEAST: usize = 1 << 20;

/// A cursor over bytes.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    allowance: usize,
}

impl<'a> Reader<'a> {
    /// Reads from the start, without an allowance, for callers that keep about as many bytes as they read.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, allowance: usize::MAX }
    }

    /// Reads a frame from its start, with an allowance of [`MEMORY_PER_BYTE`] times its bytes, and at least
    /// [`MEMORY_AT_LEAST`].
    #[must_use]
    pub fn of_frame(bytes: &'a [u8]) -> Self {
        Self { allowance: bytes.len().saturating_mul(MEMORY_PER_BYTE).max(MEMORY_AT_LEAST), ..Self::new(bytes) }
    }

    /// Takes `bytes` of memory from the allowance, before they are reserved; an error where fewer are left.
    #[inline]
    pub fn hold(&mut self, bytes: usize, what: &'static str) -> Result<(), ReadError> {
        match self.allowance.checked_sub(bytes) {
            Some(left) => {
                self.allowance = left;
                Ok(())
            }
            None => self.fail(what, Problem::Memory),
        }
    }

    /// The offset of the next byte.
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }

    /// The number of bytes not yet read.
    #[must_use]
    #[inline]
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The bytes not yet read.
    #[must_use]
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    fn fail<T>(&self, what: &'static str, problem: Problem) -> Result<T, ReadError> {
        Err(ReadError { what, at: self.at, problem })
    }

    /// The next `length` bytes as they are.
    #[inline]
    pub fn take(&mut self, length: usize, what: &'static str) -> Result<&'a [u8], ReadError> {
        if length > self.remaining() {
            return self.fail(what, Problem::Truncated);
        }
        let taken = &self.bytes[self.at..self.at + length];
        self.at += length;
        Ok(taken)
    }

    #[inline]
    fn fixed<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], ReadError> {
        match self.rest().first_chunk::<N>() {
            Some(chunk) => {
                self.at += N;
                Ok(*chunk)
            }
            None => self.fail(what, Problem::Truncated),
        }
    }

    /// The INT16 version in front of a structure; a negative one has no meaning.
    #[inline]
    pub fn version(&mut self) -> Result<i16, ReadError> {
        let start = self.at;
        let version = self.i16("version")?;
        if version < 0 {
            return Err(ReadError { what: "version", at: start, problem: Problem::Version(version) });
        }
        Ok(version)
    }

    /// INT8.
    pub fn i8(&mut self, what: &'static str) -> Result<i8, ReadError> {
        self.fixed(what).map(i8::from_be_bytes)
    }

    /// INT16.
    #[inline]
    pub fn i16(&mut self, what: &'static str) -> Result<i16, ReadError> {
        self.fixed(what).map(i16::from_be_bytes)
    }

    /// INT32.
    #[inline]
    pub fn i32(&mut self, what: &'static str) -> Result<i32, ReadError> {
        self.fixed(what).map(i32::from_be_bytes)
    }

    /// INT64.
    pub fn i64(&mut self, what: &'static str) -> Result<i64, ReadError> {
        self.fixed(what).map(i64::from_be_bytes)
    }

    /// BOOLEAN: any byte but 0 is true.
    pub fn bool(&mut self, what: &'static str) -> Result<bool, ReadError> {
        self.i8(what).map(|byte| byte != 0)
    }

    /// UNSIGNED_VARINT.
    pub fn unsigned_varint(&mut self, what: &'static str) -> Result<u32, ReadError> {
        let start = self.at;
        let mut value = 0u64;
        for shift in (0..35).step_by(7) {
            let byte = self.fixed::<1>(what)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value).or(Err(ReadError { what, at: start, problem: Problem::Varint }));
            }
        }
        Err(ReadError { what, at: start, problem: Problem::Varint })
    }

    /// The bytes of a STRING; a negative length is an error.
    #[inline]
    pub fn string_bytes(&mut self, what: &'static str) -> Result<&'a [u8], ReadError> {
        let start = self.at;
        let length = self.i16(what)?;
        match usize::try_from(length) {
            Ok(length) => self.take(length, what),
            Err(_) => Err(ReadError { what, at: start, problem: Problem::Length(length.into()) }),
        }
    }

    /// The bytes of a NULLABLE_STRING; any negative length is null.
    #[inline]
    pub fn nullable_string_bytes(&mut self, what: &'static str) -> Result<Option<&'a [u8]>, ReadError> {
        let length = self.i16(what)?;
        usize::try_from(length).ok().map(|length| self.take(length, what)).transpose()
    }

    /// BYTES; a negative length is an error.
    pub fn bytes(&mut self, what: &'static str) -> Result<&'a [u8], ReadError> {
        let start = self.at;
        let length = self.i32(what)?;
        match usize::try_from(length) {
            Ok(length) => self.take(length, what),
            Err(_) => Err(ReadError { what, at: start, problem: Problem::Length(length.into()) }),
        }
    }

    /// NULLABLE_BYTES; any negative length is null.
    #[inline]
    pub fn nullable_bytes(&mut self, what: &'static str) -> Result<Option<&'a [u8]>, ReadError> {
        let length = self.i32(what)?;
        usize::try_from(length).ok().map(|length| self.take(length, what)).transpose()
    }

    /// The count of an ARRAY whose elements have at least `least` bytes each: never negative, never more than can follow.
    #[inline]
    pub fn count(&mut self, least: usize, what: &'static str) -> Result<usize, ReadError> {
        let start = self.at;
        let count = self.i32(what)?;
        match usize::try_from(count) {
            Ok(count) if count <= self.remaining() / least.max(1) => Ok(count),
            _ => Err(ReadError { what, at: start, problem: Problem::Length(i64::from(count)) }),
        }
    }

    /// The length or count in front of a COMPACT type whose elements have at least `least` bytes each; null is `None`.
    /// Never more than can follow.
    pub fn compact_count(&mut self, least: usize, what: &'static str) -> Result<Option<usize>, ReadError> {
        let start = self.at;
        let Some(count) = self.unsigned_varint(what)?.checked_sub(1) else { return Ok(None) };
        match usize::try_from(count) {
            Ok(length) if length <= self.remaining() / least.max(1) => Ok(Some(length)),
            _ => Err(ReadError { what, at: start, problem: Problem::Length(i64::from(count)) }),
        }
    }

    /// The bytes of a COMPACT_NULLABLE_STRING or of COMPACT_NULLABLE_BYTES.
    pub fn compact_nullable_bytes(&mut self, what: &'static str) -> Result<Option<&'a [u8]>, ReadError> {
        self.compact_count(1, what)?.map(|length| self.take(length, what)).transpose()
    }

    /// Skips the tagged fields at the end of a flexible structure (KIP-482). We know none, so none is kept.
    pub fn skip_tagged_fields(&mut self, what: &'static str) -> Result<(), ReadError> {
        for _ in 0..self.unsigned_varint(what)? {
            self.unsigned_varint(what)?;
            let start = self.at;
            let length = self.unsigned_varint(what)?;
            match usize::try_from(length) {
                Ok(length) if length <= self.remaining() => self.take(length, what)?,
                _ => return Err(ReadError { what, at: start, problem: Problem::Length(i64::from(length)) }),
            };
        }
        Ok(())
    }
}
