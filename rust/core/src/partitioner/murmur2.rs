//! The hash of a record's key: 32-bit murmur2 as in Kafka's Java client. With another hash, records with the same key
//! would go to different partitions.

const SEED: u32 = 0x9747_b28c;
const MULTIPLIER: u32 = 0x5bd1_e995;

/// The hash of one key, signed as in Java. An empty key has a hash, too.
#[must_use]
pub fn hash(key: &[u8]) -> i32 {
    // In Java the length is an int, and no array is longer.
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

/// The index of a hash among `count` partitions; `count` is at least 1. As in Java, the sign bit is cleared, and the
/// number is not negated.
#[must_use]
pub fn index(hash: i32, count: u32) -> u32 {
    (hash.cast_unsigned() & 0x7fff_ffff) % count
}
