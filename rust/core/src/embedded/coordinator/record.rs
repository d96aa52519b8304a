//! The size of the record that a broker writes for a group: a batch with one record, GroupMetadata key version 2 and
//! value version 3. A group whose record exceeds `max.message.bytes` never becomes Stable.

use super::group::ClassicGroup;
use crate::protocol::record_batch::{HEADER_BYTES, record_size};

/// The size in bytes of the batch for `group`. `assignment` gives the size of a member's assignment.
pub(super) fn batch_bytes(group: &ClassicGroup, assignment: impl Fn(&str) -> usize) -> u64 {
    let string = |length: usize| 2 + length;
    let optional = |text: Option<&String>| string(text.map_or(0, String::len));
    let bytes = |length: usize| 4 + length;
    // Version, generation, state timestamp, member count.
    let mut value = 2 + 4 + 8 + 4;
    value += optional(group.protocol_type.as_ref());
    value += optional(group.protocol.as_ref());
    value += optional(group.leader.as_ref());
    for (id, member) in &group.members {
        value += string(id.len());
        value += optional(member.instance_id.as_ref());
        value += string(member.client_id.len());
        value += string(member.client_host.len());
        // Rebalance timeout, session timeout.
        value += 4 + 4;
        value += bytes(group.metadata_of(member).len());
        value += bytes(assignment(id));
    }
    let key = 2 + string(group.id.len());
    HEADER_BYTES + record_size(Some(key), Some(value))
}
