//! The iteration order of `java.util.HashMap`.

use crate::planning::group::NONE;

use super::hash::JavaKey;
use super::node::Node;
use super::tree::{self, Links};

/// A bin with this many nodes becomes a tree with the next node, if the table is large enough; otherwise the table grows.
const TREEIFY: usize = 8;
const LEAST_TREE_CAPACITY: usize = 64;
const UNTREEIFY: usize = 6;
const DEFAULT_CAPACITY: usize = 16;

/// The keys of a `HashMap`, in its order.
#[derive(Debug, Clone)]
pub(crate) struct HashMap<K> {
    /// By bin, its first node. Empty until the first insertion, as in Java.
    heads: Vec<u32>,
    nodes: Vec<Node<K>>,
    /// By node, its place in a tree. Filled once some bin is a tree.
    links: Vec<Links>,
    size: usize,
    /// The size above which the table doubles. Before the first insertion: the capacity it will have.
    threshold: usize,
}

impl<K: JavaKey> HashMap<K> {
    /// `new HashMap()`.
    pub(crate) fn new() -> Self {
        Self { heads: Vec::new(), nodes: Vec::new(), links: Vec::new(), size: 0, threshold: DEFAULT_CAPACITY }
    }

    /// `new HashMap(capacity)`.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { threshold: capacity.next_power_of_two(), ..Self::new() }
    }

    /// `new HashSet(collection)`, where `size` is the collection's own `size()`.
    pub(crate) fn of_set(size: usize, keys: impl IntoIterator<Item = K>) -> Self {
        let mut set = Self::with_capacity(super::room_for(size).max(DEFAULT_CAPACITY));
        for key in keys {
            set.put(key);
        }
        set
    }

    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.size
    }

    /// The keys in the order of the map.
    pub(crate) fn keys(&self) -> impl Iterator<Item = K> + '_ {
        self.heads.iter().flat_map(|&head| self.bin(head)).map(|node| self.nodes[node as usize].key)
    }

    /// `put`. Whether the key is new.
    pub(crate) fn put(&mut self, key: K) -> bool {
        if self.heads.is_empty() {
            self.resize();
        }
        let hash = spread(key);
        let bin = self.bin_of(hash);
        let head = self.heads[bin];
        if head == NONE {
            self.heads[bin] = self.push(hash, key, NONE);
        } else if self.find(head, key).is_some() {
            return false;
        } else if self.nodes[head as usize].treed {
            self.put_in_tree(bin, hash, key);
        } else {
            let (last, count) = self.bin(head).fold((head, 0), |(_, count), node| (node, count + 1));
            self.nodes[last as usize].next = self.push(hash, key, NONE);
            if count >= TREEIFY {
                self.treeify_or_grow(bin);
            }
        }
        self.size += 1;
        if self.size > self.threshold {
            self.resize();
        }
        true
    }

    /// `computeIfAbsent` with a key that is absent: the table grows before the insertion, and the key enters at the head of its
    /// bin. Whether the key is new.
    pub(crate) fn compute_if_absent(&mut self, key: K) -> bool {
        if self.heads.is_empty() || self.size > self.threshold {
            self.resize();
        }
        let hash = spread(key);
        let bin = self.bin_of(hash);
        let head = self.heads[bin];
        if head != NONE && self.find(head, key).is_some() {
            return false;
        }
        if head != NONE && self.nodes[head as usize].treed {
            self.put_in_tree(bin, hash, key);
        } else {
            let count = self.bin(head).count();
            self.heads[bin] = self.push(hash, key, head);
            // Java counts the new node here, and does not in `put`.
            if count + 1 >= TREEIFY {
                self.treeify_or_grow(bin);
            }
        }
        self.size += 1;
        true
    }

    /// `remove`. Whether the key was there.
    pub(crate) fn remove(&mut self, key: K) -> bool {
        if self.heads.is_empty() {
            return false;
        }
        let hash = spread(key);
        let bin = self.bin_of(hash);
        let head = self.heads[bin];
        let Some(node) = self.find(head, key) else { return false };
        if self.nodes[head as usize].treed {
            let stays_tree = tree::remove(&mut self.nodes, &mut self.links, &mut self.heads[bin], node);
            if !stays_tree {
                self.untreeify(self.heads[bin]);
            }
        } else {
            let next = self.nodes[node as usize].next;
            match self.bin(head).take_while(|&at| at != node).last() {
                None => self.heads[bin] = next,
                Some(before) => self.nodes[before as usize].next = next,
            }
        }
        self.size -= 1;
        true
    }

    fn bin(&self, head: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors((head != NONE).then_some(head), |&node| {
            Some(self.nodes[node as usize].next).filter(|&next| next != NONE)
        })
    }

    fn bin_of(&self, hash: i32) -> usize {
        hash as u32 as usize & (self.heads.len() - 1)
    }

    fn find(&self, head: u32, key: K) -> Option<u32> {
        self.bin(head).find(|&node| self.nodes[node as usize].key == key)
    }

    fn push(&mut self, hash: i32, key: K, next: u32) -> u32 {
        let node = self.nodes.len() as u32;
        self.nodes.push(Node { hash, key, next, treed: false });
        if !self.links.is_empty() {
            self.links.push(Links::default());
        }
        node
    }

    fn put_in_tree(&mut self, bin: usize, hash: i32, key: K) {
        let node = self.push(hash, key, NONE);
        self.nodes[node as usize].treed = true;
        tree::insert(&mut self.nodes, &mut self.links, &mut self.heads[bin], node);
    }

    fn treeify_or_grow(&mut self, bin: usize) {
        if self.heads.len() < LEAST_TREE_CAPACITY {
            self.resize();
        } else {
            self.treeify(bin);
        }
    }

    /// Makes the list of a bin a tree. The list keeps its order, but for the root, which comes first.
    fn treeify(&mut self, bin: usize) {
        self.links.resize(self.nodes.len(), Links::default());
        let list: Vec<u32> = self.bin(self.heads[bin]).collect();
        for &node in &list {
            self.nodes[node as usize].treed = true;
        }
        self.heads[bin] = tree::build(&mut self.nodes, &mut self.links, &list);
    }

    fn untreeify(&mut self, head: u32) {
        let list: Vec<u32> = self.bin(head).collect();
        for node in list {
            self.nodes[node as usize].treed = false;
        }
    }

    fn resize(&mut self) {
        let old = self.heads.len();
        let capacity = if old == 0 { self.threshold } else { 2 * old };
        self.threshold = capacity * 3 / 4;
        self.heads.resize(capacity, NONE);
        for bin in 0..old {
            let head = self.heads[bin];
            if head == NONE || self.nodes[head as usize].next == NONE {
                if head != NONE && self.nodes[head as usize].hash as u32 as usize & old != 0 {
                    self.heads[bin] = NONE;
                    self.heads[bin + old] = head;
                }
            } else {
                self.split(bin, old);
            }
        }
    }

    /// Splits a bin between itself and its twin in the upper half. Both keep the order.
    fn split(&mut self, bin: usize, old: usize) {
        let treed = self.nodes[self.heads[bin] as usize].treed;
        let (mut ends, mut counts) = ([NONE; 2], [0usize; 2]);
        let mut node = self.heads[bin];
        self.heads[bin] = NONE;
        while node != NONE {
            let next = self.nodes[node as usize].next;
            let half = usize::from(self.nodes[node as usize].hash as u32 as usize & old != 0);
            match ends[half] {
                NONE => self.heads[bin + half * old] = node,
                end => self.nodes[end as usize].next = node,
            }
            if treed {
                self.links[node as usize].prev = ends[half];
            }
            self.nodes[node as usize].next = NONE;
            ends[half] = node;
            counts[half] += 1;
            node = next;
        }
        for half in 0..2 {
            let twin = bin + half * old;
            if treed && counts[half] > 0 {
                if counts[half] <= UNTREEIFY {
                    self.untreeify(self.heads[twin]);
                } else if counts[1 - half] > 0 {
                    self.treeify(twin);
                }
            }
        }
    }
}

/// `HashMap.hash()`: the upper half of the hash code counts too.
fn spread<K: JavaKey>(key: K) -> i32 {
    let hash = key.hash_code();
    hash ^ (hash as u32 >> 16) as i32
}
