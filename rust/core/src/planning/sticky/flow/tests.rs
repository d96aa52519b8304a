//! Blocks that no plan fits.

use super::{Detours, cheapest};
use crate::planning::budget::{Cause, Goal, Limit, Limited};
use crate::planning::group::{Csr, NONE};
use crate::planning::objective::RackOrder;
use crate::planning::sticky::levels::{Block, Blocks};
use crate::planning::sticky::rows::{RowProblem, Rows, TopicRow};

/// One topic of two partitions, and two members that subscribe to it and hold nothing.
fn problem() -> RowProblem<'static> {
    let mut arcs = Csr::new();
    arcs.push_row(&[0, 1]);
    let topics = vec![TopicRow { row: 0, start: 0, end: 2 }];
    let rows = Rows { keys: vec![(0, 0)], topics, of_partition: Vec::new() };
    let mut problem = RowProblem::with_arcs(2, rows, arcs, Vec::new());
    problem.count_supply(&[NONE, NONE], false);
    problem
}

fn solved(block: Block) -> Result<Vec<u32>, Limited> {
    let blocks =
        Blocks { blocks: vec![block], of_member: vec![0, 0], of_row: vec![0], changes: Vec::new(), most: Vec::new() };
    let (order, budget) = (RackOrder::default(), Limit::default().budget(1 << 20));
    cheapest(&problem(), &blocks, &[1, 1], order, &Detours::default(), &budget)
}

#[test]
fn blocks_that_admit_no_plan_are_reported() {
    assert_eq!(solved(Block { low: 1, high_members: 0 }), Ok(vec![1, 1]));
    let defect = Err(Limited { goal: Goal::Moves, cause: Cause::Defect });
    for (low, high_members) in [(0, 0), (0, 1), (1, 1), (2, 0)] {
        assert_eq!(solved(Block { low, high_members }), defect, "{low} and {high_members} of one more");
    }
}
