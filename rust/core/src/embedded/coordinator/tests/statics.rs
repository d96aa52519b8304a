//! Static members (KIP-345): a restart within the session causes no rebalance.

use super::harness::{Client, Cluster};
use crate::embedded::coordinator::ClassicGroupState;
use crate::protocol::ErrorCode;
use crate::protocol::join_group::JoinGroupResponse;

/// Two static members in a stable group. The first is the leader.
fn stable() -> (Cluster, Vec<Client>) {
    let mut cluster = Cluster::new();
    let mut clients = vec![Client::static_member(1, "one"), Client::static_member(2, "two")];
    cluster.stabilise(&mut clients);
    (cluster, clients)
}

fn restarted(client: &Client, connection: u64) -> Client {
    Client { connection, id: String::new(), generation: -1, ..client.clone() }
}

#[test]
fn a_restarted_follower_gets_its_assignment_and_a_new_id_without_a_rebalance() {
    let (mut cluster, clients) = stable();
    let mut again = restarted(&clients[1], 12);
    let call = cluster.join(&again);
    let response = cluster.joined(&mut again, &call);
    assert_eq!(response.generation_id, clients[1].generation);
    assert_ne!(response.member_id, clients[1].id);
    assert_eq!((response.leader, response.skip_assignment), (clients[0].id.clone(), false));
    let call = cluster.sync(&again, &[]);
    assert_eq!(cluster.synced(&call), (ErrorCode::NONE, vec![2]));
    assert_eq!(cluster.heartbeat(&clients[0]), ErrorCode::NONE);
    assert_eq!(cluster.heartbeat(&again), ErrorCode::NONE);
}

#[test]
fn the_process_that_was_replaced_is_fenced_everywhere() {
    let (mut cluster, clients) = stable();
    let mut again = restarted(&clients[1], 12);
    let call = cluster.join(&again);
    cluster.joined(&mut again, &call);
    let old = &clients[1];
    assert_eq!(cluster.heartbeat(old), ErrorCode::FENCED_INSTANCE_ID);
    let call = cluster.join(old);
    assert_eq!(cluster.answer::<JoinGroupResponse>(&call).error_code, ErrorCode::FENCED_INSTANCE_ID);
    let call = cluster.sync(old, &[]);
    assert_eq!(cluster.synced(&call).0, ErrorCode::FENCED_INSTANCE_ID);
    let left = cluster.leave(4, &[(&old.id, Some("two"))]);
    assert_eq!(left.members[0].error_code, ErrorCode::FENCED_INSTANCE_ID);
    // Without the instance id, the old member id is unknown.
    let nameless = Client { instance: None, ..old.clone() };
    assert_eq!(cluster.heartbeat(&nameless), ErrorCode::UNKNOWN_MEMBER_ID);
    // The end of the old session affects no member.
    cluster.pass(9_999);
    assert_eq!(cluster.heartbeat(&again), ErrorCode::NONE);
}

#[test]
fn a_process_that_waits_is_fenced_at_once() {
    let (mut cluster, clients) = stable();
    // Its JoinGroup is unanswered: the leader has not joined yet.
    let changed = Client { protocols: vec![("sticky", b"new".to_vec())], ..clients[1].clone() };
    let waiting = cluster.join(&changed);
    let mut again = restarted(&clients[1], 12);
    let call = cluster.join(&again);
    assert_eq!(cluster.answer::<JoinGroupResponse>(&waiting).error_code, ErrorCode::FENCED_INSTANCE_ID);
    let mut leader = clients[0].clone();
    let leading = cluster.join(&leader);
    cluster.joined(&mut leader, &leading);
    cluster.joined(&mut again, &call);
    // Its SyncGroup is unanswered: the leader has not sent the plan yet.
    let waiting = cluster.sync(&again, &[]);
    let third = cluster.join(&restarted(&again, 13));
    assert_eq!(cluster.synced(&waiting).0, ErrorCode::FENCED_INSTANCE_ID);
    // The leader may be computing the plan for the old member id, so the group rebalances again.
    assert_eq!(cluster.state(), ClassicGroupState::PreparingRebalance);
    assert!(cluster.is_waiting(&third));
}

#[test]
fn a_restarted_leader_keeps_the_plan_from_version_9_on() {
    let (mut cluster, clients) = stable();
    let mut again = restarted(&clients[0], 11);
    let call = cluster.join(&again);
    let response = cluster.joined(&mut again, &call);
    assert_eq!(response.generation_id, clients[0].generation);
    assert_eq!(response.leader, response.member_id);
    assert!(response.skip_assignment);
    assert_eq!(response.members.len(), 2);
    let call = cluster.sync(&again, &[]);
    assert_eq!(cluster.synced(&call), (ErrorCode::NONE, vec![1]));
    assert_eq!(cluster.heartbeat(&clients[1]), ErrorCode::NONE);
}

#[test]
fn before_version_9_a_restarted_leader_sees_its_old_id_lead() {
    for version in 5..=8 {
        let (mut cluster, clients) = stable();
        let mut again = restarted(&clients[0], 11).at_version(version);
        let call = cluster.join(&again);
        let response = cluster.joined(&mut again, &call);
        assert_eq!((&response.leader, response.members.len()), (&clients[0].id, 0));
        assert!(!response.skip_assignment);
        // To the coordinator this member is the leader: its next JoinGroup starts a rebalance.
        assert_eq!(cluster.view().leader.as_ref(), Some(&again.id));
        let call = cluster.join(&again);
        assert!(cluster.is_waiting(&call));
    }
}

#[test]
fn a_changed_subscription_across_a_restart_changes_nothing_until_the_metadata_changes_again() {
    let (mut cluster, clients) = stable();
    let mut again = Client { protocols: vec![("sticky", b"new".to_vec())], ..restarted(&clients[1], 12) };
    let call = cluster.join(&again);
    assert_eq!(cluster.joined(&mut again, &call).generation_id, clients[1].generation);
    let call = cluster.join(&again);
    assert_eq!(cluster.joined(&mut again, &call).generation_id, clients[1].generation);
    assert_eq!(cluster.heartbeat(&clients[0]), ErrorCode::NONE);
    again.protocols[0].1 = b"newer".to_vec();
    let call = cluster.join(&again);
    assert!(cluster.is_waiting(&call));
    assert_eq!(cluster.heartbeat(&clients[0]), ErrorCode::REBALANCE_IN_PROGRESS);
}

#[test]
fn a_restart_that_changes_the_vote_starts_a_rebalance() {
    let mut cluster = Cluster::new();
    let list = |client: Client| client.listing(&["sticky", "range"]);
    let mut clients = vec![list(Client::static_member(1, "one")), list(Client::static_member(2, "two"))];
    cluster.stabilise(&mut clients);
    let mut again = restarted(&clients[1], 12).listing(&["range"]);
    let call = cluster.join(&again);
    assert!(cluster.is_waiting(&call));
    let leading = cluster.join(&clients[0]);
    cluster.joined(&mut clients[0], &leading);
    assert_eq!(cluster.joined(&mut again, &call).protocol_name.as_deref(), Some("range"));
}

#[test]
fn a_restart_that_shares_no_protocol_is_refused() {
    let (mut cluster, clients) = stable();
    let call = cluster.join(&restarted(&clients[1], 12).listing(&["range"]));
    assert_eq!(cluster.answer::<JoinGroupResponse>(&call).error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    assert_eq!(cluster.heartbeat(&clients[1]), ErrorCode::NONE, "the member in the group is not replaced");
}

#[test]
fn a_static_member_that_stays_away_keeps_its_place_until_its_session_ends() {
    let mut cluster = Cluster::new();
    let mut clients = vec![Client::static_member(1, "one"), Client::static_member(2, "two")];
    for client in &mut clients {
        client.rebalance_ms = 3_000;
    }
    clients[1].session_ms = 30_000;
    cluster.stabilise(&mut clients);
    let call = cluster.join(&clients[0]);
    cluster.pass(3_000);
    let response = cluster.joined(&mut clients[0], &call);
    assert_eq!(response.members.len(), 2, "the absent member is planned for");
    let plan = [(clients[0].id.as_str(), &b"a"[..]), (clients[1].id.as_str(), b"b")];
    let call = cluster.sync(&clients[0], &plan);
    cluster.synced(&call);
    // It restarts as another process and gets its assignment.
    let mut again = restarted(&clients[1], 12);
    let call = cluster.join(&again);
    cluster.joined(&mut again, &call);
    let call = cluster.sync(&again, &[]);
    assert_eq!(cluster.synced(&call), (ErrorCode::NONE, b"b".to_vec()));
}

#[test]
fn a_group_whose_static_members_are_all_away_waits_for_their_sessions() {
    let mut cluster = Cluster::new();
    let mut clients = vec![Client::static_member(1, "one"), Client::static_member(2, "two")];
    for client in &mut clients {
        client.rebalance_ms = 0;
        client.session_ms = 5_000;
    }
    let mut calls = Vec::new();
    for client in &mut clients {
        calls.push(cluster.enter(client));
    }
    cluster.pass(20_000);
    assert_eq!(cluster.state(), ClassicGroupState::Empty);
}

#[test]
fn a_restart_whose_record_does_not_fit_leaves_the_old_member() {
    let (mut cluster, clients) = stable();
    cluster.coordinator.set_record_limit(100);
    let call = cluster.join(&restarted(&clients[1], 12));
    assert_eq!(cluster.answer::<JoinGroupResponse>(&call).error_code, ErrorCode::UNKNOWN_SERVER_ERROR);
    assert_eq!(cluster.heartbeat(&clients[1]), ErrorCode::NONE);
}

#[test]
fn an_unknown_instance_id_with_a_member_id_is_unknown() {
    let (mut cluster, clients) = stable();
    let stranger = Client { instance: Some("three".to_owned()), ..clients[0].clone() };
    assert_eq!(cluster.heartbeat(&stranger), ErrorCode::UNKNOWN_MEMBER_ID);
    let call = cluster.join(&stranger);
    assert_eq!(cluster.answer::<JoinGroupResponse>(&call).error_code, ErrorCode::UNKNOWN_MEMBER_ID);
}
