//! Places partitions in decreasing weight, each on the member whose relative load is then least. The lightest partitions are
//! placed by number: each goes to the member with the fewest partitions, relative to the capacities.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::{Setting, room_within};
use crate::planning::budget::Budget;
use crate::planning::group::NONE;
use crate::planning::weights::RelativeLoad;

/// The lightest partitions are placed by number, as long as their total weight is at most 1/`LIGHT` of the smallest member's
/// room. The room of a member is the largest load with which it stays within the bound.
const LIGHT: u64 = 100;

/// An incomplete plan: the owners so far, and the sums by member, which each placed partition changes.
#[derive(Debug, Clone)]
pub(super) struct WeightedDraft {
    /// By flat partition.
    pub(super) owner: Vec<u32>,
    /// By member.
    pub(super) load: Vec<u64>,
    /// By member.
    pub(super) count: Vec<u32>,
}

impl WeightedDraft {
    pub(super) fn new(setting: &Setting<'_>, owner: Vec<u32>) -> Self {
        let load = setting.weights.loads(&owner);
        let mut count = vec![0; load.len()];
        owner.iter().filter(|&&owner| owner != NONE).for_each(|&owner| count[owner as usize] += 1);
        Self { owner, load, count }
    }

    pub(super) fn give(&mut self, setting: &Setting<'_>, partition: u32, member: u32) {
        self.owner[partition as usize] = member;
        self.load[member as usize] += setting.weights.of(partition);
        self.count[member as usize] += 1;
    }

    pub(super) fn take(&mut self, setting: &Setting<'_>, partition: u32) {
        let member = std::mem::replace(&mut self.owner[partition as usize], NONE);
        self.load[member as usize] -= setting.weights.of(partition);
        self.count[member as usize] -= 1;
    }
}

/// The members of one class, first the one that gets the next partition. The order is the value that decides (load or number),
/// then the other value, then the id.
type ClassQueue = BinaryHeap<Reverse<(u64, u64, u32)>>;

/// The value that decides which member gets a partition.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Load,
    Number,
}

struct Lines<'a> {
    setting: &'a Setting<'a>,
    by: By,
    of_class: Vec<ClassQueue>,
}

impl<'a> Lines<'a> {
    fn new(setting: &'a Setting<'a>, draft: &WeightedDraft, by: By) -> Self {
        let mut entries: Vec<Vec<Reverse<(u64, u64, u32)>>> = vec![Vec::new(); setting.class_capacity.len()];
        for (member, &class) in (0u32..).zip(&setting.class_of) {
            entries[class as usize].push(Reverse(Self::key(draft, member, by)));
        }
        Self { setting, by, of_class: entries.into_iter().map(ClassQueue::from).collect() }
    }

    fn key(draft: &WeightedDraft, member: u32, by: By) -> (u64, u64, u32) {
        let (load, count) = (draft.load[member as usize], u64::from(draft.count[member as usize]));
        if by == By::Load { (load, count, member) } else { (count, load, member) }
    }

    /// The class whose first member has the least value relative to its capacity after `more` is added; none if all lines are
    /// empty.
    fn best(&self, set: u32, more: u64) -> Option<u32> {
        let capacity = |class: u32| self.setting.class_capacity[class as usize];
        let first = |class: u32| self.of_class[class as usize].peek().map(|&Reverse(first)| (class, first));
        let better = |&(a, (value_a, other_a, id_a)): &(u32, (u64, u64, u32)),
                      &(b, (value_b, other_b, id_b)): &(u32, (u64, u64, u32))| {
            let relative = |load, class| RelativeLoad { load, capacity: capacity(class) };
            relative(value_a + more, a)
                .cmp(&relative(value_b + more, b))
                .then_with(|| relative(other_a, a).cmp(&relative(other_b, b)))
                .then(id_a.cmp(&id_b))
        };
        let lines = self.setting.line_of(set).iter();
        lines.filter_map(|&class| first(class)).min_by(better).map(|(class, _)| class)
    }

    /// Gives a partition to the first member of a class.
    fn give(&mut self, draft: &mut WeightedDraft, partition: u32, class: u32) {
        if let Some(mut first) = self.of_class[class as usize].peek_mut() {
            let Reverse((.., member)) = *first;
            draft.give(self.setting, partition, member);
            *first = Reverse(Self::key(draft, member, self.by));
        }
    }
}

/// Gives an owner to each partition that has subscribers and no owner. Once the budget is spent, the plan is less even, but
/// valid.
pub(super) fn place(setting: &Setting<'_>, draft: &mut WeightedDraft, bound: RelativeLoad, budget: &Budget<'_>) {
    let weights = setting.weights;
    let mut open: Vec<(Reverse<u64>, u32)> = Vec::new();
    for (topic, _) in (0u32..).zip(&setting.subscribers.set_of).filter(|(_, set)| **set != NONE) {
        let range = setting.group.topics().range(topic);
        let without = range.filter(|&partition| draft.owner[partition as usize] == NONE);
        open.extend(without.map(|partition| (Reverse(weights.of(partition)), partition)));
    }
    if open.is_empty() {
        return;
    }
    open.sort_unstable();
    let weakest = room_within(weights, bound, false).into_iter().min().unwrap_or(0);
    let mut spare = weakest / LIGHT;
    let heavy = open.iter().rposition(|&(Reverse(weight), _)| match spare.checked_sub(weight) {
        Some(left) => {
            spare = left;
            false
        }
        None => true,
    });
    let (heavy, light) = open.split_at(heavy.map_or(0, |last| last + 1));
    let by_load = |draft: &mut WeightedDraft, partitions: &[(Reverse<u64>, u32)]| {
        let mut lines = Lines::new(setting, draft, By::Load);
        for &(Reverse(weight), partition) in partitions {
            let set = setting.set(partition);
            let classes = setting.line_of(set);
            let class = match budget.spend(classes.len() as u64) {
                Ok(()) => lines.best(set, weight),
                Err(_) => None,
            };
            lines.give(draft, partition, class.unwrap_or(classes[partition as usize % classes.len()]));
        }
    };
    by_load(draft, heavy);
    if light.is_empty() {
        return;
    }
    // By number, among the members that stay at or below the worst load. Loads only grow: a member without room for a partition
    // never has room for it again.
    let worst = weights.worst(&draft.load).max(bound);
    let room = room_within(weights, worst, false);
    let mut lines = Lines::new(setting, draft, By::Number);
    let mut left = Vec::new();
    // The lightest come first: a member without room for one partition has none for the heavier ones that follow.
    for &(Reverse(weight), partition) in light.iter().rev() {
        let set = setting.set(partition);
        let found = loop {
            if budget.spend(setting.line_of(set).len() as u64).is_err() {
                break None;
            }
            let Some(class) = lines.best(set, 1) else { break None };
            let line = &mut lines.of_class[class as usize];
            let Some(&Reverse((_, load, member))) = line.peek() else { break None };
            if load + weight <= room[member as usize] {
                break Some(class);
            }
            line.pop();
        };
        match found {
            Some(class) => lines.give(draft, partition, class),
            None => left.push((Reverse(weight), partition)),
        }
    }
    left.sort_unstable();
    by_load(draft, &left);
}

/// Takes from each member above its room the fewest partitions that bring it within: its heaviest or, if `lightest`, the
/// lightest ones of this number that are enough. Returns how many in all: no plan within the room moves fewer.
///
/// Example: weights 9, 7, 5, 1, and 11 too much. Two partitions must go: 9 and 7 or, the lightest, 7 and 5.
pub(super) fn release(setting: &Setting<'_>, draft: &mut WeightedDraft, room: &[u64], lightest: bool) -> usize {
    let weights = setting.weights;
    let mut held: Vec<Vec<u32>> = vec![Vec::new(); room.len()];
    for (partition, &owner) in (0u32..).zip(&draft.owner) {
        if owner != NONE && draft.load[owner as usize] > room[owner as usize] {
            held[owner as usize].push(partition);
        }
    }
    let mut released = 0;
    for (member, mut partitions) in held.into_iter().enumerate() {
        let Some(excess) = draft.load[member].checked_sub(room[member]).filter(|&excess| excess > 0) else { continue };
        partitions.sort_unstable_by_key(|&partition| (Reverse(weights.of(partition)), partition));
        let mut sum = 0;
        let fewest = partitions.iter().take_while(|&&partition| {
            let enough = sum >= excess;
            sum += if enough { 0 } else { weights.of(partition) };
            !enough
        });
        let fewest = fewest.count();
        // A window of `fewest` neighbours slides towards the lighter ones as long as its sum is at least the excess.
        let mut start = 0;
        while let Some(&next) = partitions.get(start + fewest).filter(|_| lightest) {
            let slid = sum - weights.of(partitions[start]) + weights.of(next);
            if slid < excess {
                break;
            }
            (sum, start) = (slid, start + 1);
        }
        partitions[start..start + fewest].iter().for_each(|&partition| draft.take(setting, partition));
        released += fewest;
    }
    released
}

/// How many partitions are not with their earlier owners.
pub(super) fn moved(draft: &WeightedDraft, before: &[u32]) -> usize {
    before.iter().zip(&draft.owner).filter(|(before, now)| **before != NONE && before != now).count()
}

/// Gives moved partitions back to their earlier owners where these have room, the lightest first.
pub(super) fn send_home(setting: &Setting<'_>, draft: &mut WeightedDraft, before: &[u32], room: &[u64]) {
    let away = |(partition, (&now, &then)): (u32, (&u32, &u32))| (then != NONE && now != then).then_some(partition);
    let mut moved: Vec<u32> = (0u32..).zip(draft.owner.iter().zip(before)).filter_map(away).collect();
    moved.sort_unstable_by_key(|&partition| (setting.weights.of(partition), partition));
    // A partition that returns leaves room for others, which the next pass finds. A few passes find nearly all of it.
    for _ in 0..4 {
        let away = moved.len();
        moved.retain(|&partition| {
            let home = before[partition as usize];
            let fits = draft.load[home as usize].saturating_add(setting.weights.of(partition)) <= room[home as usize];
            if fits {
                draft.take(setting, partition);
                draft.give(setting, partition, home);
            }
            !fits
        });
        if moved.len() == away {
            return;
        }
    }
}

/// Exchanges all partitions of members of the same class, so that more partitions stay with their earlier owners.
pub(super) fn rename(setting: &Setting<'_>, draft: &mut WeightedDraft, before: &[u32]) {
    // By present and earlier owner, the number of partitions.
    let mut common: std::collections::BTreeMap<(u32, u32), u32> = std::collections::BTreeMap::new();
    for (&now, &then) in draft.owner.iter().zip(before) {
        if now != NONE && then != NONE && setting.class_of[now as usize] == setting.class_of[then as usize] {
            *common.entry((now, then)).or_insert(0) += 1;
        }
    }
    let mut ranked: Vec<(Reverse<u32>, u32, u32)> =
        common.into_iter().map(|((now, then), count)| (Reverse(count), now, then)).collect();
    ranked.sort_unstable();
    let members = setting.class_of.len();
    let (mut new_name, mut taken) = (vec![NONE; members], vec![false; members]);
    for (_, now, then) in ranked {
        if new_name[now as usize] == NONE && !taken[then as usize] {
            new_name[now as usize] = then;
            taken[then as usize] = true;
        }
    }
    let mut free: Vec<Vec<u32>> = vec![Vec::new(); setting.class_capacity.len()];
    for member in (0..members as u32).rev().filter(|&member| !taken[member as usize]) {
        free[setting.class_of[member as usize] as usize].push(member);
    }
    for member in 0..members {
        if new_name[member] == NONE {
            // Each class has as many names as members.
            new_name[member] = free[setting.class_of[member] as usize].pop().unwrap_or(member as u32);
        }
    }
    let owner = draft.owner.iter().map(|&owner| if owner == NONE { NONE } else { new_name[owner as usize] }).collect();
    *draft = WeightedDraft::new(setting, owner);
}

/// Compares two plans in the order of the objective; the better one is less.
pub(super) fn compare(
    setting: &Setting<'_>,
    before: &[u32],
    room: &[u64],
    a: &WeightedDraft,
    b: &WeightedDraft,
) -> Ordering {
    let weights = setting.weights;
    let value = |draft: &WeightedDraft| {
        let within = draft.load.iter().zip(room).all(|(load, room)| load <= room);
        let moved = before.iter().zip(&draft.owner).filter(|(before, now)| **before != NONE && before != now).count();
        let worst = weights.worst(&draft.load);
        (if within { RelativeLoad::ZERO } else { worst }, moved, worst)
    };
    value(a).cmp(&value(b))
}
