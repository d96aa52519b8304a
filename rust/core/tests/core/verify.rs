//! The verification, compared with a brute force, and tried on plans that are wrong on purpose.

use std::ops::Range;

use crate::oracle::brute::{OBJECTIVES, Plain, Shape, Value, best, random_group};
use crate::oracle::{GroupDef, Random, member, more_seeds, outcome_of, plan_of, rules_of, seeds, verified};
use kafka_assignors_core::planning::budget::Limit;
use kafka_assignors_core::planning::group::{Group, NONE};
use kafka_assignors_core::planning::objective::{Mode, Objective, RackOrder};
use kafka_assignors_core::planning::ownership::Ownership;
use kafka_assignors_core::planning::plan::{Outcome, Plan, UnassignedReason};
use kafka_assignors_core::planning::settlement::settle;
use kafka_assignors_core::planning::strategy::{Strategy, assign};
use kafka_assignors_core::planning::{range, round_robin};
use kafka_assignors_core::verify::{Certificate, PlanFault, racks_matter, verify_outcome, verify_outcome_from};

/// The certificate of a plan; the search for the best plan starts from the plan.
fn verify(group: &Group, ownership: &Ownership, target: &Plan, objective: Objective) -> Result<Certificate, PlanFault> {
    verify_outcome(group, rules_of(ownership, objective), None, &outcome_of(ownership, target))
}

/// The certificate of the target, if `plan` is the part of it that a cooperative rebalance can assign now.
fn verify_cooperative(
    group: &Group,
    ownership: &Ownership,
    target: &Plan,
    plan: &Plan,
    objective: Objective,
) -> Result<Certificate, PlanFault> {
    let outcome = Outcome { plan: plan.clone(), ..outcome_of(ownership, target) };
    verify_outcome(group, rules_of(ownership, objective), None, &outcome)
}

const TINY: Shape = Shape { topics: 4, partitions: 4, members: 4 };

/// The group and its plain form, if it is small enough to try everything.
fn tiny(seed: u64) -> Option<(GroupDef, Group, Plain)> {
    let def = random_group(&mut Random::new(seed), TINY);
    let plain = Plain::new(&def, None);
    (plain.assignments() <= 3000).then(|| (def.clone(), def.build(), plain))
}

fn random_plan(plain: &Plain, random: &mut Random) -> Vec<Option<usize>> {
    let pick =
        |subscribers: &Vec<usize>| (!subscribers.is_empty()).then(|| subscribers[random.below(subscribers.len())]);
    plain.subscribers.iter().map(pick).collect()
}

fn assert_bounds(certificate: &Certificate, plan: Value, best: Value, what: &str) {
    let measured = (certificate.score, certificate.kept, certificate.moved, certificate.rack_misses);
    assert_eq!(measured, (plan.score, plan.kept, plan.moved, plan.misses), "{what}");
    let bounds = (certificate.score_bound, certificate.rack_misses_bound);
    assert_eq!(bounds, (Some(best.score), Some(best.misses)), "{what}");
    let objective = certificate.objective;
    assert_eq!(certificate.moved_bound, Some(if objective.mode == Mode::Fair { 0 } else { best.moved }), "{what}");
    assert_eq!(certificate.is_optimal(), plan.key(objective) == best.key(objective), "{what}");
}

#[test]
fn bounds_are_the_brute_force_optimum_whatever_the_plan() {
    compare_bounds_with_brute_force(seeds(1500));
}

#[test]
#[ignore = "part of `make check`: the other seeds"]
fn bounds_are_the_brute_force_optimum_whatever_the_plan_more() {
    compare_bounds_with_brute_force(more_seeds(1500..6000));
}

fn compare_bounds_with_brute_force(seeds: Range<u64>) {
    let (mut groups, mut optimal, mut racked) = (0, 0, 0);
    for seed in seeds.clone() {
        let Some((_, group, plain)) = tiny(seed) else { continue };
        groups += 1;
        racked += u64::from(plain.racks_matter);
        assert_eq!(racks_matter(&group), plain.racks_matter, "seed {seed}");
        let ownership = settle(&group, None, true);
        let truth = best(&plain);
        let mut random = Random::new(seed ^ 0xABCD);
        for (objective, (best, example)) in OBJECTIVES.into_iter().zip(&truth) {
            let what = format!("seed {seed}, {objective:?}");
            let certificate = verify(&group, &ownership, &plan_of(example), objective).expect(&what);
            assert_bounds(&certificate, *best, *best, &what);
            assert!(certificate.is_optimal(), "{what}");
            for _ in 0..3 {
                let assignment = random_plan(&plain, &mut random);
                let certificate = verify(&group, &ownership, &plan_of(&assignment), objective).expect(&what);
                assert_bounds(&certificate, plain.value(&assignment), *best, &what);
                optimal += u64::from(certificate.is_optimal());
            }
        }
        for strategy in [Strategy::Range, Strategy::RoundRobin] {
            let outcome = assign(&group, strategy, None);
            let certificate = verified(&group, strategy, None, &outcome).expect("a valid plan");
            assert_eq!(Ok(certificate), verify_outcome(&group, strategy.rules(), None, &outcome), "seed {seed}");
            assert_eq!(certificate.score_bound, Some(truth[0].0.score), "seed {seed}");
            assert_eq!(certificate.moved_bound, Some(truth[0].0.moved), "seed {seed}");
        }
    }
    let enough = |found: u64, of: u64| found * of > seeds.end - seeds.start;
    let all = enough(groups, 2) && enough(optimal, 6) && enough(racked, 12);
    assert!(all, "{groups} groups, {optimal} optimal, {racked} with racks");
}

#[test]
fn claims_are_settled_as_defined() {
    for seed in seeds(4000) {
        let def = random_group(&mut Random::new(seed), Shape { topics: 4, partitions: 6, members: 6 });
        let group = def.build();
        for forming in [None, Some(5), Some(4)] {
            let plain = Plain::new(&def, forming);
            let ownership = settle(&group, forming, true);
            for partition in 0..plain.partitions.len() {
                let owner = Some(ownership.owner[partition]).filter(|&o| o != NONE).map(|o| o as usize);
                assert_eq!(owner, plain.owner[partition], "seed {seed}, {:?}", plain.partitions[partition]);
                let held = ownership.held[partition];
                match plain.holders[partition].len() {
                    0 => assert_eq!(held, NONE),
                    1 => assert_eq!(Some(&(held as usize)), plain.holders[partition].first()),
                    _ => assert_eq!(held, kafka_assignors_core::planning::ownership::CONTESTED),
                }
            }
        }
    }
}

/// Every single change of a best plan: an invalid plan is refused, and only an equally good plan is optimal.
#[test]
fn every_mutation_of_a_best_plan_is_seen() {
    let (mut invalid, mut worse, mut as_good) = (0, 0, 0);
    for seed in seeds(1_500) {
        let Some((_, group, plain)) = tiny(seed) else { continue };
        let ownership = settle(&group, None, false);
        for (objective, (best, example)) in OBJECTIVES.into_iter().zip(best(&plain)) {
            let mut check = |mutated: Vec<Option<usize>>| {
                let valid = (0..mutated.len()).all(|p| match mutated[p] {
                    Some(owner) => plain.subscribers[p].contains(&owner),
                    None => plain.subscribers[p].is_empty(),
                });
                let verdict = verify(&group, &ownership, &plan_of(&mutated), objective);
                match verdict {
                    Ok(certificate) => {
                        assert!(valid, "seed {seed}: {mutated:?} passed");
                        assert_bounds(&certificate, plain.value(&mutated), best, &format!("seed {seed}: {mutated:?}"));
                        if certificate.is_optimal() { as_good += 1 } else { worse += 1 }
                    }
                    Err(fault) => {
                        assert!(!valid, "seed {seed}: {fault}");
                        invalid += 1;
                    }
                }
            };
            for p in 0..example.len() {
                // Another owner, subscribed or not; no owner; the next partition's owner; no such member.
                for owner in (0..=plain.members.len()).map(Some).chain([None]).filter(|&owner| owner != example[p]) {
                    let mut mutated = example.clone();
                    mutated[p] = owner;
                    check(mutated);
                }
                let q = (p + 1) % example.len();
                if example[p] != example[q] {
                    let mut mutated = example.clone();
                    mutated.swap(p, q);
                    check(mutated);
                }
            }
        }
    }
    assert!(invalid > 5000 && worse > 5000 && as_good > 500, "{invalid} invalid, {worse} worse, {as_good} as good");
}

fn group_of(topics: &[(&str, u32)], members: Vec<crate::oracle::MemberDef>) -> Group {
    GroupDef::new(topics, members).build()
}

#[test]
fn faults_name_partition_and_member() {
    let group = group_of(&[("a", 2), ("b", 1)], vec![member("m", &["a"]), member("n", &["a", "b"])]);
    let ownership = settle(&group, None, false);
    let fault = |owner: Vec<u32>| verify(&group, &ownership, &Plan { owner }, Objective::default()).unwrap_err();
    assert_eq!(fault(vec![0, 0]), PlanFault::Length { given: 2, expected: 3 });
    assert_eq!(fault(vec![0, 1, 0]), PlanFault::NotSubscribed { partition: "b-0".to_owned(), member: "m".to_owned() });
    assert_eq!(fault(vec![0, NONE, 1]), PlanFault::Incomplete { partition: "a-1".to_owned() });
    assert_eq!(fault(vec![2, 1, 1]), PlanFault::NoSuchMember { partition: "a-0".to_owned(), owner: 2, members: 2 });
    let mut foreign = ownership.clone();
    foreign.owner[2] = 0;
    let plan = Plan { owner: vec![0, 0, 1] };
    assert_eq!(
        verify(&group, &foreign, &plan, Objective::default()),
        Err(PlanFault::Ownership { partition: "b-0".to_owned() })
    );
    foreign.owner.pop();
    assert!(matches!(verify(&group, &foreign, &plan, Objective::default()), Err(PlanFault::Ownership { .. })));
    assert!(verify(&group, &ownership, &plan, Objective::default()).is_ok_and(|certificate| certificate.is_optimal()));
}

#[test]
fn a_chain_is_found_where_no_single_move_helps() {
    let members = vec![member("m1", &["A"]), member("m2", &["A", "B"]), member("m3", &["B"])];
    let group = group_of(&[("A", 6), ("B", 6)], members);
    let ownership = settle(&group, None, false);
    let plan = Plan { owner: vec![0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2] };
    let certificate = verify(&group, &ownership, &plan, Objective::default()).unwrap();
    assert_eq!((certificate.score, certificate.score_bound), (4, Some(0)));
}

#[test]
fn nobody_and_nothing_can_be_verified() {
    for group in [group_of(&[], vec![]), group_of(&[("t", 3)], vec![]), group_of(&[], vec![member("m", &["t"])])] {
        let plan = Plan::unassigned(&group);
        let ownership = settle(&group, None, true);
        for objective in OBJECTIVES {
            assert!(verify_cooperative(&group, &ownership, &plan, &plan, objective).unwrap().is_optimal());
        }
        let outcome = outcome_of(&ownership, &plan);
        assert!(outcome.unassigned(&group).all(|(_, reason)| reason == UnassignedReason::NoSubscriber));
    }
}

#[test]
fn reasons_are_derived_and_false_ones_refused() {
    let group = group_of(
        &[("a", 4), ("nobody", 1)],
        vec![
            member("m", &["a"]).owning("ap0 ap1 ap2", 3),
            member("n", &["a"]).owning("ap1", 3),
            member("o", &[]).owning("ap3", 3),
        ],
    );
    let ownership = settle(&group, None, true);
    let target = Plan { owner: vec![1, 0, 0, 1, NONE] };
    let mut outcome = outcome_of(&ownership, &target);
    let plan = outcome.plan.clone();
    assert_eq!(
        outcome.unassigned(&group).collect::<Vec<_>>(),
        [
            (0, UnassignedReason::Withheld { holder: 0 }),
            (1, UnassignedReason::Contested),
            (3, UnassignedReason::Withheld { holder: 2 }),
            (4, UnassignedReason::NoSubscriber)
        ]
    );
    let wrong = |partition: usize, owner: u32| {
        let mut plan = plan.clone();
        plan.owner[partition] = owner;
        verify_cooperative(&group, &ownership, &target, &plan, Objective::default()).unwrap_err()
    };
    assert!(matches!(wrong(0, 1), PlanFault::HandedOver { .. }));
    assert!(matches!(wrong(1, 0), PlanFault::HandedOver { .. }));
    assert!(matches!(wrong(3, 1), PlanFault::HandedOver { .. }));
    assert!(matches!(wrong(0, 0), PlanFault::OffTarget { .. }));
    assert!(matches!(wrong(2, NONE), PlanFault::Incomplete { .. }));
    assert!(matches!(wrong(2, 7), PlanFault::NoSuchMember { .. }));
    // A withheld partition must have a future owner.
    let strategy = Strategy::CooperativeSticky(Objective::default());
    assert!(verify_outcome(&group, strategy.rules(), None, &outcome).is_ok());
    outcome.withholding.as_mut().unwrap().owner[3] = NONE;
    assert!(matches!(verify_outcome(&group, strategy.rules(), None, &outcome), Err(PlanFault::Incomplete { .. })));
    assert!(wrong(0, 1).to_string().contains("member \"m\""), "{}", wrong(0, 1));
}

/// If the start is far from the optimum, the search starts again from the owned partitions. Every start gives the same
/// bounds.
#[test]
fn bounds_do_not_depend_on_where_the_search_starts() {
    search_from_each_start(seeds(40));
}

#[test]
#[ignore = "part of `make check`: the other seeds"]
fn bounds_do_not_depend_on_where_the_search_starts_more() {
    search_from_each_start(more_seeds(40..150));
}

fn search_from_each_start(seeds: Range<u64>) {
    let mut far = 0;
    for seed in seeds.clone() {
        let mut random = Random::new(seed ^ 0xFA4);
        let def = random_group(&mut random, Shape { topics: 9, partitions: 60, members: 24 });
        let (group, plain) = (def.build(), Plain::new(&def, None));
        let ownership = settle(&group, None, false);
        let piled: Vec<Option<usize>> = plain.subscribers.iter().map(|s| s.first().copied()).collect();
        let starts = [plan_of(&piled), plan_of(&random_plan(&plain, &mut random)), range::assign(&group)];
        for objective in OBJECTIVES {
            let bounds = starts.each_ref().map(|start| {
                let own = verify(&group, &ownership, start, objective).expect("a valid plan");
                let (rules, outcome) = (rules_of(&ownership, objective), outcome_of(&ownership, start));
                let from = starts
                    .each_ref()
                    .map(|from| verify_outcome_from(&group, rules, None, &outcome, from, &Limit::default()));
                assert!(from.iter().all(|from| *from == Ok(own)), "seed {seed}: {own:?} {from:?}");
                far += u64::from(own.score > 100 * own.score_bound.unwrap());
                (own.score_bound, own.moved_bound, own.rack_misses_bound)
            });
            assert!(bounds.iter().all(|other| *other == bounds[0]), "seed {seed}, {objective:?}: {bounds:?}");
        }
        let broken = Plan { owner: vec![NONE; plain.partitions.len()] };
        if plain.subscribers.iter().any(|subscribers| !subscribers.is_empty()) {
            let (rules, outcome) = (rules_of(&ownership, Objective::default()), outcome_of(&ownership, &starts[0]));
            let verdict = verify_outcome_from(&group, rules, None, &outcome, &broken, &Limit::default());
            assert!(matches!(verdict, Err(PlanFault::Incomplete { .. })), "seed {seed}");
        }
    }
    assert!(3 * far > 2 * (seeds.end - seeds.start), "only {far} starts are far from the optimum");
}

/// Groups with a known optimum that are too large to try all plans.
#[test]
fn larger_groups_with_a_known_optimum() {
    // Members i of a ring read topics i and i+1; the past is balanced; one member leaves.
    for members in [3usize, 10, 57] {
        let topics: Vec<String> = (0..members).map(|i| format!("t{i:03}")).collect();
        let sizes: Vec<(&str, u32)> = topics.iter().map(|topic| (topic.as_str(), 12)).collect();
        let defs = (0..members).map(|i| {
            let mut one = member(&format!("m{i:03}"), &[&topics[i], &topics[(i + 1) % members]]).owning("", 1);
            one.owned = (0..12).map(|number| (topics[i].clone(), number)).collect();
            one
        });
        let mut defs: Vec<_> = defs.collect();
        defs.remove(0);
        let group = GroupDef::new(&sizes, defs).build();
        let ownership = settle(&group, None, false);
        let total = 12 * members as u128;
        let heavy = total % (members as u128 - 1);
        for plan in [range::assign(&group), round_robin::assign(&group)] {
            let certificate = verify(&group, &ownership, &plan, Objective::default()).unwrap();
            assert_eq!(certificate.score_bound, Some(heavy * (members as u128 - 1 - heavy)), "{members} members");
            // The 12 partitions of the member that left go to the only other reader of its topic. From there partitions are
            // passed on along the ring: the k-th member behind takes over as many as it and all members behind it gain together.
            // The members that gain one more are near the start, so that this sum is the least.
            let gain = |i: u64| 12 / (members as u64 - 1) + u64::from(u128::from(i) < heavy);
            let least: u64 = (1..members as u64 - 1).map(|k| (k..members as u64 - 1).map(gain).sum::<u64>()).sum();
            assert_eq!(certificate.moved_bound, Some(least), "{members} members");
        }
        // Without racks, their rank in the objective has no effect.
        let plan = range::assign(&group);
        let after = Objective { racks: RackOrder::AfterStickiness, ..Objective::default() };
        let bounds = |objective| {
            let certificate = verify(&group, &ownership, &plan, objective).unwrap();
            (certificate.score_bound, certificate.moved_bound, certificate.rack_misses_bound)
        };
        assert_eq!(bounds(after), bounds(Objective::default()));
    }
}
