//! The time and the memory that planning the hardest known groups takes: `limits [CASE]`. Without an argument, all of them,
//! each in a process of its own.
//!
//! Some are groups that a hostile member can make a leader plan with a record of at most a megabyte: these have to end within 2
//! s and 300 MB, limited or not. The others are large and ordinary: their searches have to end below the limit.

mod process;

use std::process::{Command, ExitCode};

use kafka_assignors_core::planning::budget::Limit;
use kafka_assignors_core::planning::group::{Group, GroupBuilder, NONE, TopicSpec, Topics};
use kafka_assignors_core::planning::lag::{self, Keep, Options, Scope};
use kafka_assignors_core::planning::ownership::Ownership;
use kafka_assignors_core::planning::strategy::{Strategy, plan};
use process::{cpu_seconds, megabytes};

const RULE: Options = Options { scope: Scope::Topic, max_skew: Some(0), keep: Keep::None };
const BY_LAG: Options = Options { scope: Scope::Group, max_skew: None, keep: Keep::None };
const KEEPING: Options = Options { scope: Scope::Group, max_skew: None, keep: Keep::Owners { threshold: 0 } };

/// A group by numbers: topics and members are numbered in order of their names.
#[derive(Default)]
struct Case {
    counts: Vec<u32>,
    /// By member, its topics.
    topics: Vec<Vec<u32>>,
    /// By flat partition.
    owner: Vec<u32>,
    lags: Vec<u64>,
}

impl Case {
    /// A topic without owners; `lag` returns the lag of each of its partitions.
    fn topic(&mut self, partitions: u32, mut lag: impl FnMut(u32) -> u64) -> u32 {
        self.counts.push(partitions);
        self.lags.extend((0..partitions).map(&mut lag));
        self.owner.resize(self.lags.len(), NONE);
        self.counts.len() as u32 - 1
    }

    fn member(&mut self, topics: Vec<u32>) -> u32 {
        self.topics.push(topics);
        self.topics.len() as u32 - 1
    }

    /// Plans with the present lags; the members of the plan become the owners.
    fn settle(&mut self, options: Options) {
        let (group, ownership) = self.build();
        self.owner = plan(&group, Strategy::Lag(options), ownership, &Limit::default()).plan.owner;
    }

    /// Takes all partitions from these members.
    fn replace(&mut self, members: impl Fn(u32) -> bool) {
        self.owner.iter_mut().filter(|owner| **owner != NONE && members(**owner)).for_each(|owner| *owner = NONE);
    }

    fn build(&self) -> (Group, Ownership) {
        let names: Vec<String> = (0..self.counts.len()).map(|topic| format!("t{topic:06}")).collect();
        let counted = names.iter().zip(&self.counts);
        let specs = counted.map(|(name, &count)| TopicSpec { name, partitions: count.into(), racks: None });
        let mut topics = Topics::new(specs.collect()).expect("topics that there can be");
        topics.set_lags(self.lags.clone());
        let mut builder = GroupBuilder::new(topics);
        for (member, topics) in self.topics.iter().enumerate() {
            let subscription = builder.subscription(topics);
            builder.member(&format!("m{member:06}"), subscription).generation(1).finish();
        }
        (builder.finish(), Ownership { owner: self.owner.clone(), held: Vec::new() })
    }
}

/// Pseudorandom numbers, the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Thousands of swaps of equal value. Before each of them the search meets partitions to which the heaviest member does not
/// subscribe.
fn swaps() -> Case {
    let mut case = Case::default();
    let x = case.topic(5_200, |number| 1_000_000 - u64::from(number >= 5_000));
    // With these lags the second member is lighter by 400 in all.
    let y = case.topic(4_800, |number| if number == 0 { 1_009_398 } else { 999_998 });
    let (one, other) = (case.member(vec![x]), case.member(vec![x, y]));
    case.owner = (0..10_000).map(|partition| if partition < 5_000 { one } else { other }).collect();
    case
}

/// One member has all partitions that every member may have; each of the other members also has a topic of its own.
fn newcomers(members: u32, shared: u32, own: u32) -> Case {
    let (mut case, mut random) = (Case::default(), Random(5));
    // The lags are a little higher than those of the members' own topics, so that the owner has a partition to give.
    let x = case.topic(shared, |_| 2_030 + random.below(1_000));
    let owner = case.member(vec![x]);
    case.owner.fill(owner);
    for _ in 0..members {
        let y = case.topic(own, |_| 2_000 + random.below(1_000));
        case.member(vec![x, y]);
    }
    case
}

/// Every topic has its own set of subscribers, nearly all members, so each partition placed changes the loads that the other sets
/// compare.
fn tangle(topics: u32, partitions: u32) -> Case {
    let (mut case, mut random) = (Case::default(), Random(7));
    for _ in 0..topics {
        case.topic(partitions, |_| 1_000_000 + random.below(1_000));
    }
    for member in 0..topics {
        case.member((0..topics).filter(|&topic| topic != member).collect());
    }
    case
}

/// Each member shares a topic with the next one only.
fn chain(members: u32, partitions: u32) -> Case {
    let (mut case, mut random) = (Case::default(), Random(11));
    for _ in 0..=members {
        case.topic(partitions, |_| random.below(20_000));
    }
    for member in 0..members {
        case.member(vec![member, member + 1]);
    }
    case.settle(BY_LAG);
    drift(case, &mut random)
}

/// Changes the lags by up to 20 % since the owners got their partitions, and replaces a tenth of the members.
fn drift(mut case: Case, random: &mut Random) -> Case {
    case.lags.iter_mut().for_each(|lag| *lag = *lag * (800 + random.below(400)) / 1_000);
    case.replace(|member| member % 10 == 3);
    case
}

fn equal(topics: u32, partitions: u32, members: u32) -> Case {
    let (mut case, mut random) = (Case::default(), Random(13));
    for _ in 0..topics {
        case.topic(partitions, |_| random.below(20_000));
    }
    for _ in 0..members {
        case.member((0..topics).collect());
    }
    case.settle(BY_LAG);
    drift(case, &mut random)
}

fn different(topics: u32, partitions: u32, members: u32, each: u64) -> Case {
    let (mut case, mut random) = (Case::default(), Random(17));
    for topic in 0..topics {
        case.topic(partitions / 2 + (topic % 7) * partitions / 6, |_| random.below(20_000));
    }
    for _ in 0..members {
        let mut chosen: Vec<u32> = (0..each).map(|_| random.below(topics.into()) as u32).collect();
        chosen.sort_unstable();
        chosen.dedup();
        case.member(chosen);
    }
    case.settle(BY_LAG);
    drift(case, &mut random)
}

type Named = (&'static str, Options, fn() -> Case);

const CASES: [Named; 15] = [
    ("swaps behind what one may not have", KEEPING, swaps),
    ("20 newcomers", KEEPING, || newcomers(20, 10_000, 10_000)),
    ("20 newcomers, skew 2", Options { max_skew: Some(2), ..KEEPING }, || newcomers(20, 10_000, 10_000)),
    ("10,000 newcomers, 100,000 partitions", KEEPING, || newcomers(9_999, 10_000, 9)),
    ("10,000 newcomers, 90,000 shared", KEEPING, || newcomers(9_999, 90_000, 1)),
    ("500 tangled topics", BY_LAG, || tangle(500, 500)),
    ("500 tangled topics, keeping", KEEPING, || tangle(500, 500)),
    ("500 tangled topics, skew 2", Options { max_skew: Some(2), ..BY_LAG }, || tangle(500, 500)),
    ("ordinary: 1,000,000 of 2,000 members", KEEPING, || equal(1_000, 1_000, 2_000)),
    ("ordinary: 1,000,000 topic by topic", Options { keep: KEEPING.keep, ..RULE }, || equal(1_000, 1_000, 2_000)),
    ("ordinary: 973,000 of 2,000 members on 20 each", KEEPING, || different(10_000, 97, 2_000, 20)),
    ("ordinary: 200,000 of 500 members on 400 each", KEEPING, || different(1_000, 200, 500, 500)),
    ("ordinary: 200,000 of 500 members, skew 2", Options { max_skew: Some(2), ..KEEPING }, || {
        different(1_000, 200, 500, 500)
    }),
    ("ordinary: a chain of 4,000", KEEPING, || chain(4_000, 100)),
    ("ordinary: a chain of 40", KEEPING, || chain(40, 10_000)),
];

fn run((name, options, case): Named) {
    let case = case();
    let (group, ownership) = case.build();
    drop(case);
    let (start, memory) = (cpu_seconds(), megabytes("VmHWM:"));
    let outcome = plan(&group, Strategy::Lag(options), ownership, &Limit::default());
    let (seconds, peak) = (cpu_seconds() - start, megabytes("VmHWM:"));
    let heaviest = lag::lag_by_member(&group, &outcome.plan).into_iter().max().unwrap_or(0);
    let ended = outcome.limited.map_or_else(|| "to the end".to_owned(), |limited| limited.to_string());
    println!(
        "{name}: {seconds:.2} s, {peak:.0} MB (the group itself {memory:.0}), heaviest {heaviest} (at least {}), {} moved, {ended}",
        lag::lag_bound_within(&group, &Limit::default()).0,
        outcome.kept_and_moved().1,
    );
}

fn main() -> ExitCode {
    if let Some(wanted) = std::env::args().nth(1) {
        let Some(case) = CASES.into_iter().find(|(name, ..)| *name == wanted) else {
            eprintln!("there is no case {wanted:?}");
            return ExitCode::from(2);
        };
        run(case);
        return ExitCode::SUCCESS;
    }
    let program = std::env::current_exe().expect("a program has a path");
    for (name, ..) in CASES {
        let ended = Command::new(&program).arg(name).status();
        if !ended.is_ok_and(|status| status.success()) {
            eprintln!("{name}: failed");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
