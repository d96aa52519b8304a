//! Properties of all histories.

use std::collections::BTreeMap;

use proptest::prelude::{any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Strategy as _;

use super::*;

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const LISTS: [&[&str]; 4] = [&["t"], &["t", "u"], &["u"], &["u", "v", "t"]];

/// A history whose topics have several times these numbers of partitions.
fn any_history(times: i64) -> impl proptest::strategy::Strategy<Value = History<'static>> {
    let kinds = [Kind::Join, Kind::Leave, Kind::Subscribe];
    let events = proptest::collection::vec((0usize..3, 0usize..5, 0usize..4), 1..14);
    let counts = proptest::collection::vec((0i64..14, 0usize..3, 0i64..7), 0..4);
    (events, counts).prop_map(move |(events, counts)| History {
        events: (1..)
            .zip(events)
            .map(|(seq, (kind, member, list))| event(seq, kinds[kind], NAMES[member], LISTS[list]))
            .collect(),
        counts: [("t", 5), ("u", 4), ("v", 4)]
            .into_iter()
            .map(|(topic, partitions)| count(0, topic, times * partitions))
            .chain(
                counts
                    .into_iter()
                    .map(|(at, topic, partitions)| count(100 * at + 50, ["t", "u", "v"][topic], times * partitions)),
            )
            .collect(),
        ..History::default()
    })
}

/// The same replay with names and maps, through the claims that real members would send.
fn by_names(history: &History<'_>, strategy: Strategy) -> Vec<(i64, u64, u32, u32, u128)> {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    let mut members: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut owned: BTreeMap<(String, u32), &str> = BTreeMap::new();
    let mut changes = history.counts.clone();
    changes.sort_by_key(|change| (change.ts, change.topic, change.partitions));
    let mut moments: Vec<(i64, u8)> = history.events.iter().map(|event| (event.ts, 1)).collect();
    moments.extend(changes.iter().map(|change| (change.ts, 0)));
    moments.sort_unstable();
    moments.dedup();
    let mut rows = Vec::new();
    for (ts, what) in moments {
        let before = (counts.clone(), members.clone());
        if what == 0 {
            counts.extend(
                changes.iter().filter(|change| change.ts == ts).map(|change| (change.topic, change.partitions)),
            );
            let differs = |topic: &&str| before.0.get(topic).unwrap_or(&0) != counts.get(topic).unwrap_or(&0);
            if !members.values().flatten().any(differs) {
                owned.retain(|(topic, number), _| i64::from(*number) < counts[topic.as_str()]);
                continue;
            }
        }
        for event in history.events.iter().filter(|event| what == 1 && event.ts == ts) {
            match event.kind {
                Kind::Leave => drop(members.remove(event.member_id)),
                Kind::Subscribe if !members.contains_key(event.member_id) => {}
                _ => drop(members.insert(event.member_id, event.topics.to_vec())),
            }
        }
        owned.retain(|(topic, number), _| i64::from(*number) < counts[topic.as_str()]);
        if members.is_empty() {
            continue;
        }
        let specs = counts.iter().map(|(name, &partitions)| TopicSpec { name, partitions, racks: None });
        let mut builder = GroupBuilder::new(Topics::new(specs.collect()).expect("good counts"));
        for (id, topics) in &members {
            let ids: Vec<u32> = topics.iter().filter_map(|name| builder.topics().find(name.as_bytes())).collect();
            let subscription = builder.subscription(&ids);
            let mut member = builder.member(id, subscription).generation(1);
            for ((topic, number), _) in owned.iter().filter(|(_, owner)| *owner == id) {
                let topic = member.topics().find(topic.as_bytes()).expect("a topic");
                member.claim(member.topics().range(topic).start + number);
            }
            member.finish();
        }
        let group = builder.finish();
        let outcome = strategy::assign(&group, strategy, None);
        let mut now = BTreeMap::new();
        for (flat, &owner) in (0u32..).zip(&outcome.target().owner) {
            let (topic, number) = group.topics().locate(flat);
            if owner != NONE {
                let id = *members.keys().nth(owner as usize).expect("a member");
                now.insert((group.topics().names().get(topic).to_owned(), number), id);
            }
        }
        let moved = owned.iter().filter(|(partition, owner)| now.get(*partition) != Some(owner)).count() as u64;
        let loads: Vec<i64> =
            members.keys().map(|id| now.values().filter(|owner| *owner == id).count() as i64).collect();
        let pairs = loads.iter().flat_map(|a| loads.iter().map(move |b| a.abs_diff(*b)));
        let score = u128::from(pairs.sum::<u64>() / 2);
        let (least, most) = (*loads.iter().min().expect("members"), *loads.iter().max().expect("members"));
        rows.push((ts, moved, least as u32, most as u32, score));
        owned = now;
    }
    rows
}

/// The rows and the assignments of a history, up to this number of rows.
fn all_rows(
    replayer: &mut Replayer<'_>,
    history: &History<'_>,
    most: usize,
) -> Result<Vec<(RebalanceOutcome, Vec<String>)>, ReplayError> {
    let mut rows = Vec::new();
    let each = |row: RebalanceOutcome, assigned: Assigned<'_>| {
        let mut partitions = Vec::new();
        assigned.each(|member, topic, numbers| partitions.push(format!("{member} {topic} {numbers:?}")));
        rows.push((row, partitions));
        if rows.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    replayer.replay(history.clone(), || 0, &mut |_, _, _| Err("no plan".to_owned()), each).map(|()| rows)
}

proptest! {
    /// The replay without names and claims is the replay with them.
    #[test]
    fn the_short_way_is_the_long_way(history in prop_oneof![any_history(1), any_history(20)]) {
        let strategies = [STICKY, COOPERATIVE, Strategy::Range, Strategy::RoundRobin, JOIN];
        let rows = run(&history, &strategies);
        for (index, &strategy) in strategies.iter().enumerate() {
            // The members of a stream join send numbers; the claims above are partitions.
            if strategy == JOIN { continue }
            let of = rows.iter().filter(|row| row.source == PlanSource::Strategy(index));
            let short: Vec<_> = of
                .map(|row| (row.ts, made(row).moved, made(row).min_count, made(row).max_count, made(row).balance_score))
                .collect();
            prop_assert_eq!(short, by_names(&history, strategy), "{:?}", strategy);
        }
        for row in &rows {
            let optimal = matches!(row.source, PlanSource::Strategy(0 | 1));
            prop_assert!(!optimal || made(row).moved == made(row).moved_needed);
            prop_assert!(row.source != PlanSource::Strategy(4) || made(row).copartition_violations == 0);
        }
    }

    /// Order and repetition of the input do not change the result.
    #[test]
    fn the_order_of_the_input_does_not_matter(history in any_history(1), seed in any::<u64>()) {
        let mut shuffled = history.clone();
        shuffled.events.extend(history.events.iter().step_by(2).cloned());
        let key = |index: usize| (index as u64 + 1).wrapping_mul(seed | 1).rotate_left(17);
        let mut order: Vec<usize> = (0..shuffled.events.len()).collect();
        order.sort_by_key(|&index| key(index));
        shuffled.events = order.iter().map(|&index| shuffled.events[index].clone()).collect();
        shuffled.counts.reverse();
        let strategies = [STICKY, JOIN, Strategy::Range];
        prop_assert_eq!(run(&history, &strategies), run(&shuffled, &strategies));
    }

    /// A replayer begins each history anew, also behind one that ended early or that it refused.
    #[test]
    fn no_history_depends_on_another(
        histories in proptest::collection::vec((prop_oneof![any_history(1), any_history(20)], 0usize..9, 0u8..4), 1..4),
    ) {
        let strategies = [STICKY, COOPERATIVE, Strategy::RoundRobin, JOIN];
        let intervals = Intervals::default();
        let mut replayer = Replayer::new(&strategies, &intervals);
        for (mut history, most, kind) in histories {
            match kind {
                0 => history.counts.push(count(1, "t", -1)),
                1 => history.lags.extend((0..4).map(|partition| LagChange { ts: 150, topic: "t", partition, lag: 9 })),
                2 => {
                    history.events.iter_mut().for_each(|event| event.generation = i32::try_from(event.seq).ok());
                    let all = NAMES.iter().flat_map(|&member_id| (1..9).map(move |generation| (generation, member_id)));
                    history.observed.extend(all.map(|(generation, member_id)| {
                        ObservedPartitions { generation, member_id, topic: "t", partitions: &[1, 2] }
                    }));
                }
                _ => {}
            }
            let (again, alone) = (
                all_rows(&mut replayer, &history, most),
                all_rows(&mut Replayer::new(&strategies, &intervals), &history, most),
            );
            prop_assert_eq!(again, alone);
        }
    }
}
