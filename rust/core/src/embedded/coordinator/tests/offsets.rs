//! OffsetCommit, with the checks of member and generation, and OffsetFetch.

use super::harness::{Client, Cluster, GROUP, topics};
use crate::embedded::coordinator::ClassicGroupState;
use crate::protocol::offsets::{
    OffsetCommitPartition, OffsetCommitRequest, OffsetCommitResponse, OffsetCommitTopic, OffsetFetchGroup,
    OffsetFetchRequest, OffsetFetchResponse, OffsetFetchTopic,
};
use crate::protocol::{ApiKey, ErrorCode};

fn request(client: Option<&Client>, offset: i64) -> OffsetCommitRequest {
    OffsetCommitRequest {
        group_id: GROUP.to_owned(),
        generation_id: client.map_or(-1, |client| client.generation),
        member_id: client.map(|client| client.id.clone()).unwrap_or_default(),
        group_instance_id: client.and_then(|client| client.instance.clone()),
        retention_time_ms: -1,
        topics: vec![OffsetCommitTopic {
            name: "orders".to_owned(),
            partitions: vec![OffsetCommitPartition {
                partition_index: 3,
                committed_offset: offset,
                committed_leader_epoch: 5,
                committed_metadata: Some("note".to_owned()),
            }],
            ..Default::default()
        }],
    }
}

fn send(cluster: &mut Cluster, request: &OffsetCommitRequest) -> ErrorCode {
    let response: OffsetCommitResponse = cluster.ask(50, 8, request);
    assert_eq!((response.topics.len(), response.topics[0].name.as_str()), (1, "orders"));
    assert_eq!(response.topics[0].partitions[0].partition_index, 3);
    response.topics[0].partitions[0].error_code
}

fn commit(cluster: &mut Cluster, client: Option<&Client>, offset: i64) -> ErrorCode {
    send(cluster, &request(client, offset))
}

fn committed(cluster: &Cluster) -> Option<i64> {
    Some(cluster.coordinator.committed(GROUP).get("orders")?.get(&3)?.offset)
}

#[test]
fn members_of_the_generation_commit_and_others_do_not() {
    let (mut cluster, clients) = Cluster::stable(1);
    assert_eq!(commit(&mut cluster, Some(&clients[0]), 7), ErrorCode::NONE);
    let stale = Client { generation: 99, ..clients[0].clone() };
    assert_eq!(commit(&mut cluster, Some(&stale), 8), ErrorCode::ILLEGAL_GENERATION);
    let no_generation = Client { generation: -1, ..clients[0].clone() };
    assert_eq!(commit(&mut cluster, Some(&no_generation), 8), ErrorCode::ILLEGAL_GENERATION);
    let stranger = Client { id: "nobody".to_owned(), ..clients[0].clone() };
    assert_eq!(commit(&mut cluster, Some(&stranger), 8), ErrorCode::UNKNOWN_MEMBER_ID);
    let wrong_instance = Client { instance: Some("i".to_owned()), ..clients[0].clone() };
    assert_eq!(commit(&mut cluster, Some(&wrong_instance), 8), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(commit(&mut cluster, None, 8), ErrorCode::UNKNOWN_MEMBER_ID, "the group has members");
    assert_eq!(committed(&cluster), Some(7));
}

#[test]
fn a_replaced_static_member_cannot_commit() {
    let mut cluster = Cluster::new();
    let mut clients = vec![Client::static_member(1, "one")];
    cluster.stabilise(&mut clients);
    let mut again = Client { connection: 11, id: String::new(), ..clients[0].clone() };
    let call = cluster.join(&again);
    cluster.joined(&mut again, &call);
    assert_eq!(commit(&mut cluster, Some(&clients[0]), 1), ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(commit(&mut cluster, Some(&again), 2), ErrorCode::NONE);
}

#[test]
fn an_empty_group_takes_commits_from_outside_and_keeps_its_offsets() {
    let mut cluster = Cluster::new();
    assert_eq!(commit(&mut cluster, None, 1), ErrorCode::NONE);
    assert_eq!(cluster.state(), ClassicGroupState::Empty);
    let ghost = Client { generation: 1, id: "m".to_owned(), ..Client::new(1) };
    assert_eq!(commit(&mut cluster, Some(&ghost), 2), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(commit(&mut Cluster::new(), Some(&ghost), 2), ErrorCode::ILLEGAL_GENERATION);

    let (mut cluster, clients) = Cluster::stable(1);
    assert_eq!(commit(&mut cluster, Some(&clients[0]), 7), ErrorCode::NONE);
    cluster.leave(1, &[(&clients[0].id, None)]);
    assert_eq!(committed(&cluster), Some(7));
    assert_eq!(commit(&mut cluster, None, 3), ErrorCode::NONE, "an operator may rewind");
    assert_eq!(committed(&cluster), Some(3));
}

#[test]
fn commits_around_a_rebalance() {
    let (mut cluster, mut clients) = Cluster::stable(2);
    let calls = [cluster.join(&clients[0])];
    assert_eq!(cluster.state(), ClassicGroupState::PreparingRebalance);
    assert_eq!(commit(&mut cluster, Some(&clients[1]), 1), ErrorCode::NONE, "the old generation's work lands");
    let old = clients[1].clone();
    let second = cluster.join(&clients[1]);
    cluster.joined(&mut clients[0], &calls[0]);
    cluster.joined(&mut clients[1], &second);
    assert_eq!(commit(&mut cluster, Some(&clients[1]), 2), ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(commit(&mut cluster, Some(&old), 2), ErrorCode::ILLEGAL_GENERATION);
    cluster.sync_all(&clients);
    assert_eq!(commit(&mut cluster, Some(&old), 3), ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(commit(&mut cluster, Some(&clients[1]), 4), ErrorCode::NONE);
    assert_eq!(committed(&cluster), Some(4));
}

#[test]
fn commits_alone_keep_a_session_alive() {
    let (mut cluster, clients) = Cluster::stable(1);
    for offset in 0..5 {
        cluster.pass(9_000);
        assert_eq!(commit(&mut cluster, Some(&clients[0]), offset), ErrorCode::NONE);
    }
    cluster.pass(10_000);
    assert_eq!(commit(&mut cluster, Some(&clients[0]), 9), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn topics_and_metadata_are_checked_by_partition() {
    let (mut cluster, clients) = Cluster::stable(1);
    let mut long = request(Some(&clients[0]), 1);
    long.topics[0].partitions[0].committed_metadata = Some("é".repeat(4_096));
    assert_eq!(send(&mut cluster, &long), ErrorCode::NONE);
    long.topics[0].partitions[0].committed_metadata = Some("é".repeat(4_097));
    assert_eq!(send(&mut cluster, &long), ErrorCode::OFFSET_METADATA_TOO_LARGE);

    cluster.coordinator.set_topics(topics(&[("orders", 4)]));
    assert_eq!(commit(&mut cluster, Some(&clients[0]), 2), ErrorCode::NONE);
    let mut mixed = request(Some(&clients[0]), 3);
    mixed.topics[0].partitions.push(OffsetCommitPartition { partition_index: 4, ..Default::default() });
    mixed.topics[0].partitions.push(OffsetCommitPartition { partition_index: -1, ..Default::default() });
    let response: OffsetCommitResponse = cluster.ask(50, 2, &mixed);
    let codes: Vec<_> = response.topics[0].partitions.iter().map(|partition| partition.error_code).collect();
    assert_eq!(codes, [ErrorCode::NONE, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION]);
    cluster.coordinator.set_topics(topics(&[("others", 4)]));
    assert_eq!(committed(&cluster), None, "offsets of a deleted topic are forgotten");
    let stale = Client { generation: 99, ..clients[0].clone() };
    assert_eq!(commit(&mut cluster, Some(&stale), 2), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

#[test]
fn offsets_come_back_in_every_version() {
    let (mut cluster, clients) = Cluster::stable(1);
    assert_eq!(commit(&mut cluster, Some(&clients[0]), 7), ErrorCode::NONE);
    let topics =
        vec![OffsetFetchTopic { name: "orders".to_owned(), partition_indexes: vec![3, 4], ..Default::default() }];
    for version in 1..=8 {
        for (asked, all) in [(Some(topics.clone()), false), (None, true)] {
            if all && version < 2 {
                continue;
            }
            let request = OffsetFetchRequest {
                group_id: GROUP.to_owned(),
                topics: asked.clone(),
                groups: vec![OffsetFetchGroup { group_id: GROUP.to_owned(), topics: asked, ..Default::default() }],
                require_stable: true,
            };
            let mut response: OffsetFetchResponse = cluster.ask(50, version, &request);
            let found = if version < 8 {
                response.topics
            } else {
                assert_eq!(response.groups[0].group_id, GROUP);
                std::mem::take(&mut response.groups[0].topics)
            };
            assert_eq!((found.len(), found[0].partitions.len()), (1, if all { 1 } else { 2 }));
            let first = &found[0].partitions[0];
            assert_eq!(
                (first.partition_index, first.committed_offset, first.metadata.as_deref()),
                (3, 7, Some("note"))
            );
            assert_eq!(first.committed_leader_epoch, if version < 5 { -1 } else { 5 });
            if !all {
                let second = &found[0].partitions[1];
                assert_eq!((second.committed_offset, second.error_code), (-1, ErrorCode::NONE));
            }
        }
    }
}

#[test]
fn a_partition_that_a_fetch_names_again_is_refused() {
    let (mut cluster, clients) = Cluster::stable(1);
    assert_eq!(commit(&mut cluster, Some(&clients[0]), 7), ErrorCode::NONE);
    let topic =
        |partition_indexes| OffsetFetchTopic { name: "orders".to_owned(), partition_indexes, ..Default::default() };
    let asked = |topics| OffsetFetchGroup { group_id: GROUP.to_owned(), topics, ..Default::default() };
    let mut groups = vec![asked(Some(vec![topic(vec![3, 3]), topic(vec![4, 3])]))];
    groups.resize(10_000, asked(None));
    let request = OffsetFetchRequest { groups, require_stable: false, ..Default::default() };
    let response: OffsetFetchResponse = cluster.ask(50, 8, &request);
    assert_eq!(response.groups.len(), 10_000);
    let rows = response.groups.iter().flat_map(|group| &group.topics).flat_map(|topic| &topic.partitions);
    let rows: Vec<_> = rows.map(|row| (row.partition_index, row.committed_offset, row.error_code)).collect();
    let again = (3, -1, ErrorCode::INVALID_REQUEST);
    assert_eq!(rows, [(3, 7, ErrorCode::NONE), again, (4, -1, ErrorCode::NONE), again]);
    let codes: Vec<_> = response.groups.iter().map(|group| group.error_code).collect();
    assert_eq!(codes[0], ErrorCode::NONE);
    assert!(codes[1..].iter().all(|&code| code == ErrorCode::INVALID_REQUEST));
}

#[test]
fn an_unknown_group_has_no_offsets_and_that_is_no_error() {
    let mut cluster = Cluster::new();
    let topics =
        Some(vec![OffsetFetchTopic { name: "orders".to_owned(), partition_indexes: vec![0], ..Default::default() }]);
    let request = OffsetFetchRequest { group_id: "other".to_owned(), topics, ..Default::default() };
    let response: OffsetFetchResponse = cluster.ask(50, 5, &request);
    assert_eq!((response.error_code, response.topics[0].partitions[0].committed_offset), (ErrorCode::NONE, -1));
    assert!(cluster.coordinator.groups().is_empty(), "asking makes no group");
}

#[test]
fn a_refused_fetch_tells_the_code_where_its_version_has_a_place_for_it() {
    let mut cluster = Cluster::new();
    let topics =
        Some(vec![OffsetFetchTopic { name: "orders".to_owned(), partition_indexes: vec![0], ..Default::default() }]);
    let request = OffsetFetchRequest {
        group_id: GROUP.to_owned(),
        topics: topics.clone(),
        groups: vec![OffsetFetchGroup { group_id: GROUP.to_owned(), topics, ..Default::default() }],
        require_stable: true,
    };
    cluster.coordinator.inject(ApiKey::OffsetFetch, ErrorCode::NOT_COORDINATOR, 3);
    let response: OffsetFetchResponse = cluster.ask(50, 1, &request);
    assert_eq!(response.topics[0].partitions[0].error_code, ErrorCode::NOT_COORDINATOR);
    let response: OffsetFetchResponse = cluster.ask(50, 7, &request);
    assert_eq!(response.error_code, ErrorCode::NOT_COORDINATOR);
    let response: OffsetFetchResponse = cluster.ask(50, 8, &request);
    assert_eq!(response.groups[0].error_code, ErrorCode::NOT_COORDINATOR);
    cluster.coordinator.inject(ApiKey::OffsetFetch, ErrorCode::UNSTABLE_OFFSET_COMMIT, 1);
    let response: OffsetFetchResponse = cluster.ask(50, 7, &request);
    assert_eq!(response.error_code, ErrorCode::NONE);
    assert_eq!(response.topics[0].partitions[0].error_code, ErrorCode::UNSTABLE_OFFSET_COMMIT);
    cluster.coordinator.inject(ApiKey::OffsetCommit, ErrorCode::NOT_COORDINATOR, 1);
    assert_eq!(commit(&mut cluster, None, 1), ErrorCode::NOT_COORDINATOR);
    assert_eq!(committed(&cluster), None);
}
