//! Whole columns of keys, imported and exported with `pyo3-arrow` through the Arrow C interface.

use std::num::NonZeroU32;
use std::sync::Arc;

use arrow_array::builder::Int32Builder;
use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryType, ByteArrayType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::{Array, ArrayRef, Int32Array};
use arrow_schema::DataType;
use kafka_assignors_core::partitioner::key_hash::KeyHash;
use kafka_assignors_core::partitioner::{column, murmur2};
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use pyo3_arrow::PyArray;
use pyo3_arrow::input::AnyArray;

use super::key::Key;
use crate::errors::{MissingDependencyError, OptionError, PartitionerError, PartitionerTypeError, partitioner_type};

const KEYS: &str = "an Arrow array of binary or string, or a sequence of bytes and None";

/// The hash of each key of a column, null for a null: an int32 array that pyarrow imports without a copy.
#[pyfunction]
pub(crate) fn murmur2_column<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    of_column(keys, murmur2::hash)
}

/// The partition of each key of a column, null for a null, by the hash of this name.
#[pyfunction]
pub(crate) fn partitions_of_column<'py>(
    keys: &Bound<'py, PyAny>,
    hash: &str,
    count: u32,
) -> PyResult<Bound<'py, PyAny>> {
    of_column(keys, placing(hash, count)?)
}

/// The partition of each key of a sequence, -1 for `None`. The bytes are native 32-bit integers, which `array` and
/// numpy read.
#[pyfunction]
pub(crate) fn partitions_of<'py>(keys: &Bound<'py, PyAny>, hash: &str, count: u32) -> PyResult<Bound<'py, PyBytes>> {
    let mut partitions = Vec::new();
    of_sequence(keys, placing(hash, count)?, |partition| {
        partitions.extend_from_slice(&partition.unwrap_or(-1).to_ne_bytes());
    })?;
    Ok(PyBytes::new(keys.py(), &partitions))
}

/// The function from a key to its partition, for a producer with this hash and `count` partitions.
fn placing(hash: &str, count: u32) -> PyResult<impl Fn(&[u8]) -> i32 + Copy + Sync> {
    let hash = KeyHash::named(hash)
        .ok_or_else(|| OptionError::new_err(format!("hash is {hash:?}; give one of murmur2, crc32, fnv1a")))?;
    let count = NonZeroU32::new(count).filter(|count| count.get() <= i32::MAX.unsigned_abs());
    let count = count.ok_or_else(|| OptionError::new_err("partitions is 0 or too large; give 1 to 2147483647"))?;
    Ok(move |key: &[u8]| hash.partition(key, count).cast_signed())
}

fn of_column<'py>(keys: &Bound<'py, PyAny>, of: impl Fn(&[u8]) -> i32 + Copy + Sync) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    let array = if keys.hasattr("__arrow_c_array__")? || keys.hasattr("__arrow_c_stream__")? {
        let arrays = keys.extract::<AnyArray>()?.into_chunked_array()?.into_inner().0;
        py.detach(|| of_arrays(&arrays, of))?
    } else {
        let mut found = Int32Builder::new();
        of_sequence(keys, of, |value| found.append_option(value))?;
        found.finish()
    };
    let pyarrow = py.import("pyarrow").map_err(|error| {
        if error.is_instance_of::<PyImportError>(py) {
            MissingDependencyError::new_err("columns of keys need pyarrow: pip install kafka-assignors[arrow]")
        } else {
            error
        }
    })?;
    pyarrow.getattr("array")?.call1((PyArray::from_array_ref(Arc::new(array)),))
}

fn of_sequence(keys: &Bound<'_, PyAny>, of: impl Fn(&[u8]) -> i32, mut each: impl FnMut(Option<i32>)) -> PyResult<()> {
    if keys.is_instance_of::<PyBytes>() || keys.is_instance_of::<PyString>() {
        return Err(partitioner_type("keys", keys, KEYS));
    }
    for (row, key) in keys.try_iter().map_err(|_| partitioner_type("keys", keys, KEYS))?.enumerate() {
        let key = key?;
        if key.is_none() {
            each(None);
        } else {
            // Build the name of the row only for an error: it allocates.
            let read = Key::of(&key, "key", "bytes or None");
            let key = read.map_err(|_| partitioner_type(&format!("keys[{row}]"), &key, "bytes or None"))?;
            each(Some(of(key.bytes())));
        }
    }
    Ok(())
}

fn of_arrays(arrays: &[ArrayRef], of: impl Fn(&[u8]) -> i32 + Copy) -> PyResult<Int32Array> {
    let mut found = Int32Builder::with_capacity(arrays.iter().map(Array::len).sum());
    for array in arrays {
        let each = |key: Option<&[u8]>| found.append_option(key.map(of));
        match array.data_type() {
            DataType::Binary => by_offsets::<BinaryType>(array, each)?,
            DataType::LargeBinary => by_offsets::<LargeBinaryType>(array, each)?,
            DataType::Utf8 => by_offsets::<Utf8Type>(array, each)?,
            DataType::LargeUtf8 => by_offsets::<LargeUtf8Type>(array, each)?,
            DataType::BinaryView => array.as_binary_view().iter().for_each(each),
            DataType::Utf8View => array.as_string_view().iter().map(|key| key.map(str::as_bytes)).for_each(each),
            DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().iter().for_each(each),
            DataType::Null => found.append_nulls(array.len()),
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                let of_values = of_arrays(std::slice::from_ref(dictionary.values()), of)?;
                if of_values.is_empty() {
                    found.append_nulls(array.len());
                    continue;
                }
                for (row, value) in dictionary.normalized_keys().into_iter().enumerate() {
                    let is_null = array.is_null(row) || of_values.is_null(value);
                    found.append_option((!is_null).then(|| of_values.value(value)));
                }
            }
            other => {
                let message = format!("keys has type {other}; give the serialized keys, {KEYS}");
                return Err(PartitionerTypeError::new_err(message));
            }
        }
    }
    Ok(found.finish())
}

/// Reads the keys by their offsets. The offsets come from another library: `keys` checks each of them.
fn by_offsets<T: ByteArrayType<Offset: Into<i64>>>(array: &ArrayRef, each: impl FnMut(Option<&[u8]>)) -> PyResult<()> {
    let array = array.as_bytes::<T>();
    let nulls = array.nulls();
    let is_null = |row| nulls.is_some_and(|nulls| nulls.is_null(row));
    column::keys(array.value_offsets(), array.value_data(), is_null, each)
        .map_err(|error| PartitionerError::new_err(error.to_string()))
}
