//! The weighted strategy: partitions of different weight, members of different capacity.
//!
//! The objective, in this order: the load of the most loaded member relative to its capacity, the fewest moves, the evenness of
//! the rest. A worst load within the tolerance above a proven bound counts as the least. With equal weights and equal capacities
//! this is the sticky strategy. Otherwise it is bin packing, and there are these steps:
//!
//! 1. `bound`: a lower bound of the worst load of any plan, with a proof.
//! 2. `place`: members keep their partitions; the others go to the least loaded member, the heaviest partition first.
//! 3. A member above the tolerance gives away the fewest partitions that bring it within, and these are placed again.
//! 4. `search`: if that is not enough, moves and swaps take load off the most loaded member. A plan without previous owners is
//!    tried as well.
//! 5. Moved partitions return to their previous owners where these have room.
//!
//! Without owners, with equal capacities and equal subscriptions, the second step alone is within 4/3 of the bound. Let `m`
//! members get the partitions in decreasing weight. The worst member's last partition weighs `w` and is number `l` in this
//! order.
//!
//! - If `w` is at most a third of the bound: the member was the least loaded one before, so its load is at most the mean plus
//!   `w`.
//! - If `w` is more than a third of the bound: `l` is at most `2m`, by `Layers`. The partition joins one partition, which is not
//!   heavier than number `2m - l + 1`. The two together are at most the bound, by `Pairs`, since three partitions of more than a
//!   third are above the bound.

mod bound;
mod place;
mod search;

use std::collections::BTreeMap;

use crate::planning::budget::{Budget, Goal, Limit, Limited};
use crate::planning::cooperative;
use crate::planning::group::{Csr, Group, NONE};
use crate::planning::objective::Objective;
use crate::planning::ownership::Ownership;
use crate::planning::plan::{LeavesOut, Outcome, Plan};
use crate::planning::sticky;
use crate::planning::subscribers::Subscribers;
use crate::planning::weights::{LoadBound, RelativeLoad, TOLERANCE_UNIT, Weighed, Weights};
use place::WeightedDraft;

/// The steps that bound, placing and search may take together, and the additional ones for each partition.
const STEPS: u64 = 1 << 22;
const STEPS_PER_PARTITION: u64 = 64;
/// A plan that ignores the previous owners moves nearly all partitions. It is taken only if its worst load is lower than that of
/// the other plan by more than this share.
const GAIN: f64 = 0.01;

/// A group with its weights, and its members in classes: the members of one class have the same subscription and the same
/// capacity.
struct Setting<'a> {
    group: &'a Group,
    weights: &'a Weights,
    subscribers: Subscribers,
    topic_of: Vec<u32>,
    /// By member.
    class_of: Vec<u32>,
    /// By class.
    class_capacity: Vec<u64>,
    /// By set of subscribers, its classes.
    classes: Csr,
}

impl<'a> Setting<'a> {
    fn new(group: &'a Group, weights: &'a Weights) -> Self {
        let subscribers = Subscribers::new(group);
        let mut known: BTreeMap<(u32, u64), u32> = BTreeMap::new();
        for (&subscription, &capacity) in group.subscription_of().iter().zip(weights.capacities()) {
            known.entry((subscription, capacity)).or_insert(0);
        }
        let mut of_subscription: Vec<Vec<u32>> = vec![Vec::new(); group.subscriptions().len()];
        let mut class_capacity = Vec::with_capacity(known.len());
        for ((subscription, capacity), class) in &mut known {
            *class = class_capacity.len() as u32;
            of_subscription[*subscription as usize].push(*class);
            class_capacity.push(*capacity);
        }
        let class = |(subscription, capacity): (&u32, &u64)| known[&(*subscription, *capacity)];
        let class_of = group.subscription_of().iter().zip(weights.capacities()).map(class).collect();
        let mut classes = Csr::new();
        let mut row = Vec::new();
        for set in 0..subscribers.len() as u32 {
            row.clear();
            row.extend(
                subscribers.subscriptions(set).iter().flat_map(|&subscription| &of_subscription[subscription as usize]),
            );
            classes.push_row(&row);
        }
        Self {
            group,
            weights,
            topic_of: group.topics().of_partitions(),
            subscribers,
            class_of,
            class_capacity,
            classes,
        }
    }

    /// The classes of a set of subscribers.
    fn line_of(&self, set: u32) -> &[u32] {
        self.classes.row(set)
    }

    /// The set of the subscribers of a partition's topic.
    fn set(&self, partition: u32) -> u32 {
        self.subscribers.set_of[self.topic_of[partition as usize] as usize]
    }

    fn may(&self, member: u32, partition: u32) -> bool {
        self.group.subscribes(member, self.topic_of[partition as usize])
    }

    fn same_topics(&self, a: u32, b: u32) -> bool {
        self.group.subscription_of()[a as usize] == self.group.subscription_of()[b as usize]
    }

    /// Whether all partitions with subscribers weigh the same, and all members with topics have the same capacity.
    fn is_flat(&self) -> bool {
        let topics = self.group.topics();
        let served = |&topic: &u32| self.subscribers.set_of[topic as usize] != NONE;
        let mut partitions = (0..topics.len() as u32).filter(served).flat_map(|topic| topics.range(topic));
        let first = partitions.next().map(|partition| self.weights.of(partition));
        let mut members =
            (0..self.group.members() as u32).filter(|&member| !self.group.subscription(member).is_empty());
        let capacity = |member: u32| self.weights.capacities()[member as usize];
        let strongest = members.next().map(capacity);
        partitions.all(|partition| Some(self.weights.of(partition)) == first)
            && members.all(|member| Some(capacity(member)) == strongest)
    }
}

/// Plans a group with settled claims, within a limit. `cooperative` withholds partitions that another member still holds
/// (KIP-429).
///
/// O(partitions log partitions + partitions × classes of members), and the steps of the search where the tolerance requires one.
///
/// # Panics
/// If there is not one weight for each partition and one capacity for each member.
#[must_use]
pub fn plan(group: &Group, ownership: Ownership, weights: Weights, cooperative: bool, limit: &Limit<'_>) -> Outcome {
    let (target, bound, limited) = assign_within(group, &ownership, &weights, limit);
    let weighed = Some(Box::new(Weighed { weights, bound }));
    let (plan, withholding) =
        if cooperative { (cooperative::withhold(&target, &ownership), Some(target)) } else { (target, None) };
    Outcome { plan, withholding, ownership, join: None, limited, leaves_out: LeavesOut::Nothing, weighed }
}

/// The plan, the bound of the worst relative load, and the search that ended early.
///
/// # Panics
/// As [`plan`].
#[must_use]
pub fn assign_within(
    group: &Group,
    ownership: &Ownership,
    weights: &Weights,
    limit: &Limit<'_>,
) -> (Plan, LoadBound, Option<Limited>) {
    assert_eq!(weights.of_partitions().len(), group.topics().partitions(), "one weight for each partition");
    assert_eq!(weights.capacities().len(), group.members(), "one capacity for each member");
    let setting = Setting::new(group, weights);
    let budget = limit.budget(STEPS + STEPS_PER_PARTITION * group.topics().partitions() as u64);
    let bound = bound::load_bound(&setting, &budget);
    if setting.is_flat() {
        let (plan, limited) = sticky::assign_within(group, ownership, Objective::default(), limit);
        return (plan, bound, limited);
    }
    let owner = solve(&setting, &ownership.owner, &bound, &budget);
    (Plan { owner }, bound, budget.spent().map(|spent| spent.seeking(Goal::Load)))
}

/// By member, the most that it may have if no relative load may exceed `most`, plus the tolerance if `tolerant`.
fn room_within(weights: &Weights, most: RelativeLoad, tolerant: bool) -> Vec<u64> {
    let tolerance = u128::from(TOLERANCE_UNIT + if tolerant { weights.tolerance() } else { 0 });
    let (load, per) = (u128::from(most.load) * tolerance, u128::from(most.capacity) * u128::from(TOLERANCE_UNIT));
    let room = |&capacity: &u64| u64::try_from(load * u128::from(capacity) / per).unwrap_or(u64::MAX);
    weights.capacities().iter().map(room).collect()
}

/// The partitions that the members above their room give away before the search.
#[derive(Clone, Copy, PartialEq)]
enum ReleaseOrder {
    /// The fewest partitions, and of these the lightest that are enough.
    Lightest,
    /// The fewest partitions, the heaviest.
    Heaviest,
    Nothing,
}

/// The owners of a plan. Once the budget is spent, the plan is the best so far.
fn solve(setting: &Setting<'_>, before: &[u32], bound: &LoadBound, budget: &Budget<'_>) -> Vec<u32> {
    let room = room_within(setting.weights, bound.least, true);
    let fits = |draft: &WeightedDraft| draft.load.iter().zip(&room).all(|(load, room)| load <= room);
    let kept = WeightedDraft::new(setting, before.to_vec());
    let fresh = kept.count.iter().all(|&count| count == 0);
    let mut draft = kept.clone();
    place::place(setting, &mut draft, bound.least, budget);
    if fresh {
        // Without owners no partition can move, so the search lowers the worst load as far as it can, also below the tolerance.
        let _ = search::search(setting, &mut draft, &room_within(setting.weights, bound.least, false), budget);
        return draft.owner;
    }
    if fits(&draft) {
        return draft.owner;
    }
    let home = |draft: &mut WeightedDraft| {
        let allowed = room_within(setting.weights, setting.weights.worst(&draft.load), false);
        let room: Vec<u64> = room.iter().zip(allowed).map(|(room, allowed)| allowed.max(*room)).collect();
        place::send_home(setting, draft, before, &room);
    };
    // The best of up to three plans: two release partitions before the search; in the third, only the search moves partitions.
    let mut fewest = 0;
    let mut found: Option<WeightedDraft> = None;
    for release in [ReleaseOrder::Lightest, ReleaseOrder::Heaviest, ReleaseOrder::Nothing] {
        let mut tried = if release == ReleaseOrder::Nothing { draft.clone() } else { kept.clone() };
        if release != ReleaseOrder::Nothing {
            fewest = place::release(setting, &mut tried, &room, release == ReleaseOrder::Lightest);
            place::place(setting, &mut tried, bound.least, budget);
        }
        let _ = search::search(setting, &mut tried, &room, budget);
        home(&mut tried);
        if found.as_ref().is_none_or(|found| place::compare(setting, before, &room, &tried, found).is_lt()) {
            found = Some(tried);
        }
        if found.as_ref().is_some_and(|found| fits(found) && place::moved(found, before) == fewest) {
            break;
        }
    }
    let mut found = found.unwrap_or_else(|| draft.clone());
    if !fits(&found) {
        let mut anew = WeightedDraft::new(setting, vec![NONE; before.len()]);
        place::place(setting, &mut anew, bound.least, budget);
        let _ = search::search(setting, &mut anew, &room, budget);
        let worst = |draft: &WeightedDraft| setting.weights.given_relative_load(setting.weights.worst(&draft.load));
        if worst(&anew) < worst(&found) * (1.0 - GAIN) {
            place::rename(setting, &mut anew, before);
            home(&mut anew);
            found = anew;
        }
        // The plan before any release is kept unless the plan that was found is better.
        if place::compare(setting, before, &room, &draft, &found).is_le() {
            found = draft;
        }
    }
    found.owner
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_in_proportion_to_capacity() {
        let weights = Weights::new(&[8.0, 1.0], &[1.0, 2.0, 0.5], 0.25).expect("weights");
        let eight = weights.of(0);
        let most = RelativeLoad { load: eight, capacity: 1_000 };
        assert_eq!(room_within(&weights, most, false), [eight, 2 * eight, eight / 2]);
        assert_eq!(room_within(&weights, most, true), [eight / 4 * 5, eight / 2 * 5, eight / 8 * 5]);
        assert_eq!(room_within(&weights, RelativeLoad::ZERO, true), [0, 0, 0]);
    }
}
