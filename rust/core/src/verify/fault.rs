//! The faults of a plan.

use thiserror::Error;

/// Why a plan is not valid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanFault {
    /// The plan is for another number of partitions.
    #[error(
        "the plan has {given} partitions but the group has {expected}; verify a plan with the group it was made for"
    )]
    Length {
        /// Partitions of the plan.
        given: usize,
        /// Partitions of the group.
        expected: usize,
    },
    /// The ownership does not belong to this group.
    #[error("the ownership does not fit the group at {partition}; settle the claims of the group that is verified")]
    Ownership {
        /// The partition, or the list that does not fit.
        partition: String,
    },
    /// A partition that was settled differently from the members' claims.
    #[error(
        "partition {partition} was settled with {given}, but by the members' claims with {settled}; this is a defect, please \
         report it"
    )]
    Settlement {
        /// Topic and number.
        partition: String,
        /// The owner, or the holder of cooperative rebalancing, in the ownership.
        given: String,
        /// The owner, or the holder, by the claims.
        settled: String,
    },
    /// An owner that is no member.
    #[error("partition {partition} goes to member number {owner}, but the group has {members} members")]
    NoSuchMember {
        /// Topic and number.
        partition: String,
        /// The owner's number.
        owner: u32,
        /// The number of members.
        members: usize,
    },
    /// An owner that does not subscribe to the topic.
    #[error("partition {partition} goes to member {member:?}, which does not subscribe to its topic")]
    NotSubscribed {
        /// Topic and number.
        partition: String,
        /// The owner.
        member: String,
    },
    /// A partition whose owner may not have it, by restrictions.
    #[error("partition {partition} goes to member {member:?}, which is not allowed to have it")]
    NotAllowed {
        /// Topic and number.
        partition: String,
        /// The owner.
        member: String,
    },
    /// A member with more partitions than its capacity.
    #[error("member {member:?} gets {load} partitions, and its capacity is {most}")]
    OverCapacity {
        /// The member.
        member: String,
        /// Its partitions.
        load: u32,
        /// The most that it may have.
        most: u32,
    },
    /// A partition without an owner although a member could have it.
    #[error("partition {partition} goes to nobody, although its topic has subscribers and no other member holds it")]
    Incomplete {
        /// Topic and number.
        partition: String,
    },
    /// A partition handed out while another member may still be reading it (KIP-429).
    #[error("partition {partition} goes to member {member:?} while {holder} still holds it; it must be revoked first")]
    HandedOver {
        /// Topic and number.
        partition: String,
        /// The member that is to have it.
        member: String,
        /// The member that holds it.
        holder: String,
    },
    /// A partition that goes to another member than in the target plan.
    #[error("partition {partition} goes to member {member:?}, but the target plan has it elsewhere")]
    OffTarget {
        /// Topic and number.
        partition: String,
        /// The member.
        member: String,
    },
    /// A number of a stream join of which two members have partitions.
    #[error("number {number} goes to member {first:?} and to member {second:?}; a stream join must not part it")]
    Parted {
        /// The number.
        number: u32,
        /// One of the two members.
        first: String,
        /// The other member.
        second: String,
    },
    /// An assigned partition of a stream join whose number is not below the smallest partition count.
    #[error("partition {partition} goes to a member, but its number is not below the smallest topic's partition count")]
    NotEligible {
        /// Topic and number.
        partition: String,
    },
    /// A plan that withholds partitions although its strategy does not wait for their holders.
    #[error("the plan is eager but withholds partitions; this is a defect, please report it")]
    Withholding,
    /// A partition that is unassigned for another reason than the reason in the plan.
    #[error(
        "partition {partition} is unassigned for another reason than the plan gives; this is a defect, please report it"
    )]
    WrongReason {
        /// Topic and number.
        partition: String,
    },
    /// The verification contradicts itself. A defect of this module, never of the plan.
    #[error("the bounds could not be proven ({what}); this is a defect of the verification, please report it")]
    Unproven {
        /// The check that failed.
        what: &'static str,
    },
}
