//! The Python exceptions that the bindings raise; they are defined in `kafka_assignors.errors`.

use kafka_assignors_core::planning::group::GroupError as CoreGroupError;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

pyo3::import_exception!(kafka_assignors.errors, EmbeddedKafkaError);
pyo3::import_exception!(kafka_assignors.errors, GroupError);
pyo3::import_exception!(kafka_assignors.errors, GroupTypeError);
pyo3::import_exception!(kafka_assignors.errors, OptionError);
pyo3::import_exception!(kafka_assignors.errors, MissingDependencyError);
pyo3::import_exception!(kafka_assignors.errors, PartitionerError);
pyo3::import_exception!(kafka_assignors.errors, PartitionerTypeError);
pyo3::import_exception!(kafka_assignors.errors, PlanError);
pyo3::import_exception!(kafka_assignors.errors, ProtocolError);
pyo3::import_exception!(kafka_assignors.errors, TableError);
pyo3::import_exception!(kafka_assignors.errors, UserDataError);

/// The Python exception for a group that the core refuses.
#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
pub(crate) fn group_error(error: CoreGroupError) -> PyErr {
    GroupError::new_err(error.to_string())
}

fn of_type(what: &str, value: &Bound<'_, PyAny>, wanted: &str) -> String {
    let name = value.get_type().name().map_or_else(|_| "an unnamed type".to_owned(), |name| name.to_string());
    format!("{what} is of type {name}; give {wanted}")
}

/// A [`GroupTypeError`]. The message names `what`, the type of `value`, and `wanted`, which the caller should give instead.
pub(crate) fn wrong_type(what: &str, value: &Bound<'_, PyAny>, wanted: &str) -> PyErr {
    GroupTypeError::new_err(of_type(what, value, wanted))
}

/// A [`PartitionerTypeError`] with the same message as [`wrong_type`].
pub(crate) fn partitioner_type(what: &str, value: &Bound<'_, PyAny>, wanted: &str) -> PyErr {
    PartitionerTypeError::new_err(of_type(what, value, wanted))
}

/// The error of a failed conversion of `what` to `wanted`: the type is wrong, or the value has no representation.
pub(crate) fn conversion(error: &PyErr, what: &str, value: &Bound<'_, PyAny>, wanted: &str) -> PyErr {
    if error.is_instance_of::<PyTypeError>(value.py()) {
        wrong_type(what, value, wanted)
    } else {
        GroupError::new_err(format!("{what} cannot be represented ({error}); give {wanted}"))
    }
}
