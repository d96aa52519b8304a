//! Decodes records of `__consumer_offsets` into a row for each record, with the rows of its tables in lists.

mod items;
mod tables;

use std::collections::{HashMap, VecDeque};
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, BinaryArray, PrimitiveArray, RecordBatch};
use arrow_schema::{DataType, Schema, SchemaRef};
use kafka_assignors_core::offsets_topic::{Epochs, Record, parse_topic_id, rows};
use kafka_assignors_core::protocol::TopicId;
use pyo3::prelude::*;
use pyo3_arrow::{PyRecordBatch, PyTable};

use self::tables::Tables;
use super::{check_schema, field};
use crate::errors::{OptionError, TableError};

/// The bytes of a line of the processor's cache, and the size from which a record's lines are fetched before it is read.
const CACHE_LINE: usize = 64;
const LONG_RECORD: usize = 1024;

/// The approximate size of an output batch.
const BATCH_BYTES: usize = 64 << 20;

/// The columns that are left out by default.
#[derive(Clone, Copy)]
struct Optional {
    clients: bool,
    bytes: bool,
}

/// The settings of all batches.
struct Settings {
    names: HashMap<TopicId, String>,
    wanted: Optional,
    output: SchemaRef,
}

/// Decodes records of `__consumer_offsets`. Input and output are record batches.
#[pyclass(frozen, module = "kafka_assignors._core")]
pub(crate) struct OffsetsTopic {
    settings: Arc<Settings>,
    input: Schema,
}

#[pymethods]
impl OffsetsTopic {
    /// `names` maps topic ids, in the form that Kafka prints, to topic names. `clients` adds client ids and hosts to
    /// the rows, `bytes` the bytes of unreadable records.
    #[new]
    fn new(names: HashMap<String, String>, clients: bool, bytes: bool) -> PyResult<Self> {
        let mut by_id = HashMap::with_capacity(names.len());
        for (id, name) in names {
            let parsed = parse_topic_id(&id).ok_or_else(|| {
                OptionError::new_err(format!("names has {id:?}, which is no topic id; give ids as Kafka prints them"))
            })?;
            by_id.insert(parsed, name);
        }
        let wanted = Optional { clients, bytes };
        let settings = Settings { names: by_id, wanted, output: Arc::new(tables::schema(wanted)) };
        Ok(Self { settings: Arc::new(settings), input: input() })
    }

    /// The rows of a table of records: an iterator of record batches, of commits or of other records. The table is not
    /// copied, and may have many batches: a stream of batches is imported faster than single ones. Decoding detaches from
    /// the interpreter, so other Python threads run meanwhile.
    fn decode(&self, py: Python<'_>, table: PyTable) -> PyResult<DecodedBatches> {
        let (mut batches, schema) = table.into_inner();
        check_schema(&schema, &self.input)?;
        // The offsets of an empty slice may be beyond its bytes.
        batches.retain(|batch| batch.num_rows() > 0);
        py.detach(|| {
            for column in batches.iter().flat_map(RecordBatch::columns) {
                // The offsets come from another library. The code below relies on this check: all are within the bytes.
                column.to_data().validate_full().map_err(|error| format!("the batch is damaged: {error}"))?;
            }
            let records = Records::new(&batches);
            let keys = records.parts.iter().flat_map(Part::keys);
            let epochs = Epochs::read(keys, |index| records.at(index));
            let settings = Arc::clone(&self.settings);
            Ok(DecodedBatches { settings, batches, epochs, next: 0, ready: VecDeque::new() })
        })
        .map_err(|error: String| TableError::new_err(error))
    }
}

/// See [`OffsetsTopic::decode`].
#[pyclass(module = "kafka_assignors._core")]
pub(crate) struct DecodedBatches {
    settings: Arc<Settings>,
    batches: Vec<RecordBatch>,
    epochs: Epochs,
    /// The index of the next record to read.
    next: usize,
    ready: VecDeque<RecordBatch>,
}

#[pymethods]
impl DecodedBatches {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        py.detach(|| self.fill()).map_err(TableError::new_err)?;
        self.ready.pop_front().map(|batch| PyRecordBatch::new(batch).into_pyarrow(py)).transpose()
    }
}

impl DecodedBatches {
    /// Reads records until a batch is ready or no record is left.
    fn fill(&mut self) -> Result<(), String> {
        let records = Records::new(&self.batches);
        while self.ready.is_empty() && self.next < records.len() {
            let left = records.len() - self.next;
            let (most, bytes) = (BATCH_BYTES / tables::ROW_BYTES, records.bytes_from(self.next));
            let mut tables = Tables::with_capacity(left.min(most), bytes.min(BATCH_BYTES));
            for part in &records.parts {
                while part.range().contains(&self.next) && tables.bytes() < BATCH_BYTES {
                    let record = part.at(self.next);
                    fetch(record.value.unwrap_or_default());
                    tables.begin(self.next, &record);
                    rows(record, self.epochs.of(self.next), |row| tables.push(&self.settings, &record, row));
                    self.next += 1;
                }
            }
            self.ready.extend(tables.finish(&self.settings, &records)?);
        }
        Ok(())
    }
}

/// Reads a byte of each cache line, so that the lines are fetched side by side. The lengths in a record depend on each other: the
/// decoder would wait for one line of a member after the other.
#[inline]
fn fetch(bytes: &[u8]) {
    if bytes.len() > LONG_RECORD {
        black_box(bytes.iter().step_by(CACHE_LINE).fold(0, |all, byte| all ^ byte));
    }
}

fn input() -> Schema {
    Schema::new(vec![
        field("key", DataType::Binary),
        field("value", DataType::Binary),
        field("partition", DataType::Int32),
        field("offset", DataType::Int64),
        field("timestamp", DataType::Int64),
    ])
}

/// The records of all batches, numbered from the first record of the first batch.
struct Records<'a> {
    parts: Vec<Part<'a>>,
}

impl<'a> Records<'a> {
    fn new(batches: &'a [RecordBatch]) -> Self {
        let mut start = 0;
        let part = |batch: &'a RecordBatch| {
            let part = Part::new(batch, start);
            start = part.range().end;
            part
        };
        Self { parts: batches.iter().map(part).collect() }
    }

    fn len(&self) -> usize {
        self.parts.last().map_or(0, |part| part.range().end)
    }

    /// The bytes of the values from this index on.
    fn bytes_from(&self, index: usize) -> usize {
        let bytes = |part: &Part<'_>| {
            let ends = part.values.value_offsets();
            let start = index.saturating_sub(part.start).min(part.keys.len());
            (ends[part.keys.len()] - ends[start]) as usize
        };
        self.parts.iter().map(bytes).sum()
    }

    fn at(&self, index: usize) -> Record<'a> {
        self.parts[self.parts.partition_point(|part| part.range().end <= index)].at(index)
    }
}

/// The columns of a batch.
struct Part<'a> {
    keys: &'a BinaryArray,
    values: &'a BinaryArray,
    partitions: &'a PrimitiveArray<Int32Type>,
    offsets: &'a PrimitiveArray<Int64Type>,
    timestamps: &'a PrimitiveArray<Int64Type>,
    /// The index of the first record.
    start: usize,
}

impl<'a> Part<'a> {
    fn new(batch: &'a RecordBatch, start: usize) -> Self {
        Self {
            keys: batch.column(0).as_binary(),
            values: batch.column(1).as_binary(),
            partitions: batch.column(2).as_primitive(),
            offsets: batch.column(3).as_primitive(),
            timestamps: batch.column(4).as_primitive(),
            start,
        }
    }

    fn keys(&self) -> impl Iterator<Item = Option<&'a [u8]>> {
        self.keys.iter()
    }

    #[inline]
    fn range(&self) -> Range<usize> {
        self.start..self.start + self.keys.len()
    }

    #[inline]
    fn at(&self, index: usize) -> Record<'a> {
        let row = index - self.start;
        Record {
            key: self.keys.is_valid(row).then(|| self.keys.value(row)),
            value: self.values.is_valid(row).then(|| self.values.value(row)),
            partition: self.partitions.is_valid(row).then(|| self.partitions.value(row)),
            offset: self.offsets.is_valid(row).then(|| self.offsets.value(row)),
            timestamp: self.timestamps.is_valid(row).then(|| self.timestamps.value(row)),
        }
    }
}
