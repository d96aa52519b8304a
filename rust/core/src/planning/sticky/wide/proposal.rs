//! The proposal over hubs: every member keeps its partitions, the others go to the least loaded.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Lanes;
use crate::planning::group::NONE;
use crate::planning::subscribers::Subscribers;

/// Members by their load at the last update of their entry. Loads only grow, so no entry is above the present load, and a top
/// entry with the present load is the least loaded member.
type Heap = BinaryHeap<Reverse<(u32, u32)>>;

/// Gives every partition without an owner to the least loaded of its near subscribers, or of all where none is near, ties to
/// the smallest id, and calls `gave` with the lane and the member. `loads` begins as the members' holdings and grows with each
/// partition given. The proposal is the same as with an arc for each pair of a row and a subscriber.
pub(super) fn propose(
    lanes: &Lanes,
    subscribers: &Subscribers,
    owner: &[u32],
    loads: &mut [u32],
    mut gave: impl FnMut(u32, u32),
) {
    let mut of_hub: Vec<Option<Heap>> = vec![None; lanes.hubs.len()];
    let mut of_set: Vec<Option<Heap>> = vec![None; subscribers.len()];
    let heap = |members: &[u32], loads: &[u32]| -> Heap {
        members.iter().map(|&member| Reverse((loads[member as usize], member))).collect()
    };
    let mut members = Vec::new();
    let partitions = lanes.rows.topics.iter().flat_map(|topic| topic.range());
    for partition in partitions.filter(|&partition| owner[partition] == NONE) {
        let lane = lanes.rows.of_partition[partition];
        let (set, near_set) = lanes.rows.keys[lane as usize];
        let near = lanes.near_sets.hubs.row(near_set);
        for &hub in near {
            of_hub[hub as usize].get_or_insert_with(|| heap(lanes.hubs.members.row(hub), loads));
        }
        if near.is_empty() && of_set[set as usize].is_none() {
            subscribers.put_members(set, &mut members);
            of_set[set as usize] = Some(heap(&members, loads));
        }
        let member = if near.is_empty() {
            of_set[set as usize].as_mut().and_then(|heap| least(heap, loads))
        } else {
            let least = near.iter().filter_map(|&hub| least(of_hub[hub as usize].as_mut()?, loads));
            least.min()
        };
        if let Some((_, member)) = member {
            loads[member as usize] += 1;
            gave(lane, member);
        }
    }
}

/// The least loaded of a heap with its load.
fn least(heap: &mut Heap, loads: &[u32]) -> Option<(u32, u32)> {
    loop {
        let mut top = heap.peek_mut()?;
        let Reverse((stated, member)) = *top;
        if stated == loads[member as usize] {
            return Some((stated, member));
        }
        top.0.0 = loads[member as usize];
    }
}
