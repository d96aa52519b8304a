//! Chains of moves from a member to one with at least two partitions fewer.

use super::Stop;
use super::network::Network;
use crate::budget::{Budget, Spent};
use crate::group::NONE;

/// Applies chains until there is none: then no plan has a lower balance score.
///
/// The members are gone through from the fullest. What can be reached from a member without success need not be visited
/// again from one that is not fuller: all of it has at least the load of the first less one. So a round without success,
/// which is the proof, costs as much as one pass over the network.
pub(super) fn level(network: &mut Network, patience: usize, budget: &Budget<'_>) -> Result<(), Stop> {
    let mut applied = 0;
    if patience == usize::MAX {
        // Far from level, as it may be, whole sets of rows first.
        for _ in 0..64 {
            if !network.level_sets(budget)? {
                break;
            }
        }
    }
    loop {
        let before = applied;
        let mut search = Search::new(network);
        for source in heaviest_first(network) {
            while let Some(target) = search.run(network, source, budget)? {
                applied += 1;
                if applied > patience {
                    return Err(Stop::TooFar);
                }
                search.apply(network, source, target);
            }
        }
        if applied == before {
            return Ok(());
        }
    }
}

/// Whether there is no chain.
pub(super) fn is_level(network: &Network, budget: &Budget<'_>) -> Result<bool, Spent> {
    let mut search = Search::new(network);
    for source in heaviest_first(network) {
        if search.run(network, source, budget)?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn heaviest_first(network: &Network) -> Vec<u32> {
    let mut order: Vec<u32> = (0..network.loads.len() as u32).collect();
    order.sort_by_key(|&member| std::cmp::Reverse(network.loads[member as usize]));
    order
}

struct Search {
    /// Members that were reached, or searched from.
    reached: Vec<bool>,
    /// By set of subscribers, the cell of the member from which it was reached.
    set_from: Vec<u32>,
    /// By class, the set from which it was reached.
    class_from: Vec<u32>,
    queue: Vec<u32>,
    sets: Vec<u32>,
    classes: Vec<u32>,
}

impl Search {
    fn new(network: &Network) -> Self {
        Self {
            reached: vec![false; network.loads.len()],
            set_from: vec![NONE; network.parties_of.len()],
            class_from: vec![NONE; network.members_of.len()],
            queue: Vec::new(),
            sets: Vec::new(),
            classes: Vec::new(),
        }
    }

    /// Looks for a member with at least two partitions fewer. Without success, what was reached stays marked.
    fn run(&mut self, network: &Network, source: u32, budget: &Budget<'_>) -> Result<Option<u32>, Spent> {
        self.queue.clear();
        self.sets.clear();
        self.classes.clear();
        if self.reached[source as usize] {
            return Ok(None);
        }
        self.reached[source as usize] = true;
        self.queue.push(source);
        let mut next = 0;
        while let Some(&member) = self.queue.get(next) {
            next += 1;
            budget.spend(1 + network.cells_of_member[member as usize].len() as u64)?;
            for &id in &network.cells_of_member[member as usize] {
                let cell = network.cells[id as usize];
                let set = network.set_of[cell.row as usize];
                if cell.has == 0 || self.set_from[set as usize] != NONE {
                    continue;
                }
                self.set_from[set as usize] = id;
                self.sets.push(set);
                for class in network.classes_of_set(set) {
                    budget.spend(1)?;
                    if self.class_from[class as usize] != NONE {
                        continue;
                    }
                    self.class_from[class as usize] = set;
                    self.classes.push(class);
                    let members = network.members_of.row(class);
                    budget.spend(members.len() as u64)?;
                    let lightest = members.iter().min_by_key(|&&member| network.loads[member as usize]);
                    let light = |&&member: &&u32| network.loads[member as usize] + 2 <= network.loads[source as usize];
                    if let Some(&target) = lightest.filter(light) {
                        return Ok(Some(target));
                    }
                    for &member in members {
                        if !self.reached[member as usize] {
                            self.reached[member as usize] = true;
                            self.queue.push(member);
                        }
                    }
                }
            }
        }
        Ok(None)
    }

    /// Moves along the chain that [`Search::run`] found as much as levels the two ends, and forgets that search's marks.
    fn apply(&mut self, network: &mut Network, source: u32, target: u32) {
        let mut chain = Vec::new();
        let mut count =
            ((network.loads[source as usize] - network.loads[target as usize]) / 2).min(u64::from(u32::MAX));
        let mut member = target;
        while member != source {
            let set = self.class_from[network.class_of[member as usize] as usize];
            let from = self.set_from[set as usize];
            chain.push((from, network.cells[from as usize].row, member));
            count = count.min(u64::from(network.cells[from as usize].has));
            member = network.cells[from as usize].member;
        }
        for (from, row, member) in chain {
            let to = network.cell(row, member);
            network.shift(from, to, count as u32);
        }
        for &member in &self.queue {
            self.reached[member as usize] = false;
        }
        for &set in &self.sets {
            self.set_from[set as usize] = NONE;
        }
        for &class in &self.classes {
            self.class_from[class as usize] = NONE;
        }
    }
}
