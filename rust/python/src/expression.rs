//! Expressions over names.

use crate::errors::OptionError;
use kafka_assignors_core::expression::Expression as Core;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

/// A regular expression over names, matched in linear time.
#[pyclass(frozen, module = "kafka_assignors._core")]
pub(crate) struct Expression {
    core: Core,
}

#[pymethods]
impl Expression {
    /// As librdkafka reads a subscription: POSIX extended, found anywhere in a name.
    #[staticmethod]
    fn posix(text: &str) -> PyResult<Self> {
        Self::of(text, Core::posix)
    }

    /// As a broker reads the subscription of a KIP-848 member: RE2, matched against the whole name.
    #[staticmethod]
    fn re2(text: &str) -> PyResult<Self> {
        Self::of(text, Core::re2)
    }

    /// An application's own: RE2, found anywhere in a name.
    #[staticmethod]
    fn search(text: &str) -> PyResult<Self> {
        Self::of(text, Core::search)
    }

    /// For each of these names, whether it matches.
    #[expect(clippy::needless_pass_by_value, reason = "extracted from Python as a value")]
    fn matches(&self, py: Python<'_>, names: Vec<PyBackedStr>) -> Vec<bool> {
        py.detach(|| names.iter().map(|name| self.core.matches(name)).collect())
    }
}

impl Expression {
    fn of(
        text: &str,
        compile: impl Fn(&str) -> Result<Core, kafka_assignors_core::expression::ExpressionError>,
    ) -> PyResult<Self> {
        let core = compile(text).map_err(|error| OptionError::new_err(error.to_string()))?;
        Ok(Self { core })
    }
}
