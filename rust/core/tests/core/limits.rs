//! Planning within a limit: under any limit the plan is valid, and the outcome shows whether a better one may exist.

use crate::oracle::brute::{Shape, random_group};
use crate::oracle::{GroupDef, Random, member, verified};
use kafka_assignors_core::planning::budget::{Cause, Goal, Limit, Limited};
use kafka_assignors_core::planning::group::Group;
use kafka_assignors_core::planning::lag::{Keep, Options, Scope, lag_bound_within, lag_by_member};
use kafka_assignors_core::planning::objective::{Mode, Objective, RackOrder};
use kafka_assignors_core::planning::plan::Outcome;
use kafka_assignors_core::planning::strategy::{Strategy, plan, settle};
use proptest::prelude::{any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Just;

const KEEPING: Options = Options { scope: Scope::Group, max_skew: None, keep: Keep::Owners { threshold: 0 } };

fn strategies() -> Vec<Strategy> {
    let mut all =
        vec![Strategy::Range, Strategy::RoundRobin, Strategy::Lag(Options::default()), Strategy::Lag(KEEPING)];
    for mode in [Mode::FairYetSticky, Mode::StickyYetFair, Mode::Fair] {
        for racks in [RackOrder::BeforeStickiness, RackOrder::AfterStickiness] {
            all.push(Strategy::Sticky(Objective { mode, racks }));
            all.push(Strategy::CooperativeSticky(Objective { mode, racks }));
        }
    }
    for scope in [Scope::Topic, Scope::Group] {
        for max_skew in [Some(0), Some(2), None] {
            all.push(Strategy::Lag(Options { scope, max_skew, keep: Keep::None }));
            all.push(Strategy::Lag(Options { scope, max_skew, keep: Keep::Owners { threshold: 3 } }));
        }
    }
    all.extend([Strategy::StreamJoin { cooperative: false }, Strategy::StreamJoin { cooperative: true }]);
    all
}

fn planned(group: &Group, strategy: Strategy, limit: &Limit<'_>) -> Outcome {
    let outcome = plan(group, strategy, settle(group, strategy, None), limit);
    verified(group, strategy, None, &outcome).expect("a valid plan");
    outcome
}

fn heaviest(group: &Group, outcome: &Outcome) -> u128 {
    lag_by_member(group, &outcome.plan).into_iter().max().unwrap_or(0)
}

/// A random group; one in two without lags.
fn group(seed: u64) -> Group {
    let mut random = Random::new(seed);
    let def = random_group(&mut random, Shape { topics: 5, partitions: 12, members: 7 });
    let partitions: u32 = def.topics.values().map(|topic| topic.partitions).sum();
    let largest = [2, 40, 100_000][random.below(3)];
    let lags = (0..partitions).map(|_| random.below(largest) as u64).collect();
    if random.below(2) == 0 { def.build() } else { def.build_with_lags(lags) }
}

proptest! {
    /// Every strategy returns a valid plan for any limit of steps or time. If the limit was not reached, the plan is
    /// the same as without a limit.
    #[test]
    fn valid_under_any_limit(seed in any::<u64>(), steps in prop_oneof![Just(0u64), 0u64..40, 0u64..2_000]) {
        let group = group(seed);
        let interrupted = || true;
        for strategy in strategies() {
            let whole = planned(&group, strategy, &Limit::default());
            prop_assert_eq!(whole.limited, None);
            let within = planned(&group, strategy, &Limit::of_steps(steps));
            match within.limited {
                None => prop_assert_eq!(&within.plan, &whole.plan),
                Some(limited) => prop_assert_eq!(limited.cause, Cause::Steps),
            }
            let in_time = planned(&group, strategy, &Limit::default().interrupted_by(&interrupted));
            match in_time.limited {
                None => prop_assert_eq!(&in_time.plan, &whole.plan),
                Some(limited) => prop_assert_eq!(limited.cause, Cause::Interrupted),
            }
            if let Some(target) = &within.withholding {
                prop_assert!(target.owner.len() == group.topics().partitions());
            }
        }
    }

    /// If owners keep their partitions, a search that ends early is not worse than no search: the heaviest member does
    /// not get heavier.
    #[test]
    fn more_steps_for_lag_never_end_worse_than_none(seed in any::<u64>(), steps in 0u64..5_000) {
        let group = group(seed);
        let stays = Options { keep: Keep::Owners { threshold: u64::MAX }, ..KEEPING };
        let none = planned(&group, Strategy::Lag(stays), &Limit::default());
        let some = planned(&group, Strategy::Lag(KEEPING), &Limit::of_steps(steps));
        // Partitions without an owner are placed first. After the last step they are placed without regard to lag.
        let none_open = none.ownership.owner.iter().all(|&owner| owner != kafka_assignors_core::planning::group::NONE);
        prop_assert!(!none_open || heaviest(&group, &some) <= heaviest(&group, &none));
    }

    /// If the search for a bound ends early, the result may be lower, but is still a bound.
    #[test]
    fn a_lag_bound_within_a_limit_is_no_more_than_the_whole(seed in any::<u64>(), steps in 0u64..200) {
        let group = group(seed);
        let (bound, limited) = lag_bound_within(&group, &Limit::of_steps(steps));
        let (whole, _) = lag_bound_within(&group, &Limit::default());
        prop_assert!(bound <= whole);
        prop_assert!(limited.is_some() || bound == whole);
    }
}

/// The first member owns `of_one` partitions of `x` with lag 1,000. The second owns a tenth as many with lag 999, and
/// `behind` partitions of `y` with smaller lags. The first member does not subscribe to `y`.
fn swaps(of_one: u32, behind: u32) -> Group {
    let mut def = GroupDef::new(
        &[("x", of_one + of_one / 10), ("y", behind)],
        vec![member("m0", &["x"]), member("m1", &["x", "y"])],
    );
    let owned = |topic: &str, numbers: std::ops::Range<u32>| -> Vec<(String, i32)> {
        numbers.map(|number| (topic.to_owned(), number as i32)).collect()
    };
    def.members[0].owned = owned("x", 0..of_one);
    def.members[1].owned = [owned("x", of_one..of_one + of_one / 10), owned("y", 0..behind)].concat();
    def.members.iter_mut().for_each(|member| member.generation = 3);
    let theirs = (of_one..of_one + of_one / 10).map(|_| 999);
    // In all, the second is lighter by two for each of its partitions of `x`.
    let (all, each) = (u64::from(of_one) * 1_000 - u64::from(of_one / 10) * 1_001, u64::from(behind));
    let ys = (0..each).map(|number| if number == 0 { all - (each - 1) * 998 } else { 998 });
    def.build_with_lags((0..of_one).map(|_| 1_000).chain(theirs).chain(ys).collect())
}

/// The steps of a plan: the smallest power of two that does not limit it.
fn steps(group: &Group, strategy: Strategy) -> u64 {
    let enough = |steps: &u64| planned(group, strategy, &Limit::of_steps(*steps)).limited.is_none();
    (0..40).map(|power| 1 << power).find(enough).expect("a group of ordinary size")
}

#[test]
fn what_one_may_not_have_costs_the_search_for_a_swap_nothing() {
    let [one, many] = [1, 180].map(|behind| steps(&swaps(200, behind), Strategy::Lag(KEEPING)));
    assert!(many <= 2 * one, "{many} steps in place of {one}");
    let group = swaps(200, 180);
    let outcome = planned(&group, Strategy::Lag(KEEPING), &Limit::default());
    assert_eq!((heaviest(&group, &outcome), outcome.kept_and_moved().1), (200_000 - 20, 40));
}

#[test]
fn a_swap_that_is_not_searched_to_the_end_is_said() {
    let group = swaps(200, 180);
    let outcome = planned(&group, Strategy::Lag(KEEPING), &Limit::of_steps(300));
    assert_eq!(outcome.limited, Some(Limited { goal: Goal::Lag, cause: Cause::Steps }));
    let heaviest = heaviest(&group, &outcome);
    assert!((200_000 - 20..=200_000).contains(&heaviest), "{heaviest}");
}

/// The subscribers of each topic are all members except one; the exception differs from topic to topic.
fn tangle(topics: u32, partitions: u32) -> Group {
    let names: Vec<String> = (0..topics).map(|topic| format!("t{topic:03}")).collect();
    let counted: Vec<(&str, u32)> = names.iter().map(|name| (name.as_str(), partitions)).collect();
    let others = |one: usize| -> Vec<&str> {
        names.iter().enumerate().filter(|&(topic, _)| topic != one).map(|(_, name)| name.as_str()).collect()
    };
    let members = (0..names.len()).map(|one| member(&format!("m{one:03}"), &others(one))).collect();
    let mut random = Random::new(1);
    let lags = (0..topics * partitions).map(|_| 1_000_000 + random.below(1_000) as u64).collect();
    GroupDef::new(&counted, members).build_with_lags(lags)
}

#[test]
fn placing_among_tangled_subscriptions_is_counted() {
    let group = tangle(60, 20);
    let rule = Strategy::Lag(Options { scope: Scope::Group, max_skew: None, keep: Keep::None });
    let whole = planned(&group, rule, &Limit::default());
    assert_eq!(whole.limited, None);
    let within = planned(&group, rule, &Limit::of_steps(10_000));
    assert_eq!(within.limited, Some(Limited { goal: Goal::Lag, cause: Cause::Steps }));
    // The rest is placed by count: every member has about a 60th.
    let loads = within.plan.loads(60);
    assert!(loads.iter().all(|&load| (10..=30).contains(&load)), "{loads:?}");
    assert!(heaviest(&group, &within) < 2 * heaviest(&group, &whole));
}
