//! The lag-based strategy: partitions in decreasing lag, each to the member with the least lag so far.
//!
//! The rule is that of KAFKA-5337 and of the published lag-based assignor. [`Options`] change the meaning of "least", and
//! whether members keep their partitions. The lags are [`crate::planning::group::Topics::lags`]. Totals are 128-bit sums, which
//! no group can overflow.

mod bound;
mod change;
mod fewest;
mod held;
mod level;
mod line;
mod order;
mod packed;
mod ranks;

use std::ops::Range;

use crate::planning::budget::{Budget, Goal, Limit, Limited};
use crate::planning::group::{Csr, Group, NONE};
use crate::planning::objective::{Mode, Objective};
use crate::planning::ownership::Ownership;
use crate::planning::plan::Plan;
use crate::planning::sticky;
use crate::planning::subscribers::Subscribers;
pub use bound::lag_bound_within;
pub(in crate::planning) use bound::most_crowded;
use line::Line;
use order::LagOfPartition;
use packed::PackedHeap;

/// The steps that placing and levelling may take together, and the additional ones for each partition. Without a limit the
/// spread of the lags would decide how long a leader plans. Ordinary groups of a million partitions need fewer.
const STEPS: u64 = 1 << 25;
const STEPS_PER_PARTITION: u64 = 128;

/// The topics over which numbers of partitions and lags are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// Over one topic: each topic starts from zero.
    #[default]
    Topic,
    /// Over all topics.
    Group,
}

/// Whether members keep their partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    /// They keep nothing: previous owners do not count.
    #[default]
    None,
    /// They keep all of them. Partitions move only in changes that together take more than `threshold` off the heaviest member's
    /// lag.
    Owners {
        /// The gain, in records of lag, that changes must exceed.
        threshold: u64,
    },
}

/// The options of the strategy; the default is the published rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Whether each topic is balanced, or the whole group.
    pub scope: Scope,
    /// The largest difference between the numbers of partitions of a topic's subscribers that a lower lag justifies. With 0 the
    /// number comes before the lag, which leaves a difference of at most one. With `None` only the lag counts. Partitions
    /// without lag always go by number.
    pub max_skew: Option<u32>,
    /// Stickiness.
    pub keep: Keep,
}

impl Default for Options {
    fn default() -> Self {
        Self { scope: Scope::Topic, max_skew: Some(0), keep: Keep::None }
    }
}

/// Plans a group. Of partitions with equal lag, the first by topic and number is placed first. Of equal members, the one with the
/// smallest id gets the partition.
///
/// Without lags, members keep their partitions and the rest is balanced by number.
///
/// With [`Scope::Topic`] and [`Keep::None`]: O(P log P + P log M), plus the number of subscribers of each topic. With
/// [`Scope::Group`] and differing subscriptions, each distinct set of subscribers has a heap of its own, and only the top entry
/// is kept up to date.
#[must_use]
pub fn assign(group: &Group, ownership: &Ownership, options: Options) -> Plan {
    assign_within(group, ownership, options, &Limit::default()).0
}

/// As [`assign`], within a limit. If the limit was too small, the plan is still valid, and the second value is the search that
/// ended early.
#[must_use]
pub fn assign_within(
    group: &Group,
    ownership: &Ownership,
    options: Options,
    limit: &Limit<'_>,
) -> (Plan, Option<Limited>) {
    let lags = group.topics().lags();
    if lags.len() != group.topics().partitions() {
        let objective = Objective { mode: Mode::StickyYetFair, ..Objective::default() };
        return sticky::assign_within(group, ownership, objective, limit);
    }
    let mut plan = match options.keep {
        Keep::None => Plan::unassigned(group),
        Keep::Owners { .. } => Plan { owner: ownership.owner.clone() },
    };
    let subscribers = Subscribers::new(group);
    let members_of = subscribers.by_id();
    let budget = limit.budget(STEPS + STEPS_PER_PARTITION * group.topics().partitions() as u64);
    let sum = lags.iter().map(|&lag| u128::from(lag)).sum::<u128>();
    let mut placing = Placing {
        group,
        lags,
        options,
        before: &ownership.owner,
        set_of: &subscribers.set_of,
        members_of: &members_of,
        fits: u64::try_from(sum).is_ok(),
        totals: Totals::new(group.members()),
        owner: &mut plan.owner,
        open: Vec::new(),
        spare: Vec::new(),
        packed: PackedHeap::default(),
        budget: &budget,
    };
    match options.scope {
        Scope::Topic => placing.topic_by_topic(),
        Scope::Group => placing.all_topics(),
    }
    (plan, budget.spent().map(|spent| spent.seeking(Goal::Lag)))
}

/// Each member's total lag in a plan. O(partitions).
#[must_use]
pub fn lag_by_member(group: &Group, plan: &Plan) -> Vec<u128> {
    let mut totals = vec![0; group.members()];
    for (&owner, &lag) in plan.owner.iter().zip(group.topics().lags()) {
        if owner != NONE {
            totals[owner as usize] += u128::from(lag);
        }
    }
    totals
}

/// The partitions and the lag of each member so far.
struct Totals {
    count: Vec<u32>,
    lag: Vec<u128>,
}

impl Totals {
    fn new(members: usize) -> Self {
        Self { count: vec![0; members], lag: vec![0; members] }
    }

    fn add(&mut self, member: u32, lag: u64) {
        self.count[member as usize] += 1;
        self.lag[member as usize] += u128::from(lag);
    }
}

/// An incomplete plan: the owners so far, and the partitions that have none yet.
struct Placing<'a> {
    group: &'a Group,
    lags: &'a [u64],
    options: Options,
    /// The previous owners.
    before: &'a [u32],
    /// By topic, the row of its subscribers in `members_of`; [`NONE`] for a topic without partitions or subscribers.
    set_of: &'a [u32],
    members_of: &'a Csr,
    /// Whether the lags of all partitions together fit 64 bits.
    fits: bool,
    totals: Totals,
    owner: &'a mut [u32],
    /// The partitions to be placed, in decreasing lag.
    open: Vec<LagOfPartition>,
    spare: Vec<LagOfPartition>,
    packed: PackedHeap,
    /// The steps that placing and levelling may still take together.
    budget: &'a Budget<'a>,
}

impl<'a> Placing<'a> {
    fn subscribers(&self, topic: u32) -> &'a [u32] {
        match self.set_of[topic as usize] {
            NONE => &[],
            set => self.members_of.row(set),
        }
    }

    fn topic_by_topic(&mut self) {
        for topic in 0..self.group.topics().len() as u32 {
            let subscribers = self.subscribers(topic);
            if subscribers.is_empty() {
                continue;
            }
            for &member in subscribers {
                self.totals.count[member as usize] = 0;
                self.totals.lag[member as usize] = 0;
            }
            self.open.clear();
            self.keep(self.group.topics().range(topic));
            self.place_on(subscribers);
            if let Keep::Owners { threshold } = self.options.keep {
                self.level(topic..topic + 1, subscribers, threshold);
            }
        }
    }

    fn all_topics(&mut self) {
        let topics = 0..self.group.topics().len() as u32;
        let served = || topics.clone().filter(|&topic| !self.subscribers(topic).is_empty());
        let sets: std::collections::BTreeSet<u32> = served().map(|topic| self.set_of[topic as usize]).collect();
        for topic in served().collect::<Vec<_>>() {
            self.keep(self.group.topics().range(topic));
        }
        match sets.len() {
            0 => return,
            1 => sets.iter().for_each(|&set| self.place_on(self.members_of.row(set))),
            _ => self.place_on_sets(),
        }
        if let Keep::Owners { threshold } = self.options.keep {
            let members: Vec<u32> = (0..self.group.members() as u32).collect();
            self.level(topics, &members, threshold);
        }
    }

    /// Adds the partitions that members keep to the totals. The other partitions become open.
    fn keep(&mut self, partitions: Range<u32>) {
        for partition in partitions {
            let lag = self.lags[partition as usize];
            match self.owner[partition as usize] {
                NONE => self.open.push((lag, partition)),
                owner => self.totals.add(owner, lag),
            }
        }
    }

    /// Places the open partitions on members that subscribe to all of them.
    fn place_on(&mut self, subscribers: &[u32]) {
        order::sort(&mut self.open, &mut self.spare);
        let (owner, totals) = (&mut *self.owner, &mut self.totals);
        if self.fits {
            let give = |partition: u32, member| owner[partition as usize] = member;
            self.packed.place(subscribers, &self.open, totals, self.options.max_skew, give);
            return;
        }
        let mut line = Line::default();
        line.refill(subscribers, totals, self.options.max_skew);
        for &(lag, partition) in &self.open {
            owner[partition as usize] = line.place(subscribers, totals, lag, self.options.max_skew, self.budget);
        }
    }

    /// Places the open partitions on the subscribers of their topics. Numbers and lags are added up over all topics.
    fn place_on_sets(&mut self) {
        order::sort(&mut self.open, &mut self.spare);
        let topic_of = self.group.topics().of_partitions();
        let mut lines: Vec<Option<Line>> = Vec::new();
        lines.resize_with(self.members_of.len(), || None);
        for &(lag, partition) in &self.open {
            let set = self.set_of[topic_of[partition as usize] as usize];
            let subscribers = self.members_of.row(set);
            let line = lines[set as usize].get_or_insert_with(|| {
                let mut line = Line::default();
                line.refill(subscribers, &self.totals, self.options.max_skew);
                line
            });
            self.owner[partition as usize] =
                line.place(subscribers, &mut self.totals, lag, self.options.max_skew, self.budget);
        }
    }
}
