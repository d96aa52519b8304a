//! The output tables as Arrow columns. Each table has its own builders, so a row takes no memory in the columns of
//! another table.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, Int32Builder, Int64Builder};
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{
    Array, ArrayRef, Int8Array, Int64Array, ListArray, PrimitiveArray, RecordBatch, StructArray, new_null_array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use kafka_assignors_core::offsets_topic::{
    AssignmentRow, Commit, Held, Matches, MembershipEvent, Record, RejectReason, Rejected, Row, TopicNameOrId,
    topic_id_characters,
};
use kafka_assignors_core::protocol::Utf8;

use super::super::field;
use super::columns::{Claimed, Column, Lists, Texts, claimed_fields, full_list};
use super::{Records, Settings};

/// The values of the column `table`. `kafka_assignors.spark.decoding` declares the same numbers.
const EVENTS: i8 = 0;
const ASSIGNMENTS: i8 = 1;
const COMMITS: i8 = 2;
const MATCHES: i8 = 3;
const REJECTED: i8 = 4;

/// An estimate of the memory that a row takes without its texts and lists.
pub(super) const ROW_BYTES: usize = 200;

/// A column without nulls. Spark checks each value of any other column for a null.
fn required(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, false)
}

/// The columns of all tables, without the columns that would be null in every row.
///
/// Most records are offset commits, and Spark pays for each column in each row, null or not. Therefore one struct
/// contains all fields that a commit lacks. The struct is the only item of a list: the fields of a null struct would
/// take as many bytes as those of any other, and those of a null list take none.
pub(super) fn schema(clients: bool, bytes: bool) -> Schema {
    let text = |name| field(name, DataType::Utf8);
    let mut rest = vec![
        text("kind"),
        text("member_id"),
        field("generation", DataType::Int32),
        field("partitions", full_list(DataType::Int32)),
        text("protocol"),
        text("instance_id"),
        text("rack"),
        field("topics", full_list(DataType::Utf8)),
        text("topic_regex"),
        field("claimed_generation", DataType::Int32),
        field("claimed", full_list(DataType::Struct(claimed_fields()))),
        text("client_id"),
        text("client_host"),
        text("detail"),
        field("record_kind", DataType::Int32),
        field("key", DataType::Binary),
        field("value", DataType::Binary),
    ];
    rest.retain(|column| match column.name().as_str() {
        "client_id" | "client_host" => clients,
        "key" | "value" => bytes,
        _ => true,
    });
    Schema::new(vec![
        required("table", DataType::Int8),
        field("src_partition", DataType::Int32),
        field("src_offset", DataType::Int64),
        required("row", DataType::Int32),
        field("ts", DataType::Int64),
        text("group_id"),
        text("topic"),
        text("topic_id"),
        field("partition", DataType::Int32),
        field("committed", DataType::Int64),
        field("leader_epoch", DataType::Int32),
        field("rest", full_list(DataType::Struct(Fields::from(rest)))),
    ])
}

/// Columns of one table, by name.
type Named = Vec<(&'static str, ArrayRef)>;

/// The columns that every table shares.
#[derive(Default)]
struct Place {
    /// The index of each row's record in the input.
    records: Vec<usize>,
    rows: Vec<i32>,
    groups: Texts,
}

impl Place {
    fn with_capacity(rows: usize) -> Self {
        Self { records: Vec::with_capacity(rows), rows: Vec::with_capacity(rows), groups: Texts::with_capacity(rows) }
    }

    #[inline]
    fn push(&mut self, record: usize, row: i32, group: Option<Utf8<'_>>) {
        self.records.push(record);
        self.rows.push(row);
        self.groups.push_option(group);
    }

    /// A column of the input: the value of each row's record.
    fn of<T: ArrowPrimitiveType>(&self, input: &PrimitiveArray<T>) -> ArrayRef {
        let records = self.records.iter();
        let values: Vec<T::Native> = records.clone().map(|&record| input.values()[record]).collect();
        let nulls = input.nulls().map(|nulls| records.map(|&record| nulls.is_valid(record)).collect());
        Arc::new(PrimitiveArray::<T>::new(values.into(), nulls))
    }

    /// The rows as a batch; the columns of other tables are null. `None` without rows.
    fn finish(self, output: &Output<'_>, table: i8, columns: Named) -> Option<Result<RecordBatch, String>> {
        let count = self.rows.len();
        if count == 0 {
            return None;
        }
        let input = output.input;
        let mut given: Named = vec![
            ("table", Arc::new(Int8Array::from(vec![table; count]))),
            ("src_partition", self.of(input.partitions)),
            ("src_offset", self.of(input.offsets)),
            ("row", self.rows.finish()),
            ("group_id", self.groups.finish()),
        ];
        given.extend(columns);
        let mut column = |wanted: &Arc<Field>| match given.iter().position(|(name, _)| name == wanted.name()) {
            Some(at) => given.swap_remove(at).1,
            None => new_null_array(wanted.data_type(), count),
        };
        let columns = output.schema.fields().iter().map(|wanted| match wanted.data_type() {
            DataType::List(item) if table != COMMITS => {
                let DataType::Struct(rest) = item.data_type() else { return column(wanted) };
                let columns = rest.iter().map(&mut column).collect();
                let structs = Arc::new(StructArray::new(rest.clone(), columns, None));
                let one_each = OffsetBuffer::from_repeated_length(1, count);
                Arc::new(ListArray::new(Arc::clone(item), one_each, structs, None)) as ArrayRef
            }
            _ => column(wanted),
        });
        let columns = columns.collect();
        Some(RecordBatch::try_new(Arc::clone(output.schema), columns).map_err(|error| error.to_string()))
    }
}

#[derive(Default)]
struct Events {
    place: Place,
    kinds: Texts,
    members: Texts,
    generations: Int32Builder,
    protocols: Texts,
    instances: Texts,
    racks: Texts,
    topics: Lists<Texts>,
    regexes: Texts,
    claimed_generations: Int32Builder,
    claimed: Lists<Claimed>,
    clients: Texts,
    hosts: Texts,
}

impl Events {
    fn push(&mut self, event: MembershipEvent<'_>, wants_clients: bool) {
        self.kinds.push(event.kind.name());
        self.generations.append_option(event.generation);
        self.protocols.push_option(event.protocol);
        let is_member = event.member.is_some();
        let member = event.member.unwrap_or_default();
        self.members.push_option(is_member.then_some(member.id));
        self.instances.push_option(member.instance_id);
        match member.rack {
            Some(rack) => self.racks.push_bytes(rack),
            None => self.racks.push_null(),
        }
        self.topics.push(|names| member.topics.each(|name| names.push_bytes(name)));
        self.regexes.push_option(member.topic_regex);
        self.claimed_generations.append_option(member.claim.and_then(|claim| claim.generation));
        match member.claim.map(|claim| claim.held) {
            Some(Held::Partitions(partitions)) => self.claimed.push(|topics| {
                partitions.iter().for_each(|(topic, numbers)| topics.push(Some(topic), numbers));
            }),
            Some(Held::Numbers(numbers)) => self.claimed.push(|topics| topics.push(None, numbers)),
            None => self.claimed.push_null(),
        }
        let client = member.client.filter(|_| wants_clients);
        self.clients.push_option(client.map(|(id, _)| id));
        self.hosts.push_option(client.map(|(_, host)| host));
    }

    fn finish(mut self, output: &Output<'_>) -> Option<Result<RecordBatch, String>> {
        let columns: Named = vec![
            ("ts", self.place.of(output.input.timestamps)),
            ("kind", self.kinds.finish()),
            ("member_id", self.members.finish()),
            ("generation", Arc::new(self.generations.finish())),
            ("protocol", self.protocols.finish()),
            ("instance_id", self.instances.finish()),
            ("rack", self.racks.finish()),
            ("topics", self.topics.finish()),
            ("topic_regex", self.regexes.finish()),
            ("claimed_generation", Arc::new(self.claimed_generations.finish())),
            ("claimed", self.claimed.finish()),
            ("client_id", self.clients.finish()),
            ("client_host", self.hosts.finish()),
        ];
        self.place.finish(output, EVENTS, columns)
    }
}

#[derive(Default)]
struct Assignments {
    place: Place,
    sources: Texts,
    members: Texts,
    generations: Int32Builder,
    topics: Texts,
    topic_ids: Texts,
    partitions: Lists<Vec<i32>>,
}

impl Assignments {
    fn push(&mut self, row: &AssignmentRow<'_>, settings: &Settings) {
        self.sources.push(row.source.name());
        self.members.push(row.member_id);
        self.generations.append_option(row.generation);
        match row.topic {
            TopicNameOrId::Name(name) => {
                self.topics.push_bytes(name);
                self.topic_ids.push_null();
            }
            TopicNameOrId::Id(id) => {
                self.topics.push_option(settings.names.get(&id).map(String::as_str));
                self.topic_ids.push_bytes(&topic_id_characters(id));
            }
        }
        self.partitions.push_numbers(row.partitions);
    }

    fn finish(mut self, output: &Output<'_>) -> Option<Result<RecordBatch, String>> {
        let columns: Named = vec![
            ("ts", self.place.of(output.input.timestamps)),
            ("kind", self.sources.finish()),
            ("member_id", self.members.finish()),
            ("generation", Arc::new(self.generations.finish())),
            ("topic", self.topics.finish()),
            ("topic_id", self.topic_ids.finish()),
            ("partitions", self.partitions.finish()),
        ];
        self.place.finish(output, ASSIGNMENTS, columns)
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
    fn push(&mut self, row: &Commit<'_>) {
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

    fn finish(mut self, output: &Output<'_>) -> Option<Result<RecordBatch, String>> {
        let columns: Named = vec![
            ("ts", Arc::new(Int64Array::from(self.timestamps))),
            ("topic", self.topics.finish()),
            ("topic_id", self.topic_ids.finish()),
            ("partition", self.partitions.finish()),
            ("committed", Arc::new(self.committed.finish())),
            ("leader_epoch", Arc::new(self.leader_epochs.finish())),
        ];
        self.place.finish(output, COMMITS, columns)
    }
}

#[derive(Default)]
struct Matched {
    place: Place,
    expressions: Texts,
    topics: Lists<Texts>,
}

impl Matched {
    fn push(&mut self, row: &Matches<'_>) {
        self.expressions.push(row.expression);
        self.topics.push(|names| row.topics.each(|name| names.push_bytes(name)));
    }

    fn finish(self, output: &Output<'_>) -> Option<Result<RecordBatch, String>> {
        let columns: Named = vec![
            ("ts", self.place.of(output.input.timestamps)),
            ("topic_regex", self.expressions.finish()),
            ("topics", self.topics.finish()),
        ];
        self.place.finish(output, MATCHES, columns)
    }
}

#[derive(Default)]
struct Rejections {
    place: Place,
    reasons: Texts,
    members: Texts,
    details: Texts,
    kinds: Int32Builder,
    keys: BinaryBuilder,
    values: BinaryBuilder,
}

impl Rejections {
    fn push(&mut self, row: &Rejected<'_>, record: &Record<'_>, wants_bytes: bool) {
        self.reasons.push(row.reason.name());
        self.members.push_option(row.member_id);
        self.details.push(row.detail.as_str());
        self.kinds.append_option(row.kind.map(i32::from));
        // Keep the bytes if a later release may be able to read the record. Not for the fault of one member: a record
        // may contain many of them, and each would repeat the whole record.
        let wanted = wants_bytes && matches!(row.reason, RejectReason::Broken | RejectReason::UnknownVersion);
        self.keys.append_option(record.key.filter(|_| wanted));
        self.values.append_option(record.value.filter(|_| wanted));
    }

    fn finish(mut self, output: &Output<'_>) -> Option<Result<RecordBatch, String>> {
        let columns: Named = vec![
            ("ts", self.place.of(output.input.timestamps)),
            ("kind", self.reasons.finish()),
            ("member_id", self.members.finish()),
            ("detail", self.details.finish()),
            ("record_kind", Arc::new(self.kinds.finish())),
            ("key", Arc::new(self.keys.finish())),
            ("value", Arc::new(self.values.finish())),
        ];
        self.place.finish(output, REJECTED, columns)
    }
}

/// The schema of the batches, and the records to which the rows' indices refer.
struct Output<'a> {
    schema: &'a SchemaRef,
    input: &'a Records<'a>,
}

/// The rows that were collected up to now.
#[derive(Default)]
pub(super) struct Tables {
    events: Events,
    assignments: Assignments,
    commits: Commits,
    matched: Matched,
    rejected: Rejections,
    /// The index of the current record in the input, and the number of its rows.
    index: usize,
    rows: i32,
    bytes: usize,
}

impl Tables {
    /// Reserves memory for `records` offset commits: most records of the topic are commits, with one row each.
    pub(super) fn with_capacity(records: usize) -> Self {
        Self { commits: Commits::with_capacity(records), ..Self::default() }
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
        self.index = index;
        self.rows = 0;
    }

    #[inline]
    pub(super) fn push(&mut self, settings: &Settings, record: &Record<'_>, row: Row<'_>) {
        let (index, number) = (self.index, self.rows);
        let names = match row {
            Row::Commit(row) => {
                self.commits.place.push(index, number, Some(row.group));
                self.commits.push(&row);
                row.group.len() + row.topic.len()
            }
            Row::Event(row) => {
                self.events.place.push(index, number, Some(row.group));
                let names = row.group.len() + row.protocol.map_or(0, Utf8::len);
                self.events.push(row, settings.clients);
                names
            }
            Row::Assignment(row) => {
                self.assignments.place.push(index, number, Some(row.group));
                self.assignments.push(&row, settings);
                row.group.len() + row.member_id.len()
            }
            Row::Matches(row) => {
                self.matched.place.push(index, number, Some(row.group));
                self.matched.push(&row);
                row.group.len() + row.expression.len()
            }
            Row::Rejected(row) => {
                self.rejected.place.push(index, number, row.group);
                self.rejected.push(&row, record, settings.bytes);
                row.group.map_or(0, Utf8::len) + row.detail.len()
            }
        };
        self.bytes += ROW_BYTES + names;
        self.rows += 1;
    }

    /// A batch for each table that has rows. `input` has the records of the indices.
    pub(super) fn finish(self, schema: &SchemaRef, input: &Records<'_>) -> Result<Vec<RecordBatch>, String> {
        let output = Output { schema, input };
        let tables = [
            self.events.finish(&output),
            self.assignments.finish(&output),
            self.commits.finish(&output),
            self.matched.finish(&output),
            self.rejected.finish(&output),
        ];
        tables.into_iter().flatten().collect()
    }
}
