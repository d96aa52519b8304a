//! What the heaviest groups with racks that fit into one record cost: counted in bytes and steps, never timed.

mod oracle;

use allocation_counter::measure;
use kafka_assignors_core::budget::Limit;
use kafka_assignors_core::group::{Group, GroupBuilder, TopicSpec, Topics};
use kafka_assignors_core::strategy::{Mode, Objective, RackOrder, Strategy, plan, settle};
use kafka_assignors_core::verify::verify_outcome_from;
use oracle::Random;

const STICKY: Strategy = Strategy::Sticky(Objective { mode: Mode::FairYetSticky, racks: RackOrder::BeforeStickiness });

/// Everybody reads all topics but two, three replicas of each partition are on racks at random: no two members are alike,
/// nearly no two partitions, and each member could have nearly each partition.
fn members_by_partitions(topics: usize, partitions: usize, members: usize) -> Group {
    let random = &mut Random::new(23);
    let racks: Vec<String> = (0..20).map(|rack| format!("r{rack}")).collect();
    let names: Vec<String> = (0..topics).map(|topic| format!("t{topic}")).collect();
    let specs = names.iter().map(|name| {
        let mut set = || (0..3).map(|_| racks[random.below(20)].as_str()).collect();
        TopicSpec { name, partitions: partitions as i64, racks: Some((0..partitions).map(|_| set()).collect()) }
    });
    let mut builder = GroupBuilder::new(Topics::new(specs.collect()).unwrap());
    for member in 0..members {
        let without = [random.below(topics), random.below(topics)];
        let subscribed: Vec<u32> =
            (0..topics).filter(|topic| !without.contains(topic)).map(|topic| topic as u32).collect();
        let pattern = builder.pattern(&subscribed);
        builder.push_member(&format!("m{member:04}"), "", pattern, 0, &racks[random.below(20)]);
    }
    builder.finish()
}

#[test]
fn memory_grows_with_partitions_and_subscriptions_not_with_their_product() {
    let group = members_by_partitions(80, 60, 400);
    let mut planned = None;
    let allocated = measure(|| planned = Some(plan(&group, STICKY, settle(&group, STICKY, None), &Limit::default())));
    let outcome = planned.unwrap();
    assert_eq!(outcome.limited, None);
    // 4,800 partitions, 31,200 subscriptions, 20 racks; but 1,900,000 pairs of a partition and a member.
    assert!(allocated.bytes_max < 12_000_000, "{allocated:?}");
    let mut verified = None;
    let allocated = measure(|| verified = Some(outcome.verify(&group, STICKY)));
    let certificate = verified.unwrap().unwrap();
    assert!(certificate.is_optimal(), "{certificate:?}");
    assert!(allocated.bytes_max < 12_000_000, "{allocated:?}");
}

/// Topics of very different sizes, each member on some of them, replicas and members on racks at random.
fn skewed(topics: usize, members: usize) -> Group {
    let random = &mut Random::new(29);
    let racks: Vec<String> = (0..20).map(|rack| format!("r{rack}")).collect();
    let names: Vec<String> = (0..topics).map(|topic| format!("t{topic}")).collect();
    let specs = (1..).zip(&names).map(|(rank, name)| {
        let partitions = 1 + 6 * topics / rank;
        let mut set = || (0..3).map(|_| racks[random.below(20)].as_str()).collect();
        TopicSpec { name, partitions: partitions as i64, racks: Some((0..partitions).map(|_| set()).collect()) }
    });
    let mut builder = GroupBuilder::new(Topics::new(specs.collect()).unwrap());
    for member in 0..members {
        let mut subscribed: Vec<u32> = (0..10).map(|_| random.below(topics) as u32).collect();
        subscribed.sort_unstable();
        subscribed.dedup();
        let pattern = builder.pattern(&subscribed);
        builder.push_member(&format!("m{member:04}"), "", pattern, 0, &racks[random.below(20)]);
    }
    builder.finish()
}

#[test]
fn a_range_plan_of_a_skewed_group_is_verified_in_few_steps() {
    let group = skewed(100, 400);
    let range = plan(&group, Strategy::Range, settle(&group, Strategy::Range, None), &Limit::default());
    let start = plan(&group, STICKY, settle(&group, STICKY, None), &Limit::default());
    let limit = Limit::of_steps(150_000);
    let certificate = verify_outcome_from(&group, Strategy::Range, &range, &start.plan, &limit).unwrap();
    assert_eq!(certificate.limited, None);
    assert!(certificate.score_bound.unwrap() < certificate.score, "{certificate:?}");
    assert_eq!(Ok(certificate), range.verify(&group, Strategy::Range));
}
