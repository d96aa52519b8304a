//! The leader's part: the members' bytes in, their assignments' bytes out.

use std::time::Instant;

use kafka_assignors_core::group::Group;
use kafka_assignors_core::leader::{self, Assignments, ClaimSource, HandedOut, JoinedMember, Memory};
use kafka_assignors_core::strategy::Strategy;
use kafka_assignors_core::wire::writer::WriteError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use crate::errors::{GroupError, GroupTypeError, wrong_type};
use crate::group::{PyTopics, optional_text, text};
use crate::plan::Plan;
use crate::watch::interruptible;

const SHAPE: &str = "(member id, metadata) or (member id, instance id, metadata)";

/// One member as the coordinator listed it; Python's own strings and bytes, borrowed.
struct Member {
    id: PyBackedStr,
    instance_id: Option<PyBackedStr>,
    metadata: PyBackedBytes,
}

impl Member {
    fn read(entry: &Bound<'_, PyAny>, position: usize) -> PyResult<Self> {
        let what = |field: &str| format!("{field} of members[{position}]");
        let Ok(entry) = entry.cast::<PyTuple>() else {
            return Err(wrong_type(&format!("members[{position}]"), entry, &format!("a tuple {SHAPE}")));
        };
        let (instance_id, metadata) = match entry.len() {
            2 => (None, entry.get_item(1)?),
            3 => (optional_text(&entry.get_item(1)?, &|| what("the instance id"))?, entry.get_item(2)?),
            length => {
                let message = format!("members[{position}] is a tuple of {length}; give {SHAPE}");
                return Err(GroupTypeError::new_err(message));
            }
        };
        let id = text(&entry.get_item(0)?, &|| what("the member id"))?;
        let metadata = metadata.extract().map_err(|_| wrong_type(&what("the metadata"), &metadata, "bytes"))?;
        Ok(Self { id, instance_id, metadata })
    }

    fn joined(&self) -> JoinedMember<'_> {
        JoinedMember { id: &self.id, instance_id: self.instance_id.as_deref(), metadata: &self.metadata }
    }
}

fn read_members(members: &Bound<'_, PyAny>) -> PyResult<Vec<Member>> {
    members.try_iter()?.enumerate().map(|(position, entry)| Member::read(&entry?, position)).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn write_error(error: WriteError) -> PyErr {
    GroupError::new_err(error.to_string())
}

fn to_dict<'py>(py: Python<'py>, group: &Group, assignments: Assignments) -> PyResult<Bound<'py, PyDict>> {
    let mut backwards = Vec::with_capacity(assignments.len());
    assignments.consume_backwards(|assignment| backwards.push(PyBytes::new(py, assignment)));
    let bytes = PyDict::new(py);
    for (id, assignment) in group.member_ids().iter().zip(backwards.into_iter().rev()) {
        bytes.set_item(PyString::new(py, id), assignment)?;
    }
    Ok(bytes)
}

/// A leader's memory: its plans with the generations that they were made for, and whether the client hides instance ids.
pub(crate) type Remembered = (Vec<(Option<i32>, Py<Plan>)>, bool);

/// Plans a rebalance, bytes to bytes; other Python threads run while it is planned. `forming` is the generation that is being
/// formed, `seconds` how long the search for the best plan may take.
pub(crate) fn perform_assignment<'py>(
    py: Python<'py>,
    strategy: Strategy,
    members: &Bound<'py, PyAny>,
    partitions: &Bound<'py, PyDict>,
    lags: Option<&Bound<'py, PyDict>>,
    (forming, seconds): (Option<i32>, Option<f64>),
    remembered: Option<Remembered>,
) -> PyResult<(Bound<'py, PyDict>, Plan)> {
    let start = Instant::now();
    let members = read_members(members)?;
    let topics = PyTopics::read(partitions)?.number_and_weigh(lags)?;
    let performed = interruptible(py, seconds, |limit| {
        let joined: Vec<_> = members.iter().map(Member::joined).collect();
        let (plans, anonymous) = remembered.as_ref().map_or((&[][..], false), |(plans, anonymous)| (plans, *anonymous));
        let plans: Vec<HandedOut<'_>> =
            plans.iter().map(|(generation, plan)| plan.get().handed_out(*generation)).collect();
        let memory = Memory { plans: &plans, anonymous };
        leader::perform_assignment_knowing(&joined, topics, strategy, forming, limit, &memory)
    })?
    .map_err(write_error)?;
    let leader::Performed { outcome, group, assignments, generation, faults, record_bytes, .. } = performed;
    let bytes = to_dict(py, &group, assignments)?;
    let faults = faults.into_iter().map(|fault| (fault.member_id, fault.reason.to_string())).collect();
    let plan = Plan::new(group, strategy, outcome, faults, record_bytes, start.elapsed());
    Ok((bytes, plan.written(generation)))
}

/// What reading the same bytes and writing as many costs, nothing balanced.
pub(crate) fn codec_floor<'py>(
    py: Python<'py>,
    strategy: Strategy,
    members: &Bound<'py, PyAny>,
    partitions: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let members = read_members(members)?;
    let topics = PyTopics::read(partitions)?.number()?;
    let (joined, assignments) = py
        .detach(|| {
            let joined: Vec<_> = members.iter().map(Member::joined).collect();
            leader::codec_floor(&joined, topics, ClaimSource::of(strategy))
        })
        .map_err(write_error)?;
    to_dict(py, &joined.group, assignments)
}
