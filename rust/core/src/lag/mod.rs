//! The lag-based strategy: partitions in decreasing lag, each to the member that has the least so far.
//!
//! The rule is that of KAFKA-5337 and of the published lag-based assignor; [`Options`] change what "least" means, and
//! whether members keep what they own. The lags are [`crate::group::Topics::lags`]; totals are 128-bit sums, which no group
//! can overflow.

mod bound;
mod level;
mod line;

use crate::group::{Csr, Group, NONE};
use crate::ownership::Ownership;
use crate::plan::Plan;
use crate::sticky;
use crate::strategy::{Mode, Objective};
use crate::subscribers::Subscribers;
pub use bound::lag_bound;
use line::Line;

/// Over what counts and lags are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// Over one topic; nothing is carried from topic to topic.
    #[default]
    Topic,
    /// Over all topics.
    Group,
}

/// What becomes of what members own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    /// Nothing: the past does not count.
    #[default]
    None,
    /// It stays, unless moving or swapping it takes more than `threshold` of lag off the heavier of the two members.
    Owners {
        /// What a change has to be worth, in records of lag.
        threshold: u64,
    },
}

/// The options of the strategy; the default is the published rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// What is balanced: each topic, or the group.
    pub scope: Scope,
    /// How far the numbers of partitions of a topic's subscribers may be apart for the sake of lag: 0 puts the number
    /// before the lag, which leaves a difference of at most one; `None` looks at lag only. Partitions without lag always go
    /// by number.
    pub max_skew: Option<u32>,
    /// Stickiness.
    pub keep: Keep,
}

impl Default for Options {
    fn default() -> Self {
        Self { scope: Scope::Topic, max_skew: Some(0), keep: Keep::None }
    }
}

/// Plans a group. Ties go to the smaller partition, by topic and number, and to the smaller member id.
///
/// Where the topics have no lags, members keep what they own and the rest is balanced by number.
///
/// With [`Scope::Topic`] and [`Keep::None`]: O(P log P + P log M), and for each topic once its subscribers. With
/// [`Scope::Group`] and differing subscriptions each distinct set of subscribers has a heap of its own, which is brought up
/// to date only at its top.
#[must_use]
pub fn assign(group: &Group, ownership: &Ownership, options: Options) -> Plan {
    let lags = group.topics().lags();
    if lags.len() != group.topics().partitions() {
        let objective = Objective { mode: Mode::StickyYetFair, ..Objective::default() };
        return sticky::assign(group, ownership, objective);
    }
    let mut plan = match options.keep {
        Keep::None => Plan::unassigned(group),
        Keep::Owners { .. } => Plan { owner: ownership.owner.clone() },
    };
    let subscribers = Subscribers::new(group);
    let lineups = subscribers.by_id();
    let mut placing = Placing { group, lags, options, totals: Totals::new(group.members()), owner: &mut plan.owner };
    match options.scope {
        Scope::Topic => placing.topic_by_topic(&subscribers.set_of, &lineups),
        Scope::Group => placing.all_topics(&subscribers.set_of, &lineups),
    }
    plan
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

/// What members have so far.
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

/// A plan in the making.
struct Placing<'a> {
    group: &'a Group,
    lags: &'a [u64],
    options: Options,
    totals: Totals,
    owner: &'a mut [u32],
}

impl Placing<'_> {
    fn topic_by_topic(&mut self, set_of: &[u32], lineups: &Csr) {
        let mut open = Vec::new();
        let mut line = Line::default();
        for topic in 0..self.group.topics().len() as u32 {
            let lineup = lineups.row(set_of[topic as usize]);
            if lineup.is_empty() {
                continue;
            }
            for &member in lineup {
                self.totals.count[member as usize] = 0;
                self.totals.lag[member as usize] = 0;
            }
            open.clear();
            self.keep(self.group.topics().range(topic), &mut open);
            self.sort(&mut open);
            line.refill(lineup, &self.totals, self.options.max_skew);
            for &partition in &open {
                self.place(&mut line, partition);
            }
            if let Keep::Owners { threshold } = self.options.keep {
                self.level(topic..topic + 1, lineup, threshold, set_of, lineups);
            }
        }
    }

    fn all_topics(&mut self, set_of: &[u32], lineups: &Csr) {
        let mut open = Vec::new();
        for topic in 0..self.group.topics().len() as u32 {
            if !lineups.row(set_of[topic as usize]).is_empty() {
                self.keep(self.group.topics().range(topic), &mut open);
            }
        }
        self.sort(&mut open);
        let topic_of = self.group.topics().of_partitions();
        let mut lines: Vec<Option<Line>> = Vec::new();
        lines.resize_with(lineups.len(), || None);
        for &partition in &open {
            let set = set_of[topic_of[partition as usize] as usize];
            let line = lines[set as usize].get_or_insert_with(|| {
                let mut line = Line::default();
                line.refill(lineups.row(set), &self.totals, self.options.max_skew);
                line
            });
            self.place(line, partition);
        }
        if let Keep::Owners { threshold } = self.options.keep {
            let members: Vec<u32> = (0..self.group.members() as u32).collect();
            let topics = 0..self.group.topics().len() as u32;
            self.level(topics, &members, threshold, set_of, lineups);
        }
    }

    /// Counts what of these partitions is kept; the others are `open`.
    fn keep(&mut self, partitions: std::ops::Range<u32>, open: &mut Vec<u32>) {
        for partition in partitions {
            match self.owner[partition as usize] {
                NONE => open.push(partition),
                owner => self.totals.add(owner, self.lags[partition as usize]),
            }
        }
    }

    fn sort(&self, partitions: &mut [u32]) {
        partitions.sort_unstable_by_key(|&partition| (std::cmp::Reverse(self.lags[partition as usize]), partition));
    }

    fn place(&mut self, line: &mut Line, partition: u32) {
        let lag = self.lags[partition as usize];
        let member = line.least(&self.totals, lag, self.options.max_skew);
        self.totals.add(member, lag);
        self.owner[partition as usize] = member;
    }
}
