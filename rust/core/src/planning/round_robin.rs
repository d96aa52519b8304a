//! Kafka's round-robin assignor.

use crate::planning::group::{Group, NONE};
use crate::planning::plan::Plan;
use crate::planning::subscribers::{Subscribers, java_order};

/// Plans a group. All partitions, by topic name and number, are dealt to the members in turn; a member that does not subscribe
/// to the topic is passed over. Static members come first, by instance id, then the others by member id. Neither racks nor
/// previous owners count. O(partitions + subscription entries) in any group, so there is no limit.
#[must_use]
pub fn assign(group: &Group) -> Plan {
    let mut plan = Plan::unassigned(group);
    let subscribers = Subscribers::new(group);
    let in_order = subscribers.in_java_order(group);
    let mut rank = vec![NONE; group.members()];
    for (place, &member) in (0u32..).zip(&java_order(group)) {
        rank[member as usize] = place;
    }
    // The rank of the next member. Within a topic the turn passes from subscriber to subscriber, so each topic needs one
    // search.
    let mut turn = 0;
    for topic in 0..group.topics().len() as u32 {
        let set = subscribers.set_of[topic as usize];
        if set == NONE {
            continue;
        }
        let subscribers = in_order.row(set);
        let first = subscribers.partition_point(|&member| rank[member as usize] < turn);
        let range = group.topics().range(topic);
        let owners = &mut plan.owner[range.start as usize..range.end as usize];
        for (owner, &member) in owners.iter_mut().zip(subscribers.iter().cycle().skip(first)) {
            *owner = member;
            turn = rank[member as usize] + 1;
        }
    }
    plan
}
