//! Over hubs a plan is as good as over an arc for each pair: in score, racks, moves, and in the distance to the proposal.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::planning::budget::{Goal, Limit};
use crate::planning::group::{Group, GroupBuilder, NONE, TopicSpec, Topics};
use crate::planning::objective::{Mode, Objective, RackOrder, Rules};
use crate::planning::ownership::Ownership;
use crate::planning::plan::{LeavesOut, Outcome, Plan};
use crate::planning::settlement::settle;
use crate::planning::sticky::rows::{RowProblem, Rows, racks_matter};
use crate::planning::sticky::{dense, wide};
use crate::planning::subscribers::Subscribers;
use crate::verify::{Certificate, PlanFault, verify_outcome};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// A group of some topics, on up to five racks of which some have no member, with claims.
fn random_group(random: &mut fastrand::Rng, topics: usize, partitions: usize, members: usize) -> Group {
    group_reading(random, topics, partitions, members, |set| set)
}

/// As `random_group`; `read` orders the racks of each partition.
fn group_reading(
    random: &mut fastrand::Rng,
    topics: usize,
    partitions: usize,
    members: usize,
    read: impl Fn(Vec<&'static str>) -> Vec<&'static str>,
) -> Group {
    let names: Vec<String> = (0..topics).map(|topic| format!("t{topic}")).collect();
    let specs = names.iter().map(|name| {
        let count = random.usize(..=partitions);
        let mut set = || {
            let count = random.usize(..=3);
            read(random.choose_multiple(NAMES, count))
        };
        TopicSpec { name, partitions: count as i64, racks: Some((0..count).map(|_| set()).collect()) }
    });
    let topics = Topics::new(specs.collect()).unwrap();
    let mut builder = GroupBuilder::new(topics);
    let percent = random.usize(20..100);
    for member in 0..members {
        let subscribed: Vec<u32> =
            (0..builder.topics().len() as u32).filter(|_| random.usize(..100) < percent).collect();
        let (id, subscription) = (format!("m{member:03}"), builder.subscription(&subscribed));
        let mut member = builder.member(&id, subscription);
        for partition in 0..member.topics().partitions() as u32 {
            if random.usize(..members) == 0 {
                member.claim(partition);
            }
        }
        let rack = random.choice(["", "a", "a", "b", "c", "d", "elsewhere"]).unwrap();
        member.generation(random.i32(0..3)).rack(rack).finish();
    }
    builder.finish()
}

fn verify(group: &Group, ownership: &Ownership, plan: &Plan, objective: Objective) -> Result<Certificate, PlanFault> {
    let outcome = Outcome {
        plan: plan.clone(),
        withholding: None,
        ownership: ownership.clone(),
        join: None,
        limited: None,
        leaves_out: LeavesOut::Nothing,
        weighed: None,
    };
    verify_outcome(group, Rules::Partitions { objective, cooperative: false }, None, &outcome)
}

fn start(ownership: &Ownership, objective: Objective) -> Plan {
    let mut plan = Plan { owner: ownership.owner.clone() };
    if objective.mode == Mode::Fair {
        plan.owner.fill(NONE);
    }
    plan
}

/// The distance between two plans, by lane: set of subscribers and near hubs.
fn distance(group: &Group, a: &Plan, b: &Plan) -> u32 {
    let subscribers = Subscribers::new(group);
    let lanes = wide::Lanes::new(group, &subscribers, &Rows::of_subscribers(group, &subscribers));
    let mut assigned: BTreeMap<(u32, u32), (u32, u32)> = BTreeMap::new();
    for partition in lanes.rows.topics.iter().flat_map(|topic| topic.range()) {
        let lane = lanes.rows.of_partition[partition];
        assigned.entry((lane, a.owner[partition])).or_default().0 += 1;
        assigned.entry((lane, b.owner[partition])).or_default().1 += 1;
    }
    assigned.values().map(|(a, b)| a.abs_diff(*b)).sum()
}

/// The proposal of all pairs.
fn proposal(group: &Group, objective: Objective, start: &Plan) -> Plan {
    let subscribers = Subscribers::new(group);
    let rows = Rows::of_racks(group, &subscribers, |_, rack_set| rack_set);
    let pinned = objective.mode == Mode::StickyYetFair;
    let problem = RowProblem::new(group, &subscribers, rows, &start.owner, pinned, true);
    let mut plan = start.clone();
    crate::planning::sticky::deal::deal(&problem, &mut plan, crate::planning::sticky::proposal::propose(&problem).0);
    plan
}

fn objectives() -> impl Iterator<Item = Objective> {
    [Mode::FairYetSticky, Mode::StickyYetFair, Mode::Fair].into_iter().flat_map(|mode| {
        [RackOrder::BeforeStickiness, RackOrder::AfterStickiness].map(|racks| Objective { mode, racks })
    })
}

fn value(certificate: &Certificate) -> (u128, u64, u64) {
    let moved = if certificate.objective.mode == Mode::Fair { 0 } else { certificate.moved };
    (certificate.score, certificate.rack_misses, moved)
}

#[test]
fn as_good_as_with_all_arcs() {
    compare_with_all_arcs(0..200);
}

#[test]
#[ignore = "part of `make check`: the other seeds"]
fn as_good_as_with_all_arcs_for_more_seeds() {
    compare_with_all_arcs(200..1500);
}

fn compare_with_all_arcs(seeds: Range<u64>) {
    let least = seeds.end - seeds.start;
    let (mut compared, mut through_hubs) = (0, 0);
    for seed in seeds {
        let random = &mut fastrand::Rng::with_seed(seed);
        let (topics, partitions, members) = (random.usize(1..7), random.usize(1..12), random.usize(2..12));
        let group = random_group(random, topics, partitions, members);
        if !racks_matter(&group) {
            continue;
        }
        let ownership = settle(&group, None, false);
        for objective in objectives() {
            let what = format!("seed {seed}, {objective:?}");
            let start = start(&ownership, objective);
            let mut ours = start.clone();
            let subscribers = Subscribers::new(&group);
            assert_eq!(wide::assign(&group, &subscribers, objective, &mut ours, &Limit::default()), None, "{what}");
            let rows = Rows::of_racks(&group, &subscribers, |_, rack_set| rack_set);
            let owner = Cow::Borrowed(&*start.owner);
            let (theirs, limited) = dense(&group, subscribers, rows, true, objective, owner, &Limit::default());
            assert_eq!(limited, None, "{what}");
            let certificate = verify(&group, &ownership, &ours, objective).expect(&what);
            let other = verify(&group, &ownership, &theirs, objective).expect(&what);
            assert_eq!(value(&certificate), value(&other), "{what}");
            assert!(certificate.is_optimal(), "{what}: {certificate:?}");
            let proposal = proposal(&group, objective, &start);
            let far = distance(&group, &ours, &proposal);
            assert!(far <= distance(&group, &theirs, &proposal), "{what}");
            compared += 1;
            through_hubs += u64::from(far > 0);
        }
    }
    assert!(compared > 3 * least && through_hubs > least / 2, "{compared} plans, {through_hubs} not as proposed");
}

/// Racks are numbered in the order in which they are read; the plan must not depend on this order.
#[test]
fn the_order_in_which_racks_are_read_means_nothing() {
    read_racks_in_another_order(0..40);
}

#[test]
#[ignore = "part of `make check`: the other seeds"]
fn the_order_in_which_racks_are_read_means_nothing_for_more_seeds() {
    read_racks_in_another_order(40..300);
}

fn read_racks_in_another_order(seeds: Range<u64>) {
    let least = (seeds.end - seeds.start) / 4;
    let reversed = |mut set: Vec<&'static str>| {
        set.sort_unstable();
        set.reverse();
        set
    };
    let mut numbered_otherwise = 0;
    for seed in seeds {
        let groups = [
            random_group(&mut fastrand::Rng::with_seed(seed), 8, 30, 20),
            group_reading(&mut fastrand::Rng::with_seed(seed), 8, 30, 20, reversed),
        ];
        let racks = groups.each_ref().map(|group| group.topics().racks());
        numbered_otherwise += u64::from(racks[0].names.names() != racks[1].names.names());
        for objective in objectives() {
            let [one, other] = groups.each_ref().map(|group| {
                let mut plan = start(&settle(group, None, false), objective);
                wide::assign(group, &Subscribers::new(group), objective, &mut plan, &Limit::default());
                plan
            });
            assert_eq!(one, other, "seed {seed}, {objective:?}");
        }
    }
    assert!(numbered_otherwise > least, "{numbered_otherwise}");
}

/// Under any limit the plan is valid and, with enough steps for the balance, even. The result contains the search that ended
/// early.
#[test]
fn every_limit_ends_in_a_valid_plan() {
    plan_under_limits(0..10);
}

#[test]
#[ignore = "part of `make check`: the other seeds"]
fn every_limit_ends_in_a_valid_plan_for_more_seeds() {
    plan_under_limits(10..60);
}

fn plan_under_limits(seeds: Range<u64>) {
    let mut ends = BTreeSet::new();
    for seed in seeds {
        let random = &mut fastrand::Rng::with_seed(seed);
        let group = random_group(random, 8, 40, 30);
        if !racks_matter(&group) {
            continue;
        }
        let ownership = settle(&group, None, false);
        for objective in objectives() {
            let subscribers = Subscribers::new(&group);
            for steps in [0, 100, 400, 1_000, 3_000, 10_000, 1 << 40] {
                let what = format!("seed {seed}, {objective:?}, {steps} steps");
                let mut plan = start(&ownership, objective);
                let limited = wide::assign(&group, &subscribers, objective, &mut plan, &Limit::of_steps(steps));
                let certificate = verify(&group, &ownership, &plan, objective).expect(&what);
                match limited.map(|limited| limited.goal) {
                    None => assert!(certificate.is_optimal(), "{what}: {certificate:?}"),
                    Some(Goal::Moves) => assert_eq!(Some(certificate.score), certificate.score_bound, "{what}"),
                    Some(_) => {}
                }
                ends.insert(limited.map(|limited| limited.to_string()));
            }
        }
    }
    assert_eq!(ends.len(), 3, "{ends:?}");
}
