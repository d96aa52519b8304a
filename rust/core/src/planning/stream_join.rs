//! The sticky stream-join assignor (KIP-315): number `n` of every subscribed topic goes to one member.
//!
//! The group is reduced to one topic whose partitions are the numbers below the smallest partition count. Its subscribers are
//! the members with topics. That is the sticky strategy's problem with equal subscriptions, and its closed form solves it: no
//! member has two numbers more than another one, and no such assignment keeps more numbers. Then every number becomes
//! partitions of its owner's topics. The other partitions stay unassigned, each with its reason.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::planning::group::{Group, GroupBuilder, NONE, TopicSpec, Topics};
use crate::planning::objective::Objective;
use crate::planning::ownership::{CONTESTED, NEVER, Ownership};
use crate::planning::plan::{JoinNumbers, Plan};
use crate::planning::settlement::claim;
use crate::planning::sticky;

/// The age of a claim. An epoch beats every generation: an epoch counts assignments and a generation counts rebalances, so
/// their numbers cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Age {
    /// The group's generation, of claims that stand in for a member's own data; negative if it is not known.
    Generation(i32),
    /// The epoch of the assignment.
    Epoch(i32),
}

fn age(group: &Group, member: u32) -> Age {
    let generation = group.generations()[member as usize];
    if generation < 0 || group.is_stand_in(member) { Age::Generation(generation) } else { Age::Epoch(generation) }
}

/// A topic of a stream join that an operator should look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JoinNotice {
    /// A topic that members subscribe to does not exist, or has no partition. The join goes on without it.
    Missing(String),
    /// Members claim partitions, or numbers, that this topic of theirs does not have. Either it lost partitions, which KIP-315
    /// calls unsafe, or it is new and has fewer than the others.
    Shrunk(u32),
    /// The topic has the smallest partition count, and others have more: their higher numbers stay unassigned.
    Cuts(u32),
}

/// The topics with subscribers, ascending.
fn topics_of(group: &Group) -> BTreeSet<u32> {
    let subscriptions: BTreeSet<u32> = group.subscription_of().iter().copied().collect();
    subscriptions.into_iter().flat_map(|subscription| group.subscriptions().row(subscription)).copied().collect()
}

/// The topics of the group that an operator should look at.
#[must_use]
pub fn notices(group: &Group) -> Vec<JoinNotice> {
    let topics = topics_of(group);
    let counts = topics.iter().map(|&topic| group.topics().count(topic));
    let (least, most) = (counts.clone().min(), counts.max());
    let missing = group.missing_topics().iter().cloned().map(JoinNotice::Missing);
    let cuts = topics.into_iter().filter(|&topic| least < most && Some(group.topics().count(topic)) == least);
    missing
        .chain(group.shrunk_topics().iter().copied().map(JoinNotice::Shrunk))
        .chain(cuts.map(JoinNotice::Cuts))
        .collect()
}

/// The eligible count, and the first topic that has it; 0 and [`NONE`] if no member subscribes to a topic.
fn eligible(group: &Group) -> (u32, u32) {
    let counted = topics_of(group).into_iter().map(|topic| (group.topics().count(topic), topic));
    counted.min().unwrap_or((0, NONE))
}

/// Settles the claims of a stream join by number. O(claims + partitions).
///
/// The newest epoch wins a number. Members that claim it with the same newest epoch all lose it, as with generations: one of
/// them must be wrong. Claims that stand in for missing data have the group's generation and lose to every epoch. They must be
/// older than `forming`, the generation that is being formed. A claim of epoch [`NEVER`] is false. Numbers that are not
/// eligible, and claims of members that subscribe to nothing, do not count.
///
/// In the result, the owner of a number owned that number of every topic that it subscribes to.
#[must_use]
pub fn settle(group: &Group, forming: Option<i32>, held: bool) -> Ownership {
    let topics = group.topics();
    let ages: Vec<Age> = (0..group.members() as u32).map(|member| age(group, member)).collect();
    let counts = |age: Age| match age {
        Age::Generation(generation) => generation < forming.unwrap_or(NEVER),
        Age::Epoch(epoch) => epoch < NEVER,
    };
    let mut claimants: Vec<u32> = (0..group.members() as u32).filter(|&m| counts(ages[m as usize])).collect();
    claimants.sort_by_key(|&member| (Reverse(ages[member as usize]), member));

    let mut numbers = vec![NONE; eligible(group).0 as usize];
    let mut any = vec![NONE; if held { topics.partitions() } else { 0 }];
    for &member in &claimants {
        if !group.subscription(member).is_empty() {
            for &number in group.numbers(member) {
                if let Some(slot) = numbers.get_mut(number as usize) {
                    claim(slot, member, &ages);
                }
            }
        }
        let by_partition = group.numbers(member).is_empty() && !group.subscription(member).is_empty();
        let mut range = 0..0;
        for &partition in group.claims(member) {
            if held {
                claim(&mut any[partition as usize], member, &ages);
            }
            if by_partition {
                if !range.contains(&partition) {
                    range = topics.range(topics.locate(partition).0);
                }
                if let Some(slot) = numbers.get_mut((partition - range.start) as usize) {
                    claim(slot, member, &ages);
                }
            }
        }
    }
    for slot in numbers.iter_mut().filter(|slot| **slot == CONTESTED) {
        *slot = NONE;
    }
    Ownership { owner: expand(group, &numbers), held: any }
}

/// Plans a group. Also returns the owners of the numbers. O(partitions + subscriptions) in any group, so there is no limit.
///
/// # Panics
/// Never: the only topic of the reduced group is no larger than a real one.
#[must_use]
pub fn assign(group: &Group, ownership: &Ownership) -> (Plan, JoinNumbers) {
    let (count, smallest) = eligible(group);
    let spec = TopicSpec { name: "", partitions: i64::from(count), racks: None };
    let topics = Topics::new(vec![spec]).expect("one topic no larger than a real one");
    let mut reduced = GroupBuilder::new(topics);
    let (all, nothing) = (reduced.subscription(&[0]), reduced.subscription(&[]));
    for member in 0..group.members() as u32 {
        let subscription = if group.subscription(member).is_empty() { nothing } else { all };
        reduced.member(group.member_ids().get(member), subscription).finish();
    }
    let before = Ownership { owner: contract(group, &ownership.owner, count), held: Vec::new() };
    let owner = sticky::assign(&reduced.finish(), &before, Objective::default()).owner;
    (Plan { owner: expand(group, &owner) }, JoinNumbers { owner, smallest, subscribed: topics_of(group) })
}

/// By number below `count`, the member that has partitions of this number. The inverse of [`expand`]: the owner of a number
/// subscribes to some topic, and has that number of it.
fn contract(group: &Group, owner: &[u32], count: u32) -> Vec<u32> {
    let mut numbers = vec![NONE; count as usize];
    for topic in topics_of(group) {
        let start = group.topics().range(topic).start as usize;
        for (number, &owner) in numbers.iter_mut().zip(&owner[start..]) {
            if owner != NONE {
                *number = owner;
            }
        }
    }
    numbers
}

/// Numbers as partitions: the owner of a number gets it of each topic that it subscribes to. O(partitions + subscriptions).
fn expand(group: &Group, numbers: &[u32]) -> Vec<u32> {
    let mut owner = vec![NONE; group.topics().partitions()];
    let mut used = vec![false; group.subscriptions().len()];
    group.subscription_of().iter().for_each(|&subscription| used[subscription as usize] = true);
    let in_use = used.iter().filter(|used| **used).count();
    // By topic, the subscriptions that have it.
    let having = group.subscriptions().transpose(group.topics().len());
    // By subscription, the last topic of the loop below that it has.
    let mut last = vec![NONE; group.subscriptions().len()];
    for topic in topics_of(group) {
        let mut have = 0;
        for &subscription in having.row(topic).iter().filter(|&&subscription| used[subscription as usize]) {
            last[subscription as usize] = topic;
            have += 1;
        }
        let start = group.topics().range(topic).start as usize;
        for (slot, &member) in owner[start..].iter_mut().zip(numbers) {
            // Mostly all subscriptions have the topic. Then this lookup is not needed.
            let has =
                member != NONE && (have == in_use || last[group.subscription_of()[member as usize] as usize] == topic);
            *slot = if has { member } else { NONE };
        }
    }
    owner
}
