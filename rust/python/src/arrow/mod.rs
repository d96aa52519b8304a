//! Record batches of Spark and pyarrow, imported and exported through the Arrow C interface.
//!
//! `pyo3-arrow` imports and exports; this module contains no unsafe code. The schema of a batch is checked once. The
//! buffers are not trusted: offsets and texts are checked before they are used. A bad text is an error of its row only.

mod columns;
mod histories;
mod offsets_topic;
mod outcomes;
mod replay;

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, ListArray, PrimitiveArray, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field, Fields, Schema};
use pyo3::prelude::*;

use crate::errors::TableError;

pub(crate) use offsets_topic::{DecodedBatches, OffsetsTopic};
pub(crate) use replay::{Assignments, Replay};

/// Checks that batches have exactly these columns. Nullability is not compared: a null is handled when its row is read.
fn check_schema(found: &Schema, wanted: &Schema) -> PyResult<()> {
    for (index, field) in wanted.fields().iter().enumerate() {
        let Some(column) = found.fields().get(index).filter(|column| column.name() == field.name()) else {
            let names: Vec<&str> = found.fields().iter().map(|column| column.name().as_str()).collect();
            let message =
                format!("column {index} of the batch is to be {:?}, but its columns are {names:?}", field.name());
            return Err(TableError::new_err(message));
        };
        if !same_type(column.data_type(), field.data_type()) {
            let message =
                format!("column {:?} has type {}; give {}", field.name(), column.data_type(), field.data_type());
            return Err(TableError::new_err(message));
        }
    }
    if found.fields().len() > wanted.fields().len() {
        let extra = found.field(wanted.fields().len()).name();
        return Err(TableError::new_err(format!("the batch has a column {extra:?} that is not known; leave it out")));
    }
    Ok(())
}

/// Whether two types are equal, ignoring nullability and the names of list items.
fn same_type(found: &DataType, wanted: &DataType) -> bool {
    match (found, wanted) {
        (DataType::List(found), DataType::List(wanted)) => same_type(found.data_type(), wanted.data_type()),
        (DataType::Struct(found), DataType::Struct(wanted)) => {
            found.len() == wanted.len()
                && found.iter().zip(wanted).all(|(found, wanted)| {
                    found.name() == wanted.name() && same_type(found.data_type(), wanted.data_type())
                })
        }
        _ => found == wanted,
    }
}

fn field(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

fn list(of: DataType) -> DataType {
    DataType::List(std::sync::Arc::new(field("element", of)))
}

fn list_of_structs(of: Vec<Field>) -> DataType {
    list(DataType::Struct(Fields::from(of)))
}

/// The positions of a list's items in the item array; empty for a null list.
fn bounds(lists: &ListArray, at: usize) -> Result<Range<usize>, String> {
    if lists.is_null(at) {
        return Ok(0..0);
    }
    span(lists.value_offsets(), at)
        .filter(|span| span.start <= span.end && span.end <= lists.values().len())
        .ok_or_else(|| format!("list {at} has offsets outside of its items"))
}

/// The offsets of a list or text. `None` if one of them is missing or negative.
fn span(offsets: &[i32], at: usize) -> Option<Range<usize>> {
    let [start, end] = *offsets.get(at..)?.first_chunk()?;
    Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
}

/// A column of texts.
#[derive(Clone, Copy)]
struct TextColumn<'a> {
    array: &'a StringArray,
    /// The bytes of all texts, and the offset of the first one. Empty if some of them are not valid UTF-8.
    valid: (&'a str, usize),
}

impl<'a> TextColumn<'a> {
    /// O(bytes): the texts are checked together, and one by one only if this fails.
    fn new(array: &'a StringArray) -> Self {
        let offsets = array.value_offsets();
        let end = |offset: Option<&i32>| offset.and_then(|&offset| usize::try_from(offset).ok());
        let range = end(offsets.first()).zip(end(offsets.last())).map(|(start, end)| start..end);
        let all = range.and_then(|range| Some((array.value_data().get(range.clone())?, range.start)));
        let valid = all.and_then(|(bytes, start)| Some((std::str::from_utf8(bytes).ok()?, start)));
        Self { array, valid: valid.unwrap_or_default() }
    }

    /// A text; `None` for a null.
    fn get(self, at: usize) -> Result<Option<&'a str>, String> {
        if self.array.is_null(at) {
            return Ok(None);
        }
        let range = span(self.array.value_offsets(), at);
        let (all, first) = self.valid;
        let inside = |offset: usize| offset.wrapping_sub(first);
        if let Some(text) = range.as_ref().and_then(|range| all.get(inside(range.start)..inside(range.end))) {
            return Ok(Some(text));
        }
        let bytes = range.and_then(|range| self.array.value_data().get(range));
        let bytes = bytes.ok_or("has offsets outside of its bytes")?;
        std::str::from_utf8(bytes).map(Some).map_err(|_| "is not valid UTF-8".to_owned())
    }
}

/// A column whose values are lists of structs.
struct Rows<'a> {
    name: &'static str,
    lists: &'a ListArray,
    items: &'a StructArray,
}

/// An item of a row's list.
#[derive(Clone, Copy)]
struct Item<'a> {
    rows: &'a Rows<'a>,
    /// The position in the list of the row, for error messages.
    index: usize,
    at: usize,
}

impl<'a> Rows<'a> {
    fn new(batch: &'a RecordBatch, column: usize, name: &'static str) -> Self {
        let lists = batch.column(column).as_list::<i32>();
        Self { name, lists, items: lists.values().as_struct() }
    }

    /// A row's items.
    fn of(&'a self, row: usize) -> Result<impl ExactSizeIterator<Item = Item<'a>>, String> {
        let range = bounds(self.lists, row).map_err(|error| format!("{}: {error}", self.name))?;
        let start = range.start;
        Ok(range.map(move |at| Item { rows: self, index: at - start, at }))
    }

    fn numbers<T: ArrowPrimitiveType>(&self, field: usize) -> &'a PrimitiveArray<T> {
        self.items.column(field).as_primitive()
    }

    fn texts(&self, field: usize) -> TextColumn<'a> {
        TextColumn::new(self.items.column(field).as_string())
    }

    fn lists(&self, field: usize) -> &'a ListArray {
        self.items.column(field).as_list()
    }
}

impl<'a> Item<'a> {
    fn problem(self, field: &str, what: &str) -> String {
        format!("{}[{}].{field} {what}", self.rows.name, self.index)
    }

    fn optional_number<T: ArrowPrimitiveType>(self, array: &PrimitiveArray<T>) -> Option<T::Native> {
        // The fields of a null struct are undefined: the struct's own null must be checked too.
        let is_null = array.is_null(self.at) || self.rows.items.is_null(self.at);
        (!is_null).then(|| array.value(self.at))
    }

    /// A field that must not be null.
    fn number<T: ArrowPrimitiveType>(self, array: &PrimitiveArray<T>, field: &str) -> Result<T::Native, String> {
        self.optional_number(array).ok_or_else(|| self.problem(field, "is null"))
    }

    fn optional_text<'b>(self, texts: TextColumn<'b>, field: &str) -> Result<Option<&'b str>, String> {
        texts.get(self.at).map_err(|error| self.problem(field, &error))
    }

    /// A field that must not be null.
    fn text<'b>(self, texts: TextColumn<'b>, field: &str) -> Result<&'b str, String> {
        self.optional_text(texts, field)?.ok_or_else(|| self.problem(field, "is null"))
    }

    fn bounds(self, lists: &ListArray, field: &str) -> Result<Range<usize>, String> {
        bounds(lists, self.at).map_err(|error| self.problem(field, &error))
    }
}
