//! A column of keys in Arrow's layout: the bytes of all keys in one buffer, and the offset of each key.

use thiserror::Error;

/// A column whose offsets are not ascending positions in its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "key {row} of the column is said to be bytes {start} to {end} of {length}; give ascending offsets within the bytes"
)]
pub struct ColumnError {
    /// The first unreadable row.
    pub row: usize,
    /// The start offset of its key.
    pub start: i64,
    /// The end offset of its key.
    pub end: i64,
    /// The number of bytes in the column.
    pub length: usize,
}

/// Calls `each` with every key of a column in order, `None` for a null. Key `i` is `bytes[offsets[i]..offsets[i + 1]]`,
/// unless `is_null(i)`.
///
/// # Errors
/// [`ColumnError`] at the first key whose offsets are not within the bytes, after the calls for the keys before it.
pub fn keys<O: Copy + Into<i64>>(
    offsets: &[O],
    bytes: &[u8],
    is_null: impl Fn(usize) -> bool,
    mut each: impl FnMut(Option<&[u8]>),
) -> Result<(), ColumnError> {
    for (row, pair) in offsets.windows(2).enumerate() {
        if is_null(row) {
            each(None);
            continue;
        }
        let (start, end) = (pair[0].into(), pair[1].into());
        let key = usize::try_from(start).ok().zip(usize::try_from(end).ok()).and_then(|(from, to)| bytes.get(from..to));
        each(Some(key.ok_or(ColumnError { row, start, end, length: bytes.len() })?));
    }
    Ok(())
}
