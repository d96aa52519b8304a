//! The nodes and edges of the blocks that are searched.

use std::borrow::Cow;
use std::ops::Range;

use super::{Detours, End};
use crate::planning::group::{Csr, NONE};
use crate::planning::sticky::levels::Blocks;
use crate::planning::sticky::rows::RowProblem;

/// Nodes are numbered: members, hubs of detours, rows, and one hub for each block, which gives members the right to `low + 1`.
/// So a unit flows from the node with the greater number to the one with the smaller. Members and rows are numbered block by
/// block, and in a block as the problem numbers them.
///
/// An arc between a row and a member of another block has no flow and is left out. With one block, the arcs are those of the
/// problem.
pub(super) struct Network<'a> {
    /// Row to its members.
    pub arcs: Cow<'a, Csr>,
    /// Member to its rows.
    pub rows_of: Cow<'a, Csr>,
    /// Whether members, rows and arcs have the numbers that the problem gives them.
    pub whole: bool,
    /// Where they do not, the arcs, members and rows as the problem numbers them.
    pub origin: Vec<u32>,
    members: Vec<u32>,
    rows: Vec<u32>,
    /// By block, its first member and row; at the end, the number of all members and rows.
    pub member_starts: Vec<u32>,
    pub row_starts: Vec<u32>,
    /// By block, as the problem numbers it.
    pub blocks: Vec<u32>,
    /// By block, the members that may have `low + 1`.
    pub raisable: Csr,
    /// By member, the hub of its block; [`NONE`] for a member that may not have `low + 1`.
    pub hub_of: Vec<u32>,
    pub detours: Option<DetoursOf>,
    pub first_row: u32,
    pub first_block: u32,
}

/// The detours of each node in both directions, in ascending order of their arcs, which are behind the members' arcs.
pub(super) struct DetoursOf {
    starts: Csr,
    /// Node after node: the other end, and the arc.
    pub ends: Vec<(u32, u32)>,
}

impl DetoursOf {
    /// The places of a node's detours in `ends`.
    pub(super) fn places(&self, node: u32) -> Range<u32> {
        self.starts.start(node)..self.starts.start(node + 1)
    }

    /// The place of an arc among the node's detours. O(log detours of the node).
    pub(super) fn place(&self, node: u32, arc: u32) -> u32 {
        let places = self.places(node);
        let of_node = &self.ends[places.start as usize..places.end as usize];
        places.start + of_node.partition_point(|&(_, other)| other < arc) as u32
    }

    /// By place, whether the edge leads from its node in the detour's own direction: such an edge always has residual capacity.
    pub(super) fn forward(&self) -> Vec<bool> {
        let nodes = (0..self.starts.len() as u32).flat_map(|node| self.places(node).map(move |_| node));
        self.ends.iter().zip(nodes).map(|(&(to, _), node)| node > to).collect()
    }
}

impl<'a> Network<'a> {
    pub(super) fn lay(problem: &'a RowProblem<'a>, blocks: &Blocks, uneven: &[u32], detours: &Detours) -> Self {
        let mut network = if blocks.blocks.len() == 1 {
            let (members, rows) = (problem.members as u32, problem.rows() as u32);
            Self::of(Cow::Borrowed(&problem.arcs), Cow::Borrowed(problem.rows_of()), vec![0, members], vec![0, rows])
        } else {
            Self::inside(problem, blocks, uneven)
        };
        network.blocks = uneven.to_vec();
        network.first_row = network.rows_of.len() as u32 + detours.hubs;
        network.first_block = network.first_row + network.arcs.len() as u32;
        network.hub_of = vec![NONE; network.rows_of.len()];
        let mut raisable = Vec::new();
        for (place, &block) in (0u32..).zip(uneven) {
            raisable.clear();
            for member in network.member_starts[place as usize]..network.member_starts[place as usize + 1] {
                let known = network.member(member);
                if blocks.of_member[known as usize] == block && blocks.may_be_raised(known) {
                    raisable.push(member);
                    network.hub_of[member as usize] = network.first_block + place;
                }
            }
            network.raisable.push_row(&raisable);
        }
        if !detours.edges.is_empty() {
            network.lay_detours(problem, detours);
        }
        network
    }

    fn of(arcs: Cow<'a, Csr>, rows_of: Cow<'a, Csr>, member_starts: Vec<u32>, row_starts: Vec<u32>) -> Self {
        Self {
            arcs,
            rows_of,
            whole: true,
            origin: Vec::new(),
            members: Vec::new(),
            rows: Vec::new(),
            member_starts,
            row_starts,
            blocks: Vec::new(),
            raisable: Csr::new(),
            hub_of: Vec::new(),
            detours: None,
            first_row: 0,
            first_block: 0,
        }
    }

    /// The arcs inside some of several blocks.
    fn inside(problem: &RowProblem, blocks: &Blocks, uneven: &[u32]) -> Self {
        let mut place = vec![NONE; blocks.blocks.len()];
        for (at, &block) in (0u32..).zip(uneven) {
            place[block as usize] = at;
        }
        let grouped = |of: &[u32]| {
            let places: Vec<u32> = of.iter().map(|&block| place.get(block as usize).copied().unwrap_or(NONE)).collect();
            Csr::group_by(&places, uneven.len())
        };
        let (members, rows) = (grouped(&blocks.of_member), grouped(&blocks.of_row));
        let mut number = vec![NONE; problem.members];
        for (at, &member) in (0u32..).zip(members.items()) {
            number[member as usize] = at;
        }
        let (mut arcs, mut origin, mut row_members) = (Csr::new(), Vec::new(), Vec::new());
        for &row in rows.items() {
            row_members.clear();
            for (arc, &member) in problem.arcs_of_row(row).zip(problem.arcs.row(row)) {
                if blocks.of_member[member as usize] == blocks.of_row[row as usize] {
                    origin.push(arc);
                    row_members.push(number[member as usize]);
                }
            }
            arcs.push_row(&row_members);
        }
        let starts = |of: &Csr| (0..=uneven.len() as u32).map(|place| of.start(place)).collect();
        let rows_of = arcs.transpose(members.items().len());
        let network = Self::of(Cow::Owned(arcs), Cow::Owned(rows_of), starts(&members), starts(&rows));
        Self { whole: false, origin, members: members.items().to_vec(), rows: rows.items().to_vec(), ..network }
    }

    fn lay_detours(&mut self, problem: &RowProblem, detours: &Detours) {
        let numbers = |known: &[u32], count: usize| {
            let mut number: Vec<u32> = if self.whole { (0..count as u32).collect() } else { vec![NONE; count] };
            for (at, &id) in (0u32..).zip(known) {
                number[id as usize] = at;
            }
            number
        };
        let (members, rows) = (numbers(&self.members, problem.members), numbers(&self.rows, problem.rows()));
        let node = |end: End| match end {
            End::Member(member) => members[member as usize],
            End::Hub(hub) => self.rows_of.len() as u32 + hub,
            End::Row(row) if rows[row as usize] == NONE => NONE,
            End::Row(row) => self.first_row + rows[row as usize],
        };
        let first = self.arcs.items().len() as u32;
        let (mut here, mut edges) = (Vec::new(), Vec::new());
        for (arc, detour) in (first..).zip(&detours.edges) {
            let (from, to) = (node(detour.from), node(detour.to));
            if from != NONE && to != NONE {
                here.extend([from, to]);
                edges.extend([(to, arc), (from, arc)]);
            }
        }
        let starts = Csr::group_by(&here, self.nodes());
        let ends = starts.items().iter().map(|&edge| edges[edge as usize]).collect();
        self.detours = Some(DetoursOf { starts, ends });
    }

    pub(super) fn nodes(&self) -> usize {
        self.first_block as usize + self.blocks.len()
    }

    /// The member as the problem numbers it.
    pub(super) fn member(&self, member: u32) -> u32 {
        if self.whole { member } else { self.members[member as usize] }
    }

    /// The row as the problem numbers it.
    pub(super) fn row(&self, row: u32) -> u32 {
        if self.whole { row } else { self.rows[row as usize] }
    }

    /// The arc as the problem numbers it.
    pub(super) fn arc(&self, arc: u32) -> u32 {
        if self.whole { arc } else { self.origin[arc as usize] }
    }
}
