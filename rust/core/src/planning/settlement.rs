//! The claims of the members, settled by generation.
//!
//! Every member claims the partitions that it owned, with the generation in which it owned them. Per partition the newest
//! generation wins. Two members that claim a partition with the same newest generation both lose it, since one of them must be
//! wrong (KIP-341, KAFKA-14639). The result is a function of the set of claims: it depends neither on the order of the members
//! nor on an earlier call.

use crate::planning::group::{Group, NONE};
use crate::planning::ownership::{CONTESTED, NEVER, Ownership};

/// Settles the claims of a group. O(claims + partitions + subscriptions).
///
/// `forming` is the generation that is being formed, where the client knows it; [`NEVER`] takes its place where it is not known.
/// A claim of this generation or a later one is false and does not count. With `held`, [`Ownership::held`] is settled too.
#[must_use]
pub fn settle(group: &Group, forming: Option<i32>, held: bool) -> Ownership {
    let partitions = group.topics().partitions();
    let generations = group.generations();
    let mut claimants: Vec<u32> = (0..group.members() as u32)
        .filter(|&member| !group.claims(member).is_empty())
        .filter(|&member| generations[member as usize] < forming.unwrap_or(NEVER))
        .collect();
    // Newest first: the first generation that claims a partition settles it. Members with the same subscription follow each
    // other: their topics are marked once.
    claimants.sort_by_key(|&member| {
        (std::cmp::Reverse(generations[member as usize]), group.subscription_of()[member as usize], member)
    });
    let mut owner = vec![NONE; partitions];
    let mut any = vec![NONE; if held { partitions } else { 0 }];
    let mut subscribed = Subscribed::new(group);
    for &member in &claimants {
        subscribed.turn_to(member);
        for &partition in group.claims(member) {
            if subscribed.contains(partition) {
                claim(&mut owner[partition as usize], member, generations);
            }
        }
        if held {
            for &partition in group.claims(member) {
                claim(&mut any[partition as usize], member, generations);
            }
        }
    }
    for slot in &mut owner {
        if *slot == CONTESTED {
            *slot = NONE;
        }
    }
    Ownership { owner, held: any }
}

/// Enters a claim of a partition. Claims come newest generation first. A contested partition stays contested: otherwise an
/// older claim, which is superseded, would decide.
pub(crate) fn claim<K: PartialEq>(slot: &mut u32, member: u32, generations: &[K]) {
    if *slot == NONE {
        *slot = member;
    } else if *slot != CONTESTED && *slot != member && generations[*slot as usize] == generations[member as usize] {
        *slot = CONTESTED;
    }
}

/// The partitions that one member at a time subscribes to.
struct Subscribed<'a> {
    group: &'a Group,
    /// By topic, the last subscription that has it, plus one.
    stamp: Vec<u32>,
    subscription: u32,
    /// The topic of the last partition, and its flat range: claims come topic by topic.
    topic: u32,
    range: std::ops::Range<u32>,
}

impl<'a> Subscribed<'a> {
    fn new(group: &'a Group) -> Self {
        Self { group, stamp: vec![0; group.topics().len()], subscription: 0, topic: 0, range: 0..0 }
    }

    fn turn_to(&mut self, member: u32) {
        let subscription = self.group.subscription_of()[member as usize] + 1;
        if subscription != self.subscription {
            self.subscription = subscription;
            for &topic in self.group.subscription(member) {
                self.stamp[topic as usize] = subscription;
            }
        }
    }

    fn contains(&mut self, partition: u32) -> bool {
        if !self.range.contains(&partition) {
            let topics = self.group.topics();
            let next = self.topic + 1;
            self.topic = if (next as usize) < topics.len() && topics.range(next).contains(&partition) {
                next
            } else {
                topics.locate(partition).0
            };
            self.range = topics.range(self.topic);
        }
        self.stamp[self.topic as usize] == self.subscription
    }
}
