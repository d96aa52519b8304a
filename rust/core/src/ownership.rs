//! Who really owned what: claims settled by generation.
//!
//! Every member says what it owned and in which generation. Per partition the newest generation wins; two members that
//! claim it with the same newest generation both lose it, since one of them must be wrong (KIP-341, KAFKA-14639). The
//! result is a function of the set of claims: neither the order of the members nor an earlier call has a part in it.

use crate::group::{Group, NONE};

/// A partition that several members claim with equal right; nobody owned it.
pub const CONTESTED: u32 = u32::MAX - 1;

/// The generation, and the epoch of a stream join, that no member has ever been in: a claim of it is false. If it counted, no
/// later generation could exceed it, all later claims would tie with it, and nothing would be kept.
pub const NEVER: i32 = i32::MAX;

/// The settled claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ownership {
    /// By flat partition, the member that owned it and still subscribes to it; else [`NONE`].
    pub owner: Vec<u32>,
    /// By flat partition, the present member that holds it, subscribed or not; [`CONTESTED`] if several claim it with the
    /// newest generation; else [`NONE`]. Only for cooperative rebalancing, where a member that left a topic holds its
    /// partitions until it has revoked them; empty otherwise.
    pub held: Vec<u32>,
}

/// Settles the claims of a group. O(claims + partitions + subscriptions).
///
/// `forming` is the generation that is being formed, where the client knows it: a claim must be older, so one that is not
/// is false and does not count. Where it is not known, [`NEVER`] stands for it. `held` asks for [`Ownership::held`].
#[must_use]
pub fn settle(group: &Group, forming: Option<i32>, held: bool) -> Ownership {
    let partitions = group.topics().partitions();
    let generations = group.generations();
    let mut claimants: Vec<u32> = (0..group.members() as u32)
        .filter(|&member| !group.claims(member).is_empty())
        .filter(|&member| generations[member as usize] < forming.unwrap_or(NEVER))
        .collect();
    // Newest first, so that a slot is settled by the first generation that reaches it; members with the same subscription
    // together, so that one look at a subscription serves them all.
    claimants.sort_by_key(|&member| {
        (std::cmp::Reverse(generations[member as usize]), group.pattern_of()[member as usize], member)
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

/// Enters a claim into a slot; claims come newest generation first. A contested slot stays so: if an older claim could step
/// in, the result would depend on more than the newest claims.
pub(crate) fn claim<K: PartialEq>(slot: &mut u32, member: u32, generations: &[K]) {
    if *slot == NONE {
        *slot = member;
    } else if *slot != CONTESTED && *slot != member && generations[*slot as usize] == generations[member as usize] {
        *slot = CONTESTED;
    }
}

/// Which partitions one member at a time subscribes to.
struct Subscribed<'a> {
    group: &'a Group,
    /// By topic, the last pattern (plus one) found to contain it.
    stamp: Vec<u32>,
    pattern: u32,
    /// The topic of the last partition asked for, and its flat range: claims come topic by topic.
    topic: u32,
    range: std::ops::Range<u32>,
}

impl<'a> Subscribed<'a> {
    fn new(group: &'a Group) -> Self {
        Self { group, stamp: vec![0; group.topics().len()], pattern: 0, topic: 0, range: 0..0 }
    }

    fn turn_to(&mut self, member: u32) {
        let pattern = self.group.pattern_of()[member as usize] + 1;
        if pattern != self.pattern {
            self.pattern = pattern;
            for &topic in self.group.subscription(member) {
                self.stamp[topic as usize] = pattern;
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
        self.stamp[self.topic as usize] == self.pattern
    }
}
