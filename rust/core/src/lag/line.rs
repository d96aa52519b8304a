//! The subscribers of a topic in order of what they have.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::Totals;
use crate::budget::{Budget, Spent};

/// What it costs to bring an entry of a heap up to date.
const HEAP_STEPS: u64 = 8;
/// Among how many members the one with the least is chosen once all is spent.
const CHOICES: usize = 8;

/// Heaps over one set of subscribers. What members have only grows, and may grow outside of this line too: an entry never
/// overstates, and one that states the present is the least.
#[derive(Default)]
pub(super) struct Line {
    /// Number, lag, member.
    by_count: BinaryHeap<Reverse<(u32, u128, u32)>>,
    /// Lag, number, member. Without the members that are `parked`.
    by_lag: BinaryHeap<Reverse<(u128, u32, u32)>>,
    /// Members that had too many when last looked at: number, member.
    parked: BinaryHeap<Reverse<(u32, u32)>>,
    /// Whose turn it is to be looked at, once all is spent.
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

    /// Gives a partition with this lag to one of `members`, who are the line's and at least one. Once all is spent, only a few of
    /// them are looked at, by turns: what others gave these members has to be looked up again and again, and groups whose topics
    /// all have other subscribers would have no end of that.
    pub(super) fn place(
        &mut self,
        members: &[u32],
        totals: &mut Totals,
        lag: u64,
        max_skew: Option<u32>,
        budget: &Budget<'_>,
    ) -> u32 {
        let least = self.least(totals, lag, max_skew, budget);
        let member = least.unwrap_or_else(|Spent(_)| self.least_of_few(members, totals, lag, max_skew));
        totals.add(member, lag);
        member
    }

    fn least(&mut self, totals: &Totals, lag: u64, max_skew: Option<u32>, budget: &Budget<'_>) -> Result<u32, Spent> {
        let (least, fewest) = self.fewest(totals, budget)?;
        match max_skew {
            _ if lag == 0 => Ok(fewest),
            Some(0) => Ok(fewest),
            None => self.lightest(totals, u32::MAX, budget),
            Some(skew) => {
                let ceiling = least.saturating_add(skew);
                self.unpark(totals, ceiling, budget)?;
                self.lightest(totals, ceiling, budget)
            }
        }
    }

    fn least_of_few(&mut self, members: &[u32], totals: &Totals, lag: u64, max_skew: Option<u32>) -> u32 {
        let few = (self.turn..).map(|place| members[place % members.len()]).take(CHOICES.min(members.len()));
        self.turn += CHOICES;
        let by_lag = lag > 0 && max_skew.is_none();
        let has = |&member: &u32| {
            let (count, lag) = (totals.count[member as usize].into(), totals.lag[member as usize]);
            if by_lag { (lag, count, member) } else { (count, lag, member) }
        };
        few.min_by_key(has).expect("a line has members")
    }

    /// The least number, and who has it.
    fn fewest(&mut self, totals: &Totals, budget: &Budget<'_>) -> Result<(u32, u32), Spent> {
        loop {
            budget.spend(HEAP_STEPS)?;
            let mut top = self.by_count.peek_mut().expect("a line has members");
            let Reverse((count, lag, member)) = *top;
            let now = (totals.count[member as usize], totals.lag[member as usize]);
            if now == (count, lag) {
                return Ok((count, member));
            }
            *top = Reverse((now.0, now.1, member));
        }
    }

    /// Who has the least lag of those with fewer than `ceiling` partitions, of whom there is at least one.
    fn lightest(&mut self, totals: &Totals, ceiling: u32, budget: &Budget<'_>) -> Result<u32, Spent> {
        loop {
            budget.spend(HEAP_STEPS)?;
            let mut top = self.by_lag.peek_mut().expect("somebody has fewer");
            let Reverse((lag, count, member)) = *top;
            let now = (totals.lag[member as usize], totals.count[member as usize]);
            if now.1 >= ceiling {
                PeekMut::pop(top);
                self.parked.push(Reverse((now.1, member)));
            } else if now == (lag, count) {
                return Ok(member);
            } else {
                *top = Reverse((now.0, now.1, member));
            }
        }
    }

    /// Brings back those who no longer have too many.
    fn unpark(&mut self, totals: &Totals, ceiling: u32, budget: &Budget<'_>) -> Result<(), Spent> {
        while let Some(&Reverse((stated, member))) = self.parked.peek() {
            if stated >= ceiling {
                break;
            }
            budget.spend(HEAP_STEPS)?;
            self.parked.pop();
            let count = totals.count[member as usize];
            if count < ceiling {
                self.by_lag.push(Reverse((totals.lag[member as usize], count, member)));
            } else {
                self.parked.push(Reverse((count, member)));
            }
        }
        Ok(())
    }
}
