//! The lag-based strategy: the published examples; random groups, compared with a literal implementation of the rule;
//! the guarantees of the options; and the bounds, compared with all plans.

use std::ops::Range;

use crate::oracle::brute::{Shape, random_group};
use crate::oracle::{GroupDef, Random, member, more_seeds, seeds, show, verified};
use kafka_assignors_core::planning::budget::Limit;
use kafka_assignors_core::planning::group::{Group, NONE};
use kafka_assignors_core::planning::lag::{Keep, Options, Scope, lag_bound_within, lag_by_member};
use kafka_assignors_core::planning::plan::{Outcome, Plan};
use kafka_assignors_core::planning::strategy::{Strategy, assign};

const RULE: Options = Options { scope: Scope::Topic, max_skew: Some(0), keep: Keep::None };
const HEAVY: u64 = i64::MAX as u64;

fn planned(group: &Group, options: Options) -> Outcome {
    let outcome = assign(group, Strategy::Lag(options), None);
    verified(group, Strategy::Lag(options), None, &outcome).expect("a valid plan");
    outcome
}

fn bound_of(group: &Group) -> u128 {
    lag_bound_within(group, &Limit::default()).0
}

fn shown(def: &GroupDef, lags: &[u64], options: Options) -> (String, Vec<u128>) {
    let group = def.build_with_lags(lags.to_vec());
    let plan = planned(&group, options).plan;
    (show(&group, &plan), lag_by_member(&group, &plan))
}

fn all_on_t(partitions: u32, members: &[&str]) -> GroupDef {
    GroupDef::new(&[("t", partitions)], members.iter().map(|id| member(id, &["t"])).collect())
}

#[test]
fn the_published_example() {
    let (plan, totals) = shown(&all_on_t(3, &["C0", "C1"]), &[100_000, 50_000, 60_000], RULE);
    assert_eq!((plan.as_str(), totals), ("C0: tp0; C1: tp1 tp2", vec![100_000, 110_000]));
}

#[test]
fn two_heavy_partitions_among_three_members() {
    let lags = [360, 359, 230, 118, 444, 122, 65, 111, 455_000, 424_000];
    let (plan, totals) = shown(&all_on_t(10, &["m1", "m2", "m3"]), &lags, RULE);
    assert_eq!(plan, "m1: tp2 tp7 tp8; m2: tp1 tp3 tp9; m3: tp0 tp4 tp5 tp6");
    assert_eq!(totals, [455_341, 424_477, 991]);
}

#[test]
fn topics_are_independent() {
    let members = vec![member("m1", &["t0", "t1"]), member("m2", &["t0"])];
    let def = GroupDef::new(&[("t0", 4), ("t1", 2)], members);
    let (plan, totals) = shown(&def, &[700, 700, 40, 3, 9_000, 500], RULE);
    assert_eq!((plan.as_str(), totals), ("m1: t0p0 t0p2 t1p0 t1p1; m2: t0p1 t0p3", vec![10_240, 703]));
}

#[test]
fn equal_lags_and_one_heavy_one() {
    let def = all_on_t(7, &["m1", "m2"]);
    assert_eq!(shown(&def, &[0; 7], RULE).0, "m1: tp0 tp2 tp4 tp6; m2: tp1 tp3 tp5");
    let (plan, totals) = shown(&all_on_t(5, &["m1", "m2"]), &[10; 5], RULE);
    assert_eq!((plan.as_str(), totals), ("m1: tp0 tp2 tp4; m2: tp1 tp3", vec![30, 20]));
    let mut lags = [100; 8];
    lags[0] = 1_000;
    let def = all_on_t(8, &["m1", "m2"]);
    let (plan, totals) = shown(&def, &lags, RULE);
    assert_eq!((plan.as_str(), totals), ("m1: tp0 tp3 tp5 tp7; m2: tp1 tp2 tp4 tp6", vec![1_300, 400]));
    assert_eq!(shown(&def, &lags, Options { max_skew: None, ..RULE }).1, [1_000, 700]);
    let bound = bound_of(&def.build_with_lags(lags.to_vec()));
    assert_eq!(bound, 1_000);
}

#[test]
fn one_partition_topics_pile_up_by_topic_and_spread_by_group() {
    let names: Vec<String> = (0..100).map(|i| format!("t{i:02}")).collect();
    let topics: Vec<(&str, u32)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let def = GroupDef::new(&topics, (0..10).map(|i| member(&format!("m{i}"), &all)).collect());
    let group = def.build_with_lags(vec![5; 100]);
    assert_eq!(planned(&group, RULE).plan.loads(10)[0], 100);
    assert_eq!(planned(&group, Options { scope: Scope::Group, ..RULE }).plan.loads(10), [10; 10]);
}

/// A literal implementation of the rule: a scan for the least lag instead of heaps.
fn word_by_word(group: &Group, options: Options) -> Vec<u32> {
    let (topics, lags) = (group.topics(), group.topics().lags());
    let mut owner = vec![NONE; topics.partitions()];
    let whole: Vec<u32> = (0..topics.len() as u32).collect();
    let runs: Vec<&[u32]> = if options.scope == Scope::Topic { whole.chunks(1).collect() } else { vec![&whole] };
    for run in runs {
        let mut totals = vec![(0u32, 0u128); group.members()];
        let mut order: Vec<(u32, u32)> =
            run.iter().flat_map(|&topic| topics.range(topic).map(move |partition| (topic, partition))).collect();
        order.sort_by_key(|&(_, partition)| std::cmp::Reverse(lags[partition as usize]));
        for (topic, partition) in order {
            let lag = lags[partition as usize];
            let may = (0..group.members()).filter(|&member| group.subscribes(member as u32, topic));
            let fewest = may.clone().map(|member| totals[member].0).min();
            let by_count = options.max_skew == Some(0) || lag == 0;
            let chosen = may
                .filter(|&member| match options.max_skew {
                    Some(skew) if !by_count => totals[member].0 < fewest.unwrap_or(0) + skew,
                    _ => true,
                })
                .min_by_key(|&member| {
                    let (count, lag) = totals[member];
                    if by_count { (u128::from(count), lag) } else { (lag, u128::from(count)) }
                });
            if let Some(member) = chosen {
                totals[member] = (totals[member].0 + 1, totals[member].1 + u128::from(lag));
                owner[partition as usize] = member as u32;
            }
        }
    }
    owner
}

fn random_lags(random: &mut Random, partitions: usize) -> Vec<u64> {
    let kinds: [&[u64]; 4] = [&[0], &[0, 1, 2, 3], &[5, 7, 100, 10_000], &[0, HEAVY, HEAVY - 1, 1]];
    let kind = kinds[random.below(kinds.len())];
    (0..partitions)
        .map(|_| kind[random.below(kind.len())] + random.below(3) as u64 * u64::from(kind.len() == 3))
        .collect()
}

fn random_case(seed: u64, shape: Shape) -> Group {
    let mut random = Random::new(seed);
    let def = random_group(&mut random, shape);
    let partitions = def.topics.values().map(|topic| topic.partitions as usize).sum();
    def.build_with_lags(random_lags(&mut random, partitions))
}

#[test]
fn random_groups_as_the_rule_says() {
    plan_word_by_word(seeds(500));
}

#[test]
#[ignore = "part of `make check`: the other seeds"]
fn random_groups_as_the_rule_says_more() {
    plan_word_by_word(more_seeds(500..2_000));
}

fn plan_word_by_word(seeds: Range<u64>) {
    let shape = Shape { topics: 4, partitions: 9, members: 6 };
    for seed in seeds.clone() {
        let group = random_case(seed, shape);
        for scope in [Scope::Topic, Scope::Group] {
            for max_skew in [Some(0), Some(1), Some(3), None] {
                let options = Options { scope, max_skew, keep: Keep::None };
                assert_eq!(planned(&group, options).plan.owner, word_by_word(&group, options), "{seed} {options:?}");
            }
        }
    }
}

/// By topic, the number of partitions and the lag of each subscriber.
fn assigned(group: &Group, plan: &Plan) -> Vec<Vec<(u32, u128)>> {
    let assigned_to = |topic: u32, member: u32| {
        let owned = group.topics().range(topic).filter(|&partition| plan.owner[partition as usize] == member);
        owned.fold((0, 0), |(count, lag), partition| {
            (count + 1, lag + u128::from(group.topics().lags()[partition as usize]))
        })
    };
    let members = |topic| (0..group.members() as u32).filter(move |&member| group.subscribes(member, topic));
    (0..group.topics().len() as u32)
        .map(|topic| members(topic).map(|member| assigned_to(topic, member)).collect())
        .collect()
}

#[test]
fn numbers_differ_by_what_max_skew_allows() {
    let mut lag_mattered = 0;
    for seed in seeds(500) {
        let group = random_case(seed, Shape { topics: 2, partitions: 16, members: 5 });
        for skew in [0u32, 1, 2, 4] {
            let plan = planned(&group, Options { max_skew: Some(skew), ..RULE }).plan;
            for counts in assigned(&group, &plan).iter().filter(|assigned| !assigned.is_empty()) {
                let counts = counts.iter().map(|&(count, _)| count);
                let spread = counts.clone().max().unwrap_or(0) - counts.min().unwrap_or(0);
                assert!(spread <= skew.max(1), "seed {seed}, skew {skew}: {spread}");
                lag_mattered += u32::from(spread > 1);
            }
        }
    }
    assert!(lag_mattered > 60, "in only {lag_mattered} topics lag came before numbers");
}

/// The lag of the heaviest member, minimised over all plans.
fn least_possible(group: &Group) -> u128 {
    fn search(group: &Group, partition: u32, totals: &mut Vec<u128>, best: &mut u128) {
        if totals.iter().any(|total| total >= best) {
            return;
        }
        if partition as usize == group.topics().partitions() {
            *best = totals.iter().copied().max().unwrap_or(0);
            return;
        }
        let (topic, _) = group.topics().locate(partition);
        let lag = u128::from(group.topics().lags()[partition as usize]);
        let may: Vec<usize> = (0..totals.len()).filter(|&member| group.subscribes(member as u32, topic)).collect();
        for &member in &may {
            totals[member] += lag;
            search(group, partition + 1, totals, best);
            totals[member] -= lag;
        }
        if may.is_empty() {
            search(group, partition + 1, totals, best);
        }
    }
    let mut best = u128::MAX;
    search(group, 0, &mut vec![0; group.members()], &mut best);
    best
}

/// The least lag of the heaviest member if single records could be divided among members. By its definition, it is the
/// largest lag of a set of topics, divided by the number of members that subscribe to any of them.
fn crowding(group: &Group) -> u128 {
    let topics = group.topics().len();
    let subsets = (1u32..1 << topics).map(|subset| {
        let chosen = |topic: u32| subset >> topic & 1 == 1;
        let served = |topic: u32| (0..group.members() as u32).any(|member| group.subscribes(member, topic));
        let lag: u128 = (0..topics as u32)
            .filter(|&topic| chosen(topic) && served(topic))
            .flat_map(|topic| group.topics().range(topic))
            .map(|partition| u128::from(group.topics().lags()[partition as usize]))
            .sum();
        let members =
            (0..group.members() as u32).filter(|&member| group.subscription(member).iter().any(|&t| chosen(t)));
        lag.div_ceil((members.count() as u128).max(1))
    });
    subsets.max().unwrap_or(0)
}

#[test]
fn the_bound_is_the_relaxation_and_no_plan_is_below_it() {
    let mut met = 0;
    for seed in seeds(600) {
        let group = random_case(seed, Shape { topics: 4, partitions: 3, members: 4 });
        let served = |partition: &u32| {
            let (topic, _) = group.topics().locate(*partition);
            (0..group.members() as u32).any(|member| group.subscribes(member, topic))
        };
        let lags = group.topics().lags();
        let partitions = (0..group.topics().partitions() as u32).filter(served);
        let largest = partitions.map(|partition| u128::from(lags[partition as usize])).max().unwrap_or(0);
        let bound = bound_of(&group);
        assert_eq!(bound, largest.max(crowding(&group)), "seed {seed}");
        let best = least_possible(&group);
        assert!(bound <= best, "seed {seed}: bound {bound}, but {best} is possible");
        met += u32::from(bound == best && best > 0);
    }
    assert!(met > 100, "the bound was met only {met} times");
}

#[test]
fn longest_first_is_within_grahams_factor() {
    for seed in seeds(400) {
        let mut random = Random::new(seed);
        let (members, partitions) = (1 + random.below(4), random.below(9));
        let of_u = random.below(partitions + 1);
        let counts = [("t", (partitions - of_u) as u32), ("u", of_u as u32)];
        let ids = (0..members).map(|i| member(&format!("m{i}"), &["t", "u"]));
        let def = GroupDef::new(&counts, ids.collect());
        let group = def.build_with_lags((0..partitions).map(|_| random.below(40) as u64).collect());
        let plan = planned(&group, Options { scope: Scope::Group, max_skew: None, keep: Keep::None }).plan;
        let heaviest = lag_by_member(&group, &plan).into_iter().max().unwrap_or(0);
        let m = members as u128;
        assert!(3 * m * heaviest <= (4 * m - 1) * least_possible(&group), "seed {seed}");
    }
}

/// The lag of the heaviest member, in the partitions that are balanced together.
fn heaviest(group: &Group, owner: &[u32], partitions: &[u32]) -> u128 {
    let mut totals = vec![0u128; group.members()];
    for &partition in partitions.iter().filter(|&&partition| owner[partition as usize] != NONE) {
        totals[owner[partition as usize] as usize] += u128::from(group.topics().lags()[partition as usize]);
    }
    totals.into_iter().max().unwrap_or(0)
}

/// The plans that differ by one move or one swap of these partitions.
fn neighbours(group: &Group, owner: &[u32], partitions: &[u32]) -> Vec<Vec<u32>> {
    let subscribes = |member: u32, partition: u32| group.subscribes(member, group.topics().locate(partition).0);
    let mut plans = Vec::new();
    for &one in partitions.iter().filter(|&&partition| owner[partition as usize] != NONE) {
        let from = owner[one as usize];
        for to in (0..group.members() as u32).filter(|&to| to != from && subscribes(to, one)) {
            let mut moved = owner.to_vec();
            moved[one as usize] = to;
            let back = partitions.iter().filter(|&&other| owner[other as usize] == to && subscribes(from, other));
            for &other in back {
                let mut swapped = moved.clone();
                swapped[other as usize] = from;
                plans.push(swapped);
            }
            plans.push(moved);
        }
    }
    plans
}

#[test]
fn owners_keep_what_is_not_worth_the_threshold() {
    let (mut kept_more, mut moved) = (0, 0);
    for seed in seeds(1_500) {
        let group = random_case(seed, Shape { topics: 3, partitions: 8, members: 4 });
        for (scope, threshold) in [(Scope::Topic, 0), (Scope::Group, 0), (Scope::Group, 50), (Scope::Group, u64::MAX)] {
            let options = Options { scope, max_skew: None, keep: Keep::Owners { threshold } };
            let outcome = planned(&group, options);
            let runs: Vec<_> = match scope {
                Scope::Topic => (0..group.topics().len() as u32).map(|topic| topic..topic + 1).collect(),
                Scope::Group => std::iter::once(0..group.topics().len() as u32).collect(),
            };
            for run in runs {
                let partitions: Vec<u32> = run.flat_map(|topic| group.topics().range(topic)).collect();
                let owner = &outcome.plan.owner;
                let reached = heaviest(&group, owner, &partitions);
                // No other move or swap gains more than the threshold.
                for other in neighbours(&group, owner, &partitions) {
                    let possible = heaviest(&group, &other, &partitions);
                    assert!(possible + u128::from(threshold) >= reached, "seed {seed}, {options:?}");
                }
                // Every move is needed: with the partition at its previous owner, the heaviest member would be heavier.
                let before = &outcome.ownership.owner;
                let away = |&&p: &&u32| before[p as usize] != NONE && before[p as usize] != owner[p as usize];
                for &partition in partitions.iter().filter(away) {
                    let mut home = owner.clone();
                    home[partition as usize] = before[partition as usize];
                    assert!(heaviest(&group, &home, &partitions) > reached, "seed {seed}, {options:?}: {partition}");
                }
            }
            let rule = planned(&group, Options { keep: Keep::None, ..options });
            kept_more += u32::from(outcome.kept_and_moved().0 > rule.kept_and_moved().0);
            moved += u32::from(threshold < u64::MAX && outcome.kept_and_moved().1 > 0);
            // With a threshold of at least the total lag, no partition moves.
            let total: u128 = group.topics().lags().iter().map(|&lag| u128::from(lag)).sum();
            if u128::from(threshold) >= total {
                assert_eq!(outcome.kept_and_moved().1, 0, "seed {seed}");
            }
        }
    }
    assert!(kept_more > 500 && moved > 200, "{kept_more} kept more, {moved} moved");
}

/// The smallest number of moved partitions, over all plans whose heaviest member has a lag of at most `most`.
fn fewest_moves(group: &Group, before: &[u32], most: u128) -> u32 {
    fn search(group: &Group, before: &[u32], most: u128, totals: &mut [u128], at: usize, moves: u32, best: &mut u32) {
        if moves >= *best {
            return;
        }
        let Some(&owner) = before.get(at) else {
            *best = moves;
            return;
        };
        let (topic, _) = group.topics().locate(at as u32);
        let lag = u128::from(group.topics().lags()[at]);
        let mut served = false;
        for member in (0..group.members() as u32).filter(|&member| group.subscribes(member, topic)) {
            served = true;
            if totals[member as usize] + lag <= most {
                totals[member as usize] += lag;
                let moved = u32::from(owner != NONE && owner != member);
                search(group, before, most, totals, at + 1, moves + moved, best);
                totals[member as usize] -= lag;
            }
        }
        if !served {
            search(group, before, most, totals, at + 1, moves, best);
        }
    }
    let mut best = u32::MAX;
    search(group, before, most, &mut vec![0; group.members()], 0, 0, &mut best);
    best
}

/// A group on one topic whose members own most of it, some much more than others.
fn lopsided(random: &mut Random, lag: impl Fn(&mut Random) -> u64) -> Group {
    let (members, partitions) = (2 + random.below(3), 1 + random.below(8));
    let ids: Vec<String> = (0..members).map(|i| format!("m{i}")).collect();
    let mut owned = vec![String::new(); members];
    for partition in 0..partitions {
        if random.below(5) > 0 {
            let favoured = random.below(members).min(random.below(members));
            owned[favoured] += &format!(" tp{partition}");
        }
    }
    let mut def = all_on_t(partitions as u32, &ids.iter().map(String::as_str).collect::<Vec<_>>());
    for (member, owned) in def.members.iter_mut().zip(owned) {
        *member = member.clone().owning(owned.trim(), 3);
    }
    def.build_with_lags((0..partitions).map(|_| lag(random)).collect())
}

fn kept(group: &Group, threshold: u64) -> (u128, u32, Vec<u32>) {
    let options = Options { scope: Scope::Group, max_skew: None, keep: Keep::Owners { threshold } };
    let outcome = planned(group, options);
    let heaviest = lag_by_member(group, &outcome.plan).into_iter().max().unwrap_or(0);
    (heaviest, outcome.kept_and_moved().1, outcome.ownership.owner)
}

#[test]
fn equal_lags_are_levelled_exactly() {
    let mut moving = 0;
    for seed in seeds(2_000) {
        let mut random = Random::new(seed);
        let lag = 1 + random.below(9) as u64;
        let group = lopsided(&mut random, |_| lag);
        for threshold in [0, 3, 8, 20] {
            let (heaviest, moves, before) = kept(&group, threshold);
            assert!(heaviest <= least_possible(&group) + u128::from(threshold), "seed {seed}, threshold {threshold}");
            assert_eq!(moves, fewest_moves(&group, &before, heaviest), "seed {seed}, threshold {threshold}");
            moving += u32::from(moves > 0);
        }
    }
    assert!(moving > 500, "only {moving} moved anything");
}

#[test]
fn moves_are_mostly_the_fewest_and_always_worth_the_threshold() {
    count_moves(seeds(1_000));
}

#[test]
#[ignore = "part of `make check`: the other seeds"]
fn moves_are_mostly_the_fewest_and_always_worth_the_threshold_more() {
    count_moves(more_seeds(1_000..4_000));
}

fn count_moves(seeds: Range<u64>) {
    let (mut moving, mut fewest) = (0, 0);
    for seed in seeds.clone() {
        let mut random = Random::new(seed);
        let group = lopsided(&mut random, |random| random.below(40) as u64);
        let stays = kept(&group, u64::MAX).0;
        for threshold in [0, 5, 15] {
            let (heaviest, moves, before) = kept(&group, threshold);
            assert!(heaviest == stays || heaviest + u128::from(threshold) < stays, "seed {seed}");
            let least = fewest_moves(&group, &before, heaviest);
            assert!(heaviest < stays || moves == 0, "seed {seed}: nothing gained by {moves} moves");
            moving += u64::from(moves > 0);
            fewest += u64::from(moves > 0 && moves == least);
        }
    }
    assert!(
        4 * moving > 3 * (seeds.end - seeds.start) && fewest * 100 > moving * 94,
        "{fewest} of {moving} move as little as possible"
    );
}

#[test]
fn many_small_changes_count_together() {
    // The gain of each single partition is below the threshold, the gain of all of them is above it.
    let mut def = all_on_t(100, &["m0", "m1"]);
    let all: Vec<String> = (0..100).map(|partition| format!("tp{partition}")).collect();
    def.members[0] = def.members[0].clone().owning(&all.join(" "), 3);
    let group = def.build_with_lags(vec![10; 100]);
    assert_eq!((kept(&group, 0).0, kept(&group, 0).1), (500, 50));
    let (heaviest, moves, _) = kept(&group, 100);
    assert_eq!((heaviest, moves), (560, 44), "44 moves are worth four times more than 100; six more are not");
    assert_eq!(kept(&group, 500).1, 0);
}

#[test]
fn keeping_never_widens_the_numbers_for_the_sake_of_lag() {
    for (owned, lags, expected) in [
        // Two partitions each: only a swap keeps the partition counts, and its gain is above the threshold.
        (["tp0 tp1", "tp2 tp3"], [90, 80, 10, 0], "m0: tp1 tp2; m1: tp0 tp3"),
        // One partition against three: a move is enough.
        (["tp0", "tp1 tp2 tp3"], [10, 30, 20, 10], "m0: tp0 tp1; m1: tp2 tp3"),
    ] {
        let mut def = all_on_t(4, &["m0", "m1"]);
        for (one, owned) in def.members.iter_mut().zip(owned) {
            *one = one.clone().owning(owned, 3);
        }
        let keep = Keep::Owners { threshold: 0 };
        assert_eq!(shown(&def, &lags, Options { keep, ..RULE }).0, expected);
    }
}

#[test]
fn without_lags_owners_keep_theirs_and_the_rest_is_counted() {
    let mut def = all_on_t(6, &["m0", "m1", "m2"]);
    def.members[0] = def.members[0].clone().owning("tp0 tp1 tp2", 3);
    let group = def.build();
    let outcome = planned(&group, RULE);
    assert_eq!(show(&group, &outcome.plan), "m0: tp0 tp1 tp2; m1: tp3 tp5; m2: tp4");
    assert_eq!(bound_of(&group), 0);
}

#[test]
fn sums_of_the_largest_lags_are_exact() {
    let (_, totals) = shown(&all_on_t(5, &["m0"]), &[HEAVY; 5], Options { scope: Scope::Group, ..RULE });
    assert_eq!(totals, [5 * u128::from(HEAVY)]);
}

/// Nearly all members subscribe to each topic, and the set differs from topic to topic. So the heap of a topic is out
/// of date when the next partition of the topic is placed.
#[test]
fn tangled_subscriptions_as_the_rule_says() {
    for (topics, members, seed) in [(40, 40, 1), (150, 150, 2), (12, 150, 3)] {
        let mut random = Random::new(seed);
        let names: Vec<String> = (0..topics).map(|topic| format!("t{topic:03}")).collect();
        let counted: Vec<(&str, u32)> = names.iter().map(|name| (name.as_str(), 6)).collect();
        let members = (0..members).map(|one| {
            let topics: Vec<&str> = names.iter().filter(|_| random.below(20) > 0).map(String::as_str).collect();
            member(&format!("m{one:03}"), &topics)
        });
        let def = GroupDef::new(&counted, members.collect());
        let lags = (0..topics * 6).map(|_| random.below(3) as u64 * (1_000 + random.below(40) as u64)).collect();
        let group = def.build_with_lags(lags);
        for max_skew in [Some(0), Some(1), Some(3), None] {
            let options = Options { scope: Scope::Group, max_skew, keep: Keep::None };
            assert_eq!(planned(&group, options).plan.owner, word_by_word(&group, options), "{seed} {options:?}");
        }
    }
}
