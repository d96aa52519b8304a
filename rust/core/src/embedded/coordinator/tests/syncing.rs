//! SyncGroup: every member gets its assignment or an error, in any order of the requests.

use super::harness::{Client, Cluster, GROUP};
use crate::embedded::coordinator::{ClassicGroupState, Config};
use crate::protocol::ErrorCode;
use crate::protocol::sync_group::{SyncGroupRequest, SyncGroupResponse};

/// Two members in generation 2 that have not sent SyncGroup. The first is the leader.
fn completing() -> (Cluster, [Client; 2]) {
    let mut cluster = Cluster::new();
    let mut clients = [Client::new(1), Client::new(2)];
    let call = cluster.enter(&mut clients[0]);
    cluster.joined(&mut clients[0], &call);
    let second = cluster.enter(&mut clients[1]);
    let first = cluster.join(&clients[0]);
    cluster.joined(&mut clients[0], &first);
    cluster.joined(&mut clients[1], &second);
    (cluster, clients)
}

#[test]
fn members_sync_before_or_after_their_leader() {
    for leader_first in [true, false] {
        let (mut cluster, [leader, follower]) = completing();
        let plan = [(leader.id.as_str(), &b"one"[..]), (follower.id.as_str(), b"two")];
        let early = (!leader_first).then(|| cluster.sync(&follower, &[]));
        if let Some(call) = &early {
            assert!(cluster.is_waiting(call));
        }
        let call = cluster.sync(&leader, &plan);
        assert_eq!(cluster.synced(&call), (ErrorCode::NONE, b"one".to_vec()));
        assert_eq!(cluster.state(), ClassicGroupState::Stable);
        let call = early.unwrap_or_else(|| cluster.sync(&follower, &[]));
        assert_eq!(cluster.synced(&call), (ErrorCode::NONE, b"two".to_vec()));
    }
}

#[test]
fn whom_the_leader_forgets_gets_no_bytes() {
    let (mut cluster, [leader, follower]) = completing();
    let waiting = cluster.sync(&follower, &[]);
    let call = cluster.sync(&leader, &[(&leader.id, b"all"), ("stranger", b"x")]);
    assert_eq!(cluster.synced(&call), (ErrorCode::NONE, b"all".to_vec()));
    assert_eq!(cluster.synced(&waiting), (ErrorCode::NONE, Vec::new()));
    assert_eq!(cluster.state(), ClassicGroupState::Stable);
}

#[test]
fn version_5_tells_and_checks_the_protocol() {
    let (mut cluster, [leader, follower]) = completing();
    let request = |protocol_type: Option<&str>, protocol_name: Option<&str>| SyncGroupRequest {
        group_id: GROUP.to_owned(),
        generation_id: follower.generation,
        member_id: follower.id.clone(),
        protocol_type: protocol_type.map(str::to_owned),
        protocol_name: protocol_name.map(str::to_owned),
        ..Default::default()
    };
    for (kind, name) in [
        (None, None),
        (Some("consumer"), None),
        (None, Some("sticky")),
        (Some("connect"), Some("sticky")),
        (Some("consumer"), Some("range")),
    ] {
        let response: SyncGroupResponse = cluster.ask(2, 5, &request(kind, name));
        assert_eq!(response.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL, "{kind:?} {name:?}");
        assert_eq!(response.protocol_name, None);
    }
    let old = cluster.send(2, 4, &request(None, None));
    assert!(cluster.is_waiting(&old), "older versions cannot say it");
    let call = cluster.sync(&leader, &[(&leader.id, b"x")]);
    let response: SyncGroupResponse = cluster.answer(&call);
    assert_eq!(response.protocol_type.as_deref(), Some("consumer"));
    assert_eq!(response.protocol_name.as_deref(), Some("sticky"));
}

#[test]
fn each_fault_of_a_sync_has_its_error() {
    let (mut cluster, [leader, follower]) = completing();
    let code = |cluster: &mut Cluster, client: &Client| {
        let call = cluster.sync(client, &[]);
        cluster.synced(&call).0
    };
    let stale = Client { generation: 1, ..follower.clone() };
    assert_eq!(code(&mut cluster, &stale), ErrorCode::ILLEGAL_GENERATION);
    let stranger = Client { id: "nobody".to_owned(), ..follower.clone() };
    assert_eq!(code(&mut cluster, &stranger), ErrorCode::UNKNOWN_MEMBER_ID);
    let unknown_instance = Client { instance: Some("i".to_owned()), ..follower.clone() };
    assert_eq!(code(&mut cluster, &unknown_instance), ErrorCode::UNKNOWN_MEMBER_ID);
    for (group_id, expected) in [("", ErrorCode::INVALID_GROUP_ID), ("other", ErrorCode::UNKNOWN_MEMBER_ID)] {
        let request = SyncGroupRequest { group_id: group_id.to_owned(), ..Default::default() };
        assert_eq!(cluster.ask::<_, SyncGroupResponse>(7, 3, &request).error_code, expected);
    }
    // A rebalance begins.
    let changed = Client { protocols: vec![("sticky", b"changed".to_vec())], ..leader.clone() };
    cluster.join(&changed);
    assert_eq!(code(&mut cluster, &follower), ErrorCode::REBALANCE_IN_PROGRESS);
}

#[test]
fn a_newcomer_sends_those_who_wait_for_the_plan_back_to_joining() {
    let (mut cluster, [leader, follower]) = completing();
    let waiting = cluster.sync(&follower, &[]);
    cluster.enter(&mut Client::new(3));
    assert_eq!(cluster.synced(&waiting).0, ErrorCode::REBALANCE_IN_PROGRESS);
    let late = cluster.sync(&leader, &[(&leader.id, b"late")]);
    assert_eq!(cluster.synced(&late).0, ErrorCode::REBALANCE_IN_PROGRESS);
}

#[test]
fn who_never_syncs_is_out_after_the_rebalance_timeout() {
    let (mut cluster, [leader, follower]) = completing();
    let call = cluster.sync(&leader, &[(&leader.id, b"all")]);
    cluster.synced(&call);
    assert_eq!(cluster.state(), ClassicGroupState::Stable);
    // The follower sends heartbeats, so its session does not end.
    for _ in 0..11 {
        cluster.pass(5_000);
        assert_eq!(cluster.heartbeat(&follower), ErrorCode::NONE);
        assert_eq!(cluster.heartbeat(&leader), ErrorCode::NONE);
    }
    cluster.pass(4_999);
    assert_eq!(cluster.heartbeat(&follower), ErrorCode::NONE);
    cluster.pass(1);
    assert_eq!(cluster.heartbeat(&follower), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(cluster.heartbeat(&leader), ErrorCode::REBALANCE_IN_PROGRESS);
}

#[test]
fn a_leader_that_never_syncs_is_out_and_the_others_start_over() {
    let (mut cluster, [leader, mut follower]) = completing();
    let waiting = cluster.sync(&follower, &[]);
    for _ in 0..12 {
        cluster.pass(4_999);
        assert_eq!(cluster.heartbeat(&leader), ErrorCode::NONE);
    }
    cluster.pass(12);
    assert_eq!(cluster.synced(&waiting).0, ErrorCode::REBALANCE_IN_PROGRESS);
    let call = cluster.join(&follower);
    assert_eq!(cluster.joined(&mut follower, &call).leader, follower.id);
    assert_eq!(cluster.heartbeat(&leader), ErrorCode::UNKNOWN_MEMBER_ID);
}

/// The size of the record of a group with one member, 100 bytes of metadata and 200 bytes of assignment. kafka-python
/// 3.0.12's record batch builder computed it for the same key and value.
const RECORD: u64 = 543;

fn lone_member() -> Client {
    Client { protocols: vec![("sticky", vec![1; 100])], ..Client::new(1) }
}

#[test]
fn a_group_that_does_not_fit_its_record_never_gets_stable() {
    let mut cluster = Cluster::with(Config { max_record_bytes: RECORD - 1, ..Config::default() });
    let mut client = lone_member();
    let call = cluster.enter(&mut client);
    cluster.joined(&mut client, &call);
    for _ in 0..3 {
        let call = cluster.sync(&client, &[(&client.id, &[2; 200])]);
        assert_eq!(cluster.synced(&call).0, ErrorCode::UNKNOWN_SERVER_ERROR);
        assert_eq!(cluster.state(), ClassicGroupState::PreparingRebalance);
        let call = cluster.join(&client);
        cluster.joined(&mut client, &call);
    }
    assert_eq!(client.generation, 4);
    cluster.coordinator.set_record_limit(RECORD);
    let call = cluster.sync(&client, &[(&client.id, &[2; 200])]);
    assert_eq!(cluster.synced(&call), (ErrorCode::NONE, vec![2; 200]));
}

#[test]
fn all_who_wait_learn_that_the_group_does_not_fit() {
    let (mut cluster, [leader, follower]) = completing();
    cluster.coordinator.set_record_limit(500);
    let waiting = cluster.sync(&follower, &[]);
    let call = cluster.sync(&leader, &[(&leader.id, &[0; 500])]);
    assert_eq!(cluster.synced(&call).0, ErrorCode::UNKNOWN_SERVER_ERROR);
    assert_eq!(cluster.synced(&waiting).0, ErrorCode::UNKNOWN_SERVER_ERROR);
}
