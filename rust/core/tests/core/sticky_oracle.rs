//! The sticky strategies, compared with all assignments of tiny groups, including the tie-break by distance; the
//! verification of every plan in long chains of rebalances; and equal plans for the same group in any order of its
//! members.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::oracle::brute::{OBJECTIVES, Plain, Shape, Value, random_group};
use crate::oracle::{GroupDef, MemberDef, Random, TopicDef, member, more_seeds, seeds, show};
use kafka_assignors_core::planning::group::{Group, NONE};
use kafka_assignors_core::planning::objective::{Mode, Objective};
use kafka_assignors_core::planning::plan::{Outcome, UnassignedReason};
use kafka_assignors_core::planning::strategy::{Strategy, assign};
use kafka_assignors_core::verify::verify_outcome;
use proptest::prelude::{Strategy as _, any};
use proptest::test_runner::{Config, TestRunner};

fn assignment(outcome: &Outcome) -> Vec<Option<usize>> {
    outcome.target().owner.iter().map(|&owner| (owner != NONE).then_some(owner as usize)).collect()
}

/// The number of partitions, by (subscribers, racks) and member.
type AssignedCounts = BTreeMap<(Vec<usize>, BTreeSet<String>, usize), u64>;

fn assigned(plain: &Plain, assignment: &[Option<usize>]) -> AssignedCounts {
    let mut assigned = AssignedCounts::new();
    for (p, &owner) in assignment.iter().enumerate() {
        let racks = if plain.racks_matter { plain.racks[p].clone() } else { BTreeSet::new() };
        if let Some(owner) = owner {
            *assigned.entry((plain.subscribers[p].clone(), racks, owner)).or_default() += 1;
        }
    }
    assigned
}

fn distance(a: &AssignedCounts, b: &AssignedCounts) -> u64 {
    let keys: BTreeSet<_> = a.keys().chain(b.keys()).collect();
    keys.into_iter().map(|key| a.get(key).unwrap_or(&0).abs_diff(*b.get(key).unwrap_or(&0))).sum()
}

/// The proposal. Owners keep their partitions. The other partitions, those of topics with fewer subscribers first, go
/// to the least loaded subscriber; subscribers on a rack of the partition are preferred.
fn proposal(plain: &Plain, mode: Mode) -> Vec<Option<usize>> {
    let mut owner = if mode == Mode::Fair { vec![None; plain.partitions.len()] } else { plain.owner.clone() };
    let mut order: Vec<usize> = (0..owner.len()).filter(|&p| owner[p].is_none()).collect();
    order.sort_by_key(|&p| (plain.subscribers[p].len(), p));
    for p in order {
        let load = |member: usize| owner.iter().filter(|&&o| o == Some(member)).count();
        let near = plain.subscribers[p].iter().copied().filter(|&m| !plain.is_miss(p, m));
        let best = near.min_by_key(|&m| (load(m), m));
        owner[p] = best.or_else(|| plain.subscribers[p].iter().copied().min_by_key(|&m| (load(m), m)));
    }
    owner
}

/// Whether all members with a subscription subscribe to the same topics.
fn is_uniform(plain: &Plain) -> bool {
    let exists = |topic: &&String| plain.partitions.iter().any(|partition| partition.0 == **topic);
    let topics = |member: &MemberDef| member.topics.iter().filter(exists).cloned().collect::<BTreeSet<String>>();
    let sets: BTreeSet<_> = plain.members.iter().map(topics).filter(|set| !set.is_empty()).collect();
    sets.len() <= 1
}

/// The message of a failed test. It contains the whole case.
fn describe(seed: u64, def: &GroupDef, group: &Group, outcome: &Outcome, objective: Objective) -> String {
    format!("seed {seed}, {objective:?}\n{def:#?}\nplan {}", show(group, outcome.target()))
}

#[test]
fn tiny_groups_are_solved_as_by_trying_everything() {
    try_everything(seeds(3_000));
}

#[test]
#[ignore = "part of `make check`: the other seeds"]
fn tiny_groups_are_solved_as_by_trying_everything_more() {
    try_everything(more_seeds(3_000..12_000));
}

fn try_everything(seeds: Range<u64>) {
    let (mut groups, mut by_distance) = (0, 0);
    for seed in seeds.clone() {
        let def = random_group(&mut Random::new(seed), Shape { topics: 4, partitions: 4, members: 4 });
        let plain = Plain::new(&def, None);
        if plain.assignments() > 2500 {
            continue;
        }
        groups += 1;
        let group = def.build();
        let outcomes = OBJECTIVES.map(|objective| assign(&group, Strategy::Sticky(objective), None));
        // If the closed form does not apply, the distance to the proposal is the last criterion.
        let exact = plain.racks_matter || !is_uniform(&plain);
        let proposals = OBJECTIVES.map(|objective| assigned(&plain, &proposal(&plain, objective.mode)));
        let key = |i: usize, assignment: &[Option<usize>], value: &Value| {
            let (a, b, c) = value.key(OBJECTIVES[i]);
            (a, b, c, if exact { distance(&assigned(&plain, assignment), &proposals[i]) } else { 0 })
        };
        let plans: Vec<_> = outcomes.iter().map(assignment).collect();
        let ours: Vec<_> = (0..plans.len()).map(|i| key(i, &plans[i], &plain.value(&plans[i]))).collect();
        let mut best = ours.clone();
        plain.for_all(|assignment| {
            let value = plain.value(assignment);
            for (i, best) in best.iter_mut().enumerate() {
                // Compute the distance only if the other criteria are not worse: it is expensive.
                let (a, b, c) = value.key(OBJECTIVES[i]);
                if (a, b, c) <= (best.0, best.1, best.2) {
                    *best = key(i, assignment, &value).min(*best);
                }
            }
        });
        for (i, outcome) in outcomes.iter().enumerate() {
            by_distance += u64::from(exact);
            let what = || describe(seed, &def, &group, outcome, OBJECTIVES[i]);
            assert_eq!(ours[i], best[i], "(objectives, distance), ours and the best: {}", what());
            for (owner, subscribers) in plans[i].iter().zip(&plain.subscribers) {
                assert_eq!(owner.is_some(), !subscribers.is_empty(), "{}", what());
                assert!(owner.is_none_or(|owner| subscribers.contains(&owner)), "{}", what());
            }
        }
    }
    let count = seeds.end - seeds.start;
    assert!(2 * groups > count && 6 * by_distance > 5 * count, "{groups} groups, {by_distance} by distance");
}

/// Plans, verifies that the plan is optimal in the order of the objective and that every gap is explained, and returns
/// both.
fn planned(seed: u64, def: &GroupDef, strategy: Strategy, forming: Option<i32>) -> (Group, Outcome) {
    let group = def.build();
    let outcome = assign(&group, strategy, forming);
    let (Strategy::Sticky(objective) | Strategy::CooperativeSticky(objective)) = strategy else {
        panic!("the chains run sticky strategies")
    };
    let what = || describe(seed, def, &group, &outcome, objective);
    match verify_outcome(&group, strategy.rules(), forming, &outcome) {
        Ok(certificate) => assert!(certificate.is_optimal(), "{certificate:?} {}", what()),
        Err(fault) => panic!("{fault} {}", what()),
    }
    (group, outcome)
}

#[test]
fn medium_groups_are_optimal_in_every_mode() {
    for seed in seeds(1500) {
        let mut random = Random::new(seed ^ 0x5EED);
        let shape =
            Shape { topics: 2 + random.below(12), partitions: 1 + random.below(25), members: 1 + random.below(16) };
        let def = random_group(&mut random, shape);
        for objective in OBJECTIVES {
            planned(seed, &def, Strategy::Sticky(objective), None);
        }
        planned(seed, &def, Strategy::CooperativeSticky(OBJECTIVES[0]), Some(5));
    }
}

#[test]
fn equal_subscriptions_keep_what_the_closed_form_says() {
    for seed in seeds(2000) {
        let mut random = Random::new(seed);
        let mut def = random_group(&mut random, Shape { topics: 5, partitions: 12, members: 9 });
        let everything: Vec<String> = def.topics.keys().cloned().collect();
        for topic in def.topics.values_mut() {
            topic.racks = None;
        }
        for member in &mut def.members {
            member.topics.clone_from(&everything);
            random.shuffle(&mut member.topics);
        }
        let (group, outcome) = planned(seed, &def, Strategy::Sticky(Objective::default()), None);
        let members = group.members() as u64;
        if members == 0 {
            continue;
        }
        let plain = Plain::new(&def, None);
        let mut held = vec![0; group.members()];
        plain.owner.iter().flatten().for_each(|&owner| held[owner] += 1);
        let (each, extra) = (plain.partitions.len() as u64 / members, plain.partitions.len() as u64 % members);
        let kept = held.iter().map(|&h: &u64| h.min(each)).sum::<u64>()
            + extra.min(held.iter().filter(|&&h| h > each).count() as u64);
        assert_eq!(u64::from(outcome.kept_and_moved().0), kept, "seed {seed}");
    }
}

#[test]
fn the_order_of_the_input_means_nothing() {
    for seed in seeds(1500) {
        let mut random = Random::new(seed ^ 0x0D0E);
        let def = random_group(&mut random, Shape { topics: 6, partitions: 9, members: 8 });
        let mut permuted = def.clone();
        random.shuffle(&mut permuted.members);
        for member in &mut permuted.members {
            random.shuffle(&mut member.topics);
            random.shuffle(&mut member.owned);
            let repeats: Vec<String> = member.topics.iter().filter(|_| random.chance(30)).cloned().collect();
            member.topics.extend(repeats);
        }
        for topic in permuted.topics.values_mut() {
            topic.racks.iter_mut().flatten().for_each(|set| random.shuffle(set));
        }
        let (group, other) = (def.build(), permuted.build());
        for objective in OBJECTIVES {
            for strategy in [Strategy::Sticky(objective), Strategy::CooperativeSticky(objective)] {
                let plans = [&group, &other].map(|group| show(group, &assign(group, strategy, None).plan));
                assert_eq!(plans[0], plans[1], "seed {seed}, {strategy:?}");
            }
        }
        for strategy in [Strategy::Range, Strategy::RoundRobin] {
            let plans = [&group, &other].map(|group| show(group, &assign(group, strategy, None).plan));
            assert_eq!(plans[0], plans[1], "seed {seed}, {strategy:?}");
        }
    }
}

/// A group with a sequence of rebalances.
struct History {
    def: GroupDef,
    generation: i32,
    /// Members that missed rebalances. They rejoin with their old claims.
    away: Vec<MemberDef>,
    names: u32,
}

impl History {
    fn new(random: &mut Random) -> Self {
        let mut history = Self { def: GroupDef::default(), generation: 0, away: Vec::new(), names: 0 };
        for _ in 0..1 + random.below(4) {
            history.new_topic(random);
        }
        for _ in 0..1 + random.below(5) {
            history.join(random);
        }
        history
    }

    fn new_topic(&mut self, random: &mut Random) {
        let partitions = random.below(10) as u32;
        let racks =
            random.chance(30).then(|| (0..partitions).map(|n| vec![["x", "y"][n as usize % 2].to_owned()]).collect());
        let name = format!("t{}", random.below(8));
        self.def.topics.entry(name).or_insert(TopicDef { partitions, racks });
    }

    fn subscription(&self, random: &mut Random) -> Vec<String> {
        let everything = random.chance(40);
        self.def.topics.keys().filter(|_| everything || random.chance(60)).cloned().collect()
    }

    fn join(&mut self, random: &mut Random) {
        let mut joins = member(&format!("m{}", self.names), &[]);
        self.names = (self.names * 7 + 3) % 101;
        joins.topics = self.subscription(random);
        joins.rack = ["", "x", "y"][random.below(3)].to_owned();
        if self.def.members.iter().all(|member| member.id != joins.id) {
            self.def.members.push(joins);
        }
    }

    fn happen(&mut self, random: &mut Random) {
        let someone = (!self.def.members.is_empty()).then(|| random.below(self.def.members.len().max(1)));
        match (random.below(10), someone) {
            (0 | 1, _) => self.join(random),
            (2, Some(who)) if self.def.members.len() > 1 => drop(self.def.members.swap_remove(who)),
            (3, Some(who)) if self.def.members.len() > 1 => self.away.push(self.def.members.swap_remove(who)),
            (4, _) => {
                // A member rejoins with an old generation, unless another member has its id now.
                if let Some(back) = self.away.pop().filter(|back| self.def.members.iter().all(|m| m.id != back.id)) {
                    self.def.members.push(back);
                }
            }
            (5, Some(who)) => {
                let topics = self.subscription(random);
                self.def.members[who].topics = topics;
            }
            (6, _) => self.new_topic(random),
            (7, _) => {
                let name = format!("t{}", random.below(8));
                if let Some(topic) = self.def.topics.get_mut(&name) {
                    topic.partitions = (topic.partitions + random.below(6) as u32).saturating_sub(2);
                    if let Some(racks) = &mut topic.racks {
                        racks.resize(topic.partitions as usize, vec!["x".to_owned(), "y".to_owned()]);
                    }
                }
            }
            (8, _) => drop(self.def.topics.remove(&format!("t{}", random.below(8)))),
            (_, Some(who)) => {
                // A member claims partitions of others, with the newest generation or a newer one.
                let liar = &mut self.def.members[who];
                liar.generation += random.below(3) as i32;
                for (name, topic) in &self.def.topics {
                    let claims = (0..topic.partitions as i32 + 2).filter(|_| random.chance(50));
                    liar.owned.extend(claims.map(|number| (name.clone(), number - 1)));
                }
            }
            _ => {}
        }
    }

    /// Every member gets its partitions of the plan, and the generation.
    fn adopt(&mut self, group: &Group, plan: &[u32]) {
        self.generation += 1;
        for member in &mut self.def.members {
            member.owned.clear();
            member.generation = self.generation;
        }
        let mut lists: BTreeMap<&str, Vec<(String, i32)>> = BTreeMap::new();
        for (partition, &owner) in (0u32..).zip(plan).filter(|(_, owner)| **owner != NONE) {
            let (topic, number) = group.topics().locate(partition);
            let claim = (group.topics().names().get(topic).to_owned(), number as i32);
            lists.entry(group.member_ids().get(owner)).or_default().push(claim);
        }
        for member in &mut self.def.members {
            member.owned = lists.remove(member.id.as_str()).unwrap_or_default();
        }
    }
}

#[test]
fn chains_of_rebalances_stay_optimal() {
    let mut withheld = 0;
    for seed in seeds(250) {
        let mut random = Random::new(seed ^ 0xC0FFEE);
        let mut history = History::new(&mut random);
        let objective = OBJECTIVES[random.below(OBJECTIVES.len())];
        let cooperative = random.chance(50);
        let strategy = if cooperative { Strategy::CooperativeSticky(objective) } else { Strategy::Sticky(objective) };
        for _ in 0..20 {
            for _ in 0..1 + random.below(3) {
                history.happen(&mut random);
            }
            let forming = random.chance(50).then_some(history.generation + 1);
            let (group, outcome) = planned(seed, &history.def, strategy, forming);
            withheld += outcome.withheld().count();
            history.adopt(&group, &outcome.plan.owner);
            if objective.mode == Mode::Fair {
                continue;
            }
            // The withheld partitions are revoked now. The follow-up rebalance assigns them, moves nothing, and is the
            // last.
            let (group, second) = planned(seed, &history.def, strategy, Some(history.generation + 1));
            assert_eq!(second.withheld().count(), 0, "seed {seed}: a second follow-up would be needed");
            assert_eq!(second.kept_and_moved().1, 0, "seed {seed}: nothing changed, yet something moves");
            if !cooperative {
                assert_eq!(second.plan, outcome.plan, "seed {seed}: the plan of the same group changed");
            }
            history.adopt(&group, &second.plan.owner);
            let (_, third) = planned(seed, &history.def, strategy, Some(history.generation + 1));
            assert_eq!(third.plan, second.plan, "seed {seed}");
        }
    }
    assert!(withheld > 1000, "only {withheld} partitions were ever withheld");
}

#[test]
fn a_contested_partition_is_withheld_from_everyone_and_comes_next_round() {
    let owned = |id: &str| member(id, &["t"]).owning("tp0 tp1", 4);
    let mut def = GroupDef::new(&[("t", 2)], vec![owned("a"), owned("b")]);
    let strategy = Strategy::CooperativeSticky(Objective::default());
    let (group, outcome) = planned(0, &def, strategy, None);
    assert_eq!(outcome.plan.owner, [NONE, NONE]);
    let reasons: Vec<_> = outcome.unassigned(&group).collect();
    assert_eq!(reasons, [(0, UnassignedReason::Contested), (1, UnassignedReason::Contested)]);
    for member in &mut def.members {
        member.owned.clear();
    }
    let (_, outcome) = planned(0, &def, strategy, None);
    assert_eq!(outcome.plan.owner, [0, 1]);
}

/// proptest chooses the shapes, so a failing case is made smaller. Its failures are stored beside this file.
#[test]
fn any_group_is_planned_optimally() {
    let shapes = (any::<u64>(), 1..9usize, 0..14usize, 0..9usize, 0..OBJECTIVES.len(), any::<bool>());
    let shapes = shapes.prop_map(|(seed, topics, partitions, members, objective, cooperative)| {
        (seed, Shape { topics, partitions, members }, OBJECTIVES[objective], cooperative)
    });
    let config = Config { cases: 1500, source_file: Some(file!()), ..Config::default() };
    let result = TestRunner::new(config).run(&shapes, |(seed, shape, objective, cooperative)| {
        let def = random_group(&mut Random::new(seed), shape);
        let strategy = if cooperative { Strategy::CooperativeSticky(objective) } else { Strategy::Sticky(objective) };
        planned(seed, &def, strategy, None);
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
}
