//! Hubs: the members of a lineup that are on one rack.

use std::collections::HashMap;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::planning::group::{Csr, Group, NONE};
use crate::planning::sticky::rows::Lineups;

/// The hubs of all lineups. A partition costs the same for all subscribers on one rack that do not hold it, so rows share the
/// arcs from a hub to its members.
pub(super) struct Hubs {
    /// By lineup, its first hub, and at the end the number of all hubs. The hubs of a lineup are ordered by their first member:
    /// ordered by rack, the plan would depend on the order in which racks were read.
    starts: Vec<u32>,
    /// By lineup, its racks in ascending order, each with its hub. [`NONE`] is the rack of members without one.
    by_rack: Vec<(u32, u32)>,
    /// Hub to its members, ascending.
    pub members: Csr,
}

impl Hubs {
    /// O(subscriptions log subscriptions).
    pub(super) fn new(group: &Group, lineups: &Lineups) -> Self {
        let (mut starts, mut by_rack, mut members) = (vec![0], Vec::new(), Csr::new());
        let mut subscribers = Vec::new();
        let rack = |member: u32| group.racks()[member as usize];
        for lineup in 0..lineups.sizes.len() as u32 {
            lineups.members(lineup, &mut subscribers);
            subscribers.sort_by_key(|&member| rack(member));
            let mut hubs: Vec<&[u32]> = subscribers.chunk_by(|&a, &b| rack(a) == rack(b)).collect();
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

    pub(super) fn of_lineup(&self, lineup: u32) -> std::ops::Range<u32> {
        self.starts[lineup as usize]..self.starts[lineup as usize + 1]
    }

    /// The hub of a lineup on this rack.
    fn on(&self, lineup: u32, rack: u32) -> Option<u32> {
        let hubs = self.of_lineup(lineup);
        let racks = &self.by_rack[hubs.start as usize..hubs.end as usize];
        racks.binary_search_by_key(&rack, |hub| hub.0).ok().map(|at| racks[at].1)
    }
}

/// Numbered sets of hubs that are near a partition: their members read it from their own rack. Sets of racks that differ only
/// in racks where the lineup has no member are one set of hubs.
#[derive(Default)]
pub(super) struct Sets {
    /// Set to its hubs, ascending.
    pub hubs: Csr,
    known: HashTable<u32>,
    of: HashMap<(u32, u32), u32, FxBuildHasher>,
}

impl Sets {
    pub(super) fn new() -> Self {
        Self { hubs: Csr::new(), ..Self::default() }
    }

    /// The set of a lineup and the racks of the replicas.
    pub(super) fn number(&mut self, group: &Group, hubs: &Hubs, lineup: u32, rack_set: u32) -> u32 {
        if let Some(&set) = self.of.get(&(lineup, rack_set)) {
            return set;
        }
        // A member without a rack is near every partition.
        let racks = group.topics().racks().sets.row(rack_set).iter().copied().chain([NONE]);
        let mut near: Vec<u32> = racks.filter_map(|rack| hubs.on(lineup, rack)).collect();
        near.sort_unstable();
        let hash = |set: &[u32]| std::hash::BuildHasher::hash_one(&FxBuildHasher, set);
        let known = self.known.find(hash(&near), |&set| self.hubs.row(set) == near).copied();
        let set = known.unwrap_or_else(|| {
            let set = self.hubs.len() as u32;
            self.hubs.push_row(&near);
            self.known.insert_unique(hash(&near), set, |&set| hash(self.hubs.row(set)));
            set
        });
        self.of.insert((lineup, rack_set), set);
        set
    }

    /// Whether the members of a lineup on this rack read a row with this set from another rack.
    pub(super) fn mismatch(&self, hubs: &Hubs, lineup: u32, set: u32, rack: u32) -> bool {
        hubs.on(lineup, rack).is_none_or(|hub| self.hubs.row(set).binary_search(&hub).is_err())
    }
}
