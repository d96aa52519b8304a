//! Record batches of Spark and pyarrow, imported and exported through the Arrow C interface.
//!
//! `pyo3-arrow` imports and exports; this module contains no unsafe code. The schema of a batch is checked once. The
//! buffers are not trusted: offsets and texts are checked before they are used. A bad text is an error of its row only.

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
    let place = |at: usize| lists.value_offsets().get(at).and_then(|&offset| usize::try_from(offset).ok());
    match (place(at), place(at + 1)) {
        (Some(start), Some(end)) if start <= end && end <= lists.values().len() => Ok(start..end),
        _ => Err(format!("list {at} has offsets outside of its items")),
    }
}

/// A text; `None` for a null.
fn text(texts: &StringArray, at: usize) -> Result<Option<&str>, String> {
    if texts.is_null(at) {
        return Ok(None);
    }
    let place = |at: usize| texts.value_offsets().get(at).and_then(|&offset| usize::try_from(offset).ok());
    let range = place(at).zip(place(at + 1)).map(|(start, end)| start..end);
    let bytes = range.and_then(|range| texts.value_data().get(range)).ok_or("has offsets outside of its bytes")?;
    std::str::from_utf8(bytes).map(Some).map_err(|_| "is not valid UTF-8".to_owned())
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

    fn texts(&self, field: usize) -> &'a StringArray {
        self.items.column(field).as_string()
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

    fn optional_text<'b>(self, texts: &'b StringArray, field: &str) -> Result<Option<&'b str>, String> {
        text(texts, self.at).map_err(|error| self.problem(field, &error))
    }

    /// A field that must not be null.
    fn text<'b>(self, texts: &'b StringArray, field: &str) -> Result<&'b str, String> {
        self.optional_text(texts, field)?.ok_or_else(|| self.problem(field, "is null"))
    }

    fn bounds(self, lists: &ListArray, field: &str) -> Result<Range<usize>, String> {
        bounds(lists, self.at).map_err(|error| self.problem(field, &error))
    }
}
