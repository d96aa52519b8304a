//! The decoded records as Arrow columns: a row for each record.
//!
//! A commit has columns of its own. The rows of the other tables are in lists, one list for each table: 50 members of a
//! group are the items of a list in one row, since Spark pays for each row, and each column in it, more than for an item.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, Int64Builder};
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, ArrayRef, Int64Array, PrimitiveArray, RecordBatch};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::{DataType, Fields, Schema};
use kafka_assignors_core::offsets_topic::{Commit, EventKind, Record, Row, topic_id_characters};
use kafka_assignors_core::protocol::Utf8;

use super::super::columns::{Column, ListEnds, Texts, full_list};
use super::super::field;
use super::items::{Assignments, Matched, Members, Named, PerRecord, Rejections, in_order, structs, text};
use super::{Optional, Part, Records, Settings};

/// An estimate of the memory that a row of a table takes without its texts and lists.
pub(super) const ROW_BYTES: usize = 200;

/// The columns of the rows.
///
/// Most records are offset commits, and Spark pays for each column in each row, null or not. Therefore one struct
/// contains all fields that a commit lacks. The struct is the only item of a list: the fields of a null struct would
/// take as many bytes as those of any other, and those of a null list take none.
pub(super) fn schema(wanted: Optional) -> Schema {
    Schema::new(vec![
        field("src_partition", DataType::Int32),
        field("src_offset", DataType::Int64),
        field("ts", DataType::Int64),
        text("group_id"),
        text("topic"),
        text("topic_id"),
        field("partition", DataType::Int32),
        field("committed", DataType::Int64),
        field("leader_epoch", DataType::Int32),
        field("rest", full_list(DataType::Struct(rest(wanted)))),
    ])
}

/// The fields that a commit lacks.
fn rest(wanted: Optional) -> Fields {
    Fields::from(vec![
        text("kind"),
        field("generation", DataType::Int32),
        text("protocol"),
        PerRecord::<Members>::field("members", wanted),
        PerRecord::<Assignments>::field("assignments", wanted),
        PerRecord::<Matched>::field("matches", wanted),
        PerRecord::<Rejections>::field("rejected", wanted),
    ])
}

/// The record and the group of each row.
#[derive(Default)]
struct Place {
    /// The index of each row's record in the input.
    records: Vec<usize>,
    groups: Texts,
}

impl Place {
    fn with_capacity(rows: usize) -> Self {
        Self { records: Vec::with_capacity(rows), groups: Texts::with_capacity(rows) }
    }

    #[inline]
    fn push(&mut self, record: usize, group: Option<Utf8<'_>>) {
        self.records.push(record);
        self.groups.push_option(group);
    }

    /// A column of the input: the value of each row's record. The rows are in the order of their records.
    fn of<T: ArrowPrimitiveType>(
        &self,
        input: &Records<'_>,
        column: for<'p> fn(&Part<'p>) -> &'p PrimitiveArray<T>,
    ) -> ArrayRef {
        let mut values = Vec::with_capacity(self.records.len());
        let mut valid = NullBufferBuilder::new(self.records.len());
        let mut rest = self.records.as_slice();
        for part in &input.parts {
            let (of_part, others) = rest.split_at(rest.partition_point(|&record| record < part.range().end));
            let column = column(part);
            values.extend(of_part.iter().map(|record| column.values()[record - part.start]));
            match column.nulls() {
                None => valid.append_n_non_nulls(of_part.len()),
                Some(nulls) => of_part.iter().for_each(|record| valid.append(nulls.is_valid(record - part.start))),
            }
            rest = others;
        }
        Arc::new(PrimitiveArray::<T>::new(values.into(), valid.build()))
    }

    /// The rows as a batch; the columns that are not given are null. `None` without rows.
    fn finish(self, settings: &Settings, input: &Records<'_>, columns: Named) -> Option<Result<RecordBatch, String>> {
        let count = self.records.len();
        if count == 0 {
            return None;
        }
        let mut given: Named = vec![
            ("src_partition", self.of(input, |part| part.partitions)),
            ("src_offset", self.of(input, |part| part.offsets)),
            ("group_id", self.groups.finish()),
        ];
        given.extend(columns);
        let schema = Arc::clone(&settings.output);
        let columns = in_order(schema.fields(), given, count);
        Some(RecordBatch::try_new(schema, columns).map_err(|error| error.to_string()))
    }
}

#[derive(Default)]
struct Commits {
    place: Place,
    timestamps: Vec<i64>,
    topics: Texts,
    topic_ids: Texts,
    partitions: Vec<i32>,
    committed: Int64Builder,
    leader_epochs: Int32Builder,
}

impl Commits {
    fn with_capacity(rows: usize) -> Self {
        Self {
            place: Place::with_capacity(rows),
            timestamps: Vec::with_capacity(rows),
            topics: Texts::with_capacity(rows),
            topic_ids: Texts::default(),
            partitions: Vec::with_capacity(rows),
            committed: Int64Builder::with_capacity(rows),
            leader_epochs: Int32Builder::with_capacity(rows),
        }
    }

    #[inline]
    fn push(&mut self, record: usize, row: &Commit<'_>) {
        self.place.push(record, Some(row.group));
        self.timestamps.push(row.timestamp);
        self.topics.push(row.topic);
        match row.topic_id {
            Some(id) => self.topic_ids.push_bytes(&topic_id_characters(id)),
            None => self.topic_ids.push_null(),
        }
        self.partitions.push(row.partition);
        self.committed.append_option(row.committed);
        self.leader_epochs.append_option(row.leader_epoch);
    }

    fn finish(mut self, settings: &Settings, input: &Records<'_>) -> Option<Result<RecordBatch, String>> {
        let columns: Named = vec![
            ("ts", Arc::new(Int64Array::from(self.timestamps))),
            ("topic", self.topics.finish()),
            ("topic_id", self.topic_ids.finish()),
            ("partition", self.partitions.finish()),
            ("committed", Arc::new(self.committed.finish())),
            ("leader_epoch", Arc::new(self.leader_epochs.finish())),
        ];
        self.place.finish(settings, input, columns)
    }
}

/// The records that are no commits.
#[derive(Default)]
struct Others {
    place: Place,
    kinds: Texts,
    generations: Int32Builder,
    protocols: Texts,
    members: PerRecord<Members>,
    assignments: PerRecord<Assignments>,
    matches: PerRecord<Matched>,
    rejected: PerRecord<Rejections>,
    /// Whether the current record has rows, and the generation of its group.
    has_rows: bool,
    generation: Option<i32>,
}

impl Others {
    /// Notes a row of the current record. All rows of a record have the same group and generation. An event, with its kind and
    /// protocol, is the first of them.
    fn note(
        &mut self,
        index: usize,
        group: Option<Utf8<'_>>,
        generation: Option<i32>,
        event: Option<(EventKind, Option<Utf8<'_>>)>,
    ) {
        self.generation = self.generation.or(generation);
        if !std::mem::replace(&mut self.has_rows, true) {
            self.place.push(index, group);
            self.kinds.push_option(event.map(|(kind, _)| kind.name()));
            self.protocols.push_option(event.and_then(|(_, protocol)| protocol));
        }
    }

    #[inline]
    fn end_record(&mut self) {
        if std::mem::take(&mut self.has_rows) {
            self.generations.append_option(self.generation.take());
            self.members.end_record();
            self.assignments.end_record();
            self.matches.end_record();
            self.rejected.end_record();
        }
    }

    fn finish(mut self, settings: &Settings, input: &Records<'_>) -> Option<Result<RecordBatch, String>> {
        self.end_record();
        let (wanted, count) = (settings.wanted, self.place.records.len());
        let columns: Named = vec![
            ("kind", self.kinds.finish()),
            ("generation", Arc::new(self.generations.finish())),
            ("protocol", self.protocols.finish()),
            ("members", self.members.finish(wanted)),
            ("assignments", self.assignments.finish(wanted)),
            ("matches", self.matches.finish(wanted)),
            ("rejected", self.rejected.finish(wanted)),
        ];
        let mut ends = ListEnds::default();
        (1..=count).for_each(|end| ends.push(end));
        let rest = ends.finish(structs(rest(wanted), columns, count));
        let timestamps = self.place.of(input, |part| part.timestamps);
        self.place.finish(settings, input, vec![("ts", timestamps), ("rest", rest)])
    }
}

/// The rows that were collected up to now.
#[derive(Default)]
pub(super) struct Tables {
    commits: Commits,
    others: Others,
    /// The index of the current record in the input, and the number of its rows.
    index: usize,
    rows: i32,
    bytes: usize,
}

impl Tables {
    /// Reserves memory for `records` records with `bytes` bytes: for offset commits, since most records of the topic are commits,
    /// and for partition numbers, since most bytes of a group's record are such numbers, claimed and assigned. Memory that is not
    /// written takes nothing.
    pub(super) fn with_capacity(records: usize, bytes: usize) -> Self {
        let mut made = Self { commits: Commits::with_capacity(records), ..Self::default() };
        let numbers = bytes / size_of::<i32>() / 2;
        made.others.members.reserve(numbers);
        made.others.assignments.reserve(numbers);
        made
    }

    /// An estimate of the memory that the rows take, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Starts a record: the rows pushed next belong to it.
    #[inline]
    pub(super) fn begin(&mut self, index: usize, record: &Record<'_>) {
        // A partition number takes four bytes in the record and in the column; a name takes two bytes more in the
        // column.
        self.bytes += 3 * record.value.map_or(0, <[u8]>::len);
        self.others.end_record();
        self.index = index;
        self.rows = 0;
    }

    #[inline]
    pub(super) fn push(&mut self, settings: &Settings, record: &Record<'_>, row: Row<'_>) {
        let (index, number, others) = (self.index, self.rows, &mut self.others);
        let names = match row {
            Row::Commit(row) => {
                self.commits.push(index, &row);
                row.group.len() + row.topic.len()
            }
            Row::Event(row) => {
                others.note(index, Some(row.group), row.generation, Some((row.kind, row.protocol)));
                others.members.begin(number).push(row.member, settings.wanted.clients);
                0
            }
            Row::Assignment(row) => {
                others.note(index, Some(row.group), row.generation, None);
                others.assignments.begin(number).push(&row, settings);
                row.member_id.len()
            }
            Row::Matches(row) => {
                others.note(index, Some(row.group), None, None);
                others.matches.begin(number).push(&row);
                row.expression.len()
            }
            Row::Rejected(row) => {
                others.note(index, row.group, None, None);
                others.rejected.begin(number).push(&row, record, settings.wanted.bytes);
                row.detail.len()
            }
        };
        self.bytes += ROW_BYTES + names;
        self.rows += 1;
    }

    /// A batch of the commits and one of the other records, each if it has rows. `input` has the records of the indices.
    pub(super) fn finish(self, settings: &Settings, input: &Records<'_>) -> Result<Vec<RecordBatch>, String> {
        let batches = [self.others.finish(settings, input), self.commits.finish(settings, input)];
        batches.into_iter().flatten().collect()
    }
}
