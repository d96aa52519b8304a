//! Kafka's round-robin assignor.

use crate::group::{Group, NONE};
use crate::plan::Plan;
use crate::subscribers::{Subscribers, java_order};

/// Plans a group: all partitions, by topic name and number, are dealt to the members in turn, passing over those that do
/// not subscribe to the topic. Static members come first, by instance id; the others by member id. Neither racks nor the
/// past count. O(partitions + subscription entries) in any group: there is no search that a limit would have to end.
#[must_use]
pub fn assign(group: &Group) -> Plan {
    let mut plan = Plan::unassigned(group);
    let subscribers = Subscribers::new(group);
    let lineups = subscribers.in_java_order(group);
    let mut rank = vec![NONE; group.members()];
    for (place, &member) in (0u32..).zip(&java_order(group)) {
        rank[member as usize] = place;
    }
    // The rank whose turn it is. Within a topic the turn passes from subscriber to subscriber, so each topic needs one search.
    let mut turn = 0;
    for topic in 0..group.topics().len() as u32 {
        let lineup = lineups.row(subscribers.set_of[topic as usize]);
        if lineup.is_empty() {
            continue;
        }
        let first = lineup.partition_point(|&member| rank[member as usize] < turn);
        let range = group.topics().range(topic);
        let owners = &mut plan.owner[range.start as usize..range.end as usize];
        for (owner, &member) in owners.iter_mut().zip(lineup.iter().cycle().skip(first)) {
            *owner = member;
            turn = rank[member as usize] + 1;
        }
    }
    plan
}
