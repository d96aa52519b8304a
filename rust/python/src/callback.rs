//! Callbacks that a client written in C calls.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A callback of confluent-kafka out of which no interrupt comes.
///
/// A Ctrl-C during a blocked `poll` is handled by whatever runs Python first, which may be a callback: before its first
/// line, where it cannot catch it. The client loses what comes out of a callback there: it goes on waiting, or fails with a
/// `SystemError`. Here it is caught outside, and the signal raised again, for `poll` to see.
#[pyclass(frozen, module = "kafka_assignors._core")]
pub(crate) struct Uninterrupted {
    function: Py<PyAny>,
}

#[pymethods]
impl Uninterrupted {
    #[new]
    fn new(function: Py<PyAny>) -> Self {
        Self { function }
    }

    #[pyo3(signature = (*args))]
    fn __call__(&self, py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<()> {
        match self.function.call1(py, args) {
            Err(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => {
                py.import("_thread")?.call_method0("interrupt_main").map(drop)
            }
            done => done.map(drop),
        }
    }
}
