//! The rows of the tables other than commits: for each record a list of each table's rows, as structs.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, Int32Builder};
use arrow_array::{ArrayRef, StructArray, new_null_array};
use arrow_schema::{DataType, Field, Fields};
use kafka_assignors_core::offsets_topic::{
    AssignmentRow, Held, Matches, MemberRecord, Record, RejectReason, Rejected, TopicNameOrId, topic_id_characters,
};

use super::super::columns::{Claimed, Column, ListEnds, Lists, Texts, claimed_fields, full_list};
use super::super::field;
use super::{Optional, Settings};

/// A column without nulls. Spark checks each value of any other column for a null.
fn required(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, false)
}

pub(super) fn text(name: &str) -> Field {
    field(name, DataType::Utf8)
}

/// Columns by name.
pub(super) type Named = Vec<(&'static str, ArrayRef)>;

/// The columns of these fields, in their order; null where none is given.
pub(super) fn in_order(fields: &Fields, mut given: Named, count: usize) -> Vec<ArrayRef> {
    let column = |wanted: &Arc<Field>| match given.iter().position(|(name, _)| name == wanted.name()) {
        Some(at) => given.swap_remove(at).1,
        None => new_null_array(wanted.data_type(), count),
    };
    fields.iter().map(column).collect()
}

/// Structs with these fields.
pub(super) fn structs(fields: Fields, given: Named, count: usize) -> ArrayRef {
    let columns = in_order(&fields, given, count);
    Arc::new(StructArray::new(fields, columns, None))
}

/// The rows of a table, as the items of lists.
pub(super) trait Items: Default {
    /// The fields of a row without its number.
    fn fields(wanted: Optional) -> Vec<Field>;

    /// The number of each row in its record.
    fn rows(&mut self) -> &mut Vec<i32>;

    /// The columns of the fields. Optional columns that are not wanted may be among them, also without values.
    fn columns(self) -> Named;
}

/// A column with a list of a table's rows for each record.
#[derive(Default)]
pub(super) struct PerRecord<T> {
    items: T,
    ends: ListEnds,
}

impl PerRecord<Members> {
    /// Reserves memory for this number of claimed partitions.
    pub(super) fn reserve(&mut self, count: usize) {
        self.items.claimed.items().reserve(count);
    }
}

impl PerRecord<Assignments> {
    /// Reserves memory for this number of assigned partitions.
    pub(super) fn reserve(&mut self, count: usize) {
        self.items.partitions.reserve(count);
    }
}

impl<T: Items> PerRecord<T> {
    fn fields(wanted: Optional) -> Fields {
        std::iter::once(required("row", DataType::Int32)).chain(T::fields(wanted)).collect()
    }

    pub(super) fn field(name: &str, wanted: Optional) -> Field {
        required(name, full_list(DataType::Struct(Self::fields(wanted))))
    }

    /// Begins a row of the table.
    #[inline]
    pub(super) fn begin(&mut self, row: i32) -> &mut T {
        self.items.rows().push(row);
        &mut self.items
    }

    #[inline]
    pub(super) fn end_record(&mut self) {
        self.ends.push(self.items.rows().len());
    }

    pub(super) fn finish(mut self, wanted: Optional) -> ArrayRef {
        let rows = std::mem::take(self.items.rows());
        let count = rows.len();
        let mut columns = self.items.columns();
        columns.push(("row", rows.finish()));
        self.ends.finish(structs(Self::fields(wanted), columns, count))
    }
}

#[derive(Default)]
pub(super) struct Members {
    rows: Vec<i32>,
    ids: Texts,
    instances: Texts,
    racks: Texts,
    topics: Lists<Texts>,
    regexes: Texts,
    claimed_generations: Int32Builder,
    claimed: Lists<Claimed>,
    clients: Texts,
    hosts: Texts,
}

impl Members {
    pub(super) fn push(&mut self, member: Option<MemberRecord<'_>>, wants_clients: bool) {
        let is_member = member.is_some();
        let member = member.unwrap_or_default();
        self.ids.push_option(is_member.then_some(member.id));
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
        if wants_clients {
            self.clients.push_option(member.client.map(|(id, _)| id));
            self.hosts.push_option(member.client.map(|(_, host)| host));
        }
    }
}

impl Items for Members {
    fn fields(wanted: Optional) -> Vec<Field> {
        let mut fields = vec![
            text("member_id"),
            text("instance_id"),
            text("rack"),
            required("topics", full_list(DataType::Utf8)),
            text("topic_regex"),
            field("claimed_generation", DataType::Int32),
            field("claimed", full_list(DataType::Struct(claimed_fields()))),
        ];
        if wanted.clients {
            fields.extend([text("client_id"), text("client_host")]);
        }
        fields
    }

    fn rows(&mut self) -> &mut Vec<i32> {
        &mut self.rows
    }

    fn columns(mut self) -> Named {
        vec![
            ("member_id", self.ids.finish()),
            ("instance_id", self.instances.finish()),
            ("rack", self.racks.finish()),
            ("topics", self.topics.finish()),
            ("topic_regex", self.regexes.finish()),
            ("claimed_generation", Arc::new(self.claimed_generations.finish())),
            ("claimed", self.claimed.finish()),
            ("client_id", self.clients.finish()),
            ("client_host", self.hosts.finish()),
        ]
    }
}

#[derive(Default)]
pub(super) struct Assignments {
    rows: Vec<i32>,
    sources: Texts,
    members: Texts,
    topics: Texts,
    topic_ids: Texts,
    partitions: Lists<Vec<i32>>,
}

impl Assignments {
    pub(super) fn push(&mut self, row: &AssignmentRow<'_>, settings: &Settings) {
        self.sources.push(row.source.name());
        self.members.push(row.member_id);
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
}

impl Items for Assignments {
    fn fields(_: Optional) -> Vec<Field> {
        vec![
            required("source", DataType::Utf8),
            required("member_id", DataType::Utf8),
            text("topic"),
            text("topic_id"),
            required("partitions", full_list(DataType::Int32)),
        ]
    }

    fn rows(&mut self) -> &mut Vec<i32> {
        &mut self.rows
    }

    fn columns(self) -> Named {
        vec![
            ("source", self.sources.finish()),
            ("member_id", self.members.finish()),
            ("topic", self.topics.finish()),
            ("topic_id", self.topic_ids.finish()),
            ("partitions", self.partitions.finish()),
        ]
    }
}

#[derive(Default)]
pub(super) struct Matched {
    rows: Vec<i32>,
    expressions: Texts,
    topics: Lists<Texts>,
}

impl Matched {
    pub(super) fn push(&mut self, row: &Matches<'_>) {
        self.expressions.push(row.expression);
        self.topics.push(|names| row.topics.each(|name| names.push_bytes(name)));
    }
}

impl Items for Matched {
    fn fields(_: Optional) -> Vec<Field> {
        vec![required("topic_regex", DataType::Utf8), required("topics", full_list(DataType::Utf8))]
    }

    fn rows(&mut self) -> &mut Vec<i32> {
        &mut self.rows
    }

    fn columns(self) -> Named {
        vec![("topic_regex", self.expressions.finish()), ("topics", self.topics.finish())]
    }
}

#[derive(Default)]
pub(super) struct Rejections {
    rows: Vec<i32>,
    reasons: Texts,
    members: Texts,
    details: Texts,
    kinds: Int32Builder,
    keys: BinaryBuilder,
    values: BinaryBuilder,
}

impl Rejections {
    pub(super) fn push(&mut self, row: &Rejected<'_>, record: &Record<'_>, wants_bytes: bool) {
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
}

impl Items for Rejections {
    fn fields(wanted: Optional) -> Vec<Field> {
        let mut fields = vec![
            required("reason", DataType::Utf8),
            text("member_id"),
            required("detail", DataType::Utf8),
            field("record_kind", DataType::Int32),
        ];
        if wanted.bytes {
            fields.extend([field("key", DataType::Binary), field("value", DataType::Binary)]);
        }
        fields
    }

    fn rows(&mut self) -> &mut Vec<i32> {
        &mut self.rows
    }

    fn columns(mut self) -> Named {
        vec![
            ("reason", self.reasons.finish()),
            ("member_id", self.members.finish()),
            ("detail", self.details.finish()),
            ("record_kind", Arc::new(self.kinds.finish())),
            ("key", Arc::new(self.keys.finish())),
            ("value", Arc::new(self.values.finish())),
        ]
    }
}
