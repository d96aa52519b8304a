//! The change that takes most lag off the heaviest member: a move of one partition or, where no move gains anything, a swap.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::level::CurrentPlan;
use super::ranks::{self, Ranks};

/// If the members of a group are more than this many times the subscribers of some partitions, a search visits only these
/// subscribers.
const FEW: usize = 8;

/// A change that takes `gain` of lag off the heavier member: the partition `gives` goes to the member at place `target`, and in
/// a swap the partition `takes` comes back.
pub(super) struct Change {
    gain: u128,
    pub(super) gives: u32,
    pub(super) target: usize,
    pub(super) takes: Option<u32>,
}

/// Why a scan of candidates ended without a result.
enum ScanEnd {
    /// The scan has examined as many candidates as it was allowed.
    Most,
    /// The budget is spent.
    Spent,
}

impl CurrentPlan<'_> {
    /// The members that are lighter than the heaviest, lightest first, each with the difference. Members that subscribe to none
    /// of the heaviest member's topics may be left out. `None` once the budget is spent.
    fn lighter(&self, heaviest: usize) -> Option<Box<dyn Iterator<Item = (u128, usize)> + '_>> {
        let most = self.most();
        let sets = || self.held[heaviest].parts().iter().map(|&(set, _)| self.subscribers(set));
        if !self.equal && sets().map(<[u32]>::len).sum::<usize>() < self.members.len() / FEW {
            let mut near = Vec::new();
            for subscribers in sets() {
                self.spend(subscribers.len())?;
                let place = |&member: &u32| self.place(member);
                near.extend(subscribers.iter().map(place).map(|place| Reverse((self.total[place], place))));
            }
            // A search visits few of them, so the others are not sorted. A member of several sets comes once for each.
            let mut near = BinaryHeap::from(near);
            let mut last = None;
            let lightest = std::iter::from_fn(move || {
                while let Some(Reverse(next)) = near.pop() {
                    if last.replace(next) != Some(next) {
                        return Some(next);
                    }
                }
                None
            });
            return Some(Box::new(
                lightest.map(move |(lag, place)| (most - lag, place)).take_while(|&(gap, _)| gap > 0),
            ));
        }
        Some(Box::new(self.order.iter().map(move |&(lag, place)| (most - lag, place)).take_while(|&(gap, _)| gap > 0)))
    }

    /// The most valuable move of one partition or, where no move has a value, the most valuable swap. `None` if there is
    /// neither, and once the budget is spent: the search is then unfinished, and its best change so far may move partitions for
    /// little.
    pub(super) fn best_change(&self, heaviest: usize) -> Option<Change> {
        match self.best_move(heaviest)? {
            Some(change) => Some(change),
            None => self.best_swap(heaviest)?,
        }
    }

    /// The most valuable move of one partition, if a move has a value. `None` once the budget is spent.
    fn best_move(&self, heaviest: usize) -> Option<Option<Change>> {
        let row = &self.held[heaviest];
        self.spend(row.parts().len())?;
        let largest =
            row.parts().iter().filter_map(|(_, part)| part.last()).map(|&partition| self.lag(partition)).max();
        let mut best: Option<Change> = None;
        let (mut merged, mut searched) = (Vec::new(), 0);
        for (gap, target) in self.lighter(heaviest)? {
            self.spend(1)?;
            let gain = best.as_ref().map_or(0, |best| best.gain);
            // No move is worth more than half the difference, which is smaller for the members that follow, nor more than the
            // partition's own lag.
            if gain >= (gap / 2).min(largest.unwrap_or(0)) && gain > 0 {
                break;
            }
            if !self.has_room(heaviest, target) {
                continue;
            }
            // The best lag is half the difference. The candidates are the nearest lags on both sides of it.
            let near = if searched <= row.len() {
                searched += row.parts().len();
                self.nearest(row.parts(), target, gap, gain)?
            } else {
                // With so many targets, sorting all partitions once is cheaper than a search of every set for each target.
                if merged.is_empty() {
                    self.spend(row.len())?;
                    let sets = row.parts().iter();
                    merged = sets.flat_map(|(set, part)| part.iter().map(|&partition| (*set, partition))).collect();
                    merged.sort_by_key(|&(_, partition)| self.key(partition));
                }
                match self.nearest_of_merged(&merged, row.parts().len(), target, gap, gain) {
                    Ok(near) => near,
                    Err(ScanEnd::Most) => self.nearest(row.parts(), target, gap, gain)?,
                    Err(ScanEnd::Spent) => return None,
                }
            };
            for gives in near.into_iter().flatten() {
                let gain = self.lag(gives).min(gap.saturating_sub(self.lag(gives)));
                if gain > best.as_ref().map_or(0, |best| best.gain) {
                    best = Some(Change { gain, gives, target, takes: None });
                }
            }
            // The lighter the target, the more a move is worth. With equal subscriptions no later target has a better move.
            if self.equal {
                break;
            }
        }
        Some(best)
    }

    /// Of the partitions that a member may have, those with the lag nearest to half of `gap`: the nearest above it, and the
    /// nearest of the others. Only partitions whose move is worth more than `gain` count. `None` once the budget is spent.
    fn nearest(&self, parts: &[(u32, Vec<u32>)], target: usize, gap: u128, gain: u128) -> Option<[Option<u32>; 2]> {
        self.spend(parts.len())?;
        let (mut above, mut below): (Option<u32>, Option<u32>) = (None, None);
        for (set, part) in parts {
            let (lighter, heavier) = part.split_at(part.partition_point(|&partition| self.lag(partition) <= gap / 2));
            let lighter = lighter.last().copied().filter(|&partition| self.lag(partition) > gain);
            let heavier = heavier.first().copied().filter(|&partition| self.lag(partition) < gap - gain);
            if lighter.or(heavier).is_some() && self.is_in(target, *set) {
                below = below.into_iter().chain(lighter).max_by_key(|&partition| self.key(partition));
                above = above.into_iter().chain(heavier).min_by_key(|&partition| self.key(partition));
            }
        }
        Some([above, below])
    }

    /// As [`CurrentPlan::nearest`], from one sorted list of partitions with their sets. At most `most` are examined on each side.
    fn nearest_of_merged(
        &self,
        merged: &[(u32, u32)],
        most: usize,
        target: usize,
        gap: u128,
        gain: u128,
    ) -> Result<[Option<u32>; 2], ScanEnd> {
        let (lighter, heavier) =
            merged.split_at(merged.partition_point(|&(_, partition)| self.lag(partition) <= gap / 2));
        let heavier = heavier.iter().take_while(|&&(_, partition)| self.lag(partition) < gap - gain);
        let lighter = lighter.iter().rev().take_while(|&&(_, partition)| self.lag(partition) > gain);
        Ok([self.first_for(target, heavier, most)?, self.first_for(target, lighter, most)?])
    }

    /// The first partition that a member may have, if there is one.
    fn first_for<'b>(
        &self,
        target: usize,
        candidates: impl Iterator<Item = &'b (u32, u32)>,
        most: usize,
    ) -> Result<Option<u32>, ScanEnd> {
        for (examined, &(set, partition)) in candidates.enumerate() {
            if examined == most {
                return Err(ScanEnd::Most);
            }
            self.spend(1).ok_or(ScanEnd::Spent)?;
            if self.is_in(target, set) {
                return Ok(Some(partition));
            }
        }
        Ok(None)
    }

    /// The most valuable swap with the lightest member that has one. `None` once the budget is spent.
    fn best_swap(&self, heaviest: usize) -> Option<Option<Change>> {
        let parts = |place: usize| self.held[place].parts().len();
        for (gap, target) in self.lighter(heaviest)? {
            // Partitions that the other member may not have are left out here, once. The search below would pass over them for
            // each partition that is given.
            self.spend(1 + parts(heaviest) + parts(target))?;
            let gives = self.held[heaviest].merged(|set| self.is_in(target, set), |merged| self.sort(merged));
            let takes = self.held[target].merged(|set| self.is_in(heaviest, set), |merged| self.sort(merged));
            for merged in [&gives, &takes] {
                if let Cow::Owned(merged) = merged {
                    self.spend(merged.len())?;
                }
            }
            let Some(&least) = takes.first() else { continue };
            let mut best: Option<Change> = None;
            let mut last = None;
            // A swap makes the heavier member lighter only if it gives more lag than it takes.
            for &gives in gives.iter().rev().take_while(|&&gives| self.lag(gives) > self.lag(least)) {
                self.spend(1)?;
                // A partition with the lag of the one before is worth the same, and no swap is worth more than half the
                // difference.
                if last.replace(self.lag(gives)) == Some(self.lag(gives)) {
                    continue;
                }
                if best.as_ref().is_some_and(|best| best.gain >= gap / 2) {
                    break;
                }
                // The best difference is half the gap. The candidates are the nearest on both sides of it.
                let wanted = self.lag(gives).saturating_sub(gap / 2);
                let (lighter, heavier) =
                    takes.split_at(takes.partition_point(|&partition| self.lag(partition) <= wanted));
                for &takes in heavier.first().into_iter().chain(lighter.last()) {
                    let difference = self.lag(gives).saturating_sub(self.lag(takes));
                    let gain = difference.min(gap.saturating_sub(difference));
                    if gain > 0 && best.as_ref().is_none_or(|best| gain > best.gain) {
                        best = Some(Change { gain, gives, target, takes: Some(takes) });
                    }
                }
            }
            if best.is_some() {
                return Some(best);
            }
        }
        Some(None)
    }

    /// Sorts partitions by their keys.
    fn sort(&self, partitions: &mut [u32]) {
        if partitions.len() < ranks::FEW {
            partitions.sort_unstable_by_key(|&partition| self.key(partition));
        } else {
            self.ranks.get_or_init(|| Ranks::new(self.lags)).sort(partitions);
        }
    }

    /// Whether a search among the members of a set of subscribers is quicker than one among all members in order of lag.
    pub(super) fn is_small(&self, set: u32) -> bool {
        !self.equal && self.subscribers(set).len() < self.members.len() / FEW
    }
}
