//! LeaveGroup: of one member, of several members, and by the admin client.

use super::harness::{Client, Cluster};
use crate::embedded::coordinator::ClassicGroupState;
use crate::protocol::ErrorCode;
use crate::protocol::join_group::JoinGroupResponse;
use crate::protocol::leave_group::{LeaveGroupRequest, LeaveGroupResponse};

#[test]
fn a_member_leaves_in_every_version_and_the_others_rebalance() {
    for version in 0..=5 {
        let (mut cluster, mut clients) = Cluster::stable(2);
        let response = cluster.leave(version, &[(&clients[1].id, None)]);
        assert_eq!(response.error_code, ErrorCode::NONE);
        assert_eq!(response.members.len(), usize::from(version >= 3));
        assert_eq!(cluster.heartbeat(&clients[1]), ErrorCode::UNKNOWN_MEMBER_ID);
        assert_eq!(cluster.heartbeat(&clients[0]), ErrorCode::REBALANCE_IN_PROGRESS);
        let call = cluster.join(&clients[0]);
        assert_eq!(cluster.joined(&mut clients[0], &call).members.len(), 1);
    }
}

#[test]
fn the_last_member_leaves_an_empty_group() {
    let (mut cluster, clients) = Cluster::stable(1);
    cluster.leave(1, &[(&clients[0].id, None)]);
    assert_eq!(cluster.state(), ClassicGroupState::Empty);
    assert_eq!(cluster.coordinator.next_deadline(), None);
}

#[test]
fn who_is_not_there_cannot_leave() {
    let (mut cluster, _) = Cluster::stable(1);
    assert_eq!(cluster.leave(2, &[("nobody", None)]).error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    let response = cluster.leave(3, &[("nobody", None), ("", None), ("", Some("nothing"))]);
    assert_eq!(response.error_code, ErrorCode::NONE);
    let codes: Vec<_> = response.members.iter().map(|member| member.error_code).collect();
    assert_eq!(codes, [ErrorCode::UNKNOWN_MEMBER_ID; 3]);
    assert_eq!(cluster.state(), ClassicGroupState::Stable);

    let ask = |cluster: &mut Cluster, group_id: &str, version| {
        let request = LeaveGroupRequest {
            group_id: group_id.to_owned(),
            member_id: "m".to_owned(),
            members: vec![Default::default()],
        };
        cluster.ask::<_, LeaveGroupResponse>(1, version, &request)
    };
    assert_eq!(ask(&mut cluster, "", 3).error_code, ErrorCode::INVALID_GROUP_ID);
    assert_eq!(ask(&mut cluster, "other", 1).error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    let response = ask(&mut cluster, "other", 3);
    assert_eq!((response.error_code, response.members[0].error_code), (ErrorCode::NONE, ErrorCode::UNKNOWN_MEMBER_ID));
}

#[test]
fn several_leave_at_once_each_with_a_code_of_its_own() {
    let mut cluster = Cluster::new();
    let mut clients =
        vec![Client::new(1), Client::static_member(2, "two"), Client::static_member(3, "three"), Client::new(4)];
    cluster.stabilise(&mut clients);
    let response = cluster.leave(
        5,
        &[
            (&clients[0].id, None),
            ("", Some("two")),
            ("wrong", Some("three")),
            ("nobody", None),
            (&clients[0].id, None),
        ],
    );
    let codes: Vec<_> = response.members.iter().map(|member| member.error_code).collect();
    assert_eq!(
        codes,
        [
            ErrorCode::NONE,
            ErrorCode::NONE,
            ErrorCode::FENCED_INSTANCE_ID,
            ErrorCode::UNKNOWN_MEMBER_ID,
            ErrorCode::UNKNOWN_MEMBER_ID
        ]
    );
    let left: Vec<_> = cluster.view().members.into_iter().map(|member| member.member_id).collect();
    let mut expected = vec![clients[2].id.clone(), clients[3].id.clone()];
    expected.sort();
    assert_eq!(left, expected);
    assert!(expected.contains(&cluster.view().leader.expect("a leader")));
}

#[test]
fn an_id_that_was_given_out_can_be_given_back() {
    let (mut cluster, mut clients) = Cluster::stable(1);
    let newcomer = Client::new(2);
    let call = cluster.join(&newcomer);
    let id = cluster.answer::<JoinGroupResponse>(&call).member_id;
    let call = cluster.join(&clients[0]);
    assert!(cluster.is_waiting(&call));
    assert_eq!(cluster.leave(3, &[(&id, None)]).members[0].error_code, ErrorCode::NONE);
    assert_eq!(cluster.joined(&mut clients[0], &call).members.len(), 1);
}

#[test]
fn a_member_that_is_removed_while_it_waits_gets_an_error() {
    let (mut cluster, mut clients) = Cluster::stable(2);
    clients[1].protocols[0].1 = b"changed".to_vec();
    let joining = cluster.join(&clients[1]);
    cluster.leave(3, &[(&clients[1].id, None)]);
    assert_eq!(cluster.answer::<JoinGroupResponse>(&joining).error_code, ErrorCode::UNKNOWN_MEMBER_ID);

    let (mut cluster, mut clients) = Cluster::stable(2);
    let calls = [cluster.join(&clients[0]), cluster.join(&clients[1])];
    for (client, call) in clients.iter_mut().zip(&calls) {
        cluster.joined(client, call);
    }
    let syncing = cluster.sync(&clients[1], &[]);
    cluster.leave(3, &[(&clients[1].id, None)]);
    assert_eq!(cluster.synced(&syncing).0, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn the_last_who_was_missing_completes_the_join_by_leaving() {
    let (mut cluster, mut clients) = Cluster::stable(2);
    let call = cluster.join(&clients[0]);
    assert!(cluster.is_waiting(&call));
    cluster.leave(0, &[(&clients[1].id, None)]);
    assert_eq!(cluster.joined(&mut clients[0], &call).members.len(), 1);
}
