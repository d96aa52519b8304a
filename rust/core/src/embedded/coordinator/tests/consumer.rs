//! KIP-848 groups: joining, reconciling, subscriptions, offsets, and refused requests.

use super::harness::{Cluster, GROUP, topics};
use crate::embedded::coordinator::{Config, ConsumerGroupState, ConsumerGroupView, MemberState};
use crate::planning::server_side::Assignor;
use crate::protocol::ErrorCode;
use crate::protocol::consumer_group_heartbeat::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, HeartbeatTopicPartitions,
};
use crate::protocol::group_admin::*;
use crate::protocol::offsets::*;
use std::collections::BTreeMap;

/// The partitions by the number of their topic, which is its id.
pub(super) type Held = BTreeMap<u8, Vec<i32>>;

/// A member whose client follows the coordinator's assignments at once.
#[derive(Debug, Clone)]
pub(super) struct Consumer {
    pub(super) id: String,
    pub(super) instance: Option<String>,
    pub(super) epoch: i32,
    pub(super) names: Vec<&'static str>,
    pub(super) expression: Option<&'static str>,
    pub(super) vote: Option<&'static str>,
    pub(super) held: Held,
}

impl Consumer {
    pub(super) fn new(id: &str, names: &[&'static str]) -> Self {
        Self {
            id: id.to_owned(),
            instance: None,
            epoch: 0,
            names: names.to_vec(),
            expression: None,
            vote: None,
            held: Held::new(),
        }
    }

    pub(super) fn instance(self, instance: &str) -> Self {
        Self { instance: Some(instance.to_owned()), ..self }
    }

    /// A full request.
    pub(super) fn full(&self) -> ConsumerGroupHeartbeatRequest {
        ConsumerGroupHeartbeatRequest {
            rebalance_timeout_ms: 60_000,
            subscribed_topic_names: Some(self.names.iter().map(|&name| name.to_owned()).collect()),
            subscribed_topic_regex: self.expression.map(str::to_owned),
            server_assignor: self.vote.map(str::to_owned),
            topic_partitions: Some(wire(&self.held)),
            ..self.steady()
        }
    }

    /// A request without changes.
    pub(super) fn steady(&self) -> ConsumerGroupHeartbeatRequest {
        ConsumerGroupHeartbeatRequest {
            group_id: GROUP.to_owned(),
            member_id: self.id.clone(),
            member_epoch: self.epoch,
            instance_id: self.instance.clone(),
            rebalance_timeout_ms: -1,
            ..Default::default()
        }
    }

    /// Takes epoch and assignment from an answer.
    pub(super) fn take(&mut self, response: &ConsumerGroupHeartbeatResponse) {
        assert_eq!(response.error_code, ErrorCode::NONE, "{:?}", response.error_message);
        assert_eq!(response.member_id.as_ref(), Some(&self.id));
        self.epoch = response.member_epoch;
        if let Some(assignment) = &response.assignment {
            self.held =
                assignment.topic_partitions.iter().map(|topic| (topic.topic_id[0], topic.partitions.clone())).collect();
        }
    }
}

pub(super) fn wire(held: &Held) -> Vec<HeartbeatTopicPartitions> {
    held.iter()
        .map(|(&topic, partitions)| HeartbeatTopicPartitions { topic_id: [topic; 16], partitions: partitions.clone() })
        .collect()
}

impl Cluster {
    pub(super) fn beat(&mut self, request: &ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse {
        self.ask(7, 1, request)
    }

    /// Sends a full heartbeat and takes its answer. Returns whether the answer contained an assignment.
    pub(super) fn full(&mut self, consumer: &mut Consumer) -> bool {
        let response = self.beat(&consumer.full());
        consumer.take(&response);
        response.assignment.is_some()
    }

    /// The same for a heartbeat without changes.
    pub(super) fn steady(&mut self, consumer: &mut Consumer) -> bool {
        let response = self.beat(&consumer.steady());
        consumer.take(&response);
        response.assignment.is_some()
    }

    pub(super) fn refused(&mut self, request: &ConsumerGroupHeartbeatRequest) -> ErrorCode {
        let response = self.beat(request);
        assert!(response.error_message.is_some_and(|message| !message.is_empty()));
        assert_eq!((response.heartbeat_interval_ms, response.assignment), (0, None));
        response.error_code
    }

    pub(super) fn consumers(&self) -> ConsumerGroupView {
        self.coordinator.consumer_groups().into_iter().find(|group| group.group_id == GROUP).expect("the group")
    }

    /// Sends full heartbeats of the members in turn until the group is stable.
    pub(super) fn converge(&mut self, consumers: &mut [Consumer]) {
        for _ in 0..20 {
            for consumer in consumers.iter_mut() {
                self.full(consumer);
            }
            if self.consumers().state == ConsumerGroupState::Stable {
                return;
            }
        }
        panic!("the group does not converge: {:?}", self.consumers());
    }
}

pub(super) fn held(parts: &[(u8, &[i32])]) -> Held {
    parts.iter().map(|&(topic, list)| (topic, list.to_vec())).collect()
}

pub(super) fn cluster(counts: &[(&str, i32)]) -> Cluster {
    cluster_with(Config::default(), counts)
}

pub(super) fn cluster_with(config: Config, counts: &[(&str, i32)]) -> Cluster {
    let mut cluster = Cluster::with(config);
    cluster.coordinator.set_topics(topics(counts));
    cluster
}

#[test]
fn a_partition_changes_hands_only_after_its_owner_acknowledged() {
    let mut cluster = cluster(&[("orders", 4)]);
    let (mut a, mut b) = (Consumer::new("a", &["orders"]), Consumer::new("b", &["orders"]));
    assert!(cluster.full(&mut a));
    assert_eq!((a.epoch, &a.held), (2, &held(&[(1, &[0, 1, 2, 3])])));
    assert_eq!(cluster.consumers().state, ConsumerGroupState::Stable);
    assert!(!cluster.steady(&mut a));

    // The new member gets the group's epoch at once, and partitions when they are free.
    assert!(cluster.full(&mut b));
    assert_eq!((b.epoch, &b.held), (3, &Held::new()));
    assert_eq!(cluster.consumers().state, ConsumerGroupState::Reconciling);
    assert_eq!(cluster.consumers().members[1].state, MemberState::UnreleasedPartitions);
    let before = a.clone();
    assert!(cluster.steady(&mut a));
    assert_eq!((a.epoch, a.held[&1].len()), (2, 2));
    // Member a has not acknowledged the revocation yet: a request with null partitions acknowledges nothing.
    for _ in 0..3 {
        assert!(!cluster.steady(&mut a));
        assert!(!cluster.steady(&mut b));
    }
    // Member a still names one of the two revoked partitions.
    let mut one_left = a.clone();
    one_left.held.get_mut(&1).unwrap().push(*before.held[&1].iter().find(|one| !a.held[&1].contains(one)).unwrap());
    assert_eq!(cluster.beat(&one_left.full()).member_epoch, 2);
    assert!(!cluster.steady(&mut b));
    // Now member a acknowledges the revocation.
    cluster.full(&mut a);
    assert_eq!((a.epoch, a.held[&1].len()), (3, 2));
    assert!(cluster.steady(&mut b));
    let mut all = [a.held[&1].clone(), b.held[&1].clone()].concat();
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3]);
    assert_eq!(cluster.consumers().state, ConsumerGroupState::Stable);
}

/// The worked examples of the reference (section 7, examples 1 and 2), through heartbeats.
#[test]
fn targets_are_those_of_a_broker() {
    let t1 = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
    let t2 = [17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32];
    let mut cluster = Cluster::new();
    let set = |cluster: &mut Cluster, first: i32| {
        let mut known = topics(&[("t1", first), ("t2", 4)]);
        known.get_mut("t1").unwrap().id = t1;
        known.get_mut("t2").unwrap().id = t2;
        cluster.coordinator.set_topics(known);
    };
    set(&mut cluster, 3);
    let mut members: Vec<Consumer> = ["A", "B", "C"].iter().map(|id| Consumer::new(id, &["t1", "t2"])).collect();
    let target = |cluster: &Cluster, id: &str| {
        let view = cluster.consumers();
        let member = view.members.into_iter().find(|member| member.member_id == id).expect("the member");
        (member.target.get("t1").cloned().unwrap_or_default(), member.target.get("t2").cloned().unwrap_or_default())
    };
    cluster.full(&mut members[0]);
    assert_eq!(target(&cluster, "A"), (vec![0, 1, 2], vec![0, 1, 2, 3]));
    cluster.full(&mut members[1]);
    assert_eq!(target(&cluster, "A"), (vec![], vec![0, 1, 2, 3]));
    assert_eq!(target(&cluster, "B"), (vec![0, 1, 2], vec![]));
    cluster.full(&mut members[2]);
    assert_eq!(target(&cluster, "A"), (vec![], vec![0, 1, 2]));
    assert_eq!(target(&cluster, "B"), (vec![0, 1], vec![]));
    assert_eq!(target(&cluster, "C"), (vec![2], vec![3]));
    let mut a = members.remove(0);
    a.epoch = -1;
    assert_eq!(cluster.beat(&a.steady()).member_epoch, -1);
    cluster.steady(&mut members[0]);
    assert_eq!(target(&cluster, "B"), (vec![0, 1], vec![0]));
    assert_eq!(target(&cluster, "C"), (vec![2], vec![1, 2, 3]));
    set(&mut cluster, 6);
    cluster.steady(&mut members[0]);
    assert_eq!(target(&cluster, "B"), (vec![0, 1, 3, 4], vec![0]));
    assert_eq!(target(&cluster, "C"), (vec![2, 5], vec![1, 2, 3]));
}

#[test]
fn topics_that_grow_appear_and_go_raise_the_epoch_with_the_next_heartbeat() {
    let mut cluster = cluster(&[("orders", 2)]);
    let mut a = Consumer::new("a", &["orders", "payments"]);
    cluster.full(&mut a);
    assert_eq!(a.epoch, 2);
    // No member subscribes to this topic.
    cluster.coordinator.set_topics(topics(&[("orders", 2), ("others", 1)]));
    assert!(!cluster.steady(&mut a));
    assert_eq!(a.epoch, 2);
    cluster.coordinator.set_topics(topics(&[("orders", 3), ("payments", 1)]));
    assert_eq!(cluster.consumers().epoch, 2);
    assert!(cluster.steady(&mut a));
    assert_eq!((a.epoch, &a.held), (3, &held(&[(1, &[0, 1, 2]), (2, &[0])])));
    cluster.coordinator.set_topics(topics(&[("orders", 3)]));
    assert!(cluster.steady(&mut a));
    assert_eq!(a.held, held(&[(1, &[0, 1, 2])]));
    let epoch = a.epoch;
    cluster.full(&mut a);
    assert_eq!(a.epoch, epoch + 1);
    // A topic that is deleted and created again has another id.
    let mut known = topics(&[("orders", 3)]);
    known.get_mut("orders").unwrap().id = [9; 16];
    cluster.coordinator.set_topics(known);
    cluster.full(&mut a);
    cluster.full(&mut a);
    assert_eq!(a.held, held(&[(9, &[0, 1, 2])]));
}

#[test]
fn expressions_are_resolved_after_the_first_answer() {
    let mut cluster = cluster(&[("orders", 1), ("orders-eu", 2), ("payments", 1)]);
    let mut a = Consumer { expression: Some("orders.*"), ..Consumer::new("a", &[]) };
    assert!(cluster.full(&mut a));
    assert_eq!(a.held, Held::new());
    assert!(cluster.steady(&mut a));
    assert_eq!(a.held, held(&[(1, &[0]), (2, &[0, 1])]));
    // The whole name must match.
    a.expression = Some("orders");
    cluster.full(&mut a);
    cluster.converge(std::slice::from_mut(&mut a));
    assert_eq!(a.held, held(&[(1, &[0])]));
    // Names and an expression together, and a new topic.
    a.names = vec!["payments"];
    a.expression = Some("o.*");
    cluster.converge(std::slice::from_mut(&mut a));
    cluster.converge(std::slice::from_mut(&mut a));
    assert_eq!(a.held, held(&[(1, &[0]), (2, &[0, 1]), (3, &[0])]));
    cluster.coordinator.set_topics(topics(&[("orders", 1), ("orders-eu", 2), ("payments", 1), ("outlet", 1)]));
    cluster.steady(&mut a);
    cluster.steady(&mut a);
    assert_eq!(a.held, held(&[(1, &[0]), (2, &[0, 1]), (3, &[0]), (4, &[0])]));
    // Back to names alone.
    a.expression = Some("");
    cluster.converge(std::slice::from_mut(&mut a));
    assert_eq!(a.held, held(&[(3, &[0])]));
    for bad in ["or(", "[z-a]", "*", r"(\w)\1", "(?:a{900}){900}"] {
        let request = ConsumerGroupHeartbeatRequest { subscribed_topic_regex: Some(bad.to_owned()), ..a.steady() };
        assert_eq!(cluster.refused(&request), ErrorCode::INVALID_REGULAR_EXPRESSION, "{bad}");
    }
}

#[test]
fn the_majority_chooses_the_assignor() {
    let mut cluster = cluster(&[("t", 4)]);
    let vote = |id: &str, vote| Consumer { vote, ..Consumer::new(id, &["t"]) };
    let mut members = [vote("a", None), vote("b", Some("range"))];
    assert_eq!(cluster.beat(&members[0].full()).error_code, ErrorCode::NONE);
    assert_eq!(cluster.consumers().assignor, "uniform");
    cluster.converge(&mut members);
    assert_eq!(cluster.consumers().assignor, "range");
    assert_eq!((&members[0].held, &members[1].held), (&held(&[(1, &[0, 1])]), &held(&[(1, &[2, 3])])));
    assert_eq!(cluster.refused(&vote("c", Some("sticky")).full()), ErrorCode::UNSUPPORTED_ASSIGNOR);
    members[0].vote = Some("uniform");
    cluster.full(&mut members[0]);
    assert_eq!(cluster.consumers().assignor, "uniform");

    let only_range = Config { consumer_assignors: vec![Assignor::Range], ..Config::default() };
    let mut cluster = cluster_with(only_range, &[("t", 4)]);
    assert_eq!(cluster.refused(&vote("a", Some("uniform")).full()), ErrorCode::UNSUPPORTED_ASSIGNOR);
    cluster.full(&mut vote("a", None));
    assert_eq!(cluster.consumers().assignor, "range");
}

#[test]
fn plans_keep_their_distance() {
    let config = Config { consumer_assignment_interval_ms: 1_000, ..Config::default() };
    let mut cluster = cluster_with(config, &[("t", 2)]);
    let (mut a, mut b) = (Consumer::new("a", &["t"]), Consumer::new("b", &["t"]));
    cluster.full(&mut a);
    cluster.full(&mut b);
    assert_eq!((b.epoch, cluster.consumers().state), (2, ConsumerGroupState::Assigning));
    cluster.pass(999);
    cluster.steady(&mut b);
    assert_eq!(cluster.consumers().assignment_epoch, 2);
    cluster.pass(1);
    cluster.steady(&mut b);
    assert_eq!((b.epoch, cluster.consumers().assignment_epoch), (3, 3));
    // A member loses topics that it no longer subscribes to at once, although the plan has to wait.
    a.names = vec![];
    cluster.full(&mut a);
    assert_eq!((cluster.consumers().state, &a.held), (ConsumerGroupState::Assigning, &Held::new()));
}

#[test]
fn the_first_version_has_no_member_id() {
    let mut cluster = cluster(&[("t", 2)]);
    let request = Consumer::new("", &["t"]).full();
    assert_eq!(cluster.refused(&request), ErrorCode::INVALID_REQUEST);
    let response: ConsumerGroupHeartbeatResponse = cluster.ask(7, 0, &request);
    let id = response.member_id.expect("an id");
    assert_eq!((response.error_code, id.len(), response.member_epoch), (ErrorCode::NONE, 22, 2));
    assert_eq!(response.heartbeat_interval_ms, Config::default().consumer_heartbeat_interval_ms);
    let steady = Consumer { epoch: 2, ..Consumer::new(&id, &["t"]) }.steady();
    assert_eq!(cluster.ask::<_, ConsumerGroupHeartbeatResponse>(7, 0, &steady).error_code, ErrorCode::NONE);
}

#[test]
fn requests_that_make_no_sense_are_refused_and_leave_no_group() {
    let mut cluster = cluster(&[("t", 2)]);
    let good = Consumer::new("a", &["t"]).full();
    let spoilt = |change: fn(&mut ConsumerGroupHeartbeatRequest)| {
        let mut request = good.clone();
        change(&mut request);
        request
    };
    let changes: [fn(&mut ConsumerGroupHeartbeatRequest); 10] = [
        |request| request.group_id.clear(),
        |request| request.member_id.clear(),
        |request| request.instance_id = Some(String::new()),
        |request| request.rack_id = Some(String::new()),
        |request| request.rebalance_timeout_ms = -1,
        |request| request.topic_partitions = None,
        |request| request.topic_partitions = Some(wire(&held(&[(1, &[0])]))),
        |request| request.subscribed_topic_names = None,
        |request| request.member_epoch = -2,
        |request| request.member_epoch = -3,
    ];
    for change in changes {
        assert_eq!(cluster.refused(&spoilt(change)), ErrorCode::INVALID_REQUEST);
    }
    for epoch in [1, -1] {
        let request = ConsumerGroupHeartbeatRequest { member_epoch: epoch, ..good.clone() };
        assert_eq!(cluster.refused(&request), ErrorCode::GROUP_ID_NOT_FOUND);
    }
    let bad = ConsumerGroupHeartbeatRequest { subscribed_topic_regex: Some("(".to_owned()), ..good.clone() };
    assert_eq!(cluster.refused(&bad), ErrorCode::INVALID_REGULAR_EXPRESSION);
    assert!(cluster.coordinator.consumer_groups().is_empty());

    let mut cluster = cluster_with(Config { consumer_max_group_size: 1, ..Config::default() }, &[("t", 2)]);
    cluster.full(&mut Consumer::new("a", &["t"]));
    assert_eq!(cluster.refused(&Consumer::new("b", &["t"]).full()), ErrorCode::GROUP_MAX_SIZE_REACHED);
    cluster.full(&mut Consumer::new("a", &["t"]));
}

fn commit(cluster: &mut Cluster, version: i16, member: &str, epoch: i32, topic: u8, partition: i32) -> ErrorCode {
    let partitions =
        vec![OffsetCommitPartition { partition_index: partition, committed_offset: 5, ..Default::default() }];
    let name = if version < 10 { "t".to_owned() } else { String::new() };
    let topic_id = if version < 10 { [0; 16] } else { [topic; 16] };
    let response: OffsetCommitResponse = cluster.ask(
        8,
        version,
        &OffsetCommitRequest {
            group_id: GROUP.to_owned(),
            generation_id: epoch,
            member_id: member.to_owned(),
            topics: vec![OffsetCommitTopic { name, topic_id, partitions }],
            ..Default::default()
        },
    );
    response.topics[0].partitions[0].error_code
}

fn fetch(cluster: &mut Cluster, version: i16, member: Option<&str>, epoch: i32) -> OffsetFetchGroupResponse {
    let group = OffsetFetchGroup {
        group_id: GROUP.to_owned(),
        member_id: member.map(str::to_owned),
        member_epoch: epoch,
        topics: None,
    };
    let request = OffsetFetchRequest { groups: vec![group], ..Default::default() };
    cluster.ask::<_, OffsetFetchResponse>(8, version, &request).groups.remove(0)
}

#[test]
fn commits_and_fetches_have_the_member_epoch() {
    let mut cluster = cluster(&[("t", 2)]);
    assert_eq!(commit(&mut cluster, 9, "a", 2, 1, 0), ErrorCode::GROUP_ID_NOT_FOUND);
    let (mut a, mut b) = (Consumer::new("a", &["t"]), Consumer::new("b", &["t"]));
    cluster.full(&mut a);
    assert_eq!(commit(&mut cluster, 9, "a", 2, 1, 0), ErrorCode::NONE);
    assert_eq!(commit(&mut cluster, 10, "a", 2, 1, 1), ErrorCode::NONE);
    assert_eq!(commit(&mut cluster, 10, "a", 2, 7, 1), ErrorCode::UNKNOWN_TOPIC_ID);
    assert_eq!(commit(&mut cluster, 9, "a", 2, 1, 9), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(commit(&mut cluster, 8, "a", 2, 1, 0), ErrorCode::UNSUPPORTED_VERSION);
    assert_eq!(commit(&mut cluster, 9, "a", 3, 1, 0), ErrorCode::STALE_MEMBER_EPOCH);
    assert_eq!(commit(&mut cluster, 9, "z", 2, 1, 0), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(commit(&mut cluster, 9, "", -1, 1, 0), ErrorCode::UNKNOWN_MEMBER_ID);
    cluster.full(&mut b);
    cluster.full(&mut a);
    cluster.full(&mut a);
    cluster.full(&mut b);
    // The epoch has risen. With the previous epoch a member may still commit the partitions that it kept, but no others.
    let (kept, lost) = (a.held[&1][0], b.held[&1][0]);
    assert_eq!(a.epoch, 3);
    assert_eq!(commit(&mut cluster, 9, "a", 2, 1, kept), ErrorCode::NONE);
    assert_eq!(commit(&mut cluster, 9, "a", 2, 1, lost), ErrorCode::STALE_MEMBER_EPOCH);
    assert_eq!(commit(&mut cluster, 9, "a", 3, 1, lost), ErrorCode::NONE);
    assert_eq!(commit(&mut cluster, 9, "b", 2, 1, lost), ErrorCode::STALE_MEMBER_EPOCH);

    assert_eq!(fetch(&mut cluster, 9, None, -1).topics[0].partitions.len(), 2);
    assert_eq!(fetch(&mut cluster, 10, Some("a"), 3).topics[0].topic_id, [1; 16]);
    assert_eq!(fetch(&mut cluster, 9, Some("a"), 2).error_code, ErrorCode::STALE_MEMBER_EPOCH);
    assert_eq!(fetch(&mut cluster, 9, Some("z"), 2).error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    for member in [&a, &b] {
        cluster.beat(&Consumer { epoch: -1, ..member.clone() }.steady());
    }
    // The group has no members: an admin may commit, and the offsets outlive a change of the protocol.
    assert_eq!(commit(&mut cluster, 9, "", -1, 1, 0), ErrorCode::NONE);
    let asked = OffsetFetchTopic { topic_id: [7; 16], partition_indexes: vec![0], ..Default::default() };
    let group = OffsetFetchGroup {
        group_id: GROUP.to_owned(),
        topics: Some(vec![asked]),
        member_epoch: -1,
        ..Default::default()
    };
    let request = OffsetFetchRequest { groups: vec![group], ..Default::default() };
    let response: OffsetFetchResponse = cluster.ask(8, 10, &request);
    assert_eq!(response.groups[0].topics[0].partitions[0].error_code, ErrorCode::UNKNOWN_TOPIC_ID);
    let (mut classic, offsets) = (super::harness::Client::new(1), cluster.coordinator.committed(GROUP));
    let call = cluster.enter(&mut classic);
    cluster.joined(&mut classic, &call);
    assert_eq!(cluster.coordinator.committed(GROUP), offsets);
    assert_eq!(offsets["t"].len(), 2);
    assert!(cluster.coordinator.consumer_groups().is_empty());
}

#[test]
fn admins_see_the_type_and_the_members() {
    let mut cluster = cluster(&[("t", 2)]);
    let mut a = Consumer { expression: Some("t.*"), ..Consumer::new("a", &["t"]) }.instance("i");
    cluster.full(&mut a);
    let list = |cluster: &mut Cluster, types: &[&str], states: &[&str]| {
        let text = |list: &[&str]| list.iter().map(|&one| one.to_owned()).collect();
        let request = ListGroupsRequest { states_filter: text(states), types_filter: text(types) };
        cluster.ask::<_, ListGroupsResponse>(8, 5, &request).groups
    };
    let listed = list(&mut cluster, &["CONSUMER"], &[]).remove(0);
    assert_eq!((listed.group_state.as_str(), listed.group_type.as_str()), ("Assigning", "consumer"));
    assert_eq!(listed.protocol_type, "consumer");
    assert!(list(&mut cluster, &["classic"], &[]).is_empty());
    cluster.converge(std::slice::from_mut(&mut a));
    assert_eq!(list(&mut cluster, &[], &["stable"]).len(), 1);
    let request = ConsumerGroupDescribeRequest {
        group_ids: [GROUP, "none", GROUP].map(str::to_owned).to_vec(),
        ..Default::default()
    };
    let mut described: ConsumerGroupDescribeResponse = cluster.ask(8, 1, &request);
    assert_eq!(described.groups.len(), 2);
    assert_eq!(described.groups[1].error_code, ErrorCode::GROUP_ID_NOT_FOUND);
    let group = described.groups.remove(0);
    assert_eq!((group.group_state.as_str(), group.assignor_name.as_str()), ("Stable", "uniform"));
    assert_eq!(group.group_epoch, group.assignment_epoch);
    let member = &group.members[0];
    assert_eq!((member.member_id.as_str(), member.instance_id.as_deref(), member.member_type), ("a", Some("i"), 1));
    assert_eq!(member.subscribed_topic_regex.as_deref(), Some("t.*"));
    assert_eq!((&member.subscribed_topic_names, member.member_epoch), (&vec!["t".to_owned()], a.epoch));
    let all = DescribedTopicPartitions { topic_id: [1; 16], topic_name: "t".to_owned(), partitions: vec![0, 1] };
    assert_eq!(member.assignment.topic_partitions, std::slice::from_ref(&all));
    assert_eq!(member.target_assignment.topic_partitions, [all]);
    let classic: DescribeGroupsResponse =
        cluster.ask(8, 5, &DescribeGroupsRequest { groups: vec![GROUP.to_owned()], ..Default::default() });
    assert_eq!((classic.groups[0].group_state.as_str(), classic.groups[0].members.len()), ("Dead", 0));
    let delete = DeleteGroupsRequest { groups_names: vec![GROUP.to_owned()] };
    let refused: DeleteGroupsResponse = cluster.ask(8, 2, &delete);
    assert_eq!(refused.results[0].error_code, ErrorCode::NON_EMPTY_GROUP);
    cluster.beat(&Consumer { epoch: -1, ..a }.steady());
    let deleted: DeleteGroupsResponse = cluster.ask(8, 2, &delete);
    assert_eq!(deleted.results[0].error_code, ErrorCode::NONE);
    assert!(cluster.coordinator.consumer_groups().is_empty());
}
