//! Settings of topics and brokers.

use kafka_assignors_core::protocol::topics::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResponse,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;

use super::{body, frame};
use crate::errors::ProtocolError;

/// Asks for settings of one topic (type 2) or broker (4).
#[pyfunction]
pub(crate) fn encode_describe_configs(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    client_id: Option<String>,
    resource_type: i8,
    resource_name: String,
    settings: Vec<String>,
) -> PyResult<Bound<'_, PyBytes>> {
    let resource = DescribeConfigsResource { resource_type, resource_name, configuration_keys: Some(settings) };
    let body = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
    frame(py, version, correlation_id, client_id, &body)
}

#[derive(IntoPyObject)]
pub(crate) struct DescribeConfigs {
    throttle_time_ms: i32,
    error_code: i16,
    error_message: Option<String>,
    configs: BTreeMap<String, Option<String>>,
}

#[pyfunction]
pub(crate) fn decode_describe_configs(
    py: Python<'_>,
    version: i16,
    correlation_id: i32,
    frame: &[u8],
) -> PyResult<DescribeConfigs> {
    let read: DescribeConfigsResponse = body(py, version, correlation_id, frame)?;
    let found = read.results.into_iter().next();
    let found =
        found.ok_or_else(|| ProtocolError::new_err("DescribeConfigs answers nothing to one resource: ask again"))?;
    Ok(DescribeConfigs {
        throttle_time_ms: read.throttle_time_ms,
        error_code: found.error_code.0,
        error_message: found.error_message,
        configs: found.configs.into_iter().map(|config| (config.name, config.value)).collect(),
    })
}
