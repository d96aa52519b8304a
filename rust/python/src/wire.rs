//! Decodes the bytes of one member to plain Python values, for `kafka_assignors.userdata`.

use kafka_assignors_core::protocol::assignment::Assignment;
use kafka_assignors_core::protocol::reader::ReadError;
use kafka_assignors_core::protocol::subscription::Subscription;
use kafka_assignors_core::protocol::topic_partitions::TopicPartitions;
use kafka_assignors_core::protocol::user_data::{
    CustomUserData, StickyUserData, StreamJoinUserData, read_cooperative_generation,
};
use pyo3::prelude::*;

use crate::errors::UserDataError;

/// Topics with partition numbers, in the order of the bytes, duplicates included.
type Lists = Vec<(String, Vec<i32>)>;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn lists(partitions: TopicPartitions<'_>) -> Lists {
    partitions.iter().map(|(name, numbers)| (text(name), numbers.iter().collect())).collect()
}

fn unreadable(error: impl std::error::Error) -> PyErr {
    UserDataError::new_err(error.to_string())
}

fn fault(error: Option<ReadError>) -> Option<String> {
    error.map(|error| error.to_string())
}

/// Version, topics, user data, owned partitions, generation, rack, and the fault of a field after the topics.
type SubscriptionFields<'a> = (i16, Vec<String>, Option<&'a [u8]>, Lists, i32, Option<String>, Option<String>);

/// Reads a ConsumerProtocolSubscription.
#[pyfunction]
pub(crate) fn decode_subscription(metadata: &[u8]) -> PyResult<SubscriptionFields<'_>> {
    let read = Subscription::read(metadata).map_err(unreadable)?;
    let topics = read.topics.iter().map(text).collect();
    let owned = lists(read.owned);
    Ok((read.version, topics, read.user_data, owned, read.generation, read.rack.map(text), fault(read.fault)))
}

/// Version, partitions, user data, and the fault of the user data.
type AssignmentFields<'a> = (i16, Lists, Option<&'a [u8]>, Option<String>);

/// Reads a ConsumerProtocolAssignment.
#[pyfunction]
pub(crate) fn decode_assignment(data: &[u8]) -> PyResult<AssignmentFields<'_>> {
    let read = Assignment::read(data).map_err(unreadable)?;
    Ok((read.version, lists(read.partitions), read.user_data, fault(read.fault)))
}

/// Reads the user data of a `sticky` member: partitions and generation.
#[pyfunction]
pub(crate) fn decode_sticky_user_data(data: Option<&[u8]>) -> PyResult<(Lists, i32)> {
    let read = StickyUserData::read(data).map_err(unreadable)?;
    Ok((lists(read.partitions), read.generation))
}

/// Reads the user data of a member whose assignor is the user's own: partitions, generation, and the data of the assignor.
#[pyfunction]
pub(crate) fn decode_custom_user_data(data: Option<&[u8]>) -> PyResult<(Lists, i32, &[u8])> {
    let read = CustomUserData::read(data).map_err(unreadable)?;
    Ok((lists(read.partitions), read.generation, read.data))
}

/// Reads the user data of a `cooperative-sticky` member: the generation.
#[pyfunction]
pub(crate) fn decode_cooperative_user_data(data: Option<&[u8]>) -> PyResult<i32> {
    read_cooperative_generation(data).map_err(unreadable)
}

/// Reads the user data of a stream-join member: numbers and epoch.
#[pyfunction]
pub(crate) fn decode_stream_join_user_data(data: Option<&[u8]>) -> PyResult<(Vec<i32>, i32)> {
    let read = StreamJoinUserData::read(data).map_err(unreadable)?;
    Ok((read.numbers.iter().collect(), read.epoch))
}
