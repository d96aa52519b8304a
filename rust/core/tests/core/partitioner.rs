//! The rules of KIP-480 and KIP-794, with given random draws, and the published values of Java's hash.

use std::sync::{Arc, Barrier};
use std::thread;

use kafka_assignors_core::partitioner::adaptive::{Adaptive, Load};
use kafka_assignors_core::partitioner::column::{self, ColumnError};
use kafka_assignors_core::partitioner::murmur2;
use kafka_assignors_core::partitioner::round_robin::{Repeats, Turn};
use kafka_assignors_core::partitioner::sticky::Sticky;
use kafka_assignors_core::partitioner::topics::ByTopic;
use kafka_assignors_core::partitioner::{Chooser, PartitionList, PartitionerError, Random, TopicState};
use proptest::prelude::*;

/// Given draws. Each must be below its bound, and all must be used.
struct Script(Vec<(u64, u64)>);

impl Script {
    /// Pairs of the expected bound and the draw.
    fn new(draws: &[(u64, u64)]) -> Self {
        Self(draws.iter().rev().copied().collect())
    }
}

impl Random for Script {
    fn below(&mut self, bound: u64) -> u64 {
        let (expected, drawn) = self.0.pop().expect("no more draws are due");
        assert_eq!((bound, drawn < bound), (expected, true));
        drawn
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        assert!(thread::panicking() || self.0.is_empty(), "draws left over: {:?}", self.0);
    }
}

fn topic(all: u32, available: &[u32]) -> PartitionList {
    PartitionList::new("t", (0..all).collect(), available.to_vec()).unwrap()
}

fn led(all: u32) -> PartitionList {
    topic(all, &(0..all).collect::<Vec<_>>())
}

#[test]
fn murmur2_is_javas() {
    for (key, hash) in [
        ("21", -973_932_308),
        ("foobar", -790_332_482),
        ("a-little-bit-long-string", -985_981_536),
        ("a-little-bit-longer-string", -1_486_304_829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
        ("abc", 479_470_107),
        ("", 275_646_681),
    ] {
        assert_eq!(murmur2::hash(key.as_bytes()), hash, "{key}");
    }
    let indices = |key: &str| [3, 10, 16].map(|count| murmur2::index(murmur2::hash(key.as_bytes()), count));
    assert_eq!(indices("21"), [0, 0, 12]);
    assert_eq!(indices("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8"), [2, 7, 13]);
    // Masked, not negated: the least integer has no positive counterpart.
    assert_eq!(murmur2::index(i32::MIN, 10), 0);
    assert_eq!(murmur2::index(-1, u32::MAX), 0x7fff_ffff);
}

/// The same hash, computed byte by byte in wide arithmetic.
fn plain_murmur2(key: &[u8]) -> i32 {
    let wrap = |number: u128| number % (1 << 32);
    let m = 0x5bd1_e995_u128;
    let mut h = 0x9747_b28c ^ key.len() as u128;
    let whole = key.len() / 4 * 4;
    for at in (0..whole).step_by(4) {
        let mut k = (0..4).map(|i| u128::from(key[at + i]) * (1 << (8 * i))).sum();
        k = wrap(k * m);
        k = wrap((k ^ (k / (1 << 24))) * m);
        h = wrap(h * m) ^ k;
    }
    if whole < key.len() {
        for (at, &byte) in key[whole..].iter().enumerate() {
            h ^= u128::from(byte) * (1 << (8 * at));
        }
        h = wrap(h * m);
    }
    h = wrap((h ^ (h / (1 << 13))) * m);
    (h ^ (h / (1 << 15))) as u32 as i32
}

proptest! {
    #[test]
    fn murmur2_is_the_plain_function(key in prop::collection::vec(any::<u8>(), 0..70)) {
        prop_assert_eq!(murmur2::hash(&key), plain_murmur2(&key));
    }

    #[test]
    fn a_column_is_its_keys(keys in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..9)), 0..20)) {
        let mut offsets = vec![0_i32];
        let mut bytes = Vec::new();
        for key in &keys {
            bytes.extend(key.iter().flatten());
            offsets.push(bytes.len() as i32);
        }
        let mut hashes = Vec::new();
        column::keys(&offsets, &bytes, |row| keys[row].is_none(), |key| hashes.push(key.map(murmur2::hash))).unwrap();
        let one_by_one: Vec<_> = keys.iter().map(|key| key.as_deref().map(murmur2::hash)).collect();
        prop_assert_eq!(hashes, one_by_one);
    }

    /// Arbitrary offsets: the hashes of all keys before the first invalid offset, then an error, never a panic.
    #[test]
    fn a_column_of_nonsense_is_refused(offsets in prop::collection::vec(-3_i64..9, 0..6), bytes in prop::collection::vec(any::<u8>(), 0..6)) {
        let mut hashes = 0;
        let done = column::keys(&offsets, &bytes, |_| false, |_| hashes += 1);
        let bad = |pair: &[i64]| pair[0] < 0 || pair[1] < pair[0] || pair[1] > bytes.len() as i64;
        match offsets.windows(2).position(bad) {
            None => prop_assert_eq!((done, hashes), (Ok(()), offsets.len().saturating_sub(1))),
            Some(row) => {
                let (start, end) = (offsets[row], offsets[row + 1]);
                prop_assert_eq!((done, hashes), (Err(ColumnError { row, start, end, length: bytes.len() }), row));
            }
        }
    }
}

#[test]
fn keys_count_all_partitions_and_partitions_may_have_gaps() {
    let partitions = topic(10, &[3]);
    assert_eq!(partitions.of_key(b"foobar"), 6);
    assert_eq!(partitions.of_key(b""), 1);
    // The hash selects an index in the list of partitions, as in Java.
    let gaps = PartitionList::new("t", vec![9, 2, 4], vec![4, 77]).unwrap();
    assert_eq!((gaps.all(), gaps.available()), (&[2, 4, 9][..], &[4][..]));
    assert_eq!(gaps.of_key(b"a-little-bit-long-string"), 9);
}

#[test]
fn a_record_names_a_partition_that_there_is() {
    let partitions = topic(3, &[0]);
    assert_eq!(partitions.explicit("t", 2), Ok(2));
    for partition in [-1, 3, i64::MAX, i64::MIN] {
        let refused = PartitionerError::OutOfRange { topic: "t".to_owned(), partition, count: 3 };
        assert_eq!(partitions.explicit("t", partition), Err(refused));
    }
    let none = PartitionList::new("t", vec![], vec![]);
    assert_eq!(none, Err(PartitionerError::NoPartitions { topic: "t".to_owned() }));
}

#[test]
fn sticky_stays_until_a_new_batch_and_then_goes_elsewhere() {
    let (sticky, partitions) = (Sticky::default(), led(4));
    assert_eq!(sticky.peek(0), None);
    assert_eq!(sticky.partition(0, &partitions, &mut Script::new(&[(4, 2)])), 2);
    assert_eq!(sticky.partition(0, &partitions, &mut Script::new(&[])), 2);
    assert_eq!(sticky.peek(0), Some(2));
    // A draw among three others: index 2 is the partition after the old one.
    assert!(!sticky.keeps(2));
    sticky.next(2, &partitions, &mut Script::new(&[(3, 2)]));
    assert_eq!(sticky.peek(0), Some(3));
    sticky.next(3, &partitions, &mut Script::new(&[(3, 1)]));
    assert_eq!(sticky.peek(0), Some(1));
}

#[test]
fn a_stale_notice_does_nothing() {
    let (sticky, partitions) = (Sticky::default(), led(4));
    sticky.next(-1, &partitions, &mut Script::new(&[(4, 0)]));
    for stale in [1, -1, 7, i64::MAX, i64::MIN] {
        assert!(sticky.keeps(stale));
        sticky.next(stale, &partitions, &mut Script::new(&[]));
        assert_eq!(sticky.peek(0), Some(0));
    }
    assert!(!sticky.keeps(0));
    sticky.next(0, &partitions, &mut Script::new(&[(3, 0)]));
    assert!(sticky.keeps(0), "the second notice of the same batch is stale");
}

#[test]
fn a_notice_before_the_first_record_chooses() {
    let (sticky, partitions) = (Sticky::default(), led(2));
    assert!(!sticky.keeps(0), "KIP-480: nothing cached, so whatever the notice says");
    sticky.next(0, &partitions, &mut Script::new(&[(2, 1)]));
    assert_eq!(sticky.peek(0), Some(1));
}

#[test]
fn sticky_leaves_out_what_has_no_leader_while_anything_has() {
    let sticky = Sticky::default();
    assert_eq!(sticky.partition(0, &topic(5, &[1, 3, 4]), &mut Script::new(&[(3, 1)])), 3);
    // Partition 3 lost its leader and stays until the next batch. Then every available partition is a candidate.
    assert_eq!(sticky.peek(0), Some(3));
    sticky.next(3, &topic(5, &[1, 4]), &mut Script::new(&[(2, 1)]));
    assert_eq!(sticky.peek(0), Some(4));
    // The only available partition may be the same again, without a draw.
    sticky.next(4, &topic(5, &[4]), &mut Script::new(&[]));
    assert_eq!(sticky.peek(0), Some(4));
    // No partition is available: any partition may be chosen, also the same one.
    sticky.next(4, &topic(5, &[]), &mut Script::new(&[(5, 4)]));
    assert_eq!(sticky.peek(0), Some(4));
    sticky.next(4, &topic(1, &[0]), &mut Script::new(&[]));
    assert_eq!(sticky.peek(0), Some(0));
}

#[test]
fn a_partition_that_is_gone_is_not_sticky() {
    let sticky = Sticky::default();
    sticky.partition(0, &led(4), &mut Script::new(&[(4, 3)]));
    sticky.refresh(&led(4));
    assert_eq!(sticky.peek(0), Some(3));
    sticky.refresh(&led(2));
    assert_eq!(sticky.peek(0), None);
}

fn random(seed: u64) -> impl Random {
    let mut random = fastrand::Rng::with_seed(seed);
    move |bound| random.u64(..bound)
}

/// In each round all threads have the same sticky partition and report the same new batch, and one choice is made.
#[test]
fn racing_threads_agree() {
    const THREADS: u64 = 8;
    const ROUNDS: usize = 2_000;
    let (sticky, partitions, barrier) = (Sticky::default(), led(16), Barrier::new(THREADS as usize));
    let work = |seed| {
        let mut random = random(seed);
        let mut seen = vec![sticky.partition(0, &partitions, &mut random)];
        for round in 0..ROUNDS {
            barrier.wait();
            let previous = i64::from(seen[round]);
            if !sticky.keeps(previous) {
                sticky.next(previous, &partitions, &mut random);
            }
            seen.push(sticky.partition(0, &partitions, &mut random));
            barrier.wait();
            assert_eq!(sticky.peek(0), seen.last().copied());
        }
        seen
    };
    let histories: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|seed| scope.spawn(move || work(seed))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for history in &histories {
        assert_eq!(history, &histories[0]);
    }
    assert!(histories[0].windows(2).all(|pair| pair[0] != pair[1]), "every round moved on, once");
}

/// Pearson's statistic of counts that should be equal.
fn chi_squared(counts: &[u64]) -> f64 {
    let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    counts.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum()
}

#[test]
fn over_time_records_spread_evenly() {
    let (sticky, partitions, mut random) = (Sticky::default(), led(16), random(1));
    let mut counts = [0_u64; 16];
    for _ in 0..160_000 {
        let partition = sticky.partition(0, &partitions, &mut random);
        counts[partition as usize] += 1;
        sticky.next(i64::from(partition), &partitions, &mut random);
    }
    // 15 degrees of freedom: 1 in 1,000 of such runs exceeds 37.7. The seed is fixed.
    assert!(chi_squared(&counts) < 37.7, "{counts:?}");
    // And the pairs: after a partition each of the others is equally likely.
    let mut followers = [[0_u64; 16]; 16];
    let mut last = sticky.partition(0, &partitions, &mut random);
    for _ in 0..160_000 {
        sticky.next(i64::from(last), &partitions, &mut random);
        let next = sticky.partition(0, &partitions, &mut random);
        followers[last as usize][next as usize] += 1;
        last = next;
    }
    for (at, row) in followers.iter().enumerate() {
        let others: Vec<_> = row.iter().enumerate().filter(|&(to, _)| to != at).map(|(_, &count)| count).collect();
        assert_eq!(row[at], 0);
        // 14 degrees, 1 in 10,000, for each of 16 rows.
        assert!(chi_squared(&others) < 42.6, "{row:?}");
    }
}

fn weights(load: &Load, available: &[u32]) -> Vec<(u32, u64)> {
    load.weights(available).collect()
}

#[test]
fn weights_are_kip_794s() {
    let load = Load::new(vec![(0, 5), (1, 0), (2, 3), (4, 1)], vec![]);
    assert_eq!(weights(&load, &[0, 1, 2, 3, 4]), [(0, 1), (1, 6), (2, 3), (3, 6), (4, 5)]);
    let load = Load::new(vec![(2, 2), (1, 7), (0, 1)], vec![]);
    assert_eq!(weights(&load, &[0, 1, 2]), [(0, 7), (1, 1), (2, 6)]);
    // A partition without a leader, or an excluded one, is no candidate, and its queue has no effect on the weights.
    assert_eq!(weights(&load, &[0, 2]), [(0, 2), (2, 1)]);
    let slow = Load::new(vec![(2, 2), (1, 7), (0, 1)], vec![1, 9]);
    assert_eq!(weights(&slow, &[0, 1, 2]), [(0, 2), (2, 1)]);
    // For a partition that is given twice, the last length counts. Equal queues have equal weights.
    let twice = Load::new(vec![(0, 9), (1, 4), (0, 4)], vec![]);
    assert_eq!(weights(&twice, &[0, 1]), [(0, 1), (1, 1)]);
    // The longest possible queues do not overflow.
    let long = Load::new((0..1_000).map(|partition| (partition, i32::MAX as u32)).collect(), vec![]);
    let total: u64 = long.weights(&(0..1_001).collect::<Vec<_>>()).map(|(_, weight)| weight).sum();
    assert_eq!(total, 1_000 + (1 << 31));
}

/// The chosen partition for each draw of a load.
fn drawn(load: &Load, partitions: &PartitionList, total: u64) -> Vec<u32> {
    let choose = |draw| {
        let adaptive = Adaptive::new(1);
        adaptive.update_load(Some(load.clone()));
        adaptive.partition(0, partitions, &mut Script::new(&[(total, draw)]))
    };
    (0..total).map(choose).collect()
}

#[test]
fn a_draw_takes_the_first_entry_that_is_greater() {
    let load = Load::new(vec![(0, 5), (2, 3), (4, 1)], vec![]);
    let expected = [vec![0], vec![1; 6], vec![2; 3], vec![3; 6], vec![4; 5]].concat();
    assert_eq!(drawn(&load, &led(5), 21), expected);
    // One candidate is left. Without a candidate: any partition with a leader. Without a leader: any partition.
    let slow = Load::new(vec![(0, 5), (2, 3)], vec![0, 1, 3, 4]);
    assert_eq!(drawn(&slow, &led(5), 1), [2]);
    assert_eq!(drawn(&Load::new(vec![], vec![0, 1]), &topic(3, &[0, 1]), 2), [0, 1]);
    assert_eq!(drawn(&load, &topic(2, &[]), 2), [0, 1]);
}

/// The table of weights is computed again for other leaders and for another load, and is dropped with the load.
#[test]
fn weights_follow_leaders_and_load() {
    let (adaptive, all, some) = (Adaptive::new(1), led(4), topic(4, &[1, 2]));
    let choose = |partitions: &PartitionList, draws: (u64, u64)| {
        let chosen = adaptive.partition(2, partitions, &mut Script::new(&[draws]));
        assert_eq!(adaptive.peek(2), None);
        chosen
    };
    adaptive.update_load(Some(Load::new(vec![(1, 1), (3, 2)], vec![])));
    assert_eq!((choose(&all, (9, 8)), choose(&all, (9, 5))), (3, 2));
    assert_eq!((choose(&some, (3, 0)), choose(&some, (3, 1))), (1, 2));
    assert_eq!(choose(&all, (9, 2)), 0);
    adaptive.update_load(Some(Load::new(vec![(0, 1)], vec![])));
    assert_eq!(choose(&all, (7, 0)), 0);
    adaptive.update_load(None);
    assert_eq!((choose(&all, (4, 1)), choose(&some, (2, 1))), (1, 2));
}

#[test]
fn adaptive_leaves_after_twice_the_size_regardless() {
    let (adaptive, partitions) = (Adaptive::new(100), led(4));
    assert_eq!(adaptive.peek(60), None);
    assert_eq!(adaptive.partition(60, &partitions, &mut Script::new(&[(4, 2)])), 2);
    for _ in 0..3 {
        assert_eq!(adaptive.peek(60), Some(2));
    }
    // The partition has received 240 bytes, more than twice the batch size. Any partition may follow, also the same one.
    assert_eq!(adaptive.peek(60), None);
    assert_eq!(adaptive.partition(150, &partitions, &mut Script::new(&[(4, 2)])), 2);
    assert_eq!(adaptive.peek(49), Some(2));
    assert_eq!(adaptive.peek(1), Some(2));
    assert_eq!(adaptive.peek(1), None);
}

#[test]
fn adaptive_leaves_after_the_size_once_the_batch_is_finished() {
    let (adaptive, partitions) = (Adaptive::new(1_000), led(4));
    // For the first record there is no batch: the client reports it and calls again. The partition does not change.
    assert_eq!(adaptive.partition(400, &partitions, &mut Script::new(&[(4, 1)])), 1);
    assert!(adaptive.keeps(1));
    assert_eq!(adaptive.peek(400), Some(1));
    // The partition has received 461 bytes with the batch's header, then 961. The next record finds the batch full, but 961 is
    // below 1,000.
    assert_eq!(adaptive.peek(500), Some(1));
    assert_eq!(adaptive.peek(100), Some(1));
    assert!(adaptive.keeps(1), "the record of 100 bytes opens a batch, and went nowhere yet");
    assert_eq!(adaptive.peek(100), Some(1));
    // 961 + 61 + 100 = 1,122: the partition changes as soon as the batch is finished, not before.
    assert_eq!(adaptive.peek(10), Some(1));
    assert!(adaptive.keeps(0), "stale");
    assert!(!adaptive.keeps(1));
    adaptive.next(1, &partitions, &mut Script::new(&[(4, 3)]));
    adaptive.next(1, &partitions, &mut Script::new(&[]));
    assert_eq!(adaptive.peek(10), Some(3));
}

#[test]
fn a_keyed_record_that_opens_a_batch_takes_back_nothing() {
    let (adaptive, partitions) = (Adaptive::new(100), led(4));
    assert_eq!(adaptive.partition(120, &partitions, &mut Script::new(&[(4, 1)])), 1);
    adaptive.keyed();
    assert!(!adaptive.keeps(1), "120 bytes are there, and the batch is finished");
}

#[test]
fn a_batch_size_of_0_acts_as_1() {
    let (adaptive, partitions) = (Adaptive::new(0), led(4));
    assert_eq!(adaptive.partition(1, &partitions, &mut Script::new(&[(4, 0)])), 0);
    assert_eq!(adaptive.peek(0), Some(0));
    assert!(!{
        adaptive.keyed();
        adaptive.keeps(0)
    });
    assert_eq!(Adaptive::new(u64::MAX).partition(u64::MAX, &partitions, &mut Script::new(&[(4, 0)])), 0);
}

#[test]
fn round_robin_takes_each_in_turn() {
    let turn = Turn::default();
    let taken: Vec<_> = (0..5).map(|_| turn.next(&topic(4, &[3, 0, 1]))).collect();
    assert_eq!(taken, [0, 1, 3, 0, 1]);
    assert_eq!((turn.next(&topic(4, &[])), turn.next(&topic(4, &[]))), (1, 2));
}

/// A client like kafka-python: `partition`, the notice of a new batch, and `partition` again for each record.
#[test]
fn round_robin_repeats_itself_for_the_record_that_opens_a_batch() {
    let (turn, other) = (Arc::new(Turn::default()), Arc::new(Turn::default()));
    let (repeats, partitions) = (Repeats::default(), led(4));
    let ask = |caller: u32| repeats.take(|| caller, &turn).unwrap_or_else(|| turn.next(&partitions));
    let mut taken = Vec::new();
    for _ in 0..6 {
        let first = ask(1);
        repeats.note(1, &turn, first);
        assert_eq!(ask(1), first);
        taken.push(first);
    }
    assert_eq!(taken, [0, 1, 2, 3, 0, 1]);
    // The note is used once, for its caller and its topic.
    repeats.note(1, &turn, 3);
    assert_eq!(ask(2), 2);
    assert_eq!((ask(1), ask(1)), (3, 3));
    repeats.note(1, &turn, 1);
    repeats.note(1, &turn, 2);
    assert_eq!((ask(1), ask(1)), (2, 0));
    repeats.note(1, &other, 1);
    assert_eq!((repeats.take(|| 1, &turn), repeats.take(|| 1, &other)), (None, None));
}

#[test]
fn topics_are_found_by_name() {
    let topics: ByTopic<u32> = ByTopic::default();
    assert_eq!(topics.read("t", |&known| known), None);
    assert_eq!(topics.write("t", || 3, |known| std::mem::replace(known, 4)), 3);
    assert_eq!(topics.write("t", || 9, |known| *known), 4);
    assert_eq!((topics.read("t", |&known| known), topics.read("u", |&known| known)), (Some(4), None));
}

#[test]
fn callers_that_never_ask_again_are_forgotten() {
    let (repeats, turn) = (Repeats::default(), Arc::new(Turn::default()));
    for caller in 0..5_000 {
        repeats.note(caller, &turn, 0);
    }
    let known: Vec<_> = (0..5_000).filter(|&caller| repeats.take(|| caller, &turn).is_some()).collect();
    assert_eq!(known, (5_000 - 1_024..5_000).collect::<Vec<_>>());
}

#[test]
fn round_robin_reads_leaders_once_a_round() {
    let (turn, partitions) = (Turn::default(), led(3));
    let due: Vec<_> = (0..7).map(|_| turn.rounds(&partitions)).collect();
    assert_eq!(due, [false, false, true, false, false, true, false]);
}
