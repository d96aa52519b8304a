//! The owners between two rebalances, by identity over time.

use super::Moment;
use crate::planning::group::{Group, NONE, Topics};
use crate::planning::ownerless::Changes;
use crate::planning::ownership::Ownership;
use crate::planning::plan::Plan;

/// The owners by the last plan of a strategy.
#[derive(Default)]
pub(super) struct Owners {
    /// By flat partition, the member of that plan; [`NONE`] without an owner. Between [`Owners::renumber`] and [`Owners::take`], the
    /// same member in the present group; [`NONE`] also for one that has left.
    owner: Vec<u32>,
    /// By member, its identity.
    identities: Vec<u32>,
    /// By identity, the number of its partitions. It may end before an identity without partitions.
    counts: Vec<u32>,
    /// Between [`Owners::renumber`] and [`Owners::take`], the number of partitions whose owner has left.
    left: u64,
    memory: RebalanceMemory,
}

/// Memory that each rebalance uses anew.
#[derive(Default)]
struct RebalanceMemory {
    /// By member of the last plan, its number in the present group, or [`NONE`].
    numbers: Vec<u32>,
    /// The partitions that change their owner; behind them, places that are not used.
    changed: Vec<u32>,
    /// By member, whether it gives up a partition.
    losing: Vec<bool>,
    /// The numbers of partitions of the members, ascending.
    sorted: Vec<u32>,
}

impl Owners {
    /// Begins a history: no partition has an owner.
    pub(super) fn begin(&mut self, partitions: usize) {
        self.owner.clear();
        self.owner.resize(partitions, NONE);
        self.identities.clear();
        self.counts.clear();
    }

    /// Changes the partition counts of the same topics.
    pub(super) fn carry_over(&mut self, before: &Topics, after: &Topics) {
        let mut owner = vec![NONE; after.partitions()];
        for topic in 0..after.len() as u32 {
            let (old, new) = (before.range(topic), after.range(topic));
            let common = old.len().min(new.len());
            owner[new.start as usize..][..common].copy_from_slice(&self.owner[old.start as usize..][..common]);
        }
        self.owner = owner;
        self.counts.fill(0);
        for &member in self.owner.iter().filter(|member| **member != NONE) {
            self.counts[self.identities[member as usize] as usize] += 1;
        }
    }

    /// Numbers the owners as the group of the moment does. A plan of that group must follow. O(partitions + members).
    pub(super) fn renumber(&mut self, moment: &Moment) {
        let Self { owner, identities, counts, left, memory: RebalanceMemory { numbers, .. } } = self;
        numbers.clear();
        *left = 0;
        for &identity in &*identities {
            let present = moment.local[identity as usize];
            if present == NONE {
                *left += u64::from(std::mem::take(&mut counts[identity as usize]));
            }
            numbers.push(present);
        }
        for slot in owner {
            *slot = numbers.get(*slot as usize).copied().unwrap_or(NONE);
        }
        identities.clone_from(&moment.identities);
        counts.resize(moment.local.len(), 0);
    }

    /// The number of partitions of each present member.
    fn counts(&self) -> impl Iterator<Item = u32> {
        self.identities.iter().map(|&identity| self.counts[identity as usize])
    }

    /// The numbers of partitions of the present members, ascending. O(members log members).
    pub(super) fn sorted_counts(&mut self) -> &[u32] {
        let mut sorted = std::mem::take(&mut self.memory.sorted);
        sorted.clear();
        sorted.extend(self.counts());
        sorted.sort_unstable();
        self.memory.sorted = sorted;
        &self.memory.sorted
    }

    /// The ownership that the present members' claims would make: each claims exactly the partitions that it was given. With
    /// `held`, members also hold partitions of topics that they have left.
    pub(super) fn ownership(&self, moment: &Moment, held: bool) -> Ownership {
        let group = moment.group();
        let mut owner = self.owner.clone();
        let held = if held { owner.clone() } else { Vec::new() };
        let one_subscription = group.subscriptions().len() == 1;
        for (topic, &subscribed) in (0u32..).zip(&moment.subscribed) {
            let range = group.topics().range(topic);
            let owners = &mut owner[range.start as usize..range.end as usize];
            if !subscribed {
                owners.fill(NONE);
            } else if !one_subscription {
                keep_subscribers(group, topic, owners);
            }
        }
        Ownership { owner, held }
    }

    /// The partitions with an owner, present or not, that the plan gives to another member or to none.
    pub(super) fn moved(&self, plan: &Plan) -> u64 {
        let pairs = self.owner.iter().zip(&plan.owner);
        self.left + pairs.filter(|(before, after)| **before != NONE && before != after).count() as u64
    }

    /// The members of the plan become the owners. Returns [`Owners::moved`] of the plan, and its changes, for members and partitions.
    pub(super) fn take(&mut self, moment: &Moment, plan: &Plan) -> (u64, Changes) {
        let stays = |member: u32| moment.stayed.get(member as usize) == Some(&true);
        let (mut moved, mut changes) = (self.left, Changes::default());
        // Most partitions keep their owner, so all count as kept first. A member that left and is back joins anew, although its
        // partitions do not move.
        for (&stayed, count) in moment.stayed.iter().zip(self.counts()) {
            let kept = if stayed { &mut changes.held } else { &mut changes.taken_by_joining };
            *kept += u64::from(count);
        }
        let Self { owner, identities, counts, memory: RebalanceMemory { losing, changed, .. }, .. } = self;
        losing.clear();
        losing.resize(identities.len(), false);
        let identity = |member: u32| identities.get(member as usize).map(|&identity| identity as usize);
        changed.resize(owner.len(), 0);
        let mut many = 0;
        let block = if owner.len() < MANY_BLOCKS * BLOCK { owner.len().max(1) } else { BLOCK };
        for (start, (before, after)) in (0u32..).step_by(block).zip(owner.chunks(block).zip(plan.owner.chunks(block))) {
            if before == after {
                continue;
            }
            // The processor cannot predict which partitions change, so no branch depends on it.
            for (partition, (before, after)) in (start..).zip(before.iter().zip(after)) {
                changed[many] = partition;
                many += usize::from(before != after);
            }
        }
        for &partition in &changed[..many] {
            let after = plan.owner[partition as usize];
            let before = std::mem::replace(&mut owner[partition as usize], after);
            moved += u64::from(before != NONE);
            let source = identity(before);
            if let Some(source) = source {
                counts[source] -= 1;
            }
            if let Some(after) = identity(after) {
                counts[after] += 1;
            }
            if stays(before) {
                if after == NONE {
                    changes.held -= 1;
                } else {
                    changes.given_up += 1;
                    losing[before as usize] = true;
                }
                continue;
            }
            changes.taken_by_joining -= u64::from(source.is_some());
            if stays(after) {
                changes.taken += 1;
            } else if after != NONE {
                changes.taken_by_joining += 1;
            }
        }
        let number = |flags: &[bool]| flags.iter().filter(|&&flag| flag).count() as u32;
        let staying = number(&moment.stayed);
        let joining = moment.stayed.len() as u32 - staying;
        (moved, Changes { staying, losing: number(losing), joining, ..changes })
    }
}

/// The number of partitions of a large group that are compared at once: most blocks of this size do not change.
const BLOCK: usize = 16;
/// A group is large if it has this many blocks. In a smaller one, most blocks change.
const MANY_BLOCKS: usize = 16;

/// Removes the owners that do not subscribe to the topic.
fn keep_subscribers(group: &Group, topic: u32, owners: &mut [u32]) {
    // The partitions of one member are mostly neighbours, so the check of the last owner mostly holds for the next partition too.
    let mut last = (NONE, true);
    for slot in owners.iter_mut().filter(|owner| **owner != NONE) {
        if last.0 != *slot {
            last = (*slot, group.subscribes(*slot, topic));
        }
        if !last.1 {
            *slot = NONE;
        }
    }
}
