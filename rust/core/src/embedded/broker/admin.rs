//! ApiVersions, Metadata, FindCoordinator, and the requests that create, extend, configure and delete topics.

use super::Config;
use super::catalogue::{Catalogue, OFFSETS_TOPIC, Placement, SETTINGS, TopicError, check_name};
use super::partition::LEADER_EPOCH;
use crate::protocol::cluster::*;
use crate::protocol::topics::*;
use crate::protocol::{ApiKey, ErrorCode, TopicId};
use std::collections::{BTreeMap, BTreeSet};

const TOPIC_RESOURCE: i8 = 2;
const BROKER_RESOURCE: i8 = 4;
const FROM_TOPIC: i8 = 1;
const FROM_DEFAULT: i8 = 5;
const FROM_BROKER: i8 = 4;

/// Since this version of Metadata a topic can be requested by its id.
const BY_ID_FROM: i16 = 12;

/// The APIs that are served, with their versions.
pub(super) fn versions(served: impl Iterator<Item = ApiKey>, error_code: ErrorCode) -> ApiVersionsResponse {
    let api_keys = served.map(|api| {
        let (least, max_version) = api.versions();
        // Offer Produce from version 0, as Kafka 4 does. Without it, an older librdkafka assumes that the broker does
        // not support compression. No client sends version 0.
        let min_version = if api == ApiKey::Produce { 0 } else { least };
        ApiVersion { api_key: api.code(), min_version, max_version }
    });
    // A broker with this feature serves the new protocol (KIP-848).
    let feature = FinalizedFeature { name: "group.version".to_owned(), max_version_level: 1, min_version_level: 1 };
    ApiVersionsResponse {
        error_code,
        api_keys: api_keys.collect(),
        finalized_features: vec![feature],
        ..Default::default()
    }
}

/// The brokers and the requested topics.
pub(super) fn metadata(
    catalogue: &mut Catalogue,
    config: &Config,
    version: i16,
    request: MetadataRequest,
) -> MetadataResponse {
    let all = match &request.topics {
        None => true,
        Some(topics) => version == 0 && topics.is_empty(),
    };
    let brokers = catalogue.brokers();
    let topics = if all {
        catalogue.iter().map(|(name, topic)| describe(name.clone(), topic, brokers)).collect()
    } else {
        let create = config.auto_create_topics && request.allow_auto_topic_creation;
        // Answer each name once, as Kafka does. Otherwise duplicates in a short request would cause a very long
        // response.
        let mut seen = BTreeSet::new();
        let once = |topic: &MetadataRequestTopic| seen.insert((topic.topic_id, topic.name.clone()));
        let topics = request.topics.unwrap_or_default().into_iter().filter(once);
        topics
            .map(|topic| match topic.name {
                Some(name) if topic.topic_id == [0; 16] || version < BY_ID_FROM => {
                    describe_or_create(catalogue, config, create, name)
                }
                name => describe_by_id(catalogue, topic.topic_id, name, version),
            })
            .collect()
    };
    let brokers = (0..brokers).map(|index| {
        let rack = config.racks.get(index as usize).cloned();
        MetadataBroker { node_id: index as i32 + 1, host: config.host.clone(), port: config.port, rack }
    });
    MetadataResponse {
        brokers: brokers.collect(),
        cluster_id: Some(config.cluster_id.clone()),
        controller_id: 1,
        topics,
        ..Default::default()
    }
}

fn describe_or_create(catalogue: &mut Catalogue, config: &Config, create: bool, name: String) -> MetadataTopic {
    if let Err(TopicError { code, .. }) = check_name(&name) {
        return MetadataTopic { error_code: code, name: Some(name), ..Default::default() };
    }
    if create && catalogue.get(&name).is_none() {
        // The only possible error is too many partitions. Then the topic stays unknown.
        let _ = catalogue.create(&name, config.default_partitions, Placement::Dealt(1), Vec::new());
    }
    match catalogue.get(&name) {
        Some(topic) => describe(name, topic, catalogue.brokers()),
        None => {
            MetadataTopic { error_code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, name: Some(name), ..Default::default() }
        }
    }
}

/// A topic that is requested by its id: KIP-848 members receive the id before the name.
fn describe_by_id(catalogue: &Catalogue, topic_id: TopicId, name: Option<String>, version: i16) -> MetadataTopic {
    let found = catalogue.name(&topic_id).filter(|_| version >= BY_ID_FROM);
    if let Some((name, topic)) = found.and_then(|name| Some((name, catalogue.get(name)?))) {
        return describe(name.to_owned(), topic, catalogue.brokers());
    }
    // Before this version, the name in an answer must not be null.
    let name = if version >= BY_ID_FROM { None } else { Some(name.unwrap_or_default()) };
    MetadataTopic { error_code: ErrorCode::UNKNOWN_TOPIC_ID, topic_id, name, ..Default::default() }
}

fn describe(name: String, topic: &super::catalogue::StoredTopic, brokers: u32) -> MetadataTopic {
    let partitions = (0..topic.partitions()).map(|partition| {
        let replicas = topic.replicas(partition, brokers);
        MetadataPartition {
            partition_index: partition as i32,
            leader_id: topic.leader(partition, brokers),
            leader_epoch: LEADER_EPOCH,
            isr_nodes: replicas.clone(),
            replica_nodes: replicas,
            ..Default::default()
        }
    });
    MetadataTopic { name: Some(name), topic_id: topic.id(), partitions: partitions.collect(), ..Default::default() }
}

/// The first broker is the coordinator of all groups. Transactions have no coordinator.
pub(super) fn coordinator(config: &Config, version: i16, request: FindCoordinatorRequest) -> FindCoordinatorResponse {
    let mut found = FoundCoordinator { node_id: 1, host: config.host.clone(), port: config.port, ..Default::default() };
    if request.key_type != 0 {
        found.error_code = ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
        found.error_message = Some("transactions are not served here".to_owned());
        (found.node_id, found.host, found.port) = (-1, String::new(), -1);
    }
    if version >= 4 {
        let with_key = |key| FoundCoordinator { key, ..found.clone() };
        let coordinators = request.coordinator_keys.into_iter().map(with_key).collect();
        return FindCoordinatorResponse { coordinators, ..Default::default() };
    }
    FindCoordinatorResponse {
        error_code: found.error_code,
        error_message: found.error_message,
        node_id: found.node_id,
        host: found.host,
        port: found.port,
        ..Default::default()
    }
}

/// Creates topics.
pub(super) fn create_topics(
    catalogue: &mut Catalogue,
    config: &Config,
    request: CreateTopicsRequest,
) -> CreateTopicsResponse {
    let validate_only = request.validate_only;
    let topics = request.topics.into_iter().map(|topic| {
        let name = topic.name.clone();
        let mut result = CreatableTopicResult { name, ..Default::default() };
        match create_topic(catalogue, config, topic, validate_only) {
            Ok((partitions, factor)) => (result.num_partitions, result.replication_factor) = (partitions, factor),
            Err(TopicError { code, message }) => (result.error_code, result.error_message) = (code, Some(message)),
        }
        result.configs = Some(Vec::new());
        result
    });
    CreateTopicsResponse { topics: topics.collect(), ..Default::default() }
}

fn create_topic(
    catalogue: &mut Catalogue,
    config: &Config,
    topic: CreatableTopic,
    validate_only: bool,
) -> Result<(i32, i16), TopicError> {
    let (partitions, placement) = if topic.assignments.is_empty() {
        let partitions = if topic.num_partitions == -1 { config.default_partitions } else { topic.num_partitions };
        let factor = if topic.replication_factor == -1 { 1 } else { topic.replication_factor };
        (partitions, Placement::Dealt(u16::try_from(factor).unwrap_or(0)))
    } else {
        let chosen: BTreeMap<i32, Vec<i32>> =
            topic.assignments.iter().map(|one| (one.partition_index, one.broker_ids.clone())).collect();
        let count = topic.assignments.len() as i32;
        if !chosen.keys().copied().eq(0..count) {
            let message =
                format!("the replicas of topic '{}' must be given for the partitions 0 to {}", topic.name, count - 1);
            return Err(TopicError::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, message));
        }
        if topic.num_partitions != -1 || topic.replication_factor != -1 {
            let message =
                format!("topic '{}' gives replicas: leave partition count and replication factor at -1", topic.name);
            return Err(TopicError::new(ErrorCode::INVALID_REQUEST, message));
        }
        (count, Placement::Chosen(chosen.into_values().collect()))
    };
    let factor = match &placement {
        Placement::Dealt(factor) => *factor as i16,
        Placement::Chosen(chosen) => chosen.first().map_or(-1, |replicas| replicas.len() as i16),
    };
    let settings: Vec<_> = topic.configs.into_iter().map(|setting| (setting.name, setting.value)).collect();
    if validate_only {
        catalogue.check_new(&topic.name, partitions, &placement, &settings)?;
    } else {
        catalogue.create(&topic.name, partitions, placement, settings)?;
    }
    Ok((partitions, factor))
}

/// Increases the partition counts of topics. The broker places the replicas of the new partitions; a request that
/// chooses them is refused.
pub(super) fn create_partitions(
    catalogue: &mut Catalogue,
    request: CreatePartitionsRequest,
) -> CreatePartitionsResponse {
    let validate_only = request.validate_only;
    let results = request.topics.into_iter().map(|topic| {
        let grown = if topic.assignments.is_some() {
            let message = format!("the replicas of the new partitions of topic '{}' are dealt: send none", topic.name);
            Err(TopicError::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, message))
        } else {
            catalogue.grow(&topic.name, topic.count, validate_only)
        };
        let (error_code, error_message) = error_of(grown);
        CreatePartitionsTopicResult { name: topic.name, error_code, error_message }
    });
    CreatePartitionsResponse { results: results.collect(), ..Default::default() }
}

/// Deletes topics.
pub(super) fn delete_topics(catalogue: &mut Catalogue, request: DeleteTopicsRequest) -> DeleteTopicsResponse {
    let responses = request.topic_names.into_iter().map(|name| {
        let (error_code, _) = error_of(catalogue.delete(&name));
        DeletableTopicResult { name, error_code }
    });
    DeleteTopicsResponse { responses: responses.collect(), ..Default::default() }
}

fn error_of(result: Result<(), TopicError>) -> (ErrorCode, Option<String>) {
    match result {
        Ok(()) => (ErrorCode::NONE, None),
        Err(TopicError { code, message }) => (code, Some(message)),
    }
}

/// The settings of topics and brokers.
pub(super) fn describe_configs(
    catalogue: &Catalogue,
    config: &Config,
    request: DescribeConfigsRequest,
) -> DescribeConfigsResponse {
    let mut seen = BTreeSet::new();
    let once = |asked: &DescribeConfigsResource| seen.insert((asked.resource_type, asked.resource_name.clone()));
    let results = request.resources.into_iter().filter(once).map(|asked| {
        let found = match asked.resource_type {
            TOPIC_RESOURCE => topic_settings(catalogue, config, &asked.resource_name),
            BROKER_RESOURCE => broker_settings(catalogue, config, &asked.resource_name),
            other => {
                let message =
                    format!("resource type {other} has no settings here: ask for a topic (2) or a broker (4)");
                Err(TopicError::new(ErrorCode::INVALID_REQUEST, message))
            }
        };
        let (configs, (error_code, error_message)) = match found {
            Ok(configs) => (configs, error_of(Ok(()))),
            Err(error) => (Vec::new(), error_of(Err(error))),
        };
        let wanted = |name: &String| asked.configuration_keys.as_ref().is_none_or(|keys| keys.contains(name));
        DescribeConfigsResult {
            configs: configs.into_iter().filter(|setting| wanted(&setting.name)).collect(),
            error_code,
            error_message,
            resource_type: asked.resource_type,
            resource_name: asked.resource_name,
        }
    });
    DescribeConfigsResponse { results: results.collect(), ..Default::default() }
}

fn topic_settings(catalogue: &Catalogue, config: &Config, name: &str) -> Result<Vec<DescribedConfig>, TopicError> {
    let topic = catalogue.get(name);
    if topic.is_none() && name != OFFSETS_TOPIC {
        return Err(TopicError::unknown(name));
    }
    let described = SETTINGS.iter().map(|&(setting, default, config_type)| {
        let (value, is_set) = match topic {
            Some(topic) => {
                topic.setting(setting).map_or((default.to_owned(), false), |(value, set)| (value.to_owned(), set))
            }
            None if setting == super::catalogue::MAX_MESSAGE_BYTES => {
                (config.groups.max_record_bytes.to_string(), true)
            }
            None => (default.to_owned(), false),
        };
        DescribedConfig {
            name: setting.to_owned(),
            value: Some(value),
            is_default: !is_set,
            config_source: if is_set { FROM_TOPIC } else { FROM_DEFAULT },
            config_type,
            ..Default::default()
        }
    });
    Ok(described.collect())
}

fn broker_settings(catalogue: &Catalogue, config: &Config, name: &str) -> Result<Vec<DescribedConfig>, TopicError> {
    if !name.parse::<u32>().is_ok_and(|id| (1..=catalogue.brokers()).contains(&id)) {
        let message = format!("there is no broker '{name}': the ids are 1 to {}", catalogue.brokers());
        return Err(TopicError::new(ErrorCode::INVALID_REQUEST, message));
    }
    let described = config.settings().into_iter().map(|(name, value)| DescribedConfig {
        name: name.to_owned(),
        value: Some(value),
        read_only: true,
        config_source: FROM_BROKER,
        ..Default::default()
    });
    Ok(described.collect())
}

/// Changes settings of topics. Changes for `__consumer_offsets` are passed to `offsets_topic`.
pub(super) fn alter_configs(
    catalogue: &mut Catalogue,
    request: IncrementalAlterConfigsRequest,
    mut offsets_topic: impl FnMut(&[(String, Option<String>)], bool) -> Result<(), TopicError>,
) -> IncrementalAlterConfigsResponse {
    let validate_only = request.validate_only;
    let responses = request.resources.into_iter().map(|resource| {
        let altered = if resource.resource_type == TOPIC_RESOURCE {
            changes(resource.configs).and_then(|changes| {
                if resource.resource_name == OFFSETS_TOPIC {
                    offsets_topic(&changes, validate_only)
                } else {
                    catalogue.configure(&resource.resource_name, &changes, validate_only)
                }
            })
        } else {
            let message = "only the settings of topics (resource type 2) can be changed";
            Err(TopicError::new(ErrorCode::INVALID_REQUEST, message))
        };
        let (error_code, error_message) = error_of(altered);
        AlterConfigsResourceResponse {
            error_code,
            error_message,
            resource_type: resource.resource_type,
            resource_name: resource.resource_name,
        }
    });
    IncrementalAlterConfigsResponse { responses: responses.collect(), ..Default::default() }
}

fn changes(configs: Vec<AlterableConfig>) -> Result<Vec<(String, Option<String>)>, TopicError> {
    let change = |config: AlterableConfig| match (config.config_operation, config.value) {
        (0, Some(value)) => Ok((config.name, Some(value))),
        (1, _) => Ok((config.name, None)),
        (operation, _) => {
            let message =
                format!("operation {operation} on '{}': use SET (0) with a value, or DELETE (1)", config.name);
            Err(TopicError::new(ErrorCode::INVALID_CONFIG, message))
        }
    };
    configs.into_iter().map(change).collect()
}
