//! The options of a strategy, by their Python names.

use kafka_assignors_core::planning::lag::{self, Keep, Scope};
use kafka_assignors_core::planning::objective::{Mode, Objective, RackOrder};
use kafka_assignors_core::planning::ownerless::{Changes, Handover, Intervals};
use kafka_assignors_core::planning::strategy::Strategy;
use pyo3::prelude::*;

use crate::errors::OptionError;
use crate::server_side;

fn unknown<T>(option: &str, value: &str, known: &str) -> PyResult<T> {
    Err(OptionError::new_err(format!("{option} is {value:?}; give one of {known}")))
}

/// The strategy with this wire name. `mode` and `racks` have an effect on the sticky strategies only, but must be valid
/// for all; for the broker's own assignors, `mode` is the broker's release.
pub(crate) fn strategy(name: &str, mode: &str, racks: &str) -> PyResult<Strategy> {
    if let Some(assignor) = match name {
        "uniform" => Some("uniform"),
        "server-side-range" => Some("range"),
        _ => None,
    } {
        let (assignor, release) = server_side::assignor(assignor, mode)?;
        return Ok(Strategy::ServerSide(assignor, release));
    }
    let mode = match mode {
        "fair-yet-sticky" => Mode::FairYetSticky,
        "sticky-yet-fair" => Mode::StickyYetFair,
        "fair" => Mode::Fair,
        _ => return unknown("mode", mode, "'fair-yet-sticky', 'sticky-yet-fair', 'fair'"),
    };
    let racks = match racks {
        "before-stickiness" => RackOrder::BeforeStickiness,
        "after-stickiness" => RackOrder::AfterStickiness,
        _ => return unknown("racks", racks, "'before-stickiness', 'after-stickiness'"),
    };
    let objective = Objective { mode, racks };
    Ok(match name {
        "sticky" => Strategy::Sticky(objective),
        "cooperative-sticky" => Strategy::CooperativeSticky(objective),
        "sticky-join" | "StickyStreamJoinAssignor" => Strategy::StreamJoin { cooperative: false },
        "cooperative-sticky-join" => Strategy::StreamJoin { cooperative: true },
        "range" => Strategy::Range,
        "roundrobin" => Strategy::RoundRobin,
        _ => {
            let known =
                "'sticky', 'cooperative-sticky', 'sticky-join', 'cooperative-sticky-join', 'range', 'roundrobin'";
            return unknown("strategy", name, known);
        }
    })
}

/// The lag-based strategy. With a threshold, members keep their owned partitions.
pub(crate) fn lag_strategy(scope: &str, max_skew: Option<u32>, threshold: Option<u64>) -> PyResult<Strategy> {
    let scope = match scope {
        "topic" => Scope::Topic,
        "group" => Scope::Group,
        _ => return unknown("scope", scope, "'topic', 'group'"),
    };
    let keep = threshold.map_or(Keep::None, |threshold| Keep::Owners { threshold });
    Ok(Strategy::Lag(lag::Options { scope, max_skew, keep }))
}

/// The fields of [`Intervals`], in milliseconds: the interval of heartbeats in the classic protocol, the time until the first
/// heartbeat of a generation, the interval of heartbeats in the consumer protocol, the same for a member that waits for
/// partitions, and the round trip. Last, whether the members send their heartbeats apart.
pub(crate) type IntervalsInMs = (f64, f64, f64, f64, f64, bool);

pub(crate) fn read_intervals(
    (heartbeat, first_heartbeat, consumer_heartbeat, waiting_heartbeat, round_trip, apart): IntervalsInMs,
) -> Intervals {
    Intervals { heartbeat, first_heartbeat, apart, consumer_heartbeat, waiting_heartbeat, round_trip }
}

/// The expected partitions × milliseconds without an owner. `changes` are first the numbers of members that stay, lose partitions
/// and join. Then come the numbers of partitions that the staying members hold, give up and take, and that joining members take.
#[pyfunction]
pub(crate) fn ownerless_ms(
    protocol: &str,
    intervals: IntervalsInMs,
    changes: (u32, u32, u32, u64, u64, u64, u64),
) -> PyResult<f64> {
    let handover = match protocol {
        "eager" => Handover::Eager,
        "cooperative" => Handover::Cooperative,
        "consumer" => Handover::Consumer,
        _ => return unknown("protocol", protocol, "'eager', 'cooperative', 'consumer'"),
    };
    let (staying, losing, joining, held, given_up, taken, taken_by_joining) = changes;
    let changes = Changes { staying, losing, joining, held, given_up, taken, taken_by_joining };
    Ok(read_intervals(intervals).ownerless(handover, &changes))
}
