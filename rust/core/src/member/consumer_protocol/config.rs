//! The settings of a member of the new protocol.

use crate::member::config::{ConfigError, MOST_MS, NetworkConfig, check_lengths, check_ranges};

/// The settings of a member of the new protocol, by Kafka's names; times in milliseconds. Assignor, session timeout and heartbeat
/// interval are the brokers' or the group's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerConfig {
    /// `bootstrap.servers`: host and port, at least one.
    pub bootstrap: Vec<(String, i32)>,
    /// `client.id`.
    pub client_id: Option<String>,
    /// `group.id`.
    pub group_id: String,
    /// The member's id, for the life of the process (KIP-1082). Kafka's own clients use random UUIDs in base64.
    pub member_id: String,
    /// `group.instance.id`: makes the member static (KIP-345).
    pub group_instance_id: Option<String>,
    /// `client.rack`.
    pub rack: Option<String>,
    /// `group.remote.assignor`: the broker's assignor for which the member votes; `None` for no vote.
    pub remote_assignor: Option<String>,
    /// `max.poll.interval.ms`: the longest time between two polls of the application, and how long the coordinator waits until
    /// the member has given partitions up.
    pub max_poll_interval_ms: u64,
    /// After this time without an answer the member counts its partitions as lost. Brokers allow no shorter session than 45 s
    /// unless their own bounds were changed.
    pub session_timeout_ms: u64,
    /// The longest time between two heartbeats, if the broker's interval is longer. A member learns of a rebalance only from a
    /// heartbeat, so newly assigned partitions may wait for so long. The members of one process together send as many heartbeats
    /// as one member would.
    pub longest_heartbeat_ms: u64,
    /// `socket.timeout.ms`: how long a request may take.
    pub request_timeout_ms: u64,
    /// How long a connection may take to be made, handshakes included.
    pub connect_timeout_ms: u64,
    /// `retry.backoff.ms`.
    pub backoff_ms: u64,
    /// `retry.backoff.max.ms`.
    pub max_backoff_ms: u64,
    /// The seed for the jitter of back-offs, the only randomness of a member.
    pub seed: u64,
}

impl Default for ConsumerConfig {
    fn default() -> Self {
        Self {
            bootstrap: Vec::new(),
            client_id: None,
            group_id: String::new(),
            member_id: String::new(),
            group_instance_id: None,
            rack: None,
            remote_assignor: None,
            max_poll_interval_ms: 300_000,
            session_timeout_ms: 45_000,
            longest_heartbeat_ms: 300,
            request_timeout_ms: 60_000,
            connect_timeout_ms: 30_000,
            backoff_ms: 100,
            max_backoff_ms: 1_000,
            seed: 0,
        }
    }
}

impl ConsumerConfig {
    /// Refuses the first setting with which no member can be made.
    ///
    /// # Errors
    /// An empty list or name, a time that the protocol or its rules do not allow, a name too long.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.bootstrap.is_empty() {
            return Err(ConfigError::Empty("bootstrap.servers"));
        }
        let instance = self.group_instance_id.as_deref();
        let texts = [
            ("group.id", Some(self.group_id.as_str()), i16::MAX as usize),
            ("the member id", Some(self.member_id.as_str()), i16::MAX as usize),
            // Kafka: instance ids follow the rules of topic names.
            ("group.instance.id", instance, 249),
            ("client.rack", self.rack.as_deref(), i16::MAX as usize),
            ("group.remote.assignor", self.remote_assignor.as_deref(), i16::MAX as usize),
        ];
        for (name, text, most) in texts {
            if text.is_some_and(str::is_empty) {
                return Err(ConfigError::Empty(name));
            }
            check_lengths(&[(name, text.map_or(0, str::len), most)])?;
        }
        let client_id = self.client_id.as_ref().map_or(0, String::len);
        check_lengths(&[("client.id", client_id, i16::MAX as usize)])?;
        check_ranges(&[
            ("max.poll.interval.ms", self.max_poll_interval_ms, 1, MOST_MS),
            ("the session timeout in ms", self.session_timeout_ms, 1, MOST_MS),
            ("the longest heartbeat interval in ms", self.longest_heartbeat_ms, 100, MOST_MS),
            ("socket.timeout.ms", self.request_timeout_ms, 1, MOST_MS),
            ("the connect timeout in ms", self.connect_timeout_ms, 1, MOST_MS),
            ("retry.backoff.ms", self.backoff_ms, 1, self.max_backoff_ms),
            ("retry.backoff.max.ms", self.max_backoff_ms, 1, MOST_MS),
        ])
    }

    pub(super) fn network(&self) -> NetworkConfig {
        NetworkConfig {
            bootstrap: self.bootstrap.clone(),
            client_id: self.client_id.clone(),
            group_id: self.group_id.clone(),
            request_timeout_ms: self.request_timeout_ms,
            connect_timeout_ms: self.connect_timeout_ms,
            longest_throttle_ms: self.session_timeout_ms / 2,
        }
    }
}
