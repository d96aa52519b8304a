//! GroupMetadataValue, versions 0 to 4: the state of a classic group in one generation.

use super::fields::Fields;
use crate::protocol::Utf8;
use crate::protocol::reader::{ReadError, Reader};

/// The newest version; flexible.
pub(super) const NEWEST: i16 = 4;

/// The state of a classic group in one generation. The coordinator writes it when it handles the leader's SyncGroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMetadata<'a> {
    /// `consumer` for consumers; Connect and others use the group protocol too.
    pub protocol_type: Utf8<'a>,
    /// The generation.
    pub generation: i32,
    /// The assignor that the coordinator selected; `None` while the group has no members.
    pub protocol: Option<Utf8<'a>>,
    /// The leader's member id.
    pub leader: Option<Utf8<'a>>,
    /// The time of the group's last change of state, in milliseconds since 1970 (since version 2); -1 if absent.
    pub state_timestamp: i64,
    /// The members, in the record's order.
    pub members: Vec<GroupMetadataMember<'a>>,
}

impl<'a> GroupMetadata<'a> {
    pub(super) fn read(reader: Reader<'a>, version: i16) -> Result<Self, ReadError> {
        let mut fields = Fields::new(reader, version >= NEWEST);
        Ok(Self {
            protocol_type: fields.string("protocol_type")?,
            generation: fields.reader.i32("generation")?,
            protocol: fields.nullable_string("protocol")?,
            leader: fields.nullable_string("leader")?,
            state_timestamp: if version >= 2 { fields.reader.i64("current_state_timestamp")? } else { -1 },
            members: Self::read_members(fields, version)?,
        })
    }

    fn read_members(mut fields: Fields<'a>, version: i16) -> Result<Vec<GroupMetadataMember<'a>>, ReadError> {
        // The shortest member in the compact form: three empty strings, a timeout and two empty byte fields.
        let count = fields.count(9, "members")?;
        let mut members = Vec::with_capacity(count);
        for _ in 0..count {
            members.push(GroupMetadataMember::read(&mut fields, version)?);
        }
        Ok(members)
    }
}

/// A member of a classic group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupMetadataMember<'a> {
    /// Its id.
    pub member_id: Utf8<'a>,
    /// Its `group.instance.id` (since version 3).
    pub instance_id: Option<Utf8<'a>>,
    /// Its client id.
    pub client_id: Utf8<'a>,
    /// The host from which it connects.
    pub client_host: Utf8<'a>,
    /// In milliseconds (since version 1); -1 if absent.
    pub rebalance_timeout: i32,
    /// In milliseconds.
    pub session_timeout: i32,
    /// The ConsumerProtocolSubscription bytes that it sent for the selected protocol.
    pub subscription: &'a [u8],
    /// ConsumerProtocolAssignment bytes; empty if the leader's SyncGroup did not contain the member.
    pub assignment: &'a [u8],
}

impl<'a> GroupMetadataMember<'a> {
    fn read(fields: &mut Fields<'a>, version: i16) -> Result<Self, ReadError> {
        let member = Self {
            member_id: fields.string("member_id")?,
            instance_id: if version >= 3 { fields.nullable_string("group_instance_id")? } else { None },
            client_id: fields.string("client_id")?,
            client_host: fields.string("client_host")?,
            rebalance_timeout: if version >= 1 { fields.reader.i32("rebalance_timeout")? } else { -1 },
            session_timeout: fields.reader.i32("session_timeout")?,
            subscription: fields.bytes("subscription")?,
            assignment: fields.bytes("assignment")?,
        };
        fields.end("member")?;
        Ok(member)
    }
}
