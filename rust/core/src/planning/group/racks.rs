//! The racks of the partitions' replicas.

use hashbrown::HashTable;

use super::slab::{Csr, Interner, hash_of};

/// The racks of the replicas by partition. Racks and sets of racks are numbered.
#[derive(Debug, Clone, Default)]
pub struct Racks {
    /// Rack names; a member's rack and the items of `sets` are ids into it.
    pub names: Interner,
    /// Rack set to its racks, ascending, no repeats. A partition whose replicas are unknown has the empty set.
    pub sets: Csr,
    /// Flat partition to rack set; empty when no topic came with racks.
    pub of_partition: Vec<u32>,
}

impl Racks {
    /// Numbers the rack sets of topics, each given with its partition count.
    pub(super) fn number<'a>(topics: impl Iterator<Item = (Option<&'a ReplicaRacks<'a>>, usize)> + Clone) -> Self {
        let mut racks = Self { sets: Csr::new(), ..Self::default() };
        if topics.clone().all(|(given, _)| given.is_none()) {
            return racks;
        }
        let mut known: HashTable<u32> = HashTable::new();
        let mut number = |given: &[&str]| {
            let mut set: Vec<u32> =
                given.iter().filter(|name| !name.is_empty()).map(|name| racks.names.intern(name)).collect();
            set.sort_unstable();
            set.dedup();
            let hash = hash_of(set.as_slice());
            known.find(hash, |&id| racks.sets.row(id) == set).copied().unwrap_or_else(|| {
                let id = racks.sets.len() as u32;
                racks.sets.push_row(&set);
                known.insert_unique(hash, id, |&id| hash_of(racks.sets.row(id)));
                id
            })
        };
        racks.of_partition.reserve(topics.clone().map(|(_, partitions)| partitions).sum());
        for (given, partitions) in topics {
            if let Some(given) = given {
                let ids: Vec<u32> = given.sets.iter().map(|set| number(set)).collect();
                racks.of_partition.extend(given.of_partition.iter().map(|&set| ids[set as usize]));
            } else if partitions > 0 {
                let unknown = number(&[]);
                racks.of_partition.resize(racks.of_partition.len() + partitions, unknown);
            }
        }
        racks
    }
}

/// The racks of each partition's replicas, by partition number. Clusters have few different sets for many partitions, so a set
/// may be given once and be named by its number.
#[derive(Debug, Clone, Default)]
pub struct ReplicaRacks<'a> {
    sets: Vec<Vec<&'a str>>,
    of_partition: Vec<u32>,
}

impl<'a> ReplicaRacks<'a> {
    /// The partitions' racks as numbers of these sets.
    ///
    /// # Panics
    /// If there is a number that no set has.
    #[must_use]
    pub fn new(sets: Vec<Vec<&'a str>>, of_partition: Vec<u32>) -> Self {
        assert!(of_partition.iter().all(|&set| (set as usize) < sets.len()), "a number that no rack set has");
        Self { sets, of_partition }
    }

    /// The number of partitions.
    pub(super) fn len(&self) -> usize {
        self.of_partition.len()
    }
}

/// A set for each partition.
impl<'a> FromIterator<Vec<&'a str>> for ReplicaRacks<'a> {
    fn from_iter<I: IntoIterator<Item = Vec<&'a str>>>(sets: I) -> Self {
        let sets: Vec<_> = sets.into_iter().collect();
        let of_partition = (0..sets.len() as u32).collect();
        Self { sets, of_partition }
    }
}
