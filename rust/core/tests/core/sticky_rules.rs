//! The tie-breaks, as drawings: the partitions of each member before and after.
//!
//! `a0` is partition 0 of topic `a`. Members are named by the order of their ids.

use kafka_assignors_core::planning::group::{Group, GroupBuilder, TopicSpec, Topics};
use kafka_assignors_core::planning::objective::{Mode, Objective, RackOrder};
use kafka_assignors_core::planning::strategy::{Strategy, assign};
use kafka_assignors_core::protocol::subscription::NO_GENERATION;

/// A group from text: topics as `a2 b3` (name and partition count), members as `id: topics | owned partitions`.
fn group(topics: &str, members: &[&str]) -> Group {
    let specs = topics.split_whitespace().map(|topic| {
        let (name, partitions) = topic.split_at(1);
        TopicSpec { name, partitions: partitions.parse().unwrap(), racks: None }
    });
    let mut builder = GroupBuilder::new(Topics::new(specs.collect()).unwrap());
    for member in members {
        let (id, rest) = member.split_once(':').unwrap();
        let (subscription, held) = rest.split_once('|').unwrap_or((rest, ""));
        let topics: Vec<u32> =
            subscription.split_whitespace().filter_map(|name| builder.topics().find(name.as_bytes())).collect();
        let subscription = builder.subscription(&topics);
        let held: Vec<&str> = held.split_whitespace().collect();
        let mut member = builder.member(id, subscription).generation(if held.is_empty() { NO_GENERATION } else { 3 });
        for partition in &held {
            let (name, number) = partition.split_at(1);
            let topic = member.topics().find(name.as_bytes()).unwrap();
            let first = member.topics().range(topic).start;
            member.claim(first + number.parse::<u32>().unwrap());
        }
        member.finish();
    }
    builder.finish()
}

fn drawn(group: &Group, mode: Mode) -> Vec<String> {
    let objective = Objective { mode, racks: RackOrder::default() };
    let outcome = assign(group, Strategy::Sticky(objective), None);
    let line = |member: u32| {
        let mut line = format!("{}:", group.member_ids().get(member));
        for (partition, _) in (0u32..).zip(&outcome.plan.owner).filter(|&(_, &owner)| owner == member) {
            let (topic, number) = group.topics().locate(partition);
            line += &format!(" {}{number}", group.topics().names().get(topic));
        }
        line
    };
    (0..group.members() as u32).map(line).collect()
}

fn sticky(topics: &str, members: &[&str]) -> Vec<String> {
    drawn(&group(topics, members), Mode::FairYetSticky)
}

#[test]
fn kip_54_example_1() {
    let topics = "a2 b2 c2 d2";
    let fresh = sticky(topics, &["C0: a b c d", "C1: a b c d", "C2: a b c d"]);
    assert_eq!(fresh, ["C0: a0 b1 d0", "C1: a1 c0 d1", "C2: b0 c1"]);
    let left = sticky(topics, &["C0: a b c d | a0 b1 d0", "C2: a b c d | b0 c1"]);
    assert_eq!(left, ["C0: a0 b1 c0 d0", "C2: a1 b0 c1 d1"]);
}

#[test]
fn kip_54_example_2() {
    let topics = "a1 b2 c3";
    let fresh = sticky(topics, &["C0: a", "C1: a b", "C2: a b c"]);
    assert_eq!(fresh, ["C0: a0", "C1: b0 b1", "C2: c0 c1 c2"]);
    let left = sticky(topics, &["C1: a b | b0 b1", "C2: a b c | c0 c1 c2"]);
    assert_eq!(left, ["C1: a0 b0 b1", "C2: c0 c1 c2"]);
}

#[test]
fn kip_54_example_3() {
    let fresh = sticky("a2 b2", &["C0: a b", "C1: a b"]);
    assert_eq!(fresh, ["C0: a0 b0", "C1: a1 b1"]);
    let joined = sticky("a2 b2", &["C0: a b | a0 b0", "C1: a b | a1 b1", "C2: a b"]);
    assert_eq!(joined, ["C0: a0 b0", "C1: a1", "C2: b1"]);
}

/// Rule 1: of the members that own more than their share, the first by id keep one partition more.
#[test]
fn extra_slots_go_by_id() {
    let plan = sticky("a8", &["m1: a | a0 a1 a2", "m2: a | a3 a4 a5", "m3: a | a6 a7"]);
    assert_eq!(plan, ["m1: a0 a1 a2", "m2: a3 a4 a5", "m3: a6 a7"]);
    let plan = sticky("a7", &["m1: a | a0 a1", "m2: a | a2 a3 a4", "m3: a | a5 a6"]);
    assert_eq!(plan, ["m1: a0 a1", "m2: a2 a3 a4", "m3: a5 a6"]);
}

/// Rule 2: a member loses its largest partition numbers first, in any topic. So a loss of two takes one of each topic.
#[test]
fn a_loss_spreads_over_topics() {
    let plan = sticky("a3 b3", &["m1: a b | a0 a1 a2 b0 b1 b2", "m2: a b", "m3: a b"]);
    assert_eq!(plan, ["m1: a0 b0", "m2: a1 b1", "m3: a2 b2"]);
}

/// Rule 4: no member gets more than its part of a topic while another has less: 2 topics of 18 partitions for 9 members
/// (librdkafka #4044).
#[test]
fn topics_spread_too() {
    let members: Vec<String> = (0..9).map(|m| format!("m{m}: a b")).collect();
    let group = group("a18 b18", &members.iter().map(String::as_str).collect::<Vec<_>>());
    for line in drawn(&group, Mode::FairYetSticky) {
        assert_eq!((line.matches('a').count(), line.matches('b').count()), (2, 2), "{line}");
    }
}

/// No single move improves this plan, but a chain does: a `b` moves from m3 to m2, and an `a` from m2 to m1.
#[test]
fn chains_of_moves_are_found() {
    let plan = sticky("a6 b6", &["m1: a | a0 a1 a2", "m2: a b | a3 a4 a5 b0", "m3: b | b1 b2 b3 b4 b5"]);
    assert_eq!(plan, ["m1: a0 a1 a2 a5", "m2: a3 a4 b0 b5", "m3: b1 b2 b3 b4"]);
}

/// The partitions of a topic with one subscriber stay with it, even if the plan is unbalanced.
#[test]
fn who_alone_subscribes_has_all() {
    assert_eq!(sticky("a5 b1", &["m1: a", "m2: b", "m3:"]), ["m1: a0 a1 a2 a3 a4", "m2: b0", "m3:"]);
}

/// `sticky-yet-fair`: no owned partition moves; the new members get the partitions without an owner.
#[test]
fn stickiness_may_come_first() {
    let group = group("a6", &["m1: a | a0 a1 a2 a3", "m2: a", "m3: a"]);
    assert_eq!(drawn(&group, Mode::StickyYetFair), ["m1: a0 a1 a2 a3", "m2: a4", "m3: a5"]);
    assert_eq!(drawn(&group, Mode::FairYetSticky), ["m1: a0 a1", "m2: a2 a4", "m3: a3 a5"]);
}

/// `fair`: the owned partitions have no effect.
#[test]
fn the_past_may_not_count() {
    let fresh = drawn(&group("a4", &["m1: a", "m2: a"]), Mode::Fair);
    let later = drawn(&group("a4", &["m1: a | a2 a3", "m2: a | a0 a1"]), Mode::Fair);
    assert_eq!(fresh, later);
}

#[test]
fn empty_groups_have_plans() {
    assert_eq!(sticky("", &[]), [""; 0]);
    assert_eq!(sticky("a3", &[]), [""; 0]);
    assert_eq!(sticky("", &["m1: a", "m2:"]), ["m1:", "m2:"]);
    assert_eq!(sticky("a0 b0", &["m1: a b", "m2: a"]), ["m1:", "m2:"]);
    assert_eq!(sticky("a2", &["m1:", "m2:"]), ["m1:", "m2:"]);
}
