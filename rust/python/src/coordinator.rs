//! The group coordinator of the embedded Kafka.

use kafka_assignors_core::coordinator::{Config, Coordinator as Core, Reply};
use kafka_assignors_core::protocol::{ApiKey, ErrorCode};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A response for a connection: its number, and the frame without the length in front.
type Response<'py> = (u64, Bound<'py, PyBytes>);

/// A group coordinator without I/O: request frames and milliseconds in, response frames and the next deadline out. Any
/// thread may call it; calls take turns.
#[pyclass(frozen, module = "kafka_assignors._core")]
pub(crate) struct Coordinator {
    core: Mutex<Core>,
}

impl Coordinator {
    /// The core keeps its invariants between calls, so a panic in another thread's call leaves nothing to repair.
    fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn responses(py: Python<'_>, replies: Vec<Reply>) -> Vec<Response<'_>> {
    replies.into_iter().map(|reply| (reply.connection, PyBytes::new(py, &reply.frame))).collect()
}

fn served(api_key: i16) -> PyResult<ApiKey> {
    ApiKey::from_code(api_key).filter(|api| Core::apis().contains(api)).ok_or_else(|| {
        PyValueError::new_err(format!("api_key {api_key} is not served by the coordinator: see api_versions()"))
    })
}

#[pymethods]
impl Coordinator {
    #[new]
    #[pyo3(signature = (
        *,
        initial_rebalance_delay_ms = None,
        min_session_timeout_ms = None,
        max_session_timeout_ms = None,
        max_group_size = None,
        new_member_join_timeout_ms = None,
        max_record_bytes = None,
        max_offset_metadata = None,
        client_host = None,
        seed = None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords of a Python constructor")]
    fn new(
        initial_rebalance_delay_ms: Option<u64>,
        min_session_timeout_ms: Option<i32>,
        max_session_timeout_ms: Option<i32>,
        max_group_size: Option<usize>,
        new_member_join_timeout_ms: Option<u64>,
        max_record_bytes: Option<u64>,
        max_offset_metadata: Option<usize>,
        client_host: Option<String>,
        seed: Option<u64>,
    ) -> Self {
        let kafka = Config::default();
        let config = Config {
            initial_rebalance_delay_ms: initial_rebalance_delay_ms.unwrap_or(kafka.initial_rebalance_delay_ms),
            min_session_timeout_ms: min_session_timeout_ms.unwrap_or(kafka.min_session_timeout_ms),
            max_session_timeout_ms: max_session_timeout_ms.unwrap_or(kafka.max_session_timeout_ms),
            max_group_size: max_group_size.unwrap_or(kafka.max_group_size),
            new_member_join_timeout_ms: new_member_join_timeout_ms.unwrap_or(kafka.new_member_join_timeout_ms),
            max_record_bytes: max_record_bytes.unwrap_or(kafka.max_record_bytes),
            max_offset_metadata: max_offset_metadata.unwrap_or(kafka.max_offset_metadata),
            client_host: client_host.unwrap_or(kafka.client_host),
            seed: seed.unwrap_or(kafka.seed),
        };
        Self { core: Mutex::new(Core::new(config)) }
    }

    /// The requests served: (api key, lowest version, highest version).
    #[staticmethod]
    fn api_versions() -> Vec<(i16, i16, i16)> {
        let row = |api: &ApiKey| (api.code(), api.versions().0, api.versions().1);
        Core::apis().iter().map(row).collect()
    }

    /// Takes a request frame (without its length) and gives every response now due, to whichever connection. Raises
    /// ValueError for a frame that cannot be read; a broker closes the connection then.
    #[expect(clippy::needless_pass_by_value, reason = "a Python object, kept alive while the frame is read")]
    fn handle<'py>(
        &self,
        py: Python<'py>,
        now_ms: u64,
        connection: u64,
        frame: Bound<'py, PyBytes>,
    ) -> PyResult<Vec<Response<'py>>> {
        let bytes = frame.as_bytes();
        let replies = py.detach(|| self.core().handle(now_ms, connection, bytes));
        replies.map(|replies| responses(py, replies)).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Lets time pass and gives the responses that this makes due.
    fn tick<'py>(&self, py: Python<'py>, now_ms: u64) -> Vec<Response<'py>> {
        let replies = py.detach(|| self.core().tick(now_ms));
        responses(py, replies)
    }

    /// When to call `tick` next if nothing else happens.
    fn next_deadline(&self) -> Option<u64> {
        self.core().next_deadline()
    }

    /// Tells that a connection is gone: nothing more is sent to it. Its member stays until its session ends.
    fn disconnect<'py>(&self, py: Python<'py>, now_ms: u64, connection: u64) -> Vec<Response<'py>> {
        let replies = py.detach(|| self.core().disconnect(now_ms, connection));
        responses(py, replies)
    }

    /// Whether a request of the connection is unanswered.
    fn is_waiting(&self, connection: u64) -> bool {
        self.core().is_waiting(connection)
    }

    /// Answers the next `times` requests of an API with an error code instead of serving them.
    #[pyo3(signature = (api_key, error_code, times = 1))]
    fn inject(&self, api_key: i16, error_code: i16, times: u32) -> PyResult<()> {
        self.core().inject(served(api_key)?, ErrorCode(error_code), times);
        Ok(())
    }

    /// Sets the largest record of a group, as `max.message.bytes` of `__consumer_offsets` does.
    fn set_record_limit(&self, limit: u64) {
        self.core().set_record_limit(limit);
    }

    /// Tells which topics exist, with their partition counts: commits for others are refused from then on.
    fn set_topics(&self, topics: BTreeMap<String, i32>) {
        self.core().set_topics(topics);
    }

    /// All groups as they stand, by id.
    fn groups<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let groups = self.core().groups();
        let describe = |group: kafka_assignors_core::coordinator::GroupView| {
            let members: Vec<_> = group
                .members
                .into_iter()
                .map(|member| {
                    let dict = PyDict::new(py);
                    dict.set_item("member_id", member.member_id)?;
                    dict.set_item("instance_id", member.instance_id)?;
                    dict.set_item("client_id", member.client_id)?;
                    dict.set_item("joining", member.joining)?;
                    dict.set_item("syncing", member.syncing)?;
                    dict.set_item("assignment", PyBytes::new(py, &member.assignment))?;
                    Ok(dict)
                })
                .collect::<PyResult<_>>()?;
            let dict = PyDict::new(py);
            dict.set_item("group_id", group.group_id)?;
            dict.set_item("state", group.state.name())?;
            dict.set_item("generation", group.generation)?;
            dict.set_item("protocol_type", group.protocol_type)?;
            dict.set_item("protocol", group.protocol)?;
            dict.set_item("leader", group.leader)?;
            dict.set_item("members", members)?;
            Ok(dict)
        };
        groups.into_iter().map(describe).collect()
    }

    /// What a group has committed: (topic, partition) to (offset, leader epoch, metadata).
    fn committed(&self, group_id: &str) -> BTreeMap<(String, i32), (i64, i32, String)> {
        let topics = self.core().committed(group_id).into_iter();
        topics
            .flat_map(|(topic, partitions)| {
                partitions.into_iter().map(move |(partition, committed)| {
                    let value = (committed.offset, committed.leader_epoch, committed.metadata);
                    ((topic.clone(), partition), value)
                })
            })
            .collect()
    }
}
