//! The size of the broker's record of a group.
//!
//! For every generation the broker writes one record to `__consumer_offsets`, with the subscription and the assignment of
//! every member. If it does not fit, SyncGroup fails and the group never gets stable.

use super::read::JoinedMember;
use super::write::{Assignments, list_sizes};
use crate::planning::group::{Group, NONE};
use crate::planning::plan::Plan;
use crate::planning::strategy::Strategy;
use crate::protocol::record_batch::HEADER_BYTES;

/// The assumed length of a group id, which the leader does not know.
pub const GROUP_ID_ALLOWANCE: u64 = 64;

/// The assumed length of a static member's client id. A dynamic member's id begins with its client id.
pub const CLIENT_ID_ALLOWANCE: u64 = 24;

/// The assumed length of a member's host: an IPv4 address and the slash in front of it.
pub const HOST_ALLOWANCE: u64 = 16;

/// The length of the suffix that a broker appends to the client id to make a member id: a hyphen and a UUID.
const UUID_SUFFIX: u64 = 37;

/// The fields of the only record of the batch, with the longest lengths: length, attributes, timestamp delta, offset delta,
/// length of the key, length of the value, number of headers.
const RECORD_FIELDS: u64 = 5 + 1 + 1 + 1 + 5 + 5 + 1;

/// The key's version and the length of the group id.
const KEY_FIELDS: u64 = 2 + 2;

/// The value's fields before the members, without the leader's id: version, protocol type (`consumer`), generation, protocol
/// name (23 bytes at most in this package), length of the leader's id, timestamp, number of members.
const VALUE_FIELDS: u64 = 2 + (2 + 8) + 4 + (2 + 23) + 2 + 8 + 4;

/// The bytes that every group's record has.
const FIXED: u64 = HEADER_BYTES + RECORD_FIELDS + KEY_FIELDS + VALUE_FIELDS;

/// The fields of a member without their contents: the lengths of member id, instance id, client id and host, two timeouts,
/// the lengths of subscription and assignment.
const MEMBER: u64 = 4 * 2 + 2 * 4 + 2 * 4;

#[derive(Default)]
struct RecordSize {
    bytes: u64,
    longest_id: u64,
}

impl RecordSize {
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

/// The size in bytes of the record batch that the broker writes for a generation: GroupMetadataValue, version 3. The group id,
/// static members' client ids and all hosts are unknown to the leader: assumed lengths stand for them. The rest is exact.
///
/// `order` has the positions of the group's members in `members`.
#[must_use]
pub fn record_bytes(members: &[JoinedMember<'_>], order: &[u32], assignments: &Assignments) -> u64 {
    let mut record = RecordSize::default();
    for (&position, assignment) in order.iter().zip(assignments.iter()) {
        let JoinedMember { id, instance_id, metadata } = members[position as usize];
        record.member(id, instance_id, metadata.len() as u64, assignment.len() as u64);
    }
    record.total()
}

/// As [`record_bytes`], for a plan without the members' bytes: with the subscriptions that members of this package would send
/// once they have the plan's partitions. O(partitions + subscriptions); nothing is encoded.
#[must_use]
pub fn record_bytes_of_plan(group: &Group, plan: &Plan, strategy: Strategy) -> u64 {
    let names = group.topics().names();
    let racks = group.topics().racks().names.names();
    let topics = |row: &[u32]| row.iter().map(|&topic| 2 + names.get(topic).len() as u64).sum::<u64>();
    let topics: Vec<u64> = group.subscriptions().rows().map(topics).collect();
    let mut record = RecordSize::default();
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
            // Version, generation, the claims of an eager member, and the length of the data that the assignor adds about it.
            Strategy::Custom { cooperative: false } => (2 + 4 + list + 4, 4, 4),
            Strategy::Custom { cooperative: true } => (2 + 4 + 4 + 4, list, 4),
            Strategy::Range | Strategy::RoundRobin | Strategy::ServerSide(..) => (0, 4, 0),
        };
        let subscription =
            2 + 4 + topics[group.subscription_of()[member as usize] as usize] + 4 + user_data + owned + 4 + 2 + rack;
        let assignment = 2 + list + 4 + generation;
        record.member(group.member_ids().get(member), group.instance_id(member), subscription, assignment);
    }
    record.total()
}
