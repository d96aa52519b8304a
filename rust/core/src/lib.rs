//! Assigns the partitions of a Kafka consumer group to its members.
//!
//! The crate is pure: it does no I/O, reads no clock and draws no random number. Names become dense ids once, at the edge
//! ([`planning::group`]); behind it there are only ids and flat arrays.
//!
//! A room, as docs/design.md calls these modules, imports only the rooms that its arrows lead to. The values of planning are the
//! modules group, ownership, objective, plan, restrictions, score, weights and budget.
//!
//! ```text
//!      verify            a proof: imports only the values of planning, no solver
//!         │
//!         ▼
//!     planning ◄── embedded     member     offsets_topic     partitioner
//!         │           │           │              │                │
//!         └───────────┴───────────┼──────────────┴────────────────┘
//!                                 ▼
//!                             protocol       split_mix (numbers from a seed): member and embedded import it
//!                                            expression (of a subscription): embedded imports it
//! ```
#![forbid(unsafe_code)]

/// The example of README, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

/// The crate under its public name, which the tests' encoders import.
#[cfg(test)]
extern crate self as kafka_assignors_core;
#[path = "../tests/encode/mod.rs"]
#[cfg(test)]
mod encode;

pub mod embedded;
pub mod expression;
pub mod member;
pub mod offsets_topic;
pub mod partitioner;
pub mod planning;
pub mod protocol;
pub mod split_mix;
pub mod verify;
