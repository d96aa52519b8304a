//! A group that a broker assigns.

use kafka_assignors_core::offsets_topic::{parse_topic_id, topic_id_text};
use kafka_assignors_core::planning::server_side::{
    Assignor, CoordinatorError, Described, Release, ServerSideGroup as Core, Subscribing, Uuid, When,
};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PyList};

use crate::errors::{GroupError, OptionError};

/// The assignor and the release with these names.
pub(crate) fn assignor(name: &str, broker: &str) -> PyResult<(Assignor, Release)> {
    let assignor = match name {
        "uniform" => Assignor::Uniform,
        "range" => Assignor::Range,
        _ => {
            let message = format!("assignor is {name:?}; the broker has 'uniform', 'range'");
            return Err(OptionError::new_err(message));
        }
    };
    let release = Release::parse(broker).map_err(|error| OptionError::new_err(error.to_string()))?;
    Ok((assignor, release))
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn refused(error: CoordinatorError) -> PyErr {
    GroupError::new_err(error.to_string())
}

fn when(later: bool) -> When {
    if later { When::Later } else { When::Now }
}

type Listed = (PyBackedStr, Option<PyBackedStr>, Vec<PyBackedStr>, Option<PyBackedStr>, Vec<(PyBackedStr, Vec<u32>)>);

/// A group of the new protocol as its coordinator sees it.
#[pyclass(module = "kafka_assignors._core")]
pub(crate) struct ServerSideGroup {
    core: Core,
}

#[pymethods]
impl ServerSideGroup {
    #[new]
    fn new(name: &str, broker: &str) -> PyResult<Self> {
        let (assignor, release) = assignor(name, broker)?;
        Ok(Self { core: Core::new(assignor, release) })
    }

    /// An independent group in the same state.
    fn copy(&self) -> Self {
        Self { core: self.core.clone() }
    }

    #[expect(clippy::needless_pass_by_value, reason = "extracted from Python as a value")]
    fn restore(&mut self, members: Vec<Listed>) -> PyResult<bool> {
        let listed: Vec<_> = members
            .iter()
            .map(|(id, instance, names, expression, target)| Described {
                id,
                instance: instance.as_deref(),
                names: names.iter().map(|name| &**name).collect(),
                expression: expression.as_deref(),
                target: target.iter().map(|(topic, partitions)| (&**topic, partitions.clone())).collect(),
            })
            .collect();
        self.core.restore(&listed).map_err(refused)
    }

    #[pyo3(signature = (name, partitions, id, later))]
    fn grow(&mut self, py: Python<'_>, name: &str, partitions: u32, id: Option<&str>, later: bool) -> PyResult<bool> {
        let id = id
            .map(|text| {
                let problem =
                    || GroupError::new_err(format!("topic id {text:?} is none; an id has 22 characters of base64"));
                parse_topic_id(text).map(Uuid::from_bytes).ok_or_else(problem)
            })
            .transpose()?;
        py.detach(|| self.core.grow(name, partitions, id, when(later))).map_err(refused)
    }

    fn delete(&mut self, py: Python<'_>, name: &str, later: bool) -> PyResult<bool> {
        py.detach(|| self.core.delete(name, when(later))).map_err(refused)
    }

    #[expect(clippy::needless_pass_by_value, reason = "extracted from Python as a value")]
    fn join(
        &mut self,
        py: Python<'_>,
        id: &str,
        instance: Option<&str>,
        names: Vec<PyBackedStr>,
        expression: Option<&str>,
        later: bool,
    ) -> PyResult<bool> {
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        let asked = Subscribing { names: &names, expression };
        py.detach(|| self.core.join(id, instance, asked, when(later))).map_err(refused)
    }

    #[expect(clippy::needless_pass_by_value, reason = "extracted from Python as a value")]
    fn subscribe(
        &mut self,
        py: Python<'_>,
        id: &str,
        names: Vec<PyBackedStr>,
        expression: Option<&str>,
        later: bool,
    ) -> PyResult<bool> {
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        let asked = Subscribing { names: &names, expression };
        py.detach(|| self.core.subscribe(id, asked, when(later))).map_err(refused)
    }

    fn leave(&mut self, py: Python<'_>, id: &str, returning: bool, later: bool) -> PyResult<bool> {
        py.detach(|| self.core.leave(id, returning, when(later))).map_err(refused)
    }

    #[expect(clippy::needless_pass_by_value, reason = "extracted from Python as a value")]
    fn resolve(&mut self, py: Python<'_>, expression: &str, names: Vec<PyBackedStr>, later: bool) -> PyResult<bool> {
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        py.detach(|| self.core.resolve(expression, &names, when(later))).map_err(refused)
    }

    fn plan(&mut self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.core.plan()).map_err(refused)
    }

    /// Whether the group has changes that are not planned yet.
    fn pending(&self) -> bool {
        self.core.is_pending()
    }

    /// The members in the order in which the assignor received them last, then the new ones.
    fn members(&self) -> Vec<&str> {
        self.core.members().collect()
    }

    /// The expressions of members.
    fn expressions(&self) -> Vec<&str> {
        self.core.expressions().collect()
    }

    /// Topic to its partition count and its id.
    fn topics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let topics = PyDict::new(py);
        for (name, id, partitions) in self.core.topics() {
            topics.set_item(name, (partitions, topic_id_text(id.to_bytes())))?;
        }
        Ok(topics)
    }

    /// Member to topic to partitions, in the orders of the coordinator's maps.
    fn target<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let target = PyDict::new(py);
        for member in self.core.members() {
            let topics = PyDict::new(py);
            for (name, partitions) in self.core.target(member).map_err(refused)? {
                topics.set_item(name, PyList::new(py, partitions)?)?;
            }
            target.set_item(member, topics)?;
        }
        Ok(target)
    }
}
