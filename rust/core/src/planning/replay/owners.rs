//! The owners between two rebalances, by identity over time.

use super::Moment;
use crate::planning::group::{Group, NONE, Topics};
use crate::planning::ownerless::Changes;
use crate::planning::ownership::Ownership;
use crate::planning::plan::Plan;

pub(super) struct Owners {
    /// By flat partition, the identity of its owner; [`NONE`] without an owner.
    owner: Vec<u32>,
    /// By identity, the number of its partitions. It may end before an identity without partitions.
    counts: Vec<u32>,
}

impl Owners {
    pub(super) fn new(partitions: usize) -> Self {
        Self { owner: vec![NONE; partitions], counts: Vec::new() }
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
        for &identity in self.owner.iter().filter(|identity| **identity != NONE) {
            self.counts[identity as usize] += 1;
        }
    }

    /// The number of partitions of each present member.
    pub(super) fn counts<'a>(&'a self, moment: &'a Moment) -> impl Iterator<Item = u32> + 'a {
        let count = |&identity: &u32| self.counts.get(identity as usize).copied().unwrap_or(0);
        moment.identities.iter().map(count)
    }

    /// The ownership that the present members' claims would make: each claims exactly the partitions that it was given. With
    /// `held`, members also hold partitions of topics that they have left.
    pub(super) fn ownership(&self, moment: &Moment, held: bool) -> Ownership {
        let group = &moment.group;
        let local = |&identity: &u32| moment.local.get(identity as usize).copied().unwrap_or(NONE);
        let mut owner: Vec<u32> = self.owner.iter().map(local).collect();
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
    pub(super) fn moved(&self, moment: &Moment, plan: &Plan) -> u64 {
        let changes = |(&before, &after): (&u32, &u32)| {
            before != NONE && (after == NONE || moment.identities[after as usize] != before)
        };
        self.owner.iter().zip(&plan.owner).filter(|pair| changes(*pair)).count() as u64
    }

    /// The members of the plan become the owners. Returns [`Owners::moved`] of the plan, and its changes, for members and partitions.
    pub(super) fn take(&mut self, moment: &Moment, plan: &Plan) -> (u64, Changes) {
        let stays = |member: u32| moment.stayed.get(member as usize) == Some(&true);
        let mut losing = vec![false; moment.identities.len()];
        let (mut moved, mut changes) = (0, Changes::default());
        self.counts.resize(moment.local.len(), 0);
        // Most partitions keep their owner, so all count as kept first. A member that left and is back joins anew, although its
        // partitions do not move.
        for (&stayed, count) in moment.stayed.iter().zip(self.counts(moment)) {
            let kept = if stayed { &mut changes.held } else { &mut changes.taken_by_joining };
            *kept += u64::from(count);
        }
        for (slot, &after) in self.owner.iter_mut().zip(&plan.owner) {
            let identity = moment.identities.get(after as usize).copied().unwrap_or(NONE);
            if *slot == identity {
                continue;
            }
            let before = std::mem::replace(slot, identity);
            let mut source = NONE;
            if before != NONE {
                moved += 1;
                self.counts[before as usize] -= 1;
                source = moment.local[before as usize];
            }
            if after != NONE {
                self.counts[identity as usize] += 1;
            }
            if stays(source) {
                if after == NONE {
                    changes.held -= 1;
                } else {
                    changes.given_up += 1;
                    losing[source as usize] = true;
                }
                continue;
            }
            changes.taken_by_joining -= u64::from(source != NONE);
            if stays(after) {
                changes.taken += 1;
            } else if after != NONE {
                changes.taken_by_joining += 1;
            }
        }
        let count = |flags: &[bool]| flags.iter().filter(|&&flag| flag).count() as u32;
        let staying = count(&moment.stayed);
        let joining = moment.stayed.len() as u32 - staying;
        (moved, Changes { staying, losing: count(&losing), joining, ..changes })
    }
}

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
