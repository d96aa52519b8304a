//! Taking lag off the heaviest member, change by change, where members keep what they own.
//!
//! A search makes one change after another: a move of one partition away from the heaviest member, or, where none is worth
//! anything, a swap. As soon as the heaviest lag is more than the threshold below what it was, the changes so far are
//! settled; what is not settled when no change is left is taken back. Then whatever moved goes home where that makes nobody
//! heavier than the heaviest, and where a plan with provably the fewest moves is at hand ([`super::fewest`]), it is taken. If
//! any of this did something, the search goes on. Settling lowers the heaviest lag, and the rest leaves it no higher and the
//! moves fewer, so it ends.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::Placing;
use crate::group::{Csr, NONE, Topics};

/// How many pairs of a partition and a member may be looked at, and how many more for each partition: what a group costs its
/// leader must not hang on how its lags are spread. Groups of a few hundred partitions never get there.
const LOOKS: u64 = 1 << 24;
const LOOKS_PER_PARTITION: u64 = 128;
/// What a change costs besides.
const LOOKS_PER_CHANGE: u64 = 64;

/// What there is to spend on a group of so many partitions.
pub(super) fn budget(partitions: usize) -> u64 {
    LOOKS + LOOKS_PER_PARTITION * partitions as u64
}

/// A change that takes `gain` of lag off the heavier member: what goes to the member at place `target`, and what comes back.
struct Change {
    gain: u128,
    gives: u32,
    target: usize,
    takes: Option<u32>,
}

/// Who may have what, and has it now. Members are meant by their place.
pub(super) struct Holdings<'a> {
    pub(super) members: &'a [u32],
    topics: &'a Topics,
    pub(super) lags: &'a [u64],
    pub(super) before: &'a [u32],
    pub(super) owner: &'a mut [u32],
    set_of: &'a [u32],
    lineups: &'a Csr,
    /// Whether all the members subscribe to all the topics.
    equal: bool,
    pub(super) max_skew: Option<u32>,
    /// Partitions in increasing lag: what a heavy member gives away is mostly near the end.
    pub(super) held: Vec<Vec<u32>>,
    pub(super) total: Vec<u128>,
    /// Lag and place, the lightest first.
    pub(super) order: BTreeSet<(u128, usize)>,
    /// By number of partitions, how many members have it.
    counts: BTreeMap<usize, usize>,
    /// What is left to spend.
    looks: u64,
}

impl Placing<'_> {
    /// Levels the plan of these topics; `members` are, at least, all the members that subscribe to them, ascending.
    pub(super) fn level(&mut self, topics: Range<u32>, members: &[u32], threshold: u64) {
        if topics.is_empty() || members.is_empty() {
            return;
        }
        let numbered = self.group.topics();
        let partitions = numbered.range(topics.start).start..numbered.range(topics.end - 1).end;
        let total: Vec<u128> = members.iter().map(|&member| self.totals.lag[member as usize]).collect();
        let placed = partitions.clone().filter(|&partition| self.owner[partition as usize] != NONE);
        let largest = placed.map(|partition| self.lags[partition as usize]).max().unwrap_or(0);
        // No plan gets the heaviest member below the bound; once the threshold does not reach down to it, all is done.
        let bound = u128::from(largest).max(total.iter().sum::<u128>().div_ceil(members.len() as u128));
        let within = bound.saturating_add(u128::from(threshold));
        if total.iter().all(|&total| total <= within) {
            return;
        }
        let mut held = vec![Vec::new(); members.len()];
        for partition in partitions.clone() {
            if let Ok(place) = members.binary_search(&self.owner[partition as usize]) {
                held[place].push(partition);
            }
        }
        for row in &mut held {
            row.sort_unstable_by_key(|&partition| (self.lags[partition as usize], Reverse(partition)));
        }
        let mut counts = BTreeMap::new();
        held.iter().for_each(|row| *counts.entry(row.len()).or_insert(0) += 1);
        let mut holdings = Holdings {
            members,
            topics: numbered,
            lags: self.lags,
            before: self.before,
            owner: &mut *self.owner,
            set_of: self.set_of,
            lineups: self.lineups,
            equal: topics.clone().all(|topic| self.lineups.row(self.set_of[topic as usize]) == members),
            max_skew: self.options.max_skew,
            held,
            counts,
            order: total.iter().copied().zip(0..).collect(),
            total,
            looks: self.looks,
        };
        let mut moved = Vec::new();
        loop {
            holdings.search(threshold, within, &mut moved);
            if !holdings.send_home(&mut moved) && !holdings.move_fewest(&mut moved) {
                self.looks = holdings.looks;
                return;
            }
        }
    }
}

impl Holdings<'_> {
    pub(super) fn lag(&self, partition: u32) -> u128 {
        u128::from(self.lags[partition as usize])
    }

    /// The place of a member that owned or owns a partition.
    pub(super) fn place(&self, member: u32) -> usize {
        self.members.binary_search(&member).expect("who owns a partition subscribes")
    }

    /// The heaviest lag.
    pub(super) fn most(&self) -> u128 {
        self.order.last().map_or(0, |&(most, _)| most)
    }

    pub(super) fn may_have(&self, place: usize, partition: u32) -> bool {
        self.equal || {
            let (topic, _) = self.topics.locate(partition);
            self.lineups.row(self.set_of[topic as usize]).binary_search(&self.members[place]).is_ok()
        }
    }

    /// The members that are lighter than the heaviest, lightest first, each with the difference.
    fn lighter(&self) -> impl Iterator<Item = (u128, usize)> {
        let most = self.most();
        self.order.iter().map(move |&(lag, place)| (most - lag, place)).take_while(|&(gap, _)| gap > 0)
    }

    /// Makes changes until none is left, or the heaviest lag is `within` reach of what no plan can be below. Those that are
    /// not settled in the end are taken back; the partitions of the others are added to `moved`.
    fn search(&mut self, threshold: u64, within: u128, moved: &mut Vec<u32>) {
        let mut settled = self.most();
        let mut open: Vec<(u32, usize, usize)> = Vec::new();
        while settled > within {
            let Some(&(_, heaviest)) = self.order.last() else { break };
            let change = self.best_move(heaviest).or_else(|| self.best_swap(heaviest));
            let Some(change) = change else { break };
            let gives = (change.gives, heaviest, change.target);
            let takes = change.takes.map(|partition| (partition, change.target, heaviest));
            for (partition, from, to) in std::iter::once(gives).chain(takes) {
                self.hand_over(partition, from, to);
                open.push((partition, from, to));
            }
            if self.most().saturating_add(u128::from(threshold)) < settled {
                settled = self.most();
                moved.extend(open.drain(..).map(|(partition, ..)| partition));
            }
        }
        for (partition, from, to) in open.into_iter().rev() {
            self.hand_over(partition, to, from);
        }
    }

    /// Whether a member that has more by one, another having less by one, leaves the numbers as close as they have to be.
    fn has_room(&self, from: usize, to: usize) -> bool {
        let (from, to) = (self.held[from].len(), self.held[to].len());
        let Some(skew) = self.max_skew.filter(|_| to >= from) else { return true };
        let least = self.counts.first_key_value().map_or(0, |(&count, _)| count);
        let most = self.counts.last_key_value().map_or(0, |(&count, _)| count);
        let skew = skew.max(1) as usize;
        to < least + skew && most < from + skew && to + 2 <= from + skew
    }

    /// The most valuable move of one partition.
    fn best_move(&mut self, heaviest: usize) -> Option<Change> {
        let row = &self.held[heaviest];
        let mut looks = 0;
        let mut best: Option<Change> = None;
        for (gap, target) in self.lighter() {
            looks += 1;
            // Nothing is worth more than half the difference, and the others differ less.
            if best.as_ref().is_some_and(|best| best.gain >= gap / 2) {
                break;
            }
            if !self.has_room(heaviest, target) {
                continue;
            }
            // Best is half the difference; the candidates lie on both sides of it.
            let middle = row.partition_point(|&partition| self.lag(partition) <= gap / 2);
            let may_have = |&&partition: &&u32| self.may_have(target, partition);
            let lighter = row[..middle].iter().rev().inspect(|_| looks += 1).find(may_have).copied();
            let heavier = row[middle..].iter().inspect(|_| looks += 1).find(may_have).copied();
            for gives in heavier.into_iter().chain(lighter) {
                let gain = self.lag(gives).min(gap.saturating_sub(self.lag(gives)));
                if gain > best.as_ref().map_or(0, |best| best.gain) {
                    best = Some(Change { gain, gives, target, takes: None });
                }
            }
            // The lighter the target, the more a move is worth: if all may have all, nobody else gets more out of it.
            if self.equal {
                break;
            }
        }
        self.spend(looks)?;
        best
    }

    /// The most valuable swap with the lightest member that has one.
    fn best_swap(&mut self, heaviest: usize) -> Option<Change> {
        let mut looks = 0;
        let best = self.lighter().find_map(|(gap, target)| {
            let mut best: Option<Change> = None;
            looks += self.held[heaviest].len() as u64;
            if looks > self.looks {
                return None;
            }
            for &gives in self.held[heaviest].iter().rev() {
                if !self.may_have(target, gives) {
                    continue;
                }
                // Best is a difference of half the gap; the candidates lie on both sides of it.
                let wanted = self.lag(gives).saturating_sub(gap / 2);
                let back = &self.held[target];
                let middle = back.partition_point(|&partition| self.lag(partition) <= wanted);
                let eligible = |&partition: &u32| self.may_have(heaviest, partition);
                let lighter = back[..middle].iter().rev().copied().find(eligible);
                let heavier = back[middle..].iter().copied().find(eligible);
                for takes in heavier.into_iter().chain(lighter) {
                    let difference = self.lag(gives).saturating_sub(self.lag(takes));
                    let gain = difference.min(gap.saturating_sub(difference));
                    if gain > 0 && best.as_ref().is_none_or(|best| gain > best.gain) {
                        best = Some(Change { gain, gives, target, takes: Some(takes) });
                    }
                }
            }
            best
        });
        self.spend(looks)?;
        best
    }

    /// `None` once all is spent.
    pub(super) fn spend(&mut self, looks: u64) -> Option<()> {
        self.looks = self.looks.saturating_sub(looks.max(LOOKS_PER_CHANGE));
        (self.looks > 0).then_some(())
    }

    /// Gives moved partitions back to who owned them, the smallest lag first, while nobody gets heavier than the heaviest
    /// member by that. Whether it gave any.
    fn send_home(&mut self, moved: &mut Vec<u32>) -> bool {
        moved.sort_unstable_by_key(|&partition| (self.lags[partition as usize], partition));
        moved.dedup();
        moved.retain(|&partition| {
            let home = self.before[partition as usize];
            home != NONE && home != self.owner[partition as usize]
        });
        let mut any = false;
        while self.spend(moved.len() as u64).is_some() {
            let away = moved.len();
            moved.retain(|&partition| {
                let (host, home) =
                    (self.place(self.owner[partition as usize]), self.place(self.before[partition as usize]));
                let fits = self.total[home] + self.lag(partition) <= self.most() && self.has_room(host, home);
                if fits {
                    self.hand_over(partition, host, home);
                }
                !fits
            });
            if moved.len() == away {
                break;
            }
            any = true;
        }
        any
    }

    pub(super) fn hand_over(&mut self, partition: u32, from: usize, to: usize) {
        self.take(partition, from);
        self.put(partition, to);
    }

    /// Leaves a partition with nobody, until it is put somewhere.
    pub(super) fn take(&mut self, partition: u32, from: usize) {
        let at = self.rank(partition, from);
        // Closing the gap is cheap, but not nothing.
        self.looks = self.looks.saturating_sub((self.held[from].len() - at) as u64 / 256);
        self.held[from].remove(at);
        self.recount(from, self.held[from].len() + 1, self.total[from] - self.lag(partition));
    }

    pub(super) fn put(&mut self, partition: u32, to: usize) {
        let at = self.rank(partition, to);
        self.looks = self.looks.saturating_sub((self.held[to].len() - at) as u64 / 256);
        self.held[to].insert(at, partition);
        self.owner[partition as usize] = self.members[to];
        self.recount(to, self.held[to].len() - 1, self.total[to] + self.lag(partition));
    }

    /// Where a partition stands in a row.
    fn rank(&self, partition: u32, place: usize) -> usize {
        let key = |partition: u32| (self.lags[partition as usize], Reverse(partition));
        self.held[place].partition_point(|&other| key(other) < key(partition))
    }

    /// Enters a member's new number and total.
    fn recount(&mut self, place: usize, number_before: usize, total: u128) {
        *self.counts.entry(self.held[place].len()).or_insert(0) += 1;
        if let Some(members) = self.counts.get_mut(&number_before) {
            *members -= 1;
            if *members == 0 {
                self.counts.remove(&number_before);
            }
        }
        self.order.remove(&(self.total[place], place));
        self.order.insert((total, place));
        self.total[place] = total;
    }
}
