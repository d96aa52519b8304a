//! KIP-848 groups: epochs that are fenced, lost answers, static members, sessions, and slow revocations.

use super::consumer::{Consumer, cluster, held, wire};
use super::harness::{Client, Cluster};
use crate::embedded::coordinator::{Config, ConsumerGroupState};
use crate::protocol::ErrorCode;
use crate::protocol::consumer_group_heartbeat::ConsumerGroupHeartbeatRequest;
use crate::protocol::join_group::JoinGroupResponse;

/// A group of two members with two partitions each.
fn stable_pair() -> (Cluster, Consumer, Consumer) {
    let mut cluster = cluster(&[("t", 4)]);
    let mut members = [Consumer::new("a", &["t"]), Consumer::new("b", &["t"])];
    cluster.converge(&mut members);
    let [a, b] = members;
    assert_eq!((a.held[&1].len(), b.held[&1].len()), (2, 2));
    (cluster, a, b)
}

#[test]
fn other_epochs_are_fenced_and_epoch_zero_returns() {
    let (mut cluster, mut a, _) = stable_pair();
    for epoch in [a.epoch + 1, a.epoch - 2] {
        let request = Consumer { epoch, ..a.clone() }.full();
        assert_eq!(cluster.refused(&request), ErrorCode::FENCED_MEMBER_EPOCH);
    }
    assert_eq!(
        cluster.refused(&Consumer { epoch: 3, ..Consumer::new("z", &[]) }.steady()),
        ErrorCode::UNKNOWN_MEMBER_ID
    );
    // A fenced member joins again with its member id, and gets its partitions back.
    let before = (a.epoch, a.held.clone());
    a.epoch = 0;
    a.held.clear();
    assert!(cluster.full(&mut a));
    assert_eq!((a.epoch, a.held), before);
}

#[test]
fn a_lost_answer_is_asked_for_again_with_the_epoch_before() {
    let (mut cluster, mut a, mut b) = stable_pair();
    let mut c = Consumer::new("c", &["t"]);
    cluster.full(&mut c);
    let loser = if cluster.consumers().members[0].target["t"].len() == 1 { &mut a } else { &mut b };
    cluster.full(loser);
    // The acknowledgement arrives, but its answer is lost.
    let acknowledged = loser.full();
    assert_eq!(cluster.beat(&acknowledged).member_epoch, loser.epoch + 1);
    let without = ConsumerGroupHeartbeatRequest { topic_partitions: None, ..acknowledged.clone() };
    assert_eq!(cluster.refused(&without), ErrorCode::FENCED_MEMBER_EPOCH);
    let more = ConsumerGroupHeartbeatRequest {
        topic_partitions: Some(wire(&held(&[(1, &[0, 1, 2, 3])]))),
        ..acknowledged.clone()
    };
    assert_eq!(cluster.refused(&more), ErrorCode::FENCED_MEMBER_EPOCH);
    let again = cluster.beat(&acknowledged);
    assert_eq!((again.error_code, again.member_epoch), (ErrorCode::NONE, loser.epoch + 1));
    assert!(again.assignment.is_some());
}

#[test]
fn an_assignment_in_a_lost_answer_comes_with_a_full_request() {
    let (mut cluster, a, mut b) = stable_pair();
    cluster.beat(&Consumer { epoch: -1, ..a }.steady());
    let lost = cluster.beat(&b.steady());
    assert!(lost.assignment.is_some());
    b.epoch = lost.member_epoch;
    assert!(!cluster.steady(&mut b));
    assert_eq!(b.held[&1].len(), 2);
    assert!(cluster.full(&mut b));
    assert_eq!(b.held[&1].len(), 4);
}

#[test]
fn a_member_that_leaves_frees_its_partitions() {
    let (mut cluster, a, mut b) = stable_pair();
    let left = cluster.beat(&Consumer { epoch: -1, ..a.clone() }.steady());
    assert_eq!((left.member_epoch, left.heartbeat_interval_ms, left.assignment), (-1, 0, None));
    assert_eq!(cluster.consumers().state, ConsumerGroupState::Assigning);
    assert!(cluster.steady(&mut b));
    assert_eq!(b.held[&1], [0, 1, 2, 3]);
    assert_eq!(cluster.refused(&a.steady()), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(cluster.refused(&Consumer { epoch: -1, ..a }.steady()), ErrorCode::UNKNOWN_MEMBER_ID);
    cluster.beat(&Consumer { epoch: -1, ..b }.steady());
    assert_eq!(cluster.consumers().state, ConsumerGroupState::Empty);
    assert_eq!(cluster.coordinator.next_deadline(), None);
}

#[test]
fn a_session_ends_without_heartbeats() {
    let (mut cluster, a, mut b) = stable_pair();
    let session = Config::default().consumer_session_timeout_ms;
    cluster.pass(session - 1);
    cluster.steady(&mut b);
    cluster.pass(1);
    assert_eq!(cluster.consumers().members.len(), 1);
    assert_eq!(cluster.refused(&a.steady()), ErrorCode::UNKNOWN_MEMBER_ID);
    assert!(cluster.steady(&mut b));
    assert_eq!(b.held[&1].len(), 4);
    cluster.pass(session);
    assert_eq!(cluster.consumers().state, ConsumerGroupState::Empty);
}

#[test]
fn a_slow_revocation_ends_the_membership() {
    let (mut cluster, mut a, mut b) = stable_pair();
    let mut c = Consumer::new("c", &["t"]);
    cluster.full(&mut c);
    let first = cluster.consumers().members[0].target["t"].len() == 1;
    let (loser, other) = if first { (&mut a, &mut b) } else { (&mut b, &mut a) };
    let revoked = ConsumerGroupHeartbeatRequest { rebalance_timeout_ms: 3_000, ..loser.full() };
    cluster.beat(&revoked);
    for _ in 0..2 {
        cluster.pass(1_000);
        for member in [&mut *loser, other, &mut c] {
            cluster.steady(member);
        }
    }
    assert_eq!(cluster.consumers().members.len(), 3);
    cluster.pass(1_000);
    assert_eq!(cluster.consumers().members.len(), 2);
    assert_eq!(cluster.refused(&loser.steady()), ErrorCode::UNKNOWN_MEMBER_ID);
    let mut rest = [other.clone(), c];
    cluster.converge(&mut rest);
    assert_eq!((rest[0].held[&1].len(), rest[1].held[&1].len()), (2, 2));
}

#[test]
fn a_static_member_keeps_its_partitions_until_it_returns() {
    let mut cluster = cluster(&[("t", 4)]);
    let mut members = [Consumer::new("a", &["t"]).instance("one"), Consumer::new("b", &["t"]).instance("two")];
    cluster.converge(&mut members);
    let [a, b] = members;
    let epoch = cluster.consumers().epoch;
    // While the static member is in the group, another member with its instance id is refused, and so is the member itself at
    // epoch 0.
    let mut new = Consumer::new("new", &["t"]).instance("one");
    assert_eq!(cluster.refused(&new.full()), ErrorCode::UNRELEASED_INSTANCE_ID);
    let fenced = Consumer { epoch: 0, held: super::consumer::Held::new(), ..a.clone() };
    assert_eq!(cluster.refused(&fenced.full()), ErrorCode::UNRELEASED_INSTANCE_ID);
    let left = cluster.beat(&Consumer { epoch: -2, ..a.clone() }.steady());
    assert_eq!((left.error_code, left.member_epoch), (ErrorCode::NONE, -2));
    assert_eq!(cluster.consumers().epoch, epoch);
    cluster.full(&mut new);
    assert_eq!((new.epoch, &new.held), (epoch, &a.held));
    assert_eq!(cluster.consumers().epoch, epoch);
    assert_eq!(cluster.refused(&a.steady()), ErrorCode::FENCED_INSTANCE_ID);
    // A static member may also return with its own member id.
    cluster.beat(&Consumer { epoch: -2, ..new.clone() }.steady());
    let before = new.held.clone();
    (new.epoch, new.held) = (0, super::consumer::Held::new());
    cluster.full(&mut new);
    assert_eq!((new.epoch, &new.held), (epoch, &before));
    // A return with another subscription needs a new plan.
    cluster.beat(&Consumer { epoch: -2, ..new.clone() }.steady());
    let mut other = Consumer::new("other", &["t", "u"]).instance("one");
    cluster.full(&mut other);
    assert_eq!(cluster.consumers().epoch, epoch + 1);
    // The session of this member ends, and member b gets all partitions.
    cluster.beat(&Consumer { epoch: -2, ..other }.steady());
    cluster.pass(Config::default().consumer_session_timeout_ms);
    let mut b = Consumer { epoch: 0, held: super::consumer::Held::new(), ..b };
    cluster.full(&mut b);
    assert_eq!(b.held[&1].len(), 4);
    assert_eq!(cluster.refused(&Consumer::new("b", &["t"]).instance("three").full()), ErrorCode::INVALID_REQUEST);
}

#[test]
fn a_group_has_one_protocol_while_it_has_members() {
    let (mut cluster, a, b) = stable_pair();
    let mut classic = Client::new(1);
    let call = cluster.join(&classic);
    let response: JoinGroupResponse = cluster.answer(&call);
    assert_eq!(response.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    assert_eq!(cluster.consumers().members.len(), 2);
    for member in [a, b] {
        cluster.beat(&Consumer { epoch: -1, ..member }.steady());
    }
    let call = cluster.enter(&mut classic);
    cluster.joined(&mut classic, &call);
    let request = Consumer::new("c", &["t"]).full();
    let refused = cluster.beat(&request);
    assert_eq!(refused.error_code, ErrorCode::GROUP_ID_NOT_FOUND);
    assert!(refused.error_message.expect("a reason").contains("the embedded consumer protocol is malformed"));
    assert_eq!(
        cluster.refused(&Consumer { epoch: 3, ..Consumer::new("c", &[]) }.steady()),
        ErrorCode::GROUP_ID_NOT_FOUND
    );
    let id = classic.id.clone();
    cluster.leave(5, &[(&id, None)]);
    cluster.full(&mut Consumer::new("c", &["t"]));
    assert!(cluster.coordinator.groups().is_empty());
}
