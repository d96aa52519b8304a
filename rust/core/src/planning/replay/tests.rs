mod properties;

use super::*;
use crate::planning::group::TopicSpec;
use crate::planning::lag;
use crate::planning::objective::{Mode, RackOrder};

const STICKY: Strategy = Strategy::Sticky(Objective { mode: Mode::FairYetSticky, racks: RackOrder::BeforeStickiness });
const COOPERATIVE: Strategy =
    Strategy::CooperativeSticky(Objective { mode: Mode::FairYetSticky, racks: RackOrder::BeforeStickiness });
const JOIN: Strategy = Strategy::StreamJoin { cooperative: false };

fn event<'a>(seq: i64, kind: Kind, member_id: &'a str, topics: &'a [&'a str]) -> GroupEvent<'a> {
    GroupEvent { seq, kind, member_id, instance_id: "", ts: 100 * seq, generation: None, topics }
}

fn count(ts: i64, topic: &str, partitions: i64) -> CountChange<'_> {
    CountChange { ts, topic, partitions }
}

fn run(history: &History<'_>, strategies: &[Strategy]) -> Vec<RebalanceOutcome> {
    let mut rows = Vec::new();
    let mut ticks = 0;
    let clock = || {
        ticks += 7;
        ticks
    };
    replay(history.clone(), strategies, clock, |row| rows.push(row)).expect("a history that can be replayed");
    rows
}

fn made(row: &RebalanceOutcome) -> Figures {
    row.figures.expect("figures")
}

/// seq, generation, moved, least possible.
fn moves(rows: &[RebalanceOutcome], source: PlanSource) -> Vec<(i64, i32, u64, u64)> {
    let of = rows.iter().filter(|row| row.source == source);
    of.map(|row| (row.seq, row.generation, made(row).moved, made(row).moved_needed)).collect()
}

#[test]
fn only_what_a_planner_weighs_has_loads() {
    let history = History {
        events: vec![
            event(1, Kind::Join, "a", &["t"]),
            event(2, Kind::Join, "b", &["t"]),
            event(3, Kind::Leave, "b", &[]),
        ],
        counts: vec![count(0, "t", 6)],
        ..History::default()
    };
    let custom = Strategy::Custom { cooperative: false };
    let mut rows = Vec::new();
    let mut planner = |index: usize, group: &Group, owned: &Ownership| {
        let plan = sticky::assign(group, owned, Objective::default());
        let worst = plan.loads(group.members()).into_iter().max().map_or(0.0, f64::from);
        match (index, group.members()) {
            (1, _) => Ok(Planned { plan, loads: Some(Loads { worst, bound: 0.5 }) }),
            (2, _) => Ok(plan.into()),
            (3, 1) => Ok(Planned { plan, loads: Some(Loads { worst, bound: worst }) }),
            _ => Err("no plan".to_owned()),
        }
    };
    Replayer::new(&[STICKY, custom, custom, custom], &Intervals::default())
        .replay(
            history,
            || 0,
            &mut planner,
            |row, _| {
                rows.push((row.source, made(&row).loads, row.error));
                ControlFlow::Continue(())
            },
        )
        .expect("a history that can be replayed");
    let of = |index| {
        let of = rows.iter().filter(move |row| row.0 == PlanSource::Strategy(index));
        of.map(|(_, loads, error)| (loads.map(|loads| (loads.worst, loads.bound)), error.is_some())).collect::<Vec<_>>()
    };
    assert_eq!(of(0), [(None, false); 3]);
    assert_eq!(of(1), [(Some((6.0, 0.5)), false), (Some((3.0, 0.5)), false), (Some((6.0, 0.5)), false)]);
    assert_eq!(of(2), [(None, false); 3]);
    // The fallback plan has no loads.
    assert_eq!(of(3), [(Some((6.0, 6.0)), false), (None, true), (Some((6.0, 6.0)), false)]);
}

// Six partitions of one topic.
//   seq 1  a            6
//   seq 2  a b          3 3      sticky moves 3, range moves 3
//   seq 3  a b c        2 2 2    sticky moves 2, range: a 0 1, b 2 3, c 4 5: b had 3 4 5, a had 0 1 2: 3 move
//   seq 4  b c (a left) 3 3      sticky moves a's 2; range: b 0 1 2, c 3 4 5: 0 1 3 move
#[test]
fn a_member_more_and_a_member_less() {
    let history = History {
        events: vec![
            event(1, Kind::Join, "a", &["t"]),
            event(2, Kind::Join, "b", &["t"]),
            event(3, Kind::Join, "c", &["t"]),
            event(4, Kind::Leave, "a", &[]),
        ],
        counts: vec![count(0, "t", 6)],
        ..History::default()
    };
    let rows = run(&history, &[STICKY, Strategy::Range, COOPERATIVE]);
    assert_eq!(moves(&rows, PlanSource::Strategy(0)), [(1, 1, 0, 0), (2, 2, 3, 3), (3, 3, 2, 2), (4, 4, 2, 2)]);
    assert_eq!(moves(&rows, PlanSource::Strategy(1)), [(1, 1, 0, 0), (2, 2, 3, 3), (3, 3, 3, 2), (4, 4, 3, 2)]);
    // Taking from a member takes two generations, replacing one that left takes one.
    assert_eq!(moves(&rows, PlanSource::Strategy(2)), [(1, 1, 0, 0), (2, 3, 3, 3), (3, 5, 2, 2), (4, 6, 2, 2)]);
    assert!(rows.iter().all(|row| row.kernel_ns == 7 && row.error.is_none() && made(row).partitions == 6));
    assert!(rows.iter().all(|row| made(row).balance_score == 0 || made(row).members == 1));
}

#[test]
fn partition_counts_make_rebalances_of_their_own() {
    let mut history = History {
        events: vec![event(1, Kind::Join, "a", &["t", "u"]), event(2, Kind::Join, "b", &["t", "u"])],
        counts: vec![
            count(0, "t", 2),
            count(0, "u", 2),
            count(0, "nobody's", 9),
            count(250, "t", 4),
            count(260, "nobody's", 10),
            count(300, "u", 0),
            count(400, "t", 0),
            count(400, "t", 4),
        ],
        ..History::default()
    };
    let rows = run(&history, &[STICKY]);
    let seen: Vec<_> = rows.iter().map(|row| (row.seq, row.ts, row.cause, made(row).partitions)).collect();
    assert_eq!(
        seen,
        [
            (1, 100, RebalanceCause::Members, 4),
            (2, 200, RebalanceCause::Members, 4),
            (2, 250, RebalanceCause::Partitions, 6),
            (2, 300, RebalanceCause::Partitions, 4),
        ]
    );
    assert_eq!(moves(&rows, PlanSource::Strategy(0))[2..], [(2, 3, 0, 0), (2, 4, 0, 0)]);
    history.counts_wait = true;
    history.events.push(event(5, Kind::Leave, "b", &[]));
    let partitions = |row: &RebalanceOutcome| (row.seq, made(row).partitions);
    assert_eq!(run(&history, &[STICKY]).iter().map(partitions).collect::<Vec<_>>(), [(1, 4), (2, 4), (5, 4)]);
}

#[test]
fn a_static_member_that_comes_back_is_the_same() {
    let named = |seq, kind, member_id, instance_id| GroupEvent { instance_id, ..event(seq, kind, member_id, &["t"]) };
    let history = History {
        events: vec![
            named(1, Kind::Join, "x-1", "x"),
            named(1, Kind::Join, "y-1", "y"),
            named(2, Kind::Join, "a-2", "x"),
            named(3, Kind::Leave, "y-1", "y"),
            named(4, Kind::Join, "b-4", "y"),
        ],
        counts: vec![count(0, "t", 4)],
        ..History::default()
    };
    let rows = run(&history, &[STICKY]);
    assert_eq!(rows.iter().map(|row| made(row).members).collect::<Vec<_>>(), [2, 2, 1, 2]);
    // The restart moves nothing; leaving for good moves two, and coming back takes two again.
    assert_eq!(moves(&rows, PlanSource::Strategy(0)), [(1, 1, 0, 0), (2, 2, 0, 0), (3, 3, 2, 2), (4, 4, 2, 2)]);
}

#[test]
fn snapshots_say_who_is_there_and_observations_are_measured_the_same_way() {
    let at = |seq, member_id, topics| GroupEvent {
        generation: Some(seq as i32 + 10),
        ..event(seq, Kind::Snapshot, member_id, topics)
    };
    let had = |generation, member_id, partitions| ObservedPartitions { generation, member_id, topic: "t", partitions };
    let history = History {
        events: vec![
            at(1, "a", &["t"]),
            at(1, "b", &["t"]),
            at(2, "b", &["t"]),
            at(3, "", &[]),
            at(4, "b", &["t"]),
            at(4, "c", &["t"]),
        ],
        counts: vec![count(0, "t", 4)],
        observed: vec![
            had(11, "a", &[0, 1]),
            had(11, "b", &[2, 3]),
            had(12, "b", &[0, 1, 2, 3]),
            had(14, "c", &[0, 1, 2, 3]),
        ],
        ..History::default()
    };
    let rows = run(&history, &[STICKY]);
    assert_eq!(moves(&rows, PlanSource::Strategy(0)), [(1, 1, 0, 0), (2, 2, 2, 2), (4, 3, 2, 2)]);
    // Generation 13 had no member; all partitions were b's before, and went to c.
    assert_eq!(moves(&rows, PlanSource::Observed), [(1, 11, 0, 0), (2, 12, 2, 2), (4, 14, 4, 2)]);
    let last = rows.last().expect("a row");
    assert_eq!((made(last).min_count, made(last).max_count, made(last).balance_score), (0, 4, 4));
}

#[test]
fn lags_are_those_of_the_time() {
    let lag = |ts, partition, lag| LagChange { ts, topic: "t", partition, lag };
    let options = lag::Options { max_skew: None, ..lag::Options::default() };
    let history = History {
        events: vec![
            event(1, Kind::Join, "a", &["t"]),
            event(2, Kind::Join, "b", &["t"]),
            event(3, Kind::Subscribe, "b", &["t"]),
        ],
        counts: vec![count(0, "t", 4)],
        lags: vec![
            lag(150, 0, 30),
            lag(150, 1, 10),
            lag(250, 3, 60),
            lag(250, 2, -5),
            lag(250, 9, 1000),
            lag(999, 1, 0),
        ],
        ..History::default()
    };
    let rows = run(&history, &[Strategy::Lag(options)]);
    let seen: Vec<_> = rows.iter().map(|row| (made(row).max_lag, made(row).mean_lag, made(row).lag_skew)).collect();
    assert_eq!(seen, [(0, 0.0, 1.0), (30, 20.0, 1.5), (60, 50.0, 1.2)]);
}

#[test]
fn numbers_that_a_join_could_not_use_are_counted() {
    let history = History {
        events: vec![event(1, Kind::Join, "a", &["t", "u"]), event(1, Kind::Join, "b", &["t", "u"])],
        counts: vec![count(0, "t", 4), count(0, "u", 3)],
        ..History::default()
    };
    let rows = run(&history, &[JOIN, Strategy::Range, Strategy::RoundRobin]);
    let seen: Vec<_> = rows.iter().map(|row| (made(row).copartition_violations, made(row).assigned)).collect();
    // range: t 0 1 | 2 3, u 0 1 | 2; round robin: t 0 2 | 1 3, u 0 2 | 1.
    assert_eq!(seen, [(0, 6), (0, 7), (0, 7)]);
    let crossed = History { counts: vec![count(0, "t", 3), count(0, "u", 3)], ..history };
    // round robin: a has t0 t2 u1, b has t1 u0 u2.
    assert_eq!(made(&run(&crossed, &[Strategy::RoundRobin])[0]).copartition_violations, 3);
}

#[test]
fn what_cannot_be_is_an_error_in_its_row_and_the_history_goes_on() {
    let history = History {
        events: vec![
            event(1, Kind::Join, "a", &["t", "ghost"]),
            event(2, Kind::Leave, "z", &[]),
            event(3, Kind::Subscribe, "z", &["t"]),
            event(4, Kind::Join, "", &["t"]),
            event(5, Kind::Snapshot, "a", &["t"]),
            event(5, Kind::Snapshot, "a", &["ghost"]),
            GroupEvent { generation: Some(6), ..event(6, Kind::Snapshot, "a", &["t"]) },
            event(7, Kind::Join, "b", &["t"]),
        ],
        counts: vec![count(0, "t", 2)],
        observed: vec![
            ObservedPartitions { generation: 6, member_id: "q", topic: "t", partitions: &[0] },
            ObservedPartitions { generation: 6, member_id: "a", topic: "t", partitions: &[0, 2, -1] },
        ],
        ..History::default()
    };
    let rows = run(&history, &[STICKY]);
    let errors: Vec<_> = rows.iter().map(|row| (row.seq, row.error.as_deref().unwrap_or(""))).collect();
    assert_eq!(
        errors,
        [
            (1, "seq 1: topic \"ghost\" has no known partition count"),
            (2, "seq 2: member \"z\" leaves but is not in the group"),
            (3, "seq 3: member \"z\" subscribes but is not in the group"),
            (4, "seq 4: an event without a member id"),
            (5, "seq 5: member \"a\" is in the snapshot twice; seq 5: topic \"ghost\" has no known partition count"),
            (6, ""),
            (6, "generation 6: member \"a\" has partition 2 of \"t\", which has 2 at that time"),
            (7, ""),
        ]
    );
    assert_eq!(rows.last().map(|row| (made(row).members, made(row).assigned)), Some((2, 2)));
    let negative = History { counts: vec![count(0, "t", -1)], ..history };
    let refused = replay(negative, &[STICKY], || 0, |_| ());
    assert!(matches!(refused, Err(ReplayError::Group(GroupError::NegativeCount { count: -1, .. }))));
}

#[test]
fn plans_come_by_name_and_end_where_they_are_not_wanted() {
    let history = History {
        events: vec![
            event(1, Kind::Join, "b", &["u", "t"]),
            event(2, Kind::Join, "a", &["t", "v", "none"]),
            event(3, Kind::Leave, "a", &[]),
        ],
        counts: vec![count(0, "t", 3), count(0, "u", 2), count(0, "v", 1)],
        ..History::default()
    };
    let plans = |most: usize| {
        let mut plans = Vec::new();
        let each = |row: RebalanceOutcome, assigned: Assigned<'_>| {
            assigned.each(|member, topic, numbers| {
                plans.push((row.seq, member.to_owned(), topic.to_owned(), numbers.to_vec()));
            });
            if row.seq < most as i64 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        replay_plans(history.clone(), &[Strategy::RoundRobin], || 0, each).expect("a history that can be replayed");
        plans
    };
    let of =
        |seq, member: &str, topic: &str, numbers: &[i32]| (seq, member.to_owned(), topic.to_owned(), numbers.to_vec());
    let all = [
        of(1, "b", "t", &[0, 1, 2]),
        of(1, "b", "u", &[0, 1]),
        of(2, "a", "t", &[0, 2]),
        of(2, "a", "v", &[0]),
        of(2, "b", "t", &[1]),
        of(2, "b", "u", &[0, 1]),
        of(3, "b", "t", &[0, 1, 2]),
        of(3, "b", "u", &[0, 1]),
    ];
    assert_eq!(plans(9), all);
    assert_eq!(plans(2), all[..6]);
}

#[test]
fn each_kind_of_problem_is_reported_once_a_step() {
    let names: Vec<String> = (0..10_000).map(|number| format!("member-{number}")).collect();
    let mut events: Vec<GroupEvent<'_>> = names.iter().map(|name| event(2, Kind::Leave, name, &[])).collect();
    events.extend(names.iter().map(|name| event(3, Kind::Join, name, &["t", "ghost", "phantom"])));
    events.extend((0..3).map(|ts| GroupEvent { ts, ..event(4, Kind::Join, "", &[]) }));
    events.extend(
        names[..2].iter().flat_map(|name| [0, 1].map(|ts| GroupEvent { ts, ..event(5, Kind::Snapshot, name, &["t"]) })),
    );
    events.push(event(5, Kind::Subscribe, "z", &["t"]));
    events.push(event(1, Kind::Join, "a", &["t"]));
    let rows = run(&History { events, counts: vec![count(0, "t", 1)], ..History::default() }, &[Strategy::Range]);
    let errors: Vec<_> = rows[1..].iter().map(|row| row.error.as_deref().unwrap_or("")).collect();
    assert_eq!(
        errors,
        [
            "seq 2: member \"member-0\" leaves but is not in the group (and 9999 more)",
            "seq 3: topic \"ghost\" has no known partition count (and 1 more)",
            "seq 4: an event without a member id (and 2 more)",
            "seq 5: member \"z\" subscribes but is not in the group; \
             seq 5: member \"member-0\" is in the snapshot twice (and 1 more)",
        ]
    );
}

#[test]
fn what_an_emptied_group_had_goes_to_whoever_comes_next() {
    let history = History {
        events: vec![
            event(1, Kind::Join, "a", &["t"]),
            event(2, Kind::Leave, "a", &[]),
            event(3, Kind::Join, "b", &["t"]),
            event(4, Kind::Leave, "b", &[]),
            // The same member comes back: nothing has moved.
            event(5, Kind::Join, "b", &["t"]),
        ],
        counts: vec![count(0, "t", 4), count(250, "t", 3)],
        ..History::default()
    };
    for strategy in [STICKY, COOPERATIVE, Strategy::Range, JOIN] {
        let rows = run(&history, &[strategy]);
        assert_eq!(moves(&rows, PlanSource::Strategy(0)), [(1, 1, 0, 0), (3, 2, 3, 3), (5, 3, 0, 0)], "{strategy:?}");
    }
}

#[test]
fn without_any_known_count_there_are_no_figures() {
    let at = |seq, kind, member_id, topics| GroupEvent {
        generation: Some(seq as i32 + 10),
        ..event(seq, kind, member_id, topics)
    };
    let history = History {
        events: vec![
            at(1, Kind::Join, "a", &["t", "u"]),
            at(2, Kind::Join, "b", &["t"]),
            at(3, Kind::Leave, "b", &[]),
            // At 350, before this event, t gets a count; u has none. One known count is enough for figures.
            at(4, Kind::Join, "b", &["u"]),
            at(5, Kind::Snapshot, "c", &[]),
        ],
        counts: vec![count(350, "t", 4)],
        observed: vec![
            ObservedPartitions { generation: 11, member_id: "a", topic: "t", partitions: &[0, 1, 2, 3] },
            ObservedPartitions { generation: 14, member_id: "a", topic: "t", partitions: &[0, 1, 2, 3] },
        ],
        ..History::default()
    };
    let mut plans = 0;
    let mut rows = Vec::new();
    let each = |row: RebalanceOutcome, assigned: Assigned<'_>| {
        assigned.each(|_, _, _| plans += usize::from(row.figures.is_none()));
        rows.push(row);
        ControlFlow::Continue(())
    };
    replay_plans(history, &[STICKY], || 0, each).expect("a history that can be replayed");
    assert_eq!(plans, 0);
    let seen: Vec<_> = rows
        .iter()
        .map(|row| (row.source, row.seq, row.generation, row.figures.map(|made| made.assigned), row.error.as_deref()))
        .collect();
    let strategy = PlanSource::Strategy(0);
    let unknown = "has no known partition count";
    let (both, only) = (format!("topic \"t\" {unknown} (and 1 more)"), format!("topic \"u\" {unknown}"));
    let error = |seq: i64, which: &str| format!("seq {seq}: {which}");
    let errors = [error(1, &both), error(2, &both), error(3, &both), error(4, &only)];
    assert_eq!(
        seen,
        [
            (strategy, 1, 1, None, Some(errors[0].as_str())),
            (PlanSource::Observed, 1, 11, None, Some(errors[0].as_str())),
            (strategy, 2, 2, None, Some(errors[1].as_str())),
            (strategy, 3, 3, None, Some(errors[2].as_str())),
            (strategy, 3, 4, Some(4), None),
            (strategy, 4, 5, Some(4), Some(errors[3].as_str())),
            (PlanSource::Observed, 4, 14, Some(4), Some(errors[3].as_str())),
            // A member without a subscription needs no counts.
            (strategy, 5, 6, Some(0), None),
        ]
    );
}

#[test]
fn more_partitions_than_can_be_replayed_are_refused_before_there_is_any_row() {
    let history = |counts| History {
        events: vec![event(1, Kind::Join, "a", &["t", "u"]), event(2, Kind::Join, "b", &["t", "u"])],
        counts,
        ..History::default()
    };
    let refused = |counts| {
        let mut rows = 0;
        let error = replay(history(counts), &[STICKY], || 0, |_| rows += 1).expect_err("too many");
        assert_eq!(rows, 0);
        error
    };
    // A single huge count, later than the first events.
    let error = refused(vec![count(0, "t", 4), count(0, "u", 2), count(150, "t", i64::MAX)]);
    assert_eq!(
        error.to_string(),
        "topic \"t\" has 9223372036854775807 partitions, and all topics of the group have 9223372036854775809; a replay \
         takes at most 1000000 of a group"
    );
    let most = MOST_PARTITIONS.cast_signed();
    let error = refused(vec![count(0, "t", most / 2), count(0, "u", most / 2 + 1)]);
    assert_eq!(error, ReplayError::TooManyPartitions { topic: "u".to_owned(), count: 500_001, total: 1_000_001 });
    // The total is within the limit at each moment, and topics without subscribers do not count.
    let fitting = vec![count(0, "t", most), count(50, "u", most), count(50, "t", 0), count(0, "v", 9 * most)];
    let mut assigned = Vec::new();
    replay(history(fitting), &[Strategy::Range], || 0, |row| assigned.push(made(&row).assigned)).expect("just so many");
    assert_eq!(assigned, [1_000_000, 1_000_000]);
}

#[test]
fn many_static_members_come_back_under_other_ids() {
    let ids: Vec<Vec<String>> =
        (1..=3).map(|seq| (0..2_000).map(|member| format!("{seq}-{member}")).collect()).collect();
    let instances: Vec<String> = (0..2_000).map(|member| format!("instance-{member}")).collect();
    let events = (1..).zip(&ids).flat_map(|(seq, ids)| {
        let joins = ids.iter().zip(&instances);
        joins.map(move |(id, instance)| GroupEvent { instance_id: instance, ..event(seq, Kind::Join, id, &["t"]) })
    });
    let history = History { events: events.collect(), counts: vec![count(0, "t", 4_000)], ..History::default() };
    let rows = run(&history, &[STICKY]);
    assert_eq!(moves(&rows, PlanSource::Strategy(0)), [(1, 1, 0, 0), (2, 2, 0, 0), (3, 3, 0, 0)]);
    assert!(rows.iter().all(|row| made(row).members == 2_000));
}
