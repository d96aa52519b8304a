//! Caches the partitions of a topic from a client's cluster metadata and reads them again only when they may have
//! changed.
//!
//! A method of the client's cluster builds a set of all partitions in every call; that would be the largest cost of a
//! record. A cluster of a registered type has a dictionary of dictionaries in the attribute that was registered:
//!
//! ```text
//! cluster.<attribute>["orders"] = {0: metadata, 1: metadata, …}
//! ```
//!
//! The cached partitions are valid while the inner dictionary is the same object with the same size, because a full
//! metadata update replaces it. The cache holds a strong reference: otherwise Python could reuse the address of a freed
//! dictionary for a new one. A leader change happens inside the dictionary; therefore the leaders are read again at new
//! batches. For a cluster of any other type, its methods are called each time.

use std::sync::Arc;

use kafka_assignors_core::partitioner::topics::ByTopic;
use kafka_assignors_core::partitioner::{PartitionList, PartitionerError as Refused, TopicState};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::{absent, registry};
use crate::errors::{PartitionerError, partitioner_type};

/// One topic: the state of the partitioner, and the partitions.
struct Topic<S> {
    state: Arc<S>,
    seen: Option<Seen>,
}

impl<S> Topic<S> {
    /// The cached partitions, if they are still valid.
    fn unchanged(&self, asked: &GivenTopic<'_>) -> Option<&Arc<PartitionList>> {
        let seen = self.seen.as_ref()?;
        seen.source.as_ref()?.is(asked.entry.as_ref()).then_some(&seen.partitions)
    }
}

/// The cached partitions of a topic, and the dictionary from which they were read.
struct Seen {
    source: Option<Source>,
    partitions: Arc<PartitionList>,
}

struct Source {
    entry: Py<PyDict>,
    size: usize,
}

/// The inner dictionary of a topic, and its size.
type Entry<'a> = (Bound<'a, PyDict>, usize);

impl Source {
    /// The entry of a topic in the registered attribute; `None` if the cluster's type has none.
    fn of<'py>(cluster: &Bound<'py, PyAny>, topic: &Bound<'py, PyString>) -> Option<Entry<'py>> {
        let topics = cluster.getattr(registry::attribute_of(cluster)?).ok()?;
        let entry = topics.cast_exact::<PyDict>().ok()?.get_item(topic).ok()??;
        let entry: Bound<'_, PyDict> = entry.cast_into_exact().ok()?;
        let size = entry.len();
        Some((entry, size))
    }

    fn is(&self, entry: Option<&Entry<'_>>) -> bool {
        entry.is_some_and(|(entry, size)| self.entry.is(entry) && self.size == *size)
    }
}

/// A topic as the client passes it.
pub(super) struct GivenTopic<'a> {
    name: &'a str,
    py_name: &'a Bound<'a, PyString>,
    cluster: &'a Bound<'a, PyAny>,
    entry: Option<Entry<'a>>,
}

impl<'a> GivenTopic<'a> {
    pub(super) fn new(topic: &'a Bound<'a, PyAny>, cluster: &'a Bound<'a, PyAny>) -> PyResult<Self> {
        let (py_name, name) = name_of(topic)?;
        Ok(Self { name, py_name, cluster, entry: Source::of(cluster, py_name) })
    }

    pub(super) fn name(&self) -> &str {
        self.name
    }

    fn all(&self) -> PyResult<Option<Vec<u32>>> {
        read(self.cluster, "partitions_for_topic", self.py_name)
    }

    fn leaders(&self) -> PyResult<Vec<u32>> {
        Ok(read(self.cluster, "available_partitions_for_topic", self.py_name)?.unwrap_or_default())
    }
}

/// All topics.
pub(super) struct KnownTopics<S> {
    by_name: ByTopic<Topic<S>>,
}

impl<S> Default for KnownTopics<S> {
    fn default() -> Self {
        Self { by_name: ByTopic::default() }
    }
}

impl<S: TopicState> KnownTopics<S> {
    /// The result of `read` on a topic with valid cached partitions; `None` if there is no such topic.
    ///
    /// `read` runs under a lock. It must not touch a Python object: that could run code that waits for the same lock.
    pub(super) fn unchanged<R>(
        &self,
        asked: &GivenTopic<'_>,
        read: impl FnOnce(&Arc<S>, &PartitionList) -> R,
    ) -> Option<R> {
        let unchanged = |topic: &Topic<S>| topic.unchanged(asked).map(|partitions| read(&topic.state, partitions));
        self.by_name.read(asked.name, unchanged).flatten()
    }

    /// The topic with the current partitions of the cluster. The leaders may be older, unless the methods of the
    /// cluster are called each time.
    pub(super) fn know(
        &self,
        asked: &GivenTopic<'_>,
        new: impl FnOnce() -> S,
    ) -> PyResult<(Arc<S>, Arc<PartitionList>)> {
        if let Some(known) = self.known(asked) {
            return Ok(known);
        }
        let all = asked.all()?.ok_or_else(|| absent(asked.name))?;
        self.learn(asked, all, new)
    }

    /// As [`KnownTopics::know`]; `None` if the topic does not exist or has no partitions.
    pub(super) fn know_if_there(
        &self,
        asked: &GivenTopic<'_>,
        new: impl FnOnce() -> S,
    ) -> PyResult<Option<(Arc<S>, Arc<PartitionList>)>> {
        if let Some(known) = self.known(asked) {
            return Ok(Some(known));
        }
        match asked.all()? {
            Some(all) if !all.is_empty() => self.learn(asked, all, new).map(Some),
            _ => Ok(None),
        }
    }

    fn known(&self, asked: &GivenTopic<'_>) -> Option<(Arc<S>, Arc<PartitionList>)> {
        let known = |topic: &Topic<S>| Some((topic.state.clone(), topic.unchanged(asked)?.clone()));
        self.by_name.read(asked.name, known).flatten()
    }

    fn learn(
        &self,
        asked: &GivenTopic<'_>,
        all: Vec<u32>,
        new: impl FnOnce() -> S,
    ) -> PyResult<(Arc<S>, Arc<PartitionList>)> {
        let partitions = Arc::new(PartitionList::new(asked.name, all, asked.leaders()?).map_err(refused)?);
        let source = asked.entry.as_ref().map(|(entry, size)| Source { entry: entry.clone().unbind(), size: *size });
        let seen = Seen { source, partitions: partitions.clone() };
        let (state, old) = self.by_name.write(
            asked.name,
            || Topic { state: Arc::new(new()), seen: None },
            |topic| (topic.state.clone(), topic.seen.replace(seen)),
        );
        // Drop the old entry after the lock was released: dropping the last reference to a Python object can run any
        // code.
        drop(old);
        state.refresh(&partitions);
        Ok((state, partitions))
    }

    /// Reads the leaders of the partitions again; `know` has just returned them.
    pub(super) fn read_leaders(
        &self,
        asked: &GivenTopic<'_>,
        state: &Arc<S>,
        known: &Arc<PartitionList>,
    ) -> PyResult<Arc<PartitionList>> {
        if asked.entry.is_none() {
            return Ok(known.clone());
        }
        let partitions = Arc::new(known.with_available(asked.leaders()?));
        self.by_name.write(
            asked.name,
            || Topic { state: state.clone(), seen: None },
            |topic| {
                // Another thread may have stored newer partitions meanwhile. Do not replace those.
                if let Some(seen) = topic.seen.as_mut().filter(|seen| Arc::ptr_eq(&seen.partitions, known)) {
                    seen.partitions = partitions.clone();
                }
            },
        );
        Ok(partitions)
    }

    /// The state of a topic. Its partitions may be unknown yet.
    pub(super) fn state(&self, topic: &Bound<'_, PyAny>, new: impl FnOnce() -> S) -> PyResult<Arc<S>> {
        let (_, name) = name_of(topic)?;
        let new = || Topic { state: Arc::new(new()), seen: None };
        Ok(self.by_name.write(name, new, |topic| topic.state.clone()))
    }
}

fn name_of<'a>(topic: &'a Bound<'a, PyAny>) -> PyResult<(&'a Bound<'a, PyString>, &'a str)> {
    let name = topic.cast::<PyString>().map_err(|_| partitioner_type("topic", topic, "a string"))?;
    let text = name.to_str().map_err(|error| {
        PartitionerError::new_err(format!("topic cannot be represented ({error}); give a topic's name"))
    })?;
    Ok((name, text))
}

/// The partition numbers that a method of the cluster returns for a topic; `None` for an unknown topic.
fn read(cluster: &Bound<'_, PyAny>, method: &str, topic: &Bound<'_, PyString>) -> PyResult<Option<Vec<u32>>> {
    let wanted = "an object with partitions_for_topic(topic) and available_partitions_for_topic(topic)";
    let ask = cluster.getattr(method).map_err(|_| partitioner_type("cluster", cluster, wanted))?;
    let numbers = ask.call1((topic,))?;
    if numbers.is_none() {
        return Ok(None);
    }
    let what = || format!("the result of cluster.{method}");
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
pub(super) fn refused(error: Refused) -> PyErr {
    PartitionerError::new_err(error.to_string())
}
