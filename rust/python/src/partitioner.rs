//! Partitioners of Python producers: what the client's objects say, for the core's choosers.

mod cluster;
mod key;
mod load;

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};

use fastrand::Rng;
use kafka_assignors_core::partitioner::Chooser;
use kafka_assignors_core::partitioner::adaptive::{Adaptive, record_size};
use kafka_assignors_core::partitioner::round_robin::{Repeats, Turn};
use kafka_assignors_core::partitioner::sticky::Sticky;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use cluster::{Known, KnownTopics, refused};
use key::{Key, length, previous};
use load::read_load;

use crate::errors::PartitionerError;

pub(crate) use key::murmur2;

/// The choosers of all topics and their randomness.
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

    /// The partition of a record without a key.
    fn unkeyed(&self, topic: &Known<'_, S>, size: u64) -> PyResult<u32> {
        if let Some(partition) = topic.state().peek(size) {
            return Ok(partition);
        }
        let partitions = topic.read_leaders()?;
        let mut random = self.random();
        Ok(topic.state().partition(size, &partitions, &mut |bound| random.u64(..bound)))
    }

    fn on_new_batch(
        &self,
        topic: &Bound<'_, PyAny>,
        cluster: &Bound<'_, PyAny>,
        prev_partition: &Bound<'_, PyAny>,
        new: impl FnOnce() -> S,
    ) -> PyResult<()> {
        let previous = previous(prev_partition)?;
        let topic = self.topics.know(topic, cluster, new)?;
        if !topic.state().settle(previous) {
            let partitions = topic.read_leaders()?;
            let mut random = self.random();
            topic.state().next(previous, &partitions, &mut |bound| random.u64(..bound));
        }
        Ok(())
    }
}

/// The partition that the record names, or that its key has: what comes before any choice.
fn given<S: Chooser>(
    topic: &Known<'_, S>,
    explicit: Option<&Bound<'_, PyAny>>,
    key: Option<&Key<'_>>,
) -> PyResult<Option<u32>> {
    if let Some(explicit) = explicit {
        let partition = topic.partitions().explicit(topic.name(), key::partition(explicit)?).map_err(refused)?;
        return Ok(Some(partition));
    }
    Ok(key.map(|key| topic.partitions().of_key(key.bytes())))
}

/// KIP-480: a key is hashed, a record without one goes to the sticky partition.
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
        let topic = self.choices.topics.know(topic, cluster, Sticky::default)?;
        match given(&topic, partition, key.as_ref())? {
            Some(partition) => Ok(partition),
            None => self.choices.unkeyed(&topic, 0),
        }
    }

    fn on_new_batch(
        &self,
        topic: &Bound<'_, PyAny>,
        cluster: &Bound<'_, PyAny>,
        prev_partition: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.choices.on_new_batch(topic, cluster, prev_partition, Sticky::default)
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
        let topic = self.choices.topics.know(topic, cluster, Sticky::default)?;
        match given(&topic, partition, None)? {
            Some(partition) => Ok(partition),
            None => self.choices.unkeyed(&topic, 0),
        }
    }

    fn on_new_batch(
        &self,
        topic: &Bound<'_, PyAny>,
        cluster: &Bound<'_, PyAny>,
        prev_partition: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.choices.on_new_batch(topic, cluster, prev_partition, Sticky::default)
    }
}

/// KIP-794: by bytes, and by the length of the queues.
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
        let topic = self.choices.topics.know(topic, cluster, || self.new_topic())?;
        let hashed = key.as_ref().filter(|_| !self.options().1);
        if let Some(partition) = given(&topic, partition, hashed)? {
            topic.state().keyed();
            return Ok(partition);
        }
        let key_size = key.as_ref().map(|key| key.bytes().len());
        let value_size = length(serialized_value, "serialized_value")?;
        self.choices.unkeyed(&topic, record_size(key_size, value_size))
    }

    fn on_new_batch(
        &self,
        topic: &Bound<'_, PyAny>,
        cluster: &Bound<'_, PyAny>,
        prev_partition: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.choices.on_new_batch(topic, cluster, prev_partition, || self.new_topic())
    }

    #[pyo3(signature = (topic, queue_lengths, unavailable))]
    fn update_load(
        &self,
        topic: &Bound<'_, PyAny>,
        queue_lengths: &Bound<'_, PyAny>,
        unavailable: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let load = read_load(queue_lengths, unavailable)?;
        self.choices.topics.unseen(topic, || self.new_topic())?.state().update_load(load);
        Ok(())
    }
}

/// Each partition with a leader in turn, whatever the key.
#[pyclass(frozen, subclass, module = "kafka_assignors._core")]
pub(crate) struct RoundRobinPartitioner {
    topics: KnownTopics<Turn>,
    repeats: Repeats<ThreadId, cluster::Topic<Turn>>,
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
        let topic = self.topics.know(topic, cluster, Turn::default)?;
        if let Some(partition) = partition {
            let partition = key::partition(partition)?;
            return topic.partitions().explicit(topic.name(), partition).map_err(refused);
        }
        let repeated = self.repeats.take(this_thread, topic.shared());
        if let Some(partition) = repeated.filter(|&partition| topic.partitions().contains(partition)) {
            return Ok(partition);
        }
        let partitions = topic.current_leaders()?;
        Ok(topic.state().next(&partitions))
    }

    fn on_new_batch(
        &self,
        topic: &Bound<'_, PyAny>,
        cluster: &Bound<'_, PyAny>,
        prev_partition: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let previous = previous(prev_partition)?;
        let topic = self.topics.know(topic, cluster, Turn::default)?;
        if let Ok(previous) = u32::try_from(previous) {
            self.repeats.note(this_thread(), topic.shared(), previous);
        }
        if topic.state().rounds(topic.partitions()) {
            topic.read_leaders()?;
        }
        Ok(())
    }
}

fn absent(topic: &str) -> PyErr {
    PartitionerError::new_err(format!(
        "topic {topic:?} is not in the cluster's metadata; create it, check its name, or let the client fetch its metadata"
    ))
}
