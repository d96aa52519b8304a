//! Topics, settings, versions, coordinators, injected errors.

use super::*;
use crate::protocol::offsets::{OffsetCommitPartition, OffsetCommitRequest, OffsetCommitResponse, OffsetCommitTopic};
use crate::protocol::topics::*;

#[test]
fn topics_are_made_grown_configured_and_deleted() {
    let mut client = Client::new(Config { racks: vec!["a".into(), "b".into(), "c".into()], ..Config::default() }, &[]);
    let topic = |name: &str, num_partitions, replication_factor| CreatableTopic {
        name: name.to_owned(),
        num_partitions,
        replication_factor,
        ..Default::default()
    };
    let chosen = CreatableTopic {
        assignments: vec![
            CreatableReplicaAssignment { partition_index: 1, broker_ids: vec![3, 2] },
            CreatableReplicaAssignment { partition_index: 0, broker_ids: vec![2, 1] },
        ],
        ..topic("chosen", -1, -1)
    };
    let gap = CreatableTopic {
        assignments: vec![CreatableReplicaAssignment { partition_index: 1, broker_ids: vec![1] }],
        ..topic("gap", -1, -1)
    };
    let unknown = CreatableTopic {
        assignments: vec![CreatableReplicaAssignment { partition_index: 0, broker_ids: vec![4] }],
        ..topic("unknown", -1, -1)
    };
    let set = |name: &str, value: &str| CreatableTopicConfig { name: name.to_owned(), value: Some(value.to_owned()) };
    let odd = CreatableTopic { configs: vec![set("no.such", "1")], ..topic("odd", 1, 1) };
    let bad = CreatableTopic { configs: vec![set("max.message.bytes", "much")], ..topic("bad", 1, 1) };
    let topics = vec![
        topic("a", 5, 2),
        topic("a", 5, 2),
        topic("default", -1, -1),
        topic("none", 0, 1),
        topic("huge", i32::MAX, 1),
        topic("far", 1, 4),
        topic("few", 1, 0),
        topic("no/slash", 1, 1),
        topic("..", 1, 1),
        topic(OFFSETS_TOPIC, 1, 1),
        chosen,
        gap,
        unknown,
        odd,
        bad,
    ];
    let response: CreateTopicsResponse =
        client.ask(&CreateTopicsRequest { topics: topics.clone(), ..Default::default() });
    let codes: Vec<_> = response.topics.iter().map(|topic| topic.error_code).collect();
    assert_eq!(
        codes,
        [
            ErrorCode::NONE,
            ErrorCode::TOPIC_ALREADY_EXISTS,
            ErrorCode::NONE,
            ErrorCode::INVALID_PARTITIONS,
            ErrorCode::INVALID_PARTITIONS,
            ErrorCode::INVALID_REPLICATION_FACTOR,
            ErrorCode::INVALID_REPLICATION_FACTOR,
            ErrorCode::INVALID_TOPIC_EXCEPTION,
            ErrorCode::INVALID_TOPIC_EXCEPTION,
            ErrorCode::TOPIC_ALREADY_EXISTS,
            ErrorCode::NONE,
            ErrorCode::INVALID_REPLICA_ASSIGNMENT,
            ErrorCode::INVALID_REPLICA_ASSIGNMENT,
            ErrorCode::INVALID_CONFIG,
            ErrorCode::INVALID_CONFIG,
        ]
    );
    assert_eq!(client.broker.topics(), [("a".to_owned(), 5), ("chosen".to_owned(), 2), ("default".to_owned(), 1)]);
    client.broker.delete_topic("a").unwrap();
    let only_check = CreateTopicsRequest { topics: topics[..1].to_vec(), validate_only: true, ..Default::default() };
    let response: CreateTopicsResponse = client.ask(&only_check);
    assert_eq!((response.topics[0].num_partitions, response.topics[0].replication_factor), (5, 2));
    assert_eq!(client.broker.topics().len(), 2);
    client.broker.create_topic("a", 5, 2, Vec::new()).unwrap();

    let described = client.metadata(None);
    let brokers: Vec<_> = described.brokers.iter().map(|broker| (broker.node_id, broker.rack.as_deref())).collect();
    assert_eq!(brokers, [(1, Some("a")), (2, Some("b")), (3, Some("c"))]);
    let replicas = |topic: &MetadataTopic| {
        topic.partitions.iter().map(|one| (one.leader_id, one.replica_nodes.clone())).collect::<Vec<_>>()
    };
    let dealt = [(1, vec![1, 2]), (2, vec![2, 3]), (3, vec![3, 1]), (1, vec![1, 2]), (2, vec![2, 3])];
    assert_eq!(replicas(&described.topics[0]), dealt);
    assert_eq!(replicas(&described.topics[1]), [(2, vec![2, 1]), (3, vec![3, 2])]);

    let grow = |name: &str, count| CreatePartitionsTopic { name: name.to_owned(), count, assignments: None };
    let topics = vec![grow("a", 7), grow("a", 7), grow("chosen", 3), grow("b", 2), grow("a", i32::MAX)];
    let response: CreatePartitionsResponse = client.ask(&CreatePartitionsRequest { topics, ..Default::default() });
    let codes: Vec<_> = response.results.iter().map(|topic| topic.error_code).collect();
    assert_eq!(
        codes,
        [
            ErrorCode::NONE,
            ErrorCode::INVALID_PARTITIONS,
            ErrorCode::NONE,
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode::INVALID_PARTITIONS
        ]
    );
    let described = client.metadata(Some(&["chosen", "a", "b", "no/slash", "a", "chosen"]));
    let counts: Vec<_> = described.topics.iter().map(|topic| (topic.error_code.0, topic.partitions.len())).collect();
    assert_eq!(counts, [(0, 3), (0, 7), (3, 0), (17, 0)]);

    let names = vec!["a".to_owned(), "a".to_owned()];
    let response: DeleteTopicsResponse = client.ask(&DeleteTopicsRequest { topic_names: names, ..Default::default() });
    let codes: Vec<_> = response.responses.iter().map(|topic| topic.error_code.0).collect();
    assert_eq!(codes, [0, 3]);
    assert_eq!(client.broker.topics(), [("chosen".to_owned(), 3), ("default".to_owned(), 1)]);
}

#[test]
fn settings_are_described_and_altered() {
    let mut client = Client::new(Config::default(), &[("t", 1)]);
    let settings = |client: &mut Client, resource_type, name: &str| {
        let resource_name = name.to_owned();
        let resources = vec![DescribeConfigsResource { resource_type, resource_name, ..Default::default() }];
        let resources =
            resources.into_iter().map(|one| DescribeConfigsResource { configuration_keys: None, ..one }).collect();
        let response: DescribeConfigsResponse = client.ask(&DescribeConfigsRequest { resources, ..Default::default() });
        let result = response.results[0].clone();
        let values: BTreeMap<_, _> = result.configs.into_iter().map(|one| (one.name, one.value.unwrap())).collect();
        (result.error_code, values)
    };
    let alter = |client: &mut Client, name: &str, changes: &[(&str, i8, Option<&str>)], validate_only| {
        let change = |&(name, config_operation, value): &(&str, i8, Option<&str>)| AlterableConfig {
            name: name.to_owned(),
            config_operation,
            value: value.map(str::to_owned),
        };
        let configs = changes.iter().map(change).collect();
        let resources = vec![AlterConfigsResource { resource_type: 2, resource_name: name.to_owned(), configs }];
        let request = IncrementalAlterConfigsRequest { resources, validate_only };
        let response: IncrementalAlterConfigsResponse = client.ask(&request);
        response.responses[0].error_code
    };
    let largest = "max.message.bytes";
    let good = Records { padding: 500, ..Records::at(&[1]) }.bytes();
    assert_eq!(settings(&mut client, 2, "t").1[largest], "1048588");
    assert_eq!(alter(&mut client, "t", &[(largest, 0, Some("100"))], true), ErrorCode::NONE);
    assert_eq!(client.produce("t", 0, good.clone()).error_code, ErrorCode::NONE);
    assert_eq!(
        alter(&mut client, "t", &[(largest, 0, Some("100")), ("x", 0, Some("1"))], false),
        ErrorCode::INVALID_CONFIG
    );
    assert_eq!(client.produce("t", 0, good.clone()).error_code, ErrorCode::NONE);
    assert_eq!(alter(&mut client, "t", &[(largest, 0, Some("100"))], false), ErrorCode::NONE);
    assert_eq!(client.produce("t", 0, good.clone()).error_code, ErrorCode::MESSAGE_TOO_LARGE);
    assert_eq!(settings(&mut client, 2, "t").1[largest], "100");
    assert_eq!(alter(&mut client, "t", &[(largest, 1, None)], false), ErrorCode::NONE);
    assert_eq!(client.produce("t", 0, good).error_code, ErrorCode::NONE);
    assert_eq!(alter(&mut client, "t", &[(largest, 2, Some("1"))], false), ErrorCode::INVALID_CONFIG);
    assert_eq!(alter(&mut client, "nowhere", &[], false), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);

    assert_eq!(settings(&mut client, 2, OFFSETS_TOPIC).1[largest], "1048588");
    assert_eq!(alter(&mut client, OFFSETS_TOPIC, &[(largest, 0, Some("5000"))], false), ErrorCode::NONE);
    assert_eq!(settings(&mut client, 2, OFFSETS_TOPIC).1[largest], "5000");
    assert_eq!(alter(&mut client, OFFSETS_TOPIC, &[(largest, 1, None)], false), ErrorCode::NONE);
    assert_eq!(settings(&mut client, 2, OFFSETS_TOPIC).1[largest], "1048588");
    assert_eq!(alter(&mut client, OFFSETS_TOPIC, &[("retention.ms", 0, Some("1"))], false), ErrorCode::INVALID_CONFIG);

    assert_eq!(settings(&mut client, 4, "1").1["group.min.session.timeout.ms"], "1000");
    assert_eq!(settings(&mut client, 4, "2").0, ErrorCode::INVALID_REQUEST);
    assert_eq!(settings(&mut client, 2, "nowhere").0, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(settings(&mut client, 9, "x").0, ErrorCode::INVALID_REQUEST);
}

#[test]
fn topics_are_created_on_demand_only_if_both_sides_allow_it() {
    for (auto_create_topics, allow_auto_topic_creation, made) in [(false, true, 0), (true, false, 0), (true, true, 4)] {
        let config = Config { auto_create_topics, default_partitions: 4, ..Config::default() };
        let mut client = Client::new(config, &[]);
        let topics = Some(vec![MetadataRequestTopic { name: Some("new".to_owned()), ..Default::default() }]);
        let request = MetadataRequest { topics, allow_auto_topic_creation, ..Default::default() };
        let response: MetadataResponse = client.ask(&request);
        assert_eq!(response.topics[0].partitions.len(), made);
        assert_eq!(client.broker.topics().len(), made.min(1));
    }
}

#[test]
fn metadata_version_0_asks_for_all_topics_with_an_empty_list() {
    let mut client = Client::new(Config::default(), &[("t", 1)]);
    let none = MetadataRequest { topics: Some(Vec::new()), ..Default::default() };
    let response: MetadataResponse = client.ask_version(0, &none);
    assert_eq!(response.topics.len(), 1);
    let response: MetadataResponse = client.ask_version(1, &none);
    assert_eq!(response.topics.len(), 0);
}

#[test]
fn an_unknown_version_of_api_versions_is_answered_with_the_ranges() {
    let mut client = Client::new(Config::default(), &[]);
    // Version 4, with a body in an unknown layout.
    let frame = [0, 18, 0, 4, 0, 0, 0, 9, 0xff, 0xff, 0, 5, 6, 7];
    let handled = client.broker.handle(0, 1, &frame).unwrap();
    let header = RequestHeader { api: ApiKey::ApiVersions, version: 0, correlation_id: 9, client_id: None };
    let response: ApiVersionsResponse = read_response(&header, &handled.replies[0].frame).unwrap();
    assert_eq!(response.error_code, ErrorCode::UNSUPPORTED_VERSION);
    let own = response.api_keys.iter().find(|range| range.api_key == 18).unwrap();
    assert_eq!((own.min_version, own.max_version), ApiKey::ApiVersions.versions());
    let again: ApiVersionsResponse = client.ask(&ApiVersionsRequest::default());
    assert_eq!(again.api_keys, response.api_keys);
    assert!(again.api_keys.iter().all(|range| range.api_key != ApiKey::SaslHandshake.code()));
}

#[test]
fn an_injected_error_answers_an_unknown_version_of_api_versions_too() {
    let mut client = Client::new(Config::default(), &[]);
    client.broker.inject(ApiKey::ApiVersions, ErrorCode::UNKNOWN_SERVER_ERROR, 1);
    let frame = [0, 18, 0, 4, 0, 0, 0, 9, 0xff, 0xff, 0, 5, 6, 7];
    let code = |frame: &[u8]| {
        let header = RequestHeader { api: ApiKey::ApiVersions, version: 0, correlation_id: 9, client_id: None };
        read_response::<ApiVersionsResponse>(&header, frame).unwrap().error_code
    };
    let handled = client.broker.handle(0, 1, &frame).unwrap();
    assert_eq!(code(&handled.replies[0].frame), ErrorCode::UNKNOWN_SERVER_ERROR);
    // The next request is served.
    let handled = client.broker.handle(0, 1, &frame).unwrap();
    assert_eq!(code(&handled.replies[0].frame), ErrorCode::UNSUPPORTED_VERSION);
}

#[test]
fn groups_have_one_coordinator_and_transactions_none() {
    let config = Config { host: "here".to_owned(), port: 7, racks: vec!["a".into(), "b".into()], ..Config::default() };
    let mut client = Client::new(config, &[]);
    for version in 0..=4 {
        for (key_type, code) in [(0, ErrorCode::NONE), (1, ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED)] {
            let coordinator_keys = vec!["g".to_owned()];
            let request = FindCoordinatorRequest { key: "g".to_owned(), key_type, coordinator_keys };
            let response: FindCoordinatorResponse = client.ask_version(version, &request);
            let code = if version == 0 { ErrorCode::NONE } else { code };
            let found = match &response.coordinators[..] {
                [found] => (found.error_code, found.node_id, found.port),
                _ => (response.error_code, response.node_id, response.port),
            };
            let expected = if code.is_none() { (code, 1, 7) } else { (code, -1, -1) };
            assert_eq!(found, expected, "{version}");
        }
    }
}

#[test]
fn offsets_of_topics_that_are_gone_are_not_committed() {
    let mut client = Client::new(Config::default(), &[("t", 1)]);
    let commit = |client: &mut Client, name: &str| {
        let partitions = vec![OffsetCommitPartition { committed_offset: 3, ..Default::default() }];
        let topics = vec![OffsetCommitTopic { name: name.to_owned(), partitions, ..Default::default() }];
        let group_id = "g".to_owned();
        let request = OffsetCommitRequest { group_id, topics, ..Default::default() };
        let response: OffsetCommitResponse = client.ask_version(9, &request);
        response.topics[0].partitions[0].error_code
    };
    assert_eq!(commit(&mut client, "t"), ErrorCode::NONE);
    client.broker.delete_topic("t").unwrap();
    assert_eq!(commit(&mut client, "t"), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    client.broker.create_topic("t", 1, 1, Vec::new()).unwrap();
    assert_eq!(commit(&mut client, "t"), ErrorCode::NONE);
}

#[test]
fn injected_errors_are_answered_in_order_and_then_no_more() {
    let mut client = Client::new(Config::default(), &[("t", 1)]);
    assert!(client.broker.inject(ApiKey::Produce, ErrorCode::NOT_LEADER_OR_FOLLOWER, 1));
    assert!(client.broker.inject(ApiKey::Produce, ErrorCode::REQUEST_TIMED_OUT, 2));
    assert!(client.broker.inject(ApiKey::Heartbeat, ErrorCode::NOT_COORDINATOR, 1));
    assert!(!client.broker.inject(ApiKey::SaslHandshake, ErrorCode::NOT_COORDINATOR, 1));
    let codes: Vec<_> = (0..4).map(|_| client.produce("t", 0, Records::at(&[1]).bytes()).error_code.0).collect();
    assert_eq!(codes, [6, 7, 7, 0]);
    assert_eq!(client.broker.offsets("t").unwrap(), [(0, 1)]);
}
