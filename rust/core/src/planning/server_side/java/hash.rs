//! Hash codes and comparisons of Java's keys.

use std::cmp::Ordering;

/// A key of a Java map.
pub(crate) trait JavaKey: Copy + Eq {
    /// `hashCode()`.
    fn hash_code(self) -> i32;

    /// `compareTo()`, which orders the keys of a bin that has become a tree. Only equal keys compare as equal.
    fn compare(self, other: Self) -> Ordering;
}

/// A topic's id, as Java's `Uuid`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Uuid {
    upper: i64,
    lower: i64,
}

impl Uuid {
    /// The id with these bytes, the most significant first.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let bits = u128::from_be_bytes(bytes);
        Self { upper: (bits >> 64) as i64, lower: bits as i64 }
    }

    /// An id for a topic whose id is not known. It depends only on the name and on the number of topics that had the name
    /// before. FNV-1a of 128 bits.
    #[must_use]
    pub fn of_name(name: &str, before: usize) -> Self {
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        let mix = |hash: u128, byte: u8| (hash ^ u128::from(byte)).wrapping_mul(PRIME);
        let hash = name.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, mix);
        Self::from_bytes((before as u64).to_be_bytes().into_iter().fold(hash, mix).to_be_bytes())
    }

    /// The bytes, the most significant first.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.upper as u64) << 64 | u128::from(self.lower as u64)).to_be_bytes()
    }
}

impl JavaKey for Uuid {
    fn hash_code(self) -> i32 {
        let mixed = self.upper ^ self.lower;
        (mixed >> 32) as i32 ^ mixed as i32
    }

    fn compare(self, other: Self) -> Ordering {
        // Both halves are signed in Java.
        (self.upper, self.lower).cmp(&(other.upper, other.lower))
    }
}

impl JavaKey for u32 {
    fn hash_code(self) -> i32 {
        self as i32
    }

    fn compare(self, other: Self) -> Ordering {
        (self as i32).cmp(&(other as i32))
    }
}

impl JavaKey for &str {
    fn hash_code(self) -> i32 {
        string_hash(self)
    }

    fn compare(self, other: Self) -> Ordering {
        compare_strings(self, other)
    }
}

/// `String.hashCode()`: a polynomial of the UTF-16 units.
pub(crate) fn string_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// `String.compareTo()`: by UTF-16 units, which differs from the order of bytes above U+FFFF.
pub(crate) fn compare_strings(left: &str, right: &str) -> Ordering {
    left.encode_utf16().cmp(right.encode_utf16())
}
