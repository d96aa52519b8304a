//! Hubs: the members of a set of subscribers that are on one rack.

use std::collections::HashMap;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::planning::group::{Csr, Group, NONE};
use crate::planning::subscribers::Subscribers;

/// The hubs of all sets of subscribers. A partition costs the same for all subscribers on one rack that do not hold it, so rows
/// share the arcs from a hub to its members.
pub(super) struct Hubs {
    /// By set of subscribers, its first hub, and at the end the number of all hubs. The hubs of a set are ordered by their first
    /// member: ordered by rack, the plan would depend on the order in which racks were read.
    starts: Vec<u32>,
    /// By set of subscribers, its racks in ascending order, each with its hub. [`NONE`] is the rack of members without one.
    by_rack: Vec<(u32, u32)>,
    /// Hub to its members, ascending.
    pub members: Csr,
}

impl Hubs {
    /// O(subscriptions log subscriptions).
    pub(super) fn new(group: &Group, subscribers: &Subscribers) -> Self {
        let (mut starts, mut by_rack, mut members) = (vec![0], Vec::new(), Csr::new());
        let mut of_set = Vec::new();
        let rack = |member: u32| group.racks()[member as usize];
        for set in 0..subscribers.len() as u32 {
            subscribers.put_members(set, &mut of_set);
            of_set.sort_by_key(|&member| rack(member));
            let mut hubs: Vec<&[u32]> = of_set.chunk_by(|&a, &b| rack(a) == rack(b)).collect();
            hubs.sort_unstable_by_key(|hub| hub[0]);
            let first = by_rack.len();
            for hub in hubs {
                by_rack.push((rack(hub[0]), members.len() as u32));
                members.push_row(hub);
            }
            by_rack[first..].sort_unstable();
            starts.push(by_rack.len() as u32);
        }
        Self { starts, by_rack, members }
    }

    pub(super) fn len(&self) -> usize {
        self.by_rack.len()
    }

    pub(super) fn of_set(&self, set: u32) -> std::ops::Range<u32> {
        self.starts[set as usize]..self.starts[set as usize + 1]
    }

    /// The hub of a set of subscribers on this rack.
    fn on(&self, set: u32, rack: u32) -> Option<u32> {
        let hubs = self.of_set(set);
        let racks = &self.by_rack[hubs.start as usize..hubs.end as usize];
        racks.binary_search_by_key(&rack, |hub| hub.0).ok().map(|at| racks[at].1)
    }
}

/// Numbered sets of hubs that are near a partition: their members read it from their own rack. Sets of racks that differ only
/// in racks on which no subscriber is are one set of hubs.
#[derive(Default)]
pub(super) struct NearSets {
    /// Near set to its hubs, ascending.
    pub hubs: Csr,
    known: HashTable<u32>,
    of: HashMap<(u32, u32), u32, FxBuildHasher>,
}

impl NearSets {
    pub(super) fn new() -> Self {
        Self { hubs: Csr::new(), ..Self::default() }
    }

    /// The near set of a set of subscribers and the racks of the replicas.
    pub(super) fn number(&mut self, group: &Group, hubs: &Hubs, set: u32, rack_set: u32) -> u32 {
        if let Some(&near_set) = self.of.get(&(set, rack_set)) {
            return near_set;
        }
        // A member without a rack is near every partition.
        let racks = group.topics().racks().sets.row(rack_set).iter().copied().chain([NONE]);
        let mut near: Vec<u32> = racks.filter_map(|rack| hubs.on(set, rack)).collect();
        near.sort_unstable();
        let hash = |near: &[u32]| std::hash::BuildHasher::hash_one(&FxBuildHasher, near);
        let known = self.known.find(hash(&near), |&near_set| self.hubs.row(near_set) == near).copied();
        let near_set = known.unwrap_or_else(|| {
            let near_set = self.hubs.len() as u32;
            self.hubs.push_row(&near);
            self.known.insert_unique(hash(&near), near_set, |&near_set| hash(self.hubs.row(near_set)));
            near_set
        });
        self.of.insert((set, rack_set), near_set);
        near_set
    }

    /// Whether the subscribers on this rack read a row with this near set from another rack.
    pub(super) fn mismatch(&self, hubs: &Hubs, set: u32, near_set: u32, rack: u32) -> bool {
        hubs.on(set, rack).is_none_or(|hub| self.hubs.row(near_set).binary_search(&hub).is_err())
    }
}
