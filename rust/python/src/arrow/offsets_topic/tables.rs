//! The output tables as Arrow columns. Each table has its own builders, so a row takes no memory in the columns of
//! another table.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, Int8Builder, Int32Builder, Int64Builder, ListBuilder, StringBuilder, StructBuilder,
};
use arrow_array::{ArrayRef, ListArray, RecordBatch, StructArray, new_null_array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use kafka_assignors_core::offsets_topic::{
    AssignmentRow, Claim, Commit, Held, Matches, MembershipEvent, Record, RejectReason, Rejected, Row, TopicNameOrId,
    topic_id_characters,
};
use kafka_assignors_core::protocol::topic_partitions::Numbers;

use super::super::{field, list, list_of_structs};
use super::Settings;

/// The values of the column `table`. `kafka_assignors.spark.decoding` declares the same numbers.
const EVENTS: i8 = 0;
const ASSIGNMENTS: i8 = 1;
const COMMITS: i8 = 2;
const MATCHES: i8 = 3;
const REJECTED: i8 = 4;

/// The expected length of a group or topic name. It is only the initial capacity: the builders grow.
const NAME_BYTES: usize = 24;

/// An estimate of the memory that a row takes without its texts and lists.
pub(super) const ROW_BYTES: usize = 200;

fn claimed_fields() -> Fields {
    Fields::from(vec![field("topic", DataType::Utf8), field("partitions", list(DataType::Int32))])
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
        field("partitions", list(DataType::Int32)),
        text("protocol"),
        text("instance_id"),
        text("rack"),
        field("topics", list(DataType::Utf8)),
        text("topic_regex"),
        field("claimed_generation", DataType::Int32),
        field("claimed", list(DataType::Struct(claimed_fields()))),
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
        field("table", DataType::Int8),
        field("src_partition", DataType::Int32),
        field("src_offset", DataType::Int64),
        field("row", DataType::Int32),
        field("ts", DataType::Int64),
        text("group_id"),
        text("topic"),
        text("topic_id"),
        field("partition", DataType::Int32),
        field("committed", DataType::Int64),
        field("leader_epoch", DataType::Int32),
        field("rest", list_of_structs(rest)),
    ])
}

/// Columns of one table, by name.
type Named = Vec<(&'static str, ArrayRef)>;

/// The columns that every table shares.
#[derive(Default)]
struct Place {
    partitions: Int32Builder,
    offsets: Int64Builder,
    rows: Int32Builder,
    timestamps: Int64Builder,
    groups: StringBuilder,
    count: usize,
}

impl Place {
    fn with_capacity(rows: usize) -> Self {
        Self {
            partitions: Int32Builder::with_capacity(rows),
            offsets: Int64Builder::with_capacity(rows),
            rows: Int32Builder::with_capacity(rows),
            timestamps: Int64Builder::with_capacity(rows),
            groups: StringBuilder::with_capacity(rows, rows * NAME_BYTES),
            count: 0,
        }
    }

    #[inline]
    fn push(&mut self, record: &Record<'_>, row: i32, timestamp: Option<i64>, group: Option<&str>) {
        self.partitions.append_option(record.partition);
        self.offsets.append_option(record.offset);
        self.rows.append_value(row);
        self.timestamps.append_option(timestamp);
        self.groups.append_option(group);
        self.count += 1;
    }

    /// The rows as a batch; the columns of other tables are null. `None` without rows.
    fn finish(mut self, schema: &SchemaRef, table: i8, columns: Named) -> Option<Result<RecordBatch, String>> {
        if self.count == 0 {
            return None;
        }
        let mut tables = Int8Builder::with_capacity(self.count);
        tables.append_value_n(table, self.count);
        let place: Named = vec![
            ("table", Arc::new(tables.finish())),
            ("src_partition", Arc::new(self.partitions.finish())),
            ("src_offset", Arc::new(self.offsets.finish())),
            ("row", Arc::new(self.rows.finish())),
            ("ts", Arc::new(self.timestamps.finish())),
            ("group_id", Arc::new(self.groups.finish())),
        ];
        let mut given: Vec<_> = place.into_iter().chain(columns).collect();
        let mut column = |wanted: &Arc<Field>| match given.iter().position(|(name, _)| name == wanted.name()) {
            Some(at) => given.swap_remove(at).1,
            None => new_null_array(wanted.data_type(), self.count),
        };
        let columns = schema.fields().iter().map(|wanted| match wanted.data_type() {
            DataType::List(item) if table != COMMITS => {
                let DataType::Struct(rest) = item.data_type() else { return column(wanted) };
                let columns = rest.iter().map(&mut column).collect();
                let structs = Arc::new(StructArray::new(rest.clone(), columns, None));
                let one_each = OffsetBuffer::from_repeated_length(1, self.count);
                Arc::new(ListArray::new(Arc::clone(item), one_each, structs, None)) as ArrayRef
            }
            _ => column(wanted),
        });
        let columns = columns.collect();
        Some(RecordBatch::try_new(Arc::clone(schema), columns).map_err(|error| error.to_string()))
    }
}

type Lists<B> = ListBuilder<B>;

fn numbers_builder() -> Lists<Int32Builder> {
    ListBuilder::new(Int32Builder::new()).with_field(field("element", DataType::Int32))
}

fn texts_builder() -> Lists<StringBuilder> {
    ListBuilder::new(StringBuilder::new()).with_field(field("element", DataType::Utf8))
}

fn claimed_builder() -> Lists<StructBuilder> {
    let columns = vec![Box::new(StringBuilder::new()) as _, Box::new(numbers_builder()) as _];
    let item = field("element", DataType::Struct(claimed_fields()));
    ListBuilder::new(StructBuilder::new(claimed_fields(), columns)).with_field(item)
}

#[inline]
fn append_numbers(lists: &mut Lists<Int32Builder>, numbers: Numbers<'_>, scratch: &mut Vec<i32>) {
    scratch.clear();
    scratch.extend(numbers.iter());
    lists.values().append_slice(scratch);
    lists.append(true);
}

/// Appends a text. Invalid UTF-8 becomes U+FFFD, as in Java.
#[inline]
fn append_bytes(texts: &mut StringBuilder, bytes: &[u8]) {
    match str::from_utf8(bytes) {
        Ok(text) => texts.append_value(text),
        Err(_) => texts.append_value(String::from_utf8_lossy(bytes)),
    }
}

struct Events {
    place: Place,
    kinds: StringBuilder,
    members: StringBuilder,
    generations: Int32Builder,
    protocols: StringBuilder,
    instances: StringBuilder,
    racks: StringBuilder,
    topics: Lists<StringBuilder>,
    regexes: StringBuilder,
    claimed_generations: Int32Builder,
    claimed: Lists<StructBuilder>,
    clients: StringBuilder,
    hosts: StringBuilder,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            place: Place::default(),
            kinds: StringBuilder::new(),
            members: StringBuilder::new(),
            generations: Int32Builder::new(),
            protocols: StringBuilder::new(),
            instances: StringBuilder::new(),
            racks: StringBuilder::new(),
            topics: texts_builder(),
            regexes: StringBuilder::new(),
            claimed_generations: Int32Builder::new(),
            claimed: claimed_builder(),
            clients: StringBuilder::new(),
            hosts: StringBuilder::new(),
        }
    }
}

impl Events {
    fn push(&mut self, event: MembershipEvent<'_>, wants_clients: bool, scratch: &mut Vec<i32>) {
        self.kinds.append_value(event.kind.name());
        self.generations.append_option(event.generation);
        self.protocols.append_option(event.protocol);
        let is_member = event.member.is_some();
        let member = event.member.unwrap_or_default();
        self.members.append_option(is_member.then_some(member.id));
        self.instances.append_option(member.instance_id);
        match member.rack {
            Some(rack) => append_bytes(&mut self.racks, rack),
            None => self.racks.append_null(),
        }
        let names = self.topics.values();
        member.topics.each(|name| append_bytes(names, name));
        self.topics.append(true);
        self.regexes.append_option(member.topic_regex);
        self.push_claim(member.claim, scratch);
        let client = member.client.filter(|_| wants_clients);
        self.clients.append_option(client.map(|(id, _)| id));
        self.hosts.append_option(client.map(|(_, host)| host));
    }

    fn push_claim(&mut self, claim: Option<Claim<'_>>, scratch: &mut Vec<i32>) {
        self.claimed_generations.append_option(claim.and_then(|claim| claim.generation));
        let items = self.claimed.values();
        let mut each = |topic: Option<&[u8]>, numbers: Numbers<'_>| {
            if let Some(topics) = items.field_builder::<StringBuilder>(0) {
                match topic {
                    Some(topic) => append_bytes(topics, topic),
                    None => topics.append_null(),
                }
            }
            if let Some(lists) = items.field_builder::<Lists<Int32Builder>>(1) {
                append_numbers(lists, numbers, scratch);
            }
            items.append(true);
        };
        match claim.map(|claim| claim.held) {
            Some(Held::Partitions(partitions)) => {
                partitions.iter().for_each(|(topic, numbers)| each(Some(topic), numbers));
            }
            Some(Held::Numbers(numbers)) => each(None, numbers),
            None => {}
        }
        self.claimed.append(claim.is_some());
    }

    fn finish(mut self, schema: &SchemaRef) -> Option<Result<RecordBatch, String>> {
        let columns: Named = vec![
            ("kind", Arc::new(self.kinds.finish())),
            ("member_id", Arc::new(self.members.finish())),
            ("generation", Arc::new(self.generations.finish())),
            ("protocol", Arc::new(self.protocols.finish())),
            ("instance_id", Arc::new(self.instances.finish())),
            ("rack", Arc::new(self.racks.finish())),
            ("topics", Arc::new(self.topics.finish())),
            ("topic_regex", Arc::new(self.regexes.finish())),
            ("claimed_generation", Arc::new(self.claimed_generations.finish())),
            ("claimed", Arc::new(self.claimed.finish())),
            ("client_id", Arc::new(self.clients.finish())),
            ("client_host", Arc::new(self.hosts.finish())),
        ];
        self.place.finish(schema, EVENTS, columns)
    }
}

struct Assignments {
    place: Place,
    sources: StringBuilder,
    members: StringBuilder,
    generations: Int32Builder,
    topics: StringBuilder,
    topic_ids: StringBuilder,
    partitions: Lists<Int32Builder>,
}

impl Default for Assignments {
    fn default() -> Self {
        Self {
            place: Place::default(),
            sources: StringBuilder::new(),
            members: StringBuilder::new(),
            generations: Int32Builder::new(),
            topics: StringBuilder::new(),
            topic_ids: StringBuilder::new(),
            partitions: numbers_builder(),
        }
    }
}

impl Assignments {
    fn push(&mut self, row: &AssignmentRow<'_>, settings: &Settings, scratch: &mut Vec<i32>) {
        self.sources.append_value(row.source.name());
        self.members.append_value(row.member_id);
        self.generations.append_option(row.generation);
        match row.topic {
            TopicNameOrId::Name(name) => {
                append_bytes(&mut self.topics, name);
                self.topic_ids.append_null();
            }
            TopicNameOrId::Id(id) => {
                self.topics.append_option(settings.names.get(&id));
                append_bytes(&mut self.topic_ids, &topic_id_characters(id));
            }
        }
        append_numbers(&mut self.partitions, row.partitions, scratch);
    }

    fn finish(mut self, schema: &SchemaRef) -> Option<Result<RecordBatch, String>> {
        let columns: Named = vec![
            ("kind", Arc::new(self.sources.finish())),
            ("member_id", Arc::new(self.members.finish())),
            ("generation", Arc::new(self.generations.finish())),
            ("topic", Arc::new(self.topics.finish())),
            ("topic_id", Arc::new(self.topic_ids.finish())),
            ("partitions", Arc::new(self.partitions.finish())),
        ];
        self.place.finish(schema, ASSIGNMENTS, columns)
    }
}

#[derive(Default)]
struct Commits {
    place: Place,
    topics: StringBuilder,
    topic_ids: StringBuilder,
    partitions: Int32Builder,
    committed: Int64Builder,
    leader_epochs: Int32Builder,
}

impl Commits {
    fn with_capacity(rows: usize) -> Self {
        Self {
            place: Place::with_capacity(rows),
            topics: StringBuilder::with_capacity(rows, rows * NAME_BYTES),
            topic_ids: StringBuilder::with_capacity(rows, 0),
            partitions: Int32Builder::with_capacity(rows),
            committed: Int64Builder::with_capacity(rows),
            leader_epochs: Int32Builder::with_capacity(rows),
        }
    }

    #[inline]
    fn push(&mut self, row: &Commit<'_>) {
        self.topics.append_value(row.topic);
        match row.topic_id {
            Some(id) => append_bytes(&mut self.topic_ids, &topic_id_characters(id)),
            None => self.topic_ids.append_null(),
        }
        self.partitions.append_value(row.partition);
        self.committed.append_option(row.committed);
        self.leader_epochs.append_option(row.leader_epoch);
    }

    fn finish(mut self, schema: &SchemaRef) -> Option<Result<RecordBatch, String>> {
        let columns: Named = vec![
            ("topic", Arc::new(self.topics.finish())),
            ("topic_id", Arc::new(self.topic_ids.finish())),
            ("partition", Arc::new(self.partitions.finish())),
            ("committed", Arc::new(self.committed.finish())),
            ("leader_epoch", Arc::new(self.leader_epochs.finish())),
        ];
        self.place.finish(schema, COMMITS, columns)
    }
}

struct Matched {
    place: Place,
    expressions: StringBuilder,
    topics: Lists<StringBuilder>,
}

impl Default for Matched {
    fn default() -> Self {
        Self { place: Place::default(), expressions: StringBuilder::new(), topics: texts_builder() }
    }
}

impl Matched {
    fn push(&mut self, row: &Matches<'_>) {
        self.expressions.append_value(row.expression);
        let names = self.topics.values();
        row.topics.each(|name| append_bytes(names, name));
        self.topics.append(true);
    }

    fn finish(mut self, schema: &SchemaRef) -> Option<Result<RecordBatch, String>> {
        let columns: Named =
            vec![("topic_regex", Arc::new(self.expressions.finish())), ("topics", Arc::new(self.topics.finish()))];
        self.place.finish(schema, MATCHES, columns)
    }
}

#[derive(Default)]
struct Rejections {
    place: Place,
    reasons: StringBuilder,
    members: StringBuilder,
    details: StringBuilder,
    kinds: Int32Builder,
    keys: BinaryBuilder,
    values: BinaryBuilder,
}

impl Rejections {
    fn push(&mut self, row: &Rejected<'_>, record: &Record<'_>, wants_bytes: bool) {
        self.reasons.append_value(row.reason.name());
        self.members.append_option(row.member_id);
        self.details.append_value(&row.detail);
        self.kinds.append_option(row.kind.map(i32::from));
        // Keep the bytes if a later release may be able to read the record. Not for the fault of one member: a record
        // may contain many of them, and each would repeat the whole record.
        let wanted = wants_bytes && matches!(row.reason, RejectReason::Broken | RejectReason::UnknownVersion);
        self.keys.append_option(record.key.filter(|_| wanted));
        self.values.append_option(record.value.filter(|_| wanted));
    }

    fn finish(mut self, schema: &SchemaRef) -> Option<Result<RecordBatch, String>> {
        let columns: Named = vec![
            ("kind", Arc::new(self.reasons.finish())),
            ("member_id", Arc::new(self.members.finish())),
            ("detail", Arc::new(self.details.finish())),
            ("record_kind", Arc::new(self.kinds.finish())),
            ("key", Arc::new(self.keys.finish())),
            ("value", Arc::new(self.values.finish())),
        ];
        self.place.finish(schema, REJECTED, columns)
    }
}

/// The rows that were collected up to now.
#[derive(Default)]
pub(super) struct Tables<'a> {
    events: Events,
    assignments: Assignments,
    commits: Commits,
    matched: Matched,
    rejected: Rejections,
    /// The current record, and the number of its rows.
    record: Record<'a>,
    rows: i32,
    bytes: usize,
    scratch: Vec<i32>,
}

impl<'a> Tables<'a> {
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
    pub(super) fn begin(&mut self, record: Record<'a>) {
        // A partition number takes four bytes in the record and in the column; a name takes two bytes more in the
        // column.
        self.bytes += 3 * record.value.map_or(0, <[u8]>::len);
        self.record = record;
        self.rows = 0;
    }

    #[inline]
    pub(super) fn push(&mut self, settings: &Settings, row: Row<'_>) {
        let (record, number) = (&self.record, self.rows);
        let written = record.timestamp;
        let scratch = &mut self.scratch;
        let names = match row {
            Row::Commit(row) => {
                self.commits.place.push(record, number, Some(row.timestamp), Some(row.group));
                self.commits.push(&row);
                row.group.len() + row.topic.len()
            }
            Row::Event(row) => {
                self.events.place.push(record, number, written, Some(row.group));
                let names = row.group.len() + row.protocol.map_or(0, str::len);
                self.events.push(row, settings.clients, scratch);
                names
            }
            Row::Assignment(row) => {
                self.assignments.place.push(record, number, written, Some(row.group));
                self.assignments.push(&row, settings, scratch);
                row.group.len() + row.member_id.len()
            }
            Row::Matches(row) => {
                self.matched.place.push(record, number, written, Some(row.group));
                self.matched.push(&row);
                row.group.len() + row.expression.len()
            }
            Row::Rejected(row) => {
                self.rejected.place.push(record, number, written, row.group);
                self.rejected.push(&row, record, settings.bytes);
                row.group.map_or(0, str::len) + row.detail.len()
            }
        };
        self.bytes += ROW_BYTES + names;
        self.rows += 1;
    }

    /// A batch for each table that has rows.
    pub(super) fn finish(self, schema: &SchemaRef) -> Result<Vec<RecordBatch>, String> {
        let tables = [
            self.events.finish(schema),
            self.assignments.finish(schema),
            self.commits.finish(schema),
            self.matched.finish(schema),
            self.rejected.finish(schema),
        ];
        tables.into_iter().flatten().collect()
    }
}
