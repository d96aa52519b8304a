//! The memory and the steps of the largest groups with racks that fit into one record.

mod oracle;

use allocation_counter::measure;
use kafka_assignors_core::planning::budget::Limit;
use kafka_assignors_core::planning::group::{Group, GroupBuilder, TopicSpec, Topics};
use kafka_assignors_core::planning::objective::{Mode, Objective, RackOrder};
use kafka_assignors_core::planning::strategy::{Strategy, plan, settle};
use kafka_assignors_core::verify::verify_outcome_from;
use oracle::Random;

const STICKY: Strategy = Strategy::Sticky(Objective { mode: Mode::FairYetSticky, racks: RackOrder::BeforeStickiness });

/// A group whose topics have these partition counts. Each partition has three replicas on random racks, and each member
/// is on a random rack. `subscribed` draws the topics of a member.
fn group(
    random: &mut Random,
    counts: impl Iterator<Item = usize>,
    members: usize,
    mut subscribed: impl FnMut(&mut Random) -> Vec<u32>,
) -> Group {
    let racks: Vec<String> = (0..20).map(|rack| format!("r{rack}")).collect();
    let topics: Vec<(String, usize)> = counts.enumerate().map(|(topic, count)| (format!("t{topic}"), count)).collect();
    let specs = topics.iter().map(|(name, count)| {
        let mut set = || (0..3).map(|_| racks[random.below(20)].as_str()).collect();
        TopicSpec { name, partitions: *count as i64, racks: Some((0..*count).map(|_| set()).collect()) }
    });
    let mut builder = GroupBuilder::new(Topics::new(specs.collect()).unwrap());
    for member in 0..members {
        let subscription = builder.subscription(&subscribed(random));
        let rack = &racks[random.below(20)];
        builder.member(&format!("m{member:04}"), subscription).generation(0).rack(rack).finish();
    }
    builder.finish()
}

/// Every member subscribes to all topics except two. So all members differ, nearly all partitions differ, and nearly
/// each partition can go to nearly each member.
fn members_by_partitions(topics: usize, partitions: usize, members: usize) -> Group {
    group(&mut Random::new(23), std::iter::repeat_n(partitions, topics), members, |random| {
        let without = [random.below(topics), random.below(topics)];
        (0..topics).filter(|topic| !without.contains(topic)).map(|topic| topic as u32).collect()
    })
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
    let allocated = measure(|| verified = Some(oracle::verified(&group, STICKY, None, &outcome)));
    let certificate = verified.unwrap().unwrap();
    assert!(certificate.is_optimal(), "{certificate:?}");
    assert!(allocated.bytes_max < 12_000_000, "{allocated:?}");
}

/// Topics of very different sizes, each member on some of them.
fn skewed(topics: usize, members: usize) -> Group {
    let counts = (1..=topics).map(|rank| 1 + 6 * topics / rank);
    group(&mut Random::new(29), counts, members, |random| {
        let mut subscribed: Vec<u32> = (0..10).map(|_| random.below(topics) as u32).collect();
        subscribed.sort_unstable();
        subscribed.dedup();
        subscribed
    })
}

#[test]
fn a_range_plan_of_a_skewed_group_is_verified_in_few_steps() {
    let group = skewed(100, 400);
    let range = plan(&group, Strategy::Range, settle(&group, Strategy::Range, None), &Limit::default());
    let start = plan(&group, STICKY, settle(&group, STICKY, None), &Limit::default());
    let limit = Limit::of_steps(150_000);
    let certificate = verify_outcome_from(&group, Strategy::Range.rules(), None, &range, &start.plan, &limit).unwrap();
    assert_eq!(certificate.limited, None);
    assert!(certificate.score_bound.unwrap() < certificate.score, "{certificate:?}");
    assert_eq!(Ok(certificate), oracle::verified(&group, Strategy::Range, None, &range));
}
