//! A leader remembers its plans, and so detects claims of partitions that it did not assign to the member.

use crate::encode::{SubscriptionFields, encode_sticky, encode_stream_join};
use kafka_assignors_core::planning::budget::Limit;
use kafka_assignors_core::planning::group::{NONE, TopicSpec, Topics};
use kafka_assignors_core::planning::leader::{
    FaultReason, HandedOut, JoinedMember, Memory, Performed, perform_assignment_knowing,
};
use kafka_assignors_core::planning::objective::{Mode, Objective, RackOrder};
use kafka_assignors_core::planning::strategy::Strategy;
use kafka_assignors_core::protocol::topic_partitions::CanonicalPartitions;
use kafka_assignors_core::verify::verify_outcome;

const STICKY: Strategy = Strategy::Sticky(OBJECTIVE);
const COOPERATIVE: Strategy = Strategy::CooperativeSticky(OBJECTIVE);
const JOIN: Strategy = Strategy::StreamJoin { cooperative: false };
const COOPERATIVE_JOIN: Strategy = Strategy::StreamJoin { cooperative: true };
const OBJECTIVE: Objective = Objective { mode: Mode::FairYetSticky, racks: RackOrder::BeforeStickiness };
const PARTITIONS: i32 = 60;

/// The claims of a subscriber of topic `t`: its partitions and their generation.
#[derive(Clone, Debug)]
struct Claimant {
    id: &'static str,
    instance: Option<&'static str>,
    owned: Vec<i32>,
    since: i32,
}

fn claimant(id: &'static str, owned: impl IntoIterator<Item = i32>, since: i32) -> Claimant {
    Claimant { id, instance: None, owned: owned.into_iter().collect(), since }
}

fn everything(id: &'static str, since: i32) -> Claimant {
    claimant(id, 0..PARTITIONS, since)
}

fn metadata(strategy: Strategy, member: &Claimant) -> Vec<u8> {
    let list = |numbers: &[i32]| CanonicalPartitions::new([("t", numbers.to_vec())]);
    let cooperative = matches!(strategy, COOPERATIVE | COOPERATIVE_JOIN);
    let user_data = match strategy {
        Strategy::Sticky(_) => Some(encode_sticky(&list(&member.owned), Some(member.since)).unwrap()),
        Strategy::StreamJoin { .. } => Some(encode_stream_join(&member.owned, member.since).unwrap()),
        _ => None,
    };
    SubscriptionFields {
        topics: &["t"],
        owned: list(if cooperative { &member.owned } else { &[] }),
        generation: Some(member.since).filter(|_| strategy == COOPERATIVE),
        user_data: user_data.as_deref(),
        rack: None,
    }
    .encode()
    .unwrap()
}

struct Plan {
    performed: Performed,
    generation: Option<i32>,
}

impl Plan {
    fn of(&self, id: &str) -> Vec<i32> {
        let member = self.performed.group.member_ids().find_sorted(id).unwrap();
        let owners = self.performed.outcome.plan.owner.iter();
        (0..).zip(owners).filter(|&(_, &owner)| owner == member).map(|(number, _)| number).collect()
    }

    fn unread(&self) -> usize {
        self.performed.outcome.plan.owner.iter().filter(|&&owner| owner == NONE).count()
    }

    /// The number of false claims of each member.
    fn false_claims(&self) -> Vec<(&str, u32)> {
        let faults = self.performed.faults.iter();
        let found = faults.map(|fault| match fault.reason {
            FaultReason::NotHandedOut(claims) => (fault.member_id.as_str(), claims),
            other => panic!("{other}"),
        });
        found.collect()
    }
}

fn plan_of(
    strategy: Strategy,
    partitions: i32,
    members: &[Claimant],
    forming: Option<i32>,
    known: &[&Plan],
    anonymous: bool,
) -> Plan {
    let bytes: Vec<Vec<u8>> = members.iter().map(|member| metadata(strategy, member)).collect();
    let joined: Vec<JoinedMember<'_>> = members
        .iter()
        .zip(&bytes)
        .map(|(member, metadata)| JoinedMember { id: member.id, instance_id: member.instance, metadata })
        .collect();
    let spec = TopicSpec { name: "t", partitions: i64::from(partitions), racks: None };
    let plans: Vec<HandedOut<'_>> = known
        .iter()
        .map(|plan| HandedOut {
            generation: plan.generation,
            written: plan.performed.generation,
            group: &plan.performed.group,
            outcome: &plan.performed.outcome,
        })
        .collect();
    let memory = Memory { plans: &plans, anonymous };
    let topics = Topics::new(vec![spec]).unwrap();
    let performed = perform_assignment_knowing(&joined, topics, strategy, forming, &Limit::default(), &memory).unwrap();
    verify_outcome(&performed.group, strategy.rules(), performed.forming, &performed.outcome).unwrap();
    Plan { performed, generation: forming }
}

fn plan(strategy: Strategy, members: &[Claimant], forming: i32, known: &[&Plan]) -> Plan {
    plan_of(strategy, PARTITIONS, members, Some(forming), known, false)
}

/// The epoch, or generation, of a plan in the members' next claims.
fn since(plan: &Plan) -> i32 {
    match plan.performed.outcome.join {
        Some(_) => plan.performed.generation.unwrap(),
        None => plan.generation.unwrap(),
    }
}

const HONEST: [&str; 3] = ["a", "b", "c"];

fn honest(plan: &Plan) -> Vec<Claimant> {
    HONEST.map(|id| claimant(id, plan.of(id), since(plan))).to_vec()
}

fn first(strategy: Strategy) -> Plan {
    plan(strategy, &HONEST.map(|id| claimant(id, [], -1)), 5, &[])
}

#[test]
fn who_claims_everything_starves_nobody_where_the_leader_remembers() {
    for strategy in [COOPERATIVE, COOPERATIVE_JOIN] {
        let before = first(strategy);
        let mut members = honest(&before);
        members.push(everything("liar", since(&before)));
        // A leader without a memory accepts the claims, and no other member gets a partition.
        let believed = plan(strategy, &members, 6, &[]);
        assert_eq!(HONEST.map(|id| believed.of(id).len()), [0; 3], "{strategy:?}");
        let mut known = plan(strategy, &members, 6, &[&before]);
        assert_eq!(known.false_claims().len(), 1, "{strategy:?}");
        assert!(HONEST.iter().all(|id| known.of(id).len() >= 15), "{strategy:?}: {:?}", HONEST.map(|id| known.of(id)));
        // The liar repeats its claims in every rebalance, and the others keep their partitions.
        for forming in 7..12 {
            let mut members = honest(&known);
            members.push(everything("liar", since(&known)));
            known = plan(strategy, &members, forming, &[&known]);
            assert_eq!(HONEST.map(|id| known.of(id).len()), [15; 3], "{strategy:?}");
            assert_eq!(known.unread(), 0, "{strategy:?}");
        }
    }
}

#[test]
fn a_new_leader_believes_and_one_plan_later_knows() {
    let before = first(COOPERATIVE);
    let mut members = honest(&before);
    members.push(everything("liar", 5));
    let new = plan(COOPERATIVE, &members, 6, &[]);
    assert_eq!(new.unread(), 60, "all is contested, so nobody may have it");
    // All members give up their partitions and join again.
    let mut members = honest(&new);
    members.push(everything("liar", 6));
    let next = plan(COOPERATIVE, &members, 7, &[&new]);
    assert_eq!((HONEST.map(|id| next.of(id).len()), next.unread()), ([15; 3], 0));
}

#[test]
fn an_older_claim_holds_nothing_back_that_the_leader_knows_to_be_free() {
    let before = first(COOPERATIVE);
    // `c` has left, and the liar claims all partitions with an old generation, or with none.
    for since in [4, 0, -1] {
        let members = [claimant("a", before.of("a"), 5), claimant("b", before.of("b"), 5), everything("liar", since)];
        let believed = plan(COOPERATIVE, &members, 6, &[]);
        assert_eq!(believed.of("liar").len(), 20, "it keeps what was the other's");
        let known = plan(COOPERATIVE, &members, 6, &[&before]);
        assert_eq!(known.unread(), 0);
        assert_eq!(known.false_claims(), [("liar", 60)]);
    }
    // New partitions had no owner before.
    let members = [everything("a", -1), claimant("b", [], -1)];
    let two = ["a", "b"].map(|id| claimant(id, [], -1));
    let small = plan_of(COOPERATIVE, 10, &two, Some(5), &[], false);
    let grown = plan_of(COOPERATIVE, PARTITIONS, &members, Some(6), &[&small], false);
    assert_eq!((grown.of("a").len(), grown.of("b").len(), grown.unread()), (30, 30, 0));
}

#[test]
fn who_missed_the_answer_to_sync_group_still_has_what_it_had() {
    // `c` owns all partitions when two members join. Generation 5 withholds the partitions of these members, but `c`
    // does not receive its assignment.
    let rich = || everything("c", 4);
    let members = [claimant("a", [], -1), claimant("b", [], -1), rich()];
    let before = plan(COOPERATIVE, &members, 5, &[]);
    assert_eq!((before.of("c").len(), before.unread()), (20, 40));
    let again = [claimant("a", [], 5), claimant("b", [], 5), rich()];
    let next = plan(COOPERATIVE, &again, 6, &[&before]);
    assert_eq!(next.false_claims(), []);
    assert_eq!((next.of("c").len(), next.unread()), (20, 40), "nobody else gets what it still reads");
    // The same holds if `c` claims them with the generation whose assignment it did not receive.
    let again = [claimant("a", [], 5), claimant("b", [], 5), everything("c", 5)];
    let next = plan(COOPERATIVE, &again, 6, &[&before]);
    assert_eq!((next.false_claims(), next.of("c").len(), next.unread()), (vec![], 20, 40));
    // Another member that claims them in the same way does not get them.
    let liar = [claimant("a", [], 5), everything("b", 4), rich()];
    let next = plan(COOPERATIVE, &liar, 6, &[&before]);
    assert_eq!(next.false_claims(), [("b", 60)]);
    assert_eq!((next.of("c").len(), next.unread()), (20, 40));
}

#[test]
fn a_static_member_that_came_back_under_another_id_is_who_it_was() {
    let with = |id, owned: Vec<i32>, since| Claimant { instance: Some("i"), ..claimant(id, owned, since) };
    let before = plan(COOPERATIVE, &[claimant("a", [], -1), with("old", vec![], -1)], 5, &[]);
    let members = [claimant("a", before.of("a"), 5), with("new", before.of("old"), 5)];
    let next = plan(COOPERATIVE, &members, 6, &[&before]);
    assert_eq!((next.false_claims(), next.performed.outcome.kept_and_moved()), (vec![], (60, 0)));
    // If the client hides instance ids, the claim of a new member for an absent member's partitions is accepted.
    let without = |id, owned: Vec<i32>, since| Claimant { instance: None, ..claimant(id, owned, since) };
    let members = [claimant("a", before.of("a"), 5), without("new", before.of("old"), 5)];
    for (anonymous, kept) in [(true, 60), (false, 30)] {
        let next = plan_of(STICKY, PARTITIONS, &members, Some(6), &[&before], anonymous);
        assert_eq!(next.performed.outcome.kept_and_moved().0, kept);
    }
    let stranger = [claimant("a", before.of("a"), 5), without("new", (0..60).collect(), 5)];
    let next = plan_of(STICKY, PARTITIONS, &stranger, Some(6), &[&before], true);
    assert_eq!(next.performed.outcome.kept_and_moved().0, 60, "not what somebody has who is there");
}

#[test]
fn generations_of_other_leaders_are_believed() {
    let before = first(COOPERATIVE);
    // Another member led generation 6, and gave all partitions to `a` and `b`.
    let members = [claimant("a", 0..30, 6), claimant("b", 30..60, 6), claimant("c", [], 6)];
    let next = plan(COOPERATIVE, &members, 7, &[&before]);
    assert_eq!((next.false_claims(), next.performed.outcome.kept_and_moved()), (vec![], (40, 20)));
    // After a generation with another leader, older claims are not certain either.
    let members = [claimant("a", 0..30, -1), claimant("b", 30..60, -1), claimant("c", [], 6)];
    let next = plan(COOPERATIVE, &members, 7, &[&before]);
    assert_eq!((next.false_claims(), next.performed.outcome.kept_and_moved()), (vec![], (40, 20)));
}

#[test]
fn a_plan_that_may_not_have_reached_the_group_is_all_that_can_be_claimed_of_its_generation() {
    let before = first(COOPERATIVE);
    let mut members = honest(&before);
    members.push(everything("liar", 5));
    // The liar joins again before the plan of generation 6 is stored, and claims all partitions with it.
    let lost = plan(COOPERATIVE, &members, 6, &[&before]);
    let mut members = honest(&before);
    members.push(everything("liar", 6));
    let next = plan(COOPERATIVE, &members, 7, &[&before, &lost]);
    assert_eq!(next.false_claims(), [("liar", 60 - lost.of("liar").len() as u32)]);
    assert!(HONEST.iter().all(|id| next.of(id).len() >= 15));
    // The first plan for a generation that is planned twice has reached no member either.
    let again = plan(COOPERATIVE, &honest(&before), 6, &[&before, &lost]);
    assert_eq!((again.false_claims(), again.performed.outcome.kept_and_moved()), (vec![], (60, 0)));
}

#[test]
fn an_epoch_that_has_not_been_is_false() {
    for strategy in [JOIN, COOPERATIVE_JOIN] {
        let before = first(strategy);
        let epoch = since(&before);
        let mut members = honest(&before);
        members.push(everything("liar", i32::MAX - 1));
        let next = plan(strategy, &members, 6, &[&before]);
        assert_eq!(next.performed.generation, Some(epoch + 1), "it does not raise the epoch");
        assert_eq!(next.false_claims().len(), 1);
        assert_eq!(next.performed.outcome.kept_and_moved(), (45, 15), "{strategy:?}");
        // After a generation that may have had another leader, the claim is not detected.
        let next = plan(strategy, &members, 7, &[&before]);
        assert_eq!(next.false_claims(), []);
    }
}

#[test]
fn the_generation_that_was_written_counts_where_the_groups_own_is_unknown() {
    let before = plan_of(STICKY, PARTITIONS, &HONEST.map(|id| claimant(id, [], -1)), None, &[], true);
    let written = before.performed.generation.unwrap();
    let mut members = HONEST.map(|id| claimant(id, before.of(id), written)).to_vec();
    members.push(everything("liar", written));
    let next = plan_of(STICKY, PARTITIONS, &members, None, &[&before], true);
    assert_eq!((next.false_claims(), next.performed.outcome.kept_and_moved()), (vec![("liar", 60)], (45, 15)));
}
