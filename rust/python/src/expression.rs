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
    /// POSIX extended syntax, found anywhere in a name: so librdkafka reads a subscription.
    #[staticmethod]
    fn posix(text: &str) -> PyResult<Self> {
        Self::of(text, Core::posix)
    }

    /// RE2's syntax, matched against the whole name: so a broker reads the subscription of a KIP-848 member.
    #[staticmethod]
    fn re2(text: &str) -> PyResult<Self> {
        Self::of(text, Core::re2)
    }

    /// RE2's syntax, found anywhere in a name: an application's own choice of names.
    #[staticmethod]
    fn search(text: &str) -> PyResult<Self> {
        Self::of(text, Core::search)
    }

    /// By name, whether it matches.
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
