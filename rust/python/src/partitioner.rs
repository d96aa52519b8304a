//! Partitioners for Python producers: they convert the client's objects and call the core's choosers.

mod cluster;
mod column;
mod key;
mod load;
mod registry;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};

use fastrand::Rng;
use kafka_assignors_core::partitioner::adaptive::Adaptive;
use kafka_assignors_core::partitioner::round_robin::{Repeats, Turn};
use kafka_assignors_core::partitioner::sticky::Sticky;
use kafka_assignors_core::partitioner::{Chooser, PartitionList};
use kafka_assignors_core::protocol::record_batch::record_size;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use cluster::{GivenTopic, KnownTopics, refused};
use key::{Key, length, previous};
use load::read_load;

use crate::errors::PartitionerError;

pub(crate) use column::{murmur2_column, partitions_of, partitions_of_column};
pub(crate) use key::murmur2;
pub(crate) use registry::register_cluster_type;

/// The choosers of all topics, and their random numbers.
struct Choices<S> {
    topics: KnownTopics<S>,
    random: Mutex<Rng>,
}

impl<S: Chooser> Choices<S> {
    fn new() -> Self {
        Self { topics: KnownTopics::default(), random: Mutex::new(Rng::new()) }
    }

    fn seed(&self, seed: u64) {
        *self.random() = Rng::with_seed(seed);
    }

    fn random(&self) -> MutexGuard<'_, Rng> {
        self.random.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The explicit partition of a record, or the partition of its key, or a chosen one for a record of `size` bytes.
    fn partition(
        &self,
        asked: &GivenTopic<'_>,
        explicit: Option<&Bound<'_, PyAny>>,
        key: Option<&Key<'_>>,
        size: u64,
        new: impl FnOnce() -> S,
    ) -> PyResult<u32> {
        let explicit = explicit.map(key::partition).transpose()?;
        let chosen = |state: &S, partitions: &PartitionList| match (explicit, key) {
            (Some(explicit), _) => Some(partitions.explicit(asked.name(), explicit)),
            (None, Some(key)) => {
                state.keyed();
                Some(Ok(partitions.of_key(key.bytes())))
            }
            (None, None) => state.peek(size).map(Ok),
        };
        if let Some(partition) = self.topics.unchanged(asked, |state, partitions| chosen(state, partitions)).flatten() {
            return partition.map_err(refused);
        }
        let (state, partitions) = self.topics.know(asked, new)?;
        match chosen(&state, &partitions) {
            Some(partition) => partition.map_err(refused),
            None => {
                let mut random = self.random();
                Ok(state.partition(size, &partitions, &mut |bound| random.u64(..bound)))
            }
        }
    }

    /// Has no effect for a deleted topic. An error here would be raised by the client's `send`, which already reports
    /// the record's own error.
    fn on_new_batch(&self, asked: &GivenTopic<'_>, previous: i64, new: impl FnOnce() -> S) -> PyResult<()> {
        if self.topics.unchanged(asked, |state, _| state.keeps(previous)) == Some(true) {
            return Ok(());
        }
        let Some((state, partitions)) = self.topics.know_if_there(asked, new)? else { return Ok(()) };
        if !state.keeps(previous) {
            let partitions = self.topics.read_leaders(asked, &state, &partitions)?;
            let mut random = self.random();
            state.next(previous, &partitions, &mut |bound| random.u64(..bound));
        }
        Ok(())
    }
}

/// KIP-480: the key is hashed; a record without a key goes to the sticky partition.
#[pyclass(frozen, subclass, module = "kafka_assignors._core")]
pub(crate) struct DefaultPartitioner {
    choices: Choices<Sticky>,
}

#[pymethods]
impl DefaultPartitioner {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self { choices: Choices::new() }
    }

    fn _seed(&self, seed: u64) {
        self.choices.seed(seed);
    }

    #[pyo3(signature = (topic, key, serialized_key, value, serialized_value, cluster, *, partition=None))]
    #[expect(clippy::too_many_arguments, reason = "kafka-python's six, and the partition")]
    fn partition(
        &self,
        topic: &Bound<'_, PyAny>,
        key: &Bound<'_, PyAny>,
        serialized_key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        serialized_value: &Bound<'_, PyAny>,
        cluster: &Bound<'_, PyAny>,
        partition: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u32> {
        let _ = (key, value, serialized_value);
        let key = Key::read(serialized_key)?;
        self.choices.partition(&GivenTopic::new(topic, cluster)?, partition, key.as_ref(), 0, Sticky::default)
    }

    fn on_new_batch(
        &self,
        topic: &Bound<'_, PyAny>,
        cluster: &Bound<'_, PyAny>,
        prev_partition: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.choices.on_new_batch(&GivenTopic::new(topic, cluster)?, previous(prev_partition)?, Sticky::default)
    }
}

/// KIP-480: every record goes to the sticky partition, whatever its key.
#[pyclass(frozen, subclass, module = "kafka_assignors._core")]
pub(crate) struct UniformStickyPartitioner {
    choices: Choices<Sticky>,
}

#[pymethods]
impl UniformStickyPartitioner {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self { choices: Choices::new() }
    }

    fn _seed(&self, seed: u64) {
        self.choices.seed(seed);
    }

    #[pyo3(signature = (topic, key, serialized_key, value, serialized_value, cluster, *, partition=None))]
    #[expect(clippy::too_many_arguments, reason = "kafka-python's six, and the partition")]
    fn partition(
        &self,
        topic: &Bound<'_, PyAny>,
        key: &Bound<'_, PyAny>,
        serialized_key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        serialized_value: &Bound<'_, PyAny>,
        cluster: &Bound<'_, PyAny>,
        partition: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u32> {
        let _ = (key, serialized_key, value, serialized_value);
        self.choices.partition(&GivenTopic::new(topic, cluster)?, partition, None, 0, Sticky::default)
    }

    fn on_new_batch(
        &self,
        topic: &Bound<'_, PyAny>,
        cluster: &Bound<'_, PyAny>,
        prev_partition: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.choices.on_new_batch(&GivenTopic::new(topic, cluster)?, previous(prev_partition)?, Sticky::default)
    }
}

/// KIP-794: changes the partition after a number of bytes, and prefers partitions with short queues.
#[pyclass(frozen, subclass, module = "kafka_assignors._core")]
pub(crate) struct AdaptivePartitioner {
    choices: Choices<Adaptive>,
    /// Batch size in bytes, and whether keys are ignored. Fixed by the first call of `_configure`.
    options: OnceLock<(u64, bool)>,
}

impl AdaptivePartitioner {
    fn options(&self) -> (u64, bool) {
        *self.options.get().unwrap_or(&(16_384, false))
    }

    fn new_topic(&self) -> Adaptive {
        Adaptive::new(self.options().0)
    }
}

#[pymethods]
impl AdaptivePartitioner {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self { choices: Choices::new(), options: OnceLock::new() }
    }

    fn _seed(&self, seed: u64) {
        self.choices.seed(seed);
    }

    fn _configure(&self, batch_size: u64, ignore_keys: bool) -> bool {
        self.options.set((batch_size, ignore_keys)).is_ok()
    }

    #[pyo3(signature = (topic, key, serialized_key, value, serialized_value, cluster, *, partition=None))]
    #[expect(clippy::too_many_arguments, reason = "kafka-python's six, and the partition")]
    fn partition(
        &self,
        topic: &Bound<'_, PyAny>,
        key: &Bound<'_, PyAny>,
        serialized_key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        serialized_value: &Bound<'_, PyAny>,
        cluster: &Bound<'_, PyAny>,
        partition: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u32> {
        let _ = (key, value);
        let key = Key::read(serialized_key)?;
        let asked = GivenTopic::new(topic, cluster)?;
        let (_, ignore_keys) = self.options();
        let hashed = key.as_ref().filter(|_| !ignore_keys);
        let size = match (partition, hashed) {
            (None, None) => {
                let value = length(serialized_value, "serialized_value")?;
                record_size(key.as_ref().map(|key| key.bytes().len()), value)
            }
            _ => 0,
        };
        self.choices.partition(&asked, partition, hashed, size, || self.new_topic())
    }

    fn on_new_batch(
        &self,
        topic: &Bound<'_, PyAny>,
        cluster: &Bound<'_, PyAny>,
        prev_partition: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.choices.on_new_batch(&GivenTopic::new(topic, cluster)?, previous(prev_partition)?, || self.new_topic())
    }

    #[pyo3(signature = (topic, queue_lengths, unavailable))]
    fn update_load(
        &self,
        topic: &Bound<'_, PyAny>,
        queue_lengths: &Bound<'_, PyAny>,
        unavailable: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let load = read_load(queue_lengths, unavailable)?;
        self.choices.topics.state(topic, || self.new_topic())?.update_load(load);
        Ok(())
    }
}

/// Round robin over the partitions with a leader. The key has no effect.
#[pyclass(frozen, subclass, module = "kafka_assignors._core")]
pub(crate) struct RoundRobinPartitioner {
    topics: KnownTopics<Turn>,
    repeats: Repeats<ThreadId, Turn>,
}

fn this_thread() -> ThreadId {
    thread::current().id()
}

#[pymethods]
impl RoundRobinPartitioner {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self { topics: KnownTopics::default(), repeats: Repeats::default() }
    }

    #[pyo3(signature = (topic, key, serialized_key, value, serialized_value, cluster, *, partition=None))]
    #[expect(clippy::too_many_arguments, reason = "kafka-python's six, and the partition")]
    fn partition(
        &self,
        topic: &Bound<'_, PyAny>,
        key: &Bound<'_, PyAny>,
        serialized_key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        serialized_value: &Bound<'_, PyAny>,
        cluster: &Bound<'_, PyAny>,
        partition: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u32> {
        let _ = (key, serialized_key, value, serialized_value);
        let asked = GivenTopic::new(topic, cluster)?;
        let explicit = partition.map(key::partition).transpose()?;
        let turn = |turn: &Arc<Turn>, partitions: &PartitionList| {
            if let Some(explicit) = explicit {
                return partitions.explicit(asked.name(), explicit);
            }
            let repeated = self.repeats.take(this_thread, turn).filter(|&partition| partitions.contains(partition));
            Ok(repeated.unwrap_or_else(|| turn.next(partitions)))
        };
        let partition = match self.topics.unchanged(&asked, turn) {
            Some(partition) => partition,
            None => {
                let (state, partitions) = self.topics.know(&asked, Turn::default)?;
                turn(&state, &partitions)
            }
        };
        partition.map_err(refused)
    }

    fn on_new_batch(
        &self,
        topic: &Bound<'_, PyAny>,
        cluster: &Bound<'_, PyAny>,
        prev_partition: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let previous = previous(prev_partition)?;
        let asked = GivenTopic::new(topic, cluster)?;
        let Some((turn, partitions)) = self.topics.know_if_there(&asked, Turn::default)? else { return Ok(()) };
        if let Ok(previous) = u32::try_from(previous) {
            self.repeats.note(this_thread(), &turn, previous);
        }
        if turn.rounds(&partitions) {
            self.topics.read_leaders(&asked, &turn, &partitions)?;
        }
        Ok(())
    }
}

fn absent(topic: &str) -> PyErr {
    PartitionerError::new_err(format!(
        "topic {topic:?} is not in the cluster's metadata; create it, check its name, or let the client fetch its metadata"
    ))
}

/// Accepts the arguments of `partition` and does nothing: the cost of the call alone.
#[cfg(feature = "bench")]
#[pyfunction]
#[pyo3(signature = (topic, key, serialized_key, value, serialized_value, cluster))]
pub(crate) fn partition_floor(
    topic: &Bound<'_, PyAny>,
    key: &Bound<'_, PyAny>,
    serialized_key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    serialized_value: &Bound<'_, PyAny>,
    cluster: &Bound<'_, PyAny>,
) -> u32 {
    let _ = (topic, key, serialized_key, value, serialized_value, cluster);
    0
}
