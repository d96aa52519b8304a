//! The results of a replay, collected as Arrow columns.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, Int32Builder, Int64Builder, ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema, SchemaRef};
use kafka_assignors_core::planning::replay::{Figures, RebalanceCause, RebalanceOutcome};

use super::histories::Key;
use super::{field, list};

/// Converts a number to the column's type. A number out of range becomes `largest`.
fn fit<T: TryFrom<V>, V>(value: V, largest: T) -> T {
    T::try_from(value).unwrap_or(largest)
}

fn made(schema: &SchemaRef, columns: Vec<ArrayRef>) -> Result<RecordBatch, String> {
    RecordBatch::try_new(Arc::clone(schema), columns).map_err(|error| error.to_string())
}

/// Rows of the table `rebalances`.
#[derive(Default)]
pub(super) struct Rebalances {
    texts: [StringBuilder; 5],
    ints: [Int32Builder; 7],
    longs: [Int64Builder; 8],
    doubles: [Float64Builder; 4],
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
        self.ints[0].append_value(row.generation);
        self.longs[0].append_value(row.seq);
        self.longs[1].append_value(row.ts);
        let Some(Figures {
            members,
            partitions,
            assigned,
            min_count,
            max_count,
            balance_score,
            moved,
            moved_needed,
            max_lag,
            mean_lag,
            lag_skew,
            copartition_violations,
            ownerless_ms,
            loads,
        }) = row.figures
        else {
            self.ints[1..].iter_mut().for_each(Int32Builder::append_null);
            self.longs[2..].iter_mut().for_each(Int64Builder::append_null);
            return self.doubles.iter_mut().for_each(Float64Builder::append_null);
        };
        let counts = [members, partitions, assigned, min_count, max_count, copartition_violations];
        for (column, count) in self.ints[1..].iter_mut().zip(counts) {
            column.append_value(fit(count, i32::MAX));
        }
        let longs = [
            fit(balance_score, i64::MAX),
            fit(moved, i64::MAX),
            fit(moved_needed, i64::MAX),
            fit(max_lag, i64::MAX),
            fit(row.kernel_ns, i64::MAX),
        ];
        for (column, value) in self.longs[2..].iter_mut().zip(longs) {
            column.append_value(value);
        }
        self.longs[7].append_option(ownerless_ms.map(|sum| fit(sum, i64::MAX)));
        let (worst, bound) = loads.map(|loads| (loads.worst, loads.bound)).unzip();
        for (column, value) in self.doubles.iter_mut().zip([Some(mean_lag), Some(lag_skew), worst, bound]) {
            column.append_option(value);
        }
    }

    /// Adds a row without figures: the group could not be replayed because of `error`, or was not replayed.
    pub(super) fn push_error(&mut self, [cluster, group_id]: Key<'_>, error: Option<&str>) {
        self.push_texts([cluster, group_id, None, None, error]);
        self.ints.iter_mut().for_each(Int32Builder::append_null);
        self.longs.iter_mut().for_each(Int64Builder::append_null);
        self.doubles.iter_mut().for_each(Float64Builder::append_null);
    }

    fn push_texts(&mut self, values: [Option<&str>; 5]) {
        for (column, value) in self.texts.iter_mut().zip(values) {
            column.append_option(value);
        }
    }

    pub(super) fn finish(self, schema: &SchemaRef) -> Result<RecordBatch, String> {
        let [cluster, group_id, label, cause, error] =
            self.texts.map(|mut column| Arc::new(column.finish()) as ArrayRef);
        let [generation, members, partitions, assigned, min_count, max_count, violations] =
            self.ints.map(|mut column| Arc::new(column.finish()) as ArrayRef);
        let [seq, ts, balance_score, moved, moved_needed, max_lag, kernel_ns, ownerless_ms] =
            self.longs.map(|mut column| Arc::new(column.finish()) as ArrayRef);
        let [mean_lag, lag_skew, worst_load, load_bound] =
            self.doubles.map(|mut column| Arc::new(column.finish()) as ArrayRef);
        let columns = vec![
            cluster,
            group_id,
            label,
            seq,
            ts,
            generation,
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
            mean_lag,
            lag_skew,
            worst_load,
            load_bound,
            violations,
            kernel_ns,
            error,
            ownerless_ms,
        ];
        made(schema, columns)
    }
}

/// Rows of the table `assignments`.
#[derive(Default)]
pub(super) struct AssignmentRows {
    texts: [StringBuilder; 5],
    longs: [Int64Builder; 2],
    generations: Int32Builder,
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
            column.append_option(value);
        }
        self.longs[0].append_value(row.seq);
        self.longs[1].append_value(row.ts);
        self.generations.append_value(row.generation);
        self.partitions.extend_from_slice(numbers);
        self.ends.push(self.partitions.len());
    }

    /// The number of rows plus the number of partitions in them, up to now.
    pub(super) fn size(&self) -> usize {
        self.ends.len() + self.partitions.len()
    }

    pub(super) fn finish(mut self, schema: &SchemaRef) -> Result<RecordBatch, String> {
        let [cluster, group_id, label, member_id, topic] =
            self.texts.map(|mut column| Arc::new(column.finish()) as ArrayRef);
        let [seq, ts] = self.longs.map(|mut column| Arc::new(column.finish()) as ArrayRef);
        let generation = Arc::new(self.generations.finish()) as ArrayRef;
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
