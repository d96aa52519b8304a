//! The claims of the members, settled by generation.
//!
//! Every member claims the partitions that it owned, with the generation in which it owned them. Per partition the newest
//! generation wins. Two members that claim a partition with the same newest generation both lose it, since one of them must be
//! wrong (KIP-341, KAFKA-14639). The result is a function of the set of claims: it depends neither on the order of the members
//! nor on an earlier call.

use crate::planning::group::{Group, NONE};
use crate::planning::ownership::{CONTESTED, NEVER, Ownership};

/// Settles the claims of a group. O(claims × log topics + partitions + members log members); a claim of the last claim's topic, or
/// of the member's next one, takes constant time.
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
        if group.may_claim_more(member) {
            subscribed.turn_to(member);
            for &partition in group.claims(member).iter().filter(|partition| subscribed.contains(**partition)) {
                claim(&mut owner[partition as usize], member, generations);
            }
        } else {
            for &partition in group.claims(member) {
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
    /// The topics of the member, ascending.
    topics: &'a [u32],
    /// The flat partitions around the last claim, all of which the member subscribes to, or none.
    range: std::ops::Range<u32>,
    subscribes: bool,
    /// The place of the last topic that does not start behind that claim; 0 if all do.
    place: usize,
}

impl<'a> Subscribed<'a> {
    fn new(group: &'a Group) -> Self {
        Self { group, topics: &[], range: 0..0, subscribes: false, place: 0 }
    }

    fn turn_to(&mut self, member: u32) {
        *self = Self { topics: self.group.subscription(member), ..Self::new(self.group) };
    }

    #[inline]
    fn contains(&mut self, partition: u32) -> bool {
        if !self.range.contains(&partition) {
            self.find(partition);
        }
        self.subscribes
    }

    /// Claims come topic by topic, and the topics mostly ascend: often the next claim is of the next topic, and else it is searched
    /// behind the last one. O(log topics of the member).
    fn find(&mut self, partition: u32) {
        let topics = self.group.topics();
        if let Some(&next) = self.topics.get(self.place + 1)
            && topics.range(next).contains(&partition)
        {
            (self.place, self.range, self.subscribes) = (self.place + 1, topics.range(next), true);
            return;
        }
        let first = if partition >= self.range.end { self.place } else { 0 };
        let starts_before = |&topic: &u32| topics.range(topic).start <= partition;
        let behind = first + self.topics[first..].partition_point(starts_before);
        self.place = behind.saturating_sub(1);
        let last = if behind == 0 { 0..0 } else { topics.range(self.topics[self.place]) };
        self.subscribes = last.contains(&partition);
        let next = self.topics.get(behind).map_or(u32::MAX, |&topic| topics.range(topic).start);
        self.range = if self.subscribes { last } else { last.end..next };
    }
}
