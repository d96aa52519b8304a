//! What a client's cluster metadata says of a topic, read as seldom as that is right.
//!
//! A client's methods build a set of all partitions for every call, which costs more than everything else here together.
//! kafka-python and aiokafka keep their metadata in `_partitions`, a dictionary of dictionaries: topic to partition to
//! metadata. What was read stays good while the topic's inner dictionary is the same object of the same size: a full update
//! puts another one in its place. The strong reference that is held makes "the same object" mean what it says. Leaders move
//! inside that dictionary, and are read again whenever a choice is made. A cluster of any other shape is asked each time.

use std::sync::{Arc, PoisonError, RwLock};

use kafka_assignors_core::partitioner::topics::Topics;
use kafka_assignors_core::partitioner::{PartitionerError as Refused, Partitions, TopicState};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::absent;
use crate::errors::{PartitionerError, partitioner_type};

/// What is known of one topic.
pub(crate) struct Topic<S> {
    state: S,
    seen: RwLock<Option<Seen>>,
}

/// The partitions of a topic, and the dictionary that said so.
struct Seen {
    source: Option<Source>,
    partitions: Arc<Partitions>,
}

struct Source {
    entry: Py<PyDict>,
    size: usize,
}

impl Source {
    fn of<'py>(cluster: &Bound<'py, PyAny>, topic: &Bound<'py, PyString>) -> Option<Bound<'py, PyDict>> {
        let topics = cluster.getattr(intern!(cluster.py(), "_partitions")).ok()?;
        let entry = topics.cast_exact::<PyDict>().ok()?.get_item(topic).ok()??;
        entry.cast_into_exact().ok()
    }

    fn is(&self, entry: &Bound<'_, PyDict>) -> bool {
        self.entry.is(entry) && self.size == entry.len()
    }
}

/// A topic as a call finds it.
pub(crate) struct Known<'a, S> {
    name: &'a str,
    topic: Arc<Topic<S>>,
    partitions: Arc<Partitions>,
    py_name: &'a Bound<'a, PyString>,
    cluster: &'a Bound<'a, PyAny>,
    cached: bool,
}

/// What is known of all topics.
pub(crate) struct KnownTopics<S> {
    by_name: Topics<Topic<S>>,
}

impl<S> Default for KnownTopics<S> {
    fn default() -> Self {
        Self { by_name: Topics::default() }
    }
}

impl<S: TopicState> KnownTopics<S> {
    /// The topic, with its partitions as the cluster has them now.
    pub(crate) fn know<'a>(
        &self,
        topic: &'a Bound<'a, PyAny>,
        cluster: &'a Bound<'a, PyAny>,
        new: impl FnOnce() -> S,
    ) -> PyResult<Known<'a, S>> {
        let (py_name, name) = name_of(topic)?;
        let entry = Source::of(cluster, py_name);
        let topic = self.by_name.get(name);
        if let (Some(topic), Some(entry)) = (&topic, &entry)
            && let Some(partitions) = topic.unchanged(entry)
        {
            return Ok(Known { name, topic: topic.clone(), partitions, py_name, cluster, cached: true });
        }
        let Some(all) = read(cluster, "partitions_for_topic", py_name)? else {
            let _ = self.by_name.remove(name);
            return Err(absent(name));
        };
        let cached = entry.is_some();
        let known = topic.as_ref().and_then(|topic| topic.seen());
        let partitions = match known {
            Some(known) if !cached && known.is_all(&all) => known,
            _ => {
                let available = read(cluster, "available_partitions_for_topic", py_name)?.unwrap_or_default();
                Arc::new(Partitions::new(name, all, available).map_err(refused)?)
            }
        };
        let topic = topic.unwrap_or_else(|| self.by_name.get_or_insert(name, Topic::new(new())));
        topic.state.refresh(&partitions);
        let source = entry.map(|entry| Source { size: entry.len(), entry: entry.unbind() });
        topic.see(Seen { source, partitions: partitions.clone() });
        Ok(Known { name, topic, partitions, py_name, cluster, cached })
    }

    /// The topic, though its partitions may not be known yet.
    pub(crate) fn unseen(&self, topic: &Bound<'_, PyAny>, new: impl FnOnce() -> S) -> PyResult<Arc<Topic<S>>> {
        let (_, name) = name_of(topic)?;
        Ok(self.by_name.get(name).unwrap_or_else(|| self.by_name.get_or_insert(name, Topic::new(new()))))
    }
}

impl<S> Topic<S> {
    fn new(state: S) -> Self {
        Self { state, seen: RwLock::new(None) }
    }

    pub(crate) fn state(&self) -> &S {
        &self.state
    }

    fn seen(&self) -> Option<Arc<Partitions>> {
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner);
        seen.as_ref().map(|seen| seen.partitions.clone())
    }

    fn unchanged(&self, entry: &Bound<'_, PyDict>) -> Option<Arc<Partitions>> {
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner);
        let seen = seen.as_ref()?;
        seen.source.as_ref()?.is(entry).then(|| seen.partitions.clone())
    }

    /// What was held before is let go after the lock: the last reference to it may run anybody's code.
    fn see(&self, new: Seen) {
        let old = self.seen.write().unwrap_or_else(PoisonError::into_inner).replace(new);
        drop(old);
    }
}

impl<S> Known<'_, S> {
    pub(crate) fn name(&self) -> &str {
        self.name
    }

    pub(crate) fn state(&self) -> &S {
        &self.topic.state
    }

    pub(crate) fn shared(&self) -> &Arc<Topic<S>> {
        &self.topic
    }

    pub(crate) fn partitions(&self) -> &Partitions {
        &self.partitions
    }

    /// The partitions with the leaders of this moment.
    pub(crate) fn read_leaders(&self) -> PyResult<Arc<Partitions>> {
        let available = read(self.cluster, "available_partitions_for_topic", self.py_name)?.unwrap_or_default();
        let partitions = Arc::new(self.partitions.with_available(available));
        let mut seen = self.topic.seen.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have seen a newer topic meanwhile; that stays.
        if let Some(seen) = seen.as_mut().filter(|seen| Arc::ptr_eq(&seen.partitions, &self.partitions)) {
            seen.partitions = partitions.clone();
        }
        Ok(partitions)
    }

    /// The partitions with the leaders last read; with those of this moment if the cluster is asked each time anyway.
    pub(crate) fn current_leaders(&self) -> PyResult<Arc<Partitions>> {
        if self.cached { Ok(self.partitions.clone()) } else { self.read_leaders() }
    }
}

fn name_of<'a>(topic: &'a Bound<'a, PyAny>) -> PyResult<(&'a Bound<'a, PyString>, &'a str)> {
    let name = topic.cast::<PyString>().map_err(|_| partitioner_type("topic", topic, "a string"))?;
    let text = name.to_str().map_err(|error| {
        PartitionerError::new_err(format!("topic cannot be represented ({error}); give a topic's name"))
    })?;
    Ok((name, text))
}

/// The numbers that a method of the cluster gives for a topic; `None` if it does not know the topic.
fn read(cluster: &Bound<'_, PyAny>, method: &str, topic: &Bound<'_, PyString>) -> PyResult<Option<Vec<u32>>> {
    let wanted = "an object with partitions_for_topic(topic) and available_partitions_for_topic(topic)";
    let ask = cluster.getattr(method).map_err(|_| partitioner_type("cluster", cluster, wanted))?;
    let numbers = ask.call1((topic,))?;
    if numbers.is_none() {
        return Ok(None);
    }
    let what = || format!("what cluster.{method} gave");
    let items = numbers.try_iter().map_err(|_| partitioner_type(&what(), &numbers, "a set of partition numbers"))?;
    let number = |item: PyResult<Bound<'_, PyAny>>| {
        let item = item?;
        let number: i32 =
            item.extract().map_err(|_| partitioner_type(&format!("a partition in {}", what()), &item, "an integer"))?;
        u32::try_from(number).map_err(|_| {
            PartitionerError::new_err(format!("{} has partition {number}; partitions are numbered from 0", what()))
        })
    };
    items.map(number).collect::<PyResult<Vec<u32>>>().map(Some)
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
pub(crate) fn refused(error: Refused) -> PyErr {
    PartitionerError::new_err(error.to_string())
}
