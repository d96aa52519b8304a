//! Reads keys, values and partition numbers from Python objects.

use kafka_assignors_core::partitioner::murmur2 as core;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{PartitionerError, partitioner_type};

const BYTES: &str = "bytes, as the serializer returns them, or None";

/// The bytes of a key. Those of `bytes` are borrowed; those of another buffer are copied, because its owner may change
/// them.
pub(super) enum Key<'a> {
    Borrowed(&'a [u8]),
    Copied(Vec<u8>),
}

impl<'a> Key<'a> {
    /// The serialized key. `None` means no key; empty bytes are a key.
    pub(super) fn read(key: &'a Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        if key.is_none() {
            return Ok(None);
        }
        Self::of(key, "serialized_key", BYTES).map(Some)
    }

    pub(super) fn of(key: &'a Bound<'_, PyAny>, what: &str, wanted: &str) -> PyResult<Self> {
        if let Ok(bytes) = key.cast::<PyBytes>() {
            return Ok(Self::Borrowed(bytes.as_bytes()));
        }
        let copied = PyBuffer::<u8>::get(key).and_then(|buffer| buffer.to_vec(key.py()));
        copied.map(Self::Copied).map_err(|_| partitioner_type(what, key, wanted))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Copied(bytes) => bytes,
        }
    }
}

/// The length of a field in bytes; `None` if it is null.
pub(super) fn length(value: &Bound<'_, PyAny>, what: &str) -> PyResult<Option<usize>> {
    if value.is_none() {
        return Ok(None);
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Some(bytes.as_bytes().len()));
    }
    match PyBuffer::<u8>::get(value) {
        Ok(buffer) => Ok(Some(buffer.len_bytes())),
        Err(_) => Err(partitioner_type(what, value, BYTES)),
    }
}

/// An integer of any type that converts to one, for example a numpy integer.
fn integer(value: &Bound<'_, PyAny>, what: &str) -> PyResult<i64> {
    value.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<pyo3::exceptions::PyTypeError>(value.py()) {
            partitioner_type(what, value, "an integer")
        } else {
            PartitionerError::new_err(format!("{what} cannot be represented ({error}); give a partition's number"))
        }
    })
}

/// The explicit partition of a record.
pub(super) fn partition(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    integer(value, "partition")
}

/// The partition in a new-batch notice. Any number is valid: a stale notice has no effect.
pub(super) fn previous(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    integer(value, "prev_partition")
}

/// The hash of one key.
#[pyfunction]
pub(crate) fn murmur2(key: &Bound<'_, PyAny>) -> PyResult<i32> {
    Ok(core::hash(Key::of(key, "key", "bytes")?.bytes()))
}
