//! A simulation: members of the consumer protocol (KIP-848) on a faulty network, with a model of the broker's coordinator.
//!
//! Every event follows from a seed. A failing seed is printed; it replays with
//! `SEED=… cargo test -p kafka-assignors-core --test consumer_protocol`.

mod coordinator;
#[path = "../simulation/random.rs"]
#[allow(dead_code)]
mod random;
mod scenarios;
mod seeds;
mod table;
mod world;
