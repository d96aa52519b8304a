//! Who really owned what: claims settled by generation.
//!
//! Every member says what it owned and in which generation. Per partition the newest generation wins; two members that
//! claim it with the same newest generation both lose it, since one of them must be wrong (KIP-341, KAFKA-14639). The
//! result is a function of the set of claims: neither the order of the members nor an earlier call has a part in it.

use crate::group::{Group, NONE};

/// A partition that several members claim with equal right; nobody owned it.
pub const CONTESTED: u32 = u32::MAX - 1;

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
/// is false and does not count. `held` asks for [`Ownership::held`].
#[must_use]
pub fn settle(group: &Group, forming: Option<i32>, held: bool) -> Ownership {
    let partitions = group.topics().partitions();
    let mut subscribed = Slots::new(partitions);
    let mut any = Slots::new(if held { partitions } else { 0 });
    let topic_of = if group.claims_total() == 0 { Vec::new() } else { group.topics().of_partitions() };
    // Topic to the last pattern (plus one) found to contain it: one pass over a pattern serves all members that share it.
    let mut stamp = vec![0u32; group.topics().len()];
    let mut stamped = 0;
    for member in 0..group.members() as u32 {
        let generation = group.generations()[member as usize];
        let claims = group.claims(member);
        if claims.is_empty() || forming.is_some_and(|forming| generation >= forming) {
            continue;
        }
        let pattern = group.pattern_of()[member as usize] + 1;
        if pattern != stamped {
            stamped = pattern;
            for &topic in group.subscription(member) {
                stamp[topic as usize] = pattern;
            }
        }
        for &partition in claims {
            if stamp[topic_of[partition as usize] as usize] == pattern {
                subscribed.claim(partition, member, generation);
            }
            if held {
                any.claim(partition, member, generation);
            }
        }
    }
    let mut owner = subscribed.owner;
    for slot in &mut owner {
        if *slot == CONTESTED {
            *slot = NONE;
        }
    }
    Ownership { owner, held: any.owner }
}

/// One slot per partition: the best claim so far.
struct Slots {
    owner: Vec<u32>,
    generation: Vec<i32>,
}

impl Slots {
    fn new(partitions: usize) -> Self {
        Self { owner: vec![NONE; partitions], generation: vec![i32::MIN; partitions] }
    }

    /// Newer replaces, equal from another member contests, older is ignored. A contested slot stays so until a newer claim
    /// comes: if an older one could step in, the result would depend on the order of the members.
    fn claim(&mut self, partition: u32, member: u32, generation: i32) {
        let slot = partition as usize;
        if generation > self.generation[slot] {
            self.generation[slot] = generation;
            self.owner[slot] = member;
        } else if generation == self.generation[slot] && self.owner[slot] != member {
            self.owner[slot] = CONTESTED;
        }
    }
}
