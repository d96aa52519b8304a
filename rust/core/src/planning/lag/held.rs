//! The partitions of one member, by their subscribers.

use std::borrow::Cow;

/// The partitions of one member. Those of topics with the same subscribers are together, so that a search for partitions that
/// another member may have skips all others at once.
#[derive(Default)]
pub(super) struct HeldPartitions {
    /// Sets of subscribers in ascending order, each with its partitions in order of their keys. No set is without partitions.
    parts: Vec<(u32, Vec<u32>)>,
    len: usize,
}

impl HeldPartitions {
    /// How many partitions there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// By set of subscribers, the partitions in order of their keys.
    pub(super) fn parts(&self) -> &[(u32, Vec<u32>)] {
        &self.parts
    }

    /// All partitions, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        self.parts.iter().flat_map(|(_, part)| part).copied()
    }

    /// Adds a partition at the end of its set. The keys are in order only after [`HeldPartitions::sort_by_key`].
    pub(super) fn push(&mut self, set: u32, partition: u32) {
        self.len += 1;
        match self.parts.binary_search_by_key(&set, |&(set, _)| set) {
            Ok(at) => self.parts[at].1.push(partition),
            Err(at) => self.parts.insert(at, (set, vec![partition])),
        }
    }

    pub(super) fn sort_by_key<K: Ord>(&mut self, key: impl Fn(u32) -> K) {
        for (_, part) in &mut self.parts {
            part.sort_unstable_by_key(|&partition| key(partition));
        }
    }

    /// Adds a partition at its place in the order. Returns how many elements moved for it.
    pub(super) fn insert<K: Ord>(&mut self, set: u32, partition: u32, key: impl Fn(u32) -> K) -> usize {
        self.len += 1;
        match self.parts.binary_search_by_key(&set, |&(set, _)| set) {
            Ok(found) => {
                let part = &mut self.parts[found].1;
                let at = part.partition_point(|&other| key(other) < key(partition));
                part.insert(at, partition);
                part.len() - at
            }
            Err(at) => {
                self.parts.insert(at, (set, vec![partition]));
                self.parts.len() - at
            }
        }
    }

    /// Removes a partition that the member has. Returns how many elements moved for it.
    pub(super) fn remove<K: Ord>(&mut self, set: u32, partition: u32, key: impl Fn(u32) -> K) -> usize {
        let found = self.parts.binary_search_by_key(&set, |&(set, _)| set).expect("the member has this set");
        let part = &mut self.parts[found].1;
        let at = part.partition_point(|&other| key(other) < key(partition));
        debug_assert_eq!(part.get(at), Some(&partition));
        part.remove(at);
        self.len -= 1;
        let behind = part.len() - at;
        if part.is_empty() {
            self.parts.remove(found);
            return self.parts.len() - found;
        }
        behind
    }

    /// The partitions of the sets for which `may_have` is true, in order of their keys: those of several sets by `sort`.
    pub(super) fn merged(&self, may_have: impl Fn(u32) -> bool, sort: impl FnOnce(&mut [u32])) -> Cow<'_, [u32]> {
        let mut parts = self.parts.iter().filter(|&&(set, _)| may_have(set)).map(|(_, part)| part.as_slice());
        let (Some(first), second) = (parts.next(), parts.next()) else { return Cow::Borrowed(&[]) };
        let Some(second) = second else { return Cow::Borrowed(first) };
        let mut merged = [first, second].concat();
        parts.for_each(|part| merged.extend_from_slice(part));
        sort(&mut merged);
        Cow::Owned(merged)
    }
}
