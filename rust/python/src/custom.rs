//! A group whose assignor is the user's own, in Python: this module reads the group, Python plans it, and this module writes
//! the assignments of Python's plan.

use std::collections::HashMap;
use std::time::Instant;

use kafka_assignors_core::planning::custom::{Draft, outcome};
use kafka_assignors_core::planning::group::{Csr, Group, MANY_CLAIMS, NONE};
use kafka_assignors_core::planning::leader::{
    HandedOut, JoinedMember, Memory, Opened, Performed, member_data, open, record_bytes_of_plan,
};
use kafka_assignors_core::planning::objective::Objective;
use kafka_assignors_core::planning::ownership::Ownership;
use kafka_assignors_core::planning::plan::{Outcome, Plan as CorePlan};
use kafka_assignors_core::planning::replay::{Loads, Planned};
use kafka_assignors_core::planning::restrictions::Restrictions;
use kafka_assignors_core::planning::strategy::{Strategy, plan_restricted, settle};
use kafka_assignors_core::planning::weighted;
use kafka_assignors_core::planning::weights::{Weights, WeightsError, without_gaps};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::errors::{GroupError, PlanError, conversion};
use crate::group::{PyTopics, read_group};
use crate::interrupt::interruptible;
use crate::leader::{Member, Remembered, read_members, to_dict, write_error};
use crate::plan::{Fault, Plan};

/// Id, topics, owned partitions, generation, instance id, rack, and the data that the assignor of the member sent.
type MemberFields<'py> = (
    Bound<'py, PyString>,
    Vec<Bound<'py, PyString>>,
    Bound<'py, PyDict>,
    Option<i32>,
    Option<String>,
    Option<String>,
    Bound<'py, PyBytes>,
);

/// The members as JoinGroup listed them, and the group that was read from their metadata.
struct Joined {
    members: Vec<Member>,
    opened: Opened,
}

/// A group with settled claims, before its plan.
#[pyclass(frozen, module = "kafka_assignors._core")]
pub(crate) struct CustomGroup {
    cooperative: bool,
    forming: Option<i32>,
    /// The group of Python objects; `None` if `joined` contains the group, read from metadata.
    group: Option<Group>,
    joined: Option<Joined>,
    ownership: Ownership,
    begun: Instant,
}

impl CustomGroup {
    fn group(&self) -> &Group {
        match (&self.group, &self.joined) {
            (Some(group), _) => group,
            (None, Some(joined)) => &joined.opened.group,
            (None, None) => unreachable!("a group has one of the two"),
        }
    }

    fn strategy(&self) -> Strategy {
        Strategy::Custom { cooperative: self.cooperative }
    }

    /// The plan of an outcome. If the group was read from metadata, also the bytes of the assignments.
    fn close<'py>(&self, py: Python<'py>, outcome: Outcome) -> PyResult<(Option<Bound<'py, PyDict>>, Plan)> {
        let strategy = self.strategy();
        let Some(Joined { members, opened }) = &self.joined else {
            let group = self.group().clone();
            let bytes = record_bytes_of_plan(&group, &outcome.plan, strategy);
            let plan = Plan::new(group, strategy, self.forming, outcome, Vec::new(), bytes, self.begun.elapsed());
            return Ok((None, plan));
        };
        let joined: Vec<JoinedMember<'_>> = members.iter().map(Member::joined).collect();
        let performed = opened.clone().close(&joined, outcome).map_err(write_error)?;
        let Performed { outcome, group, forming, order, assignments, generation, faults, record_bytes } = performed;
        let bytes = to_dict(py, members, &order, assignments)?;
        let faults: Vec<Fault> = faults.into_iter().map(|fault| (fault.member_id, fault.reason.to_string())).collect();
        let plan = Plan::new(group, strategy, forming, outcome, faults, record_bytes, self.begun.elapsed());
        Ok((Some(bytes), plan.written(generation)))
    }

    fn outcome(&self, partitions: &Bound<'_, PyDict>) -> PyResult<Outcome> {
        Ok(outcome(read_plan(self.group(), partitions)?, self.ownership.clone(), self.cooperative))
    }
}

/// Reads and checks the plan that Python made.
fn read_plan(group: &Group, partitions: &Bound<'_, PyDict>) -> PyResult<CorePlan> {
    let mut draft = Draft::new(group);
    for (member, topics) in partitions {
        let id: String = member.extract()?;
        let member = draft.member(&id).map_err(|error| PlanError::new_err(error.to_string()))?;
        for (topic, numbers) in topics.cast::<PyDict>()? {
            let (topic, numbers): (String, Vec<i64>) = (topic.extract()?, numbers.extract()?);
            draft.give(member, &topic, numbers).map_err(|error| PlanError::new_err(error.to_string()))?;
        }
    }
    Ok(draft.finish())
}

/// Plans a group of a replay with a Python function. Its arguments are the partition counts, and the members in the form of
/// [`CustomGroup::members`]. It returns the partitions of each member, and the largest load with a lower bound, or None.
pub(crate) fn plan_with(
    py: Python<'_>,
    planner: &Bound<'_, PyAny>,
    group: &Group,
    ownership: &Ownership,
) -> PyResult<Planned> {
    let topics = PyDict::new(py);
    for (topic, name) in (0u32..).zip(group.topics().names().iter()) {
        topics.set_item(name, group.topics().count(topic))?;
    }
    let made = planner.call1((topics, member_fields(py, group, ownership, |_| &[])?))?;
    let (partitions, loads): (Bound<'_, PyDict>, Option<(f64, f64)>) = made.extract()?;
    Ok(Planned { plan: read_plan(group, &partitions)?, loads: loads.map(|(worst, bound)| Loads { worst, bound }) })
}

/// The members with their owned partitions, in byte order of their ids; `data` returns the data of a member.
fn member_fields<'py, 'a>(
    py: Python<'py>,
    group: &Group,
    ownership: &Ownership,
    data: impl Fn(u32) -> &'a [u8],
) -> PyResult<Vec<MemberFields<'py>>> {
    let topics: Vec<_> = group.topics().names().iter().map(|name| PyString::new(py, name)).collect();
    let owned_by = Csr::group_by(&ownership.owner, group.members());
    let racks = group.topics().racks().names.names();
    let mut members = Vec::with_capacity(group.members());
    for (member, id) in (0u32..).zip(group.member_ids().iter()) {
        let owned = PyDict::new(py);
        let mut row = owned_by.row(member);
        while let Some(&first) = row.first() {
            let topic = group.topics().locate(first).0;
            let range = group.topics().range(topic);
            let (here, rest) = row.split_at(row.partition_point(|&partition| partition < range.end));
            let numbers = PyList::new(py, here.iter().map(|&partition| partition - range.start))?;
            owned.set_item(&topics[topic as usize], numbers)?;
            row = rest;
        }
        let rack = group.racks()[member as usize];
        members.push((
            PyString::new(py, id),
            group.subscription(member).iter().map(|&topic| topics[topic as usize].clone()).collect(),
            owned,
            Some(group.generations()[member as usize]).filter(|&generation| generation >= 0),
            group.instance_id(member).map(str::to_owned),
            (rack != NONE).then(|| racks.get(rack).to_owned()),
            PyBytes::new(py, data(member)),
        ));
    }
    Ok(members)
}

#[pymethods]
impl CustomGroup {
    /// The members with their settled claims, in byte order of their ids.
    fn members<'py>(&self, py: Python<'py>) -> PyResult<Vec<MemberFields<'py>>> {
        member_fields(py, self.group(), &self.ownership, |member| {
            self.joined.as_ref().map_or(&[][..], |joined| {
                member_data(&joined.members[joined.opened.order[member as usize] as usize].metadata)
            })
        })
    }

    /// The plan that gives each member these partitions. If the group was read from metadata, also the bytes of the
    /// assignments. A cooperative assignor withholds partitions that another member still owns.
    fn finish<'py>(
        &self,
        py: Python<'py>,
        partitions: &Bound<'py, PyDict>,
    ) -> PyResult<(Option<Bound<'py, PyDict>>, Plan)> {
        self.close(py, self.outcome(partitions)?)
    }

    /// The data of each member whose assignor sent any, in byte order of their ids.
    fn data<'py>(&self, py: Python<'py>) -> Vec<(String, Bound<'py, PyBytes>)> {
        let Some(joined) = &self.joined else { return Vec::new() };
        let data = joined.opened.group.member_ids().iter().zip(&joined.opened.order).map(|(id, &position)| {
            let data = member_data(&joined.members[position as usize].metadata);
            (id.to_owned(), PyBytes::new(py, data))
        });
        data.filter(|(_, data)| !data.as_bytes().is_empty()).collect()
    }

    /// The weighted plan, as `finish`, and how many weights were unknown. `weights` has a list for each topic, by partition
    /// number, with None for an unknown weight; without it every partition weighs the same. `capacities` contains the
    /// members whose capacity is not 1.
    #[pyo3(signature = (weights, capacities, tolerance, seconds=None))]
    fn finish_weighted<'py>(
        &self,
        py: Python<'py>,
        weights: Option<&Bound<'py, PyDict>>,
        capacities: HashMap<String, f64>,
        tolerance: f64,
        seconds: Option<f64>,
    ) -> PyResult<(Option<Bound<'py, PyDict>>, Plan, usize)> {
        let group = self.group();
        let (weights, unknown) = match weights {
            Some(weights) => without_gaps(group.topics(), &read_weights(group, weights)?),
            None => (vec![1.0; group.topics().partitions()], 0),
        };
        let capacity = |id: &str| capacities.get(id).copied().unwrap_or(1.0);
        let capacities: Vec<f64> = group.member_ids().iter().map(capacity).collect();
        let weights = Weights::new(&weights, &capacities, tolerance).map_err(|error| weights_error(group, &error))?;
        let outcome = interruptible(py, seconds, |limit| {
            weighted::plan(group, self.ownership.clone(), weights, self.cooperative, limit)
        })?;
        let (bytes, plan) = self.close(py, outcome)?;
        Ok((bytes, plan, unknown))
    }
}

/// The weights by flat partition; `None` for a partition without a weight. Weights of topics and partitions that the group does
/// not have are ignored.
fn read_weights(group: &Group, weights: &Bound<'_, PyDict>) -> PyResult<Vec<Option<f64>>> {
    let topics = group.topics();
    let mut flat = vec![None; topics.partitions()];
    for (name, of_topic) in weights {
        let name: PyBackedStr = name.extract()?;
        let Some(topic) = topics.find(name.as_bytes()) else { continue };
        let slots = topics.range(topic);
        let slots = &mut flat[slots.start as usize..slots.end as usize];
        for (number, (slot, weight)) in slots.iter_mut().zip(of_topic.try_iter()?).enumerate() {
            let weight = weight?;
            *slot = weight.extract::<Option<f64>>().map_err(|error| {
                conversion(
                    &error,
                    &format!("weights[{name:?}][{number}]"),
                    &weight,
                    "a number, or None where it is unknown",
                )
            })?;
        }
    }
    Ok(flat)
}

fn weights_error(group: &Group, error: &WeightsError) -> PyErr {
    let remedy = match *error {
        WeightsError::Weight { partition, weight } => {
            let (topic, number) = group.topics().locate(partition);
            let topic = group.topics().names().get(topic);
            format!("weights[{topic:?}][{number}] is {weight}; give a finite number of at least 0")
        }
        WeightsError::Capacity { member, capacity } => {
            let member = group.member_ids().get(member);
            format!("the capacity of member {member:?} is {capacity}; give a number from 0.001 to 1,000,000")
        }
        WeightsError::Tolerance(_) => error.to_string(),
    };
    GroupError::new_err(remedy)
}

/// Plans a group of Python objects by the sticky strategy under restrictions.
///
/// `sets` are sets of member ids. `set_of` maps each restricted topic to a number for each partition: the index of the set of
/// the members that may own it, negative if every subscriber may. `capacity` maps each limited member to its largest number of
/// partitions.
#[pyfunction]
pub(crate) fn assign_restricted(
    py: Python<'_>,
    topics: &Bound<'_, PyDict>,
    members: &Bound<'_, PyAny>,
    sets: Vec<Vec<PyBackedStr>>,
    set_of: HashMap<PyBackedStr, Vec<i64>>,
    capacity: HashMap<PyBackedStr, u32>,
) -> PyResult<Plan> {
    let begun = Instant::now();
    let mut group = read_group(topics, members, None)?;
    let restrictions = read_restrictions(&group, &sets, &set_of, &capacity);
    interruptible(py, None, |limit| {
        let strategy = Strategy::Sticky(Objective::default());
        let ownership = settle(&group, strategy, None);
        group.pack_claims(&ownership.owner, MANY_CLAIMS);
        let outcome = plan_restricted(&group, ownership, restrictions, limit);
        let bytes = record_bytes_of_plan(&group, &outcome.plan, strategy);
        Plan::new(group, strategy, None, outcome, Vec::new(), bytes, begun.elapsed())
    })
}

/// Converts the names in the restrictions to numbers. Unknown names are skipped: Python has refused them before.
fn read_restrictions(
    group: &Group,
    sets: &[Vec<PyBackedStr>],
    set_of: &HashMap<PyBackedStr, Vec<i64>>,
    capacity: &HashMap<PyBackedStr, u32>,
) -> Restrictions {
    let mut restrictions = Restrictions::default();
    for set in sets {
        let mut members: Vec<u32> = set.iter().filter_map(|id| group.member_ids().find_sorted(id)).collect();
        members.sort_unstable();
        members.dedup();
        restrictions.sets.push_row(&members);
    }
    if !set_of.is_empty() {
        restrictions.set_of = vec![NONE; group.topics().partitions()];
    }
    for (topic, numbers) in set_of {
        let Some(topic) = group.topics().find(topic.as_bytes()) else { continue };
        for (slot, &set) in group.topics().range(topic).zip(numbers) {
            let set = u32::try_from(set).ok().filter(|&set| (set as usize) < sets.len());
            restrictions.set_of[slot as usize] = set.unwrap_or(NONE);
        }
    }
    if !capacity.is_empty() {
        restrictions.capacity = vec![u32::MAX; group.members()];
    }
    for (id, &most) in capacity {
        if let Some(member) = group.member_ids().find_sorted(id) {
            restrictions.capacity[member as usize] = most;
        }
    }
    restrictions
}

/// Reads a group of Python objects.
#[pyfunction]
pub(crate) fn open_group(
    py: Python<'_>,
    cooperative: bool,
    topics: &Bound<'_, PyDict>,
    members: &Bound<'_, PyAny>,
    generation: Option<i32>,
) -> PyResult<CustomGroup> {
    let begun = Instant::now();
    let mut group = read_group(topics, members, None)?;
    let ownership = interruptible(py, None, |_| {
        let ownership = settle(&group, Strategy::Custom { cooperative }, generation);
        group.pack_claims(&ownership.owner, MANY_CLAIMS);
        ownership
    })?;
    Ok(CustomGroup { cooperative, forming: generation, group: Some(group), joined: None, ownership, begun })
}

/// Reads a group as its leader, from the members' metadata. `handed_out` is the leader's memory.
#[pyfunction]
#[pyo3(signature = (cooperative, members, partitions, generation, handed_out=None))]
pub(crate) fn open_joined(
    py: Python<'_>,
    cooperative: bool,
    members: &Bound<'_, PyAny>,
    partitions: &Bound<'_, PyDict>,
    generation: Option<i32>,
    handed_out: Option<Remembered>,
) -> PyResult<CustomGroup> {
    let begun = Instant::now();
    let members = read_members(members)?;
    let topics = PyTopics::read(partitions)?.number()?;
    let (opened, ownership) = interruptible(py, None, |_| {
        let joined: Vec<_> = members.iter().map(Member::joined).collect();
        let (plans, anonymous, bare) =
            handed_out.as_ref().map_or((&[][..], false, false), |(plans, anonymous, bare)| (plans, *anonymous, *bare));
        let plans: Vec<HandedOut<'_>> =
            plans.iter().map(|(generation, plan)| plan.get().handed_out(*generation, bare)).collect();
        let memory = Memory { plans: &plans, anonymous };
        open(&joined, topics, Strategy::Custom { cooperative }, generation, &memory)
    })?;
    let forming = opened.forming;
    Ok(CustomGroup { cooperative, forming, group: None, joined: Some(Joined { members, opened }), ownership, begun })
}
