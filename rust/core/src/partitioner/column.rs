//! A whole column of keys, as Arrow keeps one: bytes behind each other, and where each key starts.

use thiserror::Error;

/// A column whose offsets and bytes do not fit each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "key {row} of the column is said to be bytes {start} to {end} of {length}; give ascending offsets within the bytes"
)]
pub struct ColumnError {
    /// The first row that cannot be read.
    pub row: usize,
    /// Where it is said to start.
    pub start: i64,
    /// Where it is said to end.
    pub end: i64,
    /// How many bytes there are.
    pub length: usize,
}

/// The keys of a column: key `i` is `bytes[offsets[i]..offsets[i + 1]]`, unless `is_null(i)`. Calls `each` with every key in
/// order, `None` for a null.
///
/// # Errors
/// [`ColumnError`] at the first key whose offsets are not within the bytes; `each` has then seen the keys before it.
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
