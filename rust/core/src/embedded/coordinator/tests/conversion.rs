//! A group that changes its protocol while it has members, and members of both protocols in one group.

use super::consumer::{Consumer, cluster, cluster_with, held};
use super::harness::{Client, Cluster, GROUP};
use crate::embedded::coordinator::{ClassicGroupState, Config, ConsumerGroupState, MigrationPolicy};
use crate::protocol::ErrorCode;
use crate::protocol::assignment::{self, Assignment};
use crate::protocol::join_group::JoinGroupResponse;
use crate::protocol::offsets::{OffsetCommitPartition, OffsetCommitRequest, OffsetCommitResponse, OffsetCommitTopic};
use crate::protocol::subscription::Subscription;
use crate::protocol::sync_group::{SyncGroupRequest, SyncGroupResponse};
use crate::protocol::topic_partitions::CanonicalPartitions;
use crate::protocol::writer::Write;
use std::collections::BTreeSet;

/// A classic member that subscribes to topic `t` and follows the coordinator's assignments at once.
#[derive(Debug)]
struct Member {
    client: Client,
    cooperative: bool,
    held: Vec<i32>,
}

impl Member {
    fn new(connection: u64, cooperative: bool) -> Self {
        let mut member = Self { client: Client::new(connection), cooperative, held: Vec::new() };
        member.subscribe();
        member
    }

    fn with_instance(connection: u64, instance: &str) -> Self {
        let client = Client::static_member(connection, instance);
        let mut member = Self { client, cooperative: true, held: Vec::new() };
        member.subscribe();
        member
    }

    /// Writes the metadata for the next JoinGroup. An eager member first gives all its partitions up.
    fn subscribe(&mut self) {
        if !self.cooperative {
            self.held.clear();
        }
        let mut metadata = Vec::new();
        metadata.i16(3);
        metadata.i32(1);
        metadata.nullable_string(Some("t"), "topic").unwrap();
        metadata.nullable_bytes(None, "user_data").unwrap();
        CanonicalPartitions::new([("t", self.held.iter().copied())]).write(&mut metadata).unwrap();
        metadata.i32(self.client.generation);
        metadata.nullable_string(None, "rack").unwrap();
        assert!(Subscription::read(&metadata).unwrap().fault.is_none());
        self.client.protocols = vec![("range", metadata)];
    }

    fn take(&mut self, bytes: &[u8]) {
        let read = Assignment::read(bytes).unwrap();
        self.held = read.partitions.iter().flat_map(|(_, numbers)| numbers.iter()).collect();
    }
}

fn bytes(numbers: &[i32], generation: Option<i32>) -> Vec<u8> {
    assignment::encode(&CanonicalPartitions::new([("t", numbers.iter().copied())]), generation).unwrap()
}

impl Cluster {
    /// SyncGroup of a member that sends its protocol type and protocol.
    fn sync_alone(&mut self, member: &Member) -> SyncGroupResponse {
        let request = SyncGroupRequest {
            group_id: GROUP.to_owned(),
            generation_id: member.client.generation,
            member_id: member.client.id.clone(),
            group_instance_id: member.client.instance.clone(),
            protocol_type: Some("consumer".to_owned()),
            protocol_name: Some("range".to_owned()),
            assignments: Vec::new(),
        };
        self.ask(member.client.connection, 5, &request)
    }

    /// A classic member in a group of the new protocol joins again until a heartbeat is answered with success.
    fn follow(&mut self, member: &mut Member) {
        while !member.client.id.is_empty() || member.client.instance.is_some() {
            match self.heartbeat(&member.client) {
                ErrorCode::NONE => return,
                ErrorCode::REBALANCE_IN_PROGRESS => self.rejoin(member),
                other => panic!("{other:?}"),
            }
        }
    }

    fn rejoin(&mut self, member: &mut Member) {
        member.subscribe();
        let call = self.enter(&mut member.client);
        let response = self.joined(&mut member.client, &call);
        assert_eq!((response.leader.as_str(), response.members.len()), ("", 0));
        assert_eq!(response.protocol_name.as_deref(), Some("range"));
        let response = self.sync_alone(member);
        if response.error_code == ErrorCode::NONE {
            member.take(&response.assignment);
        }
    }

    /// A stable classic group of these members, with these partitions.
    fn classic(&mut self, members: &mut [Member], assigned: &[&[i32]], generation: Option<i32>) {
        let mut calls: Vec<_> = members.iter_mut().map(|member| self.enter(&mut member.client)).collect();
        if calls[1..].iter().any(|call| self.is_waiting(call)) {
            self.joined(&mut members[0].client, &calls[0]);
            calls[0] = self.join(&members[0].client);
        }
        for (member, call) in members.iter_mut().zip(&calls) {
            self.joined(&mut member.client, call);
        }
        let leader = self.view().leader.expect("a leader");
        let ids: Vec<String> = members.iter().map(|member| member.client.id.clone()).collect();
        let written: Vec<Vec<u8>> = assigned.iter().map(|numbers| bytes(numbers, generation)).collect();
        let plan: Vec<_> = ids.iter().map(String::as_str).zip(written.iter().map(Vec::as_slice)).collect();
        let calls: Vec<_> = members
            .iter()
            .map(|member| self.sync(&member.client, if member.client.id == leader { &plan } else { &[] }))
            .collect();
        for (member, call) in members.iter_mut().zip(&calls) {
            let (code, assignment) = self.synced(call);
            assert_eq!(code, ErrorCode::NONE);
            member.take(&assignment);
        }
    }
}

/// The number of owned partitions. Fails if a partition has two owners.
fn owners(classic: &[&Member], new: &[&Consumer]) -> usize {
    let mut all: Vec<i32> = classic.iter().flat_map(|member| member.held.iter().copied()).collect();
    all.extend(new.iter().flat_map(|consumer| consumer.held.values().flatten().copied()));
    let distinct: BTreeSet<i32> = all.iter().copied().collect();
    assert_eq!(distinct.len(), all.len(), "a partition has two owners: {all:?}");
    all.len()
}

fn commit(cluster: &mut Cluster, member: &Member, generation: i32) -> ErrorCode {
    let partition =
        OffsetCommitPartition { partition_index: member.held[0], committed_offset: 5, ..Default::default() };
    let request = OffsetCommitRequest {
        group_id: GROUP.to_owned(),
        generation_id: generation,
        member_id: member.client.id.clone(),
        topics: vec![OffsetCommitTopic { name: "t".to_owned(), partitions: vec![partition], ..Default::default() }],
        ..Default::default()
    };
    let response: OffsetCommitResponse = cluster.ask(3_000_000, 8, &request);
    response.topics[0].partitions[0].error_code
}

fn there_and_back(cooperative: bool) {
    let mut cluster = cluster(&[("t", 6)]);
    let mut members = [Member::new(1, cooperative), Member::new(2, cooperative)];
    cluster.classic(&mut members, &[&[0, 1, 2], &[3, 4, 5]], None);
    assert_eq!(commit(&mut cluster, &members[0], members[0].client.generation), ErrorCode::NONE);
    let mut new = Consumer::new("new", &["t"]);
    cluster.full(&mut new);
    assert!(cluster.coordinator.groups().is_empty());
    assert_eq!(cluster.consumers().members.iter().filter(|member| member.classic).count(), 2);
    assert_eq!(cluster.coordinator.committed(GROUP)["t"].len(), 1);
    // No member has lost a partition yet, and commits with the old generation are accepted.
    assert_eq!((new.held.len(), owners(&[&members[0], &members[1]], &[&new])), (0, 6));
    assert_eq!(commit(&mut cluster, &members[1], members[1].client.generation), ErrorCode::NONE);
    for _ in 0..4 {
        for member in &mut members {
            cluster.follow(member);
        }
        let [a, b] = &members;
        owners(&[a, b], &[&new]);
        cluster.full(&mut new);
        owners(&[a, b], &[&new]);
    }
    assert_eq!(cluster.consumers().state, ConsumerGroupState::Stable);
    assert_eq!((new.held[&1].len(), owners(&[&members[0], &members[1]], &[&new])), (2, 6));
    assert_eq!(commit(&mut cluster, &members[0], 1), ErrorCode::ILLEGAL_GENERATION);

    // The last member of the new protocol leaves: the group is classic again, with its offsets, and rebalances.
    cluster.beat(&Consumer { epoch: -1, ..new }.steady());
    assert!(cluster.coordinator.consumer_groups().is_empty());
    assert_eq!(cluster.state(), ClassicGroupState::PreparingRebalance);
    assert_eq!(cluster.coordinator.committed(GROUP)["t"].len(), 2);
    // The members keep their generation for a last commit.
    assert_eq!(cluster.heartbeat(&members[0].client), ErrorCode::REBALANCE_IN_PROGRESS);
    let generation = members[0].client.generation;
    assert_eq!(commit(&mut cluster, &members[0], generation), ErrorCode::NONE);
    for member in &mut members {
        member.subscribe();
    }
    let calls = [0, 1].map(|at| cluster.join(&members[at].client));
    for (member, call) in members.iter_mut().zip(&calls) {
        cluster.joined(&mut member.client, call);
    }
    assert_eq!(cluster.state(), ClassicGroupState::CompletingRebalance);
    assert!(cluster.view().leader.is_some());
}

#[test]
fn an_eager_group_is_converted_and_classic_again() {
    there_and_back(false);
}

#[test]
fn a_cooperative_group_is_converted_and_classic_again() {
    there_and_back(true);
}

fn refused(config: Config, user_data: Option<i32>, metadata: Option<Vec<u8>>) -> String {
    let mut cluster = cluster_with(config, &[("t", 6)]);
    let mut members = [Member::new(1, true), Member::new(2, true)];
    if let Some(metadata) = metadata {
        members[0].client.protocols[0].1 = metadata;
    }
    cluster.classic(&mut members, &[&[0, 1, 2], &[3, 4, 5]], user_data);
    let before = cluster.view();
    let answer = cluster.beat(&Consumer::new("new", &["t"]).full());
    assert_eq!(answer.error_code, ErrorCode::GROUP_ID_NOT_FOUND);
    assert_eq!(cluster.view(), before);
    assert_eq!(cluster.heartbeat(&members[0].client), ErrorCode::NONE);
    answer.error_message.expect("a reason")
}

#[test]
fn what_cannot_be_converted_stays_as_it_is() {
    let policy = |policy| Config { consumer_migration_policy: policy, ..Config::default() };
    for disabled in [MigrationPolicy::Downgrade, MigrationPolicy::Disabled] {
        assert!(refused(policy(disabled), None, None).contains("the online upgrade is disabled"));
    }
    assert!(refused(Config::default(), Some(3), None).contains("an unsupported custom assignor is in use"));
    assert!(refused(Config::default(), None, Some(vec![0, 3, 0, 0, 0, 9])).contains("malformed"));
    let small = Config { consumer_max_group_size: 1, ..Config::default() };
    assert!(refused(small, None, None).contains("exceeds the consumer group maximum size"));
}

#[test]
fn with_the_policy_upgrade_a_group_stays_one_of_the_new_protocol() {
    let config = Config { consumer_migration_policy: MigrationPolicy::Upgrade, ..Config::default() };
    let mut cluster = cluster_with(config, &[("t", 4)]);
    let mut members = [Member::new(1, true), Member::new(2, true)];
    cluster.classic(&mut members, &[&[0, 1], &[2, 3]], None);
    let mut new = Consumer::new("new", &["t"]);
    cluster.full(&mut new);
    cluster.beat(&Consumer { epoch: -1, ..new }.steady());
    for _ in 0..3 {
        for member in &mut members {
            cluster.follow(member);
        }
    }
    assert_eq!(owners(&[&members[0], &members[1]], &[]), 4);
    assert_eq!(cluster.consumers().state, ConsumerGroupState::Stable);
    // Classic members leave this group with LeaveGroup, as they leave others.
    for member in &members {
        cluster.leave(5, &[(&member.client.id, None)]);
    }
    assert_eq!(cluster.consumers().state, ConsumerGroupState::Empty);
}

#[test]
fn a_classic_member_joins_a_group_of_the_new_protocol_unless_that_is_disabled() {
    for (policy, expected) in [
        (MigrationPolicy::Downgrade, ErrorCode::MEMBER_ID_REQUIRED),
        (MigrationPolicy::Disabled, ErrorCode::INCONSISTENT_GROUP_PROTOCOL),
    ] {
        let config = Config { consumer_migration_policy: policy, ..Config::default() };
        let mut cluster = cluster_with(config, &[("t", 4)]);
        let mut new = Consumer::new("new", &["t"]);
        cluster.full(&mut new);
        let mut member = Member::new(1, true);
        let call = cluster.join(&member.client);
        let response: JoinGroupResponse = cluster.answer(&call);
        assert_eq!(response.error_code, expected);
        if expected == ErrorCode::MEMBER_ID_REQUIRED {
            cluster.rejoin(&mut member);
            for _ in 0..3 {
                cluster.full(&mut new);
                cluster.follow(&mut member);
                owners(&[&member], &[&new]);
            }
            assert_eq!((member.held.len(), new.held[&1].len()), (2, 2));
            // The new member's session ends: the group is classic again.
            for _ in 0..Config::default().consumer_session_timeout_ms / 5_000 {
                assert!(!cluster.coordinator.consumer_groups().is_empty());
                cluster.heartbeat(&member.client);
                cluster.pass(5_000);
            }
            assert_eq!(cluster.state(), ClassicGroupState::PreparingRebalance);
        }
    }
}

#[test]
fn a_static_member_takes_its_place_over_in_both_directions_and_moves_nothing() {
    let mut cluster = cluster(&[("t", 4)]);
    let mut members = [Member::with_instance(1, "i"), Member::new(2, true)];
    cluster.classic(&mut members, &[&[0, 1], &[2, 3]], None);
    let mut new = Consumer::new("new", &["t"]).instance("i");
    cluster.full(&mut new);
    assert_eq!(new.held, held(&[(1, &[0, 1])]));
    assert_eq!(cluster.heartbeat(&members[0].client), ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(cluster.consumers().state, ConsumerGroupState::Stable);
    assert_eq!(cluster.heartbeat(&members[1].client), ErrorCode::NONE);
    // The classic member takes the place back. The member that it replaces was the last one of the new protocol.
    let mut back = Member::with_instance(3, "i");
    let call = cluster.join(&back.client);
    cluster.joined(&mut back.client, &call);
    assert_eq!(cluster.state(), ClassicGroupState::PreparingRebalance);
    assert_eq!(cluster.refused(&new.steady()), ErrorCode::GROUP_ID_NOT_FOUND);
}

#[test]
fn a_classic_member_that_does_not_come_back_loses_its_place() {
    let mut cluster = cluster(&[("t", 4)]);
    let mut members = [Member::new(1, true), Member::new(2, true)];
    for member in &mut members {
        member.client.rebalance_ms = 3_000;
    }
    cluster.classic(&mut members, &[&[0, 1], &[2, 3]], None);
    let mut new = Consumer::new("new", &["t"]);
    cluster.full(&mut new);
    // The coordinator asks the first member to join again, but the member only sends heartbeats.
    for _ in 0..3 {
        assert_eq!(cluster.heartbeat(&members[0].client), ErrorCode::REBALANCE_IN_PROGRESS);
        cluster.heartbeat(&members[1].client);
        cluster.pass(1_000);
    }
    assert_eq!(cluster.heartbeat(&members[0].client), ErrorCode::UNKNOWN_MEMBER_ID);
    cluster.converge(std::slice::from_mut(&mut new));
    assert_eq!(new.held[&1].len(), 4);
}
