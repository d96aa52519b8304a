//! A whole rebalance from arbitrary bytes: for any metadata, each member gets an assignment, and the plan passes the
//! verification.
//!
//! The input: a byte for the strategy; then blocks of one length byte and that many bytes. The first block's bytes are
//! partition counts (modulo 16) and, in their high bit, whether the topic has racks; each further block is one member.

use kafka_assignors_core::planning::budget::Limit;
use kafka_assignors_core::planning::group::{NONE, TopicSpec, Topics};
use kafka_assignors_core::planning::leader::{
    ClaimSource, HandedOut, JoinedMember, Memory, codec_floor, perform_assignment, perform_assignment_knowing,
};
use kafka_assignors_core::planning::objective::{Mode, Objective, RackOrder};
use kafka_assignors_core::planning::strategy::Strategy;
use kafka_assignors_core::protocol::assignment::Assignment;
use kafka_assignors_core::verify::verify_outcome;

const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "", "t"];
const RACKS: [&str; 3] = ["r1", "r2", "x"];
const IDS: [&str; 12] = ["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9", "m0", ""];

fn strategy(byte: u8) -> Strategy {
    let mode = [Mode::FairYetSticky, Mode::StickyYetFair, Mode::Fair][usize::from(byte >> 2) % 3];
    let racks = if byte & 0x40 == 0 { RackOrder::BeforeStickiness } else { RackOrder::AfterStickiness };
    let objective = Objective { mode, racks };
    match byte & 3 {
        // The lowest two bits have no room for the stream joins. The highest mode selects them.
        _ if byte & 0x3c == 0x3c => Strategy::StreamJoin { cooperative: byte & 1 == 1 },
        0 => Strategy::Sticky(objective),
        1 => Strategy::CooperativeSticky(objective),
        2 => Strategy::Range,
        _ => Strategy::RoundRobin,
    }
}

fn topics(counts: &[u8]) -> Topics {
    let specs = NAMES.iter().zip(counts).map(|(name, &byte)| {
        let partitions = byte % 16;
        let racks = |number: u8| vec![RACKS[usize::from(number.wrapping_add(byte >> 4)) % 3]];
        let racks = (byte & 0x80 != 0).then(|| (0..partitions).map(racks).collect());
        TopicSpec { name, partitions: partitions.into(), racks }
    });
    Topics::new(specs.collect()).expect("different names and small counts")
}

pub(crate) fn check(input: &[u8]) {
    let Some((&choice, mut rest)) = input.split_first() else { return };
    let mut blocks = Vec::new();
    while let Some((&length, after)) = rest.split_first() {
        let (block, after) = after.split_at(usize::from(length).min(after.len()));
        blocks.push(block);
        rest = after;
    }
    let Some((&counts, metadata)) = blocks.split_first() else { return };
    let members: Vec<JoinedMember<'_>> = IDS
        .iter()
        .zip(metadata)
        .map(|(id, metadata)| JoinedMember { id, instance_id: (metadata.len() % 5 == 4).then_some(id), metadata })
        .collect();
    let strategy = strategy(choice);
    let forming = (choice & 0x80 != 0).then_some(i32::from(choice));
    let performed = perform_assignment(&members, topics(counts), strategy, forming).expect("short names");

    let certificate = verify_outcome(&performed.group, strategy.rules(), performed.forming, &performed.outcome)
        .expect("a right plan");
    assert!(ClaimSource::of(strategy) == ClaimSource::None || certificate.is_optimal());

    let names = performed.group.topics().names();
    let mut written = vec![NONE; performed.group.topics().partitions()];
    assert_eq!(performed.assignments.len(), performed.group.members());
    for (member, bytes) in (0u32..).zip(performed.assignments.iter()) {
        let assignment = Assignment::read(bytes).expect("what is written can be read");
        assert_eq!((assignment.fault, assignment.generation()), (None, performed.generation));
        for (name, numbers) in assignment.partitions.iter() {
            let topic = names.find_sorted(std::str::from_utf8(name).unwrap()).expect("a topic of the group");
            for number in numbers.iter() {
                let slot = &mut written[(performed.group.topics().range(topic).start + number as u32) as usize];
                assert_eq!(*slot, NONE, "a partition is given once");
                *slot = member;
            }
        }
    }
    assert_eq!(written, performed.outcome.plan.owner);

    let reversed: Vec<JoinedMember<'_>> = members.iter().rev().copied().collect();
    let unique = performed.order.len() == members.len();
    let again = perform_assignment(&reversed, topics(counts), strategy, forming).expect("short names");
    assert!(!unique || again.assignments == performed.assignments, "the order of the input has no part in it");
    let (joined, floor) = codec_floor(&members, topics(counts), ClaimSource::of(strategy)).expect("short names");
    assert_eq!((joined.order, floor.len()), (performed.order, performed.assignments.len()));

    // The same leader plans again. Claims of its plan's generation count only for partitions that the plan assigned.
    let past =
        HandedOut { generation: forming, written: again.generation, group: &again.group, outcome: &again.outcome };
    let memory = Memory { plans: &[past], anonymous: choice & 0x40 != 0 };
    let formed = forming.map(|generation| generation + 1);
    let next = perform_assignment_knowing(&members, topics(counts), strategy, formed, &Limit::default(), &memory)
        .expect("short names");
    verify_outcome(&next.group, strategy.rules(), next.forming, &next.outcome).expect("a right plan");
    let planned = forming.or(again.generation).filter(|_| next.outcome.join.is_none() && unique);
    let held = &again.outcome.ownership.held;
    for (place, (&owner, &given)) in next.outcome.ownership.owner.iter().zip(&again.outcome.plan.owner).enumerate() {
        let of_the_plan = owner != NONE && planned == Some(next.group.generations()[owner as usize]);
        let known = owner == given || held.get(place) == Some(&owner);
        assert!(!of_the_plan || known, "a claim of a plan that did not give it counts");
    }
}
