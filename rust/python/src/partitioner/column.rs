//! Whole columns of keys, through the Arrow C interface; `pyo3-arrow` does the hand-over.

use std::sync::Arc;

use arrow_array::builder::Int32Builder;
use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryType, ByteArrayType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::{Array, ArrayRef, Int32Array};
use arrow_schema::DataType;
use kafka_assignors_core::partitioner::murmur2 as core;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use pyo3_arrow::PyArray;
use pyo3_arrow::input::AnyArray;

use super::key::Key;
use crate::errors::{MissingDependencyError, PartitionerError, PartitionerTypeError, partitioner_type};

const KEYS: &str = "an Arrow array of binary or string, or a sequence of bytes and None";

/// The hash of each key of a column, null for a null: an int32 array, which pyarrow makes its own without a copy.
#[pyfunction]
pub(crate) fn murmur2_column<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    let array = if keys.hasattr("__arrow_c_array__")? || keys.hasattr("__arrow_c_stream__")? {
        let arrays = keys.extract::<AnyArray>()?.into_chunked_array()?.into_inner().0;
        py.detach(|| hash_arrays(&arrays))?
    } else {
        hash_sequence(keys)?
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

fn hash_sequence(keys: &Bound<'_, PyAny>) -> PyResult<Int32Array> {
    if keys.is_instance_of::<PyBytes>() || keys.is_instance_of::<PyString>() {
        return Err(partitioner_type("keys", keys, KEYS));
    }
    let mut hashes = Int32Builder::new();
    for (row, key) in keys.try_iter().map_err(|_| partitioner_type("keys", keys, KEYS))?.enumerate() {
        let key = key?;
        if key.is_none() {
            hashes.append_null();
        } else {
            // The name of the row costs an allocation, so it is made when it is needed.
            let read = Key::of(&key, "key", "bytes or None");
            let key = read.map_err(|_| partitioner_type(&format!("keys[{row}]"), &key, "bytes or None"))?;
            hashes.append_value(core::hash(key.bytes()));
        }
    }
    Ok(hashes.finish())
}

fn hash_arrays(arrays: &[ArrayRef]) -> PyResult<Int32Array> {
    let mut hashes = Int32Builder::with_capacity(arrays.iter().map(Array::len).sum());
    for array in arrays {
        let each = |hash: Option<i32>| hashes.append_option(hash);
        match array.data_type() {
            DataType::Binary => by_offsets::<BinaryType>(array, each)?,
            DataType::LargeBinary => by_offsets::<LargeBinaryType>(array, each)?,
            DataType::Utf8 => by_offsets::<Utf8Type>(array, each)?,
            DataType::LargeUtf8 => by_offsets::<LargeUtf8Type>(array, each)?,
            DataType::BinaryView => one_by_one(array.as_binary_view().iter(), each),
            DataType::Utf8View => one_by_one(array.as_string_view().iter().map(|key| key.map(str::as_bytes)), each),
            DataType::FixedSizeBinary(_) => one_by_one(array.as_fixed_size_binary().iter(), each),
            DataType::Null => hashes.append_nulls(array.len()),
            other => {
                let message = format!("keys has type {other}; give the serialized keys, {KEYS}");
                return Err(PartitionerTypeError::new_err(message));
            }
        }
    }
    Ok(hashes.finish())
}

fn by_offsets<T: ByteArrayType<Offset: Into<i64>>>(array: &ArrayRef, each: impl FnMut(Option<i32>)) -> PyResult<()> {
    let array = array.as_bytes::<T>();
    let nulls = array.nulls();
    let is_null = |row| nulls.is_some_and(|nulls| nulls.is_null(row));
    core::column(array.value_offsets(), array.value_data(), is_null, each)
        .map_err(|error| PartitionerError::new_err(error.to_string()))
}

fn one_by_one<'a>(keys: impl Iterator<Item = Option<&'a [u8]>>, mut each: impl FnMut(Option<i32>)) {
    keys.for_each(|key| each(key.map(core::hash)));
}
