//! Sizes of record batches and of their records, magic 2.

/// The bytes of a batch before its first record.
pub const HEADER_BYTES: u64 = 61;

/// The broker's default `max.message.bytes`: the size limit of a group's record in `__consumer_offsets`, unless that
/// topic has another setting.
pub const DEFAULT_RECORD_LIMIT: u64 = 1_048_588;

/// The bytes of a record without headers: attributes, timestamp delta and offset delta (one byte each), header count, and
/// key and value with their lengths.
#[must_use]
pub fn record_size(key: Option<usize>, value: Option<usize>) -> u64 {
    // The length of null is -1, a byte.
    let field = |bytes: Option<usize>| bytes.map_or(1, |length| varint_size(length as u64) + length as u64);
    let body = 4 + field(key) + field(value);
    varint_size(body) + body
}

/// The bytes of a VARINT or VARLONG, which are in zigzag form, for a non-negative number.
fn varint_size(number: u64) -> u64 {
    let bits = u64::from(u64::BITS - number.leading_zeros()) + 1;
    bits.div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::{record_size, varint_size};

    #[test]
    fn varint_lengths() {
        for (number, length) in [(0, 1), (63, 1), (64, 2), (8191, 2), (8192, 3), (1_048_575, 3), (1_048_576, 4)] {
            assert_eq!(varint_size(number), length, "{number}");
        }
    }

    #[test]
    fn sizes_of_records() {
        // Length, attributes, timestamp and offset difference, key length, value length, header count.
        assert_eq!(record_size(None, None), 7);
        assert_eq!(record_size(Some(0), Some(0)), 7);
        assert_eq!(record_size(None, Some(50)), 57);
        assert_eq!(record_size(None, Some(63)), 1 + 6 + 63 + 1);
        assert_eq!(record_size(Some(10), Some(64)), 2 + 4 + 11 + 66);
        assert_eq!(record_size(None, Some(8_192)), 3 + 5 + 3 + 8_192);
    }
}
