//! Bytes of the group protocol, read with bounds and written in one canonical form.

pub mod reader;
pub mod writer;
