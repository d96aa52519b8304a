//! A plan as Python sees it: a handle that turns itself into dictionaries and lists when it is asked.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use kafka_assignors_core::budget::Limit;
use kafka_assignors_core::group::{Csr, Group, Topics};
use kafka_assignors_core::lag;
use kafka_assignors_core::leader::{HandedOut, record_bytes_of_plan};
use kafka_assignors_core::plan::Reason;
use kafka_assignors_core::score;
use kafka_assignors_core::strategy::{Outcome, Strategy, plan, settle};
use kafka_assignors_core::stream_join::{self, Notice};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyString};

use crate::errors::PlanError;
use crate::watch::interruptible;

/// A member whose metadata could not be read in full, and why.
pub(crate) type Fault = (String, String);

/// Topic, number, the member that had it, the member that gets it.
type Move<'py> = (Bound<'py, PyString>, u32, Option<Bound<'py, PyString>>, Option<Bound<'py, PyString>>);

/// Topic, number, the kind of the reason, the member that is to have it or whose number it is, and the member that must
/// revoke it first or the topic that keeps it out.
type Unassigned<'py> =
    (Bound<'py, PyString>, u32, &'static str, Option<Bound<'py, PyString>>, Option<Bound<'py, PyString>>);

/// Balance score, moved, kept, rack misses, optimal, and the search that ended early; values with a bound as pairs.
type Certificate = ((u128, Option<u128>), (u64, Option<u64>), u64, (u64, Option<u64>), bool, Option<String>);

/// What a strategy made of a group.
#[pyclass(frozen, module = "kafka_assignors._core")]
pub(crate) struct Plan {
    group: Group,
    strategy: Strategy,
    outcome: Outcome,
    faults: Vec<Fault>,
    record_bytes: u64,
    /// The generation, or epoch, in the assignments, if they were written.
    written: Option<i32>,
    elapsed: Duration,
    by_member: OnceLock<Csr>,
}

impl Plan {
    pub(crate) fn new(
        group: Group,
        strategy: Strategy,
        outcome: Outcome,
        faults: Vec<Fault>,
        record_bytes: u64,
        elapsed: Duration,
    ) -> Self {
        Self { group, strategy, outcome, faults, record_bytes, written: None, elapsed, by_member: OnceLock::new() }
    }

    /// The plan with the generation, or epoch, that its assignments carry.
    pub(crate) fn written(self, written: Option<i32>) -> Self {
        Self { written, ..self }
    }

    /// The plan in a leader's memory.
    pub(crate) fn handed_out(&self, generation: Option<i32>) -> HandedOut<'_> {
        HandedOut { generation, written: self.written, group: &self.group, outcome: &self.outcome }
    }

    /// Plans a group, letting other Python threads run meanwhile.
    pub(crate) fn solve(py: Python<'_>, mut group: Group, strategy: Strategy, forming: Option<i32>) -> PyResult<Self> {
        interruptible(py, None, |limit| {
            let start = Instant::now();
            let ownership = settle(&group, strategy, forming);
            group.forget_claims();
            let outcome = plan(&group, strategy, ownership, limit);
            let elapsed = start.elapsed();
            let record_bytes = record_bytes_of_plan(&group, &outcome.plan, strategy);
            Self::new(group, strategy, outcome, Vec::new(), record_bytes, elapsed)
        })
    }

    fn topics(&self) -> &Topics {
        self.group.topics()
    }

    fn has_lags(&self) -> bool {
        matches!(self.strategy, Strategy::Lag(_)) && self.topics().lags().len() == self.topics().partitions()
    }

    fn by_member(&self) -> &Csr {
        self.by_member.get_or_init(|| Csr::group_by(&self.outcome.plan.owner, self.group.members()))
    }

    fn loads(&self) -> Vec<u64> {
        self.by_member().rows().map(|row| row.len() as u64).collect()
    }

    fn topic_name<'py>(&self, py: Python<'py>, topic: u32) -> Bound<'py, PyString> {
        PyString::new(py, self.topics().names().get(topic))
    }

    fn topic_names<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyString>> {
        self.topics().names().iter().map(|name| PyString::new(py, name)).collect()
    }

    fn member_names<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyString>> {
        self.group.member_ids().iter().map(|id| PyString::new(py, id)).collect()
    }

    /// The partitions of one member as a dictionary, given how to name a topic, the topic of a flat partition, and the
    /// Python integer of a number.
    fn share<'py>(
        &self,
        py: Python<'py>,
        member: u32,
        name: impl Fn(u32) -> Bound<'py, PyString>,
        topic_of: impl Fn(u32) -> u32,
        number: impl Fn(u32) -> Bound<'py, PyInt>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let share = PyDict::new(py);
        let mut row = self.by_member().row(member);
        while let Some(&first) = row.first() {
            let topic = topic_of(first);
            let range = self.topics().range(topic);
            let length = row.iter().position(|&partition| partition >= range.end).unwrap_or(row.len());
            let (here, rest) = row.split_at(length);
            let numbers = PyList::new(py, here.iter().map(|&partition| number(partition - range.start)))?;
            share.set_item(name(topic), numbers)?;
            row = rest;
        }
        Ok(share)
    }

    /// Walks all partitions with their topic and number.
    fn each(&self, mut visit: impl FnMut(usize, u32, u32)) {
        for topic in 0..self.topics().len() as u32 {
            let range = self.topics().range(topic);
            for partition in range.clone() {
                visit(partition as usize, topic, partition - range.start);
            }
        }
    }
}

/// Keeps Python's cycle collector from running while millions of containers are made, none of which can be garbage: it would
/// walk all of them again and again. The interpreter stays attached throughout, so no other thread sees the pause.
struct CollectorPause<'py>(Option<Bound<'py, PyModule>>);

impl<'py> CollectorPause<'py> {
    fn new(py: Python<'py>) -> PyResult<Self> {
        let gc = py.import(intern!(py, "gc"))?;
        if !gc.call_method0(intern!(py, "isenabled"))?.is_truthy()? {
            return Ok(Self(None));
        }
        gc.call_method0(intern!(py, "disable"))?;
        Ok(Self(Some(gc)))
    }
}

impl Drop for CollectorPause<'_> {
    fn drop(&mut self) {
        if let Some(gc) = &self.0 {
            // Cannot fail; and there is nobody to tell.
            let _ = gc.call_method0(intern!(gc.py(), "enable"));
        }
    }
}

#[pymethods]
impl Plan {
    /// Every member's partitions: member to topic to ascending numbers.
    fn assignment<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let names = self.topic_names(py);
        let topic_of = self.topics().of_partitions();
        // Small integers repeat from topic to topic: each is made once.
        let highest = (0..self.topics().len() as u32).map(|topic| self.topics().count(topic)).max().unwrap_or(0);
        let numbers: Vec<_> = (0..highest).map(|number| PyInt::new(py, number)).collect();
        let _pause = CollectorPause::new(py)?;
        let assignment = PyDict::new(py);
        for (member, id) in (0u32..).zip(self.member_names(py)) {
            let share = self.share(
                py,
                member,
                |topic| names[topic as usize].clone(),
                |partition| topic_of[partition as usize],
                |number| numbers[number as usize].clone(),
            )?;
            assignment.set_item(id, share)?;
        }
        Ok(assignment)
    }

    /// One member's partitions; None if there is no such member.
    fn share_of<'py>(&self, py: Python<'py>, member_id: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(member) = self.group.member_ids().find_sorted(member_id) else { return Ok(None) };
        let share = self.share(
            py,
            member,
            |topic| self.topic_name(py, topic),
            |partition| self.topics().locate(partition).0,
            |number| PyInt::new(py, number),
        )?;
        Ok(Some(share))
    }

    /// The ids of all members, in byte order.
    #[getter]
    fn member_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.member_names(py))
    }

    /// The number of members.
    fn __len__(&self) -> usize {
        self.group.members()
    }

    /// The KIP-54 balance score.
    #[getter]
    fn balance_score(&self) -> u128 {
        score::balance_score(&self.loads())
    }

    /// Partitions that stay with their owner, and partitions that had one and change it.
    fn kept_and_moved(&self) -> (u32, u32) {
        self.outcome.kept_and_moved()
    }

    /// Every change of owner: topic, number, source, target.
    fn moves<'py>(&self, py: Python<'py>) -> Vec<Move<'py>> {
        let (topics, members) = (self.topic_names(py), self.member_names(py));
        let (before, after) = (&self.outcome.ownership.owner, &self.outcome.target().owner);
        let mut moves = Vec::new();
        self.each(|partition, topic, number| {
            let (source, target) = (before[partition], after[partition]);
            if source != target {
                let member = |member: u32| members.get(member as usize).cloned();
                moves.push((topics[topic as usize].clone(), number, member(source), member(target)));
            }
        });
        moves
    }

    /// Every partition that nobody gets now: topic, number, kind of reason, and two names that depend on it.
    fn unassigned<'py>(&self, py: Python<'py>) -> Vec<Unassigned<'py>> {
        let (topics, members) = (self.topic_names(py), self.member_names(py));
        let mut unassigned = Vec::new();
        for (partition, reason) in self.outcome.unassigned(&self.group) {
            let (topic, number) = self.topics().locate(partition);
            let member = |member: u32| members.get(member as usize).cloned();
            let target = member(self.outcome.target().owner[partition as usize]);
            let (kind, who, other) = match reason {
                Reason::NoSubscriber => ("no-subscriber", None, None),
                Reason::Withheld { holder } => ("withheld", target, member(holder)),
                Reason::Contested => ("contested", target, None),
                Reason::OwnerNotSubscribed { owner } => ("owner-not-subscribed", member(owner), None),
                Reason::Beyond { topic } => ("beyond", None, topics.get(topic as usize).cloned()),
            };
            unassigned.push((topics[topic as usize].clone(), number, kind, who, other));
        }
        unassigned
    }

    /// Whether this is a stream join.
    #[getter]
    fn joins(&self) -> bool {
        matches!(self.strategy, Strategy::StreamJoin { .. })
    }

    /// What is odd about the topics of a stream join: topic, kind, and the partition count that it has.
    fn notices(&self) -> Vec<(String, &'static str, u32)> {
        if !self.joins() {
            return Vec::new();
        }
        let described = |topic: u32| self.topics().names().get(topic).to_owned();
        let notices = stream_join::notices(&self.group).into_iter();
        notices
            .map(|notice| match notice {
                Notice::Missing(topic) => (topic, "missing", 0),
                Notice::Shrunk(topic) => (described(topic), "shrunk", self.topics().count(topic)),
                Notice::Cuts(topic) => (described(topic), "cuts", self.topics().count(topic)),
            })
            .collect()
    }

    /// Which search of the strategy ended early, and why; None if none did.
    #[getter]
    fn limited(&self) -> Option<String> {
        self.outcome.limited.map(|limited| limited.to_string())
    }

    /// Checks the plan by code that shares nothing with the solver, while other Python threads run. Gives balance score and
    /// its bound, moved and its bound, kept, rack misses and their bound, whether it is proven that no plan is better, and which
    /// search for a bound ended early.
    fn verify(&self, py: Python<'_>) -> PyResult<Certificate> {
        let verify = |limit: &Limit<'_>| self.outcome.verify_within(&self.group, self.strategy, limit);
        let certificate = interruptible(py, None, verify)?;
        let certificate = certificate.map_err(|fault| PlanError::new_err(fault.to_string()))?;
        Ok((
            (certificate.score, certificate.score_bound),
            (certificate.moved, certificate.moved_bound),
            certificate.kept,
            (certificate.rack_misses, certificate.rack_misses_bound),
            certificate.is_optimal(),
            certificate.limited.map(|limited| limited.to_string()),
        ))
    }

    /// By member, its total lag; None if the plan was made without lags.
    fn lag_by_member(&self) -> Option<Vec<u128>> {
        self.has_lags().then(|| lag::lag_by_member(&self.group, &self.outcome.plan))
    }

    /// A lower bound on the lag of the heaviest member in any plan; None if this one was made without lags.
    fn lag_bound(&self, py: Python<'_>) -> PyResult<Option<u128>> {
        let bound = |limit: &Limit<'_>| lag::lag_bound_within(&self.group, limit).0;
        self.has_lags().then(|| interruptible(py, None, bound)).transpose()
    }

    /// Members whose metadata could not be read in full, each with the reason.
    #[getter]
    fn faults(&self) -> Vec<Fault> {
        self.faults.clone()
    }

    /// The size of the record that the broker writes for the group, in bytes.
    #[getter]
    fn record_bytes(&self) -> u64 {
        self.record_bytes
    }

    /// How long reading, planning and writing took, in seconds.
    #[getter]
    fn seconds(&self) -> f64 {
        self.elapsed.as_secs_f64()
    }
}
