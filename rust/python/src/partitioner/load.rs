//! Reads the queue lengths that a client measured.

use kafka_assignors_core::partitioner::adaptive::Load;
use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyMappingMethods, PyString, PyTuple};

use crate::errors::{PartitionerError, partitioner_type};

/// `queue_lengths` maps a partition to its number of batches, or is a sequence indexed by partition. `unavailable` are
/// the partitions not to choose. Without lengths the result is `None`.
pub(crate) fn read_load(queue_lengths: &Bound<'_, PyAny>, unavailable: &Bound<'_, PyAny>) -> PyResult<Option<Load>> {
    let mut excluded = Vec::new();
    for partition in items(unavailable, "unavailable", "the numbers of partitions")? {
        excluded.push(number(&partition?, "a partition in unavailable")?);
    }
    if queue_lengths.is_none() {
        return if excluded.is_empty() {
            Ok(None)
        } else {
            Err(PartitionerError::new_err(
                "unavailable is given, but queue_lengths is None; give both, {} for empty queues",
            ))
        };
    }
    let wanted = "a mapping of partition to batches, or a sequence of batches by partition";
    let mut queues = Vec::new();
    if let Ok(mapping) = queue_lengths.cast::<PyMapping>() {
        for pair in mapping.items()?.iter() {
            let pair = pair.cast_into::<PyTuple>()?;
            let partition = number(&pair.get_item(0)?, "a partition in queue_lengths")?;
            queues.push((partition, number(&pair.get_item(1)?, &format!("queue_lengths[{partition}]"))?));
        }
    } else {
        for (partition, length) in items(queue_lengths, "queue_lengths", wanted)?.enumerate() {
            queues.push((partition as u32, number(&length?, &format!("queue_lengths[{partition}]"))?));
        }
    }
    Ok(Some(Load::new(queues, excluded)))
}

fn items<'py>(
    values: &Bound<'py, PyAny>,
    what: &str,
    wanted: &str,
) -> PyResult<impl Iterator<Item = PyResult<Bound<'py, PyAny>>> + use<'py>> {
    if values.is_instance_of::<PyString>() {
        return Err(partitioner_type(what, values, wanted));
    }
    values.try_iter().map_err(|_| partitioner_type(what, values, wanted))
}

/// A number in the range of a Java int: from 0 to 2,147,483,647.
fn number(value: &Bound<'_, PyAny>, what: &str) -> PyResult<u32> {
    let number = value.extract::<i64>().map_err(|error| {
        if error.is_instance_of::<pyo3::exceptions::PyTypeError>(value.py()) {
            partitioner_type(what, value, "an integer")
        } else {
            PartitionerError::new_err(format!("{what} cannot be represented ({error}); give 0 to {}", i32::MAX))
        }
    })?;
    i32::try_from(number)
        .ok()
        .and_then(|number| u32::try_from(number).ok())
        .ok_or_else(|| PartitionerError::new_err(format!("{what} is {number}; give 0 to {}", i32::MAX)))
}
