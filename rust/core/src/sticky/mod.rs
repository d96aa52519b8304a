//! The sticky strategy: least balance score, then most partitions kept.

use crate::group::{Csr, Group, NONE};
use crate::ownership::Ownership;
use crate::plan::Plan;
use crate::strategy::{Mode, Objective};

/// Plans a group.
#[must_use]
pub fn assign(group: &Group, ownership: &Ownership, objective: Objective) -> Plan {
    let mut plan = match objective.mode {
        Mode::Fair => Plan::unassigned(group),
        _ => Plan { owner: ownership.owner.clone() },
    };
    let mut loads = plan.loads(group.members());
    let subscribers = group.patterns().transpose(group.topics().len());
    let members = Csr::group_by(group.pattern_of(), group.patterns().len());
    for topic in 0..group.topics().len() as u32 {
        for partition in group.topics().range(topic) {
            let owner = &mut plan.owner[partition as usize];
            let candidates = subscribers.row(topic).iter().flat_map(|&pattern| members.row(pattern));
            if let Some(&member) = candidates.min_by_key(|&&m| (loads[m as usize], m)).filter(|_| *owner == NONE) {
                *owner = member;
                loads[member as usize] += 1;
            }
        }
    }
    plan
}
