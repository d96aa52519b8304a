//! Stickiness: a minimum-cost flow inside the blocks, from the proposal to the optimum.
//!
//! The blocks decide the balance: within a block, every plan with loads of `low` or `low + 1` is balanced. The marginal cost of
//! unit `k` on an arc is convex: 0 while `k <= held`, the weight of a move beyond; besides, -1 while `k <= proposed` and +1
//! beyond break ties towards the proposal. A unit on another rack has the weight of a rack miss. The weights are so large that
//! no chain of arcs with a lesser objective outweighs a greater one.
//!
//! At the start, each arc carries the units that cost less than a price of its row. With these prices as potentials, no
//! residual cost is negative, so successive shortest paths lead to the optimum. A balanced proposal is optimal as it is.
//!
//! No path leads from one block to another, so each block is searched alone. A block whose nodes all have excess 0 at the start
//! is not searched.

mod arc_cost;
mod buckets;
mod cost;
mod half;
mod network;
mod paths;
mod search;
#[cfg(test)]
mod tests;

use super::levels::Blocks;
use super::rows::RowProblem;
use crate::planning::budget::{Budget, Cause, Goal, Limited, Spent};
use crate::planning::group::NONE;
use crate::planning::objective::RackOrder;
use cost::{Cost, fits_64_bits};
use network::Network;
use search::Flow;

/// By arc, how many partitions the member takes in the cheapest plan that the blocks allow. The detours come behind the
/// problem's arcs; they lead to subscribers to which a row has no arc.
///
/// # Errors
/// The budget is spent, or the search contradicts itself. The flow is no plan before the last unit has reached a member, so the
/// caller falls back to the plan that the search began with.
pub(super) fn cheapest(
    problem: &RowProblem,
    blocks: &Blocks,
    proposed: &[u32],
    order: RackOrder,
    detours: &Detours,
    budget: &Budget<'_>,
) -> Result<Vec<u32>, Limited> {
    let start = Start::new(problem, blocks, proposed, order, detours);
    let uneven = start.uneven(blocks);
    if uneven.is_empty() {
        let mut taken = start.taken;
        taken.resize(taken.len() + detours.edges.len(), 0);
        return Ok(taken);
    }
    let network = Network::lay(problem, blocks, &uneven, detours);
    let input = Input { problem, proposed, order, detours, start };
    let solved = if problem.mismatch.is_empty() && detours.edges.is_empty() {
        solve::<i64, false>(&network, input, budget)
    } else if fits_64_bits(network.nodes()) {
        solve::<i64, true>(&network, input, budget)
    } else {
        solve::<i128, true>(&network, input, budget)
    };
    match solved {
        Ok(Some(taken)) => Ok(taken),
        Ok(None) => Err(Limited { goal: Goal::Moves, cause: Cause::Defect }),
        Err(spent) => Err(spent.seeking(Goal::Moves)),
    }
}

/// The input of a search.
struct Input<'a> {
    problem: &'a RowProblem<'a>,
    proposed: &'a [u32],
    order: RackOrder,
    detours: &'a Detours,
    start: Start,
}

fn solve<'a, C: Cost, const RACKS: bool>(
    network: &'a Network<'a>,
    input: Input<'a>,
    budget: &Budget<'_>,
) -> Result<Option<Vec<u32>>, Spent> {
    let mut flow = Flow::<C, RACKS>::new(network, input);
    Ok(flow.carry_all(budget)?.then(|| flow.into_taken()))
}

/// A node that a detour leads from or to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Row(u32),
    Hub(u32),
    Member(u32),
}

/// An edge for any number of partitions. The member at the end of the path neither holds these partitions nor is proposed for
/// them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Detour {
    pub from: End,
    pub to: End,
    /// Whether the members at the end of its path read the row from another rack.
    pub mismatch: bool,
}

/// Paths over hubs, which several rows use: from a row to a hub, on to hubs of a lower number, and to members. The edge out of
/// the row has the whole cost. So the number of edges grows with the sum of rows and subscriptions, and not with their product.
#[derive(Debug, Default)]
pub(super) struct Detours {
    pub hubs: u32,
    pub edges: Vec<Detour>,
}

/// The start: each row has a price, and its arcs carry the units that cost less. The excess of a node is its surplus of units;
/// a negative excess is a deficit.
struct Start {
    /// By arc, its flow.
    taken: Vec<u32>,
    of_row: Vec<i64>,
    of_member: Vec<i64>,
    of_block: Vec<i64>,
    /// By member, whether it uses its right to `low + 1`.
    raised: Vec<bool>,
    /// By row, whether all its members in the block read it from another rack.
    elsewhere: Vec<bool>,
}

impl Start {
    fn new(
        problem: &RowProblem,
        blocks: &Blocks,
        proposed: &[u32],
        order: RackOrder,
        Detours { edges: detours, .. }: &Detours,
    ) -> Self {
        let racks = !problem.mismatch.is_empty() || !detours.is_empty();
        let proposed = proposed.iter().zip(&problem.held);
        let mut taken: Vec<u32> = proposed.map(|(&taken, &held)| if taken > 0 { taken } else { held }).collect();
        let mut of_row: Vec<i64> = problem.supply.iter().map(|&supply| i64::from(supply)).collect();
        let mut elsewhere = vec![racks; problem.rows()];
        for detour in detours.iter().filter(|detour| !detour.mismatch) {
            if let End::Row(row) = detour.from {
                elsewhere[row as usize] = false;
            }
        }
        for (row, &block) in (0u32..).zip(&blocks.of_row) {
            let std::ops::Range { start, end } = problem.arcs_of_row(row);
            let arcs = start as usize..end as usize;
            let (members, taken) = (problem.arcs.row(row), &mut taken[arcs.clone()]);
            let outside = |member: u32| blocks.of_member[member as usize] != block;
            if racks {
                // The price is that of a moved unit without distance, so exactly the proposed units cost less. If the block has
                // a member on a rack of the row, arcs to other racks differ: none of their units costs less if racks come before
                // stickiness, and only held units do otherwise.
                let mismatch = &problem.mismatch[arcs.clone()];
                let elsewhere = &mut elsewhere[row as usize];
                *elsewhere &= mismatch.iter().zip(members).all(|(&far, &member)| far || outside(member));
                let far = taken.iter_mut().zip(&problem.held[arcs]).zip(mismatch).filter(|(_, far)| **far);
                for ((taken, &held), _) in far.filter(|_| !*elsewhere) {
                    *taken = match order {
                        RackOrder::BeforeStickiness => 0,
                        RackOrder::AfterStickiness if *taken > 0 && *taken <= held => *taken,
                        RackOrder::AfterStickiness => held,
                    };
                }
            }
            if blocks.blocks.len() > 1 {
                for (taken, _) in taken.iter_mut().zip(members).filter(|(_, member)| outside(**member)) {
                    *taken = 0;
                }
            }
            let carried: u64 = taken.iter().map(|&taken| u64::from(taken)).sum();
            of_row[row as usize] -= carried as i64;
        }
        let mut of_member = vec![0i64; problem.members];
        let mut raised = vec![false; problem.members];
        let mut of_block: Vec<i64> = blocks.blocks.iter().map(|block| -i64::from(block.high_members)).collect();
        let loads = problem.loads(&taken);
        for (member, &block) in blocks.of_member.iter().enumerate().filter(|(_, block)| **block != NONE) {
            let low = blocks.blocks[block as usize].low;
            if blocks.may_be_raised(member as u32) {
                let above = i64::from(loads[member]) - i64::from(low);
                raised[member] = above > 0;
                of_block[block as usize] += i64::from(above > 0);
                of_member[member] = above - i64::from(above > 0);
            } else {
                of_member[member] = i64::from(loads[member]) - i64::from(blocks.at_level(member as u32, low));
            }
        }
        Self { taken, of_row, of_member, of_block, raised, elsewhere }
    }

    /// The blocks with a node whose excess is not 0, ascending.
    fn uneven(&self, blocks: &Blocks) -> Vec<u32> {
        let mut uneven: Vec<bool> = self.of_block.iter().map(|&excess| excess != 0).collect();
        let members = blocks.of_member.iter().zip(&self.of_member);
        for (&block, _) in members.chain(blocks.of_row.iter().zip(&self.of_row)).filter(|(_, excess)| **excess != 0) {
            uneven[block as usize] = true;
        }
        (0u32..).zip(uneven).filter(|(_, uneven)| *uneven).map(|(block, _)| block).collect()
    }
}
