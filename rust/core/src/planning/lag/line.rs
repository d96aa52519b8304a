//! The subscribers of a topic, in order of the partitions and the lag that they have.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::Totals;
use crate::planning::budget::{Budget, Spent};

/// The steps of an update of one heap entry. In a group with hundreds of lines of 1,700 members each, most entries miss the
/// processor's cache: with half of these steps, and half of those of a scan, the leader took 3.7 s.
const HEAP_STEPS: u64 = 16;
/// How many members a linear scan passes in the time of a step.
const SCANNED_PER_STEP: usize = 4;
/// How many members a linear scan passes in the time of an update of one heap entry.
const SCANNED_PER_ENTRY: usize = 64;
/// How many members are compared for each partition once the budget is spent.
const CHOICES: usize = 8;

/// Heaps over one set of subscribers. The totals of members only grow, but other lines grow them too, so entries may be out of
/// date. An entry is never above the member's present total: a top entry that equals the present total is the least.
#[derive(Default)]
pub(super) struct Line {
    /// Number, lag, member.
    by_count: BinaryHeap<Reverse<(u32, u128, u32)>>,
    /// Lag, number, member. Without the members that are `parked`.
    by_lag: BinaryHeap<Reverse<(u128, u32, u32)>>,
    /// Members that had too many partitions at the last update of their entry: number, member.
    parked: BinaryHeap<Reverse<(u32, u32)>>,
    /// The place of the next member to be compared, once the budget is spent.
    turn: usize,
}

impl Line {
    /// The line of these members. O(members).
    pub(super) fn refill(&mut self, members: &[u32], totals: &Totals, max_skew: Option<u32>) {
        let has = |member: u32| (totals.count[member as usize], totals.lag[member as usize]);
        self.by_count.clear();
        self.by_count.extend(members.iter().map(|&member| Reverse((has(member).0, has(member).1, member))));
        self.by_lag.clear();
        self.parked.clear();
        if max_skew != Some(0) {
            self.by_lag.extend(members.iter().map(|&member| Reverse((has(member).1, has(member).0, member))));
        }
    }

    /// Gives a partition with this lag to one of `members`, which are those of the line and at least one. Once the budget is
    /// spent, each call compares only the next few of them.
    pub(super) fn place(
        &mut self,
        members: &[u32],
        totals: &mut Totals,
        lag: u64,
        max_skew: Option<u32>,
        budget: &Budget<'_>,
    ) -> u32 {
        let least = self.least(members, totals, lag, max_skew, budget);
        let member = least.unwrap_or_else(|Spent(_)| {
            let few = (self.turn..).map(|place| members[place % members.len()]).take(CHOICES.min(members.len()));
            self.turn += CHOICES;
            if max_skew.is_none() && lag > 0 { lightest(few, totals) } else { fewest(few, totals) }
        });
        totals.add(member, lag);
        member
    }

    /// The member that gets the next partition: the least by lag, number and skew. If other lines gave partitions to most of
    /// these members since the last call, a scan of all members is quicker than an update of the heaps.
    fn least(
        &mut self,
        members: &[u32],
        totals: &Totals,
        lag: u64,
        max_skew: Option<u32>,
        budget: &Budget<'_>,
    ) -> Result<u32, Spent> {
        budget.spend(1)?;
        let patience = 2 + members.len() / SCANNED_PER_ENTRY;
        let mut left = patience;
        let found = self.top(totals, lag, max_skew, &mut left);
        budget.spend(HEAP_STEPS * (patience - left) as u64)?;
        if let Some(member) = found {
            return Ok(member);
        }
        budget.spend((members.len() / SCANNED_PER_STEP) as u64)?;
        let all = members.iter().copied();
        let Some(skew) = max_skew.filter(|&skew| skew > 0 && lag > 0) else {
            let by_lag = max_skew.is_none() && lag > 0;
            return Ok(if by_lag { lightest(all, totals) } else { fewest(all, totals) });
        };
        let least = all.clone().map(|member| totals.count[member as usize]).min().expect("a line has members");
        let ceiling = least.saturating_add(skew);
        Ok(lightest(all.filter(|&member| totals.count[member as usize] < ceiling), totals))
    }

    /// As [`Line::least`], from the heaps; `None` if more than `left` of their entries are out of date.
    fn top(&mut self, totals: &Totals, lag: u64, max_skew: Option<u32>, left: &mut usize) -> Option<u32> {
        match max_skew {
            Some(skew) if skew > 0 && lag > 0 => {
                let (least, _) = self.fewest(totals, left)?;
                let ceiling = least.saturating_add(skew);
                self.unpark(totals, ceiling, left)?;
                self.lightest(totals, ceiling, left)
            }
            None if lag > 0 => self.lightest(totals, u32::MAX, left),
            _ => Some(self.fewest(totals, left)?.1),
        }
    }

    /// The least number of partitions, and the member that has it.
    fn fewest(&mut self, totals: &Totals, left: &mut usize) -> Option<(u32, u32)> {
        loop {
            let mut top = self.by_count.peek_mut().expect("a line has members");
            let Reverse((count, lag, member)) = *top;
            let now = (totals.count[member as usize], totals.lag[member as usize]);
            if now == (count, lag) {
                return Some((count, member));
            }
            *left = left.checked_sub(1)?;
            *top = Reverse((now.0, now.1, member));
        }
    }

    /// The member with the least lag of those with fewer than `ceiling` partitions. There is at least one.
    fn lightest(&mut self, totals: &Totals, ceiling: u32, left: &mut usize) -> Option<u32> {
        loop {
            let mut top = self.by_lag.peek_mut().expect("a member has fewer than `ceiling` partitions");
            let Reverse((lag, count, member)) = *top;
            let now = (totals.lag[member as usize], totals.count[member as usize]);
            if now == (lag, count) && count < ceiling {
                return Some(member);
            }
            *left = left.checked_sub(1)?;
            if now.1 >= ceiling {
                PeekMut::pop(top);
                self.parked.push(Reverse((now.1, member)));
            } else {
                *top = Reverse((now.0, now.1, member));
            }
        }
    }

    /// Brings back the parked members with fewer than `ceiling` partitions.
    fn unpark(&mut self, totals: &Totals, ceiling: u32, left: &mut usize) -> Option<()> {
        while let Some(&Reverse((stated, member))) = self.parked.peek() {
            if stated >= ceiling {
                break;
            }
            *left = left.checked_sub(1)?;
            self.parked.pop();
            let count = totals.count[member as usize];
            if count < ceiling {
                self.by_lag.push(Reverse((totals.lag[member as usize], count, member)));
            } else {
                self.parked.push(Reverse((count, member)));
            }
        }
        Some(())
    }
}

/// The member with the fewest partitions.
fn fewest(members: impl Iterator<Item = u32>, totals: &Totals) -> u32 {
    let has = |&member: &u32| (totals.count[member as usize], totals.lag[member as usize], member);
    members.min_by_key(has).expect("a line has members")
}

/// The member with the least lag.
fn lightest(members: impl Iterator<Item = u32>, totals: &Totals) -> u32 {
    let has = |&member: &u32| (totals.lag[member as usize], totals.count[member as usize], member);
    members.min_by_key(has).expect("a line has members")
}
