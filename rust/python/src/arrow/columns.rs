//! Columns of texts and lists, while they grow.
//!
//! They append to plain vectors, and Arrow checks a whole column when it is finished. Arrow's own builders take a `str`,
//! so that each name would be checked alone, and grow three buffers for each value.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int32Array, ListArray, StringArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBufferBuilder};
use arrow_schema::{DataType, Field, Fields};
use kafka_assignors_core::protocol::Utf8;
use kafka_assignors_core::protocol::topic_partitions::Numbers;

use super::field;

/// The expected length of a group or topic name. It is only the initial capacity: the columns grow.
const NAME_BYTES: usize = 24;

/// The items of a list. No list of the tables contains a null, so Spark need not check each item.
fn item(of: DataType) -> Arc<Field> {
    Arc::new(Field::new("element", of, false))
}

/// The type of a list without null items.
pub(super) fn full_list(of: DataType) -> DataType {
    DataType::List(item(of))
}

/// The fields of a claimed topic.
pub(super) fn claimed_fields() -> Fields {
    Fields::from(vec![field("topic", DataType::Utf8), field("partitions", full_list(DataType::Int32))])
}

/// A column that grows.
pub(super) trait Column: Default {
    fn len(&self) -> usize;
    fn finish(self) -> ArrayRef;
}

impl Column for Vec<i32> {
    fn len(&self) -> usize {
        self.len()
    }

    fn finish(self) -> ArrayRef {
        Arc::new(Int32Array::from(self))
    }
}

/// A column of texts.
pub(super) struct Texts {
    bytes: Vec<u8>,
    offsets: OffsetBufferBuilder<i32>,
    valid: NullBufferBuilder,
    /// The number of nulls at the end, which the fields above do not have yet: many columns have nothing but nulls.
    nulls: usize,
}

impl Default for Texts {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

impl Texts {
    pub(super) fn with_capacity(rows: usize) -> Self {
        let bytes = Vec::with_capacity(rows * NAME_BYTES);
        Self { bytes, offsets: OffsetBufferBuilder::new(rows), valid: NullBufferBuilder::new(rows), nulls: 0 }
    }

    #[inline]
    pub(super) fn push<'t>(&mut self, text: impl Into<Utf8<'t>>) {
        if self.nulls > 0 {
            self.append_nulls();
        }
        let text = text.into();
        self.bytes.extend_from_slice(text.bytes());
        self.offsets.push_length(text.len());
        self.valid.append_non_null();
    }

    #[inline]
    pub(super) fn push_null(&mut self) {
        self.nulls += 1;
    }

    #[cold]
    fn append_nulls(&mut self) {
        (0..self.nulls).for_each(|_| self.offsets.push_length(0));
        self.valid.append_n_nulls(std::mem::take(&mut self.nulls));
    }

    #[inline]
    pub(super) fn push_option<'t>(&mut self, text: Option<impl Into<Utf8<'t>>>) {
        match text {
            Some(text) => self.push(text),
            None => self.push_null(),
        }
    }

    /// Appends a text. Invalid UTF-8 becomes U+FFFD, as in Java.
    #[inline]
    pub(super) fn push_bytes(&mut self, bytes: &[u8]) {
        match Utf8::new(bytes) {
            Some(text) => self.push(text),
            None => self.push(&*String::from_utf8_lossy(bytes)),
        }
    }
}

impl Column for Texts {
    fn len(&self) -> usize {
        self.valid.len() + self.nulls
    }

    fn finish(mut self) -> ArrayRef {
        self.append_nulls();
        // This panics for no content, since only UTF-8 is pushed, but for 2 GiB of texts. The decoder's batches end long before, and
        // a replay's batches of that size would not fit into a worker's memory.
        Arc::new(StringArray::new(self.offsets.finish(), self.bytes.into(), self.valid.build()))
    }
}

/// A column of lists.
pub(super) struct Lists<C> {
    items: C,
    offsets: OffsetBufferBuilder<i32>,
    valid: NullBufferBuilder,
}

impl<C: Column> Default for Lists<C> {
    fn default() -> Self {
        Self { items: C::default(), offsets: OffsetBufferBuilder::new(0), valid: NullBufferBuilder::new(0) }
    }
}

impl<C: Column> Lists<C> {
    /// The items of all lists.
    pub(super) fn items(&mut self) -> &mut C {
        &mut self.items
    }

    /// Appends a list with the items that `fill` appends.
    #[inline]
    pub(super) fn push(&mut self, fill: impl FnOnce(&mut C)) {
        let start = self.items.len();
        fill(&mut self.items);
        self.offsets.push_length(self.items.len() - start);
        self.valid.append_non_null();
    }

    #[inline]
    pub(super) fn push_null(&mut self) {
        self.offsets.push_length(0);
        self.valid.append_null();
    }
}

impl Lists<Vec<i32>> {
    /// Reserves memory for this number of items.
    pub(super) fn reserve(&mut self, count: usize) {
        self.items.reserve(count);
    }

    #[inline]
    pub(super) fn push_numbers(&mut self, numbers: Numbers<'_>) {
        self.push(|items| numbers.append_to(items));
    }
}

impl<C: Column> Column for Lists<C> {
    fn len(&self) -> usize {
        self.valid.len()
    }

    fn finish(self) -> ArrayRef {
        list_array(self.items.finish(), self.offsets, self.valid)
    }
}

/// The ends of lists without nulls, whose items are appended one by one.
pub(super) struct ListEnds {
    offsets: OffsetBufferBuilder<i32>,
    /// The number of items in the lists that have ended.
    ended: usize,
}

impl Default for ListEnds {
    fn default() -> Self {
        Self { offsets: OffsetBufferBuilder::new(0), ended: 0 }
    }
}

impl ListEnds {
    /// Ends a list where there are `count` items.
    #[inline]
    pub(super) fn push(&mut self, count: usize) {
        self.offsets.push_length(count - self.ended);
        self.ended = count;
    }

    /// The lists of these items.
    pub(super) fn finish(self, items: ArrayRef) -> ArrayRef {
        list_array(items, self.offsets, NullBufferBuilder::new(0))
    }
}

fn list_array(items: ArrayRef, offsets: OffsetBufferBuilder<i32>, valid: NullBufferBuilder) -> ArrayRef {
    let field = item(items.data_type().clone());
    Arc::new(ListArray::new(field, offsets.finish(), items, valid.build()))
}

/// A column of claimed topics with their partitions.
#[derive(Default)]
pub(super) struct Claimed {
    topics: Texts,
    partitions: Lists<Vec<i32>>,
}

impl Claimed {
    /// Reserves memory for this number of partitions.
    pub(super) fn reserve(&mut self, count: usize) {
        self.partitions.reserve(count);
    }

    pub(super) fn push(&mut self, topic: Option<&[u8]>, partitions: Numbers<'_>) {
        match topic {
            Some(topic) => self.topics.push_bytes(topic),
            None => self.topics.push_null(),
        }
        self.partitions.push_numbers(partitions);
    }
}

impl Column for Claimed {
    fn len(&self) -> usize {
        self.topics.len()
    }

    fn finish(self) -> ArrayRef {
        let columns = vec![self.topics.finish(), self.partitions.finish()];
        Arc::new(StructArray::new(claimed_fields(), columns, None))
    }
}
