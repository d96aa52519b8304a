//! Replays a group's history with several strategies: the plans that each of them would have made for the same joins, leaves,
//! changes of subscription and of partition counts.
//!
//! Every strategy starts without owners. From then on the previous owners are those of its own last plan. All strategies see
//! the same members, partition counts and lags at the same time, so their rows can be compared one by one.

mod history;
mod measure;
mod owners;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use thiserror::Error;

pub use history::{CountChange, GroupEvent, History, Kind, LagChange, ObservedPartitions};
use history::{HistoryStep, Timeline};
use measure::Moves;
pub use measure::{Figures, Loads};
use owners::Owners;

use crate::planning::budget::Limit;
use crate::planning::custom;
use crate::planning::group::{Group, GroupBuilder, GroupError, NONE, Topics};
use crate::planning::objective::Objective;
use crate::planning::ownerless::{Handover, Intervals};
use crate::planning::ownership::Ownership;
use crate::planning::plan::Plan;
use crate::planning::sticky;
use crate::planning::strategy::{self, Strategy};

/// The origin of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanSource {
    /// The strategy of this index in the list that was given.
    Strategy(usize),
    /// The group itself: the assignment was observed.
    Observed,
}

/// The cause of a rebalance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RebalanceCause {
    /// Members joined, left or subscribed anew.
    Members,
    /// The partition count of a subscribed topic changed.
    Partitions,
}

/// One rebalance of one strategy.
#[derive(Debug, Clone, PartialEq)]
pub struct RebalanceOutcome {
    /// The origin of the plan.
    pub source: PlanSource,
    /// The number of the event; for [`RebalanceCause::Partitions`] that of the last one before.
    pub seq: i64,
    /// The time, in milliseconds since 1970.
    pub ts: i64,
    /// The generation that was formed: the observed one, or the strategy's own count from 1. A cooperative rebalance that
    /// takes a partition from a member forms two.
    pub generation: i32,
    /// The cause of the rebalance.
    pub cause: RebalanceCause,
    /// The measures of the plan. `None` as long as no subscribed topic has a known partition count: then there is no plan.
    pub figures: Option<Figures>,
    /// The time that the strategy took, in nanoseconds; 0 for an observed assignment.
    pub kernel_ns: u64,
    /// The errors in the events or in the observed assignment. The figures are those of the valid rest.
    pub error: Option<String>,
}

/// The most partitions that the topics of a group may have together at any moment. Each strategy remembers the owner of every
/// partition, so a single large count would take gigabytes.
pub const MOST_PARTITIONS: u64 = 1_000_000;

/// Why a history as a whole cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReplayError {
    /// More than [`MOST_PARTITIONS`].
    #[error(
        "topic {topic:?} has {count} partitions, and all topics of the group have {total}; a replay takes at most \
         {MOST_PARTITIONS} of a group"
    )]
    TooManyPartitions {
        /// The largest topic at that moment.
        topic: String,
        /// Its partitions.
        count: u64,
        /// The partitions of all topics together.
        total: u128,
    },
    /// A partition count that a group cannot have, as a negative one.
    #[error(transparent)]
    Group(#[from] GroupError),
}

/// Replays a history. `clock` returns a time in nanoseconds; only differences of times are used. `row` is called with each row:
/// step by step, within a step in the order of the strategies, the observed one last.
///
/// A step consists of all events with the same `seq`, or of a change of partition counts that concerns a present member. A step
/// after which no member is present has no row: the partitions keep their owners until the next member joins. The events of a
/// step are applied in the order leave, join, subscribe, snapshot; their order in the input has no effect. Equal events count
/// once.
///
/// O(events + steps × (members + partitions + cost of the strategy)).
///
/// # Errors
/// A negative partition count, or more than [`MOST_PARTITIONS`]: the history as a whole cannot be replayed. The error comes
/// before the first row and before any allocation of that size.
pub fn replay(
    history: History<'_>,
    strategies: &[Strategy],
    clock: impl FnMut() -> u64,
    mut row: impl FnMut(RebalanceOutcome),
) -> Result<(), ReplayError> {
    replay_plans(history, strategies, clock, |result, _| {
        row(result);
        ControlFlow::Continue(())
    })
}

/// As [`replay`], and with each row the plan behind it; ends early where `row` breaks.
///
/// # Errors
/// As [`replay`].
pub fn replay_plans(
    history: History<'_>,
    strategies: &[Strategy],
    clock: impl FnMut() -> u64,
    row: impl FnMut(RebalanceOutcome, Assigned<'_>) -> ControlFlow<()>,
) -> Result<(), ReplayError> {
    let mut planner =
        |_: usize, group: &Group, owned: &Ownership| Ok(sticky::assign(group, owned, Objective::default()).into());
    Replayer::new(strategies, &Intervals::default()).replay(history, clock, &mut planner, row)
}

/// Plans a group for a [`Strategy::Custom`], by its index in the list of strategies; or returns the reason why there is no plan.
pub type Planner<'a> = dyn FnMut(usize, &Group, &Ownership) -> Result<Planned, String> + 'a;

/// The plan of a [`Planner`].
#[derive(Debug, Clone)]
pub struct Planned {
    /// The plan, before any partition is withheld.
    pub plan: Plan,
    /// Its loads, if the assignor weighs partitions.
    pub loads: Option<Loads>,
}

impl From<Plan> for Planned {
    fn from(plan: Plan) -> Self {
        Self { plan, loads: None }
    }
}

/// Replays histories one after the other, each with the same strategies.
///
/// The groups and the owners of all of them use the same memory. A worker replays thousands of short histories, and would spend a
/// tenth of its time on the allocation of that memory.
pub struct Replayer<'a> {
    strategies: &'a [Strategy],
    intervals: &'a Intervals,
    /// `None` before the first history.
    moment: Option<Moment>,
    /// By strategy; the last one is for the observed assignments.
    tracks: Vec<Track>,
}

impl<'a> Replayer<'a> {
    /// `intervals` are those on which the time without an owner depends.
    #[must_use]
    pub fn new(strategies: &'a [Strategy], intervals: &'a Intervals) -> Self {
        let sources = (0..strategies.len()).map(PlanSource::Strategy).chain([PlanSource::Observed]);
        let tracks = sources.map(|source| Track { source, owners: Owners::default(), generation: 0 }).collect();
        Self { strategies, intervals, moment: None, tracks }
    }

    /// As [`replay_plans`], with the plans of the user's own assignors. Where there is no plan, the row has the reason as an error,
    /// and the figures of the sticky plan, as a leader would fall back to it.
    ///
    /// # Errors
    /// As [`replay`].
    pub fn replay(
        &mut self,
        history: History<'_>,
        mut clock: impl FnMut() -> u64,
        planner: &mut Planner<'_>,
        mut row: impl FnMut(RebalanceOutcome, Assigned<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReplayError> {
        let Self { strategies, intervals, moment, tracks } = self;
        let mut timeline = Timeline::new(history)?;
        let topics = timeline.topics()?;
        let moment = match moment {
            Some(moment) => {
                moment.begin(topics);
                moment
            }
            None => moment.insert(Moment::new(topics)),
        };
        let tracks = &mut tracks[..strategies.len() + usize::from(timeline.has_observed())];
        for track in &mut *tracks {
            track.begin(moment.group().topics().partitions());
        }
        let mut state = ReplayState { strategies, intervals, clock: &mut clock, planner, best: Vec::new() };
        while let Some(step) = timeline.next_step() {
            if step.counts_changed {
                let changed = timeline.topics()?;
                for track in &mut *tracks {
                    track.owners.carry_over(moment.group().topics(), &changed);
                }
                moment.builder.restart(changed);
            }
            if timeline.members().len() == 0 {
                moment.local.clear();
            }
            if timeline.members().len() == 0 || !step.rebalances {
                continue;
            }
            moment.advance(&mut timeline);
            state.best.clear();
            for track in &mut *tracks {
                if let Some((result, plan)) = track.rebalance(moment, &timeline, &step, &mut state)
                    && row(result, Assigned { group: moment.group(), plan: &plan }).is_break()
                {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// A plan by names.
#[derive(Debug, Clone, Copy)]
pub struct Assigned<'a> {
    group: &'a Group,
    plan: &'a Plan,
}

impl Assigned<'_> {
    /// Calls `visit` with each member's id, each topic of its assigned partitions, and their numbers; members and topics in
    /// byte order, partitions ascending. O(partitions + members).
    pub fn each(&self, mut visit: impl FnMut(&str, &str, &[i32])) {
        let (owner, topics) = (&self.plan.owner, self.group.topics());
        let loads = self.plan.loads(self.group.members());
        let mut ends: Vec<usize> = Vec::with_capacity(loads.len());
        let mut assigned = 0;
        for load in &loads {
            ends.push(assigned);
            assigned += *load as usize;
        }
        // By member: the flat ids in order, so that those of one topic are neighbours.
        let mut flat = vec![0u32; assigned];
        for (partition, &member) in (0u32..).zip(owner) {
            if member != NONE {
                flat[ends[member as usize]] = partition;
                ends[member as usize] += 1;
            }
        }
        let mut numbers = Vec::new();
        for (member, (&load, &end)) in (0u32..).zip(loads.iter().zip(&ends)) {
            let mut rest = &flat[end - load as usize..end];
            while let Some(&first) = rest.first() {
                let topic = topics.locate(first).0;
                let range = topics.range(topic);
                let (of_topic, others) = rest.split_at(rest.partition_point(|flat| *flat < range.end));
                numbers.clear();
                numbers.extend(of_topic.iter().map(|flat| (flat - range.start).cast_signed()));
                visit(self.group.member_ids().get(member), topics.names().get(topic), &numbers);
                rest = others;
            }
        }
    }
}

/// The group at one moment. It is the same for all strategies.
struct Moment {
    builder: GroupBuilder,
    /// By member of the group, its identity over time; see [`Timeline`].
    identities: Vec<u32>,
    /// By identity, the member of the group; [`NONE`] for an absent one.
    local: Vec<u32>,
    /// `local` at the rebalance before.
    local_before: Vec<u32>,
    /// By member of the group, whether it was in the group at the rebalance before.
    stayed: Vec<bool>,
    /// By topic, whether it has subscribers.
    subscribed: Vec<bool>,
}

impl Moment {
    /// A group without members.
    fn new(topics: Topics) -> Self {
        Self {
            builder: GroupBuilder::new(topics),
            identities: Vec::new(),
            local: Vec::new(),
            local_before: Vec::new(),
            stayed: Vec::new(),
            subscribed: Vec::new(),
        }
    }

    /// Begins a history: a group without members.
    fn begin(&mut self, topics: Topics) {
        self.builder.restart(topics);
        self.local.clear();
    }

    fn group(&self) -> &Group {
        self.builder.group()
    }

    /// Goes on to the next rebalance, in the same memory. O(identities + topics + subscriptions), and what a new count or lag takes.
    fn advance(&mut self, timeline: &mut Timeline<'_>) {
        let Self { builder, identities, local, local_before, stayed, subscribed } = self;
        builder.clear_members();
        timeline.fill_lags(builder);
        std::mem::swap(local, local_before);
        local.clear();
        local.resize(timeline.identities(), NONE);
        identities.clear();
        stayed.clear();
        builder.bare_members(timeline.members().enumerate().map(|(member, present)| {
            let identity = present.identity as usize;
            local[identity] = member as u32;
            identities.push(present.identity);
            stayed.push(local_before.get(identity).is_some_and(|&before| before != NONE));
            (present.id, present.instance_id, timeline.topics_of(present))
        }));
        let group = builder.group();
        subscribed.clear();
        subscribed.resize(group.topics().len(), false);
        for &topic in group.subscriptions().items() {
            subscribed[topic as usize] = true;
        }
    }
}

/// The state that all rebalances of a replay share.
struct ReplayState<'a, 'b, C> {
    strategies: &'a [Strategy],
    intervals: &'a Intervals,
    clock: &'a mut C,
    planner: &'a mut Planner<'b>,
    /// The best plans of this moment that were needed so far, by the owners before it. Strategies often agree: they all begin
    /// without owners, and the observed assignment is often the plan of one of them.
    best: Vec<(Vec<u32>, Plan)>,
}

impl<C> ReplayState<'_, '_, C> {
    /// The plan with the least balance score and the fewest moves.
    fn best(&mut self, group: &Group, ownership: &Ownership) -> &Plan {
        let place = self.best.iter().position(|(owner, _)| *owner == ownership.owner).unwrap_or_else(|| {
            let plan = sticky::assign(group, ownership, Objective::default());
            self.best.push((ownership.owner.clone(), plan));
            self.best.len() - 1
        });
        &self.best[place].1
    }
}

/// The plans of one strategy, or the observed ones, over time.
struct Track {
    source: PlanSource,
    owners: Owners,
    generation: i32,
}

impl Track {
    /// Begins a history: no partition has an owner, and no generation was formed.
    fn begin(&mut self, partitions: usize) {
        self.owners.begin(partitions);
        self.generation = 0;
    }

    fn rebalance(
        &mut self,
        moment: &Moment,
        timeline: &Timeline<'_>,
        step: &HistoryStep,
        state: &mut ReplayState<'_, '_, impl FnMut() -> u64>,
    ) -> Option<(RebalanceOutcome, Plan)> {
        let group = moment.group();
        if !step.counted {
            return self.without_counts(group, timeline, step);
        }
        let mut loads = None;
        let (plan, rounds, kernel_ns, mut error, needed) = match self.source {
            PlanSource::Strategy(index) => {
                let strategy = state.strategies[index];
                self.owners.renumber(moment);
                let ownership = self.owners.ownership(moment, strategy.rules().cooperative());
                let optimal = Strategy::Sticky(Objective::default()) == strategy
                    || Strategy::CooperativeSticky(Objective::default()) == strategy;
                let needed = (!optimal).then(|| self.owners.moved(state.best(group, &ownership)));
                let start = (state.clock)();
                let mut failed = None;
                let outcome = match strategy {
                    Strategy::Custom { cooperative } => {
                        let planned = (state.planner)(index, group, &ownership).unwrap_or_else(|error| {
                            failed = Some(error);
                            sticky::assign(group, &ownership, Objective::default()).into()
                        });
                        loads = planned.loads;
                        custom::outcome(planned.plan, ownership, cooperative)
                    }
                    _ => strategy::plan(group, strategy, ownership, &Limit::default()),
                };
                let kernel_ns = (state.clock)().saturating_sub(start);
                let rounds = 1 + i32::from(outcome.withheld().next().is_some());
                let target = outcome.withholding.unwrap_or(outcome.plan);
                (target, rounds, kernel_ns, history::joined(step.error.clone(), failed), needed)
            }
            PlanSource::Observed => {
                let generation = step.generation?;
                let (plan, error) = timeline.observed(generation, group)?;
                self.generation = generation;
                self.owners.renumber(moment);
                let needed = self.owners.moved(state.best(group, &self.owners.ownership(moment, false)));
                (plan, 0, 0, history::joined(step.error.clone(), error), Some(needed))
            }
        };
        self.advance(rounds, &mut error);
        let (moved, changes) = self.owners.take(moment, &plan);
        let ownerless_ms = match self.source {
            PlanSource::Strategy(index) => {
                Some(state.intervals.ownerless(handover(state.strategies[index]), &changes).round() as u64)
            }
            PlanSource::Observed => None,
        };
        let moves = Moves { moved, moved_needed: needed.unwrap_or(moved), ownerless_ms };
        let figures = measure::figures(group, &moment.subscribed, &plan, self.owners.sorted_counts(), &moves);
        let figures = Figures { loads, ..figures };
        Some((self.row(step, Some(figures), kernel_ns, error), plan))
    }

    /// The row of a rebalance without a known partition count. It has a generation and no figures.
    fn without_counts(
        &mut self,
        group: &Group,
        timeline: &Timeline<'_>,
        step: &HistoryStep,
    ) -> Option<(RebalanceOutcome, Plan)> {
        let mut error = step.error.clone();
        match self.source {
            PlanSource::Strategy(_) => self.advance(1, &mut error),
            PlanSource::Observed => self.generation = step.generation.filter(|&each| timeline.is_observed(each))?,
        }
        Some((self.row(step, None, 0, error), Plan::unassigned(group)))
    }

    /// Adds the generations of a rebalance.
    fn advance(&mut self, rounds: i32, error: &mut Option<String>) {
        self.generation = match self.generation.checked_add(rounds) {
            Some(generation) => generation,
            None => {
                *error = history::joined(error.take(), Some("the generation cannot count any further".to_owned()));
                i32::MAX
            }
        };
    }

    fn row(
        &self,
        step: &HistoryStep,
        figures: Option<Figures>,
        kernel_ns: u64,
        error: Option<String>,
    ) -> RebalanceOutcome {
        let (source, generation) = (self.source, self.generation);
        RebalanceOutcome {
            source,
            seq: step.seq,
            ts: step.ts,
            generation,
            cause: step.cause,
            figures,
            kernel_ns,
            error,
        }
    }
}

fn handover(strategy: Strategy) -> Handover {
    match strategy {
        Strategy::ServerSide(..) => Handover::Consumer,
        _ if strategy.rules().cooperative() => Handover::Cooperative,
        _ => Handover::Eager,
    }
}

/// An observed assignment as a plan. `assigned` has partitions by topic name, `members` the present members.
fn observed_plan(
    group: &Group,
    assigned: &[ObservedPartitions<'_>],
    members: &BTreeMap<&str, u32>,
) -> (Plan, Option<String>) {
    let mut plan = Plan::unassigned(group);
    let mut error = None;
    let mut fail = |message: String| error = error.take().or(Some(message));
    for entry in assigned {
        let Some(&member) = members.get(entry.member_id) else {
            fail(format!(
                "generation {}: member {:?} has partitions but is not in the group",
                entry.generation, entry.member_id
            ));
            continue;
        };
        let range = match group.topics().find(entry.topic.as_bytes()) {
            Some(topic) => group.topics().range(topic),
            None => 0..0,
        };
        for &number in entry.partitions {
            let flat = u32::try_from(number).ok().and_then(|number| range.start.checked_add(number));
            let Some(flat) = flat.filter(|flat| range.contains(flat)) else {
                fail(format!(
                    "generation {}: member {:?} has partition {number} of {:?}, which has {} at that time",
                    entry.generation,
                    entry.member_id,
                    entry.topic,
                    range.len()
                ));
                continue;
            };
            let slot = &mut plan.owner[flat as usize];
            if *slot != NONE && *slot != member {
                fail(format!(
                    "generation {}: partition {number} of {:?} has two owners",
                    entry.generation, entry.topic
                ));
            }
            *slot = member;
        }
    }
    (plan, error)
}
