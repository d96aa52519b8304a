//! Who owns what between two rebalances, by who a member is over time.

use super::Moment;
use crate::group::{NONE, Topics};
use crate::ownership::Ownership;
use crate::plan::Plan;

/// By flat partition, the identity that owns it; [`NONE`] for nobody.
pub(super) struct Owners {
    owner: Vec<u32>,
}

impl Owners {
    pub(super) fn new(partitions: usize) -> Self {
        Self { owner: vec![NONE; partitions] }
    }

    /// Moves on to topics with other partition counts; the topics themselves are the same.
    pub(super) fn carry_over(&mut self, before: &Topics, after: &Topics) {
        let mut owner = vec![NONE; after.partitions()];
        for topic in 0..after.len() as u32 {
            let (old, new) = (before.range(topic), after.range(topic));
            let common = old.len().min(new.len());
            owner[new.start as usize..][..common].copy_from_slice(&self.owner[old.start as usize..][..common]);
        }
        self.owner = owner;
    }

    /// The ownership that the present members would claim: exactly what they were given. With `held`, also what a member
    /// holds without subscribing to it any more.
    pub(super) fn settle(&self, moment: &Moment, held: bool) -> Ownership {
        let group = &moment.group;
        let local = |&identity: &u32| if identity == NONE { NONE } else { moment.local[identity as usize] };
        let all: Vec<u32> = self.owner.iter().map(local).collect();
        let mut owner = all.clone();
        for topic in 0..group.topics().len() as u32 {
            // Members mostly come in runs, and mostly subscribe.
            let mut last = (NONE, true);
            let range = group.topics().range(topic);
            for slot in &mut owner[range.start as usize..range.end as usize] {
                if *slot != NONE {
                    if last.0 != *slot {
                        last = (*slot, group.subscribes(*slot, topic));
                    }
                    if !last.1 {
                        *slot = NONE;
                    }
                }
            }
        }
        Ownership { owner, held: if held { all } else { Vec::new() } }
    }

    /// The partitions that somebody owned, present or not, and that the plan gives to somebody else or to nobody.
    pub(super) fn moved(&self, moment: &Moment, plan: &Plan) -> u64 {
        let changes = |(&before, &after): (&u32, &u32)| {
            before != NONE && (after == NONE || moment.identities[after as usize] != before)
        };
        self.owner.iter().zip(&plan.owner).filter(|pair| changes(*pair)).count() as u64
    }

    /// The plan becomes what is owned.
    pub(super) fn take(&mut self, moment: &Moment, plan: &Plan) {
        for (slot, &owner) in self.owner.iter_mut().zip(&plan.owner) {
            *slot = if owner == NONE { NONE } else { moment.identities[owner as usize] };
        }
    }
}
