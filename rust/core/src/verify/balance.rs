//! Chains of moves from a member to one with at least two partitions fewer.

use super::Stop;
use super::scratch_plan::ScratchPlan;
use crate::planning::budget::{Budget, Spent};
use crate::planning::group::NONE;

/// Applies chains until there is none: then no plan has a lower balance score.
///
/// The search begins with the fullest members. If no chain from a member succeeds, all members that it reaches have at least
/// its load less one. So no chain through them succeeds from a member that is not fuller, and they are not visited again. A
/// round without success, which is the proof, costs one pass over the scratch plan.
pub(super) fn level(scratch: &mut ScratchPlan, patience: usize, budget: &Budget<'_>) -> Result<(), Stop> {
    let mut applied = 0;
    if patience == usize::MAX && scratch.most.is_empty() {
        // The plan may be far from level: whole sets of rows are levelled first.
        for _ in 0..64 {
            if !scratch.level_sets(budget)? {
                break;
            }
        }
    }
    loop {
        let before = applied;
        let mut search = ChainSearch::new(scratch);
        for source in heaviest_first(scratch) {
            while let Some(target) = search.run(scratch, source, budget)? {
                applied += 1;
                if applied > patience {
                    return Err(Stop::TooFar);
                }
                search.apply(scratch, source, target);
            }
        }
        if applied == before {
            return Ok(());
        }
    }
}

/// Whether there is no chain.
pub(super) fn is_level(scratch: &ScratchPlan, budget: &Budget<'_>) -> Result<bool, Spent> {
    let mut search = ChainSearch::new(scratch);
    for source in heaviest_first(scratch) {
        if search.run(scratch, source, budget)?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn heaviest_first(scratch: &ScratchPlan) -> Vec<u32> {
    let mut order: Vec<u32> = (0..scratch.loads.len() as u32).collect();
    order.sort_by_key(|&member| std::cmp::Reverse(scratch.weight(member)));
    order
}

struct ChainSearch {
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

impl ChainSearch {
    fn new(scratch: &ScratchPlan) -> Self {
        Self {
            reached: vec![false; scratch.loads.len()],
            set_from: vec![NONE; scratch.parties_of.len()],
            class_from: vec![NONE; scratch.members_of.len()],
            queue: Vec::new(),
            sets: Vec::new(),
            classes: Vec::new(),
        }
    }

    /// Searches for a member with at least two partitions fewer. Without success, the reached members stay marked.
    fn run(&mut self, scratch: &ScratchPlan, source: u32, budget: &Budget<'_>) -> Result<Option<u32>, Spent> {
        self.queue.clear();
        self.sets.clear();
        self.classes.clear();
        let weight = scratch.weight(source);
        if self.reached[source as usize] {
            return Ok(None);
        }
        self.reached[source as usize] = true;
        self.queue.push(source);
        let mut next = 0;
        while let Some(&member) = self.queue.get(next) {
            next += 1;
            budget.spend(1 + scratch.cells_of_member[member as usize].len() as u64)?;
            for &id in &scratch.cells_of_member[member as usize] {
                let cell = scratch.cells[id as usize];
                let set = scratch.set_of[cell.row as usize];
                if cell.has == 0 || self.set_from[set as usize] != NONE {
                    continue;
                }
                self.set_from[set as usize] = id;
                self.sets.push(set);
                for class in scratch.classes_of_set(set) {
                    budget.spend(1)?;
                    if self.class_from[class as usize] != NONE {
                        continue;
                    }
                    self.class_from[class as usize] = set;
                    self.classes.push(class);
                    let members = scratch.members_of.row(class);
                    budget.spend(members.len() as u64)?;
                    let with_room = members.iter().filter(|&&member| scratch.room(member) > 0);
                    let lightest = with_room.min_by_key(|&&member| scratch.loads[member as usize]);
                    let light = |&&member: &&u32| scratch.loads[member as usize] + 2 <= weight;
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

    /// Moves partitions along the chain that [`ChainSearch::run`] found, as many as level its two ends, and clears the marks.
    fn apply(&mut self, scratch: &mut ScratchPlan, source: u32, target: u32) {
        let mut chain = Vec::new();
        let mut count = ((scratch.weight(source) - scratch.loads[target as usize]) / 2).min(u64::from(u32::MAX));
        count = count.min(scratch.room(target));
        let mut member = target;
        while member != source {
            let set = self.class_from[scratch.class_of[member as usize] as usize];
            let from = self.set_from[set as usize];
            chain.push((from, scratch.cells[from as usize].row, member));
            count = count.min(u64::from(scratch.cells[from as usize].has));
            member = scratch.cells[from as usize].member;
        }
        for (from, row, member) in chain {
            let to = scratch.cell(row, member);
            scratch.shift(from, to, count as u32);
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
