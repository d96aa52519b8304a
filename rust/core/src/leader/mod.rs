//! What the leader of a group does between JoinGroup and SyncGroup: the members' bytes in, their assignments' bytes out.
//!
//! Nothing on the way is an object per partition: names become dense ids while the bytes are read, and each assignment is
//! written straight into its place in one slab.

mod handed_out;
mod read;
mod record;
#[cfg(slowdown)]
mod slowdown;
mod write;

pub use handed_out::{HandedOut, Memory};
pub use read::{ClaimSource, Fault, Joined, JoinedMember, Reason, read_group};
pub use record::{
    CLIENT_ID_ALLOWANCE, DEFAULT_RECORD_LIMIT, GROUP_ID_ALLOWANCE, HOST_ALLOWANCE, record_bytes, record_bytes_of_plan,
};
pub use write::{Assignments, write_assignments};

use handed_out::void_false_claims;

use crate::budget::Limit;
use crate::group::{Csr, Group, NONE, Topics};
use crate::plan::Plan;
use crate::strategy::{self, Outcome, Strategy};
use crate::wire::writer::WriteError;

/// A rebalance, done.
#[derive(Debug, Clone)]
pub struct Performed {
    /// The plan and what it was made from.
    pub outcome: Outcome,
    /// What the members sent, as dense ids, but for the claims: those are settled in `outcome`.
    pub group: Group,
    /// By member of the group, its position in the input.
    pub order: Vec<u32>,
    /// The assignments of `outcome.plan`, by member of the group.
    pub assignments: Assignments,
    /// The generation in the assignments' user data; `None` for a strategy that writes none.
    pub generation: Option<i32>,
    /// What could not be read, and what that cost.
    pub faults: Vec<Fault>,
    /// The size of the record that the broker will write for this generation: see [`record_bytes`].
    pub record_bytes: u64,
}

/// Plans a rebalance, bytes to bytes. `forming` is the generation that is being formed, where the client knows it: claims
/// that are not older are false and do not count, and it goes into the assignments' user data. Without it, that is one more
/// than the newest generation that any member claims.
///
/// Whatever the members' bytes are, there is an assignment for every one of them; a member listed twice counts once.
///
/// # Errors
/// None that members can cause: only a topic whose name is longer than the protocol allows, if it were assigned.
pub fn perform_assignment(
    members: &[JoinedMember<'_>],
    topics: Topics,
    strategy: Strategy,
    forming: Option<i32>,
) -> Result<Performed, WriteError> {
    perform_assignment_knowing(members, topics, strategy, forming, &Limit::default(), &Memory::default())
}

/// As [`perform_assignment`], within a limit, for a leader that remembers what it handed out.
///
/// Where the limit was too small, the plan is valid all the same, and the outcome says which search ended early. Claims that
/// are false by the memory do not count, and are among the faults.
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
    #[cfg(slowdown)]
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
    let source = ClaimSource::of(strategy);
    let forming = forming.filter(|&generation| generation >= 0);
    let Joined { mut group, order, mut faults, mut max_generation } = read_group(members, topics, source);
    for (member, claims) in void_false_claims(&mut group, source, memory, forming, &mut max_generation) {
        let (position, member_id) = (order[member as usize], group.member_ids().get(member).to_owned());
        faults.push(Fault { position, member_id, reason: Reason::NotHandedOut(claims) });
    }
    faults.sort_by_key(|fault| fault.position);
    let ownership = strategy::settle(&group, strategy, forming);
    group.forget_claims();
    let outcome = strategy::plan(&group, strategy, ownership, limit);
    let generation = source.generation(forming, max_generation);
    let assignments = write_assignments(&group, &outcome.plan, generation)?;
    let record_bytes = record_bytes(members, &order, &assignments);
    Ok(Performed { outcome, group, order, assignments, generation, faults, record_bytes })
}

/// What the bytes alone cost: reads them as [`perform_assignment`] does and writes an assignment of the same size with the
/// same code, but plans nothing: the partitions of each topic are dealt in turn to the members that subscribe to it,
/// whatever they held and however much they have.
///
/// # Errors
/// As [`perform_assignment`].
pub fn codec_floor(
    members: &[JoinedMember<'_>],
    topics: Topics,
    source: ClaimSource,
) -> Result<(Joined, Assignments), WriteError> {
    let joined = read_group(members, topics, source);
    let plan = deal_in_turn(&joined.group);
    let assignments = write_assignments(&joined.group, &plan, source.generation(None, joined.max_generation))?;
    Ok((joined, assignments))
}

fn deal_in_turn(group: &Group) -> Plan {
    let subscribed = group.patterns().transpose(group.topics().len());
    let members = Csr::group_by(group.pattern_of(), group.patterns().len());
    let mut owner = vec![NONE; group.topics().partitions()];
    let mut subscribers: &[u32] = &[];
    let (mut mixed, mut turn) = (Vec::new(), 0);
    for topic in 0..group.topics().len() as u32 {
        match subscribed.row(topic) {
            &[pattern] => subscribers = members.row(pattern),
            patterns => {
                mixed.clear();
                patterns.iter().for_each(|&pattern| mixed.extend_from_slice(members.row(pattern)));
            }
        }
        let subscribers = if subscribed.row(topic).len() == 1 { subscribers } else { &mixed };
        let range = group.topics().range(topic);
        for slot in &mut owner[range.start as usize..range.end as usize] {
            turn = if turn < subscribers.len() { turn } else { 0 };
            *slot = subscribers.get(turn).copied().unwrap_or(NONE);
            turn += 1;
        }
    }
    Plan { owner }
}
