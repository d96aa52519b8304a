//! Decodes records of `__consumer_offsets` into rows of tables. All tables share one wide row type, whose column
//! `table` contains the number of the table.

mod columns;
mod tables;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, BinaryArray, PrimitiveArray, RecordBatch};
use arrow_schema::{DataType, Schema, SchemaRef};
use kafka_assignors_core::offsets_topic::{Epochs, Record, parse_topic_id, rows};
use kafka_assignors_core::protocol::TopicId;
use pyo3::prelude::*;
use pyo3_arrow::PyRecordBatch;

use self::tables::Tables;
use super::{check_schema, field};
use crate::errors::{OptionError, TableError};

/// The approximate size of an output batch.
const BATCH_BYTES: usize = 64 << 20;

/// The settings of all batches.
struct Settings {
    names: HashMap<TopicId, String>,
    clients: bool,
    bytes: bool,
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
        let settings = Settings { names: by_id, clients, bytes, output: Arc::new(tables::schema(clients, bytes)) };
        Ok(Self { settings: Arc::new(settings), input: input() })
    }

    /// The rows of a batch of records: an iterator of record batches, each of one table. Decoding detaches from the
    /// interpreter, so other Python threads run meanwhile.
    fn decode(&self, py: Python<'_>, batch: PyRecordBatch) -> PyResult<DecodedBatches> {
        let batch = batch.into_inner();
        check_schema(&batch, &self.input)?;
        py.detach(|| {
            for column in batch.columns() {
                // The offsets come from another library. The code below relies on this check: all are within the bytes.
                column.to_data().validate_full().map_err(|error| format!("the batch is damaged: {error}"))?;
            }
            let records = Records::new(&batch);
            let epochs = Epochs::read(batch.num_rows(), |row| records.key(row), |row| records.at(row));
            let settings = Arc::clone(&self.settings);
            Ok(DecodedBatches { settings, batch: batch.clone(), epochs, next: 0, ready: VecDeque::new() })
        })
        .map_err(|error: String| TableError::new_err(error))
    }
}

/// See [`OffsetsTopic::decode`].
#[pyclass(module = "kafka_assignors._core")]
pub(crate) struct DecodedBatches {
    settings: Arc<Settings>,
    batch: RecordBatch,
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
        let records = Records::new(&self.batch);
        while self.ready.is_empty() && self.next < self.batch.num_rows() {
            let left = self.batch.num_rows() - self.next;
            let mut tables = Tables::with_capacity(left.min(BATCH_BYTES / tables::ROW_BYTES));
            while self.next < self.batch.num_rows() && tables.bytes() < BATCH_BYTES {
                let record = records.at(self.next);
                tables.begin(self.next, &record);
                rows(record, self.epochs.of(self.next), |row| tables.push(&self.settings, &record, row));
                self.next += 1;
            }
            self.ready.extend(tables.finish(&self.settings.output, &records)?);
        }
        Ok(())
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

/// The columns of a batch.
struct Records<'a> {
    keys: &'a BinaryArray,
    values: &'a BinaryArray,
    partitions: &'a PrimitiveArray<Int32Type>,
    offsets: &'a PrimitiveArray<Int64Type>,
    timestamps: &'a PrimitiveArray<Int64Type>,
}

impl<'a> Records<'a> {
    fn new(batch: &'a RecordBatch) -> Self {
        Self {
            keys: batch.column(0).as_binary(),
            values: batch.column(1).as_binary(),
            partitions: batch.column(2).as_primitive(),
            offsets: batch.column(3).as_primitive(),
            timestamps: batch.column(4).as_primitive(),
        }
    }

    #[inline]
    fn key(&self, row: usize) -> Option<&'a [u8]> {
        self.keys.is_valid(row).then(|| self.keys.value(row))
    }

    #[inline]
    fn at(&self, row: usize) -> Record<'a> {
        Record {
            key: self.key(row),
            value: self.values.is_valid(row).then(|| self.values.value(row)),
            partition: self.partitions.is_valid(row).then(|| self.partitions.value(row)),
            offset: self.offsets.is_valid(row).then(|| self.offsets.value(row)),
            timestamp: self.timestamps.is_valid(row).then(|| self.timestamps.value(row)),
        }
    }
}
