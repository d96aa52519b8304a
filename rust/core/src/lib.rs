//! Who gets which partition of a Kafka consumer group.
//!
//! The crate is pure: no I/O, no clock, no randomness of its own. Names are interned once at the edge
//! ([`group`]); inside there are dense ids and flat arrays.
#![forbid(unsafe_code)]

pub mod group;
pub mod ownership;
pub mod plan;
pub mod score;
