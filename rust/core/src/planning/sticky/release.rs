//! The choice of the partitions that a member loses: it keeps the first by (number, topic), so that the loss spreads over the
//! topics.

use crate::planning::group::NONE;

/// A partition as a key that orders by number, then by topic: of equal numbers, the flat id decides. `first` is the flat id of the
/// topic's partition 0.
///
/// ```text
/// number: 32 bits | flat id: 32 bits
/// ```
#[inline]
pub(super) fn key(partition: u32, first: u32) -> u64 {
    u64::from(partition - first) << 32 | u64::from(partition)
}

/// Takes from a member, which has the partitions of these keys, all but the first `keeps`, which are fewer than all. O(keys).
#[inline]
pub(super) fn cut(owner: &mut [u32], keys: &mut [u64], keeps: usize) {
    keys.select_nth_unstable(keeps);
    for &key in &keys[keeps..] {
        owner[key as u32 as usize] = NONE;
    }
}
