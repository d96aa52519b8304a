//! The key hashes that producers use, for whole columns of keys: Java's murmur2, librdkafka's CRC-32 and FNV-1a.

use std::num::NonZeroU32;

use super::murmur2;

/// The hash with which a producer chooses the partition of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyHash {
    /// Java's hash without the sign bit; librdkafka's `murmur2` and `murmur2_random`.
    Murmur2,
    /// CRC-32 as in zlib; librdkafka's `consistent` and, except for empty keys, its default `consistent_random`.
    Crc32,
    /// The absolute value of 32-bit FNV-1a as a signed number; librdkafka's `fnv1a` and `fnv1a_random`, Sarama.
    Fnv1a,
}

impl KeyHash {
    /// The hash with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "murmur2" => Some(Self::Murmur2),
            "crc32" => Some(Self::Crc32),
            "fnv1a" => Some(Self::Fnv1a),
            _ => None,
        }
    }

    /// The hash of one key. An empty key has a hash, too.
    #[must_use]
    pub fn hash(self, key: &[u8]) -> u32 {
        match self {
            Self::Murmur2 => murmur2::hash(key).cast_unsigned() & 0x7fff_ffff,
            Self::Crc32 => crc32fast::hash(key),
            Self::Fnv1a => fnv1a(key).cast_signed().unsigned_abs(),
        }
    }

    /// The partition of a key among `count` partitions.
    #[must_use]
    pub fn partition(self, key: &[u8], count: NonZeroU32) -> u32 {
        self.hash(key) % count
    }
}

fn fnv1a(key: &[u8]) -> u32 {
    key.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check values from the definitions of both hashes, and the empty key.
    #[test]
    fn published_values() {
        assert_eq!(KeyHash::Crc32.hash(b"123456789"), 0xcbf4_3926);
        assert_eq!(KeyHash::Crc32.hash(b""), 0);
        assert_eq!(fnv1a(b""), 0x811c_9dc5);
        assert_eq!(fnv1a(b"a"), 0xe40c_292c);
        assert_eq!(fnv1a(b"foobar"), 0xbf9c_f968);
        assert_eq!(KeyHash::Murmur2.hash(b"21"), 1_173_551_340);
    }

    /// librdkafka and Sarama use the absolute value of the signed number.
    #[test]
    fn fnv1a_loses_its_sign() {
        assert_eq!(KeyHash::Fnv1a.hash(b"foobar"), 0xbf9c_f968_u32.wrapping_neg());
        assert_eq!(KeyHash::Fnv1a.partition(b"foobar", NonZeroU32::new(10).unwrap()), 0x4063_0698 % 10);
    }

    #[test]
    fn names() {
        for (name, hash) in [("murmur2", KeyHash::Murmur2), ("crc32", KeyHash::Crc32), ("fnv1a", KeyHash::Fnv1a)] {
            assert_eq!(KeyHash::named(name), Some(hash));
        }
        assert_eq!(KeyHash::named("md5"), None);
    }
}
