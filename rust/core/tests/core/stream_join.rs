//! The stream-join assignor: KIP-315's example and edge cases, and every small prior against an oracle of its own.

use std::ops::RangeInclusive;

use crate::encode::{SubscriptionFields, encode_stream_join};
use crate::oracle::{GroupDef, MemberDef, Random, TopicDef, member, seeds, show};
use kafka_assignors_core::planning::group::{Group, NONE, TopicSpec, Topics};
use kafka_assignors_core::planning::leader::{JoinedMember, Performed, perform_assignment, record_bytes_of_plan};
use kafka_assignors_core::planning::plan::{Outcome, UnassignedReason};
use kafka_assignors_core::planning::strategy::{Strategy, assign};
use kafka_assignors_core::planning::stream_join::{JoinNotice, notices};
use kafka_assignors_core::protocol::topic_partitions::CanonicalPartitions;
use kafka_assignors_core::verify::{PlanFault, verify_outcome};

const EAGER: Strategy = Strategy::StreamJoin { cooperative: false };
const COOPERATIVE: Strategy = Strategy::StreamJoin { cooperative: true };

fn planned(def: &GroupDef, strategy: Strategy) -> (Group, Outcome) {
    let group = def.build();
    let outcome = assign(&group, strategy, None);
    let certificate =
        verify_outcome(&group, strategy.rules(), None, &outcome).unwrap_or_else(|fault| panic!("{fault}: {def:?}"));
    assert!(certificate.is_optimal(), "{certificate:?}: {def:?}");
    (group, outcome)
}

fn shown(def: &GroupDef) -> String {
    let (group, outcome) = planned(def, EAGER);
    show(&group, &outcome.plan)
}

/// A member that holds these numbers of both topics.
fn joined(id: &str, numbers: impl IntoIterator<Item = u32>, epoch: i32) -> MemberDef {
    let owned: Vec<String> = numbers.into_iter().map(|n| format!("clicksp{n} viewsp{n}")).collect();
    member(id, &["clicks", "views"]).owning(&owned.join(" "), epoch)
}

fn pair(partitions: u32, members: Vec<MemberDef>) -> GroupDef {
    GroupDef::new(&[("clicks", partitions), ("views", partitions)], members)
}

fn numbers(outcome: &Outcome) -> &[u32] {
    &outcome.join.as_ref().expect("a stream join has numbers").owner
}

#[test]
fn kip_315_d_leaves_and_only_its_two_move() {
    let mut def = pair(10, vec![joined("A", 0..3, 1), joined("B", 3..6, 1), joined("C", 6..8, 1)]);
    let (_, outcome) = planned(&def, EAGER);
    assert_eq!(numbers(&outcome), [0, 0, 0, 1, 1, 1, 2, 2, 2, 0]);
    assert_eq!(outcome.kept_and_moved(), (16, 0));
    // D comes back without numbers: two numbers move, one of them from the member with four.
    def.members = vec![joined("A", [0, 1, 2, 9], 2), joined("B", 3..6, 2), joined("C", 6..9, 2), joined("D", [], 0)];
    let (_, outcome) = planned(&def, EAGER);
    assert_eq!(outcome.kept_and_moved(), (16, 4));
    let sizes = [0, 1, 2, 3].map(|m| numbers(&outcome).iter().filter(|&&owner| owner == m).count());
    assert_eq!(sizes, [3, 3, 2, 2]);
}

/// The largest number of kept numbers, over all assignments in which no member has two numbers more than another one. The
/// function tries every choice of the members with one number more.
fn most_kept(held: &[u32], count: u32) -> u32 {
    let members = held.len() as u32;
    let (q, r) = (count / members, count % members);
    let keep = |more: u32| (0u32..).zip(held).map(|(m, &held)| held.min(q + (more >> m & 1))).sum();
    (0..1u32 << members).filter(|more| more.count_ones() == r).map(keep).max().unwrap()
}

#[test]
fn every_prior_of_up_to_4_members_and_12_numbers_is_kept_as_far_as_it_can_be() {
    assert_eq!(check_priors(1..=4), 8_554, "four of them have no number");
}

#[test]
#[ignore = "part of `make check`: the same, for one member more"]
fn every_prior_of_5_members_and_12_numbers_is_kept_as_far_as_it_can_be() {
    assert_eq!(check_priors(5..=5), 18_564, "one of them has no number");
}

/// Checks every prior of these numbers of members. Returns the number of priors.
fn check_priors(members: RangeInclusive<usize>) -> u32 {
    let mut random = Random::new(315);
    let mut cases = 0;
    for members in members {
        for count in 0..=12u32 {
            let mut held = vec![0u32; members];
            loop {
                check_prior(&held, count, &mut random);
                cases += 1;
                // The next vector whose sum is at most `count`.
                let mut at = 0;
                while at < members {
                    held[at] += 1;
                    if held.iter().sum::<u32>() <= count {
                        break;
                    }
                    held[at] = 0;
                    at += 1;
                }
                if at == members {
                    break;
                }
            }
        }
    }
    cases
}

fn check_prior(held: &[u32], count: u32, random: &mut Random) {
    let mut order: Vec<u32> = (0..count).collect();
    random.shuffle(&mut order);
    let mut rest = order.as_slice();
    let members = held.iter().enumerate().map(|(m, &held)| {
        let (own, left) = rest.split_at(held as usize);
        rest = left;
        joined(&format!("m{m}"), own.iter().copied(), 7)
    });
    let members = members.collect();
    let def = GroupDef::new(&[("clicks", count), ("views", count)], members);
    let group = def.build();
    let outcome = assign(&group, EAGER, None);
    let owner = numbers(&outcome);
    let loads: Vec<usize> = (0..held.len() as u32).map(|m| owner.iter().filter(|&&o| o == m).count()).collect();
    assert!(count == 0 || loads.iter().max().unwrap() - loads.iter().min().unwrap() <= 1, "{held:?}: {loads:?}");
    let most = if count == 0 { 0 } else { most_kept(held, count) };
    assert_eq!(outcome.kept_and_moved(), (2 * most, 2 * (held.iter().sum::<u32>() - most)), "{held:?} of {count}");
    let certificate = verify_outcome(&group, EAGER.rules(), None, &outcome).unwrap();
    assert!(certificate.is_optimal());
    assert_eq!(certificate.kept, u64::from(most));
}

#[test]
fn different_subscriptions_leave_partitions_over_each_with_its_reason() {
    // Only A subscribes to the new topic, and it gets only its own numbers of that topic.
    let mut members = vec![joined("A", 0..2, 3), joined("B", 2..4, 3)];
    members[0].topics.push("new".to_owned());
    let def = GroupDef::new(&[("clicks", 4), ("views", 5), ("new", 6), ("other", 1)], members);
    let (group, outcome) = planned(&def, EAGER);
    assert_eq!(
        show(&group, &outcome.plan),
        "A: clicksp0 clicksp1 newp0 newp1 viewsp0 viewsp1; B: clicksp2 clicksp3 viewsp2 viewsp3"
    );
    let reasons: Vec<_> = outcome.unassigned(&group).map(|(p, reason)| (group.topics().locate(p), reason)).collect();
    assert_eq!(
        reasons,
        [
            ((1, 2), UnassignedReason::OwnerNotSubscribed { owner: 1 }),
            ((1, 3), UnassignedReason::OwnerNotSubscribed { owner: 1 }),
            ((1, 4), UnassignedReason::Beyond { topic: 0 }),
            ((1, 5), UnassignedReason::Beyond { topic: 0 }),
            ((2, 0), UnassignedReason::NoSubscriber),
            ((3, 4), UnassignedReason::Beyond { topic: 0 }),
        ]
    );
    assert_eq!(notices(&group), [JoinNotice::Cuts(0)]);
}

#[test]
fn a_topic_leaves_the_join_member_by_member_and_numbers_stay() {
    let mut def = pair(4, vec![joined("A", 0..2, 3), joined("B", 2..4, 3)]);
    def.members[0].topics.retain(|topic| topic != "views");
    assert_eq!(shown(&def), "A: clicksp0 clicksp1; B: clicksp2 clicksp3 viewsp2 viewsp3");
    def.members[1].topics.retain(|topic| topic != "views");
    assert_eq!(shown(&def), "A: clicksp0 clicksp1; B: clicksp2 clicksp3");
}

#[test]
fn counts_grow_topic_by_topic_and_new_numbers_come_when_all_have_them() {
    let mut def = pair(4, vec![joined("A", 0..2, 3), joined("B", 2..4, 3)]);
    def.topics.insert("views".to_owned(), TopicDef { partitions: 6, racks: None });
    let (group, outcome) = planned(&def, EAGER);
    assert_eq!(numbers(&outcome), [0, 0, 1, 1]);
    assert_eq!(notices(&group), [JoinNotice::Cuts(0)]);
    def.topics.insert("clicks".to_owned(), TopicDef { partitions: 6, racks: None });
    let (group, outcome) = planned(&def, EAGER);
    assert_eq!(numbers(&outcome), [0, 0, 1, 1, 0, 1]);
    assert_eq!(notices(&group), []);
}

#[test]
fn the_newest_epoch_wins_and_equal_ones_void_the_claim() {
    let owners = |members| assign(&pair(4, members).build(), EAGER, None).ownership.owner[..4].to_vec();
    let zombie = || joined("Z", 0..4, 2);
    assert_eq!(owners(vec![joined("A", 0..2, 3), zombie()]), [0, 0, 1, 1]);
    assert_eq!(owners(vec![joined("A", 0..2, 2), zombie()]), [NONE, NONE, 1, 1]);
    // An older claim does not decide where the newest claims are contested.
    assert_eq!(owners(vec![joined("A", [0], 3), joined("B", [0], 3), zombie()]), [NONE, 2, 2, 2]);
    // A claim with the largest epoch is false, because no later epoch could exceed it.
    assert_eq!(owners(vec![joined("A", 0..2, i32::MAX), zombie()]), [1; 4]);
    assert_eq!(owners(vec![joined("A", 0..2, i32::MAX - 1), zombie()]), [0, 0, 1, 1]);
    // A negative epoch is none: it loses to epoch 0.
    assert_eq!(owners(vec![joined("A", 0..2, -5), joined("B", [0], 0)]), [1, 0, NONE, NONE]);
}

#[test]
fn who_subscribes_to_nothing_gets_nothing_and_nobody_is_left_out() {
    let mut def = pair(3, vec![joined("A", [], 0), member("B", &[]), joined("C", [], 0), member("D", &["gone"])]);
    assert_eq!(shown(&def), "A: clicksp0 clicksp2 viewsp0 viewsp2; B:; C: clicksp1 viewsp1; D:");
    def.members.retain(|member| member.topics.is_empty());
    assert_eq!(shown(&def), "B:");
}

#[test]
fn cooperative_rebalancing_withholds_a_number_until_it_is_free() {
    let def = pair(4, vec![joined("A", 0..4, 3), joined("B", [], 0)]);
    let (group, outcome) = planned(&def, COOPERATIVE);
    assert_eq!(show(&group, &outcome.plan), "A: clicksp0 clicksp1 viewsp0 viewsp1; B:");
    assert!(outcome.unassigned(&group).all(|(_, reason)| reason == UnassignedReason::Withheld { holder: 0 }));
    assert_eq!(outcome.unassigned(&group).count(), 4);
    let def = pair(4, vec![joined("A", 0..2, 4), joined("B", [], 4)]);
    let (group, outcome) = planned(&def, COOPERATIVE);
    assert_eq!(
        show(&group, &outcome.plan),
        "A: clicksp0 clicksp1 viewsp0 viewsp1; B: clicksp2 clicksp3 viewsp2 viewsp3"
    );
    let def = pair(2, vec![joined("A", 0..2, 3), joined("B", 0..2, 3)]);
    let (group, outcome) = planned(&def, COOPERATIVE);
    assert!(outcome.unassigned(&group).all(|(_, reason)| reason == UnassignedReason::Contested));
    assert_eq!(outcome.unassigned(&group).count(), 4);
}

#[test]
fn random_groups_are_verified_and_do_not_depend_on_the_order_of_members() {
    for seed in seeds(3_000) {
        let mut random = Random::new(seed);
        let topics = ["t0", "t1", "t2"];
        let counts: Vec<(&str, u32)> = topics.iter().map(|&topic| (topic, random.below(9) as u32)).collect();
        let members = (0..random.below(6)).map(|m| {
            let own: Vec<&str> = topics.iter().copied().filter(|_| random.below(3) > 0).collect();
            let owned: Vec<String> =
                (0..random.below(12)).map(|_| format!("t{}p{}", random.below(3), random.below(9))).collect();
            member(&format!("m{m}"), &own).owning(&owned.join(" "), random.below(4) as i32 - 1)
        });
        let mut def = GroupDef::new(&counts, members.collect());
        for strategy in [EAGER, COOPERATIVE] {
            let (_, outcome) = planned(&def, strategy);
            def.members.reverse();
            assert_eq!(planned(&def, strategy).1.plan, outcome.plan);
        }
    }
}

#[test]
fn a_wrong_plan_is_refused() {
    let def = pair(4, vec![joined("A", 0..2, 3), joined("B", 2..4, 3)]);
    let (group, right) = planned(&def, EAGER);
    let refused = |partition: usize, owner: u32| {
        let mut outcome = right.clone();
        outcome.plan.owner[partition] = owner;
        verify_outcome(&group, EAGER.rules(), None, &outcome)
    };
    assert!(matches!(refused(0, 1), Err(PlanFault::Parted { number: 0, .. })));
    assert!(matches!(refused(0, NONE), Err(PlanFault::Incomplete { .. })));
    assert!(matches!(refused(0, 9), Err(PlanFault::NoSuchMember { .. })));
    let mut swapped = right.clone();
    for number in [0, 2] {
        for partition in [number, number + 4] {
            swapped.plan.owner[partition] = 1 - right.plan.owner[partition];
        }
    }
    let certificate = verify_outcome(&group, EAGER.rules(), None, &swapped).unwrap();
    assert_eq!((certificate.kept, certificate.moved, certificate.moved_bound), (2, 2, Some(0)));
    assert!(!certificate.is_optimal());
}

// ---- bytes ------------------------------------------------------------------------------------------------------------

fn topics(counts: &[(&str, i64)]) -> Topics {
    Topics::new(counts.iter().map(|&(name, partitions)| TopicSpec { name, partitions, racks: None }).collect()).unwrap()
}

fn metadata(user_data: Option<&[u8]>, owned: &[(&str, &[i32])], generation: Option<i32>) -> Vec<u8> {
    let owned = CanonicalPartitions::new(owned.iter().map(|&(topic, numbers)| (topic, numbers.to_vec())));
    SubscriptionFields { topics: &["clicks", "views"], owned, generation, user_data, rack: None }.encode().unwrap()
}

fn data(numbers: &[i32], epoch: i32) -> Vec<u8> {
    metadata(Some(&encode_stream_join(numbers, epoch).unwrap()), &[], None)
}

fn performed(metadata: &[Vec<u8>], counts: &[(&str, i64)], strategy: Strategy, forming: Option<i32>) -> Performed {
    let ids = ["a", "b", "c", "d"];
    let members = ids.iter().zip(metadata).map(|(id, metadata)| JoinedMember { id, instance_id: None, metadata });
    let performed = perform_assignment(&members.collect::<Vec<_>>(), topics(counts), strategy, forming).unwrap();
    verify_outcome(&performed.group, strategy.rules(), performed.forming, &performed.outcome).unwrap();
    performed
}

const BOTH: [(&str, i64); 2] = [("clicks", 4), ("views", 4)];

#[test]
fn the_epoch_is_one_more_than_the_highest_that_may_be_true() {
    let epoch = |metadata: &[Vec<u8>]| performed(metadata, &BOTH, EAGER, Some(40)).generation;
    assert_eq!(epoch(&[metadata(None, &[], None)]), Some(1));
    assert_eq!(epoch(&[data(&[], 0), data(&[1], 6)]), Some(7));
    assert_eq!(epoch(&[data(&[0], i32::MAX), data(&[1], 6)]), Some(7));
    // The largest epoch cannot be claimed, so it is not written: counting begins anew.
    assert_eq!(epoch(&[data(&[0], i32::MAX - 1), data(&[1], 6)]), Some(1));
    // The group's generation has no effect on the epoch.
    assert_eq!(epoch(&[metadata(None, &[("clicks", &[0])], Some(30)), data(&[], -9)]), Some(1));
}

#[test]
fn a_false_epoch_does_not_stay() {
    let liar = || data(&[0, 1, 2, 3], i32::MAX);
    let mut owned: Vec<Vec<i32>> = vec![vec![0, 1], vec![2, 3], vec![]];
    let mut epoch = 6;
    // The liar repeats its claim in every rebalance, and the others keep their numbers.
    for _ in 0..4 {
        let result = performed(&[data(&owned[0], epoch), data(&owned[1], epoch), liar()], &BOTH, EAGER, None);
        assert_eq!(result.generation, Some(epoch + 1));
        let numbers = numbers(&result.outcome);
        let kept = |member: u32| owned[member as usize].iter().filter(|&&n| numbers[n as usize] == member).count();
        assert!(kept(0) + kept(1) >= owned[0].len() + owned[1].len() - 1, "{owned:?} {numbers:?}");
        owned = (0..3).map(|member| (0..4).filter(|&n| numbers[n as usize] == member).collect()).collect();
        epoch = result.generation.unwrap();
    }
}

#[test]
fn owned_partitions_stand_in_for_missing_or_unreadable_data_and_lose_to_every_epoch() {
    let owned: &[(&str, &[i32])] = &[("clicks", &[0, 1]), ("views", &[1, 2])];
    let owner = |metadata: &[Vec<u8>]| performed(metadata, &BOTH, EAGER, Some(9)).outcome.ownership.owner[..4].to_vec();
    assert_eq!(owner(&[metadata(None, owned, Some(8)), data(&[], 1)]), [0, 0, 0, NONE]);
    assert_eq!(owner(&[metadata(Some(b"unreadable"), owned, Some(8))]), [0, 0, 0, NONE]);
    assert_eq!(owner(&[metadata(None, owned, Some(8)), data(&[1], 0)]), [0, 1, 0, NONE]);
    assert_eq!(owner(&[metadata(None, owned, Some(8)), metadata(None, owned, Some(7))]), [0, 0, 0, NONE]);
    assert_eq!(owner(&[metadata(None, owned, Some(9))]), [NONE; 4], "not older than the generation being formed");
    let unreadable = performed(&[metadata(Some(b"unreadable"), owned, None)], &BOTH, EAGER, None);
    assert_eq!(unreadable.faults.len(), 1);
}

#[test]
fn numbers_that_no_topic_has_are_no_claims_but_are_noted() {
    let all = [data(&[-1, 0, 4, i32::MAX, i32::MIN], 3), data(&[1], 3)];
    let result = performed(&all, &[("clicks", 4), ("views", 5)], EAGER, None);
    assert_eq!(result.outcome.ownership.owner[..4], [0, 1, NONE, NONE]);
    assert_eq!(notices(&result.group), [JoinNotice::Shrunk(0), JoinNotice::Shrunk(1), JoinNotice::Cuts(0)]);
    let repeated = performed(&[data(&[2, 2, 0, 2], 3), data(&[], 0)], &BOTH, EAGER, None);
    assert_eq!(repeated.outcome.ownership.owner[..4], [0, NONE, 0, NONE]);
    let missing = performed(&[data(&[0], 3)], &[("clicks", 2), ("unused", 9)], EAGER, None);
    assert_eq!(notices(&missing.group), [JoinNotice::Missing("views".to_owned())]);
    assert_eq!(numbers(&missing.outcome), [0, 0]);
    let empty = performed(&[data(&[0], 3)], &[("clicks", 2), ("views", 0)], EAGER, None);
    assert_eq!(notices(&empty.group), [JoinNotice::Missing("views".to_owned())]);
}

#[test]
fn the_cooperative_form_withholds_by_owned_partitions() {
    let numbers = encode_stream_join(&[0, 1, 2, 3], 3).unwrap();
    let holder = metadata(Some(&numbers), &[("clicks", &[0, 1, 2, 3]), ("views", &[0, 1, 2, 3])], None);
    let result = performed(&[holder, data(&[], 0)], &BOTH, COOPERATIVE, None);
    assert_eq!(result.outcome.withheld().count(), 4);
    assert_eq!(result.generation, Some(4));
}

#[test]
fn the_record_is_estimated_as_large_as_its_members_write_it() {
    let all = [data(&[0, 1], 3), data(&[2, 3], 3)];
    let result = performed(&all, &BOTH, EAGER, None);
    assert_eq!(record_bytes_of_plan(&result.group, &result.outcome.plan, EAGER), result.record_bytes);
}
