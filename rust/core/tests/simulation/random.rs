//! Everything that happens in a simulation follows from its seed.

use kafka_assignors_core::split_mix::SplitMix64;

/// A stream of numbers.
#[derive(Debug, Clone)]
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed ^ 0x005e_ed0f_ba11))
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0.next_number()
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.number() % end.max(1)
    }

    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    pub(crate) fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }
}
