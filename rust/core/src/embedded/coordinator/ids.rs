//! Member ids.

use crate::split_mix::SplitMix64;

/// Generates member ids in Kafka's form (a name and a UUID). The same seed gives the same ids.
#[derive(Debug)]
pub(super) struct MemberIds {
    numbers: SplitMix64,
}

/// A longer name is cut, so that the id with its UUID fits a STRING.
const LONGEST_NAME: usize = 32_000;

impl MemberIds {
    pub(super) fn new(seed: u64) -> Self {
        Self { numbers: SplitMix64::new(seed) }
    }

    /// A new id in the form of Kafka's UUIDs: 16 bytes as 22 characters of URL-safe base64.
    pub(super) fn uuid(&mut self) -> String {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let (high, low) = (self.numbers.next_number(), self.numbers.next_number());
        let bits = u128::from(high) << 64 | u128::from(low);
        // 21 digits of six bits, and one of the last two bits.
        let digit = |place: u32| (bits >> (122 - 6 * place)) as usize & 63;
        let last = (bits << 4) as usize & 63;
        (0..21).map(digit).chain([last]).map(|digit| char::from(DIGITS[digit])).collect()
    }

    /// A new id for a member with this client id or instance id. An id takes two random numbers, so one seed gives 2^63
    /// different ids.
    pub(super) fn generate(&mut self, name: &str) -> String {
        let end = (0..=LONGEST_NAME.min(name.len())).rev().find(|&at| name.is_char_boundary(at)).unwrap_or(0);
        let name = &name[..end];
        let (high, low) = (self.numbers.next_number(), self.numbers.next_number());
        format!(
            "{name}-{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_shaped_like_kafkas_and_depend_on_the_seed_only() {
        let id = MemberIds::new(7).generate("client");
        assert_eq!(id, MemberIds::new(7).generate("client"));
        assert_ne!(id, MemberIds::new(8).generate("client"));
        assert_eq!(id.len(), "client-".len() + 36);
        let mut ids = MemberIds::new(7);
        let many: std::collections::BTreeSet<_> = (0..1000).map(|_| ids.generate("c")).collect();
        assert_eq!(many.len(), 1000);
    }

    #[test]
    fn uuids_are_shaped_like_kafkas() {
        let mut ids = MemberIds::new(7);
        let many: std::collections::BTreeSet<_> = (0..1000).map(|_| ids.uuid()).collect();
        assert_eq!(many.len(), 1000);
        let is_digit = |digit: char| digit.is_ascii_alphanumeric() || "-_".contains(digit);
        // Two bits are left for the last character.
        assert!(many.iter().all(|id| id.len() == 22 && id.chars().all(is_digit) && id.ends_with(['A', 'Q', 'g', 'w'])));
    }

    #[test]
    fn an_endless_client_id_still_gives_an_id_that_fits() {
        let id = MemberIds::new(0).generate(&"é".repeat(16_383));
        assert!(id.len() <= i16::MAX as usize);
    }
}
