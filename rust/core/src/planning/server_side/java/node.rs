//! A node of a hash map, which a bin and a tree share.

#[derive(Debug, Clone)]
pub(super) struct Node<K> {
    /// The hash code, spread.
    pub(super) hash: i32,
    pub(super) key: K,
    /// The next node of the bin, also within a tree.
    pub(super) next: u32,
    /// Whether its bin is a tree.
    pub(super) treed: bool,
}
