//! The tests of the core, in one program: each program of its own would compile and link the core's generic code again.
//!
//! Two have a program of their own since they count allocations, and `simulation` since it is run with a seed.

#[path = "../encode/mod.rs"]
mod encode;
#[path = "../oracle/mod.rs"]
mod oracle;

mod custom;
mod fuzz_cases;
mod handed_out;
mod kafka_assignors;
mod lag;
mod leader;
mod limits;
mod partitioner;
mod sticky_oracle;
mod sticky_rules;
mod stream_join;
mod verify;
mod verify_mutations;
mod weighted;
mod wire_golden;
mod wire_properties;
