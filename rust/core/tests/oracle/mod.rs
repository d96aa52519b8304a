//! Shared by the tests: groups described by names, and plans printed by names.
#![allow(dead_code, unreachable_pub, reason = "every test binary uses another part")]

pub mod brute;

use std::collections::BTreeMap;
use std::ops::Range;

use kafka_assignors_core::planning::budget::Limit;
use kafka_assignors_core::planning::cooperative;
use kafka_assignors_core::planning::group::{Group, GroupBuilder, NONE, TopicSpec, Topics, sorted_members};
use kafka_assignors_core::planning::objective::{Objective, Rules};
use kafka_assignors_core::planning::ownership::Ownership;
use kafka_assignors_core::planning::plan::{LeavesOut, Outcome, Plan};
use kafka_assignors_core::planning::strategy::{Strategy, near_optimum};
use kafka_assignors_core::protocol::subscription::NO_GENERATION;
use kafka_assignors_core::verify::{Certificate, PlanFault, verify_outcome_from};

/// The seeds of a random test: `count` times the environment's `SEED_FACTOR` (`make test-long`), if set. A failing seed
/// is printed, and always fails again.
pub fn seeds(count: u64) -> Range<u64> {
    more_seeds(0..count)
}

/// The seeds of a test that continues where the [`seeds`] of another test end.
pub fn more_seeds(seeds: Range<u64>) -> Range<u64> {
    let factor: u64 = std::env::var("SEED_FACTOR").map_or(1, |factor| factor.parse().expect("SEED_FACTOR is a number"));
    seeds.start * factor..seeds.end * factor
}

/// Verifies the outcome of a strategy; the search for the bounds starts near an optimum.
pub fn verified(
    group: &Group,
    strategy: Strategy,
    forming: Option<i32>,
    outcome: &Outcome,
) -> Result<Certificate, PlanFault> {
    let start = near_optimum(group, strategy, outcome, &Limit::default());
    verify_outcome_from(group, strategy.rules(), forming, outcome, &start, &Limit::default())
}

/// The outcome of a strategy with this target. In a cooperative group, whose ownership has holders, it withholds the partitions
/// that must be revoked first.
pub fn outcome_of(ownership: &Ownership, target: &Plan) -> Outcome {
    let is_cooperative = !ownership.held.is_empty();
    Outcome {
        plan: cooperative::withhold(target, ownership),
        withholding: is_cooperative.then(|| target.clone()),
        ownership: ownership.clone(),
        join: None,
        limited: None,
        leaves_out: LeavesOut::Nothing,
        weighed: None,
    }
}

/// The rules for an [`outcome_of`] this ownership.
pub fn rules_of(ownership: &Ownership, objective: Objective) -> Rules {
    Rules::Partitions { objective, cooperative: !ownership.held.is_empty() }
}

/// A topic by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopicDef {
    pub partitions: u32,
    /// The racks by partition number. In a shorter list the racks of the other partitions are unknown.
    pub racks: Option<Vec<Vec<String>>>,
}

/// A member by names. Its claims may be invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberDef {
    pub id: String,
    pub instance: String,
    pub topics: Vec<String>,
    pub owned: Vec<(String, i32)>,
    pub generation: i32,
    pub rack: String,
}

/// A group by names, in any order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupDef {
    pub topics: BTreeMap<String, TopicDef>,
    pub members: Vec<MemberDef>,
}

pub fn member(id: &str, topics: &[&str]) -> MemberDef {
    MemberDef {
        id: id.to_owned(),
        instance: String::new(),
        topics: topics.iter().map(|&topic| topic.to_owned()).collect(),
        owned: Vec::new(),
        generation: NO_GENERATION,
        rack: String::new(),
    }
}

/// Parses `"t0p1"` to topic and number.
pub fn parse(partition: &str) -> (String, i32) {
    let (topic, number) = partition.rsplit_once('p').expect("a partition is written like t0p1");
    (topic.to_owned(), number.parse().expect("a partition ends in its number"))
}

impl MemberDef {
    /// `"t0p0 t1p1"`, claimed with this generation.
    pub fn owning(mut self, owned: &str, generation: i32) -> Self {
        self.owned = owned.split_whitespace().map(parse).collect();
        self.generation = generation;
        self
    }

    pub fn on_rack(mut self, rack: &str) -> Self {
        rack.clone_into(&mut self.rack);
        self
    }

    pub fn instance(mut self, instance: &str) -> Self {
        instance.clone_into(&mut self.instance);
        self
    }
}

impl GroupDef {
    /// Topics with their partition counts, and members.
    pub fn new(topics: &[(&str, u32)], members: Vec<MemberDef>) -> Self {
        let topics = topics.iter().map(|&(name, partitions)| (name.to_owned(), TopicDef { partitions, racks: None }));
        Self { topics: topics.collect(), members }
    }

    /// `"a ab -"`: the racks of each partition, one letter each, `-` for none known.
    pub fn racks(mut self, topic: &str, racks: &str) -> Self {
        let letters = |set: &str| set.chars().filter(|&c| c != '-').map(String::from).collect();
        let def = self.topics.get_mut(topic).expect("racks are for a topic of the group");
        def.racks = Some(racks.split_whitespace().map(letters).collect());
        self
    }

    /// The group as the bindings build it: topics and partitions that do not exist are ignored.
    pub fn build(&self) -> Group {
        self.build_with_lags(Vec::new())
    }

    /// As `build`; the topics carry these lags, by flat partition, unless there are none.
    pub fn build_with_lags(&self, lags: Vec<u64>) -> Group {
        let spec = |(name, def): (&'_ String, &'_ TopicDef)| -> (String, i64, Option<Vec<Vec<String>>>) {
            let mut racks = def.racks.clone();
            if let Some(racks) = &mut racks {
                racks.resize(def.partitions as usize, Vec::new());
            }
            (name.clone(), i64::from(def.partitions), racks)
        };
        let owned: Vec<_> = self.topics.iter().map(spec).collect();
        let specs = owned.iter().map(|(name, partitions, racks)| TopicSpec {
            name,
            partitions: *partitions,
            racks: racks
                .as_ref()
                .map(|racks| racks.iter().map(|set| set.iter().map(String::as_str).collect()).collect()),
        });
        let mut topics = Topics::new(specs.collect()).expect("the tests' topics are valid");
        if !lags.is_empty() {
            topics.set_lags(lags);
        }
        let mut builder = GroupBuilder::new(topics);
        let ids: Vec<&str> = self.members.iter().map(|member| member.id.as_str()).collect();
        for position in sorted_members(&ids).0 {
            let member = &self.members[position as usize];
            let known: Vec<u32> = member.topics.iter().filter_map(|t| builder.topics().find(t.as_bytes())).collect();
            let subscription = builder.subscription(&known);
            let mut built = builder.member(&member.id, subscription).instance_id(&member.instance);
            for (topic, number) in &member.owned {
                let Some(topic) = built.topics().find(topic.as_bytes()) else { continue };
                let range = built.topics().range(topic);
                if *number >= 0 && (*number as u32) < range.len() as u32 {
                    built.claim(range.start + *number as u32);
                }
            }
            built.generation(member.generation).rack(&member.rack).finish();
        }
        builder.finish()
    }
}

/// `"C0: t0p0 t1p0; C1: t0p1"`.
pub fn show(group: &Group, plan: &Plan) -> String {
    let mut lists = vec![String::new(); group.members()];
    for (partition, &owner) in (0u32..).zip(&plan.owner) {
        if owner != NONE {
            lists[owner as usize] += &format!(" {}", name(group, partition));
        }
    }
    let shown = group.member_ids().iter().zip(lists).map(|(id, list)| format!("{id}:{list}"));
    shown.collect::<Vec<_>>().join("; ")
}

pub fn name(group: &Group, partition: u32) -> String {
    let (topic, number) = group.topics().locate(partition);
    format!("{}p{number}", group.topics().names().get(topic))
}

/// A small generator of random numbers (xorshift64*), so that a seed reproduces every case.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x2545_F491_4F6C_DD1D)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    /// Below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// True `percent` times out of a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

/// The plan of an assignment of the brute force, in which a member is its index in the sorted list.
pub fn plan_of(assignment: &[Option<usize>]) -> Plan {
    Plan { owner: assignment.iter().map(|owner| owner.map_or(NONE, |owner| owner as u32)).collect() }
}
