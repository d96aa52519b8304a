//! A plan that was made outside of the core, by the user's own assignor: checked, and made part of the rebalance.
//!
//! Only a plan that passes [`Draft`] can be written to the wire.

use thiserror::Error;

use crate::planning::cooperative;
use crate::planning::group::{Group, NONE};
use crate::planning::ownership::Ownership;
use crate::planning::plan::{LeavesOut, Outcome, Plan};

/// Why a plan of the user's own assignor is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DraftError {
    /// A member that the group does not have.
    #[error("the plan has a member {0:?}, and the group has none of this id")]
    NoSuchMember(String),
    /// A topic that the group does not have.
    #[error("the plan gives member {member:?} partitions of {topic:?}, and the group has no such topic")]
    NoSuchTopic {
        /// The member.
        member: String,
        /// The topic.
        topic: String,
    },
    /// A partition that the topic does not have.
    #[error("the plan gives member {member:?} partition {number} of {topic:?}, which has {count} partitions")]
    NoSuchPartition {
        /// The member.
        member: String,
        /// The topic.
        topic: String,
        /// The partition.
        number: i64,
        /// The topic's partition count.
        count: u32,
    },
    /// A member that does not subscribe to a topic of which it gets partitions.
    #[error("the plan gives member {member:?} partitions of {topic:?}, to which it does not subscribe")]
    NotSubscribed {
        /// The member.
        member: String,
        /// The topic.
        topic: String,
    },
    /// A partition that is given away more than once.
    #[error("the plan gives partition {number} of {topic:?} to member {first:?} and to member {second:?}")]
    Twice {
        /// The topic.
        topic: String,
        /// The partition.
        number: i64,
        /// The member that got it first.
        first: String,
        /// The member that was to get it next, maybe the same member.
        second: String,
    },
}

/// A plan that is being put together from names.
#[derive(Debug)]
pub struct Draft<'a> {
    group: &'a Group,
    owner: Vec<u32>,
}

impl<'a> Draft<'a> {
    /// A plan in which no partition has an owner.
    #[must_use]
    pub fn new(group: &'a Group) -> Self {
        Self { group, owner: Plan::unassigned(group).owner }
    }

    /// The number of the member with this id.
    ///
    /// # Errors
    /// There is none.
    pub fn member(&self, id: &str) -> Result<u32, DraftError> {
        self.group.member_ids().find_sorted(id).ok_or_else(|| DraftError::NoSuchMember(id.to_owned()))
    }

    /// Gives partitions of a topic to a member. O(partitions + log topics).
    ///
    /// # Errors
    /// The first partition that cannot be given; the partitions before it are given.
    pub fn give(&mut self, member: u32, topic: &str, numbers: impl IntoIterator<Item = i64>) -> Result<(), DraftError> {
        let (group, name) = (self.group, |member: u32| self.group.member_ids().get(member).to_owned());
        let mut numbers = numbers.into_iter().peekable();
        let Some(id) = group.topics().find(topic.as_bytes()) else {
            return Err(DraftError::NoSuchTopic { member: name(member), topic: topic.to_owned() });
        };
        // A member that gets none of the topic need not subscribe to it.
        if numbers.peek().is_some() && group.topics().count(id) > 0 && !group.subscribes(member, id) {
            return Err(DraftError::NotSubscribed { member: name(member), topic: topic.to_owned() });
        }
        let range = group.topics().range(id);
        for number in numbers {
            let flat = u32::try_from(number).ok().and_then(|number| range.start.checked_add(number));
            let Some(flat) = flat.filter(|flat| range.contains(flat)) else {
                let (member, count) = (name(member), group.topics().count(id));
                return Err(DraftError::NoSuchPartition { member, topic: topic.to_owned(), number, count });
            };
            let slot = &mut self.owner[flat as usize];
            if *slot != NONE {
                let (first, second) = (name(*slot), name(member));
                return Err(DraftError::Twice { topic: topic.to_owned(), number, first, second });
            }
            *slot = member;
        }
        Ok(())
    }

    /// The plan.
    #[must_use]
    pub fn finish(self) -> Plan {
        Plan { owner: self.owner }
    }
}

/// A plan that was made outside as a rebalance's outcome. A cooperative plan withholds partitions that another member still
/// holds.
#[must_use]
pub fn outcome(target: Plan, ownership: Ownership, cooperative: bool) -> Outcome {
    let (plan, withholding) =
        if cooperative { (cooperative::withhold(&target, &ownership), Some(target)) } else { (target, None) };
    Outcome { plan, withholding, ownership, join: None, limited: None, leaves_out: LeavesOut::Anything, weighed: None }
}
