//! A simulation: many members on a faulty network. It tests the member's state machine with the embedded coordinator.
//!
//! Every event follows from a seed. A failing seed is printed; it replays with
//! `SEED=… cargo test -p kafka-assignors-core --test simulation`.

mod assigned;
mod assignors;
mod checks;
mod cluster;
mod commits;
mod converted;
mod discovery;
#[path = "../encode/mod.rs"]
mod encode;
mod host;
mod joining;
mod liveness;
mod random;
mod rebalance;
mod script;
mod seeds;
mod sessions;
mod statics;
mod table;
mod world;

use kafka_assignors_core::embedded::coordinator;
use kafka_assignors_core::member::Config;
use world::World;

/// A member's settings, with timeouts so short that each of them can expire within one simulated minute.
fn config(number: u64, assignors: &[&str]) -> Config {
    Config {
        bootstrap: (1..=3).map(cluster::Cluster::address).collect(),
        client_id: Some(format!("c{number}")),
        group_id: cluster::GROUP.to_owned(),
        assignors: assignors.iter().map(|name| assignors::assignor(name)).collect(),
        session_timeout_ms: 10_000,
        heartbeat_interval_ms: 3_000,
        max_poll_interval_ms: 30_000,
        request_timeout_ms: 10_000,
        connect_timeout_ms: 5_000,
        metadata_refresh_ms: 15_000,
        seed: number,
        ..Config::default()
    }
}

/// A world with three brokers and no members.
fn world(seed: u64) -> World {
    let groups = coordinator::Config { initial_rebalance_delay_ms: 0, seed, ..coordinator::Config::default() };
    World::new(seed, 3, groups)
}

/// A stable group of `count` members.
fn group(seed: u64, count: u64, assignors: &[&str], topics: &[(&str, i32)]) -> World {
    let mut world = world(seed);
    for &(name, partitions) in topics {
        world.topic(name, partitions);
    }
    let names: Vec<&str> = topics.iter().map(|&(name, _)| name).collect();
    for number in 0..count {
        world.start(config(number, assignors), &names);
    }
    world.run_until_so(60_000, "the group settles", World::settled);
    world.check();
    world
}
