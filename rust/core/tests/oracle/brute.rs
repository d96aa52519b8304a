//! The optimum by brute force: all assignments of a tiny group, and the claims settled by their definition. It works on
//! names and shares no code with the crate.

use std::collections::BTreeSet;

use kafka_assignors_core::planning::objective::{Mode, Objective, RackOrder};

use super::{GroupDef, MemberDef, Random, TopicDef, member};

/// A tiny group in plain lists: members by id, partitions by topic and number.
#[derive(Debug, Clone)]
pub struct Plain {
    pub members: Vec<MemberDef>,
    pub partitions: Vec<(String, u32)>,
    /// By partition, the members that subscribe to it.
    pub subscribers: Vec<Vec<usize>>,
    /// By partition, the owner according to the claims.
    pub owner: Vec<Option<usize>>,
    /// By partition, the members that hold it: claims of the newest generation, subscribed or not.
    pub holders: Vec<BTreeSet<usize>>,
    /// By partition, the racks of its replicas.
    pub racks: Vec<BTreeSet<String>>,
    pub racks_matter: bool,
}

impl Plain {
    pub fn new(def: &GroupDef, forming: Option<i32>) -> Self {
        let mut members = def.members.clone();
        members.sort_by(|a, b| a.id.cmp(&b.id));
        let partitions: Vec<(String, u32)> = def
            .topics
            .iter()
            .flat_map(|(topic, def)| (0..def.partitions).map(|number| (topic.clone(), number)))
            .collect();
        let subscribes = |member: &MemberDef, topic: &String| member.topics.contains(topic);
        let everybody = 0..members.len();
        let claimants = |(topic, number): &(String, u32)| -> Vec<usize> {
            let claims = |&m: &usize| {
                let member: &MemberDef = &members[m];
                let true_claim = forming.is_none_or(|forming| member.generation < forming);
                true_claim && member.owned.iter().any(|(t, n)| t == topic && i64::from(*n) == i64::from(*number))
            };
            everybody.clone().filter(claims).collect()
        };
        let newest = |claimants: Vec<usize>| -> BTreeSet<usize> {
            let newest = claimants.iter().map(|&m| members[m].generation.max(-1)).max();
            claimants.into_iter().filter(|&m| Some(members[m].generation.max(-1)) == newest).collect()
        };
        let owner = partitions.iter().map(|partition| {
            let valid = claimants(partition).into_iter().filter(|&m| subscribes(&members[m], &partition.0)).collect();
            let best = newest(valid);
            if best.len() == 1 { best.first().copied() } else { None }
        });
        let owner = owner.collect();
        let holders = partitions.iter().map(|partition| newest(claimants(partition))).collect();
        let subscribers: Vec<Vec<usize>> = partitions
            .iter()
            .map(|(topic, _)| everybody.clone().filter(|&m| subscribes(&members[m], topic)).collect())
            .collect();
        let racks: Vec<BTreeSet<String>> = partitions
            .iter()
            .map(|(topic, number)| {
                let known = def.topics[topic].racks.as_ref().and_then(|racks| racks.get(*number as usize));
                known.into_iter().flatten().cloned().collect()
            })
            .collect();
        let used = || racks.iter().zip(&subscribers).filter(|(_, subscribers)| !subscribers.is_empty()).map(|(r, _)| r);
        let all: BTreeSet<String> = used().flatten().cloned().collect();
        let racks_matter = members.iter().any(|member| all.contains(&member.rack)) && used().any(|set| *set != all);
        Self { partitions, subscribers, owner, holders, racks, racks_matter, members }
    }

    pub fn is_miss(&self, partition: usize, member: usize) -> bool {
        let rack = &self.members[member].rack;
        self.racks_matter && !rack.is_empty() && !self.racks[partition].contains(rack)
    }

    /// The number of complete assignments.
    pub fn assignments(&self) -> u64 {
        let choices = self.subscribers.iter().map(|subscribers| subscribers.len().max(1) as u64);
        choices.fold(1, u64::saturating_mul)
    }

    pub fn value(&self, assignment: &[Option<usize>]) -> Value {
        let mut value = Value::default();
        let mut loads = vec![0u128; self.members.len()];
        for (partition, &owner) in assignment.iter().enumerate() {
            if let Some(owner) = owner {
                loads[owner] += 1;
                value.misses += u64::from(self.is_miss(partition, owner));
                value.kept += u64::from(self.owner[partition] == Some(owner));
                value.moved += u64::from(self.owner[partition].is_some_and(|before| before != owner));
            }
        }
        for (i, a) in loads.iter().enumerate() {
            value.score += loads[i + 1..].iter().map(|b| a.abs_diff(*b)).sum::<u128>();
        }
        value
    }

    /// Calls `visit` with every complete assignment.
    pub fn for_all(&self, mut visit: impl FnMut(&[Option<usize>])) {
        let mut choice = vec![0; self.partitions.len()];
        let mut assignment: Vec<Option<usize>> = self.subscribers.iter().map(|s| s.first().copied()).collect();
        loop {
            visit(&assignment);
            let Some(next) = (0..choice.len()).find(|&p| choice[p] + 1 < self.subscribers[p].len()) else { return };
            choice[..next].fill(0);
            choice[next] += 1;
            for p in 0..=next {
                assignment[p] = self.subscribers[p].get(choice[p]).copied();
            }
        }
    }
}

/// The measures of an assignment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Value {
    pub score: u128,
    pub kept: u64,
    pub moved: u64,
    pub misses: u64,
}

impl Value {
    /// The sort key of the objective: the least is the best.
    pub fn key(&self, objective: Objective) -> (u128, u128, u128) {
        let (score, moved, misses) = (self.score, u128::from(self.moved), u128::from(self.misses));
        match (objective.mode, objective.racks) {
            (Mode::FairYetSticky, RackOrder::BeforeStickiness) => (score, misses, moved),
            (Mode::FairYetSticky, RackOrder::AfterStickiness) => (score, moved, misses),
            (Mode::StickyYetFair, _) => (moved, score, misses),
            (Mode::Fair, _) => (score, misses, 0),
        }
    }
}

pub const OBJECTIVES: [Objective; 4] = [
    Objective { mode: Mode::FairYetSticky, racks: RackOrder::BeforeStickiness },
    Objective { mode: Mode::FairYetSticky, racks: RackOrder::AfterStickiness },
    Objective { mode: Mode::StickyYetFair, racks: RackOrder::BeforeStickiness },
    Objective { mode: Mode::Fair, racks: RackOrder::BeforeStickiness },
];

/// For each of [`OBJECTIVES`], the best value and an assignment with this value.
pub fn best(plain: &Plain) -> Vec<(Value, Vec<Option<usize>>)> {
    let mut best: Vec<Option<(Value, Vec<Option<usize>>)>> = vec![None; OBJECTIVES.len()];
    plain.for_all(|assignment| {
        let value = plain.value(assignment);
        for (objective, best) in OBJECTIVES.iter().zip(&mut best) {
            if best.as_ref().is_none_or(|(known, _)| value.key(*objective) < known.key(*objective)) {
                *best = Some((value, assignment.to_vec()));
            }
        }
    });
    best.into_iter().map(|best| best.expect("there is at least one assignment")).collect()
}

/// The largest sizes of random groups.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub topics: usize,
    pub partitions: usize,
    pub members: usize,
}

/// A random group: subscriptions, claims of every kind (valid, stale, contested, hostile), generations, racks or none.
pub fn random_group(random: &mut Random, shape: Shape) -> GroupDef {
    let names: Vec<String> = (0..1 + random.below(shape.topics)).map(|i| format!("t{i}")).collect();
    let racks = random.chance(40);
    let mut def = GroupDef::default();
    for name in &names {
        let partitions = random.below(shape.partitions + 1) as u32;
        let few = random.chance(50);
        let set = |random: &mut Random| {
            let chosen = ["x", "y", "z"].into_iter().filter(|_| random.chance(if few { 30 } else { 60 }));
            chosen.map(String::from).collect()
        };
        let racks = (racks && random.chance(90)).then(|| (0..partitions).map(|_| set(random)).collect());
        def.topics.insert(name.clone(), TopicDef { partitions, racks });
    }
    let everything = random.chance(25);
    let density = 30 + random.below(60);
    for i in 0..random.below(shape.members + 1) {
        let topics: Vec<&str> =
            names.iter().filter(|_| everything || random.chance(density)).map(String::as_str).collect();
        let mut one = member(&format!("m{i}"), &topics);
        if racks && random.chance(80) {
            one.rack = ["x", "y", "z", "w"][random.below(4)].to_owned();
        }
        if random.chance(10) {
            one.topics.push("unknown".to_owned());
        }
        def.members.push(one);
    }
    claim(&mut def, random);
    random.shuffle(&mut def.members);
    def
}

/// Adds claims to a group: mostly those of a past assignment with one owner for each partition, with some random
/// changes.
fn claim(def: &mut GroupDef, random: &mut Random) {
    if def.members.is_empty() || random.chance(15) {
        return;
    }
    let fresh = random.chance(50);
    for (name, topic) in &def.topics.clone() {
        for number in 0..topic.partitions as i32 {
            if random.chance(85) {
                let owner = random.below(def.members.len());
                def.members[owner].owned.push((name.clone(), number));
            }
            if !fresh && random.chance(25) {
                let owner = random.below(def.members.len());
                def.members[owner].owned.push((name.clone(), number));
            }
        }
    }
    for member in &mut def.members {
        member.generation = if fresh { 4 } else { [-1, 3, 4, 4, 5][random.below(5)] };
        if random.chance(15) {
            // Claims of a hostile member: unknown topics, numbers out of range, duplicates.
            let numbers = [-1, 99, i32::MIN, i32::MAX];
            member.owned.push(("t0".to_owned(), numbers[random.below(4)]));
            member.owned.push(("gone".to_owned(), 0));
            let repeat = member.owned[0].clone();
            member.owned.push(repeat);
        }
    }
}
