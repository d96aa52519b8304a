//! What the heaviest member must have in any plan.

use crate::budget::{Budget, Goal, Limit, Limited, Spent};
use crate::group::{Csr, Group};
use crate::subscribers::Subscribers;

/// The steps that the flows may take, and the additional ones for each pair of a set of subscribers and a subscription.
const STEPS: u64 = 1 << 25;
const STEPS_PER_ITEM: u64 = 128;

/// A proven lower bound on the heaviest member's total lag, over all plans that assign every partition with subscribers:
/// the largest single lag, or what the members would have if lag could be split record by record, whichever is more.
///
/// The second is the most crowded set of topics: the lag of all its partitions, divided among all the members that
/// subscribe to any of its topics. It is found by maximum flows, each of which proves a larger bound than the one before; a
/// group with equal subscriptions needs one. 0 where the topics have no lags.
#[must_use]
pub fn lag_bound(group: &Group) -> u128 {
    lag_bound_within(group, &Limit::default()).0
}

/// As [`lag_bound`], within a limit. Where the limit was too small, the bound holds all the same, but a larger one may be
/// provable; the second value says so.
#[must_use]
pub fn lag_bound_within(group: &Group, limit: &Limit<'_>) -> (u128, Option<Limited>) {
    let topics = group.topics();
    if topics.lags().len() != topics.partitions() {
        return (0, None);
    }
    let subscribers = Subscribers::new(group);
    let mut supply = vec![0u128; subscribers.sets.len()];
    let mut largest = 0;
    for (topic, &set) in (0u32..).zip(&subscribers.set_of) {
        if subscribers.sets.row(set).is_empty() {
            continue;
        }
        let range = topics.range(topic);
        let lags = &topics.lags()[range.start as usize..range.end as usize];
        largest = lags.iter().copied().fold(largest, u64::max);
        supply[set as usize] += lags.iter().map(|&lag| u128::from(lag)).sum::<u128>();
    }
    let size: Vec<u128> = subscribers.members.rows().map(|members| members.len() as u128).collect();
    let budget = limit.budget(STEPS + STEPS_PER_ITEM * subscribers.sets.items().len() as u64);
    let crowded = most_crowded(&subscribers.sets, &supply, &size, &budget);
    (crowded.max(largest.into()), budget.spent().map(|spent| spent.seeking(Goal::Lag)))
}

/// The largest share of a member, rounded up, over the sets of rows of `sets`. Once the budget is spent, only the sets that
/// were examined count.
fn most_crowded(sets: &Csr, supply: &[u128], size: &[u128], budget: &Budget<'_>) -> u128 {
    let mut crowd: Vec<u32> = (0..sets.len() as u32).filter(|&set| supply[set as usize] > 0).collect();
    let mut bound = 0;
    while !crowd.is_empty() {
        let mut has = vec![false; size.len()];
        for &pattern in crowd.iter().flat_map(|&set| sets.row(set)) {
            has[pattern as usize] = true;
        }
        let members: u128 = has.iter().zip(size).filter(|(has, _)| **has).map(|(_, size)| size).sum();
        let lag: u128 = crowd.iter().map(|&set| supply[set as usize]).sum();
        // Whom the flow cannot serve with the old bound needs more; should rounding ever say otherwise, this ends.
        let next = lag.div_ceil(members);
        if next <= bound {
            break;
        }
        bound = next;
        let room = size.iter().map(|size| size * bound).collect();
        match Flow::new(sets, supply.to_vec(), room).unserved(budget) {
            Ok(unserved) => crowd = unserved,
            Err(Spent(_)) => break,
        }
    }
    bound
}

const UNREACHED: u32 = u32::MAX;

/// A flow of lag from the sets of subscribers to the patterns of members.
struct Flow<'a> {
    sets: &'a Csr,
    /// By set, what has not gone anywhere.
    excess: Vec<u128>,
    /// By pattern, what it can still take.
    room: Vec<u128>,
    /// By item of `sets`.
    flow: Vec<u128>,
    /// By item of `sets`, its row.
    set_of: Vec<u32>,
    /// By pattern, the items of `sets` that name it.
    items_of: Csr,
    set_layer: Vec<u32>,
    pattern_layer: Vec<u32>,
    set_next: Vec<usize>,
    pattern_next: Vec<usize>,
}

impl<'a> Flow<'a> {
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
            pattern_layer: vec![UNREACHED; room.len()],
            set_next: vec![0; excess.len()],
            pattern_next: vec![0; room.len()],
            excess,
            room,
        }
    }

    /// Lets flow what can, and returns the sets from which a way leads to where more would have to go: none if all flows.
    fn unserved(mut self, budget: &Budget<'_>) -> Result<Vec<u32>, Spent> {
        while self.layer(budget)? {
            self.set_next.fill(0);
            self.pattern_next.fill(0);
            for set in 0..self.excess.len() as u32 {
                while self.excess[set as usize] > 0 && self.augment(set, budget)? {}
            }
        }
        Ok((0..self.excess.len() as u32).filter(|&set| self.set_layer[set as usize] != UNREACHED).collect())
    }

    /// Breadth-first layers from the sets with excess; whether a pattern with room was reached.
    fn layer(&mut self, budget: &Budget<'_>) -> Result<bool, Spent> {
        budget.spend((self.excess.len() + self.room.len()) as u64)?;
        self.set_layer.fill(UNREACHED);
        self.pattern_layer.fill(UNREACHED);
        let mut queue: Vec<u32> = (0..self.excess.len() as u32).filter(|&set| self.excess[set as usize] > 0).collect();
        queue.iter().for_each(|&set| self.set_layer[set as usize] = 0);
        let (mut found, mut at) = (false, 0);
        while let Some(&set) = queue.get(at) {
            at += 1;
            let layer = self.set_layer[set as usize] + 1;
            budget.spend(self.sets.row(set).len() as u64)?;
            for &pattern in self.sets.row(set) {
                if self.pattern_layer[pattern as usize] != UNREACHED {
                    continue;
                }
                self.pattern_layer[pattern as usize] = layer;
                found |= self.room[pattern as usize] > 0;
                budget.spend(self.items_of.row(pattern).len() as u64)?;
                for &item in self.items_of.row(pattern) {
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

    /// Sends as much as goes along one shortest way from `source`; false if the layers offer none.
    fn augment(&mut self, source: u32, budget: &Budget<'_>) -> Result<bool, Spent> {
        // Items by turns: forward out of a set, back into the next one.
        let mut way: Vec<u32> = Vec::new();
        let mut set = source;
        let pattern = loop {
            budget.spend(1)?;
            let row = self.sets.row(set);
            let Some(&pattern) = row.get(self.set_next[set as usize]) else {
                // A dead end: whatever led here is passed.
                let Some(back) = way.pop() else { return Ok(false) };
                let pattern = self.sets.items()[back as usize];
                self.pattern_next[pattern as usize] += 1;
                let forward = way.pop().unwrap_or(back);
                set = self.set_of[forward as usize];
                continue;
            };
            if self.pattern_layer[pattern as usize] != self.set_layer[set as usize] + 1 {
                self.set_next[set as usize] += 1;
                continue;
            }
            let forward = self.sets.start(set) + self.set_next[set as usize] as u32;
            if self.room[pattern as usize] > 0 {
                way.push(forward);
                break pattern;
            }
            let layer = self.pattern_layer[pattern as usize] + 1;
            let back = loop {
                budget.spend(1)?;
                let Some(&item) = self.items_of.row(pattern).get(self.pattern_next[pattern as usize]) else {
                    break None;
                };
                let leads_on = self.set_layer[self.set_of[item as usize] as usize] == layer;
                if self.flow[item as usize] > 0 && leads_on {
                    break Some(item);
                }
                self.pattern_next[pattern as usize] += 1;
            };
            match back {
                Some(item) => {
                    way.extend([forward, item]);
                    set = self.set_of[item as usize];
                }
                None => self.set_next[set as usize] += 1,
            }
        };
        let most = self.excess[source as usize].min(self.room[pattern as usize]);
        let amount = way.iter().skip(1).step_by(2).map(|&item| self.flow[item as usize]).fold(most, u128::min);
        for (step, &item) in way.iter().enumerate() {
            if step % 2 == 0 {
                self.flow[item as usize] += amount;
            } else {
                self.flow[item as usize] -= amount;
            }
        }
        self.excess[source as usize] -= amount;
        self.room[pattern as usize] -= amount;
        Ok(true)
    }
}
