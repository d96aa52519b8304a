//! Reads the histories of groups from record batches: one row for each group, with lists of events, partition counts,
//! lags and observed assignments.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Schema};
use kafka_assignors_core::planning::replay::{CountChange, GroupEvent, History, Kind, LagChange, ObservedPartitions};

use super::{Rows, field, list, list_of_structs, text};

/// The columns of a batch of histories.
pub(super) fn schema() -> Schema {
    Schema::new(vec![
        field("cluster", DataType::Utf8),
        field("group_id", DataType::Utf8),
        field(
            "events",
            list_of_structs(vec![
                field("seq", DataType::Int64),
                field("ts", DataType::Int64),
                field("kind", DataType::Utf8),
                field("member_id", DataType::Utf8),
                field("instance_id", DataType::Utf8),
                field("topics", list(DataType::Utf8)),
                field("generation", DataType::Int32),
            ]),
        ),
        field(
            "counts",
            list_of_structs(vec![
                field("ts", DataType::Int64),
                field("topic", DataType::Utf8),
                field("partition_count", DataType::Int32),
            ]),
        ),
        field(
            "lags",
            list_of_structs(vec![
                field("ts", DataType::Int64),
                field("topic", DataType::Utf8),
                field("partition", DataType::Int32),
                field("lag", DataType::Int64),
            ]),
        ),
        field(
            "observed",
            list_of_structs(vec![
                field("generation", DataType::Int32),
                field("member_id", DataType::Utf8),
                field("topic", DataType::Utf8),
                field("partitions", list(DataType::Int32)),
            ]),
        ),
    ])
}

/// Cluster and group id; `None` where the batch has a null.
pub(super) type Key<'a> = [Option<&'a str>; 2];

/// The key of a row, and the error if the key is invalid.
pub(super) fn key(batch: &RecordBatch, row: usize) -> (Key<'_>, Result<(), String>) {
    let mut problem = Ok(());
    let key = [(0, "cluster"), (1, "group_id")].map(|(column, name)| {
        let found = text(batch.column(column).as_string(), row);
        let missing = if matches!(found, Ok(None)) { Some("is null".to_owned()) } else { found.clone().err() };
        if problem.is_ok()
            && let Some(missing) = missing
        {
            problem = Err(format!("{name} {missing}"));
        }
        found.unwrap_or_default()
    });
    (key, problem)
}

/// A batch that has [`schema`].
pub(super) struct Histories<'a> {
    events: Rows<'a>,
    counts: Rows<'a>,
    lags: Rows<'a>,
    observed: Rows<'a>,
}

impl<'a> Histories<'a> {
    pub(super) fn new(batch: &'a RecordBatch) -> Self {
        Self {
            events: Rows::new(batch, 2, "events"),
            counts: Rows::new(batch, 3, "counts"),
            lags: Rows::new(batch, 4, "lags"),
            observed: Rows::new(batch, 5, "observed"),
        }
    }

    /// The history of a row, in O(items). It borrows from the batch; `topics` is the buffer for the topic names of the
    /// events.
    pub(super) fn read<'b>(&'b self, row: usize, topics: &'b mut Vec<&'a str>) -> Result<History<'b>, String> {
        let lists = self.events.lists(5);
        let names = lists.values().as_string::<i32>();
        let mut bounds = Vec::new();
        for item in self.events.of(row)? {
            let start = topics.len();
            for at in item.bounds(lists, "topics")? {
                topics.push(
                    text(names, at)
                        .and_then(|name| name.ok_or_else(|| "is null".to_owned()))
                        .map_err(|error| item.problem("topics[]", &error))?,
                );
            }
            bounds.push(start..topics.len());
        }
        let topics: &'b [&'b str] = topics;
        let (seq, ts) = (self.events.numbers::<Int64Type>(0), self.events.numbers::<Int64Type>(1));
        let (kinds, ids, instances) = (self.events.texts(2), self.events.texts(3), self.events.texts(4));
        let generations = self.events.numbers::<Int32Type>(6);
        let mut events = Vec::with_capacity(bounds.len());
        for (item, bounds) in self.events.of(row)?.zip(bounds) {
            let kind = match item.text(kinds, "kind")? {
                "join" => Kind::Join,
                "leave" => Kind::Leave,
                "subscribe" => Kind::Subscribe,
                "snapshot" => Kind::Snapshot,
                other => {
                    let what = format!("is {other:?}; known are 'join', 'leave', 'subscribe' and 'snapshot'");
                    return Err(item.problem("kind", &what));
                }
            };
            let member_id = match item.optional_text(ids, "member_id")? {
                Some(member_id) => member_id,
                // A snapshot of an empty group has no member.
                None if kind == Kind::Snapshot => "",
                None => return Err(item.problem("member_id", "is null")),
            };
            events.push(GroupEvent {
                seq: item.number(seq, "seq")?,
                kind,
                member_id,
                instance_id: item.optional_text(instances, "instance_id")?.unwrap_or_default(),
                ts: item.number(ts, "ts")?,
                generation: item.optional_number(generations),
                topics: &topics[bounds],
            });
        }
        let (counts, lags) = (self.counts(row)?, self.lags(row)?);
        Ok(History { events, counts, lags, observed: self.observed(row)?, counts_wait: false })
    }

    fn counts(&self, row: usize) -> Result<Vec<CountChange<'_>>, String> {
        let (ts, topics) = (self.counts.numbers::<Int64Type>(0), self.counts.texts(1));
        let partitions = self.counts.numbers::<Int32Type>(2);
        let changes = self.counts.of(row)?.map(|item| {
            Ok(CountChange {
                ts: item.number(ts, "ts")?,
                topic: item.text(topics, "topic")?,
                partitions: i64::from(item.number(partitions, "partition_count")?),
            })
        });
        changes.collect()
    }

    fn lags(&self, row: usize) -> Result<Vec<LagChange<'_>>, String> {
        let (ts, topics) = (self.lags.numbers::<Int64Type>(0), self.lags.texts(1));
        let (partitions, lags) = (self.lags.numbers::<Int32Type>(2), self.lags.numbers::<Int64Type>(3));
        let changes = self.lags.of(row)?.map(|item| {
            Ok(LagChange {
                ts: item.number(ts, "ts")?,
                topic: item.text(topics, "topic")?,
                partition: item.number(partitions, "partition")?,
                lag: item.number(lags, "lag")?,
            })
        });
        changes.collect()
    }

    fn observed(&self, row: usize) -> Result<Vec<ObservedPartitions<'_>>, String> {
        let (generations, ids) = (self.observed.numbers::<Int32Type>(0), self.observed.texts(1));
        let (topics, lists) = (self.observed.texts(2), self.observed.lists(3));
        let numbers = lists.values().as_primitive::<Int32Type>();
        let assigned = self.observed.of(row)?.map(|item| {
            let bounds = item.bounds(lists, "partitions")?;
            if numbers.null_count() > 0 && bounds.clone().any(|at| numbers.is_null(at)) {
                return Err(item.problem("partitions[]", "is null"));
            }
            Ok(ObservedPartitions {
                generation: item.number(generations, "generation")?,
                member_id: item.text(ids, "member_id")?,
                topic: item.text(topics, "topic")?,
                partitions: &numbers.values()[bounds],
            })
        });
        assigned.collect()
    }
}
