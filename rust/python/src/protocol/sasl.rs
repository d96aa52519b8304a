//! Authentication.

use kafka_assignors_core::protocol::sasl::*;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{body, frame};

#[pyfunction]
pub(crate) fn encode_sasl_handshake(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    client_id: Option<String>,
    mechanism: String,
) -> PyResult<Bound<'_, PyBytes>> {
    frame(py, version, correlation_id, client_id, &SaslHandshakeRequest { mechanism })
}

#[derive(IntoPyObject)]
pub(crate) struct SaslHandshake {
    error_code: i16,
    mechanisms: Vec<String>,
}

#[pyfunction]
pub(crate) fn decode_sasl_handshake(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    frame: &[u8],
) -> PyResult<SaslHandshake> {
    let read: SaslHandshakeResponse = body(py, version, correlation_id, frame)?;
    Ok(SaslHandshake { error_code: read.error_code.0, mechanisms: read.mechanisms })
}

#[pyfunction]
pub(crate) fn encode_sasl_authenticate<'py>(
    py: Python<'py>,
    version: i16,
    correlation_id: i32,
    client_id: Option<String>,
    auth_bytes: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    frame(py, version, correlation_id, client_id, &SaslAuthenticateRequest { auth_bytes: auth_bytes.to_vec() })
}

#[derive(IntoPyObject)]
pub(crate) struct SaslAuthenticate<'py> {
    error_code: i16,
    error_message: Option<String>,
    auth_bytes: Bound<'py, PyBytes>,
    session_lifetime_ms: i64,
}

#[pyfunction]
pub(crate) fn decode_sasl_authenticate<'py>(
    py: Python<'py>,
    version: i16,
    correlation_id: i32,
    frame: &[u8],
) -> PyResult<SaslAuthenticate<'py>> {
    let read: SaslAuthenticateResponse = body(py, version, correlation_id, frame)?;
    Ok(SaslAuthenticate {
        error_code: read.error_code.0,
        error_message: read.error_message,
        auth_bytes: PyBytes::new(py, &read.auth_bytes),
        session_lifetime_ms: read.session_lifetime_ms,
    })
}
