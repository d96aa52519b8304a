//! The leader's task: read the members' metadata bytes, write the bytes of their assignments.

use std::time::Instant;

use kafka_assignors_core::planning::leader::{self, Assignments, HandedOut, JoinedMember, Memory};
use kafka_assignors_core::planning::strategy::Strategy;
use kafka_assignors_core::protocol::writer::WriteError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use crate::errors::{GroupError, GroupTypeError, wrong_type};
use crate::group::{PyTopics, optional_text, text};
use crate::interrupt::interruptible;
use crate::plan::Plan;

const SHAPE: &str = "(member id, metadata) or (member id, instance id, metadata)";

/// One member as the coordinator listed it. Its strings and bytes are borrowed from Python.
pub(crate) struct Member {
    id: PyBackedStr,
    instance_id: Option<PyBackedStr>,
    pub(crate) metadata: PyBackedBytes,
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
        let given = entry.get_item(0)?;
        let mut id = text(&given, &|| what("the member id"))?;
        if !given.is_exact_instance_of::<PyString>() {
            // The id becomes a key of the result, and a subclass of `str` may override hash and comparison.
            id = PyString::new(entry.py(), &id).try_into()?;
        }
        let metadata = metadata.extract().map_err(|_| wrong_type(&what("the metadata"), &metadata, "bytes"))?;
        Ok(Self { id, instance_id, metadata })
    }

    pub(crate) fn joined(&self) -> JoinedMember<'_> {
        JoinedMember { id: &self.id, instance_id: self.instance_id.as_deref(), metadata: &self.metadata }
    }
}

pub(crate) fn read_members(members: &Bound<'_, PyAny>) -> PyResult<Vec<Member>> {
    members.try_iter()?.enumerate().map(|(position, entry)| Member::read(&entry?, position)).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
pub(crate) fn write_error(error: WriteError) -> PyErr {
    GroupError::new_err(error.to_string())
}

/// The assignments by member id. `order` has the position of each member in `members`. The keys are the strings of `members`
/// and not copies, since Python may have computed their hashes already.
pub(crate) fn to_dict<'py>(
    py: Python<'py>,
    members: &[Member],
    order: &[u32],
    assignments: Assignments,
) -> PyResult<Bound<'py, PyDict>> {
    let mut backwards = Vec::with_capacity(assignments.len());
    assignments.consume_backwards(|assignment| backwards.push(PyBytes::new(py, assignment)));
    let bytes = PyDict::new(py);
    for (&position, assignment) in order.iter().zip(backwards.into_iter().rev()) {
        bytes.set_item(members[position as usize].id.as_py_str(), assignment)?;
    }
    Ok(bytes)
}

/// A leader's memory: its plans with their generations, whether the client hides instance ids, and whether the assignments were
/// sent without user data.
pub(crate) type Remembered = (Vec<(Option<i32>, Py<Plan>)>, bool, bool);

/// The rebalance that a leader plans for.
pub(crate) struct Rebalance {
    /// The generation that is being formed.
    pub(crate) generation: Option<i32>,
    /// The time limit of the search for the best plan.
    pub(crate) seconds: Option<f64>,
    /// The plans that the leader remembers.
    pub(crate) remembered: Option<Remembered>,
}

/// Plans a rebalance, from metadata bytes to assignment bytes. Other Python threads run meanwhile.
pub(crate) fn perform_assignment<'py>(
    py: Python<'py>,
    strategy: Strategy,
    members: &Bound<'py, PyAny>,
    partitions: &Bound<'py, PyDict>,
    lags: Option<&Bound<'py, PyDict>>,
    rebalance: Rebalance,
) -> PyResult<(Bound<'py, PyDict>, Plan)> {
    let start = Instant::now();
    let Rebalance { generation: forming, seconds, remembered } = rebalance;
    let members = read_members(members)?;
    let topics = PyTopics::read(partitions)?.number_and_weigh(lags)?;
    let performed = interruptible(py, seconds, |limit| {
        let joined: Vec<_> = members.iter().map(Member::joined).collect();
        let (plans, anonymous, bare) =
            remembered.as_ref().map_or((&[][..], false, false), |(plans, anonymous, bare)| (plans, *anonymous, *bare));
        let plans: Vec<HandedOut<'_>> =
            plans.iter().map(|(generation, plan)| plan.get().handed_out(*generation, bare)).collect();
        let memory = Memory { plans: &plans, anonymous };
        leader::perform_assignment_knowing(&joined, topics, strategy, forming, limit, &memory)
    })?
    .map_err(write_error)?;
    let leader::Performed { outcome, group, forming, order, assignments, generation, faults, record_bytes } = performed;
    let bytes = to_dict(py, &members, &order, assignments)?;
    let faults = faults.into_iter().map(|fault| (fault.member_id, fault.reason.to_string())).collect();
    let plan = Plan::new(group, strategy, forming, outcome, faults, record_bytes, start.elapsed());
    Ok((bytes, plan.written(generation)))
}

/// Reads the same bytes and writes as many, without planning: the cost of decoding and encoding alone.
#[cfg(feature = "bench")]
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
            leader::codec_floor(&joined, topics, leader::ClaimSource::of(strategy))
        })
        .map_err(write_error)?;
    to_dict(py, &members, &joined.order, assignments)
}

/// Takes the same arguments and returns each member's own metadata, without the core: the cost of Python's objects alone.
#[cfg(feature = "bench")]
pub(crate) fn boundary_floor<'py>(
    py: Python<'py>,
    members: &Bound<'py, PyAny>,
    partitions: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let members = read_members(members)?;
    let topics = PyTopics::read(partitions)?.number()?;
    let metadata = interruptible(py, None, |_| Assignments::of(members.iter().map(|member| &*member.metadata)))?;
    let order: Vec<u32> = (0..members.len() as u32).collect();
    drop(topics);
    to_dict(py, &members, &order, metadata)
}
