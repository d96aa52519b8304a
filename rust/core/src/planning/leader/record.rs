//! How large the broker's record of a group is.
//!
//! For every generation the broker writes one record to `__consumer_offsets`, with the subscription and the assignment of
//! every member. If it does not fit, SyncGroup fails and the group never gets stable.

use super::read::JoinedMember;
use super::write::{Assignments, list_sizes};
use crate::group::{Group, NONE};
use crate::plan::Plan;
use crate::strategy::Strategy;

/// The broker's default `max.message.bytes`, the most that a group's record may have unless the topic
/// `__consumer_offsets` is configured for more.
pub const DEFAULT_RECORD_LIMIT: u64 = 1_048_588;

/// Assumed for a group id, which the leader's input does not have.
pub const GROUP_ID_ALLOWANCE: u64 = 64;

/// Assumed for a static member's client id. A dynamic member's id begins with it and tells it.
pub const CLIENT_ID_ALLOWANCE: u64 = 24;

/// Assumed for a member's host: an IPv4 address and the slash in front of it.
pub const HOST_ALLOWANCE: u64 = 16;

/// What a broker appends to the client id to make a member id: a hyphen and a UUID.
const UUID_SUFFIX: u64 = 37;

/// The head of a record batch (61), that of its only record with the longest lengths (5 + 1 + 1 + 1 + 5 + 5 + 1), the
/// key's version and length of the group id (4), and the value's fields before the members, without their texts: version
/// (2), protocol type (2 + 8), generation (4), protocol name (2, and 23 for the longest that this package has), leader (2),
/// timestamp (8), number of members (4).
const FIXED: u64 = 61 + 19 + 4 + 2 + 10 + 4 + 25 + 2 + 8 + 4;

/// The fields of a member without their contents: the lengths of member id, instance id, client id and host, two timeouts,
/// the lengths of subscription and assignment.
const MEMBER: u64 = 4 * 2 + 2 * 4 + 2 * 4;

#[derive(Default)]
struct Record {
    bytes: u64,
    longest_id: u64,
}

impl Record {
    fn member(&mut self, id: &str, instance_id: Option<&str>, subscription: u64, assignment: u64) {
        let id = id.len() as u64;
        let client_id = match instance_id {
            None if id > UUID_SUFFIX => id - UUID_SUFFIX,
            _ => CLIENT_ID_ALLOWANCE,
        };
        let instance_id = instance_id.map_or(0, str::len) as u64;
        self.bytes += MEMBER + id + instance_id + client_id + HOST_ALLOWANCE + subscription + assignment;
        self.longest_id = self.longest_id.max(id);
    }

    fn total(self) -> u64 {
        FIXED + GROUP_ID_ALLOWANCE + self.longest_id + self.bytes
    }
}

/// The size in bytes of the record batch that the broker writes for a generation: GroupMetadataValue, version 3. It is
/// exact but for what the leader is not told: the group id, static members' client ids and all hosts, for which allowances
/// stand.
///
/// `order` has the positions of the group's members in `members`.
#[must_use]
pub fn record_bytes(members: &[JoinedMember<'_>], order: &[u32], assignments: &Assignments) -> u64 {
    let mut record = Record::default();
    for (&position, assignment) in order.iter().zip(assignments.iter()) {
        let JoinedMember { id, instance_id, metadata } = members[position as usize];
        record.member(id, instance_id, metadata.len() as u64, assignment.len() as u64);
    }
    record.total()
}

/// As [`record_bytes`], for a plan whose members' bytes are not at hand: with what members of this package would send once
/// they have what the plan gives them. O(partitions + subscriptions); nothing is encoded.
#[must_use]
pub fn record_bytes_of_plan(group: &Group, plan: &Plan, strategy: Strategy) -> u64 {
    let names = group.topics().names();
    let racks = group.topics().racks().names.names();
    let topics = |row: &[u32]| row.iter().map(|&topic| 2 + names.get(topic).len() as u64).sum::<u64>();
    let topics: Vec<u64> = group.patterns().rows().map(topics).collect();
    let mut record = Record::default();
    for (member, size) in (0u32..).zip(list_sizes(group, plan)) {
        let list = 4 + size.bytes as u64;
        let rack = group.racks()[member as usize];
        let rack = if rack == NONE { 0 } else { racks.get(rack).len() as u64 };
        // The subscription's own fields: version, count of topics, length of user data, generation, length of rack.
        let (user_data, owned, generation) = match strategy {
            Strategy::Sticky(_) | Strategy::Lag(_) => (list + 4, 4, 4),
            Strategy::CooperativeSticky(_) => (4, list, 4),
            Strategy::StreamJoin { cooperative } => {
                let topics = group.subscription(member).len().max(1) as u64;
                let numbers = size.partitions.div_ceil(topics);
                (8 + 4 * numbers, if cooperative { list } else { 4 }, 4)
            }
            Strategy::Range | Strategy::RoundRobin => (0, 4, 0),
        };
        let subscription =
            2 + 4 + topics[group.pattern_of()[member as usize] as usize] + 4 + user_data + owned + 4 + 2 + rack;
        let assignment = 2 + list + 4 + generation;
        record.member(group.member_ids().get(member), group.instance_id(member), subscription, assignment);
    }
    record.total()
}
