//! The iteration order of `TimelineHashMap`, a map of Kafka's group coordinator.

/// The multiplier of its second hash.
const GOLDEN: i64 = -7_046_029_254_386_353_131;

/// Numbers of members in the order of a `TimelineHashMap` with their ids as keys. It never shrinks.
#[derive(Debug, Clone)]
pub(crate) struct TimelineHashMap {
    /// By slot, numbers with their hash codes. The last number of a slot comes first in the order.
    slots: Vec<Vec<(u32, i32)>>,
    size: usize,
}

impl TimelineHashMap {
    /// An empty map: two slots.
    pub(crate) fn new() -> Self {
        Self { slots: vec![Vec::new(); 2], size: 0 }
    }

    /// A map that lists these entries in this order, with as few slots as `put` would have made for them. `None` if no such map
    /// has this order.
    pub(crate) fn listing(entries: &[(u32, i32)]) -> Option<Self> {
        let mut timeline = Self::new();
        while (entries.len() + 1) * 3 > timeline.slots.len() * 4 {
            timeline.slots.resize(2 * timeline.slots.len(), Vec::new());
        }
        let mut last = 0;
        for &(number, hash) in entries {
            let slot = timeline.slot_of(hash);
            if slot < last {
                return None;
            }
            last = slot;
            timeline.slots[slot].insert(0, (number, hash));
        }
        timeline.size = entries.len();
        Some(timeline)
    }

    /// The numbers in the order of the map.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.slots.iter().flat_map(|slot| slot.iter().rev()).map(|&(number, _)| number)
    }

    /// `put`, of a present member or of a new one. If one more entry would be too many for the slots, their number doubles first.
    pub(crate) fn put(&mut self, number: u32, hash: i32) {
        if (self.size + 1) * 3 > self.slots.len() * 4 {
            let old = std::mem::take(&mut self.slots);
            self.slots = vec![Vec::new(); 2 * old.len()];
            for entry in old.into_iter().flatten() {
                let slot = self.slot_of(entry.1);
                self.slots[slot].push(entry);
            }
        }
        let slot = self.slot_of(hash);
        if !self.slots[slot].iter().any(|&(there, _)| there == number) {
            self.slots[slot].push((number, hash));
            self.size += 1;
        }
    }

    /// `remove`.
    pub(crate) fn remove(&mut self, number: u32, hash: i32) {
        let slot = self.slot_of(hash);
        let before = self.slots[slot].len();
        self.slots[slot].retain(|&(there, _)| there != number);
        self.size -= before - self.slots[slot].len();
    }

    fn slot_of(&self, hash: i32) -> usize {
        let mixed = i64::from(hash).wrapping_mul(GOLDEN) as u64;
        (mixed >> (64 - self.slots.len().trailing_zeros())) as usize
    }
}
