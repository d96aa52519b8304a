//! KIP-429's first phase: nothing goes to a member while another still holds it.

use crate::group::NONE;
use crate::ownership::Ownership;
use crate::plan::Plan;

/// The part of the target plan that can be handed out now. A partition that somebody else holds is left out: its holder,
/// seeing that its list lacks it, revokes it and rejoins, and the next round finds it free. A partition that several
/// members claim with equal right is left out for all of them, since any of them may still be reading it.
///
/// `ownership` must have been settled with `held`.
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
