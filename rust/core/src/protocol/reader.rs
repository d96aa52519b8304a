//! A bounded reader of Kafka's big-endian primitives.
//!
//! The bytes come from other members and from the network, and are untrusted. Each length and count is compared with
//! the remaining bytes before the reader slices or reserves memory. Therefore time and memory are linear in the input.
//!
//! The factor of a linear bound can still be large, because one byte may become a structure of a hundred bytes.
//! Therefore a reader of a frame also has a memory allowance, and every allocation is subtracted from it.

use super::Utf8;
use thiserror::Error;

/// Why bytes could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("cannot read {what} at byte {at}: {problem}")]
pub struct ReadError {
    /// The field.
    pub what: &'static str,
    /// The offset at which it starts.
    pub at: usize,
    /// The kind of error.
    pub problem: Problem,
}

/// The kinds of [`ReadError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Problem {
    /// The input ends inside the field.
    #[error("the input ends too early")]
    Truncated,
    /// An invalid length of a field, or a count whose elements cannot fit the remaining bytes.
    #[error("length {0} is impossible here")]
    Length(i64),
    /// A variable-length integer with too many bytes.
    #[error("the variable-length integer is too long")]
    Varint,
    /// A string that is not UTF-8.
    #[error("the string is not UTF-8")]
    Utf8,
    /// A negative version.
    #[error("version {0} does not exist")]
    Version(i16),
    /// The message would take more memory than a valid message of its length can need.
    #[error("the decoded message needs more than {MEMORY_PER_BYTE} times its bytes of memory")]
    Memory,
}

/// The largest number of bytes of memory for each byte of a frame. A large valid frame needs at most 5: a partition
/// without replicas in a Metadata response has 18 bytes and takes 88.
pub const MEMORY_PER_BYTE: usize = 6;

/// The bytes of memory that every frame may take, because a short valid frame may exceed the ratio.
pub const MEMORY_AT_LEAST: usize = 1 << 20;

/// A cursor over bytes.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    allowance: usize,
}

impl<'a> Reader<'a> {
    /// Reads from the start, without a memory allowance: for callers that allocate about as many bytes as they read.
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

    /// Subtracts `bytes` of memory from the allowance, before the caller reserves them. An error if fewer are left.
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

    /// The next `length` bytes.
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

    /// The INT16 version before a structure; a negative one is an error.
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
    #[inline]
    pub fn i64(&mut self, what: &'static str) -> Result<i64, ReadError> {
        self.fixed(what).map(i64::from_be_bytes)
    }

    /// BOOLEAN: any byte but 0 is true.
    pub fn bool(&mut self, what: &'static str) -> Result<bool, ReadError> {
        self.i8(what).map(|byte| byte != 0)
    }

    /// UNSIGNED_VARINT.
    #[inline]
    pub fn unsigned_varint(&mut self, what: &'static str) -> Result<u32, ReadError> {
        // Most are lengths and counts below 128.
        match self.rest().first() {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(u32::from(byte))
            }
            _ => self.long_unsigned_varint(what),
        }
    }

    fn long_unsigned_varint(&mut self, what: &'static str) -> Result<u32, ReadError> {
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

    /// VARINT.
    pub fn varint(&mut self, what: &'static str) -> Result<i32, ReadError> {
        let zigzag = self.unsigned_varint(what)?;
        Ok((zigzag >> 1) as i32 ^ -((zigzag & 1) as i32))
    }

    /// VARLONG.
    pub fn varlong(&mut self, what: &'static str) -> Result<i64, ReadError> {
        let start = self.at;
        let mut zigzag = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.fixed::<1>(what)?[0];
            zigzag |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64));
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

    /// STRING.
    #[inline]
    pub fn string(&mut self, what: &'static str) -> Result<Utf8<'a>, ReadError> {
        let at = self.at;
        Utf8::new(self.string_bytes(what)?).ok_or(ReadError { what, at, problem: Problem::Utf8 })
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

    /// The count of an ARRAY whose elements have at least `least` bytes each. An error if the count is negative, or if the
    /// remaining bytes cannot contain that many elements.
    #[inline]
    pub fn count(&mut self, least: usize, what: &'static str) -> Result<usize, ReadError> {
        let start = self.at;
        let count = self.i32(what)?;
        match usize::try_from(count) {
            Ok(count) if count <= self.remaining() / least.max(1) => Ok(count),
            _ => Err(ReadError { what, at: start, problem: Problem::Length(i64::from(count)) }),
        }
    }

    /// The length or count of a COMPACT type whose elements have at least `least` bytes each; null is `None`. An error if
    /// the remaining bytes cannot contain that many elements.
    pub fn compact_count(&mut self, least: usize, what: &'static str) -> Result<Option<usize>, ReadError> {
        let start = self.at;
        let Some(count) = self.unsigned_varint(what)?.checked_sub(1) else { return Ok(None) };
        match usize::try_from(count) {
            Ok(length) if length <= self.remaining() / least.max(1) => Ok(Some(length)),
            _ => Err(ReadError { what, at: start, problem: Problem::Length(i64::from(count)) }),
        }
    }

    fn compact_nullable_bytes(&mut self, what: &'static str) -> Result<Option<&'a [u8]>, ReadError> {
        self.compact_count(1, what)?.map(|length| self.take(length, what)).transpose()
    }

    /// The bytes of a NULLABLE_STRING, or in a flexible version of a COMPACT_NULLABLE_STRING.
    #[inline]
    fn text_bytes(&mut self, flexible: bool, what: &'static str) -> Result<Option<&'a [u8]>, ReadError> {
        if !flexible {
            return self.nullable_string_bytes(what);
        }
        let at = self.at;
        let bytes = self.compact_nullable_bytes(what)?;
        // The compact form allows longer strings. Kafka refuses them, and the form that is not compact cannot represent
        // them.
        match bytes.filter(|bytes| bytes.len() > i16::MAX as usize) {
            Some(bytes) => Err(ReadError { what, at, problem: Problem::Length(bytes.len() as i64) }),
            None => Ok(bytes),
        }
    }

    /// NULLABLE_STRING, or in a flexible version COMPACT_NULLABLE_STRING.
    pub fn text(&mut self, flexible: bool, what: &'static str) -> Result<Option<&'a str>, ReadError> {
        let at = self.at;
        let text = |bytes| str::from_utf8(bytes).map_err(|_| ReadError { what, at, problem: Problem::Utf8 });
        self.text_bytes(flexible, what)?.map(text).transpose()
    }

    /// As [`Reader::text`], without a conversion to `str`.
    #[inline]
    pub fn utf8(&mut self, flexible: bool, what: &'static str) -> Result<Option<Utf8<'a>>, ReadError> {
        let at = self.at;
        let utf8 = |bytes| Utf8::new(bytes).ok_or(ReadError { what, at, problem: Problem::Utf8 });
        self.text_bytes(flexible, what)?.map(utf8).transpose()
    }

    /// NULLABLE_BYTES, or in a flexible version COMPACT_NULLABLE_BYTES.
    pub fn data(&mut self, flexible: bool, what: &'static str) -> Result<Option<&'a [u8]>, ReadError> {
        if flexible { self.compact_nullable_bytes(what) } else { self.nullable_bytes(what) }
    }

    /// The count of an ARRAY, or in a flexible version of a COMPACT_ARRAY, whose elements have at least `least` bytes
    /// each; null is `None`. An error if the remaining bytes cannot contain that many elements.
    pub fn elements(&mut self, flexible: bool, least: usize, what: &'static str) -> Result<Option<usize>, ReadError> {
        if flexible {
            return self.compact_count(least, what);
        }
        let mut ahead = *self;
        if ahead.i32(what)? < 0 {
            *self = ahead;
            return Ok(None);
        }
        self.count(least, what).map(Some)
    }

    /// Reads a value that must not be null.
    #[inline]
    pub fn required<T>(
        &mut self,
        what: &'static str,
        read: impl FnOnce(&mut Self) -> Result<Option<T>, ReadError>,
    ) -> Result<T, ReadError> {
        let at = self.at;
        read(self)?.ok_or(ReadError { what, at, problem: Problem::Length(-1) })
    }

    /// Reads the tagged fields at the end of a flexible structure (KIP-482). Calls `visit` with the number and content
    /// of each.
    #[inline]
    pub fn tagged_fields(
        &mut self,
        what: &'static str,
        mut visit: impl FnMut(u32, Reader<'a>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        for _ in 0..self.unsigned_varint(what)? {
            let tag = self.unsigned_varint(what)?;
            let start = self.at;
            let length = self.unsigned_varint(what)?;
            match usize::try_from(length) {
                Ok(length) if length <= self.remaining() => visit(tag, Reader::new(self.take(length, what)?))?,
                _ => return Err(ReadError { what, at: start, problem: Problem::Length(i64::from(length)) }),
            };
        }
        Ok(())
    }

    /// Skips the tagged fields at the end of a flexible structure.
    pub fn skip_tagged_fields(&mut self, what: &'static str) -> Result<(), ReadError> {
        self.tagged_fields(what, |_, _| Ok(()))
    }
}
