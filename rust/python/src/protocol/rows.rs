//! The rows of an answer, made when they are asked for.
//!
//! A row as a dict of Python takes ten times what it takes in the core, and an answer has as many rows as a stranger wrote.
//! Whoever goes through them needs one at a time.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// A sequence that cannot be changed. Equal to a list with equal rows.
#[pyclass(frozen, sequence, module = "kafka_assignors._core")]
pub(crate) struct Rows {
    length: usize,
    row: Box<MakeRow>,
}

type MakeRow = dyn Fn(Python<'_>, usize) -> PyResult<Py<PyAny>> + Send + Sync;

impl Rows {
    /// So many rows, each made by its index.
    pub(crate) fn new<R>(length: usize, row: impl Fn(Python<'_>, usize) -> R + Send + Sync + 'static) -> Self
    where
        R: for<'py> IntoPyObject<'py>,
    {
        Self { length, row: Box::new(move |py: Python<'_>, at: usize| row(py, at).into_py_any(py)) }
    }
}

#[pymethods]
impl Rows {
    fn __len__(&self) -> usize {
        self.length
    }

    fn __getitem__(&self, py: Python<'_>, index: isize) -> PyResult<Py<PyAny>> {
        let index = if index < 0 { index.saturating_add_unsigned(self.length) } else { index };
        match usize::try_from(index) {
            Ok(at) if at < self.length => (self.row)(py, at),
            _ => Err(PyIndexError::new_err("row index out of range")),
        }
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.list(py)?.eq(match other.cast::<Self>() {
            Ok(rows) => rows.get().list(py)?.into_any(),
            Err(_) => other.clone(),
        })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.list(py)?.repr()?.to_string())
    }
}

impl Rows {
    fn list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = (0..self.length).map(|at| (self.row)(py, at)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, rows)
    }
}
