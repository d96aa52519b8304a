//! A lower bound of the worst relative load of any plan, with the proof that a verification repeats.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Setting;
use crate::planning::budget::Budget;
use crate::planning::group::{Csr, NONE};
use crate::planning::lag::most_crowded;
use crate::planning::weights::{LoadBound, LoadProof, RelativeLoad};

/// The largest number of layers that is tried. With more layers, the bound by the sum of all weights is nearly as large.
const LAYERS: u32 = 8;
/// For the search of the most crowded topics, which is in whole numbers, loads are multiplied by 2 to this power.
const PRECISION: u32 = 24;

/// The largest of the bounds. O(partitions log partitions), and flows where subscriptions differ.
pub(super) fn load_bound(setting: &Setting<'_>, budget: &Budget<'_>) -> LoadBound {
    let mut bounds = LoadBounds::new(setting);
    bounds.crowd(budget);
    let mut everything: Vec<u32> = bounds.topics.iter().flatten().copied().collect();
    everything.sort_unstable();
    let mut used = vec![false; setting.group.subscriptions().len()];
    bounds.sets.items().iter().for_each(|&subscription| used[subscription as usize] = true);
    let all = (0..used.len() as u32).filter(|&subscription| used[subscription as usize]);
    bounds.piles(&everything, &bounds.capacities(all));
    let sets = bounds.sets.len();
    if sets > 1 {
        for set in 0..sets as u32 {
            if budget.spend(setting.line_of(set).len() as u64).is_err() {
                break;
            }
            let capacities = bounds.capacities(bounds.sets.row(set).iter().copied());
            let topics = std::mem::take(&mut bounds.topics[set as usize]);
            bounds.piles(&topics, &capacities);
        }
    }
    bounds.largest
}

/// The bounds that were found, of which the largest is kept, and of equal ones the first.
struct LoadBounds<'a> {
    setting: &'a Setting<'a>,
    /// By set of subscribers, its subscriptions.
    sets: Csr,
    /// By set of subscribers, its topics, ascending.
    topics: Vec<Vec<u32>>,
    largest: LoadBound,
}

impl<'a> LoadBounds<'a> {
    fn new(setting: &'a Setting<'a>) -> Self {
        let sets = setting.subscribers.sets();
        let mut topics: Vec<Vec<u32>> = vec![Vec::new(); sets.len()];
        for (topic, &set) in (0u32..).zip(&setting.subscribers.set_of).filter(|(_, set)| **set != NONE) {
            topics[set as usize].push(topic);
        }
        Self { setting, sets, topics, largest: LoadBound { least: RelativeLoad::ZERO, proof: LoadProof::Nothing } }
    }

    fn offer(&mut self, least: RelativeLoad, proof: impl FnOnce() -> LoadProof) {
        if least > self.largest.least {
            self.largest = LoadBound { least, proof: proof() };
        }
    }

    /// The weights of the partitions of topics.
    fn weights(&self, topics: &[u32]) -> impl Iterator<Item = u64> {
        let Setting { group, weights, .. } = self.setting;
        topics.iter().flat_map(|&topic| group.topics().range(topic)).map(|partition| weights.of(partition))
    }

    /// The capacities of the members with these subscriptions.
    fn capacities(&self, subscriptions: impl Iterator<Item = u32>) -> Vec<u64> {
        let members = subscriptions.flat_map(|subscription| self.setting.subscribers.members.row(subscription));
        members.map(|&member| self.setting.weights.capacities()[member as usize]).collect()
    }

    /// The [`LoadProof::Crowd`] of the topics with the most weight for the capacity of their subscribers.
    fn crowd(&mut self, budget: &Budget<'_>) {
        let Setting { group, weights, .. } = self.setting;
        let mut capacity_of = vec![0u128; group.subscriptions().len()];
        for (&subscription, &capacity) in group.subscription_of().iter().zip(weights.capacities()) {
            capacity_of[subscription as usize] += u128::from(capacity);
        }
        let load_of = |set: u32| self.weights(&self.topics[set as usize]).sum::<u64>();
        let sets = 0..self.sets.len() as u32;
        let supply: Vec<u128> = sets.map(|set| u128::from(load_of(set)) << PRECISION).collect();
        let (_, crowd) = most_crowded(&self.sets, &supply, &capacity_of, budget);
        if crowd.is_empty() {
            return;
        }
        let mut counted = vec![false; capacity_of.len()];
        let subscriptions = crowd.iter().flat_map(|&set| self.sets.row(set));
        subscriptions.for_each(|&subscription| counted[subscription as usize] = true);
        let capacity: u128 =
            counted.iter().zip(&capacity_of).filter(|(counted, _)| **counted).map(|(_, sum)| sum).sum();
        let load = crowd.iter().map(|&set| load_of(set)).sum();
        let mut topics: Vec<u32> = crowd.iter().flat_map(|&set| &self.topics[set as usize]).copied().collect();
        topics.sort_unstable();
        let least = RelativeLoad { load, capacity: u64::try_from(capacity).unwrap_or(u64::MAX) };
        self.offer(least, || LoadProof::Crowd { topics });
    }

    /// The bounds by the heaviest partitions of `topics`, whose subscribers have these capacities.
    fn piles(&mut self, topics: &[u32], capacities: &[u64]) {
        let most = capacities.iter().copied().max().unwrap_or(1);
        let mut heaviest: Vec<u64> = self.weights(topics).collect();
        heaviest.sort_unstable_by(|a, b| b.cmp(a));
        let members = capacities.len() as u32;
        self.layers(topics, &heaviest, members, most);
        self.pairs(topics, &heaviest, members, most);
        if capacities.iter().any(|&capacity| capacity != most) {
            self.slots(topics, &heaviest, capacities);
        }
    }

    /// Each [`LoadProof::Layers`].
    fn layers(&mut self, topics: &[u32], heaviest: &[u64], members: u32, most: u64) {
        for layers in 0..=LAYERS {
            let place = u64::from(layers) * u64::from(members);
            let Some(last) = usize::try_from(place).ok().filter(|&last| last < heaviest.len()) else { break };
            let load = heaviest[last - layers as usize..=last].iter().sum();
            let least = RelativeLoad { load, capacity: most };
            self.offer(least, || LoadProof::Layers { topics: topics.to_vec(), layers });
        }
    }

    /// Each [`LoadProof::Pairs`].
    fn pairs(&mut self, topics: &[u32], heaviest: &[u64], members: u32, most: u64) {
        for pairs in 1..=members {
            let (alone, count) = ((members - pairs) as usize, (members + pairs) as usize);
            if count > heaviest.len() {
                break;
            }
            let two = heaviest[alone] + heaviest[count - 1];
            let three = if count < 3 { u64::MAX } else { heaviest[count - 3..count].iter().sum() };
            let least = RelativeLoad { load: two.min(three), capacity: most };
            self.offer(least, || LoadProof::Pairs { topics: topics.to_vec(), pairs });
        }
    }

    /// Each [`LoadProof::Slots`]: where all of the partitions weigh the same, the next one goes to the member whose relative load
    /// is then the least.
    fn slots(&mut self, topics: &[u32], heaviest: &[u64], capacities: &[u64]) {
        let slot = |capacity: u64, taken: u64| (Reverse(RelativeLoad { load: taken, capacity }), capacity);
        let mut slots: BinaryHeap<_> = capacities.iter().map(|&capacity| slot(capacity, 1)).collect();
        for (&weight, count) in heaviest.iter().zip(1..=LAYERS.saturating_mul(capacities.len() as u32)) {
            let Some(mut first) = slots.peek_mut() else { break };
            let (Reverse(RelativeLoad { load: taken, capacity }), _) = *first;
            *first = slot(capacity, taken + 1);
            if let Some(load) = weight.checked_mul(taken) {
                self.offer(RelativeLoad { load, capacity }, || LoadProof::Slots { topics: topics.to_vec(), count });
            }
        }
    }
}
