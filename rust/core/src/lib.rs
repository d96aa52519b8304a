//! Who gets which partition of a Kafka consumer group.
//!
//! The crate is pure: no I/O, no clock, no randomness of its own. Names are interned once at the edge
//! ([`group`]); inside there are dense ids and flat arrays.
#![forbid(unsafe_code)]

pub mod broker;
pub mod budget;
pub mod cooperative;
pub mod coordinator;
pub mod expression;
pub mod group;
pub mod lag;
pub mod leader;
pub mod membership;
pub mod offsets_topic;
pub mod ownership;
pub mod partitioner;
pub mod plan;
pub mod protocol;
pub mod range;
pub mod replay;
pub mod round_robin;
pub mod score;
pub mod sticky;
pub mod strategy;
pub mod stream_join;
mod subscribers;
pub mod verify;
pub mod wire;
