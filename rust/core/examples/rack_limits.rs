//! The cost of the heaviest groups of one record for a leader and for the verification: `rack_limits CASE STRATEGY
//! [verify|bare]`.
//!
//! Prints one line: the size of the members' metadata, CPU seconds and peak memory of the plan and of its verification, their
//! results, and a digest by which the plans of two builds are compared.

mod process;

#[path = "../tests/encode/mod.rs"]
mod encode;

use std::hash::Hasher;
use std::process::ExitCode;

use encode::{SubscriptionFields, encode_sticky};
use kafka_assignors_core::planning::budget::Limit;
use kafka_assignors_core::planning::group::{TopicSpec, Topics};
use kafka_assignors_core::planning::leader::{ClaimSource, Joined, JoinedMember, read_group, write_assignments};
use kafka_assignors_core::planning::objective::Objective;
use kafka_assignors_core::planning::strategy::{self, Strategy};
use kafka_assignors_core::protocol::topic_partitions::CanonicalPartitions;
use kafka_assignors_core::verify::{verify_outcome, verify_outcome_from};
use process::{cpu_seconds, megabytes};
use rustc_hash::FxHasher;

/// A group by names: topics with the replicas of each partition, members with topics, claims and rack.
#[derive(Default)]
struct Case {
    racks: Vec<String>,
    topics: Vec<(String, u32)>,
    members: Vec<Member>,
}

struct Member {
    topics: Vec<usize>,
    claims: Vec<(usize, i32)>,
    rack: Option<usize>,
}

impl Case {
    fn new(racks: usize, topics: impl Iterator<Item = u32>) -> Self {
        let racks = (0..racks).map(|rack| format!("r{rack}")).collect();
        let topics = topics.enumerate().map(|(topic, count)| (format!("t{topic}"), count)).collect();
        Self { racks, topics, members: Vec::new() }
    }

    fn join(&mut self, topics: Vec<usize>, random: &mut fastrand::Rng) {
        let rack = (!self.racks.is_empty()).then(|| random.usize(..self.racks.len()));
        self.members.push(Member { topics, claims: Vec::new(), rack });
    }

    /// Every partition is claimed by one of its subscribers at random.
    fn claim(&mut self, random: &mut fastrand::Rng) {
        let mut subscribers = vec![Vec::new(); self.topics.len()];
        for (at, member) in self.members.iter().enumerate() {
            member.topics.iter().for_each(|&topic| subscribers[topic].push(at));
        }
        for (topic, &(_, count)) in self.topics.iter().enumerate().filter(|(topic, _)| !subscribers[*topic].is_empty())
        {
            for number in 0..count as i32 {
                let owner = subscribers[topic][random.usize(..subscribers[topic].len())];
                self.members[owner].claims.push((topic, number));
            }
        }
    }
}

/// Some of the topics, without repeats.
fn some(topics: usize, count: usize, random: &mut fastrand::Rng) -> Vec<usize> {
    random.choose_multiple(0..topics, count)
}

fn case(name: &str) -> Option<Case> {
    let random = &mut fastrand::Rng::with_seed(23);
    let (kind, sizes) = name.split_once('=').unwrap_or((name, "4000x20"));
    let (size, most) = sizes.split_once('x').unwrap_or((sizes, "20"));
    let (size, most): (usize, u32) = (size.parse().ok()?, most.parse().ok()?);
    let mut case;
    match kind {
        // Every member on nearly all topics, no two members alike, replicas at random.
        "racks" | "racks-claimed" => {
            case = Case::new(20, (0..80).map(|_| 400));
            (0..2000).for_each(|_| case.join(some(80, 78, random), random));
        }
        // Eight different subscriptions, so that members differ mostly by their racks.
        "subscriptions" | "subscriptions-claimed" => {
            case = Case::new(20, (0..80).map(|_| 400));
            let subscriptions: Vec<Vec<usize>> = (0..8).map(|_| some(80, 78, random)).collect();
            (0..2000).for_each(|at| case.join(subscriptions[at % 8].clone(), random));
        }
        // Each member shares a topic with each of its two neighbours.
        "chain" | "chain-claimed" | "plain-chain" | "plain-chain-claimed" => {
            let racks = if kind.starts_with("plain") { 0 } else { 20 };
            case = Case::new(racks, (0..=size).map(|_| random.u32(1..=most)).collect::<Vec<_>>().into_iter());
            (0..size).for_each(|at| case.join(vec![at, at + 1], random));
        }
        // Topics of very different sizes, subscriptions at random.
        "skewed" | "skewed-claimed" | "skewed-racks" | "skewed-racks-claimed" => {
            let racks = if kind.contains("racks") { 20 } else { 0 };
            let count = |rank: usize| ((size as f64 * 5.0) * (rank as f64 + 1.0).powf(-0.7)).ceil() as u32;
            case = Case::new(racks, (0..size).map(count));
            (0..2000).for_each(|_| case.join(some(size, 20, random), random));
        }
        // An ordinary large group: every member on all topics, except one member.
        "ordinary" | "ordinary-claimed" => {
            case = Case::new(0, (0..500).map(|_| 2000));
            (0..2000).for_each(|at| case.join((0..500 - usize::from(at == 0)).collect(), random));
        }
        // An ordinary large group of eight teams.
        "teams" | "teams-claimed" => {
            case = Case::new(0, (0..10_000).map(|_| 100));
            let teams: Vec<Vec<usize>> = (0..8).map(|_| some(10_000, 2000, random)).collect();
            (0..2000).for_each(|at| case.join(teams[at % 8].clone(), random));
        }
        _ => return None,
    }
    if kind.ends_with("claimed") {
        case.claim(random);
    }
    Some(case)
}

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let kind = match arguments.get(1).map(String::as_str) {
        Some("sticky") => Strategy::Sticky(Objective::default()),
        Some("range") => Strategy::Range,
        Some("roundrobin") => Strategy::RoundRobin,
        _ => {
            eprintln!("usage: rack_limits CASE sticky|range|roundrobin [verify|bare]");
            return ExitCode::from(2);
        }
    };
    let Some(case) = case(&arguments[0]) else {
        eprintln!("{} is no case: see the source", arguments[0]);
        return ExitCode::from(2);
    };
    let ids: Vec<String> = (0..case.members.len()).map(|at| format!("m{at:05}")).collect();
    let metadata: Vec<Vec<u8>> = case
        .members
        .iter()
        .map(|member| {
            let topics: Vec<&str> = member.topics.iter().map(|&topic| case.topics[topic].0.as_str()).collect();
            let claims: Vec<(&str, [i32; 1])> =
                member.claims.iter().map(|&(topic, number)| (case.topics[topic].0.as_str(), [number])).collect();
            let claims = encode_sticky(&CanonicalPartitions::new(claims), Some(1)).expect("short names");
            let user_data = Some(claims.as_slice());
            let rack = member.rack.map(|rack| case.racks[rack].as_str());
            SubscriptionFields { topics: &topics, user_data, rack, ..Default::default() }.encode()
        })
        .collect::<Result<_, _>>()
        .expect("short names");
    let joined: Vec<JoinedMember<'_>> = ids
        .iter()
        .zip(&metadata)
        .map(|(id, metadata)| JoinedMember { id, instance_id: None, metadata: metadata.as_slice() })
        .collect();
    let mut random = fastrand::Rng::with_seed(29);
    let specs = case.topics.iter().map(|(name, count)| TopicSpec {
        name,
        partitions: i64::from(*count),
        racks: (!case.racks.is_empty()).then(|| {
            let set = |_| random.choose_multiple(case.racks.iter().map(String::as_str), 3);
            (0..*count).map(set).collect()
        }),
    });
    let topics = Topics::new(specs.collect()).expect("topics with different names");
    let bytes: usize = metadata.iter().map(Vec::len).sum();
    let (before, ready) = (megabytes("VmRSS:"), cpu_seconds());
    // As a leader does, but with claims for strategies that ignore them too: so the verification has moves to count.
    let Joined { group, .. } = read_group(&joined, topics, ClaimSource::Sticky);
    let ownership = strategy::settle(&group, kind, None);
    let outcome = strategy::plan(&group, kind, ownership, &Limit::default());
    drop(write_assignments(&group, &outcome.plan, Some(2)).expect("short names"));
    let planned = cpu_seconds();
    let peak = megabytes("VmHWM:");
    let mut digest = FxHasher::default();
    outcome.plan.owner.iter().for_each(|&owner| digest.write_u32(owner));
    print!(
        "{} {} bytes {bytes} partitions {} plan {:.2} s, {before:.0} + {:.0} MB, {:016x} limited {:?}",
        arguments[0],
        arguments[1],
        outcome.plan.owner.len(),
        planned - ready,
        peak - before,
        digest.finish(),
        outcome.limited
    );
    if let Some(how) = arguments.get(2) {
        let start = cpu_seconds();
        let c = match how.as_str() {
            // Without a sticky plan to start from.
            "bare" => verify_outcome(&group, kind.rules(), None, &outcome),
            _ => {
                let start = strategy::near_optimum(&group, kind, &outcome, &Limit::default());
                verify_outcome_from(&group, kind.rules(), None, &outcome, &start, &Limit::default())
            }
        }
        .expect("a valid plan");
        print!(
            " verify {:.2} s, {:.0} MB, score {} of {:?}, misses {} of {:?}, moved {} of {:?}, limited {:?}",
            cpu_seconds() - start,
            megabytes("VmHWM:") - before,
            c.score,
            c.score_bound,
            c.rack_misses,
            c.rack_misses_bound,
            c.moved,
            c.moved_bound,
            c.limited
        );
    }
    println!();
    ExitCode::SUCCESS
}
