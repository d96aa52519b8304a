//! The embedded Kafka's broker: frames in, frames out. The sockets are Python's.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kafka_assignors_core::embedded::broker::{Broker, Config, TopicError};
use kafka_assignors_core::embedded::coordinator::{self, MigrationPolicy, Reply};
use kafka_assignors_core::planning::server_side::Assignor;
use kafka_assignors_core::protocol::{ApiKey, ErrorCode, TopicId};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::EmbeddedKafkaError;

/// Frames for connections, each with its length in front, ready to be sent.
type Frames<'py> = Vec<(u64, Bound<'py, PyBytes>)>;

/// Member id, instance id, client id, host of a parked JoinGroup, of a parked SyncGroup, assignment.
type MemberRow<'py> = (String, Option<String>, String, bool, bool, Bound<'py, PyBytes>);

/// Group id, state, generation, protocol type, protocol, leader, members.
type GroupRow<'py> = (String, String, i32, Option<String>, Option<String>, Option<String>, Vec<MemberRow<'py>>);

/// Partitions by topic.
type Partitions = BTreeMap<String, Vec<i32>>;

/// Member id, instance id, client id, epoch, partitions, partitions to give up, target, whether it speaks the classic protocol.
type ConsumerMemberRow = (String, Option<String>, String, i32, Partitions, Partitions, Partitions, bool);

/// Group id, state, epoch, epoch of the plan, assignor, members.
type ConsumerGroupRow = (String, String, i32, i32, String, Vec<ConsumerMemberRow>);

/// A Kafka cluster in memory, without sockets and clock.
#[pyclass(frozen, module = "kafka_assignors._core")]
pub(crate) struct EmbeddedBroker(Mutex<Broker>);

impl EmbeddedBroker {
    /// Ignores the poison of a panic in another thread: the next request is served with the state as it is.
    fn lock(&self) -> MutexGuard<'_, Broker> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn topic_error(error: TopicError) -> PyErr {
    EmbeddedKafkaError::new_err(error.message)
}

fn frames(py: Python<'_>, replies: Vec<Reply>) -> PyResult<Frames<'_>> {
    let with_length = |reply: Reply| {
        let length = i32::try_from(reply.frame.len())
            .map_err(|_| PyValueError::new_err(format!("a response of {} bytes is too long", reply.frame.len())))?;
        let bytes = PyBytes::new_with(py, reply.frame.len() + 4, |bytes| {
            bytes[..4].copy_from_slice(&length.to_be_bytes());
            bytes[4..].copy_from_slice(&reply.frame);
            Ok(())
        })?;
        Ok((reply.connection, bytes))
    };
    replies.into_iter().map(with_length).collect()
}

fn assignor(name: &str) -> PyResult<Assignor> {
    [Assignor::Uniform, Assignor::Range].into_iter().find(|assignor| assignor.name() == name).ok_or_else(|| {
        let message = format!("consumer_assignors has '{name}': give 'uniform', 'range'");
        EmbeddedKafkaError::new_err(message)
    })
}

fn migration_policy(name: &str) -> PyResult<MigrationPolicy> {
    MigrationPolicy::ALL.into_iter().find(|policy| policy.name() == name).ok_or_else(|| {
        let names = MigrationPolicy::ALL.map(|policy| format!("'{}'", policy.name())).join(", ");
        EmbeddedKafkaError::new_err(format!("consumer_migration_policy is '{name}': give one of {names}"))
    })
}

fn api_named(name: &str) -> PyResult<ApiKey> {
    ApiKey::ALL.iter().copied().find(|api| api.name() == name).ok_or_else(|| {
        let message = format!("'{name}' is no request that is served here: give Kafka's name, such as 'JoinGroup'");
        EmbeddedKafkaError::new_err(message)
    })
}

#[pymethods]
impl EmbeddedBroker {
    #[new]
    #[pyo3(signature = (
        *, cluster_id, racks, auto_create_topics, default_partitions, initial_rebalance_delay_ms,
        min_session_timeout_ms, max_session_timeout_ms, max_group_size, max_record_bytes, consumer_heartbeat_interval_ms,
        consumer_session_timeout_ms, consumer_assignors, consumer_migration_policy, seed,
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments, one for each setting")]
    fn new(
        cluster_id: String,
        racks: Vec<String>,
        auto_create_topics: bool,
        default_partitions: i32,
        initial_rebalance_delay_ms: u64,
        min_session_timeout_ms: i32,
        max_session_timeout_ms: i32,
        max_group_size: Option<usize>,
        max_record_bytes: u64,
        consumer_heartbeat_interval_ms: i32,
        consumer_session_timeout_ms: u64,
        consumer_assignors: Vec<String>,
        consumer_migration_policy: &str,
        seed: u64,
    ) -> PyResult<Self> {
        let defaults = coordinator::Config::default();
        let assignors: PyResult<Vec<_>> = consumer_assignors.iter().map(|name| assignor(name)).collect();
        let groups = coordinator::Config {
            initial_rebalance_delay_ms,
            min_session_timeout_ms,
            max_session_timeout_ms,
            max_group_size: max_group_size.unwrap_or(defaults.max_group_size),
            max_record_bytes,
            consumer_heartbeat_interval_ms,
            consumer_session_timeout_ms,
            consumer_assignors: assignors?,
            consumer_migration_policy: migration_policy(consumer_migration_policy)?,
            seed,
            ..defaults
        };
        let config = Config { cluster_id, racks, auto_create_topics, default_partitions, groups, ..Config::default() };
        Ok(Self(Mutex::new(Broker::new(config))))
    }

    /// The APIs that are served: Kafka's name and the API key.
    #[staticmethod]
    fn apis() -> Vec<(&'static str, i16)> {
        Broker::apis().map(|api| (api.name(), api.code())).collect()
    }

    /// Sets the address in Metadata and FindCoordinator.
    fn listen(&self, host: String, port: i32) {
        self.lock().listen(host, port);
    }

    /// Serves a request frame. Returns whether its response comes later, and the frames to send now. On `ValueError`
    /// close the connection.
    fn handle<'py>(
        &self,
        py: Python<'py>,
        now_ms: u64,
        connection: u64,
        frame: &[u8],
    ) -> PyResult<(bool, Frames<'py>)> {
        let handled = py
            .detach(|| self.lock().handle(now_ms, connection, frame))
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok((handled.parked, frames(py, handled.replies)?))
    }

    /// Advances the time. Returns the frames to send now.
    fn tick<'py>(&self, py: Python<'py>, now_ms: u64) -> PyResult<Frames<'py>> {
        let replies = py.detach(|| self.lock().tick(now_ms));
        frames(py, replies)
    }

    /// The time to call `tick` next.
    fn next_deadline(&self) -> Option<u64> {
        self.lock().next_deadline()
    }

    /// A connection was closed. Returns the frames to send to other connections now.
    fn disconnect<'py>(&self, py: Python<'py>, now_ms: u64, connection: u64) -> PyResult<Frames<'py>> {
        let replies = py.detach(|| self.lock().disconnect(now_ms, connection));
        frames(py, replies)
    }

    /// Creates a topic.
    fn create_topic(
        &self,
        name: &str,
        partitions: i32,
        replication_factor: u16,
        settings: Vec<(String, Option<String>)>,
    ) -> PyResult<()> {
        self.lock().create_topic(name, partitions, replication_factor, settings).map_err(topic_error)
    }

    /// Increases the partition count of a topic to `partitions`.
    fn grow_topic(&self, name: &str, partitions: i32) -> PyResult<()> {
        self.lock().grow_topic(name, partitions).map_err(topic_error)
    }

    /// Deletes a topic.
    fn delete_topic(&self, name: &str) -> PyResult<()> {
        self.lock().delete_topic(name).map_err(topic_error)
    }

    /// Topics and their partition counts.
    fn topics(&self) -> Vec<(String, u32)> {
        self.lock().topics()
    }

    /// First and next offset of each partition of a topic.
    fn offsets(&self, name: &str) -> PyResult<Vec<(i64, i64)>> {
        self.lock().offsets(name).map_err(topic_error)
    }

    /// The current state of the classic groups.
    fn groups<'py>(&self, py: Python<'py>) -> Vec<GroupRow<'py>> {
        let groups = self.lock().groups();
        let row = |group: coordinator::GroupView| {
            let members = group.members.into_iter().map(|member| {
                let assignment = PyBytes::new(py, &member.assignment);
                (member.member_id, member.instance_id, member.client_id, member.joining, member.syncing, assignment)
            });
            let members = members.collect();
            let state = group.state.name().to_owned();
            (group.group_id, state, group.generation, group.protocol_type, group.protocol, group.leader, members)
        };
        groups.into_iter().map(row).collect()
    }

    /// The current state of the KIP-848 groups.
    fn consumer_groups(&self) -> Vec<ConsumerGroupRow> {
        let mut broker = self.lock();
        let views = broker.coordinator().consumer_groups();
        let named = |partitions: BTreeMap<TopicId, Vec<i32>>| {
            // A topic that was deleted has no name any more.
            partitions.iter().filter_map(|(id, list)| Some((broker.topic_name(id)?.to_owned(), list.clone()))).collect()
        };
        let member = |member: coordinator::ConsumerMemberView| {
            let (assigned, pending) = (named(member.assigned), named(member.pending));
            let ids = (member.member_id, member.instance_id, member.client_id);
            (ids.0, ids.1, ids.2, member.epoch, assigned, pending, member.target, member.classic)
        };
        let row = |group: coordinator::ConsumerGroupView| {
            let members = group.members.into_iter().map(member).collect();
            let state = group.state.name().to_owned();
            (group.group_id, state, group.epoch, group.assignment_epoch, group.assignor.to_owned(), members)
        };
        views.into_iter().map(row).collect()
    }

    /// Answers the next `times` requests of this API with the error, given by Kafka's name.
    fn inject(&self, api: &str, error: &str, times: u32) -> PyResult<()> {
        let api = api_named(api)?;
        let code = ErrorCode::from_name(error).ok_or_else(|| {
            let message = format!("'{error}' is no error of Kafka's: give a name, such as 'REBALANCE_IN_PROGRESS'");
            EmbeddedKafkaError::new_err(message)
        })?;
        if self.lock().inject(api, code, times) {
            return Ok(());
        }
        Err(EmbeddedKafkaError::new_err(format!("{} is not served here, so nothing can be injected", api.name())))
    }
}
