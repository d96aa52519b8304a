//! An embedded Kafka as state machines without I/O. Tests, demos and the simulation use it instead of a cluster.

pub mod broker;
pub mod coordinator;
mod faults;
mod refusal;
