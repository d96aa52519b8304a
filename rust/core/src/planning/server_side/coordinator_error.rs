//! Why an event cannot be applied to a group.

use thiserror::Error;

use crate::planning::group::MAX_PARTITIONS;

use super::spec::AssignorError;

/// Why an event cannot be applied to a group. The group is as it was before.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CoordinatorError {
    /// An empty name.
    #[error("the {what} id or name is empty, which brokers refuse (INVALID_REQUEST, 42)")]
    Empty {
        /// The kind of thing without a name: a member, an instance or a topic.
        what: &'static str,
    },
    /// A member that is not in the group.
    #[error("the group has no member {member:?}")]
    Member {
        /// Its id.
        member: String,
    },
    /// A member that is in the group already.
    #[error("member {member:?} is listed twice, or its instance id")]
    Twice {
        /// Its id.
        member: String,
    },
    /// A member that comes back with another instance id.
    #[error("member {member:?} joined with another instance id before; a member keeps its instance id")]
    OtherInstance {
        /// Its id.
        member: String,
    },
    /// An instance id of a member that has not left.
    #[error(
        "instance {instance:?} belongs to member {holder:?}, which has not left: the broker refuses another one \
         (UNRELEASED_INSTANCE_ID, 111); let it leave first, for good or to return"
    )]
    Instance {
        /// The instance id.
        instance: String,
        /// The member that has it.
        holder: String,
    },
    /// A member without an instance id that wants to return.
    #[error("member {member:?} is not static: it can only leave for good")]
    NotStatic {
        /// Its id.
        member: String,
    },
    /// A topic that does not exist.
    #[error("there is no topic {topic:?}")]
    Topic {
        /// Its name.
        topic: String,
    },
    /// A partition count of 0, or one that is too large.
    #[error("topic {topic:?} has {count} partitions; give a number from 1 to 2147483647")]
    Count {
        /// Its name.
        topic: String,
        /// The count.
        count: u32,
    },
    /// More partitions than can be planned.
    #[error("with topic {topic:?} there are more than {MAX_PARTITIONS} partitions")]
    TooMany {
        /// The topic's name.
        topic: String,
    },
    /// Fewer partitions than before.
    #[error("topic {topic:?} has {before} partitions and cannot get fewer ({count}); delete it first")]
    Shrinks {
        /// Its name.
        topic: String,
        /// The partition count.
        before: u32,
        /// The count that was given.
        count: u32,
    },
    /// Another id than before.
    #[error("topic {topic:?} has another id: delete it before it is made anew")]
    OtherId {
        /// Its name.
        topic: String,
    },
    /// An id that another topic has or had.
    #[error("the id of topic {topic:?} is that of another topic, or of one that was deleted")]
    IdTaken {
        /// Its name.
        topic: String,
    },
    /// A target with a partition that does not exist, or that another target has too.
    #[error("the targets have partition {partition} of topic {topic:?} twice, or it has only {count}")]
    Partition {
        /// The topic.
        topic: String,
        /// The partition.
        partition: u32,
        /// How many there are.
        count: u32,
    },
    /// The assignor gives no plan.
    #[error(transparent)]
    Assignor(#[from] AssignorError),
}

pub(super) fn check_name(what: &'static str, name: &str) -> Result<(), CoordinatorError> {
    if name.is_empty() { Err(CoordinatorError::Empty { what }) } else { Ok(()) }
}
