//! The history that `gate replay` replays.

use kafka_assignors_core::planning::replay::{CountChange, GroupEvent, History, Kind};

const TOPICS: &[&str] = &["orders"];

/// The ids of the members, in order.
pub(crate) fn names(members: u32) -> Vec<String> {
    (0..members).map(|number| format!("member-{number:03}")).collect()
}

/// All members join in the first rebalance. In each further one a member leaves, or the one that left comes back.
pub(crate) fn history(names: &[String], rebalances: u32, partitions: u32) -> History<'_> {
    let event = |seq: u32, kind, member_id| GroupEvent {
        seq: i64::from(seq),
        kind,
        member_id,
        instance_id: "",
        ts: i64::from(seq) * 60_000,
        generation: None,
        topics: TOPICS,
    };
    let join = names.iter().map(|name| event(1, Kind::Join, name));
    let change = (2..=rebalances).map(|seq| {
        // Two rebalances for each of the members in turn: it leaves, and it comes back.
        let member = &names[(seq as usize / 2 * 3) % names.len()];
        event(seq, if seq % 2 == 0 { Kind::Leave } else { Kind::Join }, member)
    });
    let counts = TOPICS.iter().map(|topic| CountChange { ts: 0, topic, partitions: i64::from(partitions) });
    History { events: join.chain(change).collect(), counts: counts.collect(), ..History::default() }
}
