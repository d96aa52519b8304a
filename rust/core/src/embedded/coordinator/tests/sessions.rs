//! Heartbeats and silence.

use super::harness::{Client, Cluster};
use crate::embedded::coordinator::ClassicGroupState;
use crate::protocol::ErrorCode;
use crate::protocol::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use crate::protocol::join_group::JoinGroupResponse;

#[test]
fn a_silent_member_is_out_when_its_session_ends_and_heartbeats_prolong_it() {
    let (mut cluster, mut clients) = Cluster::stable(2);
    cluster.pass(9_000);
    assert_eq!(cluster.heartbeat(&clients[0]), ErrorCode::NONE);
    cluster.pass(999);
    assert_eq!(cluster.state(), ClassicGroupState::Stable);
    cluster.pass(1);
    assert_eq!(cluster.heartbeat(&clients[1]), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(cluster.heartbeat(&clients[0]), ErrorCode::REBALANCE_IN_PROGRESS);
    let call = cluster.join(&clients[0]);
    assert_eq!(cluster.joined(&mut clients[0], &call).members.len(), 1);
}

#[test]
fn a_group_whose_last_member_falls_silent_is_empty_and_keeps_counting() {
    let (mut cluster, clients) = Cluster::stable(1);
    let before = cluster.view().generation;
    cluster.pass(10_000);
    let view = cluster.view();
    assert_eq!((view.state, view.leader), (ClassicGroupState::Empty, None));
    assert_eq!(view.generation, before + 1);
    assert_eq!(cluster.coordinator.next_deadline(), None, "nothing is left to wait for");
    assert_eq!(cluster.heartbeat(&clients[0]), ErrorCode::UNKNOWN_MEMBER_ID);
    let mut next = Client::new(5);
    let call = cluster.enter(&mut next);
    assert_eq!(cluster.joined(&mut next, &call).generation_id, before + 2);
}

#[test]
fn what_a_heartbeat_learns() {
    let (mut cluster, clients) = Cluster::stable(2);
    let stale = Client { generation: clients[1].generation - 1, ..clients[1].clone() };
    assert_eq!(cluster.heartbeat(&stale), ErrorCode::ILLEGAL_GENERATION);
    let stranger = Client { id: "nobody".to_owned(), ..clients[1].clone() };
    assert_eq!(cluster.heartbeat(&stranger), ErrorCode::UNKNOWN_MEMBER_ID);
    for (group_id, expected) in [("", ErrorCode::INVALID_GROUP_ID), ("other", ErrorCode::UNKNOWN_MEMBER_ID)] {
        let request = HeartbeatRequest { group_id: group_id.to_owned(), ..Default::default() };
        assert_eq!(cluster.ask::<_, HeartbeatResponse>(7, 0, &request).error_code, expected);
    }
    // Success in CompletingRebalance.
    let mut leader = clients[0].clone();
    let calls = [cluster.join(&leader), cluster.join(&clients[1])];
    cluster.joined(&mut leader, &calls[0]);
    assert_eq!(cluster.state(), ClassicGroupState::CompletingRebalance);
    assert_eq!(cluster.heartbeat(&leader), ErrorCode::NONE);
    assert_eq!(cluster.heartbeat(&clients[1]), ErrorCode::ILLEGAL_GENERATION);
}

#[test]
fn who_waits_for_an_answer_needs_no_heartbeat_but_a_leader_that_plans_does() {
    let (mut cluster, mut clients) = Cluster::stable(3);
    // The second member's JoinGroup is unanswered for longer than its session timeout.
    clients[1].protocols[0].1 = b"changed".to_vec();
    let joining = cluster.join(&clients[1]);
    for _ in 0..3 {
        cluster.pass(9_000);
        assert_eq!(cluster.heartbeat(&clients[0]), ErrorCode::REBALANCE_IN_PROGRESS);
        assert_eq!(cluster.heartbeat(&clients[2]), ErrorCode::REBALANCE_IN_PROGRESS);
    }
    let calls = [cluster.join(&clients[0]), cluster.join(&clients[2])];
    for (at, call) in [(0, &calls[0]), (1, &joining), (2, &calls[1])] {
        assert_eq!(cluster.joined(&mut clients[at], call).generation_id, clients[0].generation);
    }
    // Both followers wait for SyncGroup's answer. The leader sends no heartbeat, and its session ends.
    let syncs = [cluster.sync(&clients[1], &[]), cluster.sync(&clients[2], &[])];
    cluster.pass(10_000);
    for call in &syncs {
        assert_eq!(cluster.synced(call).0, ErrorCode::REBALANCE_IN_PROGRESS);
    }
    assert_eq!(cluster.heartbeat(&clients[0]), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(cluster.heartbeat(&clients[1]), ErrorCode::REBALANCE_IN_PROGRESS);
}

#[test]
fn a_sync_answered_late_starts_the_session_anew() {
    let (mut cluster, mut clients) = Cluster::stable(2);
    let calls = [cluster.join(&clients[0]), cluster.join(&clients[1])];
    for (client, call) in clients.iter_mut().zip(&calls) {
        cluster.joined(client, call);
    }
    let waiting = cluster.sync(&clients[1], &[]);
    for _ in 0..3 {
        cluster.pass(9_000);
        assert_eq!(cluster.heartbeat(&clients[0]), ErrorCode::NONE);
    }
    let call = cluster.sync(&clients[0], &[(&clients[1].id, b"late")]);
    cluster.synced(&call);
    assert_eq!(cluster.synced(&waiting), (ErrorCode::NONE, b"late".to_vec()));
    cluster.pass(9_999);
    assert_eq!(cluster.heartbeat(&clients[0]), ErrorCode::NONE);
    assert_eq!(cluster.view().members.len(), 2);
    cluster.pass(1);
    assert_eq!(cluster.view().members.len(), 1, "its old session's end had no effect, the new one's has");
}

#[test]
fn a_newcomer_that_waits_for_too_long_is_taken_for_gone() {
    let mut cluster = Cluster::new();
    let mut clients = vec![Client { rebalance_ms: 1_000_000, session_ms: 1_000_000, ..Client::new(1) }];
    cluster.stabilise(&mut clients);
    let waiting = cluster.enter(&mut Client::new(2));
    cluster.pass(299_999);
    assert!(cluster.is_waiting(&waiting));
    cluster.pass(1);
    let response: JoinGroupResponse = cluster.answer(&waiting);
    assert_eq!((response.error_code, response.member_id.as_str()), (ErrorCode::UNKNOWN_MEMBER_ID, ""));
}

#[test]
fn a_clock_that_runs_backwards_is_not_believed() {
    let (mut cluster, clients) = Cluster::stable(1);
    cluster.pass(5_000);
    assert_eq!(cluster.heartbeat(&clients[0]), ErrorCode::NONE);
    let deadline = cluster.coordinator.next_deadline();
    cluster.now = 0;
    assert_eq!(cluster.heartbeat(&clients[0]), ErrorCode::NONE);
    assert_eq!(cluster.coordinator.next_deadline(), deadline);
}

#[test]
fn injected_codes_answer_so_many_requests_and_change_nothing() {
    use crate::protocol::ApiKey;
    let (mut cluster, clients) = Cluster::stable(1);
    cluster.coordinator.inject(ApiKey::Heartbeat, ErrorCode::NOT_COORDINATOR, 2);
    cluster.coordinator.inject(ApiKey::Heartbeat, ErrorCode::COORDINATOR_NOT_AVAILABLE, 1);
    cluster.coordinator.inject(ApiKey::Heartbeat, ErrorCode::NONE, 0);
    let codes: Vec<_> = (0..4).map(|_| cluster.heartbeat(&clients[0])).collect();
    assert_eq!(
        codes,
        [ErrorCode::NOT_COORDINATOR, ErrorCode::NOT_COORDINATOR, ErrorCode::COORDINATOR_NOT_AVAILABLE, ErrorCode::NONE]
    );
    // Each API has its own error field.
    cluster.coordinator.inject(ApiKey::JoinGroup, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS, 1);
    let call = cluster.join(&clients[0]);
    let response: JoinGroupResponse = cluster.answer(&call);
    assert_eq!(response.error_code, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
    cluster.coordinator.inject(ApiKey::SyncGroup, ErrorCode::ILLEGAL_GENERATION, 1);
    let call = cluster.sync(&clients[0], &[]);
    assert_eq!(cluster.synced(&call).0, ErrorCode::ILLEGAL_GENERATION);
    cluster.coordinator.inject(ApiKey::LeaveGroup, ErrorCode::NOT_COORDINATOR, 1);
    assert_eq!(cluster.leave(3, &[(&clients[0].id, None)]).error_code, ErrorCode::NOT_COORDINATOR);
    assert_eq!(cluster.heartbeat(&clients[0]), ErrorCode::NONE);
    assert_eq!(cluster.state(), ClassicGroupState::Stable);
}
