//! The rows of a response. Each row is converted to Python when it is read.
//!
//! As a Python dict, a row takes ten times the memory that it takes in the core, and an untrusted broker chooses the
//! number of rows. A loop over the rows needs only one dict at a time.

use std::ops::Deref;
use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// An immutable sequence. It equals a list with equal rows.
#[pyclass(frozen, sequence, module = "kafka_assignors._core")]
pub(crate) struct Rows {
    length: usize,
    row: Box<MakeRow>,
}

type MakeRow = dyn Fn(Python<'_>, usize) -> PyResult<Py<PyAny>> + Send + Sync;

impl Rows {
    /// One row for each value of the response.
    pub(crate) fn of<T, R>(values: Vec<T>, row: impl Fn(Shared<T>) -> R + Send + Sync + 'static) -> Self
    where
        T: Send + Sync + 'static,
        R: for<'py> IntoPyObject<'py>,
    {
        let values = Arc::new(values);
        Self::new(values.len(), move |_, at| row(Shared { values: values.clone(), at }))
    }

    /// `length` rows, each made from its index.
    fn new<R>(length: usize, row: impl Fn(Python<'_>, usize) -> R + Send + Sync + 'static) -> Self
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

/// A value of a response that contains rows itself. Those rows keep the value in memory.
pub(crate) struct Shared<T> {
    values: Arc<Vec<T>>,
    at: usize,
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.values[self.at]
    }
}

impl<T: Send + Sync + 'static> Shared<T> {
    /// One row for each element of a list in this value.
    pub(crate) fn rows<U: 'static, R>(self, list: fn(&T) -> &Vec<U>, row: fn(Python<'_>, &U) -> R) -> Rows
    where
        R: for<'py> IntoPyObject<'py> + 'static,
    {
        Rows::new(list(&self).len(), move |py, at| row(py, &list(&self)[at]))
    }
}

impl Rows {
    fn list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = (0..self.length).map(|at| (self.row)(py, at)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, rows)
    }
}
