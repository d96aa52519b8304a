//! A lower bound of the worst relative load of any plan, with the proof that a verification repeats.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Setting;
use crate::planning::budget::Budget;
use crate::planning::group::NONE;
use crate::planning::lag::most_crowded;
use crate::planning::weights::{LoadBound, LoadProof, RelativeLoad};

/// The largest number of layers that is tried. With more layers, the bound by the sum of all weights is nearly as large.
const LAYERS: u32 = 8;
/// For the search of the most crowded topics, which is in whole numbers, loads are multiplied by 2 to this power.
const PRECISION: u32 = 24;

/// The largest of the bounds. O(partitions log partitions), and flows where subscriptions differ.
pub(super) fn load_bound(setting: &Setting<'_>, budget: &Budget<'_>) -> LoadBound {
    let mut best = LoadBound { least: RelativeLoad::ZERO, proof: LoadProof::Nothing };
    let mut offer = |least: RelativeLoad, proof: &dyn Fn() -> LoadProof| {
        if least > best.least {
            best = LoadBound { least, proof: proof() };
        }
    };
    let (topics, weights) = (setting.group.topics(), setting.weights);
    let sets = &setting.subscribers.sets();
    let mut of_set: Vec<Vec<u32>> = vec![Vec::new(); sets.len()];
    for (topic, &set) in (0u32..).zip(&setting.subscribers.set_of).filter(|(_, set)| **set != NONE) {
        of_set[set as usize].push(topic);
    }
    let all = || {
        let mut all: Vec<u32> = of_set.iter().flatten().copied().collect();
        all.sort_unstable();
        all
    };
    // By subscription, the sum of its members' capacities.
    let mut together = vec![0u128; setting.group.subscriptions().len()];
    for (&subscription, &capacity) in setting.group.subscription_of().iter().zip(weights.capacities()) {
        together[subscription as usize] += u128::from(capacity);
    }
    let supply_of = |set: u32| -> u64 {
        let partitions = of_set[set as usize].iter().flat_map(|&topic| topics.range(topic));
        partitions.map(|partition| weights.of(partition)).sum()
    };
    let mut supply = vec![0u128; sets.len()];
    for set in 0..sets.len() as u32 {
        supply[set as usize] = u128::from(supply_of(set)) << PRECISION;
    }
    let (_, crowd) = most_crowded(sets, &supply, &together, budget);
    if !crowd.is_empty() {
        let mut counted = vec![false; together.len()];
        crowd.iter().flat_map(|&set| sets.row(set)).for_each(|&subscription| counted[subscription as usize] = true);
        let capacity: u128 = counted.iter().zip(&together).filter(|(counted, _)| **counted).map(|(_, sum)| sum).sum();
        let load = crowd.iter().map(|&set| supply_of(set)).sum();
        let least = RelativeLoad { load, capacity: u64::try_from(capacity).unwrap_or(u64::MAX) };
        offer(least, &|| {
            let mut topics: Vec<u32> = crowd.iter().flat_map(|&set| &of_set[set as usize]).copied().collect();
            topics.sort_unstable();
            LoadProof::Crowd { topics }
        });
    }
    let everything = all();
    let mut piles = |chosen: &[u32], subscriptions: &mut dyn Iterator<Item = u32>| {
        let crew = subscriptions.flat_map(|subscription| setting.subscribers.members.row(subscription));
        let capacities: Vec<u64> = crew.map(|&member| weights.capacities()[member as usize]).collect();
        let members = capacities.len() as u32;
        let most = capacities.iter().copied().max().unwrap_or(1);
        let partitions = chosen.iter().flat_map(|&topic| topics.range(topic));
        let mut heaviest: Vec<u64> = partitions.map(|partition| weights.of(partition)).collect();
        heaviest.sort_unstable_by(|a, b| b.cmp(a));
        for layers in 0..=LAYERS {
            let place = u64::from(layers) * u64::from(members);
            let Some(last) = usize::try_from(place).ok().filter(|&last| last < heaviest.len()) else { break };
            let load = heaviest[last - layers as usize..=last].iter().sum();
            offer(RelativeLoad { load, capacity: most }, &|| LoadProof::Layers { topics: chosen.to_vec(), layers });
        }
        for pairs in 1..=members {
            let (alone, count) = ((members - pairs) as usize, (members + pairs) as usize);
            if count > heaviest.len() {
                break;
            }
            let two = heaviest[alone] + heaviest[count - 1];
            let three = if count < 3 { u64::MAX } else { heaviest[count - 3..count].iter().sum() };
            let least = RelativeLoad { load: two.min(three), capacity: most };
            offer(least, &|| LoadProof::Pairs { topics: chosen.to_vec(), pairs });
        }
        if capacities.iter().all(|&capacity| capacity == most) {
            return;
        }
        // Where all partitions weigh the same: the next partition of each member, the least relative load first.
        let slot = |capacity: u64, taken: u64| (Reverse(RelativeLoad { load: taken, capacity }), capacity);
        let mut slots: BinaryHeap<_> = capacities.iter().map(|&capacity| slot(capacity, 1)).collect();
        for (&weight, count) in heaviest.iter().zip(1..=LAYERS.saturating_mul(members)) {
            let Some(mut first) = slots.peek_mut() else { break };
            let (Reverse(RelativeLoad { load: taken, capacity }), _) = *first;
            *first = slot(capacity, taken + 1);
            if let Some(load) = weight.checked_mul(taken) {
                offer(RelativeLoad { load, capacity }, &|| LoadProof::Slots { topics: chosen.to_vec(), count });
            }
        }
    };
    let mut used = vec![false; together.len()];
    sets.items().iter().for_each(|&subscription| used[subscription as usize] = true);
    piles(&everything, &mut (0..used.len() as u32).filter(|&subscription| used[subscription as usize]));
    if sets.len() > 1 {
        for set in 0..sets.len() as u32 {
            if budget.spend(setting.line_of(set).len() as u64).is_err() {
                break;
            }
            piles(&of_set[set as usize], &mut sets.row(set).iter().copied());
        }
    }
    best
}
