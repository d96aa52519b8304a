//! The hosts' metadata and the leaders' plans, written as in the Python package.

use crate::encode::{SubscriptionFields, encode_cooperative, encode_sticky};
use kafka_assignors_core::member::{Assignor, Partitions, PlanMember, PlanTopic};
use kafka_assignors_core::planning::group::{TopicSpec, Topics};
use kafka_assignors_core::planning::leader::{JoinedMember, perform_assignment};
use kafka_assignors_core::planning::objective::{Mode, Objective, RackOrder};
use kafka_assignors_core::planning::strategy::Strategy;
use kafka_assignors_core::protocol::topic_partitions::CanonicalPartitions;

pub(crate) fn assignor(name: &str) -> Assignor {
    let cooperative = name.starts_with("cooperative");
    Assignor { name: name.to_owned(), cooperative, settles_claims: cooperative, uses_racks: false }
}

/// The state that a host keeps for its assignors.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    pub(crate) owned: Partitions,
    pub(crate) generation: Option<i32>,
}

fn canonical(partitions: &Partitions) -> CanonicalPartitions<'_> {
    CanonicalPartitions::new(partitions.iter().map(|(topic, numbers)| (topic.as_str(), numbers.iter().copied())))
}

/// The metadata of an assignor. `owned` are the partitions that the member owns while it joins; an eager member owns
/// none.
pub(crate) fn metadata(name: &str, topics: &[String], owned: &Partitions, memory: &Memory) -> Vec<u8> {
    let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
    let sticky = encode_sticky(&canonical(&memory.owned), memory.generation).unwrap();
    let cooperative = encode_cooperative(memory.generation);
    let user_data = match name {
        "sticky" => Some(sticky.as_slice()),
        "cooperative-sticky" => Some(cooperative.as_slice()),
        _ => None,
    };
    let fields = SubscriptionFields {
        topics: &topics,
        user_data,
        owned: canonical(owned),
        generation: memory.generation,
        rack: None,
    };
    fields.encode().unwrap()
}

pub(crate) fn plan(
    name: &str,
    members: &[PlanMember],
    topics: &[PlanTopic],
    generation: i32,
) -> Vec<(String, Vec<u8>)> {
    let objective = Objective { mode: Mode::FairYetSticky, racks: RackOrder::BeforeStickiness };
    let strategy = match name {
        "sticky" => Strategy::Sticky(objective),
        "cooperative-sticky" => Strategy::CooperativeSticky(objective),
        "range" => Strategy::Range,
        _ => Strategy::RoundRobin,
    };
    let specs = topics.iter().map(|topic| TopicSpec {
        name: &topic.name,
        partitions: i64::from(topic.partitions),
        racks: None,
    });
    let joined: Vec<JoinedMember<'_>> = members
        .iter()
        .map(|member| JoinedMember {
            id: &member.member_id,
            instance_id: member.group_instance_id.as_deref(),
            metadata: &member.metadata,
        })
        .collect();
    let performed =
        perform_assignment(&joined, Topics::new(specs.collect()).unwrap(), strategy, Some(generation)).unwrap();
    let ids = performed.group.member_ids();
    (0..performed.group.members() as u32)
        .map(|member| (ids.get(member).to_owned(), performed.assignments.get(member).to_vec()))
        .collect()
}
