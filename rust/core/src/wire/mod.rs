//! Bytes of the group protocol, read with bounds and written in one canonical form.
//!
//! What a decoder lends are views into the input: nothing is copied and no object is made per partition. Content that has
//! the right shape passes (unknown topics, negative numbers, repeats); what counts is for the caller to say.

pub mod assignment;
pub mod reader;
pub mod subscription;
pub mod topic_partitions;
pub mod user_data;
pub mod writer;
