//! An untrusted history of a group: it is replayed or refused, with the same result in any order of its items, and the
//! figures are consistent.

use std::collections::BTreeMap;

use kafka_assignors_core::planning::objective::{Mode, Objective, RackOrder};
use kafka_assignors_core::planning::replay::{
    CountChange, GroupEvent, History, Kind, LagChange, ObservedPartitions, PlanSource, RebalanceOutcome, replay,
};
use kafka_assignors_core::planning::strategy::Strategy;

const SUBSCRIPTIONS: [&[&str]; 8] =
    [&[], &["t"], &["u"], &["t", "u"], &["u", "t", "u"], &["v"], &["", "t"], &["t", "u", "v"]];
const TOPICS: [&str; 5] = ["t", "u", "v", "w", ""];
const MEMBERS: [&str; 5] = ["", "a", "b", "c", "d"];
const INSTANCES: [&str; 3] = ["", "x", "y"];
const NUMBERS: [i32; 10] = [0, 1, 2, 3, 2, 5, 19, -1, i32::MAX, i32::MIN];
const WILD: [i64; 6] = [-1, i64::MIN, i64::MAX, i32::MAX as i64 + 1, 100_000_001, u32::MAX as i64 + 2];

/// The first three are complete and by number; the last two need not be.
const STRATEGIES: [Strategy; 6] = [
    Strategy::Sticky(Objective { mode: Mode::FairYetSticky, racks: RackOrder::BeforeStickiness }),
    Strategy::CooperativeSticky(Objective { mode: Mode::FairYetSticky, racks: RackOrder::BeforeStickiness }),
    Strategy::Range,
    Strategy::RoundRobin,
    Strategy::StreamJoin { cooperative: false },
    Strategy::StreamJoin { cooperative: true },
];
const STICKY: usize = 0;
const COOPERATIVE: usize = 1;
const COMPLETE: usize = 4;

/// Mostly small numbers, and a few extreme ones.
fn number(byte: u8) -> i64 {
    match usize::from(byte).checked_sub(250) {
        Some(wild) => WILD[wild],
        None => i64::from(byte % 40),
    }
}

fn generation(bits: u8) -> Option<i32> {
    match bits {
        0 => None,
        30 => Some(i32::MIN),
        31 => Some(i32::MAX),
        some => Some(i32::from(some) - 3),
    }
}

/// Each item takes five bytes.
fn history(bytes: &[u8]) -> History<'static> {
    let mut history = History::default();
    for chunk in bytes.as_chunks::<5>().0 {
        let [what, who, when, which, amount] = *chunk;
        let member_id = MEMBERS[usize::from(who & 7) % MEMBERS.len()];
        let topic = TOPICS[usize::from(who & 7) % TOPICS.len()];
        let kinds = [Kind::Leave, Kind::Join, Kind::Subscribe, Kind::Snapshot];
        match usize::from(what % 8) {
            kind @ 0..4 => history.events.push(GroupEvent {
                seq: number(when),
                kind: kinds[kind],
                member_id,
                instance_id: INSTANCES[usize::from(who >> 3) % INSTANCES.len()],
                ts: number(amount).saturating_mul(10),
                generation: generation(which >> 3),
                topics: SUBSCRIPTIONS[usize::from(which & 7)],
            }),
            4 | 5 => history.counts.push(CountChange { ts: number(when), topic, partitions: number(amount) }),
            6 => history.lags.push(LagChange {
                ts: number(when),
                topic,
                partition: NUMBERS[usize::from(which) % NUMBERS.len()],
                lag: number(amount),
            }),
            _ => {
                let first = usize::from(amount & 15).min(NUMBERS.len());
                let end = (first + usize::from(amount >> 4)).min(NUMBERS.len());
                history.observed.push(ObservedPartitions {
                    generation: generation(which >> 3).unwrap_or(0),
                    member_id,
                    topic: TOPICS[usize::from(which & 7) % TOPICS.len()],
                    partitions: &NUMBERS[first..end],
                });
            }
        }
    }
    history
}

fn rows(history: History<'_>) -> Option<Vec<RebalanceOutcome>> {
    let mut rows = Vec::new();
    let mut now = 0;
    let clock = || {
        now += 1;
        now
    };
    replay(history, &STRATEGIES, clock, |row| rows.push(row)).ok().map(|()| rows)
}

fn fit(rows: &[RebalanceOutcome]) {
    let mut generations: BTreeMap<usize, i32> = BTreeMap::new();
    let mut step: Option<&RebalanceOutcome> = None;
    for row in rows {
        let index = match row.source {
            PlanSource::Strategy(index) => Some(index),
            PlanSource::Observed => None,
        };
        if index == Some(STICKY) {
            step = Some(row);
        }
        let sticky = step.expect("the first strategy's row comes first");
        assert_eq!(row.figures.is_some(), sticky.figures.is_some());
        if let Some(index) = index {
            let before = generations.insert(index, row.generation).unwrap_or(0);
            assert!((1..=2).contains(&(row.generation - before)));
            assert_eq!(row.error, sticky.error);
        }
        let (Some(figures), Some(best)) = (&row.figures, &sticky.figures) else {
            assert!(row.error.is_some(), "no figures, and no reason");
            continue;
        };
        assert!(figures.members > 0 && figures.min_count <= figures.max_count);
        assert!(figures.lag_skew.is_finite() && figures.lag_skew > 0.999);
        let Some(index) = index else { continue };
        assert_eq!((row.seq, row.ts, row.cause), (sticky.seq, sticky.ts, sticky.cause));
        assert_eq!((figures.members, figures.partitions), (best.members, best.partitions));
        assert!(figures.assigned <= figures.partitions);
        let score = figures.balance_score;
        if index == STICKY || index == COOPERATIVE {
            assert_eq!((score, figures.moved), (best.balance_score, figures.moved_needed));
        } else if index < COMPLETE {
            assert!(score >= best.balance_score, "better than the best");
            assert!(score > best.balance_score || figures.moved >= figures.moved_needed);
        }
    }
}

pub(crate) fn check(bytes: &[u8]) {
    let given = history(bytes);
    let mut reversed = given.clone();
    reversed.events.reverse();
    reversed.counts.reverse();
    reversed.lags.reverse();
    reversed.observed.reverse();
    let seen = rows(given);
    if let Some(seen) = &seen {
        fit(seen);
    }
    assert_eq!(seen, rows(reversed));
}
