//! Member ids.

/// Gives out member ids that look like Kafka's (a name and a UUID), the same for the same seed.
#[derive(Debug)]
pub(super) struct MemberIds {
    state: u64,
}

/// So that the whole id fits a STRING whatever the client calls itself.
const LONGEST_NAME: usize = 32_000;

impl MemberIds {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// SplitMix64: a bijection of a counter, so ids of one seed cannot repeat before 2^63 of them are out.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A fresh id for a member with this client id or instance id.
    pub(super) fn generate(&mut self, name: &str) -> String {
        let end = (0..=LONGEST_NAME.min(name.len())).rev().find(|&at| name.is_char_boundary(at)).unwrap_or(0);
        let name = &name[..end];
        let (high, low) = (self.next(), self.next());
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
    fn an_endless_client_id_still_gives_an_id_that_fits() {
        let id = MemberIds::new(0).generate(&"é".repeat(16_383));
        assert!(id.len() <= i16::MAX as usize);
    }
}
