//! Takes lag off the heaviest member, change by change, where members keep their partitions.
//!
//! Three steps are repeated while one of them changes the plan:
//!
//! 1. Changes: a move of one partition away from the heaviest member or, where no move gains anything, a swap. The changes are
//!    committed as soon as they have lowered the heaviest lag by more than the threshold. Changes that are not committed when
//!    none is left are rolled back.
//! 2. Partitions that moved go back to their previous owner where that makes no member heavier than the heaviest.
//! 3. A plan with provably the fewest moves ([`super::fewest`]) replaces the present one, where it is easy to find.
//!
//! A commit lowers the heaviest lag. The other steps do not raise it and leave fewer moves, so the loop ends.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::Placing;
use super::held::HeldPartitions;
use super::ranks::Ranks;
use crate::planning::budget::Budget;
use crate::planning::group::{Csr, NONE, Topics};

/// The steps of a change besides the search for it.
const STEPS_PER_CHANGE: u64 = 64;
/// The number of list elements that move up in the time of a step.
const MOVED_PER_STEP: usize = 256;

/// The order of the partitions in a member's list: increasing lag and, among equal lags, decreasing number.
fn key(lags: &[u64], partition: u32) -> (u64, Reverse<u32>) {
    (lags[partition as usize], Reverse(partition))
}

/// The subscribers of each topic and the partitions that each member has now. A member is given by its place in `members`.
pub(super) struct CurrentPlan<'a> {
    pub(super) members: &'a [u32],
    /// By member of the group, its place. Empty where all the members subscribe to all the topics: then the topics may be levelled
    /// one by one, each with few of the group's members.
    place_of: Vec<u32>,
    topics: &'a Topics,
    pub(super) lags: &'a [u64],
    pub(super) before: &'a [u32],
    pub(super) owner: &'a mut [u32],
    set_of: &'a [u32],
    members_of: &'a Csr,
    /// By member of the group, its sets of subscribers. Empty as `place_of`.
    sets_of: Csr,
    /// Whether all the members subscribe to all the topics.
    pub(super) equal: bool,
    pub(super) max_skew: Option<u32>,
    /// By place.
    pub(super) held: Vec<HeldPartitions>,
    pub(super) total: Vec<u128>,
    /// Lag and place, the lightest first.
    pub(super) order: BTreeSet<(u128, usize)>,
    /// By number of partitions, how many members have it.
    counts: BTreeMap<usize, usize>,
    /// The order of all partitions, from the first sort that needs it.
    pub(super) ranks: OnceCell<Ranks>,
    budget: &'a Budget<'a>,
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
        // No plan has a heaviest lag below the bound. At `within` or below, no change can take more than the threshold off.
        let bound = u128::from(largest).max(total.iter().sum::<u128>().div_ceil(members.len() as u128));
        let within = bound.saturating_add(u128::from(threshold));
        if total.iter().all(|&total| total <= within) {
            return;
        }
        let mut held: Vec<HeldPartitions> = Vec::new();
        held.resize_with(members.len(), HeldPartitions::default);
        for topic in topics.clone() {
            for partition in numbered.range(topic) {
                if let Ok(place) = members.binary_search(&self.owner[partition as usize]) {
                    held[place].push(self.set_of[topic as usize], partition);
                }
            }
        }
        for row in &mut held {
            row.sort_by_key(|partition| key(self.lags, partition));
        }
        let mut counts = BTreeMap::new();
        held.iter().for_each(|row| *counts.entry(row.len()).or_insert(0) += 1);
        let equal = topics.clone().all(|topic| match self.set_of[topic as usize] {
            NONE => true,
            set => self.members_of.row(set) == members,
        });
        let (mut place_of, mut sets_of) = (Vec::new(), Csr::new());
        if !equal {
            place_of = vec![NONE; self.group.members()];
            (0u32..).zip(members).for_each(|(place, &member)| place_of[member as usize] = place);
            sets_of = self.members_of.transpose(self.group.members());
        }
        let mut current = CurrentPlan {
            members,
            place_of,
            topics: numbered,
            lags: self.lags,
            before: self.before,
            owner: &mut *self.owner,
            set_of: self.set_of,
            members_of: self.members_of,
            sets_of,
            equal,
            max_skew: self.options.max_skew,
            held,
            counts,
            order: total.iter().copied().zip(0..).collect(),
            total,
            ranks: OnceCell::new(),
            budget: self.budget,
        };
        let mut moved = Vec::new();
        loop {
            current.search(threshold, within, &mut moved);
            if self.budget.spent().is_some() {
                // A single pass, whose length is bounded by the number of partitions.
                current.sort_moved(&mut moved);
                current.send_home_once(&mut moved);
                return;
            }
            if !current.send_home(&mut moved) && !current.move_fewest(&mut moved) {
                return;
            }
        }
    }
}

impl CurrentPlan<'_> {
    pub(super) fn lag(&self, partition: u32) -> u128 {
        u128::from(self.lags[partition as usize])
    }

    /// The place of a member that owned or owns a partition, or subscribes to a topic.
    pub(super) fn place(&self, member: u32) -> usize {
        match self.place_of.get(member as usize) {
            Some(&place) => place as usize,
            None => self.members.binary_search(&member).expect("an owner subscribes to the topic of its partition"),
        }
    }

    /// The heaviest lag.
    pub(super) fn most(&self) -> u128 {
        self.order.last().map_or(0, |&(most, _)| most)
    }

    pub(super) fn key(&self, partition: u32) -> (u64, Reverse<u32>) {
        key(self.lags, partition)
    }

    /// The set of the subscribers of a partition's topic.
    pub(super) fn set(&self, partition: u32) -> u32 {
        self.set_of[self.topics.locate(partition).0 as usize]
    }

    /// Whether a member is in a set of subscribers. O(log of the members of the set or the sets of the member, whichever are
    /// fewer).
    pub(super) fn is_in(&self, place: usize, set: u32) -> bool {
        if self.equal {
            return true;
        }
        let member = self.members[place];
        let (members, sets) = (self.members_of.row(set), self.sets_of.row(member));
        if members.len() < sets.len() {
            members.binary_search(&member).is_ok()
        } else {
            sets.binary_search(&set).is_ok()
        }
    }

    /// The members of a set of subscribers.
    pub(super) fn subscribers(&self, set: u32) -> &[u32] {
        self.members_of.row(set)
    }

    /// Spends steps; `None` once the budget is spent.
    pub(super) fn spend(&self, steps: usize) -> Option<()> {
        self.budget.spend(steps as u64).ok()
    }

    /// Makes changes until none is left, or until the heaviest lag is at most `within`. Changes that are not committed in the
    /// end are rolled back. The partitions of the committed changes are added to `moved`.
    fn search(&mut self, threshold: u64, within: u128, moved: &mut Vec<u32>) {
        let mut committed = self.most();
        let mut open: Vec<(u32, usize, usize)> = Vec::new();
        while committed > within {
            let Some(&(_, heaviest)) = self.order.last() else { break };
            if self.budget.spend(STEPS_PER_CHANGE).is_err() {
                break;
            }
            let Some(change) = self.best_change(heaviest) else { break };
            let gives = (change.gives, heaviest, change.target);
            let takes = change.takes.map(|partition| (partition, change.target, heaviest));
            for (partition, from, to) in std::iter::once(gives).chain(takes) {
                self.hand_over(partition, from, to);
                open.push((partition, from, to));
            }
            if self.most().saturating_add(u128::from(threshold)) < committed {
                committed = self.most();
                moved.extend(open.drain(..).map(|(partition, ..)| partition));
            }
        }
        for (partition, from, to) in open.into_iter().rev() {
            self.hand_over(partition, to, from);
        }
    }

    /// Whether the numbers of partitions stay close enough if one member has one more and another one fewer.
    pub(super) fn has_room(&self, from: usize, to: usize) -> bool {
        let (from, to) = (self.held[from].len(), self.held[to].len());
        let Some(skew) = self.max_skew.filter(|_| to >= from) else { return true };
        let least = self.counts.first_key_value().map_or(0, |(&count, _)| count);
        let most = self.counts.last_key_value().map_or(0, |(&count, _)| count);
        let skew = skew.max(1) as usize;
        to < least + skew && most < from + skew && to + 2 <= from + skew
    }

    /// Gives moved partitions back to their previous owners, the smallest lag first, as long as no member becomes heavier than
    /// the heaviest. Returns whether any went back.
    fn send_home(&mut self, moved: &mut Vec<u32>) -> bool {
        self.sort_moved(moved);
        let mut any = false;
        while self.spend(moved.len()).is_some() && self.send_home_once(moved) {
            any = true;
        }
        any
    }

    /// Keeps the partitions that are not with their previous owner, each once, in increasing lag.
    fn sort_moved(&self, moved: &mut Vec<u32>) {
        moved.sort_unstable_by_key(|&partition| (self.lags[partition as usize], partition));
        moved.dedup();
        moved.retain(|&partition| {
            let home = self.before[partition as usize];
            home != NONE && home != self.owner[partition as usize]
        });
    }

    /// One pass of [`CurrentPlan::send_home`]. Returns whether any partition went back.
    fn send_home_once(&mut self, moved: &mut Vec<u32>) -> bool {
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
        moved.len() < away
    }

    pub(super) fn hand_over(&mut self, partition: u32, from: usize, to: usize) {
        self.take(partition, from);
        self.put(partition, to);
    }

    /// Takes a partition from a member. Spends steps but never fails: a change that was begun must be completed.
    pub(super) fn take(&mut self, partition: u32, from: usize) {
        let (lags, set) = (self.lags, self.set(partition));
        let behind = self.held[from].remove(set, partition, |partition| key(lags, partition));
        let _ = self.spend(behind / MOVED_PER_STEP);
        self.recount(from, self.held[from].len() + 1, self.total[from] - self.lag(partition));
    }

    pub(super) fn put(&mut self, partition: u32, to: usize) {
        let (lags, set) = (self.lags, self.set(partition));
        let behind = self.held[to].insert(set, partition, |partition| key(lags, partition));
        let _ = self.spend(behind / MOVED_PER_STEP);
        self.owner[partition as usize] = self.members[to];
        self.recount(to, self.held[to].len() - 1, self.total[to] + self.lag(partition));
    }

    /// Updates `counts`, `order` and `total` for a member whose partitions have changed.
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
