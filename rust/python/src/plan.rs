//! Python's handle of a plan. Its methods convert the plan to dictionaries and lists on demand.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use kafka_assignors_core::planning::budget::Limit;
use kafka_assignors_core::planning::group::{Csr, Group, MANY_CLAIMS, Topics};
use kafka_assignors_core::planning::lag;
use kafka_assignors_core::planning::leader::{HandedOut, record_bytes_of_plan};
use kafka_assignors_core::planning::plan::{LeavesOut, Outcome, UnassignedReason};
use kafka_assignors_core::planning::score;
use kafka_assignors_core::planning::strategy::{Strategy, near_optimum, plan, settle};
use kafka_assignors_core::planning::stream_join::{self, JoinNotice};
use kafka_assignors_core::planning::weights::Weighed;
use kafka_assignors_core::verify::{verify_outcome_from, verify_restricted, verify_weighted};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyString};

use crate::errors::PlanError;
use crate::interrupt::interruptible;

/// A member whose metadata could not be read in full, and why.
pub(crate) type Fault = (String, String);

/// Topic, partition number, previous owner, new owner.
type Move<'py> = (Bound<'py, PyString>, u32, Option<Bound<'py, PyString>>, Option<Bound<'py, PyString>>);

/// Topic, partition number, kind of the reason, and two names that depend on the kind. First the member that will get
/// the partition, or in a stream join the member that owns its number. Then the member that must revoke it first, or the
/// topic that prevents the assignment.
type Unassigned<'py> =
    (Bound<'py, PyString>, u32, &'static str, Option<Bound<'py, PyString>>, Option<Bound<'py, PyString>>);

/// Balance score, moved, kept, rack misses, optimal, the search that ended early, the number of partitions that a user's own
/// assignor left out, and the worst relative load of a weighted plan. A pair is a value and its bound.
type Certificate =
    ((u128, Option<u128>), (u64, Option<u64>), u64, (u64, Option<u64>), bool, Option<String>, u64, Option<(f64, f64)>);

/// A plan for a group.
#[pyclass(frozen, module = "kafka_assignors._core")]
pub(crate) struct Plan {
    group: Group,
    strategy: Strategy,
    /// The generation that the rebalance forms, if it is known. The claims were settled for it.
    forming: Option<i32>,
    outcome: Outcome,
    faults: Vec<Fault>,
    record_bytes: u64,
    /// The generation, or epoch, in the assignment bytes, if they were written.
    written: Option<i32>,
    elapsed: Duration,
    by_member: OnceLock<Csr>,
}

impl Plan {
    pub(crate) fn new(
        group: Group,
        strategy: Strategy,
        forming: Option<i32>,
        outcome: Outcome,
        faults: Vec<Fault>,
        record_bytes: u64,
        elapsed: Duration,
    ) -> Self {
        let by_member = OnceLock::new();
        Self { group, strategy, forming, outcome, faults, record_bytes, written: None, elapsed, by_member }
    }

    /// The plan with the generation, or epoch, in its assignment bytes.
    pub(crate) fn written(self, written: Option<i32>) -> Self {
        Self { written, ..self }
    }

    /// The plan as an entry of a leader's memory.
    /// If the assignments were sent `bare`, without user data, members claim their partitions with the group's generation.
    pub(crate) fn handed_out(&self, generation: Option<i32>, bare: bool) -> HandedOut<'_> {
        let written = if bare { generation } else { self.written };
        HandedOut { generation, written, group: &self.group, outcome: &self.outcome }
    }

    /// Plans a group. Other Python threads run meanwhile.
    pub(crate) fn solve(py: Python<'_>, mut group: Group, strategy: Strategy, forming: Option<i32>) -> PyResult<Self> {
        interruptible(py, None, |limit| {
            let start = Instant::now();
            let ownership = settle(&group, strategy, forming);
            group.pack_claims(&ownership.owner, MANY_CLAIMS);
            let outcome = plan(&group, strategy, ownership, limit);
            let elapsed = start.elapsed();
            let record_bytes = record_bytes_of_plan(&group, &outcome.plan, strategy);
            Self::new(group, strategy, forming, outcome, Vec::new(), record_bytes, elapsed)
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

    /// The partitions of one member as a dictionary. The functions map a topic to its name, a flat partition to its
    /// topic, and a number to its Python integer.
    fn partitions_of<'py>(
        &self,
        py: Python<'py>,
        member: u32,
        name: impl Fn(u32) -> Bound<'py, PyString>,
        topic_of: impl Fn(u32) -> u32,
        number: impl Fn(u32) -> Bound<'py, PyInt>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let partitions = PyDict::new(py);
        let mut row = self.by_member().row(member);
        while let Some(&first) = row.first() {
            let topic = topic_of(first);
            let range = self.topics().range(topic);
            let length = row.iter().position(|&partition| partition >= range.end).unwrap_or(row.len());
            let (here, rest) = row.split_at(length);
            let numbers = PyList::new(py, here.iter().map(|&partition| number(partition - range.start)))?;
            partitions.set_item(name(topic), numbers)?;
            row = rest;
        }
        Ok(partitions)
    }

    /// Calls `visit` for each partition, with its topic and number.
    fn each(&self, mut visit: impl FnMut(usize, u32, u32)) {
        for topic in 0..self.topics().len() as u32 {
            let range = self.topics().range(topic);
            for partition in range.clone() {
                visit(partition as usize, topic, partition - range.start);
            }
        }
    }
}

impl Plan {
    fn verify_weighted(&self, py: Python<'_>, weighed: &Weighed) -> PyResult<Certificate> {
        let cooperative = self.strategy.rules().cooperative();
        let verify =
            |limit: &Limit<'_>| verify_weighted(&self.group, weighed, cooperative, self.forming, &self.outcome, limit);
        let certificate = interruptible(py, None, verify)?.map_err(|fault| PlanError::new_err(fault.to_string()))?;
        let loads: Vec<u64> = self.outcome.target().loads(self.group.members()).into_iter().map(u64::from).collect();
        let sticky = certificate.sticky;
        Ok((
            (score::balance_score(&loads), sticky.and_then(|sticky| sticky.score_bound)),
            (certificate.moved, sticky.map_or(Some(certificate.moved_bound), |sticky| sticky.moved_bound)),
            certificate.kept,
            sticky.map_or((0, Some(0)), |sticky| (sticky.rack_misses, sticky.rack_misses_bound)),
            certificate.is_optimal(),
            sticky.and_then(|sticky| sticky.limited).map(|limited| limited.to_string()),
            0,
            Some((
                weighed.weights.given_relative_load(certificate.worst),
                weighed.weights.given_relative_load(certificate.bound),
            )),
        ))
    }
}

/// Pauses Python's cycle collector while millions of containers are created. None of them is garbage yet, and the
/// collector would traverse all of them again and again. The thread stays attached to the interpreter, so no other
/// thread sees the pause.
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
            // This cannot fail.
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
        // The same numbers appear in every topic: create each Python integer once.
        let highest = (0..self.topics().len() as u32).map(|topic| self.topics().count(topic)).max().unwrap_or(0);
        let numbers: Vec<_> = (0..highest).map(|number| PyInt::new(py, number)).collect();
        let _pause = CollectorPause::new(py)?;
        let assignment = PyDict::new(py);
        for (member, id) in (0u32..).zip(self.member_names(py)) {
            let partitions = self.partitions_of(
                py,
                member,
                |topic| names[topic as usize].clone(),
                |partition| topic_of[partition as usize],
                |number| numbers[number as usize].clone(),
            )?;
            assignment.set_item(id, partitions)?;
        }
        Ok(assignment)
    }

    /// One member's partitions; None if there is no such member.
    fn assignment_of<'py>(&self, py: Python<'py>, member_id: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(member) = self.group.member_ids().find_sorted(member_id) else { return Ok(None) };
        let partitions = self.partitions_of(
            py,
            member,
            |topic| self.topic_name(py, topic),
            |partition| self.topics().locate(partition).0,
            |number| PyInt::new(py, number),
        )?;
        Ok(Some(partitions))
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

    /// Every partition that no member gets: topic, number, kind of reason, and two names that depend on the kind.
    fn unassigned<'py>(&self, py: Python<'py>) -> Vec<Unassigned<'py>> {
        let (topics, members) = (self.topic_names(py), self.member_names(py));
        let mut unassigned = Vec::new();
        for (partition, reason) in self.outcome.unassigned(&self.group) {
            let (topic, number) = self.topics().locate(partition);
            let member = |member: u32| members.get(member as usize).cloned();
            let target = member(self.outcome.target().owner[partition as usize]);
            let (kind, who, other) = match reason {
                UnassignedReason::NoSubscriber => ("no-subscriber", None, None),
                UnassignedReason::NotPlanned => ("not-planned", None, None),
                UnassignedReason::NotAllowed => ("not-allowed", None, None),
                UnassignedReason::Full => ("full", None, None),
                UnassignedReason::Withheld { holder } => ("withheld", target, member(holder)),
                UnassignedReason::Contested => ("contested", target, None),
                UnassignedReason::OwnerNotSubscribed { owner } => ("owner-not-subscribed", member(owner), None),
                UnassignedReason::Beyond { topic } => ("beyond", None, topics.get(topic as usize).cloned()),
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

    /// The notices about the topics of a stream join: topic, kind of notice, partition count of the topic.
    fn notices(&self) -> Vec<(String, &'static str, u32)> {
        if !self.joins() {
            return Vec::new();
        }
        let described = |topic: u32| self.topics().names().get(topic).to_owned();
        let notices = stream_join::notices(&self.group).into_iter();
        notices
            .map(|notice| match notice {
                JoinNotice::Missing(topic) => (topic, "missing", 0),
                JoinNotice::Shrunk(topic) => (described(topic), "shrunk", self.topics().count(topic)),
                JoinNotice::Cuts(topic) => (described(topic), "cuts", self.topics().count(topic)),
            })
            .collect()
    }

    /// The search of the strategy that ended early, and the cause; None without such a search.
    #[getter]
    fn limited(&self) -> Option<String> {
        self.outcome.limited.map(|limited| limited.to_string())
    }

    /// Settles the claims again and checks the plan, with code that shares nothing with the solver. Other Python
    /// threads run meanwhile. Returns balance score and its bound, moved and its bound, kept, rack misses and their
    /// bound, whether the plan is proven optimal, the search for a bound that ended early, the number of partitions that a
    /// user's own assignor left out, and the worst relative load of a weighted plan and its bound.
    fn verify(&self, py: Python<'_>) -> PyResult<Certificate> {
        if let Some(weighed) = &self.outcome.weighed {
            return self.verify_weighted(py, weighed);
        }
        let verify = |limit: &Limit<'_>| {
            if let LeavesOut::Restricted(restrictions) = &self.outcome.leaves_out {
                return verify_restricted(&self.group, restrictions, self.forming, &self.outcome, limit);
            }
            let start = near_optimum(&self.group, self.strategy, &self.outcome, limit);
            verify_outcome_from(&self.group, self.strategy.rules(), self.forming, &self.outcome, &start, limit)
        };
        let certificate = interruptible(py, None, verify)?;
        let certificate = certificate.map_err(|fault| PlanError::new_err(fault.to_string()))?;
        Ok((
            (certificate.score, certificate.score_bound),
            (certificate.moved, certificate.moved_bound),
            certificate.kept,
            (certificate.rack_misses, certificate.rack_misses_bound),
            certificate.is_optimal(),
            certificate.limited.map(|limited| limited.to_string()),
            certificate.left_out,
            None,
        ))
    }

    /// The total lag of each member; None if the plan was made without lags.
    fn lag_by_member(&self) -> Option<Vec<u128>> {
        self.has_lags().then(|| lag::lag_by_member(&self.group, &self.outcome.plan))
    }

    /// A lower bound on the largest total lag of a member in any plan, and the reason why a larger one may be provable.
    /// None if this plan was made without lags.
    fn lag_bound(&self, py: Python<'_>) -> PyResult<Option<(u128, Option<String>)>> {
        let bound = |limit: &Limit<'_>| {
            let (bound, limited) = lag::lag_bound_within(&self.group, limit);
            (bound, limited.map(|limited| limited.to_string()))
        };
        self.has_lags().then(|| interruptible(py, None, bound)).transpose()
    }

    /// The load of each member after the withheld partitions are assigned too; None if the plan is not weighted.
    fn load_by_member(&self) -> Option<Vec<f64>> {
        let Weighed { weights, .. } = self.outcome.weighed.as_deref()?;
        let loads = weights.loads(&self.outcome.target().owner);
        Some(loads.into_iter().map(|load| weights.given_load(load)).collect())
    }

    /// The largest load relative to its member's capacity, and a lower bound of it in any plan; None if the plan is not weighted.
    fn worst_load(&self) -> Option<(f64, f64)> {
        let Weighed { weights, bound } = self.outcome.weighed.as_deref()?;
        let worst = weights.worst(&weights.loads(&self.outcome.target().owner));
        Some((weights.given_relative_load(worst), weights.given_relative_load(bound.least)))
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

    /// The duration of reading, planning and writing, in seconds.
    #[getter]
    fn seconds(&self) -> f64 {
        self.elapsed.as_secs_f64()
    }
}
