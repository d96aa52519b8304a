//! Rows of ids and lists of names without an allocation each.

use std::hash::{BuildHasher, Hash};
use std::sync::LazyLock;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Rows of `u32` in one slab: row `i` is `items[starts[i]..starts[i + 1]]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Csr {
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Csr {
    /// No rows; rows are added by [`Csr::push_row`].
    #[must_use]
    pub fn new() -> Self {
        Self { starts: vec![0], items: Vec::new() }
    }

    /// No rows, with room for that many rows and items.
    #[must_use]
    pub fn with_capacity(rows: usize, items: usize) -> Self {
        let mut starts = Vec::with_capacity(rows + 1);
        starts.push(0);
        Self { starts, items: Vec::with_capacity(items) }
    }

    /// Removes all rows, and keeps their memory.
    pub(super) fn clear(&mut self) {
        self.starts.truncate(1);
        self.items.clear();
    }

    /// Appends one row.
    ///
    /// # Panics
    /// With 2^32 items in all: their positions would wrap around, and rows would show each other's items.
    pub fn push_row(&mut self, row: &[u32]) {
        self.items.extend_from_slice(row);
        self.starts.push(position(self.items.len()));
    }

    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Row `i`.
    #[must_use]
    pub fn row(&self, i: u32) -> &[u32] {
        &self.items[self.starts[i as usize] as usize..self.starts[i as usize + 1] as usize]
    }

    /// The position in [`Csr::items`] at which row `i` starts.
    #[must_use]
    pub fn start(&self, i: u32) -> u32 {
        self.starts[i as usize]
    }

    /// All rows, one after the other.
    #[must_use]
    pub fn items(&self) -> &[u32] {
        &self.items
    }

    /// All rows in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        self.starts.windows(2).map(|w| &self.items[w[0] as usize..w[1] as usize])
    }

    /// Groups `0..keys.len()` by key: row `k` lists, ascending, the positions whose key is `k`. Keys that are not below
    /// `rows` are left out.
    #[must_use]
    pub fn group_by(keys: &[u32], rows: usize) -> Self {
        let mut starts = vec![0u32; rows + 1];
        let counts = &mut starts[1..];
        for &key in keys {
            if let Some(count) = counts.get_mut(key as usize) {
                *count += 1;
            }
        }
        for i in 0..rows {
            starts[i + 1] += starts[i];
        }
        let mut next = starts[..rows].to_vec();
        let mut items = vec![0u32; starts[rows] as usize];
        for (position, &key) in (0u32..).zip(keys) {
            if let Some(slot) = next.get_mut(key as usize) {
                items[*slot as usize] = position;
                *slot += 1;
            }
        }
        Self { starts, items }
    }

    /// Row `c` of the result lists, ascending, the rows in which `c` occurs; `columns` is the number of rows of the result.
    #[must_use]
    pub fn transpose(&self, columns: usize) -> Self {
        let mut starts = vec![0u32; columns + 1];
        for &item in &self.items {
            starts[item as usize + 1] += 1;
        }
        for i in 0..columns {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut items = vec![0u32; self.items.len()];
        for (i, row) in self.rows().enumerate() {
            for &item in row {
                items[next[item as usize] as usize] = i as u32;
                next[item as usize] += 1;
            }
        }
        Self { starts, items }
    }
}

/// Strings in one slab.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    bytes: String,
    ends: Vec<usize>,
}

impl Names {
    /// Removes all names, and keeps their memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Appends a name; its id is the number of names before it.
    #[inline]
    pub fn push(&mut self, name: &str) {
        // Instance ids are mostly empty, and a call of `memcpy` takes longer than this comparison.
        if !name.is_empty() {
            self.bytes.push_str(name);
        }
        self.ends.push(self.bytes.len());
    }

    /// The number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The name with this id.
    #[must_use]
    pub fn get(&self, id: u32) -> &str {
        let start = if id == 0 { 0 } else { self.ends[id as usize - 1] };
        &self.bytes[start..self.ends[id as usize]]
    }

    /// The bytes of the name with this id, for comparisons: a slice of a `str` would also check its character boundaries.
    #[inline]
    pub(super) fn bytes_of(&self, id: u32) -> &[u8] {
        let start = if id == 0 { 0 } else { self.ends[id as usize - 1] };
        &self.bytes.as_bytes()[start..self.ends[id as usize]]
    }

    /// All names in order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len() as u32).map(|id| self.get(id))
    }

    /// The id of a name, by binary search; the names must be in byte order (topics, members).
    #[must_use]
    pub fn find_sorted(&self, name: &str) -> Option<u32> {
        let (mut low, mut high) = (0, self.len() as u32);
        while low < high {
            let middle = low.midpoint(high);
            match self.get(middle).cmp(name) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(middle),
            }
        }
        None
    }
}

/// Whether two names are equal. A call of `memcmp` takes longer than the comparison of a short name.
#[inline]
pub(super) fn are_equal(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    if (8..=16).contains(&one.len()) {
        return one.last_chunk::<8>() == other.last_chunk::<8>() && one.first_chunk::<8>() == other.first_chunk::<8>();
    }
    one == other
}

/// Names, numbered in the order in which they are interned.
#[derive(Debug, Clone, Default)]
pub struct Interner {
    names: Names,
    table: HashTable<u32>,
}

/// Other clients choose the keys: topics, racks, subscriptions. With a known seed, they could choose keys that all have the same
/// hash, and each lookup would compare all of them. The hash is hashbrown's own (foldhash), with a new seed in every process:
/// SipHash makes a plan of 20,000 partitions a sixth slower. No result depends on the seed, since no table is iterated over.
static SEED: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

pub(super) fn hash_of(value: &(impl Hash + ?Sized)) -> u64 {
    SEED.hash_one(value)
}

/// A position in a slab of rows.
///
/// # Panics
/// With 2^32 items or more.
pub(super) fn position(items: usize) -> u32 {
    u32::try_from(items).expect("a group has fewer than 2^32 claims, and fewer than 2^32 topics in all subscriptions")
}

impl Interner {
    /// The id of the name. A new name gets the next id.
    pub fn intern(&mut self, name: &str) -> u32 {
        let hash = hash_of(name.as_bytes());
        if let Some(&id) = self.table.find(hash, |&id| self.names.bytes_of(id) == name.as_bytes()) {
            return id;
        }
        let id = self.names.len() as u32;
        self.names.push(name);
        let Self { names, table } = self;
        table.insert_unique(hash, id, |&id| hash_of(names.bytes_of(id)));
        id
    }

    /// The id of a name that was interned before.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<u32> {
        self.table.find(hash_of(name.as_bytes()), |&id| self.names.bytes_of(id) == name.as_bytes()).copied()
    }

    /// The names in order of their ids.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::{Path, PathBuf};

    #[test]
    fn hashes_have_a_seed() {
        // Without a seed, the first would be the same number in every process.
        assert_ne!(hash_of(b"orders".as_slice()), rustc_hash::FxBuildHasher.hash_one(b"orders".as_slice()));
        assert_eq!(hash_of(b"orders".as_slice()), hash_of(b"orders".as_slice()));
    }

    /// Solvers, verifiers and the catalogue of the broker may hash without a seed: the core itself assigns the ids that are
    /// their keys.
    #[test]
    fn tables_of_names_have_a_seed() {
        let mut left = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
        let mut unseeded = Vec::new();
        while let Some(path) = left.pop() {
            if path.is_dir() {
                left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else if fs::read_to_string(&path).unwrap().contains("rustc_hash") {
                unseeded.push(path);
            }
        }
        // This file names it only for the comparison above.
        let solver = |path: &Path| path.iter().any(|part| part == "sticky" || part == "lag" || part == "verify");
        let known = |path: &Path| {
            ["broker/catalogue.rs", "group/slab.rs", "planning/subscribers.rs"].iter().any(|end| path.ends_with(end))
        };
        unseeded.retain(|path| !solver(path) && !known(path));
        assert_eq!(
            unseeded,
            Vec::<PathBuf>::new(),
            "use hashbrown's DefaultHashBuilder, or say here that its keys are ids"
        );
    }

    #[test]
    fn names_are_equal_if_all_bytes_are() {
        let text = b"0123456789abcdefghijklmnopqrstuvwxyz";
        for length in 0..text.len() {
            let name = &text[..length];
            assert!(are_equal(name, &text.to_vec()[..length]));
            assert!(!are_equal(name, &text[..length + 1]));
            for at in 0..length {
                let mut other = name.to_vec();
                other[at] ^= 1;
                assert!(!are_equal(name, &other), "byte {at} of {length}");
            }
        }
    }

    #[test]
    fn a_position_is_whole() {
        assert_eq!(position(u32::MAX as usize), u32::MAX);
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    #[should_panic(expected = "fewer than 2^32")]
    fn a_position_is_never_cut() {
        position(1 << 32);
    }
}
