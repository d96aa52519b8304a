//! `HashSet<Integer>`: the partitions of a topic in the assignment of a member.
//!
//! Most sets are made in one go, and their order follows from the last capacity alone. Only a set that is changed, or that may
//! crowd a bin, goes through the table insertion by insertion.

use super::hash_map::HashMap;
use super::room_for;

/// The most nodes of a bin that is not a tree.
const PLAIN_BIN: u8 = 8;
const LEAST_CAPACITY: usize = 16;

/// A set that an assignor builds or changes.
#[derive(Debug, Clone)]
pub(crate) enum IntSet {
    /// A copy of a set with this order.
    Copied(Vec<u32>),
    /// A set that was made empty with this capacity. These partitions were added in this order, and none was removed.
    Fresh(usize, Vec<u32>),
    /// Any other set.
    Live(HashMap<u32>),
}

impl IntSet {
    /// `new HashSet()`.
    pub(crate) fn new() -> Self {
        Self::with_capacity(LEAST_CAPACITY)
    }

    /// `new HashSet(capacity)`.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self::Fresh(capacity, Vec::new())
    }

    /// The number of partitions.
    pub(crate) fn len(&self) -> usize {
        match self {
            IntSet::Copied(list) | IntSet::Fresh(_, list) => list.len(),
            IntSet::Live(map) => map.len(),
        }
    }

    /// Adds partitions that are not in the set.
    pub(crate) fn extend(&mut self, partitions: impl IntoIterator<Item = u32>) {
        if let IntSet::Fresh(_, list) = self {
            list.extend(partitions);
        } else {
            let map = self.live();
            for partition in partitions {
                map.put(partition);
            }
        }
    }

    /// Removes a partition.
    pub(crate) fn remove(&mut self, partition: u32) {
        self.live().remove(partition);
    }

    /// The partitions in the order of the set. O(partitions), unless bins are crowded.
    pub(crate) fn into_list(self) -> Vec<u32> {
        match self {
            IntSet::Copied(list) => read_back(list),
            IntSet::Live(map) => map.keys().collect(),
            IntSet::Fresh(capacity, list) => {
                let last = grown(capacity.next_power_of_two(), list.len());
                // With so few runs of consecutive numbers, no bin had more nodes than a list may have, at any capacity of the
                // growing set.
                let runs = 1 + list.windows(2).filter(|pair| pair[0].wrapping_add(1) != pair[1]).count();
                let plain = (runs <= usize::from(PLAIN_BIN)).then(|| by_bins(&list, last)).flatten();
                plain.unwrap_or_else(|| IntSet::Fresh(capacity, list).live().keys().collect())
            }
        }
    }

    fn live(&mut self) -> &mut HashMap<u32> {
        let map = match self {
            IntSet::Live(_) => None,
            IntSet::Copied(list) => Some(HashMap::of_set(list.len(), list.iter().copied())),
            IntSet::Fresh(capacity, list) => {
                let mut map = HashMap::with_capacity(*capacity);
                for &partition in list.iter() {
                    map.put(partition);
                }
                Some(map)
            }
        };
        if let Some(map) = map {
            *self = IntSet::Live(map);
        }
        match self {
            IntSet::Live(map) => map,
            IntSet::Copied(_) | IntSet::Fresh(..) => unreachable!("the set is live by now"),
        }
    }
}

/// The order of `new HashSet(list)`: of a target that is read from its record, or copied from another set.
pub(crate) fn read_back(list: Vec<u32>) -> Vec<u32> {
    let capacity = room_for(list.len()).max(LEAST_CAPACITY).next_power_of_two();
    match by_bins(&list, capacity) {
        Some(ordered) => ordered,
        None => HashMap::of_set(list.len(), list).keys().collect(),
    }
}

/// The capacity after `count` insertions, if no bin gets crowded.
fn grown(capacity: usize, count: usize) -> usize {
    let mut capacity = capacity;
    while count > capacity * 3 / 4 {
        capacity *= 2;
    }
    capacity
}

/// The list in order of bins, and within a bin in the list's own order. `None` if a bin is crowded.
fn by_bins(list: &[u32], capacity: usize) -> Option<Vec<u32>> {
    let bin = |partition: u32| (partition ^ partition >> 16) as usize & (capacity - 1);
    if list.windows(2).all(|pair| bin(pair[0]) < bin(pair[1])) {
        return Some(list.to_vec());
    }
    let mut ends = vec![0u32; capacity + 1];
    for &partition in list {
        ends[bin(partition) + 1] += 1;
    }
    if ends.iter().any(|&count| count > u32::from(PLAIN_BIN)) {
        return None;
    }
    for at in 0..capacity {
        ends[at + 1] += ends[at];
    }
    let mut ordered = vec![0; list.len()];
    for &partition in list {
        let place = &mut ends[bin(partition)];
        ordered[*place as usize] = partition;
        *place += 1;
    }
    Some(ordered)
}
