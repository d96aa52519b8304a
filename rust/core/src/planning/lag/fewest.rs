//! Provably the fewest moves for a heaviest lag, where they are easy to find.
//!
//! A member that owned more than the heaviest lag must give partitions away: at least as many as its largest partitions that
//! make up the difference. No plan with that heaviest lag moves fewer than the sum of these numbers. Finding members that can
//! take the partitions is a packing problem. Packing is tried twice: first with the members that give, then with all.

use std::cmp::Reverse;

use super::level::CurrentPlan;
use crate::planning::group::NONE;

/// A step of an attempt, to be rolled back if the attempt fails.
enum AttemptStep {
    Took(u32, usize),
    Put(u32, usize),
}

impl CurrentPlan<'_> {
    /// Replaces the moves by the fewest moves that are possible for the present heaviest lag, if they are fewer and the
    /// partitions can be packed. `moved` are the partitions that are not with their previous owner. Returns whether the moves
    /// were replaced.
    pub(super) fn move_fewest(&mut self, moved: &mut Vec<u32>) -> bool {
        // With a limit on the skew the numbers of partitions count too, and this search ignores them.
        if self.max_skew.is_some() || moved.is_empty() {
            return false;
        }
        let most = self.most();
        let own = self.of_givers(moved);
        let rows: usize = own.iter().map(|(_, own)| own.len()).sum();
        if self.spend(rows).is_none() {
            return false;
        }
        let mut gives: Vec<(u32, usize)> = Vec::new();
        for (giver, own) in &own {
            // Gives the largest partitions, from the end of the list; the last one to go is the smallest that is enough. Example
            // with `most` 10: lags 2, 4, 5, 8 (19 in all) are 9 too many. The 8 goes; then 1 is still too many, and the 2 goes.
            let mut own = own.as_slice();
            let mut left = own.iter().map(|&partition| self.lag(partition)).sum::<u128>();
            while left > most {
                let enough = own.partition_point(|&partition| left - self.lag(partition) > most);
                let partition = own[enough.min(own.len() - 1)];
                own = &own[..own.len() - 1];
                left -= self.lag(partition);
                gives.push((partition, *giver));
            }
        }
        if gives.len() >= moved.len() {
            return false;
        }
        // Partitions without a previous owner are placed again: those of the members that give, or those of all members.
        let givers: Vec<usize> = own.into_iter().map(|(giver, _)| giver).collect();
        let all: Vec<usize> = (0..self.members.len()).collect();
        self.remake(moved, &gives, &givers, most) || self.remake(moved, &gives, &all, most)
    }

    /// Gives all moved partitions back to their previous owners. Then packs the partitions in `gives`, and the partitions at
    /// these places that have no previous owner. Returns whether all could be packed; if not, every step is rolled back.
    fn remake(&mut self, moved: &mut Vec<u32>, gives: &[(u32, usize)], places: &[usize], most: u128) -> bool {
        let rows: usize = places.iter().map(|&place| self.held[place].len()).sum();
        if self.spend(rows + 256 * moved.len()).is_none() {
            return false;
        }
        let mut open = gives.to_vec();
        for &place in places {
            let guests = self.held[place].iter().filter(|&partition| self.before[partition as usize] == NONE);
            open.extend(guests.map(|partition| (partition, place)));
        }
        let mut steps = Vec::new();
        for &partition in moved.iter() {
            let (host, home) =
                (self.place(self.owner[partition as usize]), self.place(self.before[partition as usize]));
            self.hand_over(partition, host, home);
            steps.extend([AttemptStep::Took(partition, host), AttemptStep::Put(partition, home)]);
        }
        if self.pack(open, most, &mut steps) {
            moved.extend(
                steps.into_iter().map(|(AttemptStep::Took(partition, _) | AttemptStep::Put(partition, _))| partition),
            );
            moved.sort_unstable();
            moved.dedup();
            moved.retain(|&partition| {
                let home = self.before[partition as usize];
                home != NONE && home != self.owner[partition as usize]
            });
            return true;
        }
        for step in steps.into_iter().rev() {
            match step {
                AttemptStep::Took(partition, place) => self.put(partition, place),
                AttemptStep::Put(partition, place) => self.take(partition, place),
            }
        }
        false
    }

    /// The places that gave one of these partitions away, each with all partitions that it owned, in increasing lag. No other
    /// member owned more than the heaviest lag.
    fn of_givers(&self, moved: &[u32]) -> Vec<(usize, Vec<u32>)> {
        let mut given: Vec<(usize, u32)> =
            moved.iter().map(|&partition| (self.place(self.before[partition as usize]), partition)).collect();
        given.sort_unstable();
        let of_one = |given: &[(usize, u32)]| {
            let giver = given[0].0;
            let at_home = |&partition: &u32| self.before[partition as usize] == self.members[giver];
            let stayed = self.held[giver].iter().filter(at_home);
            let mut own: Vec<u32> = stayed.chain(given.iter().map(|&(_, partition)| partition)).collect();
            // A stable sort: the list is sorted but for its end.
            own.sort_by_key(|&partition| self.key(partition));
            (giver, own)
        };
        given.chunk_by(|one, other| one.0 == other.0).map(of_one).collect()
    }

    /// Takes these partitions from their places and gives them, in decreasing lag, each to the heaviest member that stays at
    /// or below `most`. Returns whether there was such a member for each.
    fn pack(&mut self, mut open: Vec<(u32, usize)>, most: u128, steps: &mut Vec<AttemptStep>) -> bool {
        for &(partition, place) in &open {
            self.take(partition, place);
            steps.push(AttemptStep::Took(partition, place));
        }
        open.sort_unstable_by_key(|&(partition, _)| (Reverse(self.lags[partition as usize]), partition));
        for (partition, _) in open {
            let Some(room) = most.checked_sub(self.lag(partition)) else { return false };
            let Some(to) = self.heaviest_within(room, self.set(partition)) else { return false };
            self.put(partition, to);
            steps.push(AttemptStep::Put(partition, to));
        }
        true
    }

    /// The heaviest member of a set of subscribers whose lag is at most `room`; `None` also once the budget is spent.
    fn heaviest_within(&self, room: u128, set: u32) -> Option<usize> {
        if self.is_small(set) {
            let subscribers = self.subscribers(set);
            self.spend(subscribers.len())?;
            let takers =
                subscribers.iter().map(|&member| self.place(member)).filter(|&place| self.total[place] <= room);
            return takers.max_by_key(|&place| (self.total[place], place));
        }
        for &(_, place) in self.order.range(..=(room, usize::MAX)).rev() {
            self.spend(1)?;
            if self.is_in(place, set) {
                return Some(place);
            }
        }
        None
    }
}
