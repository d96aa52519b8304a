//! Converts Python's description of a group to the core's dense ids.

use std::collections::HashMap;
use std::ops::Deref;

use kafka_assignors_core::planning::group::{
    Group, GroupBuilder, MemberBuilder, ReplicaRacks, TopicSpec, Topics, sorted_members,
};
use kafka_assignors_core::protocol::subscription::NO_GENERATION;
use pyo3::ffi::PyObject;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyList, PyString};

use crate::errors::{GroupError, conversion, group_error, wrong_type};

/// The text of a Python string, without a copy.
pub(crate) fn text(value: &Bound<'_, PyAny>, what: &dyn Fn() -> String) -> PyResult<PyBackedStr> {
    value.extract().map_err(|error: PyErr| conversion(&error, &what(), value, "a string of valid Unicode"))
}

/// As [`text`], but None is allowed.
pub(crate) fn optional_text(value: &Bound<'_, PyAny>, what: &dyn Fn() -> String) -> PyResult<Option<PyBackedStr>> {
    if value.is_none() { Ok(None) } else { text(value, what).map(Some) }
}

fn or_empty(value: &Option<PyBackedStr>) -> &str {
    value.as_ref().map_or("", Deref::deref)
}

/// The topics of a group as Python passed them.
pub(crate) struct PyTopics<'py> {
    names: Vec<(Bound<'py, PyString>, PyBackedStr)>,
    counts: Vec<i64>,
    racks: Vec<Option<PyRacks>>,
}

/// The distinct rack sets, and for each partition the index of its set.
struct PyRacks {
    sets: Vec<Vec<PyBackedStr>>,
    of_partition: Vec<u32>,
}

impl<'py> PyTopics<'py> {
    /// Reads a mapping of topic to partition count, or to an object with `partitions` and `racks`.
    pub(crate) fn read(topics: &Bound<'py, PyDict>) -> PyResult<Self> {
        let mut read = Self { names: Vec::new(), counts: Vec::new(), racks: Vec::new() };
        for (key, value) in topics {
            let name = text(&key, &|| "a topic's name".to_owned())?;
            let key = key.cast_into::<PyString>()?;
            let described = || value.getattr_opt(intern!(value.py(), "partitions"));
            let (count, racks) = match value.extract::<i64>() {
                Ok(count) => (count, None),
                Err(error) => match described()? {
                    Some(count) => {
                        let racks = value.getattr(intern!(value.py(), "racks"))?;
                        let racks = if racks.is_none() { None } else { Some(read_racks(&racks, &name)?) };
                        (count.extract().map_err(|error| count_error(&error, &name, &count))?, racks)
                    }
                    None => return Err(count_error(&error, &name, &value)),
                },
            };
            read.names.push((key, name));
            read.counts.push(count);
            read.racks.push(racks);
        }
        Ok(read)
    }

    /// The core's topics.
    pub(crate) fn number(&self) -> PyResult<Topics> {
        let specs = self.names.iter().zip(&self.counts).zip(&self.racks).map(|(((_, name), &partitions), racks)| {
            let racks = racks.as_ref().map(|racks| {
                let sets = racks.sets.iter().map(|set| set.iter().map(|rack| &**rack).collect());
                ReplicaRacks::new(sets.collect(), racks.of_partition.clone())
            });
            TopicSpec { name, partitions, racks }
        });
        Topics::new(specs.collect()).map_err(group_error)
    }

    /// As [`PyTopics::number`], with the lags if given. `lags` maps every topic to one lag for each partition. Topics
    /// that the group does not have are ignored.
    pub(crate) fn number_and_weigh(&self, lags: Option<&Bound<'_, PyDict>>) -> PyResult<Topics> {
        let mut topics = self.number()?;
        let Some(lags) = lags else { return Ok(topics) };
        let mut flat = Vec::with_capacity(topics.partitions());
        for (topic, name) in (0u32..).zip(self.by_id(&topics)) {
            let count = topics.count(topic) as usize;
            match lags.get_item(name)? {
                Some(of_topic) => read_lags(&mut flat, &name.to_string(), count, &of_topic)?,
                None if count == 0 => {}
                None => {
                    let message =
                        format!("lags has no topic {:?}; give its {count} lags, one per partition", name.to_string());
                    return Err(GroupError::new_err(message));
                }
            }
        }
        topics.set_lags(flat);
        Ok(topics)
    }

    /// The topic names as Python objects, indexed by the core's id.
    fn by_id(&self, topics: &Topics) -> Vec<&Bound<'py, PyString>> {
        let mut order: Vec<_> = self.names.iter().collect();
        order.sort_unstable_by(|a, b| a.1.as_bytes().cmp(b.1.as_bytes()));
        debug_assert_eq!(order.len(), topics.len());
        order.into_iter().map(|(key, _)| key).collect()
    }
}

/// Adds the lags of one topic.
fn read_lags(flat: &mut Vec<u64>, topic: &str, count: usize, lags: &Bound<'_, PyAny>) -> PyResult<()> {
    let wanted = "a list of integers, one per partition";
    if lags.is_instance_of::<PyString>() || lags.is_instance_of::<PyBytes>() || lags.is_instance_of::<PyDict>() {
        return Err(wrong_type(&format!("lags[{topic:?}]"), lags, wanted));
    }
    let given = lags.len().map_err(|_| wrong_type(&format!("lags[{topic:?}]"), lags, wanted))?;
    if given != count {
        let message =
            format!("lags[{topic:?}] has {given} lags, but the topic {count} partitions; give one per partition");
        return Err(GroupError::new_err(message));
    }
    let (start, what) = (flat.len(), |number: usize| format!("lags[{topic:?}][{number}]"));
    for (number, lag) in lags.try_iter()?.take(count).enumerate() {
        let lag = lag?;
        let wanted = "an integer that fits 64 bits";
        if lag.is_instance_of::<PyBool>() {
            return Err(wrong_type(&what(number), &lag, wanted));
        }
        let value: i64 = lag.extract().map_err(|error| conversion(&error, &what(number), &lag, wanted))?;
        let value = u64::try_from(value).map_err(|_| {
            GroupError::new_err(format!("{} is {value}; a lag cannot be negative: give 0 or more", what(number)))
        })?;
        flat.push(value);
    }
    if flat.len() - start != count {
        let message = format!("lags[{topic:?}] ends early, after {} of {count} lags; {wanted}", flat.len() - start);
        return Err(GroupError::new_err(message));
    }
    Ok(())
}

fn count_error(error: &PyErr, topic: &str, count: &Bound<'_, PyAny>) -> PyErr {
    let what = format!("the partition count of topic {topic:?}");
    conversion(error, &what, count, "an integer that fits 64 bits, or a Topic")
}

/// Reads the rack sets of a topic. An object that was seen before is recognised by its identity and not read again: a
/// `Topic` uses one object for equal sets.
fn read_racks(racks: &Bound<'_, PyAny>, topic: &str) -> PyResult<PyRacks> {
    let mut read = PyRacks { sets: Vec::new(), of_partition: Vec::new() };
    // Keep a reference to each set: Python could reuse the address of a freed set, and `known` is keyed by the address.
    let mut seen: Vec<Bound<'_, PyAny>> = Vec::new();
    let mut known: HashMap<*mut PyObject, u32> = HashMap::new();
    for set in racks.try_iter()? {
        let set = set?;
        let next = read.sets.len() as u32;
        let number = *known.entry(set.as_ptr()).or_insert(next);
        read.of_partition.push(number);
        if number < next {
            continue;
        }
        let mut names = Vec::new();
        if !set.is_none() {
            let what = || format!("a rack of partition {} of topic {topic:?}", read.of_partition.len() - 1);
            for rack in set.try_iter()? {
                names.push(text(&rack?, &what)?);
            }
            // Sort: the iteration order of a Python set differs between processes, and the plan must not.
            names.sort_unstable_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
        }
        read.sets.push(names);
        seen.push(set);
    }
    Ok(read)
}

/// Finds topics by the identity of the Python string first, then by its text: mostly the members share one string
/// object.
struct Lookup<'a, 'py> {
    names: Vec<&'a Bound<'py, PyString>>,
    guess: u32,
}

impl<'py> Lookup<'_, 'py> {
    fn find(&mut self, topics: &Topics, name: &Bound<'py, PyAny>, member: &str, field: &str) -> PyResult<Option<u32>> {
        let found = match self.names.get(self.guess as usize) {
            Some(known) if known.is(name) => Some(self.guess),
            _ => {
                let what = || format!("a topic in {field} of member {member:?}");
                let name = text(name, &what)?;
                topics.find_near(name.as_bytes(), self.guess)
            }
        };
        if let Some(topic) = found {
            self.guess = topic + 1;
        }
        Ok(found)
    }
}

/// Reads `Group.topics` and `Group.members` of Python.
///
/// Unknown topics in subscriptions and claims are ignored, and so are claims out of range. `lags` may be `None`.
pub(crate) fn read_group(
    topics: &Bound<'_, PyDict>,
    members: &Bound<'_, PyAny>,
    lags: Option<&Bound<'_, PyDict>>,
) -> PyResult<Group> {
    let py = topics.py();
    let topics = PyTopics::read(topics)?;
    let mut builder = GroupBuilder::new(topics.number_and_weigh(lags)?);
    let mut lookup = Lookup { names: topics.by_id(builder.topics()), guess: 0 };

    let members = members.try_iter()?.collect::<PyResult<Vec<_>>>()?;
    let ids = members
        .iter()
        .map(|member| text(&member.getattr(intern!(py, "id"))?, &|| "a member's id".to_owned()))
        .collect::<PyResult<Vec<_>>>()?;
    let ids: Vec<&str> = ids.iter().map(Deref::deref).collect();
    let (order, repeats) = sorted_members(&ids);
    if let Some(&repeat) = repeats.first() {
        let id = ids[repeat as usize];
        return Err(GroupError::new_err(format!("member id {id:?} is given twice; ids must be unique in a group")));
    }

    let mut subscription = Vec::new();
    for position in order {
        let (id, member) = (ids[position as usize], &members[position as usize]);
        subscription.clear();
        lookup.guess = 0;
        for topic in member.getattr(intern!(py, "topics"))?.try_iter()? {
            let topic = topic?;
            match lookup.find(builder.topics(), &topic, id, "topics")? {
                Some(known) => subscription.push(known),
                None => builder.note_missing(&text(&topic, &|| "a topic".to_owned())?),
            }
        }
        let subscribed = builder.subscription(&subscription);
        let mut built = builder.member(id, subscribed);
        let owned = member.getattr(intern!(py, "owned"))?;
        if !owned.is_none() {
            lookup.guess = 0;
            let owned = owned.cast::<PyDict>().map_err(|_| {
                wrong_type(&format!("owned of member {id:?}"), &owned, "a mapping of topic to partition numbers")
            })?;
            for (topic, partitions) in owned {
                if let Some(topic) = lookup.find(built.topics(), &topic, id, "owned")? {
                    read_claims(&mut built, topic, &partitions, id)?;
                }
            }
        }
        let generation = member.getattr(intern!(py, "generation"))?;
        let generation = if generation.is_none() { NO_GENERATION } else { read_generation(&generation, id)? };
        let rack = optional_text(&member.getattr(intern!(py, "rack"))?, &|| format!("rack of member {id:?}"))?;
        let instance_id = member.getattr(intern!(py, "instance_id"))?;
        let instance_id = optional_text(&instance_id, &|| format!("instance_id of member {id:?}"))?;
        built.instance_id(or_empty(&instance_id)).generation(generation).rack(or_empty(&rack)).finish();
    }
    Ok(builder.finish())
}

fn read_generation(generation: &Bound<'_, PyAny>, member: &str) -> PyResult<i32> {
    generation.extract().map_err(|error: PyErr| {
        let what = format!("generation of member {member:?}");
        conversion(&error, &what, generation, "an integer that fits 32 bits, or None")
    })
}

fn read_claims(built: &mut MemberBuilder<'_>, topic: u32, partitions: &Bound<'_, PyAny>, member: &str) -> PyResult<()> {
    let range = built.topics().range(topic);
    let mut beyond = false;
    let mut read = |number: &Bound<'_, PyAny>| match number.extract::<i64>() {
        Ok(number) => {
            // Ignore a claim of a partition that does not exist: its flat number would be that of another topic's
            // partition.
            if (0..i64::from(range.end - range.start)).contains(&number) {
                built.claim(range.start + number as u32);
            } else {
                beyond |= number >= 0;
            }
            Ok(())
        }
        Err(_) if number.is_instance_of::<PyInt>() => Ok(()),
        Err(error) => {
            Err(conversion(&error, &format!("a partition number in owned of member {member:?}"), number, "an integer"))
        }
    };
    if let Ok(list) = partitions.cast::<PyList>() {
        list.iter().try_for_each(|number| read(&number))?;
    } else {
        partitions.try_iter()?.try_for_each(|number| read(&number?))?;
    }
    if beyond {
        built.note_shrunk(topic);
    }
    Ok(())
}
