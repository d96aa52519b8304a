//! Balance: members split into blocks whose loads, in every optimal plan, are `low` or `low + 1`.
//!
//! A plan is balanced if no chain of moves leads from a member to one with at least two partitions fewer (Harvey, Ladner,
//! Lovász, Tamir 2006). A member that chains reach from a member above a threshold has, in every optimal plan, at least the
//! threshold, or is full. A member that no chain reaches has at most the threshold. So a maximum flow at a threshold cuts the group in two,
//! and partitions that the lower part can take never go to the upper part.

use super::rows::Problem;
use crate::planning::budget::{Budget, Spent};
use crate::planning::group::NONE;

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
    /// By row, the block whose members get it. An arc to a member of another block carries nothing.
    pub of_row: Vec<u32>,
    /// By arc, a plan that the blocks allow; `None` where the blocks allow the plan that the search began with.
    pub flow: Option<Vec<u32>>,
    /// By member, the most that it may have; it has at most the least of that and the levels of its block. Empty where no member
    /// has a limit.
    pub most: Vec<u32>,
}

/// A part of the group whose loads, in every optimal plan, lie between `low` and `high`.
struct Piece {
    members: Vec<u32>,
    rows: Vec<u32>,
    low: u32,
    high: u32,
}

/// Finds the blocks, starting from the plan `proposed`. O(arcs) for each search of a flow; a plan in which loads already
/// differ by at most one needs none.
///
/// # Errors
/// The budget is spent. The error has the plan reached so far, which is at least as even as `proposed`.
pub(super) fn split(problem: &Problem, proposed: &[u32], budget: &Budget<'_>) -> Result<Blocks, (Vec<u32>, Spent)> {
    // The searches of a group without limits are compiled without them: they are most of the time of an uneven group.
    if problem.capacity.is_empty() {
        split_pieces::<false>(problem, proposed, budget)
    } else {
        split_pieces::<true>(problem, proposed, budget)
    }
}

fn split_pieces<const LIMITED: bool>(
    problem: &Problem,
    proposed: &[u32],
    budget: &Budget<'_>,
) -> Result<Blocks, (Vec<u32>, Spent)> {
    let members: Vec<u32> =
        (0..problem.members as u32).filter(|&member| !problem.arcs_of.row(member).is_empty()).collect();
    let loads = problem.loads(proposed);
    let mut blocks = Blocks {
        blocks: Vec::new(),
        of_member: vec![NONE; problem.members],
        of_row: vec![0; problem.rows()],
        flow: None,
        most: problem.capacity.clone(),
    };
    let rows: Vec<u32> = (0..problem.rows() as u32).collect();
    let mut chains = None;
    let mut whole = Piece::new(members, rows, &loads);
    if let Some(nobody) = problem.nobody {
        let mut filling = ChainFlow::<LIMITED>::new(problem, proposed.to_vec(), loads.clone());
        match filling.fill(&whole, nobody, &mut blocks, budget) {
            Err(spent) => return Err((filling.flow, spent)),
            Ok(rest) => whole = rest,
        }
        blocks.flow = Some(filling.flow.clone());
        chains = Some(filling);
    }
    if whole.high - whole.low <= 1 {
        blocks.close(&whole, chains.as_ref().map_or(&loads, |chains| &chains.loads));
        return Ok(blocks);
    }
    let mut chains = chains.unwrap_or_else(|| ChainFlow::new(problem, proposed.to_vec(), loads));
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
        let (upper, lower): (Vec<u32>, Vec<u32>) =
            piece.members.iter().partition(|&&member| chains.member_layer[member as usize] != UNREACHED);
        if upper.is_empty() {
            piece.high = threshold;
            pieces.push(piece);
        } else if lower.is_empty() {
            piece.low = threshold;
            pieces.push(piece);
        } else {
            let (upper_rows, lower_rows): (Vec<u32>, Vec<u32>) =
                piece.rows.iter().partition(|&&row| chains.row_layer[row as usize] != UNREACHED);
            chains.cut(&upper, &lower_rows);
            pieces.push(Piece { members: upper, rows: upper_rows, low: threshold, high: piece.high });
            pieces.push(Piece { members: lower, rows: lower_rows, low: piece.low, high: threshold });
        }
    }
    blocks.flow = Some(chains.flow);
    Ok(blocks)
}

impl Blocks {
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

    /// A block of nobody and of the members that are full as long as nobody has partitions that they could have.
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

const UNREACHED: u32 = u32::MAX;

/// Rows and members with the present flow, and the layers of the last search.
struct ChainFlow<'a, const LIMITED: bool> {
    problem: &'a Problem,
    flow: Vec<u32>,
    loads: Vec<u32>,
    /// By row and by member, the arcs that still connect: a cut removes those between the two parts.
    row_arcs: Vec<Vec<u32>>,
    member_arcs: Vec<Vec<u32>>,
    row_layer: Vec<u32>,
    member_layer: Vec<u32>,
    row_next: Vec<u32>,
    member_next: Vec<u32>,
    queue: Vec<u32>,
    /// The member that gives all it has, and gets nothing, while the others are filled.
    emptied: Option<u32>,
}

impl<'a, const LIMITED: bool> ChainFlow<'a, LIMITED> {
    fn new(problem: &'a Problem, flow: Vec<u32>, loads: Vec<u32>) -> Self {
        Self {
            flow,
            loads,
            row_arcs: (0..problem.rows() as u32).map(|row| problem.arcs_of_row(row).collect()).collect(),
            member_arcs: problem.arcs_of.rows().map(<[u32]>::to_vec).collect(),
            row_layer: vec![UNREACHED; problem.rows()],
            member_layer: vec![UNREACHED; problem.members],
            row_next: vec![0; problem.rows()],
            member_next: vec![0; problem.members],
            queue: Vec::new(),
            emptied: None,
            problem,
        }
    }

    /// Takes as many partitions from nobody as chains allow. What chains still reach is full in every plan that leaves out as few
    /// partitions: a block of its own. Returns the rest.
    fn fill(&mut self, whole: &Piece, nobody: u32, blocks: &mut Blocks, budget: &Budget<'_>) -> Result<Piece, Spent> {
        self.emptied = Some(nobody);
        self.level(whole, u32::MAX, budget)?;
        self.emptied = None;
        let (full, members): (Vec<u32>, Vec<u32>) = whole
            .members
            .iter()
            .partition(|&&member| member == nobody || self.member_layer[member as usize] != UNREACHED);
        let (full_rows, rows): (Vec<u32>, Vec<u32>) =
            whole.rows.iter().partition(|&&row| self.row_layer[row as usize] != UNREACHED);
        self.member_layer[nobody as usize] = 0;
        self.cut(&full, &rows);
        let full = Piece { members: full, rows: full_rows, low: 0, high: 0 };
        blocks.close_full(&full, nobody, &self.loads);
        Ok(Piece::new(members, rows, &self.loads))
    }

    /// How many partitions more than the threshold a member has.
    fn surplus(&self, member: u32, threshold: u32) -> u32 {
        if !LIMITED {
            return self.loads[member as usize].saturating_sub(threshold);
        }
        match self.emptied {
            Some(emptied) if member != emptied => 0,
            Some(_) => self.loads[member as usize],
            None => self.loads[member as usize].saturating_sub(threshold),
        }
    }

    /// How many partitions a member may get up to the threshold.
    fn room(&self, member: u32, threshold: u32) -> u32 {
        if !LIMITED {
            return threshold.saturating_sub(self.loads[member as usize]);
        }
        if self.emptied == Some(member) {
            return 0;
        }
        threshold.min(self.problem.most(member)).saturating_sub(self.loads[member as usize])
    }

    /// Moves as many partitions as chains allow from members above the threshold to members below it. Afterwards the members
    /// with a layer are those that chains reach from a member still above.
    fn level(&mut self, piece: &Piece, threshold: u32, budget: &Budget<'_>) -> Result<(), Spent> {
        while self.layer(piece, threshold, budget)? {
            for &source in &piece.members {
                while self.surplus(source, threshold) > 0 && self.augment(source, threshold, budget)? {}
            }
        }
        Ok(())
    }

    /// Breadth-first layers from the members above the threshold; whether a member below it was reached.
    fn layer(&mut self, piece: &Piece, threshold: u32, budget: &Budget<'_>) -> Result<bool, Spent> {
        budget.spend((piece.rows.len() + piece.members.len()) as u64)?;
        for &row in &piece.rows {
            self.row_layer[row as usize] = UNREACHED;
            self.row_next[row as usize] = 0;
        }
        self.queue.clear();
        for &member in &piece.members {
            self.member_next[member as usize] = 0;
            let above = self.surplus(member, threshold) > 0;
            self.member_layer[member as usize] = if above { 0 } else { UNREACHED };
            if above {
                self.queue.push(member);
            }
        }
        let mut found = false;
        let mut at = 0;
        while at < self.queue.len() {
            let member = self.queue[at];
            at += 1;
            let layer = self.member_layer[member as usize];
            budget.spend(1 + self.member_arcs[member as usize].len() as u64)?;
            for &arc in &self.member_arcs[member as usize] {
                let row = self.problem.arc_row[arc as usize];
                if self.flow[arc as usize] == 0 || self.row_layer[row as usize] != UNREACHED {
                    continue;
                }
                self.row_layer[row as usize] = layer;
                budget.spend(self.row_arcs[row as usize].len() as u64)?;
                for &arc in &self.row_arcs[row as usize] {
                    let next = self.problem.member(arc);
                    if self.member_layer[next as usize] == UNREACHED {
                        self.member_layer[next as usize] = layer + 1;
                        found |= self.room(next, threshold) > 0;
                        self.queue.push(next);
                    }
                }
            }
        }
        Ok(found)
    }

    /// Moves partitions along one shortest chain from `source`; false if the layers offer none.
    fn augment(&mut self, source: u32, threshold: u32, budget: &Budget<'_>) -> Result<bool, Spent> {
        // The chain: the arc on which a member gives, and the arc on which the next member receives.
        let mut chain: Vec<(u32, u32)> = Vec::new();
        let mut member = source;
        loop {
            if self.room(member, threshold) > 0 {
                break;
            }
            if let Some((gives, receives)) = self.step(member, budget)? {
                chain.push((gives, receives));
                member = self.problem.member(receives);
            } else {
                let Some((gives, _)) = chain.pop() else { return Ok(false) };
                // A dead end: the next search skips it.
                self.row_next[self.problem.arc_row[gives as usize] as usize] += 1;
                member = self.problem.member(gives);
            }
        }
        let most = self.surplus(source, threshold).min(self.room(member, threshold));
        let amount = chain.iter().map(|&(gives, _)| self.flow[gives as usize]).fold(most, u32::min);
        for &(gives, receives) in &chain {
            self.flow[gives as usize] -= amount;
            self.flow[receives as usize] += amount;
        }
        self.loads[source as usize] -= amount;
        self.loads[member as usize] += amount;
        Ok(true)
    }

    /// The next pair of arcs from a member to one of the next layer.
    fn step(&mut self, member: u32, budget: &Budget<'_>) -> Result<Option<(u32, u32)>, Spent> {
        let layer = self.member_layer[member as usize];
        while let Some(&gives) = self.member_arcs[member as usize].get(self.member_next[member as usize] as usize) {
            let row = self.problem.arc_row[gives as usize];
            budget.spend(1)?;
            if self.flow[gives as usize] > 0 && self.row_layer[row as usize] == layer {
                while let Some(&receives) = self.row_arcs[row as usize].get(self.row_next[row as usize] as usize) {
                    budget.spend(1)?;
                    if self.member_layer[self.problem.member(receives) as usize] == layer + 1 {
                        return Ok(Some((gives, receives)));
                    }
                    self.row_next[row as usize] += 1;
                }
            }
            self.member_next[member as usize] += 1;
        }
        Ok(None)
    }

    /// Drops the arcs from the rows of the lower part to the members of the upper part.
    fn cut(&mut self, upper: &[u32], lower_rows: &[u32]) {
        for &row in lower_rows {
            let Self { problem, row_arcs, member_layer, .. } = self;
            row_arcs[row as usize].retain(|&arc| member_layer[problem.member(arc) as usize] == UNREACHED);
        }
        for &member in upper {
            let Self { problem, member_arcs, row_layer, .. } = self;
            member_arcs[member as usize].retain(|&arc| row_layer[problem.arc_row[arc as usize] as usize] != UNREACHED);
        }
    }
}
