//! Encoders of a member's bytes: subscriptions and user data. They are for tests only, because the package encodes in
//! Python. The strings and bytes of a group's record are written without the package's writer, which the tests check.
#![allow(dead_code, reason = "no test needs all of them")]

use kafka_assignors_core::protocol::subscription::{NO_GENERATION, VERSION};
use kafka_assignors_core::protocol::topic_partitions::CanonicalPartitions;
use kafka_assignors_core::protocol::writer::{Write, WriteError};

/// A STRING: two bytes of length, and the text.
pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as i16).to_be_bytes());
    out.extend(text.as_bytes());
}

/// BYTES: four bytes of length, and the content.
pub(crate) fn bytes(out: &mut Vec<u8>, content: &[u8]) {
    out.extend((content.len() as i32).to_be_bytes());
    out.extend(content);
}

/// The canonical bytes of sticky user data, version 1.
///
/// # Errors
/// A topic's name of more than 32,767 bytes.
pub(crate) fn encode_sticky(
    partitions: &CanonicalPartitions<'_>,
    generation: Option<i32>,
) -> Result<Vec<u8>, WriteError> {
    let mut out = Vec::new();
    partitions.write(&mut out)?;
    out.i32(generation.unwrap_or(NO_GENERATION).max(NO_GENERATION));
    Ok(out)
}

/// The user data of a `cooperative-sticky` member; `None` before its first assignment.
#[must_use]
pub(crate) fn encode_cooperative(generation: Option<i32>) -> [u8; 4] {
    generation.unwrap_or(NO_GENERATION).max(NO_GENERATION).to_be_bytes()
}

/// The canonical bytes of stream-join user data: numbers ascending, without duplicates.
///
/// # Errors
/// More numbers than an ARRAY can have.
pub(crate) fn encode_stream_join(numbers: &[i32], epoch: i32) -> Result<Vec<u8>, WriteError> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let mut out = Vec::with_capacity(8 + 4 * numbers.len());
    out.count(numbers.len(), "partitions")?;
    for number in numbers {
        out.i32(number);
    }
    out.i32(epoch.max(0));
    Ok(out)
}

/// The fields that [`SubscriptionFields::encode`] writes.
#[derive(Debug, Clone, Default)]
pub(crate) struct SubscriptionFields<'a> {
    /// The topics, in any order.
    pub(crate) topics: &'a [&'a str],
    /// The assignor's user data.
    pub(crate) user_data: Option<&'a [u8]>,
    /// Owned partitions.
    pub(crate) owned: CanonicalPartitions<'a>,
    /// The generation of the owned partitions, if there is one.
    pub(crate) generation: Option<i32>,
    /// The rack; empty is none.
    pub(crate) rack: Option<&'a str>,
}

impl SubscriptionFields<'_> {
    /// The canonical bytes, version 3: topics sorted, without duplicates. Equal values have equal bytes. Otherwise a
    /// follower that rejoins would cause a rebalance.
    ///
    /// # Errors
    /// A string of more than 32,767 bytes.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, WriteError> {
        let mut topics = self.topics.to_vec();
        topics.sort_unstable();
        topics.dedup();
        let mut out = Vec::new();
        out.i16(VERSION);
        out.count(topics.len(), "topics")?;
        for topic in topics {
            out.string(topic, "topic")?;
        }
        out.nullable_bytes(self.user_data, "user_data")?;
        self.owned.write(&mut out)?;
        out.i32(self.generation.unwrap_or(NO_GENERATION).max(NO_GENERATION));
        out.nullable_string(self.rack.filter(|rack| !rack.is_empty()), "rack_id")?;
        Ok(out)
    }
}
