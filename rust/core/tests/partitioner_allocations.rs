//! Partitioners allocate only for the first record of a topic, and not for later records.

use std::sync::Arc;

use allocation_counter::measure;
use kafka_assignors_core::partitioner::adaptive::{Adaptive, Load};
use kafka_assignors_core::partitioner::round_robin::{Repeats, Turn};
use kafka_assignors_core::partitioner::sticky::Sticky;
use kafka_assignors_core::partitioner::topics::ByTopic;
use kafka_assignors_core::partitioner::{Chooser, PartitionList, column, murmur2};

fn partitions() -> PartitionList {
    PartitionList::new("t", (0..1_000).collect(), (0..900).collect()).unwrap()
}

fn allocations(work: impl FnOnce()) -> u64 {
    measure(work).count_total
}

#[test]
fn the_counter_counts() {
    assert!(allocations(|| drop(std::hint::black_box(vec![1]))) > 0);
}

/// Records and new batches in turn. The state is found by the topic's name, as for a client.
fn send(state: impl Chooser) {
    let (topics, partitions, mut random) = (ByTopic::default(), partitions(), fastrand::Rng::with_seed(1));
    let mut draw = |bound| random.u64(..bound);
    // The first choice by a load allocates the table.
    state.partition(1_000_000, &partitions, &mut draw);
    topics.write("orders", || state, |_| ());
    let counted = allocations(|| {
        for record in 0..10_000_u64 {
            let sent = topics.read("orders", |topic| {
                let partition = topic.peek(100).unwrap_or_else(|| topic.partition(100, &partitions, &mut draw));
                if record % 7 == 0 && !topic.keeps(i64::from(partition)) {
                    topic.next(i64::from(partition), &partitions, &mut draw);
                }
                topic.keyed();
                topic.refresh(&partitions);
            });
            assert_eq!(sent, Some(()));
        }
    });
    assert_eq!(counted, 0);
}

#[test]
fn sticky_does_not_allocate() {
    send(Sticky::default());
}

#[test]
fn adaptive_does_not_allocate() {
    let adaptive = Adaptive::new(1_000);
    adaptive.update_load(Some(Load::new((0..500).map(|partition| (partition, 3)).collect(), vec![7, 8])));
    send(adaptive);
}

#[test]
fn round_robin_does_not_allocate() {
    let (turn, repeats, partitions) = (Arc::new(Turn::default()), Repeats::default(), partitions());
    // The first note allocates memory, which later notes reuse.
    repeats.note(1, &turn, 0);
    let counted = allocations(|| {
        for _ in 0..10_000 {
            let partition = repeats.take(|| 1, &turn).unwrap_or_else(|| turn.next(&partitions));
            repeats.note(1, &turn, partition);
            turn.rounds(&partitions);
        }
    });
    assert_eq!(counted, 0);
}

#[test]
fn keys_do_not_allocate() {
    let (partitions, bytes, mut sum) = (partitions(), vec![7; 10_000], 0_u64);
    let offsets: Vec<i32> = (0..=1_000).map(|row| row * 10).collect();
    let counted = allocations(|| {
        for key in bytes.chunks(10) {
            sum += u64::from(partitions.of_key(key));
        }
        let each = |key: Option<&[u8]>| sum += u64::from(key.map(murmur2::hash).is_some());
        column::keys(&offsets, &bytes, |row| row % 3 == 0, each).expect("offsets within the bytes");
    });
    assert_eq!((counted, sum > 0), (0, true));
}
