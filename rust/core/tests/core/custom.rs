//! Plans of the user's own assignors, and plans under restrictions: the refused plans, and the faults that a verification
//! notices.

use crate::oracle::{GroupDef, member};
use kafka_assignors_core::planning::budget::Limit;
use kafka_assignors_core::planning::custom::{Draft, DraftError, outcome};
use kafka_assignors_core::planning::group::{Csr, Group, NONE};
use kafka_assignors_core::planning::leader::{JoinedMember, member_data, perform_assignment};
use kafka_assignors_core::planning::plan::{Outcome, UnassignedReason};
use kafka_assignors_core::planning::restrictions::Restrictions;
use kafka_assignors_core::planning::strategy::{Strategy, plan_restricted, settle};
use kafka_assignors_core::protocol::user_data::{CustomUserData, MOST_MEMBER_DATA};
use kafka_assignors_core::verify::{PlanFault, verify_outcome_from, verify_restricted};

const EAGER: Strategy = Strategy::Custom { cooperative: false };

/// `a` and `b` read `t` (4) and `u` (2); `c` reads `u` only. `b` owned all of `t`.
fn group() -> Group {
    let members =
        vec![member("a", &["t", "u"]), member("b", &["t", "u"]).owning("tp0 tp1 tp2 tp3", 1), member("c", &["u"])];
    GroupDef::new(&[("t", 4), ("u", 2)], members).build()
}

/// `b` may not have partition 0 of `t`, no member may have partition 1 of `u`, and `a` has at most two.
fn restricted() -> (Group, Restrictions, Outcome) {
    let group = group();
    let mut sets = Csr::new();
    sets.push_row(&[0, 2]);
    sets.push_row(&[]);
    let set_of = vec![0, NONE, NONE, NONE, NONE, 1];
    let restrictions = Restrictions { sets, set_of, capacity: vec![2, u32::MAX, u32::MAX] };
    let ownership = settle(&group, Strategy::Sticky(Default::default()), None);
    let outcome = plan_restricted(&group, ownership, restrictions.clone(), &Limit::default());
    (group, restrictions, outcome)
}

/// Sets that are shorter and longer than the list of subscribers, with and without a subscriber among them.
#[test]
fn each_partition_that_restrictions_leave_out_has_its_reason() {
    let (barred, full, nobody) = (UnassignedReason::NotAllowed, UnassignedReason::Full, UnassignedReason::NoSubscriber);
    let members = vec![
        member("a", &["t"]),
        member("b", &["t", "u"]),
        member("c", &["t"]),
        member("d", &["t"]),
        member("e", &["u"]),
    ];
    let group = GroupDef::new(&[("t", 5), ("u", 5), ("v", 1)], members).build();
    let mut sets = Csr::new();
    for set in [&[0, 2, 3][..], &[1], &[2], &[4], &[]] {
        sets.push_row(set);
    }
    let set_of = vec![0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0];
    let restrictions = Restrictions { sets, set_of, capacity: vec![0; 5] };
    let ownership = settle(&group, Strategy::Sticky(Default::default()), None);
    let outcome = plan_restricted(&group, ownership, restrictions.clone(), &Limit::default());
    let reasons: Vec<UnassignedReason> = outcome.unassigned(&group).map(|(_, reason)| reason).collect();
    assert_eq!(reasons, [full, full, full, barred, barred, barred, full, barred, full, barred, nobody]);
    verify_restricted(&group, &restrictions, None, &outcome, &Limit::default()).expect("a valid plan");
}

#[test]
fn a_restricted_plan_is_certified_and_its_faults_are_noticed() {
    let (group, restrictions, outcome) = restricted();
    let verify = |outcome: &Outcome| verify_restricted(&group, &restrictions, None, outcome, &Limit::default());
    let certificate = verify(&outcome).expect("a valid plan");
    assert!(certificate.is_optimal(), "{certificate:?} of {:?}", outcome.plan);
    assert_eq!(outcome.unassigned(&group).collect::<Vec<_>>(), [(5, UnassignedReason::NotAllowed)]);
    assert_eq!(certificate.moved, certificate.moved_bound.expect("proven"));

    let changed = |partition: usize, owner: u32| {
        let mut changed = outcome.clone();
        changed.plan.owner[partition] = owner;
        verify(&changed)
    };
    assert!(matches!(changed(0, 1), Err(PlanFault::NotAllowed { .. })));
    assert!(matches!(changed(5, 2), Err(PlanFault::NotAllowed { .. })));
    assert!(matches!(changed(1, 2), Err(PlanFault::NotSubscribed { .. })));
    assert!(matches!(changed(1, 7), Err(PlanFault::NoSuchMember { .. })));
    assert!(matches!(changed(1, NONE), Err(PlanFault::Incomplete { .. })));
    let mut full = outcome.clone();
    full.plan.owner[..4].fill(0);
    assert!(matches!(verify(&full), Err(PlanFault::OverCapacity { load: 4.., most: 2, .. })));
    // A valid plan that is not the best: `c` could have the partition of `u`.
    let mut uneven = outcome.clone();
    uneven.plan.owner[..5].copy_from_slice(&[0, 1, 1, 1, 1]);
    assert!(!verify(&uneven).expect("a valid plan").is_optimal());
}

#[test]
fn a_draft_takes_only_what_can_be() {
    let group = group();
    let mut draft = Draft::new(&group);
    let [a, b, c] = ["a", "b", "c"].map(|id| draft.member(id).expect("a member"));
    assert_eq!(draft.member("z"), Err(DraftError::NoSuchMember("z".to_owned())));
    assert_eq!(draft.give(a, "t", [0, 3]), Ok(()));
    assert!(matches!(draft.give(b, "t", [1, 3]), Err(DraftError::Twice { number: 3, .. })));
    assert!(matches!(draft.give(b, "t", [2, 4]), Err(DraftError::NoSuchPartition { number: 4, count: 4, .. })));
    assert!(matches!(draft.give(b, "t", [-1]), Err(DraftError::NoSuchPartition { .. })));
    assert!(matches!(draft.give(b, "t", [1 << 40]), Err(DraftError::NoSuchPartition { .. })));
    assert!(matches!(draft.give(c, "t", [2]), Err(DraftError::NotSubscribed { .. })));
    assert!(matches!(draft.give(c, "x", [2]), Err(DraftError::NoSuchTopic { .. })));
    assert_eq!(draft.give(c, "t", []), Ok(()));
    let plan = draft.finish();
    assert_eq!(plan.owner, [0, 1, 1, 0, NONE, NONE]);
    let made = outcome(plan, settle(&group, EAGER, None), false);
    let left: Vec<_> = made.unassigned(&group).collect();
    assert_eq!(left, [(4, UnassignedReason::NotPlanned), (5, UnassignedReason::NotPlanned)]);
    let start = kafka_assignors_core::planning::strategy::near_optimum(&group, EAGER, &made, &Limit::default());
    let certificate = verify_outcome_from(&group, EAGER.rules(), None, &made, &start, &Limit::default());
    let certificate = certificate.expect("a valid plan");
    assert_eq!((certificate.left_out, certificate.is_optimal()), (2, false));
}

/// Version, generation 5, partition 1 of `t`, and data.
fn user_data(data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0, 0, 5, 0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 1, 0, 0, 0, 1];
    bytes.extend((data.len() as i32).to_be_bytes());
    bytes.extend(data);
    bytes
}

fn subscription(user_data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0, 0, 1, 0, 1, b't'];
    bytes.extend((user_data.len() as i32).to_be_bytes());
    bytes.extend(user_data);
    bytes
}

#[test]
fn user_data_is_read_to_the_last_byte_or_not_at_all() {
    let whole = user_data(b"zone");
    let read = CustomUserData::read(Some(&whole)).expect("the layout");
    assert_eq!((read.generation, read.partitions.partitions(), read.data), (5, 1, &b"zone"[..]));
    assert!((1..whole.len()).all(|end| CustomUserData::read(Some(&whole[..end])).is_err()));
    assert_eq!(CustomUserData::read(None).expect("nothing").generation, -1);
    assert_eq!(member_data(&subscription(&whole)), b"zone");
    assert_eq!(member_data(&subscription(&user_data(&vec![0; MOST_MEMBER_DATA]))).len(), MOST_MEMBER_DATA);
    assert_eq!(member_data(&subscription(&user_data(&vec![0; MOST_MEMBER_DATA + 1]))), b"");
    assert_eq!(member_data(b"\xff"), b"");
}

#[test]
fn a_leader_reads_claims_of_an_own_assignors_members() {
    let metadata = subscription(&user_data(b"zone"));
    let other = subscription(b"?");
    let joined = |id, metadata| JoinedMember { id, instance_id: None, metadata };
    let members = [joined("a", other.as_slice()), joined("b", metadata.as_slice())];
    let topics = GroupDef::new(&[("t", 2)], Vec::new()).build().topics().clone();
    let performed = perform_assignment(&members, topics, EAGER, Some(6)).expect("assignments");
    assert_eq!(performed.outcome.ownership.owner, [NONE, 1]);
    assert_eq!(performed.outcome.plan.owner, [0, 1]);
    assert_eq!((performed.generation, performed.faults.len()), (Some(6), 1));
}
