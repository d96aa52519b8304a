//! JoinGroup: which members are accepted, when a generation starts, and the contents of the responses.

use super::harness::{Client, Cluster, GROUP};
use crate::embedded::coordinator::{ClassicGroupState, Config};
use crate::protocol::ErrorCode;
use crate::protocol::join_group::{JoinGroupRequest, JoinGroupResponse};

fn refused(cluster: &mut Cluster, client: &Client) -> ErrorCode {
    let call = cluster.join(client);
    cluster.answer::<JoinGroupResponse>(&call).error_code
}

#[test]
fn a_dynamic_newcomer_is_given_an_id_first_from_version_4_on() {
    for version in 0..=9 {
        let mut cluster = Cluster::new();
        let mut client = Client::new(1).at_version(version);
        let call = cluster.join(&client);
        let response: JoinGroupResponse = cluster.answer(&call);
        if version < 4 {
            assert_eq!((response.error_code, response.generation_id), (ErrorCode::NONE, 1));
            assert_eq!(response.leader, response.member_id);
            continue;
        }
        assert_eq!((response.error_code, response.generation_id), (ErrorCode::MEMBER_ID_REQUIRED, -1));
        assert!(response.member_id.starts_with("client-"));
        assert!(cluster.view().members.is_empty());
        client.id = response.member_id;
        let call = cluster.join(&client);
        assert_eq!(cluster.joined(&mut client, &call).generation_id, 1);
    }
}

#[test]
fn a_static_newcomer_needs_no_second_step() {
    let mut cluster = Cluster::new();
    let mut client = Client::static_member(1, "one");
    let call = cluster.join(&client);
    let response = cluster.joined(&mut client, &call);
    assert!(response.member_id.starts_with("one-"));
    assert_eq!(response.members[0].group_instance_id.as_deref(), Some("one"));
}

#[test]
fn an_id_that_nobody_uses_expires_with_its_session() {
    let mut cluster = Cluster::new();
    let mut client = Client::new(1);
    let call = cluster.join(&client);
    client.id = cluster.answer::<JoinGroupResponse>(&call).member_id;
    cluster.pass(9_999);
    let mut other = client.clone();
    cluster.pass(1);
    assert_eq!(refused(&mut cluster, &client), ErrorCode::UNKNOWN_MEMBER_ID);
    other.id.clear();
    let call = cluster.enter(&mut other);
    cluster.joined(&mut other, &call);
}

#[test]
fn a_rebalance_waits_for_ids_given_out_until_they_expire() {
    let (mut cluster, mut clients) = Cluster::stable(1);
    let newcomer = Client::new(9);
    let call = cluster.join(&newcomer);
    assert_eq!(cluster.answer::<JoinGroupResponse>(&call).error_code, ErrorCode::MEMBER_ID_REQUIRED);
    let call = cluster.join(&clients[0]);
    cluster.pass(9_999);
    assert!(cluster.is_waiting(&call), "the newcomer may still come");
    cluster.pass(1);
    assert_eq!(cluster.joined(&mut clients[0], &call).generation_id, 2);
}

#[test]
fn a_newcomer_makes_everyone_join_again_and_the_leader_sees_all() {
    let (mut cluster, mut clients) = Cluster::stable(1);
    let mut second = Client::new(2);
    let call_second = cluster.enter(&mut second);
    assert!(cluster.is_waiting(&call_second));
    assert_eq!(cluster.state(), ClassicGroupState::PreparingRebalance);
    assert_eq!(cluster.heartbeat(&clients[0]), ErrorCode::REBALANCE_IN_PROGRESS);

    let call_first = cluster.join(&clients[0]);
    let first = cluster.joined(&mut clients[0], &call_first);
    let second = cluster.joined(&mut second, &call_second);
    assert_eq!((first.generation_id, second.generation_id), (2, 2));
    assert_eq!((&first.leader, &second.leader), (&clients[0].id, &clients[0].id));
    assert_eq!(first.protocol_name.as_deref(), Some("sticky"));
    assert_eq!(first.protocol_type.as_deref(), Some("consumer"));
    let mut seen: Vec<_> = first.members.iter().map(|member| (&member.member_id, &member.metadata[..])).collect();
    let mut expected = vec![(&clients[0].id, &[1][..]), (&second.member_id, &[2])];
    seen.sort();
    expected.sort();
    assert_eq!(seen, expected);
    assert!(second.members.is_empty());
    assert_eq!(cluster.state(), ClassicGroupState::CompletingRebalance);
}

#[test]
fn who_does_not_rejoin_within_the_longest_rebalance_timeout_is_out() {
    let mut cluster = Cluster::new();
    let mut clients = [Client::new(1), Client::new(2)];
    clients[0].rebalance_ms = 5_000;
    clients[1].rebalance_ms = 20_000;
    for client in &mut clients {
        client.session_ms = 100_000;
    }
    cluster.stabilise(&mut clients);
    let call = cluster.join(&clients[0]);
    cluster.pass(19_999);
    assert!(cluster.is_waiting(&call));
    cluster.pass(1);
    let response = cluster.joined(&mut clients[0], &call);
    assert_eq!(response.members.len(), 1);
    assert_eq!(cluster.heartbeat(&clients[1]), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn version_0_has_one_timeout_for_both() {
    let mut cluster = Cluster::new();
    let mut clients = [Client::new(1).at_version(0), Client::new(2).at_version(0)];
    cluster.stabilise(&mut clients);
    cluster.pass(9_000);
    assert_eq!(cluster.heartbeat(&clients[1]), ErrorCode::NONE);
    let call = cluster.join(&clients[0]);
    cluster.pass(5_000);
    assert_eq!(cluster.heartbeat(&clients[1]), ErrorCode::REBALANCE_IN_PROGRESS);
    cluster.pass(4_999);
    assert!(cluster.is_waiting(&call));
    cluster.pass(1);
    assert_eq!(cluster.joined(&mut clients[0], &call).members.len(), 1);
}

#[test]
fn a_leader_that_stays_away_is_replaced_by_one_that_came() {
    let (mut cluster, mut clients) = Cluster::stable(3);
    clients[1].protocols[0].1 = b"changed".to_vec();
    let calls = [cluster.join(&clients[1]), cluster.join(&clients[2])];
    cluster.pass(60_000);
    let responses = [cluster.joined(&mut clients[1], &calls[0]), cluster.joined(&mut clients[2], &calls[1])];
    assert_eq!(responses[0].leader, responses[1].leader);
    assert_ne!(responses[0].leader, clients[0].id);
    let counts = responses.each_ref().map(|response| (response.leader == response.member_id, response.members.len()));
    assert!(counts.contains(&(true, 2)) && counts.contains(&(false, 0)), "{counts:?}");
}

#[test]
fn the_first_join_of_an_empty_group_waits_for_company() {
    let mut cluster = Cluster::with(Config { initial_rebalance_delay_ms: 3_000, ..Config::default() });
    let mut clients: Vec<_> = (1..=3).map(Client::new).collect();
    let mut calls = vec![cluster.enter(&mut clients[0])];
    cluster.pass(2_000);
    calls.push(cluster.enter(&mut clients[1]));
    cluster.pass(1_000);
    assert!(cluster.is_waiting(&calls[0]), "a newcomer prolongs the wait");
    cluster.pass(2_000);
    calls.push(cluster.enter(&mut clients[2]));
    cluster.pass(1_000);
    assert!(cluster.is_waiting(&calls[0]));
    cluster.pass(2_999);
    assert!(cluster.is_waiting(&calls[0]));
    cluster.pass(1);
    for (client, call) in clients.iter_mut().zip(&calls) {
        assert_eq!(cluster.joined(client, call).generation_id, 1);
    }
}

#[test]
fn the_initial_wait_is_prolonged_no_longer_than_the_rebalance_timeout() {
    let mut cluster = Cluster::with(Config { initial_rebalance_delay_ms: 3_000, ..Config::default() });
    let mut first = Client { rebalance_ms: 7_000, ..Client::new(1) };
    let call = cluster.enter(&mut first);
    for connection in 2..=7 {
        cluster.pass(1_000);
        let mut client = Client { rebalance_ms: 7_000, ..Client::new(connection) };
        cluster.enter(&mut client);
    }
    cluster.pass(999);
    assert!(cluster.is_waiting(&call));
    cluster.pass(1);
    assert_eq!(cluster.joined(&mut first, &call).members.len(), 7);
}

#[test]
fn the_members_vote_among_the_protocols_that_all_support() {
    let elected = |lists: &[&[&'static str]]| {
        let mut cluster = Cluster::with(Config { initial_rebalance_delay_ms: 10, ..Config::default() });
        let mut clients: Vec<_> = (1..).zip(lists).map(|(at, list)| Client::new(at).listing(list)).collect();
        let calls: Vec<_> = clients.iter_mut().map(|client| cluster.enter(client)).collect();
        cluster.pass(20);
        let response = cluster.joined(&mut clients[0], &calls[0]);
        // The leader gets the metadata of all members for the selected protocol.
        assert_eq!(response.members.len(), lists.len());
        response.protocol_name.expect("a protocol")
    };
    assert_eq!(elected(&[&["sticky", "range"], &["range", "sticky"], &["range", "sticky"]]), "range");
    assert_eq!(elected(&[&["sticky", "range"], &["sticky", "range"], &["range", "sticky"]]), "sticky");
    // Most members prefer `lag`, but one does not support it.
    assert_eq!(elected(&[&["lag", "range"], &["lag", "sticky", "range"], &["range", "sticky"]]), "range");
    // A tie has the same result in any order of the members.
    assert_eq!(elected(&[&["b", "a"], &["a", "b"]]), "a");
    assert_eq!(elected(&[&["a", "b"], &["b", "a"]]), "a");
    // A protocol that is listed twice counts once.
    assert_eq!(elected(&[&["x", "x", "range"], &["range"]]), "range");
}

#[test]
fn a_member_that_shares_no_protocol_is_refused() {
    let (mut cluster, clients) = Cluster::stable(1);
    assert_eq!(refused(&mut cluster, &Client::new(2).listing(&["range"])), ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    assert_eq!(refused(&mut cluster, &Client::new(2).listing(&[])), ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    let other_type = JoinGroupRequest { protocol_type: "connect".to_owned(), ..Client::new(2).join_request() };
    let response: JoinGroupResponse = cluster.ask(2, 9, &other_type);
    assert_eq!(response.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    assert_eq!(cluster.heartbeat(&clients[0]), ErrorCode::NONE);
    // An empty group accepts any protocol, but not an empty list.
    let mut cluster = Cluster::new();
    assert_eq!(refused(&mut cluster, &Client::new(2).listing(&[])), ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    let no_type = JoinGroupRequest { protocol_type: String::new(), ..Client::new(2).join_request() };
    let response: JoinGroupResponse = cluster.ask(2, 3, &no_type);
    assert_eq!(response.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    assert_eq!(response.protocol_name.as_deref(), Some(""), "null is for version 7 and later");
}

#[test]
fn a_follower_that_rejoins_unchanged_stays_in_its_generation() {
    let (mut cluster, mut clients) = Cluster::stable(2);
    let generation = clients[1].generation;
    let call = cluster.join(&clients[1]);
    let response = cluster.joined(&mut clients[1], &call);
    assert_eq!((response.generation_id, response.members.len()), (generation, 0));
    assert_eq!(cluster.state(), ClassicGroupState::Stable);
    assert_eq!(cluster.heartbeat(&clients[0]), ErrorCode::NONE);
    let call = cluster.sync(&clients[1], &[]);
    assert_eq!(cluster.synced(&call), (ErrorCode::NONE, vec![2]));
}

#[test]
fn the_leader_or_changed_metadata_starts_a_rebalance() {
    let (mut cluster, clients) = Cluster::stable(2);
    let call = cluster.join(&clients[0]);
    assert!(cluster.is_waiting(&call));
    assert_eq!(cluster.heartbeat(&clients[1]), ErrorCode::REBALANCE_IN_PROGRESS);

    let (mut cluster, mut clients) = Cluster::stable(2);
    clients[1].protocols[0].1 = b"changed".to_vec();
    let call = cluster.join(&clients[1]);
    assert!(cluster.is_waiting(&call));
    assert_eq!(cluster.heartbeat(&clients[0]), ErrorCode::REBALANCE_IN_PROGRESS);
}

#[test]
fn a_lost_join_reply_can_be_asked_for_again_before_the_plan_is_there() {
    let mut cluster = Cluster::new();
    let mut client = Client::new(1);
    let call = cluster.enter(&mut client);
    let first = cluster.joined(&mut client, &call);
    let call = cluster.join(&client);
    assert_eq!(cluster.joined(&mut client, &call), first);
    client.protocols[0].1 = b"changed".to_vec();
    let call = cluster.join(&client);
    assert_eq!(cluster.joined(&mut client, &call).generation_id, 2);
}

#[test]
fn a_connection_lost_while_joining_leaves_one_member() {
    let (mut cluster, mut clients) = Cluster::stable(1);
    let mut second = Client::new(2);
    let lost = cluster.enter(&mut second);
    cluster.disconnect(2);
    assert!(!cluster.coordinator.is_waiting(2));
    // A later connection may have the same number.
    second.connection = 2;
    let again = cluster.join(&second);
    let call = cluster.join(&clients[0]);
    cluster.joined(&mut clients[0], &call);
    let response = cluster.joined(&mut second, &again);
    assert_eq!(response.generation_id, 2);
    assert!(cluster.is_waiting(&lost), "nothing is sent for a connection that is gone");
    assert_eq!(cluster.view().members.len(), 2);
}

#[test]
fn a_connection_never_gets_the_answer_for_an_earlier_one_with_its_number() {
    let (mut cluster, mut clients) = Cluster::stable(1);
    let lost = cluster.enter(&mut Client::new(2));
    cluster.disconnect(2);
    let mut third = Client::static_member(2, "three");
    let waiting = cluster.join(&third);
    let call = cluster.join(&clients[0]);
    assert_eq!(cluster.joined(&mut clients[0], &call).members.len(), 3);
    assert!(cluster.is_waiting(&lost));
    cluster.joined(&mut third, &waiting);
}

#[test]
fn requests_behind_a_waiting_join_wait_too_and_keep_their_order() {
    let (mut cluster, mut clients) = Cluster::stable(1);
    let mut second = Client::new(2);
    let join = cluster.enter(&mut second);
    let heartbeat = crate::protocol::heartbeat::HeartbeatRequest {
        group_id: GROUP.to_owned(),
        generation_id: 2,
        member_id: second.id.clone(),
        group_instance_id: None,
    };
    let behind = cluster.send(2, 4, &heartbeat);
    assert!(cluster.is_waiting(&join) && cluster.is_waiting(&behind));
    let call = cluster.join(&clients[0]);
    cluster.joined(&mut clients[0], &call);
    cluster.joined(&mut second, &join);
    let response: crate::protocol::heartbeat::HeartbeatResponse = cluster.answer(&behind);
    assert_eq!(response.error_code, ErrorCode::NONE, "it was served after the join");
}

#[test]
fn each_fault_of_a_join_has_its_error() {
    let mut cluster = Cluster::new();
    for (session_ms, code) in [
        (999, ErrorCode::INVALID_SESSION_TIMEOUT),
        (1_000, ErrorCode::MEMBER_ID_REQUIRED),
        (1_800_000, ErrorCode::MEMBER_ID_REQUIRED),
        (1_800_001, ErrorCode::INVALID_SESSION_TIMEOUT),
        (i32::MIN, ErrorCode::INVALID_SESSION_TIMEOUT),
    ] {
        assert_eq!(refused(&mut cluster, &Client { session_ms, ..Client::new(1) }), code, "{session_ms}");
    }
    let nameless = JoinGroupRequest { group_id: String::new(), ..Client::new(1).join_request() };
    assert_eq!(cluster.ask::<_, JoinGroupResponse>(1, 9, &nameless).error_code, ErrorCode::INVALID_GROUP_ID);
    let stranger = Client { id: "nobody".to_owned(), ..Client::new(1) };
    assert_eq!(refused(&mut cluster, &stranger), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(refused(&mut Cluster::new(), &stranger), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn negative_rebalance_timeouts_make_no_hot_loop() {
    let mut cluster = Cluster::new();
    let mut clients = [Client::new(1), Client::new(2)].map(|client| Client { rebalance_ms: -1, ..client });
    for client in &mut clients {
        cluster.enter(client);
    }
    cluster.pass(60_000);
    assert!(cluster.view().members.is_empty());
}

#[test]
fn a_full_group_takes_nobody_more() {
    let mut cluster = Cluster::with(Config { max_group_size: 2, ..Config::default() });
    let mut clients = [Client::new(1), Client::new(2)];
    cluster.stabilise(&mut clients);
    assert_eq!(refused(&mut cluster, &Client::new(3)), ErrorCode::GROUP_MAX_SIZE_REACHED);
    // A member of the group can still rejoin.
    let call = cluster.join(&clients[0]);
    assert!(cluster.is_waiting(&call));
    let again = cluster.join(&clients[1]);
    cluster.joined(&mut clients[0], &call);
    cluster.joined(&mut clients[1], &again);
}
