//! The lag that the heaviest member has in any plan.

use crate::planning::budget::{Budget, Goal, Limit, Limited, Spent};
use crate::planning::group::{Csr, Group, NONE};
use crate::planning::subscribers::Subscribers;

/// The steps that the flows may take, and the additional ones for each pair of a set of subscribers and a subscription.
const STEPS: u64 = 1 << 25;
const STEPS_PER_ITEM: u64 = 128;

/// A proven lower bound on the heaviest member's total lag, over all plans that assign every partition with subscribers. It is
/// the greater of two bounds: the largest lag of a partition, and the least lag of the heaviest member if the records of a
/// partition could be divided among members.
///
/// The second bound is that of the most crowded set of topics: the lag of all its partitions, divided by the number of members
/// that subscribe to any of its topics. Maximum flows find it, each of which proves a larger bound than the one before; a group
/// with equal subscriptions needs one. The bound is 0 without lags.
///
/// If the limit was too small, the bound holds, but a larger one may be provable, and the second value is the search that ended
/// early.
#[must_use]
pub fn lag_bound_within(group: &Group, limit: &Limit<'_>) -> (u128, Option<Limited>) {
    let topics = group.topics();
    if topics.lags().len() != topics.partitions() {
        return (0, None);
    }
    let subscribers = Subscribers::new(group);
    let sets = subscribers.sets();
    let mut supply = vec![0u128; sets.len()];
    let mut largest = 0;
    for (topic, &set) in (0u32..).zip(&subscribers.set_of).filter(|(_, set)| **set != NONE) {
        let range = topics.range(topic);
        let lags = &topics.lags()[range.start as usize..range.end as usize];
        largest = lags.iter().copied().fold(largest, u64::max);
        supply[set as usize] += lags.iter().map(|&lag| u128::from(lag)).sum::<u128>();
    }
    let size: Vec<u128> = subscribers.members.rows().map(|members| members.len() as u128).collect();
    let budget = limit.budget(STEPS + STEPS_PER_ITEM * sets.items().len() as u64);
    let (crowded, _) = most_crowded(&sets, &supply, &size, &budget);
    (crowded.max(largest.into()), budget.spent().map(|spent| spent.seeking(Goal::Lag)))
}

/// The most crowded rows of `sets`: the sum of their supplies, divided by the sum of the sizes of their subscriptions, is the
/// largest. Returns this quotient, rounded up, and the rows. Once the budget is spent, only the rows that were examined count.
pub(in crate::planning) fn most_crowded(
    sets: &Csr,
    supply: &[u128],
    size: &[u128],
    budget: &Budget<'_>,
) -> (u128, Vec<u32>) {
    let mut crowd: Vec<u32> = (0..sets.len() as u32).filter(|&set| supply[set as usize] > 0).collect();
    let (mut bound, mut found) = (0, Vec::new());
    while !crowd.is_empty() {
        let mut has = vec![false; size.len()];
        for &subscription in crowd.iter().flat_map(|&set| sets.row(set)) {
            has[subscription as usize] = true;
        }
        let members: u128 = has.iter().zip(size).filter(|(has, _)| **has).map(|(_, size)| size).sum();
        let lag: u128 = crowd.iter().map(|&set| supply[set as usize]).sum();
        // The sets that the flow cannot serve within the old bound have a larger bound. If rounding ever gives no larger one,
        // the loop ends.
        let next = lag.div_ceil(members);
        if next <= bound {
            break;
        }
        bound = next;
        found.clone_from(&crowd);
        let room = size.iter().map(|size| size * bound).collect();
        match LagFlow::new(sets, supply.to_vec(), room).unserved(budget) {
            Ok(unserved) => crowd = unserved,
            Err(Spent(_)) => break,
        }
    }
    (bound, found)
}

const UNREACHED: u32 = u32::MAX;

/// A flow of lag from the sets of subscribers to the subscriptions of members.
struct LagFlow<'a> {
    sets: &'a Csr,
    /// By set, the lag that has not flowed yet.
    excess: Vec<u128>,
    /// By subscription, the lag that its members can still take.
    room: Vec<u128>,
    /// By item of `sets`, the lag that flows from the set to the subscription.
    flow: Vec<u128>,
    /// By item of `sets`, its row.
    set_of: Vec<u32>,
    /// By subscription, the items of `sets` that name it.
    items_of: Csr,
    set_layer: Vec<u32>,
    subscription_layer: Vec<u32>,
    set_next: Vec<usize>,
    subscription_next: Vec<usize>,
}

impl<'a> LagFlow<'a> {
    fn new(sets: &'a Csr, excess: Vec<u128>, room: Vec<u128>) -> Self {
        let mut set_of = Vec::with_capacity(sets.items().len());
        for (set, row) in (0u32..).zip(sets.rows()) {
            set_of.resize(set_of.len() + row.len(), set);
        }
        Self {
            sets,
            flow: vec![0; set_of.len()],
            set_of,
            items_of: Csr::group_by(sets.items(), room.len()),
            set_layer: vec![UNREACHED; excess.len()],
            subscription_layer: vec![UNREACHED; room.len()],
            set_next: vec![0; excess.len()],
            subscription_next: vec![0; room.len()],
            excess,
            room,
        }
    }

    /// Sends as much lag as possible from the sets to the subscriptions. Returns the sets with lag that is left, and the sets
    /// that share subscriptions with them: none if all lag flows.
    fn unserved(mut self, budget: &Budget<'_>) -> Result<Vec<u32>, Spent> {
        while self.layer(budget)? {
            self.set_next.fill(0);
            self.subscription_next.fill(0);
            for set in 0..self.excess.len() as u32 {
                while self.excess[set as usize] > 0 && self.augment(set, budget)? {}
            }
        }
        Ok((0..self.excess.len() as u32).filter(|&set| self.set_layer[set as usize] != UNREACHED).collect())
    }

    /// Breadth-first layers from the sets with excess; whether a subscription with room was reached.
    fn layer(&mut self, budget: &Budget<'_>) -> Result<bool, Spent> {
        budget.spend((self.excess.len() + self.room.len()) as u64)?;
        self.set_layer.fill(UNREACHED);
        self.subscription_layer.fill(UNREACHED);
        let mut queue: Vec<u32> = (0..self.excess.len() as u32).filter(|&set| self.excess[set as usize] > 0).collect();
        queue.iter().for_each(|&set| self.set_layer[set as usize] = 0);
        let (mut found, mut at) = (false, 0);
        while let Some(&set) = queue.get(at) {
            at += 1;
            let layer = self.set_layer[set as usize] + 1;
            budget.spend(self.sets.row(set).len() as u64)?;
            for &subscription in self.sets.row(set) {
                if self.subscription_layer[subscription as usize] != UNREACHED {
                    continue;
                }
                self.subscription_layer[subscription as usize] = layer;
                found |= self.room[subscription as usize] > 0;
                budget.spend(self.items_of.row(subscription).len() as u64)?;
                for &item in self.items_of.row(subscription) {
                    let back = self.set_of[item as usize];
                    if self.flow[item as usize] > 0 && self.set_layer[back as usize] == UNREACHED {
                        self.set_layer[back as usize] = layer + 1;
                        queue.push(back);
                    }
                }
            }
        }
        Ok(found)
    }

    /// Sends as much lag as one shortest path from `source` can take; false if the layers have no path.
    fn augment(&mut self, source: u32, budget: &Budget<'_>) -> Result<bool, Spent> {
        // The items of the path: by turns forward out of a set, and back into the next set.
        let mut path: Vec<u32> = Vec::new();
        let mut set = source;
        let subscription = loop {
            budget.spend(1)?;
            let row = self.sets.row(set);
            let Some(&subscription) = row.get(self.set_next[set as usize]) else {
                // A dead end: the next search skips it.
                let Some(back) = path.pop() else { return Ok(false) };
                let subscription = self.sets.items()[back as usize];
                self.subscription_next[subscription as usize] += 1;
                let forward = path.pop().unwrap_or(back);
                set = self.set_of[forward as usize];
                continue;
            };
            if self.subscription_layer[subscription as usize] != self.set_layer[set as usize] + 1 {
                self.set_next[set as usize] += 1;
                continue;
            }
            let forward = self.sets.start(set) + self.set_next[set as usize] as u32;
            if self.room[subscription as usize] > 0 {
                path.push(forward);
                break subscription;
            }
            let layer = self.subscription_layer[subscription as usize] + 1;
            let back = loop {
                budget.spend(1)?;
                let Some(&item) = self.items_of.row(subscription).get(self.subscription_next[subscription as usize])
                else {
                    break None;
                };
                let leads_on = self.set_layer[self.set_of[item as usize] as usize] == layer;
                if self.flow[item as usize] > 0 && leads_on {
                    break Some(item);
                }
                self.subscription_next[subscription as usize] += 1;
            };
            match back {
                Some(item) => {
                    path.extend([forward, item]);
                    set = self.set_of[item as usize];
                }
                None => self.set_next[set as usize] += 1,
            }
        };
        let most = self.excess[source as usize].min(self.room[subscription as usize]);
        let amount = path.iter().skip(1).step_by(2).map(|&item| self.flow[item as usize]).fold(most, u128::min);
        for (step, &item) in path.iter().enumerate() {
            if step % 2 == 0 {
                self.flow[item as usize] += amount;
            } else {
                self.flow[item as usize] -= amount;
            }
        }
        self.excess[source as usize] -= amount;
        self.room[subscription as usize] -= amount;
        Ok(true)
    }
}
