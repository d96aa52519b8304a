//! The result of every strategy: an owner for each partition, the owners before, and restrictions or weights. Nothing here plans.

use std::collections::BTreeSet;

use hashbrown::HashMap;

use crate::planning::budget::Limited;
use crate::planning::group::{Csr, Group, NONE};
use crate::planning::ownership::{CONTESTED, Ownership};
use crate::planning::restrictions::Restrictions;
use crate::planning::weights::Weighed;

/// The owner of each partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// By flat partition, the member that gets it; [`NONE`] for a partition that no member gets.
    pub owner: Vec<u32>,
}

impl Plan {
    /// A plan in which no partition has an owner.
    #[must_use]
    pub fn unassigned(group: &Group) -> Self {
        Self { owner: vec![NONE; group.topics().partitions()] }
    }

    /// How many partitions each member has.
    #[must_use]
    pub fn loads(&self, members: usize) -> Vec<u32> {
        // The last place counts the partitions without an owner, so no branch depends on an owner.
        #[expect(
            clippy::slow_vector_initialization,
            reason = "glibc's calloc does not use the memory that a thread has just freed"
        )]
        let mut loads = Vec::with_capacity(members + 1);
        loads.resize(members + 1, 0);
        for &owner in &self.owner {
            debug_assert!(owner == NONE || (owner as usize) < members, "{owner} is none of {members} members");
            loads[(owner as usize).min(members)] += 1;
        }
        loads.truncate(members);
        loads
    }
}

/// Why a partition gets no owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnassignedReason {
    /// No member subscribes to its topic.
    NoSubscriber,
    /// Another member still holds the partition and must revoke it first (KIP-429). The next rebalance hands it out.
    Withheld {
        /// The member that holds it.
        holder: u32,
    },
    /// Stream join: the partition's number is not below the partition count of the group's smallest topic.
    Beyond {
        /// The smallest topic; of several, the first.
        topic: u32,
    },
    /// Stream join: the owner of the number does not subscribe to the topic.
    OwnerNotSubscribed {
        /// The member.
        owner: u32,
    },
    /// The user's own assignor left it out.
    NotPlanned,
    /// No subscriber may have it, by restrictions.
    NotAllowed,
    /// All members that may have it, by restrictions, have their most partitions already.
    Full,
    /// Several members claim the partition with the same generation. All of them must revoke it first (KIP-429).
    Contested,
}

/// The numbers of a stream join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinNumbers {
    /// By number, the owner. The length is the eligible count: the smallest partition count of a subscribed topic.
    pub owner: Vec<u32>,
    /// The subscribed topic with that partition count, the first of several; [`NONE`] if no member subscribes to a topic.
    pub smallest: u32,
    /// The topics that some member subscribes to.
    pub(super) subscribed: BTreeSet<u32>,
}

impl JoinNumbers {
    /// Why a partition of the group has no owner in the plan that these numbers make. O(log topics).
    fn why_unassigned(&self, group: &Group, partition: u32) -> UnassignedReason {
        let (topic, number) = group.topics().locate(partition);
        match self.owner.get(number as usize) {
            _ if !self.subscribed.contains(&topic) => UnassignedReason::NoSubscriber,
            Some(&owner) => UnassignedReason::OwnerNotSubscribed { owner },
            None => UnassignedReason::Beyond { topic: self.smallest },
        }
    }
}

/// A plan, the owners before it, and the restrictions or weights under which it was made.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The partitions that are handed out now.
    pub plan: Plan,
    /// The plan once withheld partitions are free. Only cooperative rebalancing has one.
    pub withholding: Option<Plan>,
    /// The owners before this plan.
    pub ownership: Ownership,
    /// The numbers of a stream join.
    pub join: Option<JoinNumbers>,
    /// The search of the strategy that ended early, if one did: a better plan may exist.
    pub limited: Option<Limited>,
    /// Whether partitions that have subscribers may be without an owner.
    pub leaves_out: LeavesOut,
    /// The weights of a weighted plan.
    pub weighed: Option<Box<Weighed>>,
}

/// Whether, and why, a plan may leave out partitions that have subscribers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LeavesOut {
    /// No partition that has subscribers may be left out.
    #[default]
    Nothing,
    /// Any partition may be left out: the user's own assignor made the plan.
    Anything,
    /// Partitions for which these restrictions leave no member may be left out.
    Restricted(Box<Restrictions>),
}

/// Why a plan leaves out partitions that have subscribers.
struct LeftOut<'a> {
    group: &'a Group,
    leaves_out: &'a LeavesOut,
    /// Topic to the subscriptions that have it.
    subscriptions: Csr,
    /// Subscription to its members.
    members: Csr,
    /// By topic and set of the restrictions: a topic may have 200,000 partitions and 20,000 subscribers.
    known: HashMap<(u32, u32), Option<UnassignedReason>>,
}

impl<'a> LeftOut<'a> {
    fn new(group: &'a Group, leaves_out: &'a LeavesOut) -> Self {
        let (subscriptions, members) = match leaves_out {
            LeavesOut::Nothing => (Csr::new(), Csr::new()),
            LeavesOut::Anything | LeavesOut::Restricted(_) => (
                group.subscriptions().transpose(group.topics().len()),
                Csr::group_by(group.subscription_of(), group.subscriptions().len()),
            ),
        };
        Self { group, leaves_out, subscriptions, members, known: HashMap::new() }
    }

    /// `None` for a partition without subscribers, and where no partition with subscribers may be left out.
    fn why(&mut self, topic: u32, partition: u32) -> Option<UnassignedReason> {
        let set = match self.leaves_out {
            LeavesOut::Nothing => return None,
            LeavesOut::Anything => NONE,
            LeavesOut::Restricted(restrictions) => restrictions.set(partition),
        };
        if let Some(&known) = self.known.get(&(topic, set)) {
            return known;
        }
        let reason = self.find(topic, set);
        self.known.insert((topic, set), reason);
        reason
    }

    /// The reason for a partition of the topic. O(the subscribers of the topic or the members of the set, whichever are fewer, times
    /// a logarithm).
    fn find(&self, topic: u32, set: u32) -> Option<UnassignedReason> {
        let rows = || self.subscriptions.row(topic).iter().map(|&subscription| self.members.row(subscription));
        let subscribers: usize = rows().map(<[u32]>::len).sum();
        if subscribers == 0 {
            return None;
        }
        let LeavesOut::Restricted(restrictions) = self.leaves_out else { return Some(UnassignedReason::NotPlanned) };
        let some = set == NONE || {
            let of_set = restrictions.sets.row(set);
            if of_set.len() < subscribers {
                of_set.iter().any(|&member| self.group.subscribes(member, topic))
            } else {
                rows().flatten().any(|member| of_set.binary_search(member).is_ok())
            }
        };
        Some(if some { UnassignedReason::Full } else { UnassignedReason::NotAllowed })
    }
}

impl Outcome {
    /// The plan once withheld partitions are free.
    #[must_use]
    pub fn target(&self) -> &Plan {
        self.withholding.as_ref().unwrap_or(&self.plan)
    }

    /// The partitions that the target gives to a member and that another member still holds.
    pub fn withheld(&self) -> impl Iterator<Item = u32> {
        let target: &[u32] = self.withholding.as_ref().map_or(&[], |target| &target.owner);
        let owners = self.plan.owner.iter().zip(target);
        (0u32..).zip(owners).filter(|(_, (now, then))| now != then).map(|(partition, _)| partition)
    }

    /// The partitions without an owner now, ascending, each with the reason. `group` is the one that was planned.
    /// O(partitions); where partitions with subscribers may be left out, also the entries of the distinct subscriptions. Under
    /// restrictions, also O(the subscribers of a topic or the members of a set, whichever are fewer, times a logarithm) for each
    /// pair of the two.
    pub fn unassigned<'a>(&'a self, group: &'a Group) -> impl Iterator<Item = (u32, UnassignedReason)> + 'a {
        let (plan, target, ownership) = (&self.plan, self.target(), &self.ownership);
        let mut left_out = LeftOut::new(group, &self.leaves_out);
        let open = (0u32..).zip(&plan.owner).filter(|(_, owner)| **owner == NONE).map(|(partition, _)| partition);
        open.map(move |partition| {
            let holder = ownership.held.get(partition as usize).copied().unwrap_or(NONE);
            let reason = match (target.owner[partition as usize], holder) {
                (NONE, _) => {
                    let topic = group.topics().locate(partition).0;
                    left_out.why(topic, partition).unwrap_or_else(|| match &self.join {
                        Some(join) => join.why_unassigned(group, partition),
                        None => UnassignedReason::NoSubscriber,
                    })
                }
                (_, CONTESTED) => UnassignedReason::Contested,
                (_, holder) => UnassignedReason::Withheld { holder },
            };
            (partition, reason)
        })
    }

    /// The number of partitions that stay with their owner, and of those that had an owner and change it. A withheld partition
    /// counts by its target.
    #[must_use]
    pub fn kept_and_moved(&self) -> (u32, u32) {
        let (mut kept, mut moved) = (0, 0);
        for (&before, &after) in self.ownership.owner.iter().zip(&self.target().owner) {
            kept += u32::from(before != NONE && before == after);
            moved += u32::from(before != NONE && before != after);
        }
        (kept, moved)
    }
}
