//! Taking lag off the heaviest member, change by change, where members keep what they own.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;

use super::Placing;
use crate::group::Csr;

/// A change that takes `gain` of lag off the heavier member: what goes to the member at place `target`, and what comes back.
struct Change {
    gain: u128,
    gives: u32,
    target: usize,
    takes: Option<u32>,
}

/// Who may have what, and has it now. Members are meant by their place.
struct Holdings<'a> {
    members: &'a [u32],
    topics: &'a crate::group::Topics,
    lags: &'a [u64],
    set_of: &'a [u32],
    lineups: &'a Csr,
    /// Partitions in decreasing lag.
    held: Vec<Vec<u32>>,
    /// Lag and place, the lightest first.
    order: BTreeSet<(u128, usize)>,
}

impl<'a> Placing<'a> {
    /// Changes the plan of these topics while that takes more than `threshold` of lag off the heaviest of `members`, who are
    /// all the members that subscribe to them. Moves come before swaps; no move lets the numbers of partitions get further
    /// apart than `max_skew`, or 1 where that is 0, allows. There are at most two changes for each partition.
    pub(super) fn level(&mut self, topics: Range<u32>, members: &[u32], threshold: u64, set_of: &[u32], lineups: &Csr) {
        let mut holdings = self.holdings(topics, members, set_of, lineups);
        let most_changes = 2 * holdings.held.iter().map(Vec::len).sum::<usize>();
        for _ in 0..most_changes {
            let Some(&(_, heaviest)) = holdings.order.last() else { return };
            let change = holdings
                .best_move(heaviest, threshold, self.options.max_skew)
                .or_else(|| holdings.best_swap(heaviest, threshold));
            let Some(change) = change else { return };
            holdings.hand_over(change.gives, heaviest, change.target);
            self.owner[change.gives as usize] = members[change.target];
            if let Some(partition) = change.takes {
                holdings.hand_over(partition, change.target, heaviest);
                self.owner[partition as usize] = members[heaviest];
            }
        }
    }

    fn holdings<'h>(&self, topics: Range<u32>, members: &'h [u32], set_of: &'h [u32], lineups: &'h Csr) -> Holdings<'h>
    where
        'a: 'h,
    {
        let mut held = vec![Vec::new(); members.len()];
        for partition in topics.flat_map(|topic| self.group.topics().range(topic)) {
            if let Ok(place) = members.binary_search(&self.owner[partition as usize]) {
                held[place].push(partition);
            }
        }
        held.iter_mut().for_each(|partitions: &mut Vec<u32>| self.sort(partitions));
        let order = (0..).zip(members).map(|(place, &member)| (self.totals.lag[member as usize], place)).collect();
        Holdings { members, topics: self.group.topics(), lags: self.lags, set_of, lineups, held, order }
    }
}

impl Holdings<'_> {
    fn lag(&self, partition: u32) -> u128 {
        u128::from(self.lags[partition as usize])
    }

    fn may_have(&self, place: usize, partition: u32) -> bool {
        let (topic, _) = self.topics.locate(partition);
        self.lineups.row(self.set_of[topic as usize]).binary_search(&self.members[place]).is_ok()
    }

    /// The members that are lighter by more than twice the threshold, lightest first, each with the difference: between
    /// others no change is worth more than the threshold.
    fn lighter(&self, heaviest: usize, threshold: u64) -> impl Iterator<Item = (u128, usize)> {
        let most = self.order.last().map_or(0, |&(most, _)| most);
        let gaps = self.order.iter().map(move |&(lag, place)| (most - lag, place));
        gaps.take_while(move |&(gap, place)| place != heaviest && gap > 2 * u128::from(threshold))
    }

    /// The most valuable move of one partition.
    fn best_move(&self, heaviest: usize, threshold: u64, max_skew: Option<u32>) -> Option<Change> {
        let counts = || self.held.iter().map(Vec::len);
        let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        let from = self.held[heaviest].len();
        let has_room = |to: usize| match max_skew {
            Some(skew) if to >= from => {
                let skew = skew.max(1) as usize;
                to < least + skew && most < from + skew && to + 2 <= from + skew
            }
            _ => true,
        };
        let mut best: Option<Change> = None;
        for &gives in self.held[heaviest].iter().filter(|&&partition| self.lags[partition as usize] > 0) {
            // The lighter the target, the more a move is worth: the first that is allowed is the best for this partition.
            let target = self
                .lighter(heaviest, threshold)
                .find(|&(_, target)| has_room(self.held[target].len()) && self.may_have(target, gives));
            let Some((gap, target)) = target else { continue };
            let gain = self.lag(gives).min(gap.saturating_sub(self.lag(gives)));
            if gain > u128::from(threshold) && best.as_ref().is_none_or(|best| gain > best.gain) {
                best = Some(Change { gain, gives, target, takes: None });
            }
        }
        best
    }

    /// The most valuable swap with the lightest member that has one.
    fn best_swap(&self, heaviest: usize, threshold: u64) -> Option<Change> {
        self.lighter(heaviest, threshold).find_map(|(gap, target)| {
            let mut best: Option<Change> = None;
            for &gives in &self.held[heaviest] {
                if !self.may_have(target, gives) {
                    continue;
                }
                // Best is a difference of half the gap; the candidates lie on both sides of it.
                let wanted = self.lag(gives).saturating_sub(gap / 2);
                let back = &self.held[target];
                let middle = back.partition_point(|&partition| self.lag(partition) > wanted);
                let eligible = |&partition: &u32| self.may_have(heaviest, partition);
                let heavier = back[..middle].iter().rev().copied().find(eligible);
                let lighter = back[middle..].iter().copied().find(eligible);
                for takes in heavier.into_iter().chain(lighter) {
                    let difference = self.lag(gives).saturating_sub(self.lag(takes));
                    let gain = difference.min(gap.saturating_sub(difference));
                    if gain > u128::from(threshold) && best.as_ref().is_none_or(|best| gain > best.gain) {
                        best = Some(Change { gain, gives, target, takes: Some(takes) });
                    }
                }
            }
            best
        })
    }

    fn hand_over(&mut self, partition: u32, from: usize, to: usize) {
        let lag = self.lag(partition);
        for (place, receives) in [(from, false), (to, true)] {
            let key = |partition: u32| (Reverse(self.lags[partition as usize]), partition);
            let at = self.held[place].partition_point(|&other| key(other) < key(partition));
            let total: u128 = self.held[place].iter().map(|&partition| self.lag(partition)).sum();
            self.order.remove(&(total, place));
            if receives {
                self.held[place].insert(at, partition);
                self.order.insert((total + lag, place));
            } else {
                self.held[place].remove(at);
                self.order.insert((total - lag, place));
            }
        }
    }
}
