//! The results of a replay, collected as Arrow columns.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::types::{ArrowPrimitiveType, Float64Type, Int32Type, Int64Type};
use arrow_array::{ArrayRef, PrimitiveArray, RecordBatch};
use arrow_buffer::{NullBuffer, NullBufferBuilder};
use arrow_schema::{DataType, Schema, SchemaRef};
use kafka_assignors_core::planning::replay::{Figures, RebalanceCause, RebalanceOutcome};

use super::columns::{Column, Texts};
use super::histories::Key;
use super::{field, list};

/// Converts a number to the column's type. A number out of range becomes `largest`.
fn fit<T: TryFrom<V>, V>(value: V, largest: T) -> T {
    T::try_from(value).unwrap_or(largest)
}

fn made(schema: &SchemaRef, columns: Vec<ArrayRef>) -> Result<RecordBatch, String> {
    RecordBatch::try_new(Arc::clone(schema), columns).map_err(|error| error.to_string())
}

/// A column of numbers. Those of the rows that are not `valid` are null.
fn numbers<T: ArrowPrimitiveType>(values: Vec<T::Native>, valid: &Option<NullBuffer>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(values.into(), valid.clone()))
}

/// Rows of the table `rebalances`.
pub(super) struct Rebalances {
    texts: [Texts; 5],
    ints: [Vec<i32>; 7],
    longs: [Vec<i64>; 8],
    doubles: [Vec<f64>; 4],
    /// Whether a row is a rebalance; if not, all its numbers are null.
    replayed: NullBufferBuilder,
    /// Whether a row has figures.
    measured: NullBufferBuilder,
    /// Whether a row has weighted loads.
    weighed: NullBufferBuilder,
    /// Whether a row has a time without owners.
    timed: NullBufferBuilder,
}

impl Default for Rebalances {
    fn default() -> Self {
        let [replayed, measured, weighed, timed] = [(); 4].map(|()| NullBufferBuilder::new(0));
        let (texts, ints, longs, doubles) = Default::default();
        Self { texts, ints, longs, doubles, replayed, measured, weighed, timed }
    }
}

impl Rebalances {
    pub(super) fn schema() -> Schema {
        let columns = [
            ("cluster", DataType::Utf8),
            ("group_id", DataType::Utf8),
            ("strategy", DataType::Utf8),
            ("seq", DataType::Int64),
            ("ts", DataType::Int64),
            ("generation", DataType::Int32),
            ("cause", DataType::Utf8),
            ("members", DataType::Int32),
            ("partitions", DataType::Int32),
            ("assigned", DataType::Int32),
            ("min_count", DataType::Int32),
            ("max_count", DataType::Int32),
            ("balance_score", DataType::Int64),
            ("moved", DataType::Int64),
            ("moved_needed", DataType::Int64),
            ("max_lag", DataType::Int64),
            ("mean_lag", DataType::Float64),
            ("lag_skew", DataType::Float64),
            ("worst_load", DataType::Float64),
            ("load_bound", DataType::Float64),
            ("copartition_violations", DataType::Int32),
            ("kernel_ns", DataType::Int64),
            ("error", DataType::Utf8),
            ("ownerless_ms", DataType::Int64),
        ];
        Schema::new(columns.map(|(name, data_type)| field(name, data_type)).to_vec())
    }

    pub(super) fn push(&mut self, [cluster, group_id]: Key<'_>, label: &str, row: &RebalanceOutcome) {
        let cause = match row.cause {
            RebalanceCause::Members => "members",
            RebalanceCause::Partitions => "partitions",
        };
        self.push_texts([cluster, group_id, Some(label), Some(cause), row.error.as_deref()]);
        self.replayed.append_non_null();
        self.push_numbers(row.generation, [row.seq, row.ts], row.kernel_ns, row.figures.as_ref());
    }

    /// Adds a row without figures: the group could not be replayed because of `error`, or was not replayed.
    pub(super) fn push_error(&mut self, [cluster, group_id]: Key<'_>, error: Option<&str>) {
        self.push_texts([cluster, group_id, None, None, error]);
        self.replayed.append_null();
        self.push_numbers(0, [0, 0], 0, None);
    }

    fn push_numbers(&mut self, generation: i32, [seq, ts]: [i64; 2], kernel_ns: u64, figures: Option<&Figures>) {
        self.measured.append(figures.is_some());
        let figures = figures.copied().unwrap_or_default();
        let Figures { members, partitions, assigned, min_count, max_count, copartition_violations, .. } = figures;
        let counts = [members, partitions, assigned, min_count, max_count, copartition_violations];
        let [generations, columns @ ..] = &mut self.ints;
        generations.push(generation);
        for (column, count) in columns.iter_mut().zip(counts) {
            column.push(fit(count, i32::MAX));
        }
        let longs = [
            seq,
            ts,
            fit(figures.balance_score, i64::MAX),
            fit(figures.moved, i64::MAX),
            fit(figures.moved_needed, i64::MAX),
            fit(figures.max_lag, i64::MAX),
            fit(kernel_ns, i64::MAX),
            fit(figures.ownerless_ms.unwrap_or(0), i64::MAX),
        ];
        for (column, value) in self.longs.iter_mut().zip(longs) {
            column.push(value);
        }
        self.timed.append(figures.ownerless_ms.is_some());
        let (worst, bound) = figures.loads.map_or((0.0, 0.0), |loads| (loads.worst, loads.bound));
        for (column, value) in self.doubles.iter_mut().zip([figures.mean_lag, figures.lag_skew, worst, bound]) {
            column.push(value);
        }
        self.weighed.append(figures.loads.is_some());
    }

    fn push_texts(&mut self, values: [Option<&str>; 5]) {
        for (column, value) in self.texts.iter_mut().zip(values) {
            column.push_option(value);
        }
    }

    pub(super) fn finish(self, schema: &SchemaRef) -> Result<RecordBatch, String> {
        let [cluster, group_id, label, cause, error] = self.texts.map(Column::finish);
        let [replayed, measured, weighed, timed] =
            [self.replayed, self.measured, self.weighed, self.timed].map(NullBufferBuilder::build);
        let [generation, ints @ ..] = self.ints;
        let [members, partitions, assigned, min_count, max_count, violations] =
            ints.map(|column| numbers::<Int32Type>(column, &measured));
        let [seq, ts, longs @ .., ownerless_ms] = self.longs;
        let [balance_score, moved, moved_needed, max_lag, kernel_ns] =
            longs.map(|column| numbers::<Int64Type>(column, &measured));
        let [mean_lag, lag_skew, worst_load, load_bound] = self.doubles;
        let columns = vec![
            cluster,
            group_id,
            label,
            numbers::<Int64Type>(seq, &replayed),
            numbers::<Int64Type>(ts, &replayed),
            numbers::<Int32Type>(generation, &replayed),
            cause,
            members,
            partitions,
            assigned,
            min_count,
            max_count,
            balance_score,
            moved,
            moved_needed,
            max_lag,
            numbers::<Float64Type>(mean_lag, &measured),
            numbers::<Float64Type>(lag_skew, &measured),
            numbers::<Float64Type>(worst_load, &weighed),
            numbers::<Float64Type>(load_bound, &weighed),
            violations,
            kernel_ns,
            error,
            numbers::<Int64Type>(ownerless_ms, &timed),
        ];
        made(schema, columns)
    }
}

/// Rows of the table `assignments`.
#[derive(Default)]
pub(super) struct AssignmentRows {
    texts: [Texts; 5],
    longs: [Vec<i64>; 2],
    generations: Vec<i32>,
    partitions: Vec<i32>,
    ends: Vec<usize>,
}

impl AssignmentRows {
    pub(super) fn schema() -> Schema {
        let columns = [
            ("cluster", DataType::Utf8),
            ("group_id", DataType::Utf8),
            ("strategy", DataType::Utf8),
            ("seq", DataType::Int64),
            ("ts", DataType::Int64),
            ("generation", DataType::Int32),
            ("member_id", DataType::Utf8),
            ("topic", DataType::Utf8),
            ("partitions", list(DataType::Int32)),
        ];
        Schema::new(columns.map(|(name, data_type)| field(name, data_type)).to_vec())
    }

    pub(super) fn push(
        &mut self,
        [cluster, group_id]: Key<'_>,
        label: &str,
        row: &RebalanceOutcome,
        member_id: &str,
        topic: &str,
        numbers: &[i32],
    ) {
        let texts = [cluster, group_id, Some(label), Some(member_id), Some(topic)];
        for (column, value) in self.texts.iter_mut().zip(texts) {
            column.push_option(value);
        }
        self.longs[0].push(row.seq);
        self.longs[1].push(row.ts);
        self.generations.push(row.generation);
        self.partitions.extend_from_slice(numbers);
        self.ends.push(self.partitions.len());
    }

    /// The number of rows plus the number of partitions in them, up to now.
    pub(super) fn size(&self) -> usize {
        self.ends.len() + self.partitions.len()
    }

    pub(super) fn finish(self, schema: &SchemaRef) -> Result<RecordBatch, String> {
        let [cluster, group_id, label, member_id, topic] = self.texts.map(Column::finish);
        let [seq, ts] = self.longs.map(|column| numbers::<Int64Type>(column, &None));
        let generation = self.generations.finish();
        let mut lists = ListBuilder::new(Int32Builder::with_capacity(self.partitions.len()))
            .with_field(field("element", DataType::Int32));
        let mut start = 0;
        for end in self.ends {
            lists.values().append_slice(&self.partitions[start..end]);
            lists.append(true);
            start = end;
        }
        let partitions = Arc::new(lists.finish()) as ArrayRef;
        made(schema, vec![cluster, group_id, label, seq, ts, generation, member_id, topic, partitions])
    }
}
