//! A search for the groups that cost a leader, or a verification, the most time: `worst_cases plan|verify SECONDS [SEED]`, or
//! `worst_cases GROUP` to measure one group that a search printed.
//!
//! The search climbs hills: it changes one of the worst groups so far, and keeps the change if the new group costs more. Members
//! can make a leader plan every such group with a record of a megabyte: the metadata have at most so many bytes, on topics of a
//! cluster of 200,000 partitions. The search covers all strategies and options that a leader plans with in the core. The time is
//! CPU time, so a busy machine disturbs little.

mod process;

use std::fmt::{self, Display};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use kafka_assignors_core::planning::budget::{Limit, Limited};
use kafka_assignors_core::planning::group::{Csr, Group, GroupBuilder, NONE, TopicSpec, Topics};
use kafka_assignors_core::planning::lag::{Keep, Options, Scope};
use kafka_assignors_core::planning::leader::write_assignments;
use kafka_assignors_core::planning::objective::{Mode, Objective, RackOrder};
use kafka_assignors_core::planning::plan::Outcome;
use kafka_assignors_core::planning::restrictions::Restrictions;
use kafka_assignors_core::planning::strategy::{Strategy, near_optimum, plan, plan_restricted, settle};
use kafka_assignors_core::planning::weighted;
use kafka_assignors_core::planning::weights::{Weighed, Weights};
use kafka_assignors_core::verify::{PlanFault, verify_outcome_from, verify_restricted, verify_weighted};
use process::cpu_nanoseconds;

const MOST_BYTES: usize = 1_000_000;
const MOST_PARTITIONS: u32 = 200_000;

/// How many of the worst groups of a family of strategies are changed further.
const KEPT: usize = 4;

/// A group by a few numbers.
#[derive(Debug, Clone, PartialEq)]
struct Shape([u32; FIELDS.len()]);

/// The numbers of a shape: name, least and greatest value.
const FIELDS: [(&str, u32, u32); 14] = [
    ("strategy", 0, STRATEGIES - 1),
    ("topics", 1, 60_000),
    ("partitions", 1, 50_000),
    // Equal, falling, random, one large and the others of one, two alternating.
    ("sizes", 0, 4),
    ("members", 1, 20_000),
    // All topics, all but some, some at random, a window, a prefix, teams, a window at random places, all or one.
    ("subscription", 0, 7),
    ("width", 1, 5_000),
    ("racks", 0, 30),
    ("replicas", 1, 4),
    // No claims, random, the first subscriber's, few members', all of a window's end, contested, half of them.
    ("claims", 0, 6),
    ("owners", 1, 100),
    ("lags", 0, 3),
    ("seed", 0, 1_000_000),
    // All alike, one of three, each its own, few large. Of a restricted group: no limit, tight, random, none for most.
    ("capacities", 0, 3),
];

const STRATEGIES: u32 = 39;

/// How the leader of a group plans.
#[derive(Debug, Clone, Copy)]
enum Planner {
    Strategy(Strategy),
    Weighted { tolerance: f64, cooperative: bool },
    Restricted,
}

impl Planner {
    /// The strategies that share most of their code.
    fn family(self) -> u8 {
        match self {
            Self::Strategy(Strategy::Sticky(_) | Strategy::CooperativeSticky(_)) => 0,
            Self::Strategy(Strategy::StreamJoin { .. }) => 1,
            Self::Strategy(Strategy::Lag(_)) => 2,
            Self::Strategy(_) => 3,
            Self::Weighted { .. } => 4,
            Self::Restricted => 5,
        }
    }

    /// The strategy whose rules settle the claims.
    fn settles(self) -> Strategy {
        match self {
            Self::Strategy(strategy) => strategy,
            Self::Weighted { cooperative, .. } => Strategy::Custom { cooperative },
            Self::Restricted => Strategy::Sticky(Objective::default()),
        }
    }
}

fn planner(number: u32) -> Planner {
    match number {
        33 => Planner::Strategy(Strategy::StreamJoin { cooperative: false }),
        34..38 => Planner::Weighted { tolerance: [0.0, 0.05][number as usize % 2], cooperative: number >= 36 },
        38 => Planner::Restricted,
        _ => Planner::Strategy(strategy(number)),
    }
}

fn strategy(number: u32) -> Strategy {
    let modes = [Mode::FairYetSticky, Mode::StickyYetFair, Mode::Fair];
    let orders = [RackOrder::BeforeStickiness, RackOrder::AfterStickiness];
    let objective = |n: u32| Objective { mode: modes[(n % 3) as usize], racks: orders[(n / 3 % 2) as usize] };
    match number {
        0..6 => Strategy::Sticky(objective(number)),
        6..12 => Strategy::CooperativeSticky(objective(number)),
        12 => Strategy::Range,
        13 => Strategy::RoundRobin,
        14 => Strategy::StreamJoin { cooperative: true },
        _ => {
            let n = number - 15;
            let scope = if n.is_multiple_of(2) { Scope::Group } else { Scope::Topic };
            let max_skew = [None, Some(2), Some(0)][(n / 2 % 3) as usize];
            let keep =
                [Keep::Owners { threshold: 0 }, Keep::None, Keep::Owners { threshold: 10_000 }][(n / 6) as usize];
            Strategy::Lag(Options { scope, max_skew, keep })
        }
    }
}

impl Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = FIELDS.iter().zip(self.0).map(|((name, ..), value)| format!("{name}={value}"));
        f.write_str(&numbers.collect::<Vec<_>>().join(","))
    }
}

impl Shape {
    fn read(text: &str) -> Option<Self> {
        let mut shape = Self(FIELDS.map(|(_, least, _)| least));
        for part in text.split(',') {
            let (name, value) = part.split_once('=')?;
            let at = FIELDS.iter().position(|field| field.0 == name)?;
            shape.0[at] = value.parse().ok()?;
        }
        Some(shape)
    }

    fn get(&self, name: &str) -> u32 {
        self.0[FIELDS.iter().position(|field| field.0 == name).expect("a field")]
    }

    fn draw(random: &mut fastrand::Rng) -> Self {
        // Small and large values are equally likely.
        Self(FIELDS.map(|(_, least, most)| {
            let most = f64::from(most - least + 1);
            least + (most.powf(random.f64()) - 1.0) as u32
        }))
    }

    fn changed(&self, random: &mut fastrand::Rng) -> Self {
        let mut changed = self.clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..FIELDS.len());
            let (_, least, most) = FIELDS[at];
            let value = &mut changed.0[at];
            let factor = [2.0, 0.5, 1.2, 0.8][random.usize(..4)];
            *value = match random.u32(..3) {
                _ if most - least < 40 => random.u32(least..=most),
                0 => value.saturating_add(1),
                1 => value.saturating_sub(1),
                _ => (f64::from(*value) * factor) as u32,
            };
            *value = (*value).clamp(least, most);
        }
        changed
    }

    fn counts(&self, random: &mut fastrand::Rng) -> Vec<u32> {
        let (topics, largest) = (self.get("topics"), self.get("partitions"));
        let mut counts = Vec::new();
        let mut left = MOST_PARTITIONS;
        for topic in 0..topics {
            let count = match self.get("sizes") {
                0 => largest,
                1 => (f64::from(largest) * f64::from(topic + 1).powf(-0.7)).ceil() as u32,
                2 => random.u32(1..=largest),
                3 => {
                    if topic == 0 {
                        largest
                    } else {
                        1
                    }
                }
                _ => {
                    if topic % 2 == 0 {
                        largest
                    } else {
                        1
                    }
                }
            };
            if count > left {
                break;
            }
            left -= count;
            counts.push(count);
        }
        if counts.is_empty() { vec![largest.min(MOST_PARTITIONS)] } else { counts }
    }

    fn subscription(&self, member: u32, topics: u32, random: &mut fastrand::Rng) -> Vec<u32> {
        let width = self.get("width").min(topics);
        let members = self.get("members");
        let window = |first: u32| (0..width).map(|at| (first + at) % topics).collect();
        match self.get("subscription") {
            0 => (0..topics).collect(),
            1 => {
                let without: Vec<u32> = (0..width).map(|_| random.u32(..topics)).collect();
                (0..topics).filter(|topic| !without.contains(topic)).collect()
            }
            2 => (0..width).map(|_| random.u32(..topics)).collect(),
            3 => window((u64::from(member) * u64::from(topics) / u64::from(members)) as u32),
            4 => (0..=member * topics.div_ceil(members).max(1) % topics).collect(),
            5 => (0..topics).filter(|topic| topic % width == member % width).collect(),
            6 => window(random.u32(..topics)),
            _ => {
                if member.is_multiple_of(width) {
                    vec![member % topics]
                } else {
                    (0..topics).collect()
                }
            }
        }
    }

    /// The group, and the bytes of its members' metadata: of version 3, with names of the least length.
    fn build(&self) -> (Group, usize) {
        let random = &mut fastrand::Rng::with_seed(u64::from(self.get("seed")));
        let counts = self.counts(random);
        let topics = counts.len() as u32;
        let digits = (topics as usize).to_string().len();
        let names: Vec<String> = (0..topics).map(|topic| format!("{topic:0digits$}")).collect();
        let racks: Vec<String> = (0..self.get("racks")).map(|rack| format!("{rack:02}")).collect();
        let specs = names.iter().zip(&counts).map(|(name, &count)| TopicSpec {
            name,
            partitions: count.into(),
            racks: (!racks.is_empty()).then(|| {
                let set = |_| random.choose_multiple(racks.iter().map(String::as_str), self.get("replicas") as usize);
                (0..count).map(set).collect()
            }),
        });
        let mut numbered = Topics::new(specs.collect()).expect("topics that there can be");
        let partitions = numbered.partitions();
        let lag = |random: &mut fastrand::Rng| match self.get("lags") {
            0 => 1,
            1 => random.u64(..20_000),
            2 => 1_000_000 + random.u64(..1_000),
            _ => 1 << random.u32(..40),
        };
        numbered.set_lags((0..partitions).map(|_| lag(random)).collect());
        let planner = self.planner();
        let mut bytes = 0;
        let mut subscriptions: Vec<Vec<u32>> = Vec::new();
        for member in 0..self.get("members") {
            let mut subscription = self.subscription(member, topics, random);
            subscription.sort_unstable();
            subscription.dedup();
            let data = if matches!(planner, Planner::Weighted { .. }) { 10 } else { 0 };
            bytes += 30 + data + subscription.len() * (2 + digits);
            if bytes > MOST_BYTES {
                break;
            }
            subscriptions.push(subscription);
        }
        let claims = self.claims(&numbered, &subscriptions, random);
        let mut builder = GroupBuilder::new(numbered);
        for (member, (topics, claims)) in subscriptions.iter().zip(claims).enumerate() {
            let subscription = builder.subscription(topics);
            let id = format!("m{member:06}");
            let mut joining = builder.member(&id, subscription);
            let (mut last, mut length) = (u32::MAX, 0);
            for partition in claims {
                let (topic, number) = joining.topics().locate(partition);
                length += if topic == last { 4 } else { 10 + digits };
                if bytes + length > MOST_BYTES {
                    break;
                }
                last = topic;
                joining.claim(partition);
                if matches!(planner, Planner::Strategy(Strategy::StreamJoin { .. })) {
                    joining.numbers(std::iter::once(number as i32));
                }
            }
            bytes += length;
            let rack = if racks.is_empty() { "" } else { &racks[random.usize(..racks.len())] };
            joining.generation(1).rack(rack).finish();
        }
        (builder.finish(), bytes.min(MOST_BYTES))
    }

    fn claims(&self, topics: &Topics, subscriptions: &[Vec<u32>], random: &mut fastrand::Rng) -> Vec<Vec<u32>> {
        let mut subscribers = vec![Vec::new(); topics.len()];
        for (member, topics) in subscriptions.iter().enumerate() {
            topics.iter().for_each(|&topic| subscribers[topic as usize].push(member));
        }
        let mut claims = vec![Vec::new(); subscriptions.len()];
        let owners = self.get("owners") as usize;
        for (topic, able) in (0u32..).zip(&subscribers).filter(|(_, able)| !able.is_empty()) {
            for partition in topics.range(topic) {
                match self.get("claims") {
                    0 => {}
                    1 => claims[able[random.usize(..able.len())]].push(partition),
                    2 => claims[able[0]].push(partition),
                    3 => claims[able[random.usize(..able.len().min(owners))]].push(partition),
                    4 => claims[able[able.len() - 1 - random.usize(..able.len().min(owners))]].push(partition),
                    5 => {
                        for _ in 0..random.usize(..4) {
                            claims[random.usize(..subscriptions.len())].push(partition);
                        }
                    }
                    _ if random.bool() => claims[able[partition as usize % able.len()]].push(partition),
                    _ => {}
                }
            }
        }
        claims
    }

    fn planner(&self) -> Planner {
        planner(self.get("strategy"))
    }

    /// The lags of the partitions as their weights, and the capacities.
    fn weights(&self, group: &Group, tolerance: f64) -> Weights {
        let random = &mut fastrand::Rng::with_seed(u64::from(self.get("seed")) + 1);
        let weights: Vec<f64> = group.topics().lags().iter().map(|&lag| lag as f64).collect();
        let capacity = |member: usize| match self.get("capacities") {
            0 => 1.0,
            1 => [1.0, 2.0, 4.0][random.usize(..3)],
            2 => 1.0 + member as f64 / 100.0,
            _ if random.u32(..20) == 0 => 1_000.0,
            _ => 1.0,
        };
        let capacities: Vec<f64> = (0..group.members()).map(capacity).collect();
        Weights::new(&weights, &capacities, tolerance).expect("weights within their bounds")
    }

    /// For each partition a set of members, which "lags" says how to draw, and the most partitions of each member.
    fn restrictions(&self, group: &Group) -> Restrictions {
        let random = &mut fastrand::Rng::with_seed(u64::from(self.get("seed")) + 1);
        let (members, partitions) = (group.members() as u32, group.topics().partitions());
        let mut sets = Csr::new();
        match self.get("lags") {
            // Each partition is for one member, or for some neighbours.
            0 => (0..members).for_each(|member| sets.push_row(&[member])),
            1 => (0..members).for_each(|member| sets.push_row(&(member..members.min(member + 10)).collect::<Vec<_>>())),
            _ => {
                for _ in 0..self.get("owners") {
                    let share = random.u32(1..=members);
                    sets.push_row(&(0..members).filter(|_| random.u32(..members) < share).collect::<Vec<_>>());
                }
            }
        }
        let set = |_| if random.u32(..10) == 0 { NONE } else { random.u32(..sets.len() as u32) };
        let set_of = (0..partitions).map(set).collect();
        let mean = (partitions as u32).div_ceil(members.max(1));
        let most = |_| match self.get("capacities") {
            1 => mean,
            2 => random.u32(..=2 * mean),
            _ if random.u32(..20) == 0 => u32::MAX,
            _ => 0,
        };
        let capacity = if self.get("capacities") == 0 { Vec::new() } else { (0..members).map(most).collect() };
        Restrictions { sets, set_of, capacity }
    }

    fn measure(&self) -> Cost {
        let (group, bytes) = self.build();
        let planner = self.planner();
        let begun = Instant::now();
        let late = || begun.elapsed() > Duration::from_secs(60);
        let limit = Limit::default().interrupted_by(&late);
        let weights = match planner {
            Planner::Weighted { tolerance, .. } => Some(self.weights(&group, tolerance)),
            Planner::Strategy(_) | Planner::Restricted => None,
        };
        let restrictions = matches!(planner, Planner::Restricted).then(|| self.restrictions(&group));
        let start = cpu_nanoseconds();
        let ownership = settle(&group, planner.settles(), None);
        let outcome = match (planner, weights, &restrictions) {
            (Planner::Weighted { cooperative, .. }, Some(weights), _) => {
                weighted::plan(&group, ownership, weights, cooperative, &limit)
            }
            (Planner::Restricted, _, Some(given)) => plan_restricted(&group, ownership, given.clone(), &limit),
            (planner, ..) => plan(&group, planner.settles(), ownership, &limit),
        };
        drop(write_assignments(&group, &outcome.plan, Some(2)).expect("short names"));
        let left = outcome.unassigned(&group).count();
        let planned = cpu_nanoseconds();
        let certificate = match (&outcome.weighed, &restrictions) {
            (Some(weighed), _) => verify_weights(&group, planner, weighed, &outcome, &limit),
            (None, Some(given)) => verify_restricted(&group, given, None, &outcome, &limit).map(|proof| proof.limited),
            (None, None) => {
                let near = near_optimum(&group, planner.settles(), &outcome, &limit);
                verify_outcome_from(&group, planner.settles().rules(), None, &outcome, &near, &limit)
                    .map(|proof| proof.limited)
            }
        };
        let verified = cpu_nanoseconds();
        let ended = match &certificate {
            Ok(limited) => limited.map_or_else(|| "whole".to_owned(), |limited| limited.to_string()),
            Err(fault) => format!("NOT VALID: {fault:?}"),
        };
        Cost {
            plan: (planned - start) as f64 / 1e9,
            verify: (verified - planned) as f64 / 1e9,
            summary: format!(
                "{planner:?}, {bytes} bytes, {} members, {} partitions, {left} of them left, plan {}, verify {ended}",
                group.members(),
                group.topics().partitions(),
                outcome.limited.map_or_else(|| "whole".to_owned(), |limited| limited.to_string()),
            ),
        }
    }
}

/// The search for a bound that ended early.
fn verify_weights(
    group: &Group,
    planner: Planner,
    weighed: &Weighed,
    outcome: &Outcome,
    limit: &Limit<'_>,
) -> Result<Option<Limited>, PlanFault> {
    let cooperative = planner.settles().rules().cooperative();
    let certificate = verify_weighted(group, weighed, cooperative, None, outcome, limit)?;
    Ok(certificate.sticky.and_then(|sticky| sticky.limited))
}

struct Cost {
    plan: f64,
    verify: f64,
    summary: String,
}

fn climb(verify: bool, seconds: u64, seed: u64) {
    let random = &mut fastrand::Rng::with_seed(seed);
    let begun = Instant::now();
    let mut worst: Vec<(f64, Shape)> = Vec::new();
    let mut tried = 0u32;
    while begun.elapsed() < Duration::from_secs(seconds) {
        let shape = if worst.len() < KEPT || random.u32(..4) == 0 {
            Shape::draw(random)
        } else {
            worst[random.usize(..worst.len())].1.changed(random)
        };
        if worst.iter().any(|(_, known)| *known == shape) {
            continue;
        }
        let cost = shape.measure();
        tried += 1;
        let value = if verify { cost.verify } else { cost.plan };
        if worst.first().is_none_or(|(most, _)| value > *most) {
            println!("{tried}: plan {:.3} s, verify {:.3} s, {}\n    {shape}", cost.plan, cost.verify, cost.summary);
        }
        worst.push((value, shape.clone()));
        worst.sort_by(|a, b| b.0.total_cmp(&a.0));
        // A family of strategies that is faster than the others has its own places.
        let family = shape.planner().family();
        let last = worst.iter().rposition(|(_, known)| known.planner().family() == family);
        let alike = worst.iter().filter(|(_, known)| known.planner().family() == family).count();
        if let Some(last) = last.filter(|_| alike > KEPT) {
            worst.remove(last);
        }
    }
    println!("{tried} groups; the worst:");
    for (value, shape) in worst {
        println!("{value:.3} s: {shape}, {:?}", shape.planner());
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse().ok());
    match arguments.first().map(String::as_str) {
        Some(what @ ("plan" | "verify")) if number(1).is_some() => {
            climb(what == "verify", number(1).unwrap_or(0), number(2).unwrap_or(1));
            return ExitCode::SUCCESS;
        }
        text => {
            if let Some(shape) = text.and_then(Shape::read) {
                let cost = shape.measure();
                println!("plan {:.3} s, verify {:.3} s, {}", cost.plan, cost.verify, cost.summary);
                return ExitCode::SUCCESS;
            }
        }
    }
    eprintln!("usage: worst_cases plan|verify SECONDS [SEED], or worst_cases GROUP");
    ExitCode::from(2)
}
