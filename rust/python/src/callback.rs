//! Callbacks for a client that is written in C.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A callback for confluent-kafka that never raises `KeyboardInterrupt`.
///
/// Ctrl-C during a blocked `poll` raises `KeyboardInterrupt` in the first Python code that runs. That can be a
/// callback, before its first line, where it has no `try` yet. The client loses an exception of a callback: `poll`
/// continues to wait, or fails with a `SystemError`. This wrapper catches the interrupt outside of the callback and
/// raises the signal again, so that `poll` ends with it.
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
