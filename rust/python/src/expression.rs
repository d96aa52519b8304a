//! Expressions over names.

use crate::errors::OptionError;
use kafka_assignors_core::expression::{Expression as Core, ExpressionError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

/// A regular expression over names, matched in linear time.
#[pyclass(frozen, module = "kafka_assignors._core")]
pub(crate) struct Expression {
    core: Core,
}

#[pymethods]
impl Expression {
    /// POSIX extended syntax, matched anywhere in the name, as in a subscription of librdkafka.
    #[staticmethod]
    fn posix(text: &str) -> PyResult<Self> {
        Self::of(text, Core::posix)
    }

    /// RE2 syntax, matched against the whole name, as in the subscription of a KIP-848 member.
    #[staticmethod]
    fn re2(text: &str) -> PyResult<Self> {
        Self::of(text, Core::re2)
    }

    /// RE2 syntax, matched anywhere in the name: for filters of the application.
    #[staticmethod]
    fn search(text: &str) -> PyResult<Self> {
        Self::of(text, Core::search)
    }

    /// For each name, whether it matches.
    #[expect(clippy::needless_pass_by_value, reason = "extracted from Python as a value")]
    fn matches(&self, py: Python<'_>, names: Vec<PyBackedStr>) -> Vec<bool> {
        py.detach(|| names.iter().map(|name| self.core.matches(name)).collect())
    }
}

impl Expression {
    fn of(text: &str, compile: impl Fn(&str) -> Result<Core, ExpressionError>) -> PyResult<Self> {
        let core = compile(text).map_err(|error| OptionError::new_err(error.to_string()))?;
        Ok(Self { core })
    }
}
