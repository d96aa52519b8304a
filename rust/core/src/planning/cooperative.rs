//! The first phase of KIP-429: no partition goes to a member while another member still holds it.

use crate::planning::group::NONE;
use crate::planning::ownership::Ownership;
use crate::planning::plan::Plan;

/// The part of the target plan that can be handed out now. A partition that another member holds is left out: the holder sees
/// that its new assignment lacks the partition, revokes it and rejoins, and the next rebalance hands it out. A contested
/// partition is left out for all members, since any of its claimants may still be reading it.
///
/// `ownership` must have holders ([`Ownership::held`]).
#[must_use]
pub fn withhold(target: &Plan, ownership: &Ownership) -> Plan {
    let mut plan = target.clone();
    for (owner, &holder) in plan.owner.iter_mut().zip(&ownership.held) {
        if holder != NONE && holder != *owner {
            *owner = NONE;
        }
    }
    plan
}
