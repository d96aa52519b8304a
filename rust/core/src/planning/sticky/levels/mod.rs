//! Balance: members split into blocks whose loads, in every optimal plan, are `low` or `low + 1`.
//!
//! A plan is balanced if no chain of moves leads from a member to one with at least two partitions fewer (Harvey, Ladner,
//! Lovász, Tamir 2006):
//!
//! ```text
//! a subscribes to t, b to t and u, c to u      a: t t t    b: u      c: -       loads 3 1 0
//! the chain a ─t─► b ─u─► c                    a: t t      b: t      c: u       loads 2 1 1
//! ```
//!
//! A member that chains reach from a member above a threshold has, in every optimal plan, at least the threshold, or is full. A
//! member that no chain reaches has at most the threshold. So a maximum flow at a threshold cuts the group in two, and
//! partitions that the lower part can take never go to the upper part.

mod chains;

use super::rows::RowProblem;
use crate::planning::budget::{Budget, Spent};
use crate::planning::group::NONE;
use chains::ChainFlow;

/// Members of one level. In every optimal plan each of them has `low` or `low + 1` partitions, and `high_members` of them have
/// `low + 1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub low: u32,
    pub high_members: u32,
}

/// The blocks, with their members and rows.
pub(super) struct Blocks {
    pub blocks: Vec<Block>,
    /// By member; [`NONE`] for members without an arc.
    pub of_member: Vec<u32>,
    /// By row, the block whose members get it. An arc to a member of another block has no flow.
    pub of_row: Vec<u32>,
    /// A plan that the blocks allow: the arcs on which it differs from the plan that the search began with, and their partitions in
    /// it. A large group has millions of arcs, so no second plan is kept.
    pub changes: Vec<(u32, u32)>,
    /// By member, the most partitions that it may have: its load is a level of its block, but at most this number. Empty where
    /// no member has a limit.
    pub most: Vec<u32>,
}

/// A part of the group whose loads, in every optimal plan, lie between `low` and `high`.
struct Piece {
    members: Vec<u32>,
    rows: Vec<u32>,
    low: u32,
    high: u32,
}

/// Finds the blocks, starting from the plan `proposed` and its loads. Returns them with that plan. O(arcs) for each search of a flow; a
/// plan in which loads already differ by at most one needs none.
///
/// # Errors
/// The budget is spent. The error contains the plan reached so far, which is at least as even as `proposed`.
pub(super) fn split(
    problem: &RowProblem,
    proposed: Vec<u32>,
    loads: Vec<u32>,
    budget: &Budget<'_>,
) -> Result<(Blocks, Vec<u32>), (Vec<u32>, Spent)> {
    // The searches are compiled once more without limits: in an uneven group without limits they take most of the time.
    if problem.capacity.is_empty() {
        split_pieces::<false>(problem, proposed, loads, budget)
    } else {
        split_pieces::<true>(problem, proposed, loads, budget)
    }
}

fn split_pieces<const LIMITED: bool>(
    problem: &RowProblem,
    proposed: Vec<u32>,
    loads: Vec<u32>,
    budget: &Budget<'_>,
) -> Result<(Blocks, Vec<u32>), (Vec<u32>, Spent)> {
    let mut subscribes = vec![false; problem.members];
    for &member in problem.arcs.items() {
        subscribes[member as usize] = true;
    }
    let members: Vec<u32> = (0u32..).zip(&subscribes).filter(|(_, reads)| **reads).map(|(member, _)| member).collect();
    let mut blocks = Blocks {
        blocks: Vec::new(),
        of_member: vec![NONE; problem.members],
        of_row: vec![0; problem.rows()],
        changes: Vec::new(),
        most: problem.capacity.clone(),
    };
    let rows: Vec<u32> = (0..problem.rows() as u32).collect();
    let mut whole = Piece::new(members, rows, &loads);
    if problem.nobody.is_none() && whole.high - whole.low <= 1 {
        blocks.close(&whole, &loads);
        return Ok((blocks, proposed));
    }
    let mut chains = ChainFlow::<LIMITED>::new(problem, proposed, loads);
    if let Some(nobody) = problem.nobody {
        match chains.fill(&whole, nobody, &mut blocks, budget) {
            Err(spent) => return Err((chains.flow, spent)),
            Ok(rest) => whole = rest,
        }
    }
    let mut pieces = vec![whole];
    while let Some(mut piece) = pieces.pop() {
        let total: u64 = piece.members.iter().map(|&member| u64::from(chains.loads[member as usize])).sum();
        if piece.high - piece.low <= 1
            || total == blocks.filled(&piece, piece.low)
            || total == blocks.filled(&piece, piece.high)
        {
            blocks.close(&piece, &chains.loads);
            continue;
        }
        // Strictly between the bounds, so that each cut narrows them.
        let threshold = blocks.level_of(&piece, total).max(piece.low + 1);
        if let Err(spent) = chains.level(&piece, threshold, budget) {
            return Err((chains.flow, spent));
        }
        let (upper, lower): (Vec<u32>, Vec<u32>) = piece.members.iter().partition(|&&member| chains.reached(member));
        if upper.is_empty() {
            piece.high = threshold;
            pieces.push(piece);
        } else if lower.is_empty() {
            piece.low = threshold;
            pieces.push(piece);
        } else {
            let (upper_rows, lower_rows): (Vec<u32>, Vec<u32>) =
                piece.rows.iter().partition(|&&row| chains.reached_row(row));
            chains.cut(&lower_rows);
            pieces.push(Piece { members: upper, rows: upper_rows, low: threshold, high: piece.high });
            pieces.push(Piece { members: lower, rows: lower_rows, low: piece.low, high: threshold });
        }
    }
    let (proposed, changes) = chains.take_back();
    blocks.changes = changes;
    Ok((blocks, proposed))
}

impl Blocks {
    /// A plan that the blocks allow, made from the plan that the search began with.
    pub(super) fn allowed(&self, mut proposed: Vec<u32>) -> Vec<u32> {
        for &(arc, taken) in &self.changes {
            proposed[arc as usize] = taken;
        }
        proposed
    }

    fn close(&mut self, piece: &Piece, loads: &[u32]) {
        if piece.members.is_empty() {
            return;
        }
        let id = self.blocks.len() as u32;
        let total: u64 = piece.members.iter().map(|&member| u64::from(loads[member as usize])).sum();
        let low = self.level_of(piece, total);
        self.blocks.push(Block { low, high_members: (total - self.filled(piece, low)) as u32 });
        self.enter(piece, id);
    }

    /// A block of the member `nobody` and of the members that stay full as long as `nobody` has partitions that they could have.
    fn close_full(&mut self, piece: &Piece, nobody: u32, loads: &[u32]) {
        let id = self.blocks.len() as u32;
        self.blocks.push(Block { low: u32::MAX, high_members: 0 });
        self.most[nobody as usize] = loads[nobody as usize];
        self.enter(piece, id);
    }

    fn enter(&mut self, piece: &Piece, id: u32) {
        for &member in &piece.members {
            self.of_member[member as usize] = id;
        }
        for &row in &piece.rows {
            self.of_row[row as usize] = id;
        }
    }

    /// Whether a member of a block may have one partition more than the low level. A member that is full at that level may not.
    pub(super) fn may_be_raised(&self, member: u32) -> bool {
        self.most.is_empty()
            || self.at_level(member, u32::MAX) > self.blocks[self.of_member[member as usize] as usize].low
    }

    /// The load of a member at a level.
    pub(super) fn at_level(&self, member: u32, level: u32) -> u32 {
        self.most.get(member as usize).map_or(level, |&most| most.min(level))
    }

    /// How many partitions the members of a piece have at a level.
    fn filled(&self, piece: &Piece, level: u32) -> u64 {
        if self.most.is_empty() {
            return piece.members.len() as u64 * u64::from(level);
        }
        piece.members.iter().map(|&member| u64::from(self.at_level(member, level))).sum()
    }

    /// The highest level at which the members of a piece have no more than `total` partitions, up to its highest load.
    fn level_of(&self, piece: &Piece, total: u64) -> u32 {
        if self.most.is_empty() {
            return (total / piece.members.len() as u64) as u32;
        }
        let (mut low, mut high) = (piece.low, piece.high);
        while low < high {
            let middle = high - (high - low) / 2;
            if self.filled(piece, middle) <= total {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        low
    }
}

impl Piece {
    /// Members with their rows, between the loads that they have.
    fn new(members: Vec<u32>, rows: Vec<u32>, loads: &[u32]) -> Self {
        let low = members.iter().map(|&member| loads[member as usize]).min().unwrap_or(0);
        let high = members.iter().map(|&member| loads[member as usize]).max().unwrap_or(0);
        Self { members, rows, low, high }
    }
}
