//! The types of cluster whose partitions are read from a dictionary, each with the attribute that has the dictionary.
//!
//! The package registers the types of the clients that it knows; users register those of their own clients.

use std::ptr;
use std::sync::{PoisonError, RwLock};

use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use crate::errors::{PartitionerError, partitioner_type};

struct Registered {
    cluster_type: Py<PyType>,
    attribute: Py<PyString>,
}

/// A lookup compares pointers and runs no Python code. Under this lock Python code could call a partitioner, which would
/// wait for the same lock.
static REGISTERED: RwLock<Vec<Registered>> = RwLock::new(Vec::new());

/// From now on the partitions of clusters of exactly this type are read from the dictionary in this attribute. A type
/// that is registered already gets the new attribute.
#[pyfunction]
pub(crate) fn register_cluster_type(cluster_type: &Bound<'_, PyAny>, attribute: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = cluster_type.py();
    let cluster_type =
        cluster_type.cast::<PyType>().map_err(|_| partitioner_type("cluster_type", cluster_type, "a class"))?;
    let name =
        attribute.cast::<PyString>().map_err(|_| partitioner_type("attribute", attribute, "an attribute's name"))?;
    let name = name.to_str().map_err(|error| {
        PartitionerError::new_err(format!("attribute cannot be represented ({error}); give an attribute's name"))
    })?;
    // Interned, because Python finds the attribute of an interned name faster.
    let mut attribute = PyString::intern(py, name).unbind();
    // Locals are dropped in reverse order, so the old name is dropped after the lock was released.
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    match registered.iter_mut().find(|each| each.cluster_type.is(cluster_type)) {
        Some(known) => std::mem::swap(&mut known.attribute, &mut attribute),
        None => registered.push(Registered { cluster_type: cluster_type.clone().unbind(), attribute }),
    }
    Ok(())
}

/// The attribute that was registered for exactly the type of this cluster. An attribute that was registered for its base
/// class does not count, because a subclass may give it another meaning.
pub(super) fn attribute_of<'py>(cluster: &Bound<'py, PyAny>) -> Option<Bound<'py, PyString>> {
    let cluster_type = cluster.get_type_ptr();
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    let found = registered.iter().find(|each| ptr::eq(each.cluster_type.as_ptr().cast(), cluster_type))?;
    Some(found.attribute.bind(cluster.py()).clone())
}
