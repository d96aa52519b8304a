//! Random faults, from seeds. After the faults every partition must have one owner.

use crate::coordinator::Rules;
use crate::random::Random;
use crate::world::{World, config};
use kafka_assignors_core::member::Event;
use kafka_assignors_core::protocol::ErrorCode;
use std::ops::Range;

const FAULTS_MS: u64 = 20_000;

fn rules(random: &mut Random) -> Rules {
    let newest = random.one_in(2);
    Rules {
        plan_interval: if newest { 1_000 } else { 0 },
        older_epochs_commit: newest,
        known_may_join: newest || random.one_in(2),
        session: 10_000,
        interval: 5_000,
    }
}

const SUBSCRIPTIONS: &[(&[&str], Option<&str>)] =
    &[(&["t"], None), (&["t", "u"], None), (&["u"], None), (&[], Some("t.*")), (&["u"], Some("t.*"))];

fn start(world: &mut World, random: &mut Random, instance: Option<usize>, statics: bool) -> usize {
    let number = world.hosts.len();
    let mut config = config(number);
    let instance = instance.unwrap_or(number);
    config.group_instance_id = statics.then(|| format!("i{instance}"));
    let host = world.start(config, &["t", "u"], None);
    world.hosts[host].callback_ms = random.below(300);
    world.hosts[host].tells_neighbours = random.one_in(2);
    host
}

fn fault(world: &mut World, random: &mut Random, statics: bool) {
    let host = random.below(world.hosts.len() as u64) as usize;
    let lives = world.hosts[host].alive && !world.hosts[host].closed;
    match random.below(14) {
        0 => world.cut(|other, _| other == host),
        1 => {
            let node = 1 + random.below(2) as i32;
            world.cut(|_, other| other == node);
        }
        2 if lives => world.kill(host),
        3 => {
            start(world, random, None, statics);
        }
        4 | 5 => {
            world.coordinator = 1 + random.below(2) as i32;
            world.loading_until = world.now + random.below(2_000);
            let now = world.now;
            world.group.loaded(now);
        }
        6 if lives => world.hosts[host].polls ^= true,
        7 if lives => world.close(host),
        8 => {
            let size = world.group.topics["t"].1 + 1;
            if size < 12 {
                world.group.topic("t", size);
            }
        }
        9 if lives => {
            let (topics, expression) = SUBSCRIPTIONS[random.below(SUBSCRIPTIONS.len() as u64) as usize];
            world.subscribe(host, topics, expression);
        }
        10 if lives => world.handle(host, Event::GroupRebalances { generation: random.below(30) as i32 }),
        11 => {
            world.group.delete("u");
            world.anew.insert("u".to_owned());
            if random.one_in(2) {
                world.run(random.below(1_000));
            }
            world.group.topic("u", 1 + random.below(4) as i32);
            world.stale_metadata_until = world.now + random.below(1_000);
        }
        12 if lives => {
            let codes = [
                ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
                ErrorCode::COORDINATOR_NOT_AVAILABLE,
                ErrorCode::NOT_COORDINATOR,
                ErrorCode::REQUEST_TIMED_OUT,
                ErrorCode::TOPIC_AUTHORIZATION_FAILED,
            ];
            world.whims.push_back(codes[random.below(codes.len() as u64) as usize]);
        }
        _ => {
            world.unreachable.clear();
            if random.one_in(2) {
                world.unreachable.insert(host);
                world.cut(|other, _| other == host);
            }
        }
    }
}

fn simulate(seed: u64) {
    let mut random = Random::new(seed ^ 0x848);
    let rules = rules(&mut random);
    let mut world = World::new(seed, rules);
    world.group.topic("t", 5);
    world.group.topic("u", 3);
    let statics = random.one_in(4);
    for _ in 0..random.between(1, 4) {
        start(&mut world, &mut random, None, statics);
    }
    world.delay = random.between(1, 200);
    world.cut_one_in = [0, 0, 200, 40][random.below(4) as usize];
    let end = world.now + FAULTS_MS;
    while world.now < end {
        world.run(random.between(10, 2_500));
        fault(&mut world, &mut random, statics);
    }
    // The calm after the faults: every application polls, and a new member makes sure that the group is not empty.
    world.cut_one_in = 0;
    world.delay = 5;
    world.unreachable.clear();
    world.whims.clear();
    for host in 0..world.hosts.len() {
        world.hosts[host].polls = true;
        if world.hosts[host].alive && !world.hosts[host].closed {
            world.subscribe(host, &["t", "u"], None);
        }
    }
    start(&mut world, &mut random, None, statics);
    let wanted = world.all(&["t", "u"]);
    world.run_until(60_000, "every partition has an owner", |world| world.settled(&wanted));
    world.run(12_000);
    assert!(world.settled(&wanted), "it does not last\n{}", world.describe());
    for host in &world.hosts {
        let fatal = host.fatal.as_ref().map(|(code, _)| *code);
        // A static member that was fenced cannot return before its session ends.
        let allowed = fatal.is_none() || statics && fatal == Some(ErrorCode::UNRELEASED_INSTANCE_ID);
        assert!(allowed, "{:?}", host.fatal);
    }
    for host in 0..world.hosts.len() {
        world.close(host);
    }
    world.run_until(8_000, "all have left", |world| world.hosts.iter().all(|host| !host.alive || host.closed));
    assert!(world.hosts.iter().all(|host| host.holds.is_empty()), "{}", world.describe());
}

/// Prints the failing seed.
struct Naming(u64);

impl Drop for Naming {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {0} failed: SEED={0} cargo test -p kafka-assignors-core --test consumer_protocol", self.0);
        }
    }
}

/// Runs the seeds with these remainders after division by 16.
fn run(remainders: Range<u64>) {
    if let Ok(seed) = std::env::var("SEED") {
        let seed: u64 = seed.parse().expect("SEED is a number");
        let _naming = Naming(seed);
        // Only the test without `#[ignore]` runs this seed.
        if remainders.contains(&0) {
            simulate(seed);
        }
        return;
    }
    let factor: u64 = std::env::var("SEED_FACTOR").map_or(1, |factor| factor.parse().expect("SEED_FACTOR is a number"));
    for seed in (0..2_000 * factor).filter(|seed| remainders.contains(&(seed % 16))) {
        let _naming = Naming(seed);
        simulate(seed);
    }
}

#[test]
fn seeds_of_make_test() {
    run(0..1);
}

// Four tests, since each runs on a core of its own.

#[test]
#[ignore = "part of `make check`: the other seeds"]
fn seeds_1_to_3() {
    run(1..4);
}

#[test]
#[ignore = "part of `make check`: the other seeds"]
fn seeds_4_to_7() {
    run(4..8);
}

#[test]
#[ignore = "part of `make check`: the other seeds"]
fn seeds_8_to_11() {
    run(8..12);
}

#[test]
#[ignore = "part of `make check`: the other seeds"]
fn seeds_12_to_15() {
    run(12..16);
}
