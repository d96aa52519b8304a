//! The leader's work between JoinGroup and SyncGroup: from the bytes of the members' subscriptions to those of their
//! assignments.
//!
//! There is no object per partition: names become dense ids while the bytes are read, and each assignment is written straight
//! into its place in one slab.

#[cfg(feature = "bench")]
mod floor;
mod handed_out;
mod read;
mod record;
#[cfg(feature = "slowdown")]
mod slowdown;
mod write;

#[cfg(feature = "bench")]
pub use floor::codec_floor;
pub use handed_out::{HandedOut, Memory};
pub use read::{ClaimSource, Fault, FaultReason, Joined, JoinedMember, member_data, read_group};
pub use record::{CLIENT_ID_ALLOWANCE, GROUP_ID_ALLOWANCE, HOST_ALLOWANCE, record_bytes, record_bytes_of_plan};
pub use write::{Assignments, write_assignments};

use handed_out::void_false_claims;

use crate::planning::budget::Limit;
use crate::planning::group::{Group, MANY_CLAIMS, Topics};
use crate::planning::ownership::Ownership;
use crate::planning::plan::Outcome;
use crate::planning::strategy::{self, Strategy};
use crate::protocol::writer::WriteError;

/// The result of a rebalance.
#[derive(Debug, Clone)]
pub struct Performed {
    /// The plan, and the owners before it.
    pub outcome: Outcome,
    /// The members' subscriptions and claims as dense ids, without the claims that the leader knows to be false.
    pub group: Group,
    /// The generation that was being formed, where the client gave one that is not negative.
    pub forming: Option<i32>,
    /// By member of the group, its position in the input.
    pub order: Vec<u32>,
    /// The assignments of `outcome.plan`, by member of the group.
    pub assignments: Assignments,
    /// The generation in the assignments' user data; `None` for a strategy that writes none.
    pub generation: Option<i32>,
    /// The parts of the members' subscriptions that could not be read or not be used.
    pub faults: Vec<Fault>,
    /// The size of the record that the broker will write for this generation: see [`record_bytes`].
    pub record_bytes: u64,
}

/// Plans a rebalance, bytes to bytes. `forming` is the generation that is being formed, where the client knows it. Claims of
/// this generation or a later one are false and do not count. `forming` is written into the assignments' user data; where it is
/// not known, the generation written is one more than the newest that any member claims.
///
/// Every member gets an assignment, even if its bytes are not readable. A member that is listed twice counts once.
///
/// # Errors
/// An assigned topic whose name is longer than the protocol allows. Members cannot cause an error.
pub fn perform_assignment(
    members: &[JoinedMember<'_>],
    topics: Topics,
    strategy: Strategy,
    forming: Option<i32>,
) -> Result<Performed, WriteError> {
    perform_assignment_knowing(members, topics, strategy, forming, &Limit::default(), &Memory::default())
}

/// As [`perform_assignment`], within a limit, for a leader that remembers the plans that it made.
///
/// If the limit was too small, the plan is valid, and the outcome contains the search that ended early. Claims that the memory
/// proves false do not count, and are among the faults.
///
/// # Errors
/// As [`perform_assignment`].
pub fn perform_assignment_knowing(
    members: &[JoinedMember<'_>],
    topics: Topics,
    strategy: Strategy,
    forming: Option<i32>,
    limit: &Limit<'_>,
    memory: &Memory<'_>,
) -> Result<Performed, WriteError> {
    #[cfg(feature = "slowdown")]
    if slowdown::is_due() {
        drop(std::hint::black_box(perform(members, topics.clone(), strategy, forming, limit, memory)));
    }
    perform(members, topics, strategy, forming, limit, memory)
}

fn perform(
    members: &[JoinedMember<'_>],
    topics: Topics,
    strategy: Strategy,
    forming: Option<i32>,
    limit: &Limit<'_>,
    memory: &Memory<'_>,
) -> Result<Performed, WriteError> {
    let (opened, ownership) = open(members, topics, strategy, forming, memory);
    let outcome = strategy::plan(&opened.group, strategy, ownership, limit);
    opened.close(members, outcome)
}

/// A group as its leader has read it: all of a [`Performed`] but the plan.
#[derive(Debug, Clone)]
pub struct Opened {
    /// As [`Performed::group`].
    pub group: Group,
    /// As [`Performed::order`].
    pub order: Vec<u32>,
    /// As [`Performed::faults`].
    pub faults: Vec<Fault>,
    /// As [`Performed::forming`].
    pub forming: Option<i32>,
    /// As [`Performed::generation`].
    pub generation: Option<i32>,
}

/// The first half of [`perform_assignment_knowing`], before the plan: reads the members and settles their claims.
#[must_use]
pub fn open(
    members: &[JoinedMember<'_>],
    topics: Topics,
    strategy: Strategy,
    forming: Option<i32>,
    memory: &Memory<'_>,
) -> (Opened, Ownership) {
    let source = ClaimSource::of(strategy);
    let forming = forming.filter(|&generation| generation >= 0);
    let Joined { mut group, order, mut faults, mut max_generation } = read_group(members, topics, source);
    for (member, claims) in void_false_claims(&mut group, source, memory, forming, &mut max_generation) {
        let (position, member_id) = (order[member as usize], group.member_ids().get(member).to_owned());
        faults.push(Fault { position, member_id, reason: FaultReason::NotHandedOut(claims) });
    }
    faults.sort_by_key(|fault| fault.position);
    let ownership = strategy::settle(&group, strategy, forming);
    group.pack_claims(&ownership.owner, MANY_CLAIMS);
    let generation = source.generation(forming, max_generation);
    (Opened { group, order, faults, forming, generation }, ownership)
}

impl Opened {
    /// The second half, after the plan: writes the assignments. `members` are those that were opened.
    ///
    /// # Errors
    /// As [`perform_assignment`].
    pub fn close(self, members: &[JoinedMember<'_>], outcome: Outcome) -> Result<Performed, WriteError> {
        let Self { group, order, faults, forming, generation } = self;
        let assignments = write_assignments(&group, &outcome.plan, generation)?;
        let record_bytes = record_bytes(members, &order, &assignments);
        Ok(Performed { outcome, group, forming, order, assignments, generation, faults, record_bytes })
    }
}
