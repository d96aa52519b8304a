//! Whole columns of keys: buffers in, a buffer of partitions out.

use std::num::NonZeroU32;

use kafka_assignors_core::partitioner::column::{self, ColumnError};
use kafka_assignors_core::partitioner::key_hash::KeyHash;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{OptionError, PartitionerError};

/// The partition of each key of a column, as native 32-bit integers; -1 where it has none.
///
/// `offsets` are native integers of 32 bits, or of 64 if `wide`: row i of the column is `data[offsets[first + i]..]` up to the
/// next offset, unless bit `first + i` of `validity` is 0.
#[pyfunction]
#[pyo3(signature = (hash, count, data, offsets, validity, first, length, wide))]
#[expect(clippy::too_many_arguments, reason = "the parts of an Arrow array")]
pub(crate) fn partitions_of_column<'py>(
    py: Python<'py>,
    hash: &str,
    count: u32,
    data: &Bound<'py, PyAny>,
    offsets: &Bound<'py, PyAny>,
    validity: Option<&Bound<'py, PyAny>>,
    first: usize,
    length: usize,
    wide: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let hash = KeyHash::named(hash)
        .ok_or_else(|| OptionError::new_err(format!("hash is {hash:?}; give one of murmur2, crc32, fnv1a")))?;
    let count = NonZeroU32::new(count).filter(|count| count.get() <= i32::MAX.unsigned_abs());
    let count = count.ok_or_else(|| OptionError::new_err("partitions is 0 or too large; give 1 to 2147483647"))?;
    let width = if wide { 8 } else { 4 };
    let end = first.checked_add(length).and_then(|rows| rows.checked_add(1)?.checked_mul(width));
    // Python may change any buffer but bytes while the lock is released: what is read is a copy.
    let (data, offsets) = (bytes(data)?, bytes(offsets)?);
    let validity = validity.map(bytes).transpose()?;
    let short = || PartitionerError::new_err("the column has fewer offsets or validity bits than rows");
    let offsets = end.and_then(|end| offsets.get(first * width..end)).ok_or_else(short)?;
    if validity.as_ref().is_some_and(|bits| bits.len() < (first + length).div_ceil(8)) {
        return Err(short());
    }
    let is_null = |row: usize| {
        let bit = first + row;
        validity.as_ref().is_some_and(|bits| bits[bit / 8] >> (bit % 8) & 1 == 0)
    };
    let mut partitions = Vec::with_capacity(4 * length);
    let each = |key: Option<&[u8]>| {
        let partition = key.map_or(-1, |key| hash.partition(key, count).cast_signed());
        partitions.extend_from_slice(&partition.to_ne_bytes());
    };
    py.detach(|| {
        if wide {
            column::keys(&native(offsets, i64::from_ne_bytes), &data, is_null, each)
        } else {
            column::keys(&native(offsets, i32::from_ne_bytes), &data, is_null, each)
        }
    })
    .map_err(|error: ColumnError| PartitionerError::new_err(error.to_string()))?;
    Ok(PyBytes::new(py, &partitions))
}

fn bytes(buffer: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    PyBuffer::<u8>::get(buffer)?.to_vec(buffer.py())
}

fn native<const N: usize, T>(bytes: &[u8], read: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|chunk| read(*chunk)).collect()
}
