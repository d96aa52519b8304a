//! Writing Kafka's big-endian primitives.

use thiserror::Error;

/// A value that the protocol cannot represent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WriteError {
    /// A STRING of more than 32,767 bytes.
    #[error("{what} has {length} bytes; a string of the protocol has at most 32767: shorten it")]
    LongString {
        /// The field.
        what: &'static str,
        /// Its length in bytes.
        length: usize,
    },
    /// BYTES or an ARRAY of more than 2^31 - 1 elements.
    #[error("{what} has {length} elements; the protocol carries at most 2147483647")]
    LongArray {
        /// The field.
        what: &'static str,
        /// The number of elements.
        length: usize,
    },
}

/// Appends primitives to a buffer.
pub trait Write {
    /// Raw bytes.
    fn raw(&mut self, bytes: &[u8]);

    /// INT8.
    fn i8(&mut self, value: i8) {
        self.raw(&value.to_be_bytes());
    }

    /// INT16.
    fn i16(&mut self, value: i16) {
        self.raw(&value.to_be_bytes());
    }

    /// INT32.
    fn i32(&mut self, value: i32) {
        self.raw(&value.to_be_bytes());
    }

    /// INT64.
    fn i64(&mut self, value: i64) {
        self.raw(&value.to_be_bytes());
    }

    /// BOOLEAN.
    fn bool(&mut self, value: bool) {
        self.i8(i8::from(value));
    }

    /// UNSIGNED_VARINT.
    fn unsigned_varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.raw(&[value as u8 | 0x80]);
            value >>= 7;
        }
        self.raw(&[value as u8]);
    }

    /// STRING.
    fn string(&mut self, value: &str, what: &'static str) -> Result<(), WriteError> {
        let length = i16::try_from(value.len()).map_err(|_| WriteError::LongString { what, length: value.len() })?;
        self.i16(length);
        self.raw(value.as_bytes());
        Ok(())
    }

    /// NULLABLE_STRING.
    fn nullable_string(&mut self, value: Option<&str>, what: &'static str) -> Result<(), WriteError> {
        match value {
            Some(value) => self.string(value, what),
            None => {
                self.i16(-1);
                Ok(())
            }
        }
    }

    /// The count of an ARRAY, or the length of BYTES.
    fn count(&mut self, length: usize, what: &'static str) -> Result<(), WriteError> {
        self.i32(i32::try_from(length).map_err(|_| WriteError::LongArray { what, length })?);
        Ok(())
    }

    /// NULLABLE_BYTES; with `Some`, also BYTES.
    fn nullable_bytes(&mut self, value: Option<&[u8]>, what: &'static str) -> Result<(), WriteError> {
        match value {
            Some(value) => {
                self.count(value.len(), what)?;
                self.raw(value);
                Ok(())
            }
            None => {
                self.i32(-1);
                Ok(())
            }
        }
    }

    /// The length or count of a COMPACT type; null is `None`.
    fn compact_count(&mut self, length: Option<usize>, what: &'static str) -> Result<(), WriteError> {
        match length {
            Some(length) if length > i32::MAX as usize => Err(WriteError::LongArray { what, length }),
            // The length is less than 2^31, so the length plus one fits 32 bits.
            Some(length) => {
                self.unsigned_varint(length as u32 + 1);
                Ok(())
            }
            None => {
                self.unsigned_varint(0);
                Ok(())
            }
        }
    }
}

impl Write for Vec<u8> {
    fn raw(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}
