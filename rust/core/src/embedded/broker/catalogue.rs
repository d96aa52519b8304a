//! The topics: their partitions, settings and replicas.

use super::partition::Partition;
use crate::planning::server_side::Uuid;
use crate::protocol::{ErrorCode, TopicId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The largest number of partitions of all topics together. A partition takes memory only after its first record; the
/// limit bounds the size of a Metadata response.
pub const MAX_PARTITIONS: u64 = 2_000_000;
/// The longest name of a topic.
const MAX_NAME: usize = 249;
/// The topic of the group coordinator. It has settings, but no records that a client could read.
pub const OFFSETS_TOPIC: &str = "__consumer_offsets";
/// The settings of a topic that have an effect here, and their defaults as in Kafka.
pub(super) const MAX_MESSAGE_BYTES: &str = "max.message.bytes";
/// The number of bytes that a partition keeps, -1 for all.
pub(super) const RETENTION_BYTES: &str = "retention.bytes";

/// The treatment of old records: "delete", "compact" or both.
const CLEANUP_POLICY: &str = "cleanup.policy";

/// Every accepted setting: name, default, type (2 a string, 3 an int, 5 a long, 7 a list; as in DescribeConfigs).
/// `max.message.bytes` and `retention.bytes` have their effect. `cleanup.policy` without "delete" forbids
/// DeleteRecords. The others are stored without effect.
pub(super) const SETTINGS: &[(&str, &str, i8)] = &[
    (CLEANUP_POLICY, "delete", 7),
    ("compression.type", "producer", 2),
    ("delete.retention.ms", "86400000", 5),
    ("file.delete.delay.ms", "60000", 5),
    ("flush.messages", "9223372036854775807", 5),
    ("flush.ms", "9223372036854775807", 5),
    ("index.interval.bytes", "4096", 3),
    (MAX_MESSAGE_BYTES, "1048588", 3),
    ("message.timestamp.type", "CreateTime", 2),
    ("min.cleanable.dirty.ratio", "0.5", 6),
    ("min.insync.replicas", "1", 3),
    (RETENTION_BYTES, "-1", 5),
    ("retention.ms", "604800000", 5),
    ("segment.bytes", "1073741824", 3),
    ("segment.ms", "604800000", 5),
    ("unclean.leader.election.enable", "false", 1),
];

/// The reason why an operation on a topic failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicError {
    /// The error for the client.
    pub code: ErrorCode,
    /// The reason and the remedy, for the user.
    pub message: String,
}

impl TopicError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(crate) fn unknown(name: &str) -> Self {
        Self::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, format!("there is no topic '{name}': create it first"))
    }
}

/// The replicas of the partitions: chosen by the client, or only their number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Placement {
    /// The number of replicas; they are placed round robin on the brokers.
    Dealt(u16),
    /// These brokers, by node id, for each partition.
    Chosen(Vec<Vec<i32>>),
}

/// One topic.
#[derive(Debug)]
pub(super) struct StoredTopic {
    id: TopicId,
    partitions: u32,
    placement: Placement,
    settings: BTreeMap<String, String>,
    logs: FxHashMap<u32, Partition>,
}

impl StoredTopic {
    /// The topic's id.
    #[must_use]
    pub(super) fn id(&self) -> TopicId {
        self.id
    }

    /// The number of partitions.
    #[must_use]
    pub(super) fn partitions(&self) -> u32 {
        self.partitions
    }

    /// The node ids of a partition's replicas, the leader first. The brokers have the node ids 1..=`brokers`.
    #[must_use]
    pub(super) fn replicas(&self, partition: u32, brokers: u32) -> Vec<i32> {
        match &self.placement {
            Placement::Chosen(chosen) if (partition as usize) < chosen.len() => chosen[partition as usize].clone(),
            Placement::Chosen(chosen) => deal(partition, chosen.first().map_or(1, |first| first.len() as u32), brokers),
            Placement::Dealt(factor) => deal(partition, u32::from(*factor), brokers),
        }
    }

    /// The leader's node id. Time O(1).
    #[must_use]
    pub(super) fn leader(&self, partition: u32, brokers: u32) -> i32 {
        match &self.placement {
            Placement::Chosen(chosen) if (partition as usize) < chosen.len() => chosen[partition as usize][0],
            _ => (partition % brokers) as i32 + 1,
        }
    }

    /// The log of a partition; `None` before its first record.
    #[must_use]
    pub(super) fn log(&self, partition: u32) -> Option<&Partition> {
        self.logs.get(&partition)
    }

    /// The log of a partition, for writing.
    pub(super) fn log_mut(&mut self, partition: u32) -> &mut Partition {
        self.logs.entry(partition).or_default()
    }

    /// The value of one of [`SETTINGS`], and whether it was set.
    #[must_use]
    pub(super) fn setting(&self, name: &str) -> Option<(&str, bool)> {
        match self.settings.get(name) {
            Some(value) => Some((value, true)),
            None => default_of(name).map(|value| (value, false)),
        }
    }

    /// The largest size of a batch in bytes.
    #[must_use]
    pub(super) fn max_message_bytes(&self) -> usize {
        self.number(MAX_MESSAGE_BYTES).and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX)
    }

    /// The number of bytes that a partition keeps; `None` for all.
    #[must_use]
    pub(super) fn retention_bytes(&self) -> Option<u64> {
        self.number(RETENTION_BYTES).and_then(|bytes| u64::try_from(bytes).ok())
    }

    /// Whether clients may delete the oldest records.
    #[must_use]
    pub(super) fn deletes_records(&self) -> bool {
        self.setting(CLEANUP_POLICY).is_some_and(|(policy, _)| policy.split(',').any(|one| one.trim() == "delete"))
    }

    fn number(&self, name: &str) -> Option<i64> {
        self.setting(name).and_then(|(value, _)| value.parse().ok())
    }
}

fn deal(partition: u32, factor: u32, brokers: u32) -> Vec<i32> {
    (0..factor.min(brokers)).map(|replica| ((partition % brokers + replica) % brokers) as i32 + 1).collect()
}

fn default_of(name: &str) -> Option<&'static str> {
    SETTINGS.iter().find(|setting| setting.0 == name).map(|setting| setting.1)
}

/// All topics, by name.
#[derive(Debug)]
pub(super) struct Catalogue {
    topics: BTreeMap<String, StoredTopic>,
    names: BTreeMap<TopicId, String>,
    /// The number of topics that were deleted. It makes the id of a topic differ from those of topics that had its name before.
    deleted: usize,
    total: u64,
    brokers: u32,
}

impl Catalogue {
    /// A catalogue without topics, for brokers with the node ids 1..=`brokers`. There is at least one broker.
    #[must_use]
    pub(super) fn new(brokers: u32) -> Self {
        Self { topics: BTreeMap::new(), names: BTreeMap::new(), deleted: 0, total: 0, brokers: brokers.max(1) }
    }

    /// The number of brokers.
    #[must_use]
    pub(super) fn brokers(&self) -> u32 {
        self.brokers
    }

    /// The number of topics.
    #[must_use]
    pub(super) fn count(&self) -> usize {
        self.topics.len()
    }

    /// The topics in order of name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &StoredTopic)> {
        self.topics.iter()
    }

    /// The name of the topic with this id.
    #[must_use]
    pub(super) fn name(&self, id: &TopicId) -> Option<&str> {
        self.names.get(id).map(String::as_str)
    }

    /// The topic with this name.
    #[must_use]
    pub(super) fn get(&self, name: &str) -> Option<&StoredTopic> {
        self.topics.get(name)
    }

    /// A partition for writing, if it exists.
    pub(super) fn partition_mut(&mut self, topic: &str, partition: i32) -> Option<(&mut StoredTopic, u32)> {
        let topic = self.topics.get_mut(topic)?;
        let partition = u32::try_from(partition).ok().filter(|&partition| partition < topic.partitions)?;
        Some((topic, partition))
    }

    /// A partition for reading, if it exists.
    #[must_use]
    pub(super) fn partition(&self, topic: &str, partition: i32) -> Option<(&StoredTopic, u32)> {
        let topic = self.topics.get(topic)?;
        let partition = u32::try_from(partition).ok().filter(|&partition| partition < topic.partitions)?;
        Some((topic, partition))
    }

    /// Checks whether the topic can be created with these partitions, replicas and settings.
    pub(super) fn check_new(
        &self,
        name: &str,
        partitions: i32,
        placement: &Placement,
        settings: &[(String, Option<String>)],
    ) -> Result<(), TopicError> {
        check_name(name)?;
        if self.topics.contains_key(name) || name == OFFSETS_TOPIC {
            let message = format!("topic '{name}' exists already: choose another name");
            return Err(TopicError::new(ErrorCode::TOPIC_ALREADY_EXISTS, message));
        }
        self.check_partitions(name, 0, partitions)?;
        match placement {
            Placement::Dealt(factor) if *factor == 0 || u32::from(*factor) > self.brokers => {
                let message =
                    format!("replication factor {factor} of topic '{name}' must be from 1 to {}", self.brokers);
                return Err(TopicError::new(ErrorCode::INVALID_REPLICATION_FACTOR, message));
            }
            Placement::Dealt(_) => {}
            Placement::Chosen(chosen) => self.check_chosen(name, chosen)?,
        }
        for (setting, value) in settings {
            check_setting(setting, value.as_deref())?;
        }
        Ok(())
    }

    fn check_chosen(&self, name: &str, chosen: &[Vec<i32>]) -> Result<(), TopicError> {
        let factor = chosen.first().map_or(0, Vec::len);
        let good = |replicas: &Vec<i32>| {
            let known = replicas.iter().all(|id| u32::try_from(*id).is_ok_and(|id| (1..=self.brokers).contains(&id)));
            let mut sorted = replicas.clone();
            sorted.sort_unstable();
            sorted.dedup();
            known && factor > 0 && replicas.len() == factor && sorted.len() == factor
        };
        if chosen.iter().all(good) {
            return Ok(());
        }
        let message = format!(
            "the replicas of topic '{name}' must be different brokers with ids from 1 to {}, equally many for each partition",
            self.brokers
        );
        Err(TopicError::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, message))
    }

    fn check_partitions(&self, name: &str, now: u32, wanted: i32) -> Result<u32, TopicError> {
        let refuse = |message| Err(TopicError::new(ErrorCode::INVALID_PARTITIONS, message));
        let Some(wanted) = u32::try_from(wanted).ok().filter(|&wanted| wanted > 0) else {
            return refuse(format!("topic '{name}' cannot have {wanted} partitions: at least 1"));
        };
        if wanted <= now {
            return refuse(format!("topic '{name}' has {now} partitions and cannot get {wanted}: topics only grow"));
        }
        let total = self.total + u64::from(wanted - now);
        if total > MAX_PARTITIONS {
            return refuse(format!(
                "{wanted} partitions of topic '{name}' make {total} in all; at most {MAX_PARTITIONS} are served"
            ));
        }
        Ok(wanted)
    }

    /// Creates a topic.
    pub(super) fn create(
        &mut self,
        name: &str,
        partitions: i32,
        placement: Placement,
        settings: Vec<(String, Option<String>)>,
    ) -> Result<(), TopicError> {
        self.check_new(name, partitions, &placement, &settings)?;
        let settings = settings.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        let partitions = partitions as u32;
        self.total += u64::from(partitions);
        let id = Uuid::of_name(name, self.deleted).to_bytes();
        self.names.insert(id, name.to_owned());
        let topic = StoredTopic { id, partitions, placement, settings, logs: FxHashMap::default() };
        self.topics.insert(name.to_owned(), topic);
        Ok(())
    }

    /// Increases the partition count of a topic to `count`. With `validate_only` it only checks.
    pub(super) fn grow(&mut self, name: &str, count: i32, validate_only: bool) -> Result<(), TopicError> {
        let now = self.get(name).ok_or_else(|| TopicError::unknown(name))?.partitions;
        let count = self.check_partitions(name, now, count)?;
        if let (false, Some(topic)) = (validate_only, self.topics.get_mut(name)) {
            topic.partitions = count;
            self.total += u64::from(count - now);
        }
        Ok(())
    }

    /// Deletes a topic with all its records.
    pub(super) fn delete(&mut self, name: &str) -> Result<(), TopicError> {
        let topic = self.topics.remove(name).ok_or_else(|| TopicError::unknown(name))?;
        self.total -= u64::from(topic.partitions);
        self.names.remove(&topic.id);
        self.deleted += 1;
        Ok(())
    }

    /// Changes all given settings of a topic, or none after an error. `None` resets a setting to its default. With
    /// `validate_only` it only checks.
    pub(super) fn configure(
        &mut self,
        name: &str,
        changes: &[(String, Option<String>)],
        validate_only: bool,
    ) -> Result<(), TopicError> {
        let topic = self.topics.get_mut(name).ok_or_else(|| TopicError::unknown(name))?;
        for (setting, value) in changes {
            check_setting(setting, value.as_deref())?;
        }
        for (setting, value) in changes.iter().filter(|_| !validate_only) {
            match value {
                Some(value) => topic.settings.insert(setting.clone(), value.clone()),
                None => topic.settings.remove(setting),
            };
        }
        Ok(())
    }
}

/// Whether Kafka accepts the name of a topic.
pub(super) fn check_name(name: &str) -> Result<(), TopicError> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if !name.is_empty() && name.len() <= MAX_NAME && name != "." && name != ".." && name.bytes().all(legal) {
        return Ok(());
    }
    let message = format!(
        "the name of a topic has 1 to {MAX_NAME} ASCII letters, digits, '.', '_' and '-', and is not '.' or '..'"
    );
    Err(TopicError::new(ErrorCode::INVALID_TOPIC_EXCEPTION, message))
}

/// Whether the setting exists and accepts the value; `None` resets it to the default.
pub(super) fn check_setting(name: &str, value: Option<&str>) -> Result<(), TopicError> {
    let refuse = |message| Err(TopicError::new(ErrorCode::INVALID_CONFIG, message));
    let Some(setting) = SETTINGS.iter().find(|setting| setting.0 == name) else {
        return refuse(format!("a topic has no setting '{name}'"));
    };
    let Some(value) = value else { return Ok(()) };
    let fits = match setting.2 {
        3 => value.parse::<i32>().is_ok_and(|number| number >= 0),
        5 => value.parse::<i64>().is_ok_and(|number| number >= -1),
        6 => value.parse::<f64>().is_ok(),
        1 => matches!(value, "true" | "false"),
        _ => name != "message.timestamp.type" || value == "CreateTime",
    };
    if fits { Ok(()) } else { refuse(format!("'{value}' is no value for the setting '{name}'")) }
}
