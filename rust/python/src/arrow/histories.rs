//! Reads the histories of groups from record batches: one row for each group, with lists of events, partition counts,
//! lags and observed assignments.

use arrow_array::cast::AsArray;
use arrow_array::{Array, Int32Array, Int64Array, ListArray, RecordBatch};
use arrow_schema::{DataType, Schema};
use kafka_assignors_core::planning::replay::{CountChange, GroupEvent, History, Kind, LagChange, ObservedPartitions};

use super::{Item, Rows, TextColumn, field, list, list_of_structs};

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

/// The keys of a batch that has [`schema`].
pub(super) struct Keys<'a> {
    columns: [(&'static str, TextColumn<'a>); 2],
}

impl<'a> Keys<'a> {
    pub(super) fn new(batch: &'a RecordBatch) -> Self {
        let column = |at: usize| TextColumn::new(batch.column(at).as_string());
        Self { columns: [("cluster", column(0)), ("group_id", column(1))] }
    }

    /// The key of a row, and the error if the key is invalid.
    pub(super) fn of(&self, row: usize) -> (Key<'a>, Result<(), String>) {
        let mut problem = Ok(());
        let key = self.columns.map(|(name, texts)| {
            let found = texts.get(row);
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
}

/// The histories of a batch that has [`schema`].
pub(super) struct Histories<'a> {
    events: EventColumns<'a>,
    counts: CountColumns<'a>,
    lags: LagColumns<'a>,
    observed: ObservedColumns<'a>,
}

impl<'a> Histories<'a> {
    pub(super) fn new(batch: &'a RecordBatch) -> Self {
        Self {
            events: EventColumns::new(Rows::new(batch, 2, "events")),
            counts: CountColumns::new(Rows::new(batch, 3, "counts")),
            lags: LagColumns::new(Rows::new(batch, 4, "lags")),
            observed: ObservedColumns::new(Rows::new(batch, 5, "observed")),
        }
    }

    /// The history of a row, in O(items). It borrows from the batch; `topics` is the buffer for the topic names of the
    /// events, and of one row at a time.
    pub(super) fn read<'b>(&'b self, row: usize, topics: &'b mut Vec<&'a str>) -> Result<History<'b>, String> {
        Ok(History {
            events: self.events.of(row, topics)?,
            counts: self.counts.of(row)?,
            lags: self.lags.of(row)?,
            observed: self.observed.of(row)?,
            counts_wait: false,
        })
    }
}

struct EventColumns<'a> {
    rows: Rows<'a>,
    seq: &'a Int64Array,
    ts: &'a Int64Array,
    kinds: TextColumn<'a>,
    member_ids: TextColumn<'a>,
    instance_ids: TextColumn<'a>,
    topics: &'a ListArray,
    names: TextColumn<'a>,
    generations: &'a Int32Array,
}

impl<'a> EventColumns<'a> {
    fn new(rows: Rows<'a>) -> Self {
        let topics = rows.lists(5);
        Self {
            seq: rows.numbers(0),
            ts: rows.numbers(1),
            kinds: rows.texts(2),
            member_ids: rows.texts(3),
            instance_ids: rows.texts(4),
            topics,
            names: TextColumn::new(topics.values().as_string()),
            generations: rows.numbers(6),
            rows,
        }
    }

    /// The events of a row, whose topics are written to the buffer `topics`.
    fn of<'b>(&'b self, row: usize, topics: &'b mut Vec<&'a str>) -> Result<Vec<GroupEvent<'b>>, String> {
        let items = self.rows.of(row)?;
        let mut ends = Vec::with_capacity(items.len());
        topics.clear();
        for item in items {
            for at in item.bounds(self.topics, "topics")? {
                let name = self.names.get(at).and_then(|name| name.ok_or_else(|| "is null".to_owned()));
                topics.push(name.map_err(|error| item.problem("topics[]", &error))?);
            }
            ends.push(topics.len());
        }
        let topics: &'b [&'b str] = topics;
        let (mut events, mut start) = (Vec::with_capacity(ends.len()), 0);
        for (item, end) in self.rows.of(row)?.zip(ends) {
            events.push(self.event(item, &topics[start..end])?);
            start = end;
        }
        Ok(events)
    }

    fn event<'b>(&'b self, item: Item<'_>, topics: &'b [&'b str]) -> Result<GroupEvent<'b>, String> {
        let kind = match item.text(self.kinds, "kind")? {
            "join" => Kind::Join,
            "leave" => Kind::Leave,
            "subscribe" => Kind::Subscribe,
            "snapshot" => Kind::Snapshot,
            other => {
                let what = format!("is {other:?}; known are 'join', 'leave', 'subscribe' and 'snapshot'");
                return Err(item.problem("kind", &what));
            }
        };
        let member_id = match item.optional_text(self.member_ids, "member_id")? {
            Some(member_id) => member_id,
            // A snapshot of an empty group has no member.
            None if kind == Kind::Snapshot => "",
            None => return Err(item.problem("member_id", "is null")),
        };
        Ok(GroupEvent {
            seq: item.number(self.seq, "seq")?,
            kind,
            member_id,
            instance_id: item.optional_text(self.instance_ids, "instance_id")?.unwrap_or_default(),
            ts: item.number(self.ts, "ts")?,
            generation: item.optional_number(self.generations),
            topics,
        })
    }
}

struct CountColumns<'a> {
    rows: Rows<'a>,
    ts: &'a Int64Array,
    topics: TextColumn<'a>,
    partitions: &'a Int32Array,
}

impl<'a> CountColumns<'a> {
    fn new(rows: Rows<'a>) -> Self {
        Self { ts: rows.numbers(0), topics: rows.texts(1), partitions: rows.numbers(2), rows }
    }

    fn of(&self, row: usize) -> Result<Vec<CountChange<'_>>, String> {
        let changes = self.rows.of(row)?.map(|item| {
            Ok(CountChange {
                ts: item.number(self.ts, "ts")?,
                topic: item.text(self.topics, "topic")?,
                partitions: i64::from(item.number(self.partitions, "partition_count")?),
            })
        });
        changes.collect()
    }
}

struct LagColumns<'a> {
    rows: Rows<'a>,
    ts: &'a Int64Array,
    topics: TextColumn<'a>,
    partitions: &'a Int32Array,
    lags: &'a Int64Array,
}

impl<'a> LagColumns<'a> {
    fn new(rows: Rows<'a>) -> Self {
        let (partitions, lags) = (rows.numbers(2), rows.numbers(3));
        Self { ts: rows.numbers(0), topics: rows.texts(1), partitions, lags, rows }
    }

    fn of(&self, row: usize) -> Result<Vec<LagChange<'_>>, String> {
        let changes = self.rows.of(row)?.map(|item| {
            Ok(LagChange {
                ts: item.number(self.ts, "ts")?,
                topic: item.text(self.topics, "topic")?,
                partition: item.number(self.partitions, "partition")?,
                lag: item.number(self.lags, "lag")?,
            })
        });
        changes.collect()
    }
}

struct ObservedColumns<'a> {
    rows: Rows<'a>,
    generations: &'a Int32Array,
    member_ids: TextColumn<'a>,
    topics: TextColumn<'a>,
    partitions: &'a ListArray,
    numbers: &'a Int32Array,
}

impl<'a> ObservedColumns<'a> {
    fn new(rows: Rows<'a>) -> Self {
        let partitions = rows.lists(3);
        Self {
            generations: rows.numbers(0),
            member_ids: rows.texts(1),
            topics: rows.texts(2),
            partitions,
            numbers: partitions.values().as_primitive(),
            rows,
        }
    }

    fn of(&self, row: usize) -> Result<Vec<ObservedPartitions<'_>>, String> {
        let assigned = self.rows.of(row)?.map(|item| {
            let bounds = item.bounds(self.partitions, "partitions")?;
            if self.numbers.null_count() > 0 && bounds.clone().any(|at| self.numbers.is_null(at)) {
                return Err(item.problem("partitions[]", "is null"));
            }
            Ok(ObservedPartitions {
                generation: item.number(self.generations, "generation")?,
                member_id: item.text(self.member_ids, "member_id")?,
                topic: item.text(self.topics, "topic")?,
                partitions: &self.numbers.values()[bounds],
            })
        });
        assigned.collect()
    }
}
