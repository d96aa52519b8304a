//! A rebalance, a plan, a replay or a decoding for the gate to count, three times over: `gate STRATEGY FILE`,
//! `gate lag|restricted TOPICS PARTITIONS MEMBERS`, `gate replay REBALANCES PARTITIONS MEMBERS`, or `gate decode FILE`.
//!
//! The file of a strategy is a group as `benches/race/points.py` writes it. The file of `decode` has records of
//! `__consumer_offsets`: their number, and of each the length of the key, the key, the length of the value, and the value.
//! Callgrind collects the instructions of the functions whose names begin with `counted`; this program counts their
//! allocations and prints them as JSON.

mod grouped;
mod replayed;

use std::hint::black_box;
use std::ops::ControlFlow;
use std::process::ExitCode;

use grouped::Size;
use kafka_assignors_core::offsets_topic::{Record, rows};
use kafka_assignors_core::planning::budget::Limit;
use kafka_assignors_core::planning::group::{Group, TopicSpec, Topics};
use kafka_assignors_core::planning::lag::{Keep, Options, Scope};
use kafka_assignors_core::planning::leader::{JoinedMember, Performed, perform_assignment};
use kafka_assignors_core::planning::objective::Objective;
use kafka_assignors_core::planning::ownerless::Intervals;
use kafka_assignors_core::planning::ownership::Ownership;
use kafka_assignors_core::planning::plan::Outcome;
use kafka_assignors_core::planning::replay::{Assigned, History, RebalanceOutcome, Replayer};
use kafka_assignors_core::planning::restrictions::Restrictions;
use kafka_assignors_core::planning::strategy::{Strategy, plan, plan_restricted, settle};
use kafka_assignors_core::verify::verify_restricted;

/// The slowdown of `make gate-proof` is due in every third call, so with three calls it happens once.
const CALLS: usize = 3;

/// The number of a partition's replicas. They are on consecutive racks, from that of the partition's number on.
const REPLICAS: usize = 2;

/// Reads a file whose lengths are trusted: a wrong one ends the program.
struct File<'a>(&'a [u8]);

impl<'a> File<'a> {
    fn take(&mut self, size: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(size);
        self.0 = rest;
        taken
    }

    fn number(&mut self) -> usize {
        let bytes = self.take(4).try_into().expect("four bytes");
        usize::try_from(i32::from_be_bytes(bytes)).expect("a count or a length")
    }

    fn string(&mut self) -> &'a str {
        let length = u16::from_be_bytes(self.take(2).try_into().expect("two bytes"));
        std::str::from_utf8(self.take(length.into())).expect("UTF-8")
    }

    fn list<T>(&mut self, read: impl Fn(&mut Self) -> T) -> Vec<T> {
        (0..self.number()).map(|_| read(self)).collect()
    }
}

/// The only part of this program that the gate counts, where it counts a rebalance.
#[inline(never)]
fn counted(members: &[JoinedMember<'_>], topics: Topics, strategy: Strategy) -> Performed {
    perform_assignment(members, topics, strategy, None).expect("topics whose names the protocol allows")
}

/// The only part of this program that the gate counts, where it counts a replay.
#[inline(never)]
fn counted_replay(replayer: &mut Replayer<'_>, history: History<'_>) -> u64 {
    let mut moved = 0;
    let row = |row: RebalanceOutcome, _: Assigned<'_>| {
        moved += row.figures.map_or(0, |figures| figures.moved);
        ControlFlow::Continue(())
    };
    let mut planner = |_: usize, _: &Group, _: &Ownership| Err("sticky needs no planner".to_owned());
    replayer.replay(history, || 0, &mut planner, row).expect("a history that can be replayed");
    moved
}

/// The only part of this program that the gate counts, where it counts a decoding.
#[inline(never)]
fn counted_decoding(records: &[Record<'_>]) -> u64 {
    let mut found = 0;
    for &record in records {
        rows(record, None, |row| {
            black_box(row);
            found += 1;
        });
    }
    found
}

/// The only part of this program that the gate counts, where it counts a plan by lag.
#[inline(never)]
fn counted_lag(group: &Group) -> Outcome {
    let options = Options { scope: Scope::Group, max_skew: None, keep: Keep::Owners { threshold: 0 } };
    let strategy = Strategy::Lag(options);
    plan(group, strategy, settle(group, strategy, None), &Limit::default())
}

/// The only part of this program that the gate counts, where it counts a plan under restrictions, the reasons of the partitions
/// that it leaves out, and its verification.
#[inline(never)]
fn counted_restricted(group: &Group, restrictions: Restrictions) -> usize {
    let ownership = settle(group, Strategy::Sticky(Objective::default()), None);
    let outcome = plan_restricted(group, ownership, restrictions.clone(), &Limit::default());
    verify_restricted(group, &restrictions, None, &outcome, &Limit::default()).expect("a valid plan");
    outcome.unassigned(group).count()
}

fn count_plans(name: &str, size: Size) -> ExitCode {
    let group = size.group();
    let restrictions = size.restrictions();
    report(|| {
        for _ in 0..CALLS {
            match name {
                "lag" => drop(black_box(counted_lag(&group))),
                _ => _ = black_box(counted_restricted(&group, restrictions.clone())),
            }
        }
    });
    ExitCode::SUCCESS
}

fn count_decodings(path: &str) -> ExitCode {
    let bytes = std::fs::read(path).expect("a file of records");
    let records = File(&bytes).list(|file| {
        let mut part = || {
            let length = file.number();
            Some(file.take(length))
        };
        let (key, value) = (part(), part());
        Record { key, value, partition: Some(0), offset: Some(0), timestamp: Some(0) }
    });
    report(|| {
        for _ in 0..CALLS {
            black_box(counted_decoding(&records));
        }
    });
    ExitCode::SUCCESS
}

fn count_replays(rebalances: u32, partitions: u32, members: u32) -> ExitCode {
    let names = replayed::names(members);
    let mut copies = vec![replayed::history(&names, rebalances, partitions); CALLS];
    let sticky = [Strategy::Sticky(Objective::default())];
    let intervals = Intervals::default();
    // As in a worker, all histories use the same memory.
    let mut replayer = Replayer::new(&sticky, &intervals);
    report(|| {
        while let Some(history) = copies.pop() {
            black_box(counted_replay(&mut replayer, history));
        }
    });
    ExitCode::SUCCESS
}

/// Prints the allocations of all calls.
fn report(calls: impl FnOnce()) {
    let allocated = allocation_counter::measure(calls);
    println!(r#"{{"calls": {CALLS}, "allocations": {}}}"#, allocated.count_total);
}

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if let [name, numbers @ ..] = arguments.as_slice()
        && let Ok([first, partitions, members]) =
            <[u32; 3]>::try_from(numbers.iter().map_while(|number| number.parse().ok()).collect::<Vec<u32>>())
    {
        match name.as_str() {
            "replay" => return count_replays(first, partitions, members),
            "lag" | "restricted" => return count_plans(name, Size { topics: first, partitions, members }),
            _ => {}
        }
    }
    let [name, path] = arguments.as_slice() else {
        eprintln!(
            "usage: gate STRATEGY FILE, gate lag|restricted TOPICS PARTITIONS MEMBERS, gate replay REBALANCES PARTITIONS \
             MEMBERS, or gate decode FILE"
        );
        return ExitCode::from(2);
    };
    if name == "decode" {
        return count_decodings(path);
    }
    let strategy = match name.as_str() {
        "sticky" => Strategy::Sticky(Objective::default()),
        "cooperative-sticky" => Strategy::CooperativeSticky(Objective::default()),
        "range" => Strategy::Range,
        "roundrobin" => Strategy::RoundRobin,
        _ => {
            eprintln!("{name} is no strategy: give sticky, cooperative-sticky, range or roundrobin");
            return ExitCode::from(2);
        }
    };
    let bytes = std::fs::read(path).expect("a group's file");
    let mut file = File(&bytes);
    let racks = file.list(File::string);
    let counts = file.list(|file| (file.string(), file.number()));
    let members = file.list(|file| {
        let id = file.string();
        let length = file.number();
        JoinedMember { id, instance_id: None, metadata: file.take(length) }
    });
    let placed = |partition: usize| (0..REPLICAS).map(|replica| racks[(partition + replica) % racks.len()]).collect();
    let specs = counts.iter().map(|&(name, count)| TopicSpec {
        name,
        partitions: count as i64,
        racks: (!racks.is_empty()).then(|| (0..count).map(placed).collect()),
    });
    let topics = Topics::new(specs.collect()).expect("topics with different names");
    let mut copies = vec![topics; CALLS];
    report(|| {
        while let Some(topics) = copies.pop() {
            drop(black_box(counted(&members, topics, strategy)));
        }
    });
    ExitCode::SUCCESS
}
