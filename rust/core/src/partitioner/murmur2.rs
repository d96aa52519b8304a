//! The hash of a record's key: 32-bit murmur2 as Kafka's Java client has it, so that both put a key into one partition.

use thiserror::Error;

const SEED: u32 = 0x9747_b28c;
const MULTIPLIER: u32 = 0x5bd1_e995;

/// The hash of one key; signed, as Java prints it. An empty key has a hash, too.
#[must_use]
pub fn hash(key: &[u8]) -> i32 {
    // Java's length is an int: a longer array there is none.
    let mut hash = SEED ^ key.len() as u32;
    let (blocks, tail) = key.as_chunks::<4>();
    for block in blocks {
        let mut mixed = u32::from_le_bytes(*block).wrapping_mul(MULTIPLIER);
        mixed ^= mixed >> 24;
        hash = hash.wrapping_mul(MULTIPLIER) ^ mixed.wrapping_mul(MULTIPLIER);
    }
    if !tail.is_empty() {
        let rest = tail.iter().rev().fold(0, |rest, &byte| rest << 8 | u32::from(byte));
        hash = (hash ^ rest).wrapping_mul(MULTIPLIER);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(MULTIPLIER);
    (hash ^ hash >> 15).cast_signed()
}

/// The index of a hash among `count` partitions, which is at least 1. Java masks the sign away; it does not negate.
#[must_use]
pub fn index(hash: i32, count: u32) -> u32 {
    (hash.cast_unsigned() & 0x7fff_ffff) % count
}

/// A column whose offsets and bytes do not fit each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "key {row} of the column is said to be bytes {start} to {end} of {length}; give ascending offsets within the bytes"
)]
pub struct ColumnError {
    /// The first row that cannot be read.
    pub row: usize,
    /// Where it is said to start.
    pub start: i64,
    /// Where it is said to end.
    pub end: i64,
    /// How many bytes there are.
    pub length: usize,
}

/// The keys of a column: key `i` is `bytes[offsets[i]..offsets[i + 1]]`, unless `is_null(i)`. Calls `each` with the hash of
/// every key in order, `None` for a null.
///
/// # Errors
/// [`ColumnError`] at the first key whose offsets are not within the bytes; `each` has then seen the keys before it.
pub fn column<O: Copy + Into<i64>>(
    offsets: &[O],
    bytes: &[u8],
    is_null: impl Fn(usize) -> bool,
    mut each: impl FnMut(Option<i32>),
) -> Result<(), ColumnError> {
    for (row, pair) in offsets.windows(2).enumerate() {
        if is_null(row) {
            each(None);
            continue;
        }
        let (start, end) = (pair[0].into(), pair[1].into());
        let key = usize::try_from(start).ok().zip(usize::try_from(end).ok()).and_then(|(from, to)| bytes.get(from..to));
        each(Some(hash(key.ok_or(ColumnError { row, start, end, length: bytes.len() })?)));
    }
    Ok(())
}
