//! The detours over hubs, and the members that get the partitions they carry.

use super::{Gift, Lanes};
use crate::planning::sticky::flow::{Detour, Detours, End};
use crate::planning::sticky::levels::Blocks;
use crate::planning::subscribers::Subscribers;

/// Makes the detours: from each lane to its near hubs and, over one hub for its whole set of subscribers, to all hubs; from
/// hubs to their members. Members of another block are left out, and hubs without a member in the lane's block.
pub(super) fn lay(lanes: &Lanes, subscribers: &Subscribers, blocks: &Blocks) -> Detours {
    let Lanes { hubs, near_sets, rows, .. } = lanes;
    let mut block_of = vec![u32::MAX; subscribers.len()];
    for (&(set, _), &block) in rows.keys.iter().zip(&blocks.of_row) {
        block_of[set as usize] = block;
    }
    let mut detours = Detours { hubs: (hubs.len() + subscribers.len()) as u32, edges: Vec::new() };
    let Detours { edges, .. } = &mut detours;
    let everywhere = |set: u32| End::Hub(hubs.len() as u32 + set);
    let mut open = vec![false; hubs.len()];
    for set in 0..subscribers.len() as u32 {
        for hub in hubs.of_set(set) {
            for &member in hubs.members.row(hub) {
                if blocks.of_member[member as usize] == block_of[set as usize] {
                    open[hub as usize] = true;
                    edges.push(Detour { from: End::Hub(hub), to: End::Member(member), mismatch: false });
                }
            }
            if open[hub as usize] {
                edges.push(Detour { from: everywhere(set), to: End::Hub(hub), mismatch: false });
            }
        }
    }
    for (row, &(set, near_set)) in (0u32..).zip(&rows.keys) {
        let near = near_sets.hubs.row(near_set);
        for &hub in near.iter().filter(|&&hub| open[hub as usize]) {
            edges.push(Detour { from: End::Row(row), to: End::Hub(hub), mismatch: false });
        }
        if near.len() < hubs.of_set(set).len() {
            edges.push(Detour { from: End::Row(row), to: everywhere(set), mismatch: true });
        }
    }
    detours
}

/// Divides the partitions that come into each hub among its outgoing edges, in order. Every division costs the same, since the
/// edges out of the rows have the whole cost.
pub(super) fn take(detours: &Detours, carried: &[u32]) -> Vec<Gift> {
    let mut into: Vec<Vec<(u32, u32)>> = vec![Vec::new(); detours.hubs as usize];
    let mut out: Vec<Vec<(End, u32)>> = vec![Vec::new(); detours.hubs as usize];
    for (edge, &count) in detours.edges.iter().zip(carried).filter(|(_, count)| **count > 0) {
        match (edge.from, edge.to) {
            (End::Row(row), End::Hub(hub)) => into[hub as usize].push((row, count)),
            (End::Hub(hub), to) => out[hub as usize].push((to, count)),
            _ => {}
        }
    }
    let mut gifts = Vec::new();
    // Hubs lead to hubs of a lower number only.
    for hub in (0..detours.hubs as usize).rev() {
        let mut lanes = std::mem::take(&mut into[hub]).into_iter();
        let mut lane = (0, 0);
        for &(to, mut wanted) in &out[hub] {
            while wanted > 0 {
                if lane.1 == 0 {
                    let Some(next) = lanes.next() else { break };
                    lane = next;
                }
                let count = wanted.min(lane.1);
                wanted -= count;
                lane.1 -= count;
                match to {
                    End::Member(member) => gifts.push(Gift { lane: lane.0, member, count }),
                    End::Hub(hub) => into[hub as usize].push((lane.0, count)),
                    End::Row(_) => {}
                }
            }
        }
    }
    gifts
}
