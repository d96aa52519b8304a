//! DescribeGroups, ListGroups and DeleteGroups.

use super::harness::{Client, Cluster, GROUP};
use crate::protocol::ErrorCode;
use crate::protocol::group_admin::{
    DeleteGroupsRequest, DeleteGroupsResponse, DescribeGroupsRequest, DescribeGroupsResponse, DescribedGroup,
    ListGroupsRequest, ListGroupsResponse,
};

fn describe(cluster: &mut Cluster, group: &str, version: i16) -> DescribedGroup {
    let request = DescribeGroupsRequest { groups: vec![group.to_owned()], ..Default::default() };
    let response: DescribeGroupsResponse = cluster.ask(70, version, &request);
    response.groups.into_iter().next().expect("one group")
}

fn ask(cluster: &mut Cluster, version: i16, states: &[&str], types: &[&str]) -> ListGroupsResponse {
    let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    let request = ListGroupsRequest { states_filter: owned(states), types_filter: owned(types) };
    cluster.ask(70, version, &request)
}

fn list(cluster: &mut Cluster, states: &[&str]) -> Vec<(String, String, String)> {
    let response = ask(cluster, 4, states, &[]);
    response.groups.into_iter().map(|group| (group.group_id, group.protocol_type, group.group_state)).collect()
}

#[test]
fn a_stable_group_shows_everything_and_another_only_who_and_what_they_have() {
    let mut cluster = Cluster::new();
    let mut clients = vec![Client::static_member(1, "one"), Client::new(2)];
    cluster.stabilise(&mut clients);
    for version in 0..=5 {
        let group = describe(&mut cluster, GROUP, version);
        assert_eq!((group.error_code, group.group_id.as_str()), (ErrorCode::NONE, GROUP));
        assert_eq!((group.group_state.as_str(), group.protocol_type.as_str()), ("Stable", "consumer"));
        assert_eq!(group.protocol_data, "sticky");
        assert_eq!(group.members.len(), 2);
        let first = group.members.iter().find(|member| member.member_id == clients[0].id).expect("the first member");
        assert_eq!(first.group_instance_id.as_deref(), Some("one").filter(|_| version >= 4));
        assert_eq!((first.client_id.as_str(), first.client_host.as_str()), ("client", "/127.0.0.1"));
        assert_eq!((&first.member_metadata[..], &first.member_assignment[..]), (&[1][..], &[1][..]));
    }
    cluster.join(&clients[0]);
    let group = describe(&mut cluster, GROUP, 4);
    assert_eq!((group.group_state.as_str(), group.protocol_data.as_str()), ("PreparingRebalance", ""));
    assert!(group.members.iter().all(|member| member.member_metadata.is_empty()));
    assert!(group.members.iter().all(|member| member.member_assignment.len() == 1));
}

#[test]
fn an_unknown_group_is_dead() {
    let group = describe(&mut Cluster::new(), "nothing", 3);
    assert_eq!((group.error_code, group.group_state.as_str()), (ErrorCode::NONE, "Dead"));
    assert_eq!(group.authorized_operations, i32::MIN);
}

#[test]
fn groups_are_listed_by_type() {
    let (mut cluster, _clients) = Cluster::stable(1);
    let types = |response: ListGroupsResponse| -> Vec<String> {
        response.groups.into_iter().map(|group| group.group_type).collect()
    };
    assert_eq!(types(ask(&mut cluster, 5, &[], &[])), ["classic"]);
    assert_eq!(types(ask(&mut cluster, 5, &["Stable"], &["share", "Classic"])), ["classic"]);
    assert_eq!(types(ask(&mut cluster, 5, &[], &["consumer"])), [""; 0]);
    assert_eq!(types(ask(&mut cluster, 4, &[], &[])), [""], "version 4 has no types");
}

#[test]
fn groups_are_listed_by_state() {
    let (mut cluster, clients) = Cluster::stable(1);
    let stable = vec![(GROUP.to_owned(), "consumer".to_owned(), "Stable".to_owned())];
    assert_eq!(list(&mut cluster, &[]), stable);
    assert_eq!(list(&mut cluster, &["Empty", "stable"]), stable);
    assert_eq!(list(&mut cluster, &["Empty"]), []);
    cluster.leave(1, &[(&clients[0].id, None)]);
    assert_eq!(list(&mut cluster, &["Empty"])[0].1, "consumer");
}

#[test]
fn only_empty_groups_can_be_deleted() {
    let (mut cluster, clients) = Cluster::stable(1);
    let delete = |cluster: &mut Cluster, group: &str| {
        let request = DeleteGroupsRequest { groups_names: vec![group.to_owned()] };
        let response: DeleteGroupsResponse = cluster.ask(70, 2, &request);
        response.results[0].error_code
    };
    assert_eq!(delete(&mut cluster, GROUP), ErrorCode::NON_EMPTY_GROUP);
    assert_eq!(delete(&mut cluster, "nothing"), ErrorCode::GROUP_ID_NOT_FOUND);
    cluster.leave(1, &[(&clients[0].id, None)]);
    assert_eq!(delete(&mut cluster, GROUP), ErrorCode::NONE);
    assert_eq!(list(&mut cluster, &[]), []);
}
