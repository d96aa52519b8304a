//! The size of the record that a broker writes for a group: a batch with one record, GroupMetadata key version 2 and
//! value version 3. A group whose record exceeds `max.message.bytes` never becomes Stable.

use super::group::ClassicGroup;
use crate::protocol::record_batch::HEADER_BYTES;

/// The size in bytes of the batch for `group`. `assignment` gives the size of a member's assignment.
pub(super) fn batch_bytes(group: &ClassicGroup, assignment: impl Fn(&str) -> usize) -> u64 {
    let string = |length: usize| 2 + length as u64;
    let optional = |text: Option<&String>| string(text.map_or(0, String::len));
    let bytes = |length: usize| 4 + length as u64;
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
    // Attributes, timestamp delta, offset delta, header count: a byte each.
    let body = 4 + zigzag_bytes(key) + key + zigzag_bytes(value) + value;
    HEADER_BYTES + zigzag_bytes(body) + body
}

/// The length of a VARINT for a non-negative number.
fn zigzag_bytes(number: u64) -> u64 {
    let bits = 64 - (number << 1).leading_zeros();
    u64::from(bits.max(1).div_ceil(7))
}

#[cfg(test)]
mod tests {
    use super::zigzag_bytes;

    #[test]
    fn varint_lengths() {
        for (number, length) in [(0, 1), (63, 1), (64, 2), (8191, 2), (8192, 3), (1_048_575, 3), (1_048_576, 4)] {
            assert_eq!(zigzag_bytes(number), length, "{number}");
        }
    }
}
