//! The settings of a member.

use thiserror::Error;

/// How the members of a group hand partitions on (KIP-429).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RebalanceProtocol {
    /// Everything is given up before a rebalance.
    Eager,
    /// Only partitions that go to another member are given up, in a second rebalance.
    Cooperative,
}

/// One assignor of the list that a member offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignor {
    /// Its name on the wire.
    pub name: String,
    /// Whether its plans may be applied in two rebalances. Such an assignor supports the eager protocol too, as in Kafka.
    pub cooperative: bool,
    /// Whether the generation of the claims decides which of two members owns a partition. Then a plan needs no check for
    /// partitions that are still owned. True for `cooperative-sticky`.
    pub settles_claims: bool,
    /// Whether its plans depend on racks. A leader then plans again when replicas move between racks.
    pub uses_racks: bool,
}

/// The reaction of a member whose group the broker's own assignor serves (KIP-848).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Converted {
    /// Fail.
    #[default]
    Fail,
    /// Carry on with the broker's plan.
    CarryOn,
}

/// The settings of a member, by Kafka's names; times in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// `bootstrap.servers`: host and port, at least one.
    pub bootstrap: Vec<(String, i32)>,
    /// `client.id`.
    pub client_id: Option<String>,
    /// `group.id`.
    pub group_id: String,
    /// `group.instance.id`: makes the member static (KIP-345).
    pub group_instance_id: Option<String>,
    /// In order of preference, at least one.
    pub assignors: Vec<Assignor>,
    /// `session.timeout.ms`.
    pub session_timeout_ms: u64,
    /// `heartbeat.interval.ms`: must be less than the session timeout, and should be at most a third of it.
    pub heartbeat_interval_ms: u64,
    /// The first heartbeat of a generation is sent after this time, if the heartbeat interval is longer. A cooperative group
    /// rebalances twice, and its members learn of the second rebalance from a heartbeat.
    pub early_heartbeat_ms: u64,
    /// `max.poll.interval.ms`: the longest time between two polls of the application.
    pub max_poll_interval_ms: u64,
    /// How long the group waits for this member in a rebalance. `None` stands for `max.poll.interval.ms`, as in Java, where only
    /// the thread that polls can join.
    pub rebalance_timeout_ms: Option<u64>,
    /// `socket.timeout.ms`: how long a request may take.
    pub request_timeout_ms: u64,
    /// How long a connection may take to be made, handshakes included.
    pub connect_timeout_ms: u64,
    /// `topic.metadata.refresh.interval.ms`.
    pub metadata_refresh_ms: u64,
    /// `retry.backoff.ms`.
    pub backoff_ms: u64,
    /// `retry.backoff.max.ms`.
    pub max_backoff_ms: u64,
    /// The reaction to a group that the broker's own assignor serves.
    pub converted: Converted,
    /// The seed for the jitter of back-offs, the only randomness of a member.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            bootstrap: Vec::new(),
            client_id: None,
            group_id: String::new(),
            group_instance_id: None,
            assignors: Vec::new(),
            session_timeout_ms: 45_000,
            heartbeat_interval_ms: 3_000,
            early_heartbeat_ms: 500,
            max_poll_interval_ms: 300_000,
            rebalance_timeout_ms: None,
            request_timeout_ms: 60_000,
            connect_timeout_ms: 30_000,
            metadata_refresh_ms: 300_000,
            backoff_ms: 100,
            max_backoff_ms: 1_000,
            converted: Converted::Fail,
            seed: 0,
        }
    }
}

/// The settings of either protocol that are about connections and requests.
#[derive(Debug)]
pub(super) struct NetworkConfig {
    /// At least one.
    pub(super) bootstrap: Vec<(String, i32)>,
    pub(super) client_id: Option<String>,
    pub(super) group_id: String,
    pub(super) request_timeout_ms: u64,
    pub(super) connect_timeout_ms: u64,
    /// The longest throttle time that the member obeys.
    pub(super) longest_throttle_ms: u64,
}

/// Why no member can be made with the settings.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A list or text that must not be empty.
    #[error("{0} is empty: give at least one")]
    Empty(&'static str),
    /// A number out of its range.
    #[error("{name} is {value}: give {least} to {most}")]
    Range {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: u64,
        /// The least it may be.
        least: u64,
        /// The most it may be.
        most: u64,
    },
    /// A text too long for the protocol.
    #[error("{name} has {length} bytes: give at most {most}")]
    Long {
        /// The setting.
        name: &'static str,
        /// Its length.
        length: usize,
        /// The most it may have.
        most: usize,
    },
    /// An assignor listed twice.
    #[error("assignor '{0}' is listed twice: give each one once")]
    Twice(String),
}

/// The longest throttle time that the member obeys with any session timeout. A longer one is an attack.
const LONGEST_THROTTLE_MS: u64 = 300_000;

/// The longest time in a protocol field.
pub(super) const MOST_MS: u64 = i32::MAX as u64;

/// Refuses the first of these texts (name, bytes, the most bytes) that is too long.
pub(super) fn check_lengths(texts: &[(&'static str, usize, usize)]) -> Result<(), ConfigError> {
    match texts.iter().find(|(_, length, most)| length > most) {
        Some(&(name, length, most)) => Err(ConfigError::Long { name, length, most }),
        None => Ok(()),
    }
}

/// Refuses the first of these numbers (name, value, the least, the most) that is out of its range.
pub(super) fn check_ranges(numbers: &[(&'static str, u64, u64, u64)]) -> Result<(), ConfigError> {
    match numbers.iter().find(|(_, value, least, most)| !(least..=most).contains(&value)) {
        Some(&(name, value, least, most)) => Err(ConfigError::Range { name, value, least, most }),
        None => Ok(()),
    }
}

impl Config {
    /// Refuses the first setting with which no member can be made.
    ///
    /// # Errors
    /// An empty list or name, a time that the protocol or its rules do not allow, a name too long, an assignor twice.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.bootstrap.is_empty() {
            return Err(ConfigError::Empty("bootstrap.servers"));
        }
        if self.group_id.is_empty() {
            return Err(ConfigError::Empty("group.id"));
        }
        if self.assignors.is_empty() {
            return Err(ConfigError::Empty("partition.assignment.strategy"));
        }
        for (at, assignor) in self.assignors.iter().enumerate() {
            if self.assignors[..at].iter().any(|other| other.name == assignor.name) {
                return Err(ConfigError::Twice(assignor.name.clone()));
            }
        }
        check_lengths(&[
            ("group.id", self.group_id.len(), i16::MAX as usize),
            ("client.id", self.client_id.as_ref().map_or(0, String::len), i16::MAX as usize),
            // Kafka: instance ids follow the rules of topic names.
            ("group.instance.id", self.group_instance_id.as_ref().map_or(0, String::len), 249),
        ])?;
        check_ranges(&[
            ("session.timeout.ms", self.session_timeout_ms, 1, MOST_MS),
            ("heartbeat.interval.ms", self.heartbeat_interval_ms, 1, self.session_timeout_ms.saturating_sub(1)),
            ("max.poll.interval.ms", self.max_poll_interval_ms, 1, MOST_MS),
            ("the rebalance timeout in ms", self.rebalance_timeout_ms(), 1, MOST_MS),
            ("socket.timeout.ms", self.request_timeout_ms, 1, MOST_MS),
            ("the connect timeout in ms", self.connect_timeout_ms, 1, MOST_MS),
            ("topic.metadata.refresh.interval.ms", self.metadata_refresh_ms, 1, MOST_MS),
            ("retry.backoff.ms", self.backoff_ms, 1, self.max_backoff_ms),
            ("retry.backoff.max.ms", self.max_backoff_ms, 1, MOST_MS),
        ])
    }

    /// The highest protocol that all assignors support. Every assignor supports the eager one.
    #[must_use]
    pub fn rebalance_protocol(&self) -> RebalanceProtocol {
        if self.assignors.iter().all(|assignor| assignor.cooperative) {
            RebalanceProtocol::Cooperative
        } else {
            RebalanceProtocol::Eager
        }
    }

    pub(super) fn is_static(&self) -> bool {
        self.group_instance_id.is_some()
    }

    pub(super) fn assignor(&self, name: &str) -> Option<&Assignor> {
        self.assignors.iter().find(|assignor| assignor.name == name)
    }

    pub(super) fn network(&self) -> NetworkConfig {
        NetworkConfig {
            bootstrap: self.bootstrap.clone(),
            client_id: self.client_id.clone(),
            group_id: self.group_id.clone(),
            request_timeout_ms: self.request_timeout_ms,
            connect_timeout_ms: self.connect_timeout_ms,
            longest_throttle_ms: self.longest_throttle_ms(),
        }
    }

    /// The longest throttle time that the member obeys. A heartbeat that waits longer may come after the end of the session; the
    /// quotas of a broker never ask for more than about a second.
    fn longest_throttle_ms(&self) -> u64 {
        (self.session_timeout_ms / 2).min(LONGEST_THROTTLE_MS)
    }

    /// How long the group waits for this member in a rebalance.
    pub(super) fn rebalance_timeout_ms(&self) -> u64 {
        self.rebalance_timeout_ms.unwrap_or(self.max_poll_interval_ms)
    }

    /// How long JoinGroup and SyncGroup may take. The broker parks JoinGroup until all members have joined, and SyncGroup until
    /// the leader has sent the plan, each for at most the longest rebalance timeout of the group. That of other clients is
    /// max.poll.interval.ms.
    pub(super) fn parked_timeout_ms(&self) -> u64 {
        self.request_timeout_ms.max(self.max_poll_interval_ms.max(self.rebalance_timeout_ms()) + 5_000)
    }
}
