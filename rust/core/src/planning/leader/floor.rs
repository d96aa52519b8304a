//! The time that a leader spends on the bytes alone. Only with the feature `bench`.

use super::read::{ClaimSource, Joined, JoinedMember, read_group};
use super::write::{Assignments, write_assignments};
use crate::planning::group::{Csr, Group, NONE, Topics};
use crate::planning::plan::Plan;
use crate::protocol::writer::WriteError;

/// Reads the bytes as [`super::perform_assignment`] does and writes assignments of the same size with the same code, but plans
/// nothing: the partitions of each topic are dealt in turn to the members that subscribe to it, without regard to previous
/// owners and to balance. A benchmark divides by the time of this call, so the ratio is the cost that planning adds.
///
/// # Errors
/// As [`super::perform_assignment`].
pub fn codec_floor(
    members: &[JoinedMember<'_>],
    topics: Topics,
    source: ClaimSource,
) -> Result<(Joined, Assignments), WriteError> {
    let joined = read_group(members, topics, source);
    let plan = deal_in_turn(&joined.group);
    let assignments = write_assignments(&joined.group, &plan, source.generation(None, joined.max_generation))?;
    Ok((joined, assignments))
}

fn deal_in_turn(group: &Group) -> Plan {
    let subscribed = group.subscriptions().transpose(group.topics().len());
    let members = Csr::group_by(group.subscription_of(), group.subscriptions().len());
    let mut owner = vec![NONE; group.topics().partitions()];
    let mut subscribers: &[u32] = &[];
    let (mut mixed, mut turn) = (Vec::new(), 0);
    for topic in 0..group.topics().len() as u32 {
        match subscribed.row(topic) {
            &[subscription] => subscribers = members.row(subscription),
            subscriptions => {
                mixed.clear();
                subscriptions.iter().for_each(|&subscription| mixed.extend_from_slice(members.row(subscription)));
            }
        }
        let subscribers = if subscribed.row(topic).len() == 1 { subscribers } else { &mixed };
        let range = group.topics().range(topic);
        for slot in &mut owner[range.start as usize..range.end as usize] {
            turn = if turn < subscribers.len() { turn } else { 0 };
            *slot = subscribers.get(turn).copied().unwrap_or(NONE);
            turn += 1;
        }
    }
    Plan { owner }
}
