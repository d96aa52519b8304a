//! Sizes of record batches, magic 2.

/// The bytes of a batch before its first record.
pub const HEADER_BYTES: u64 = 61;

/// The broker's default `max.message.bytes`: the size limit of a group's record in `__consumer_offsets`, unless that
/// topic has another setting.
pub const DEFAULT_RECORD_LIMIT: u64 = 1_048_588;
