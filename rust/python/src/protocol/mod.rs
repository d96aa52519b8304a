//! Encodes requests of the Kafka protocol to bytes and decodes responses to dicts with Kafka's field names, for Python
//! code that sends requests to a broker. Conversions only.

pub(crate) mod cluster;
pub(crate) mod group_admin;
pub(crate) mod offsets;
mod rows;
pub(crate) mod sasl;
pub(crate) mod topics;

use kafka_assignors_core::protocol::{ApiKey, Body, ErrorCode, RequestHeader, format_of, read_response, write_request};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;

use crate::errors::ProtocolError;

fn refused(error: impl std::error::Error) -> PyErr {
    ProtocolError::new_err(error.to_string())
}

/// The frame to send: the length, then the request.
fn frame<'py, B: Body>(
    py: Python<'py>,
    version: i16,
    correlation_id: i32,
    client_id: Option<String>,
    body: &B,
) -> PyResult<Bound<'py, PyBytes>> {
    format_of::<B>(version).map_err(refused)?;
    let header = RequestHeader { api: B::KEY, version, correlation_id, client_id };
    let frame = write_request(&header, body).map_err(refused)?;
    let length = i32::try_from(frame.len())
        .map_err(|_| ProtocolError::new_err(format!("a request of {} bytes is too long: ask for less", frame.len())))?;
    PyBytes::new_with(py, frame.len() + 4, |bytes| {
        bytes[..4].copy_from_slice(&length.to_be_bytes());
        bytes[4..].copy_from_slice(&frame);
        Ok(())
    })
}

/// The body of a frame without its length.
fn body<B: Body + Send>(py: Python<'_>, version: i16, correlation_id: i32, frame: &[u8]) -> PyResult<B> {
    format_of::<B>(version).map_err(refused)?;
    let header = RequestHeader { api: B::KEY, version, correlation_id, client_id: None };
    py.detach(|| read_response(&header, frame)).map_err(refused)
}

/// Every request with a codec: Kafka's name, mapped to API key, lowest and highest version.
#[pyfunction]
pub(crate) fn protocol_versions() -> BTreeMap<&'static str, (i16, i16, i16)> {
    let row = |&api: &ApiKey| (api.name(), (api.code(), api.versions().0, api.versions().1));
    ApiKey::ALL.iter().map(row).collect()
}

/// Kafka's name of an error code, such as `NOT_COORDINATOR`; `None` for a code without a name here.
#[pyfunction]
pub(crate) fn error_name(code: i16) -> Option<&'static str> {
    ErrorCode(code).name()
}
