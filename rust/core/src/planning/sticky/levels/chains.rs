//! Chains of moves between members: a maximum flow at a threshold.
//!
//! Most members above a threshold are few moves away from a member below it. So the first search is a breadth-first search from
//! each member above the threshold. The members and rows that a search without success has seen are not searched again. This
//! is quick, but in some groups it would search the whole group for each partition. Therefore its steps are limited
//! ([`STEPS_AROUND`]), and a second search finds the remaining chains by breadth-first layers.

use super::{Blocks, Piece};
use crate::planning::budget::{Budget, Spent};
use crate::planning::group::Csr;
use crate::planning::sticky::bits::Bits;
use crate::planning::sticky::by_member::{bits_by_member, place};
use crate::planning::sticky::rows::RowProblem;

const UNREACHED: u32 = u32::MAX;

/// The round that marks the members and rows that a search without success has seen.
const DEAD: u32 = u32::MAX;

/// The steps of the first search at one threshold, for each member, row and arc of the piece.
const STEPS_AROUND: u64 = 8;

/// Rows and members with the present flow, and the layers of the last search.
pub(super) struct ChainFlow<'a, const LIMITED: bool> {
    problem: &'a RowProblem<'a>,
    pub(super) flow: Vec<u32>,
    pub(super) loads: Vec<u32>,
    /// The arcs whose flow has changed, each with its flow at the start; and by arc, whether it is among them.
    changed: Vec<(u32, u32)>,
    has_changed: Bits,
    /// The arcs with a positive flow, by their places at the members. A cut removes none of them.
    carrying: Bits,
    row_arcs: RowArcs<'a>,
    row_layer: Vec<u32>,
    member_layer: Vec<u32>,
    row_next: Vec<u32>,
    member_next: Vec<u32>,
    queue: Vec<u32>,
    around: Around,
    /// The member that gives away all its partitions, and gets none, while the others are filled.
    emptied: Option<u32>,
}

/// The arcs of rows that no cut has removed: a cut removes those between its two parts.
struct RowArcs<'a> {
    arcs: &'a Csr,
    /// By row, how many arcs are left, at the places of the row's arcs in `left`; [`UNCUT`] for all.
    count: Vec<u32>,
    left: Vec<u32>,
}

const UNCUT: u32 = u32::MAX;

/// The searches around one member after another.
struct Around {
    round: u32,
    /// By member and by row, the last round that saw it; [`DEAD`] if that round found no member with room.
    member_seen: Vec<u32>,
    row_seen: Vec<u32>,
    /// By row, how many of its first members have no room.
    full: Vec<u32>,
    /// By seen member, the link of the chain that leads to it: the member before it, and the row.
    through: Vec<(u32, u32)>,
    /// The rows of the present search without a member with room, and the member that gives to each.
    rows: Vec<(u32, u32)>,
    steps: u64,
}

/// A link of a chain: a member gives a partition of the row, and the next member receives it.
struct Link {
    gives: u32,
    row: u32,
    receives: u32,
}

/// How a search around a member ended.
enum SearchEnd {
    /// The member has no surplus any more, or no steps are left.
    Enough,
    /// A chain took the last partition of an arc, so the members and rows seen behind this arc have to be seen again.
    Broken,
    /// All members and rows that chains reach were seen.
    All,
}

impl<'a, const LIMITED: bool> ChainFlow<'a, LIMITED> {
    pub(super) fn new(problem: &'a RowProblem<'a>, flow: Vec<u32>, loads: Vec<u32>) -> Self {
        let (rows, members) = (problem.rows(), problem.members);
        Self {
            carrying: bits_by_member(problem.rows_of(), &problem.arcs, |arc| flow[arc as usize] > 0),
            has_changed: Bits::zeros(flow.len()),
            changed: Vec::new(),
            flow,
            loads,
            row_arcs: RowArcs { arcs: &problem.arcs, count: vec![UNCUT; rows], left: vec![0; problem.held.len()] },
            row_layer: vec![UNREACHED; rows],
            member_layer: vec![UNREACHED; members],
            row_next: vec![0; rows],
            member_next: vec![0; members],
            queue: Vec::new(),
            around: Around {
                round: 0,
                member_seen: vec![0; members],
                row_seen: vec![0; rows],
                full: vec![0; rows],
                through: vec![(0, 0); members],
                rows: Vec::new(),
                steps: 0,
            },
            emptied: None,
            problem,
        }
    }

    /// The flow at the start, and the arcs whose flow has changed, each with its present flow.
    pub(super) fn take_back(self) -> (Vec<u32>, Vec<(u32, u32)>) {
        let Self { mut flow, mut changed, .. } = self;
        for (arc, before) in &mut changed {
            std::mem::swap(&mut flow[*arc as usize], before);
        }
        (flow, changed)
    }

    /// Whether chains from a member above the last threshold reach this one.
    pub(super) fn reached(&self, member: u32) -> bool {
        self.member_layer[member as usize] != UNREACHED
    }

    pub(super) fn reached_row(&self, row: u32) -> bool {
        self.row_layer[row as usize] != UNREACHED
    }

    /// Takes as many partitions from the member `nobody` as chains allow. The members that chains from `nobody` still reach are
    /// full in every plan that leaves out as few partitions: they are a block of their own. Returns the rest.
    pub(super) fn fill(
        &mut self,
        whole: &Piece,
        nobody: u32,
        blocks: &mut Blocks,
        budget: &Budget<'_>,
    ) -> Result<Piece, Spent> {
        self.emptied = Some(nobody);
        self.level(whole, u32::MAX, budget)?;
        self.emptied = None;
        let (full, members): (Vec<u32>, Vec<u32>) =
            whole.members.iter().partition(|&&member| member == nobody || self.reached(member));
        let (full_rows, rows): (Vec<u32>, Vec<u32>) = whole.rows.iter().partition(|&&row| self.reached_row(row));
        self.member_layer[nobody as usize] = 0;
        self.cut(&rows);
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
        self.problem.room::<LIMITED>(&self.loads, self.emptied, member, threshold)
    }

    /// Moves as many partitions as chains allow from members above the threshold to members below it. Afterwards the members
    /// with a layer are those that chains reach from a member that is still above.
    pub(super) fn level(&mut self, piece: &Piece, threshold: u32, budget: &Budget<'_>) -> Result<(), Spent> {
        if self.look_around(piece, threshold, budget)? {
            // Chains from a member that is still above reach exactly the members and rows that were seen without success.
            let Around { member_seen, row_seen, .. } = &self.around;
            let layer = |seen: u32| if seen == DEAD { 0 } else { UNREACHED };
            piece.members.iter().for_each(|&at| self.member_layer[at as usize] = layer(member_seen[at as usize]));
            piece.rows.iter().for_each(|&at| self.row_layer[at as usize] = layer(row_seen[at as usize]));
            return Ok(());
        }
        while self.layer(piece, threshold, budget)? {
            for &source in &piece.members {
                while self.surplus(source, threshold) > 0 && self.augment(source, threshold, budget)? {}
            }
        }
        Ok(())
    }

    /// Moves partitions from each member above the threshold to the nearest members below it, as long as steps are left. Returns
    /// whether the steps were enough.
    fn look_around(&mut self, piece: &Piece, threshold: u32, budget: &Budget<'_>) -> Result<bool, Spent> {
        for &member in &piece.members {
            self.around.member_seen[member as usize] = 0;
        }
        let mut arcs = 0;
        for &row in &piece.rows {
            self.around.row_seen[row as usize] = 0;
            self.around.full[row as usize] = 0;
            arcs += u64::from(self.row_arcs.width(row));
        }
        self.around.round = 0;
        self.around.steps = STEPS_AROUND * (piece.members.len() as u64 + piece.rows.len() as u64 + arcs);
        budget.spend((piece.members.len() + piece.rows.len()) as u64)?;
        for &source in &piece.members {
            while self.surplus(source, threshold) > 0 && self.around.steps > 0 {
                let before = self.around.steps;
                let seen = self.spread(source, threshold);
                budget.spend(before - self.around.steps)?;
                match seen {
                    SearchEnd::Enough => break,
                    SearchEnd::Broken => {}
                    SearchEnd::All => {
                        self.around.bury(&self.queue);
                        break;
                    }
                }
            }
        }
        Ok(self.around.steps > 0)
    }

    /// Searches around one member, nearest first, and moves partitions to the members with room.
    fn spread(&mut self, source: u32, threshold: u32) -> SearchEnd {
        let rows_of = self.problem.rows_of();
        self.around.round += 1;
        self.around.rows.clear();
        self.queue.clear();
        self.queue.push(source);
        self.around.member_seen[source as usize] = self.around.round;
        let (mut at, mut seen) = (0, 0);
        loop {
            while at < self.queue.len() {
                let member = self.queue[at];
                at += 1;
                let (mut next, end) = (rows_of.start(member), rows_of.start(member + 1));
                while let Some(place) = self.carrying.next(next, end) {
                    next = place + 1;
                    let row = rows_of.items()[place as usize];
                    if self.around.has_seen(row) {
                        continue;
                    }
                    while let Some(target) = self.next_with_room(row, member, threshold) {
                        let whole = self.carry(source, target, threshold);
                        if self.surplus(source, threshold) == 0 {
                            return SearchEnd::Enough;
                        }
                        if !whole {
                            return SearchEnd::Broken;
                        }
                    }
                    if !self.around.spend(self.row_arcs.width(row)) {
                        return SearchEnd::Enough;
                    }
                    self.around.row_seen[row as usize] = self.around.round;
                    self.around.rows.push((row, member));
                }
            }
            // The members of a row are queued only once all earlier members are searched. Most searches end before, and save the
            // pass over the row.
            let Some(&(row, gives)) = self.around.rows.get(seen) else { return SearchEnd::All };
            seen += 1;
            self.see(row, gives);
        }
    }

    /// A member of a row that has room. The members before it have no room, and will have none at this threshold.
    fn next_with_room(&mut self, row: u32, gives: u32, threshold: u32) -> Option<u32> {
        let Self { problem, row_arcs, loads, emptied, around, .. } = self;
        let mut found = None;
        row_arcs.find(row, &mut around.full[row as usize], |member| {
            let room = problem.room::<LIMITED>(loads, *emptied, member, threshold) > 0;
            found = Some(member).filter(|_| room);
            room
        });
        around.through[found? as usize] = (gives, row);
        found
    }

    /// Marks the members of a row as seen; none of them has room. The search goes on at those that it has not seen before.
    fn see(&mut self, row: u32, gives: u32) {
        let Self { row_arcs, around: Around { round, member_seen, through, .. }, queue, .. } = self;
        row_arcs.find(row, &mut 0, |member| {
            let seen = &mut member_seen[member as usize];
            if *seen != *round && *seen != DEAD {
                *seen = *round;
                through[member as usize] = (gives, row);
                queue.push(member);
            }
            false
        });
    }

    /// Moves partitions from `source` to a member with room, along the chain by which the member was seen. Returns false if an
    /// arc of the chain has no partition left: members seen behind this arc may be out of reach.
    fn carry(&mut self, source: u32, target: u32, threshold: u32) -> bool {
        let problem = self.problem;
        let mut amount = self.surplus(source, threshold).min(self.room(target, threshold));
        let mut member = target;
        while member != source {
            let (gives, row) = self.around.through[member as usize];
            amount = amount.min(self.flow[place(&problem.arcs, row, gives) as usize]);
            member = gives;
        }
        let mut whole = true;
        member = target;
        while member != source {
            let (gives, row) = self.around.through[member as usize];
            self.change(row, member, amount, true);
            whole &= self.change(row, gives, amount, false) > 0;
            member = gives;
        }
        self.loads[source as usize] -= amount;
        self.loads[target as usize] += amount;
        whole
    }

    /// Adds `amount` to the flow of an arc, or subtracts it. Returns the new flow.
    fn change(&mut self, row: u32, member: u32, amount: u32, more: bool) -> u32 {
        let arc = place(&self.problem.arcs, row, member);
        let flow = &mut self.flow[arc as usize];
        if !self.has_changed.has(arc) {
            self.has_changed.put(arc, true);
            self.changed.push((arc, *flow));
        }
        let before = *flow;
        *flow = if more { before + amount } else { before - amount };
        if (before > 0) != (*flow > 0) {
            self.carrying.put(place(self.problem.rows_of(), member, row), *flow > 0);
        }
        *flow
    }

    /// Breadth-first layers from the members above the threshold. Returns whether a member below it was reached.
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
        let Self { problem, row_arcs, carrying, row_layer, member_layer, queue, loads, emptied, .. } = self;
        let rows_of = problem.rows_of();
        let mut found = false;
        let mut at = 0;
        while at < queue.len() {
            let member = queue[at];
            at += 1;
            let layer = member_layer[member as usize];
            let mut steps = 1;
            let (mut next, end) = (rows_of.start(member), rows_of.start(member + 1));
            while let Some(place) = carrying.next(next, end) {
                next = place + 1;
                steps += 1;
                let row = rows_of.items()[place as usize];
                if row_layer[row as usize] != UNREACHED {
                    continue;
                }
                row_layer[row as usize] = layer;
                steps += u64::from(row_arcs.width(row));
                row_arcs.find(row, &mut 0, |next| {
                    if member_layer[next as usize] == UNREACHED {
                        member_layer[next as usize] = layer + 1;
                        found |= problem.room::<LIMITED>(loads, *emptied, next, threshold) > 0;
                        queue.push(next);
                    }
                    false
                });
            }
            budget.spend(steps)?;
        }
        Ok(found)
    }

    /// Moves partitions along one shortest chain from `source`; false if the layers offer none.
    fn augment(&mut self, source: u32, threshold: u32, budget: &Budget<'_>) -> Result<bool, Spent> {
        let mut chain: Vec<Link> = Vec::new();
        let mut member = source;
        loop {
            if self.room(member, threshold) > 0 {
                break;
            }
            if let Some(link) = self.step(member, budget)? {
                member = link.receives;
                chain.push(link);
            } else {
                let Some(Link { gives, row, .. }) = chain.pop() else { return Ok(false) };
                // A dead end: the next search skips it.
                self.row_next[row as usize] += 1;
                member = gives;
            }
        }
        let most = self.surplus(source, threshold).min(self.room(member, threshold));
        let amount = chain
            .iter()
            .map(|&Link { gives, row, .. }| self.flow[place(&self.problem.arcs, row, gives) as usize])
            .fold(most, u32::min);
        for &Link { gives, row, receives } in &chain {
            self.change(row, gives, amount, false);
            self.change(row, receives, amount, true);
        }
        self.loads[source as usize] -= amount;
        self.loads[member as usize] += amount;
        Ok(true)
    }

    /// The next link from a member to one of the next layer.
    fn step(&mut self, member: u32, budget: &Budget<'_>) -> Result<Option<Link>, Spent> {
        let rows_of = self.problem.rows_of();
        let layer = self.member_layer[member as usize];
        let (start, end) = (rows_of.start(member), rows_of.start(member + 1));
        while let Some(place) = self.carrying.next(start + self.member_next[member as usize], end) {
            self.member_next[member as usize] = place - start;
            let row = rows_of.items()[place as usize];
            budget.spend(1)?;
            if self.row_layer[row as usize] == layer {
                let mut next = self.row_next[row as usize];
                let mut found = None;
                self.row_arcs.find(row, &mut next, |member| {
                    found = Some(member).filter(|_| self.member_layer[member as usize] == layer + 1);
                    found.is_some()
                });
                budget.spend(u64::from(next - self.row_next[row as usize]))?;
                self.row_next[row as usize] = next;
                if let Some(receives) = found {
                    return Ok(Some(Link { gives: member, row, receives }));
                }
            }
            self.member_next[member as usize] += 1;
        }
        Ok(None)
    }

    /// Drops the arcs from the rows of the lower part to the members of the upper part. Neither these arcs nor those from upper
    /// rows to lower members have a flow.
    pub(super) fn cut(&mut self, lower_rows: &[u32]) {
        let Self { row_arcs, member_layer, .. } = self;
        for &row in lower_rows {
            row_arcs.retain(row, |member| member_layer[member as usize] == UNREACHED);
        }
    }
}

impl RowArcs<'_> {
    fn width(&self, row: u32) -> u32 {
        let count = self.count[row as usize];
        if count == UNCUT { self.arcs.row(row).len() as u32 } else { count }
    }

    /// Calls `visit` with the members of a row, from the place `next` on, until it returns true. `next` is left at the place of that
    /// member, or behind the last.
    #[inline]
    fn find(&self, row: u32, next: &mut u32, mut visit: impl FnMut(u32) -> bool) {
        let (start, count) = (self.arcs.start(row), self.count[row as usize]);
        if count == UNCUT {
            for &member in self.arcs.row(row).iter().skip(*next as usize) {
                if visit(member) {
                    return;
                }
                *next += 1;
            }
        } else {
            for &arc in self.left[start as usize..(start + count) as usize].iter().skip(*next as usize) {
                if visit(self.arcs.items()[arc as usize]) {
                    return;
                }
                *next += 1;
            }
        }
    }

    /// Drops the arcs of a row to members for which `keep` is false.
    fn retain(&mut self, row: u32, keep: impl Fn(u32) -> bool) {
        let (start, count) = (self.arcs.start(row), self.count[row as usize]);
        let mut kept = 0;
        for place in 0..self.width(row) {
            let arc = if count == UNCUT { start + place } else { self.left[(start + place) as usize] };
            if keep(self.arcs.items()[arc as usize]) {
                self.left[(start + kept) as usize] = arc;
                kept += 1;
            }
        }
        self.count[row as usize] = kept;
    }
}

impl Around {
    /// Whether this search, or an earlier one without success, has visited the row.
    fn has_seen(&self, row: u32) -> bool {
        let seen = self.row_seen[row as usize];
        seen == self.round || seen == DEAD
    }

    /// Spends the steps for the members of a row; false if no step is left.
    fn spend(&mut self, members: u32) -> bool {
        self.steps = self.steps.saturating_sub(1 + u64::from(members));
        self.steps > 0
    }

    /// Marks the members and rows that a search without success has seen.
    fn bury(&mut self, members: &[u32]) {
        for &member in members {
            self.member_seen[member as usize] = DEAD;
        }
        for &(row, _) in &self.rows {
            self.row_seen[row as usize] = DEAD;
        }
    }
}
