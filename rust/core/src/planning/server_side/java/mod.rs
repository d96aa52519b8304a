//! The orders of Java's collections, on which the broker's plans depend.
//!
//! A `HashMap` is in the order of its bins, and a bin is in the order of insertion until it becomes a tree. So the order follows
//! from the hash codes, from the capacity at each moment, and from the sequence of insertions and removals. These maps have keys
//! only; the caller keeps the values by key.

mod hash;
mod hash_map;
mod int_set;
mod node;
mod timeline;
mod tree;

pub use hash::Uuid;
pub(crate) use hash::{JavaKey, compare_strings, string_hash};
pub(crate) use hash_map::HashMap;
pub(crate) use int_set::{IntSet, read_back};
pub(crate) use timeline::TimelineHashMap;

/// The capacity that Java computes for `count` entries, as `(int) (count / 0.75f) + 1`, in Java's own arithmetic.
pub(crate) fn room_for(count: usize) -> usize {
    (count as f32 / 0.75f32) as usize + 1
}
