//! Codecs for the bytes of the Kafka protocol. Readers check every bound; writers write one canonical form.
//!
//! ```text
//! connection   length (4 bytes)   frame
//! frame        header             body                  RequestHeader, join_group, offsets, …
//! body         … metadata, assignment …                 subscription, assignment, user_data
//! ```
//!
//! - [`reader`] and [`writer`]: the primitive types.
//! - Requests and responses, old and flexible versions ([`join_group`], [`offsets`], …). A coordinator reads requests
//!   and writes responses, a member writes requests and reads responses, with the same codecs. The layouts are those of
//!   Kafka's message definitions.
//! - The contents for consumers: [`subscription`], [`assignment`], [`user_data`]. These decoders borrow from the input:
//!   no copy, and no object per partition. They check the layout only: the caller decides on unknown topics, negative
//!   numbers and duplicates.
//!
//! To add a message: declare it with `message!` (see [`field`]), implement [`Body`] for the request and the response,
//! add the versions to the table in `api.rs`, and add the pair to the round-trip tests.

mod api;
pub mod assignment;
pub mod cluster;
pub mod consumer_group_heartbeat;
mod error_code;
pub mod field;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod golden_client;
#[cfg(test)]
mod golden_consumer_group;
pub mod group_admin;
pub mod heartbeat;
pub mod join_group;
pub mod leave_group;
pub mod offsets;
pub mod reader;
pub mod record_batch;
pub mod records;
#[cfg(test)]
pub(crate) mod samples;
pub mod sasl;
pub mod subscription;
pub mod sync_group;
#[cfg(test)]
mod tests;
pub mod topic_partitions;
pub mod topics;
pub mod user_data;
mod utf8;
pub mod writer;

pub use api::ApiKey;
pub use error_code::ErrorCode;
use field::{Field, Format};
use reader::{ReadError, Reader};
use thiserror::Error;
pub use utf8::Utf8;
use writer::{Write, WriteError};

/// The protocol type of groups of consumers, in JoinGroup and SyncGroup.
pub const CONSUMER: &str = "consumer";

/// The id of a topic (KIP-516).
pub type TopicId = [u8; 16];

/// The body of a request or of a response.
pub trait Body: Field {
    /// The request that it is, or to which it responds.
    const KEY: ApiKey;
}

/// Why a frame could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The bytes do not have the layout.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// An API key without a codec.
    #[error("api_key {0} is not a request we speak")]
    UnknownApi(i16),
    /// A version without a codec.
    #[error("{} version {version} is not spoken here: use {} to {}", .api.name(), .api.versions().0, .api.versions().1)]
    UnsupportedVersion {
        /// The request.
        api: ApiKey,
        /// Its version.
        version: i16,
    },
    /// Bytes after the end of the body: the two sides use different layouts.
    #[error("{} version {version} leaves {remaining} bytes behind its body", .api.name())]
    Trailing {
        /// The request.
        api: ApiKey,
        /// Its version.
        version: i16,
        /// The number of bytes.
        remaining: usize,
    },
    /// The response to another request.
    #[error("the response has correlation id {got}, expected {expected}: close the connection")]
    Correlation {
        /// The id in the frame.
        got: i32,
        /// The id of the request.
        expected: i32,
    },
}

/// The header of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHeader {
    /// The API key.
    pub api: ApiKey,
    /// Its version. A header with an unsupported version is readable, so that ApiVersions can be answered with
    /// UNSUPPORTED_VERSION; [`read_body`] refuses the version.
    pub version: i16,
    /// The number that the response repeats.
    pub correlation_id: i32,
    /// The client id.
    pub client_id: Option<String>,
}

impl RequestHeader {
    /// Reads the header (version 1, or 2 if the request is flexible). Then the reader is at the body.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        let code = reader.i16("api_key")?;
        let version = reader.i16("api_version")?;
        let correlation_id = reader.i32("correlation_id")?;
        let api = ApiKey::from_code(code).ok_or(FrameError::UnknownApi(code))?;
        // The client id is not compact, not even in header version 2.
        let client_id = Option::<String>::read(reader, Format { version: 1, flexible: false }, "client_id")?;
        if api.is_flexible(version) {
            reader.skip_tagged_fields("request header")?;
        }
        Ok(Self { api, version, correlation_id, client_id })
    }

    /// Appends the header.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        out.i16(self.api.code());
        out.i16(self.version);
        out.i32(self.correlation_id);
        out.nullable_string(self.client_id.as_deref(), "client_id")?;
        if self.api.is_flexible(self.version) {
            out.unsigned_varint(0);
        }
        Ok(())
    }
}

/// The layout of `B` in a version; an error if the version has no codec.
pub fn format_of<B: Body>(version: i16) -> Result<Format, FrameError> {
    if B::KEY.speaks(version) {
        Ok(Format { version, flexible: B::KEY.is_flexible(version) })
    } else {
        Err(FrameError::UnsupportedVersion { api: B::KEY, version })
    }
}

/// Reads a body to the end of the frame.
pub fn read_body<B: Body>(reader: &mut Reader<'_>, version: i16) -> Result<B, FrameError> {
    let body = B::read(reader, format_of::<B>(version)?, B::KEY.name())?;
    match reader.remaining() {
        0 => Ok(body),
        remaining => Err(FrameError::Trailing { api: B::KEY, version, remaining }),
    }
}

/// Reads the body of a request. Bytes after it are ignored, as on Kafka's brokers: librdkafka 2.16 sends some after the
/// Metadata request for all topics.
pub fn read_request<B: Body>(reader: &mut Reader<'_>, version: i16) -> Result<B, FrameError> {
    Ok(B::read(reader, format_of::<B>(version)?, B::KEY.name())?)
}

/// The frame of a request. `version` must be one of [`ApiKey::versions`]: others have no defined layout.
pub fn write_request<B: Body>(header: &RequestHeader, body: &B) -> Result<Vec<u8>, WriteError> {
    let mut out = Vec::new();
    header.write(&mut out)?;
    body.write(&mut out, layout(header), B::KEY.name())?;
    Ok(out)
}

/// The frame of the response to the request with this header.
pub fn write_response<B: Body>(header: &RequestHeader, body: &B) -> Result<Vec<u8>, WriteError> {
    let mut out = Vec::new();
    out.i32(header.correlation_id);
    if has_flexible_response_header(header.api, header.version) {
        out.unsigned_varint(0);
    }
    body.write(&mut out, layout(header), B::KEY.name())?;
    Ok(out)
}

/// Reads the frame of the response to the request with this header.
///
/// The body takes at most [`MEMORY_PER_BYTE`](reader::MEMORY_PER_BYTE) times the bytes of the frame.
pub fn read_response<B: Body>(header: &RequestHeader, frame: &[u8]) -> Result<B, FrameError> {
    let mut reader = Reader::of_frame(frame);
    let got = reader.i32("correlation_id")?;
    if got != header.correlation_id {
        return Err(FrameError::Correlation { got, expected: header.correlation_id });
    }
    if has_flexible_response_header(header.api, header.version) {
        reader.skip_tagged_fields("response header")?;
    }
    read_body(&mut reader, header.version)
}

fn layout(header: &RequestHeader) -> Format {
    Format { version: header.version, flexible: header.api.is_flexible(header.version) }
}

/// Whether the header of the response has tagged fields. That of ApiVersions never has, because the client may not know
/// the version yet.
fn has_flexible_response_header(api: ApiKey, version: i16) -> bool {
    api != ApiKey::ApiVersions && api.is_flexible(version)
}
