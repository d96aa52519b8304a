//! A client with records, current and stale notices, changing leaders, changing partition counts, and any loads. Every
//! record goes to an existing partition, and the partitioners follow the rules of KIP-480 and KIP-794.

use kafka_assignors_core::partitioner::adaptive::{Adaptive, Load};
use kafka_assignors_core::partitioner::column;
use kafka_assignors_core::partitioner::sticky::Sticky;
use kafka_assignors_core::partitioner::{Chooser, PartitionList, TopicState};

fn topic(count: u8, leaders: u8) -> PartitionList {
    let all: Vec<u32> = (0..=u32::from(count % 9)).collect();
    // The ninth partition never has a leader.
    let led = all.iter().copied().filter(|&partition| partition < 8 && leaders >> partition & 1 == 1).collect();
    PartitionList::new("t", all, led).expect("there is one at least")
}

pub(crate) fn check(bytes: &[u8]) {
    let Some((&batch_size, steps)) = bytes.split_first() else { return };
    let (sticky, adaptive) = (Sticky::default(), Adaptive::new(u64::from(batch_size)));
    let mut partitions = topic(3, 0xff);
    for step in steps.chunks_exact(4) {
        let &[kind, a, b, draw] = step else { unreachable!("chunks of four") };
        let mut random = |bound: u64| u64::from(draw) % bound;
        match kind % 6 {
            0 => {
                let partition = sticky.partition(0, &partitions, &mut random);
                assert_eq!(sticky.peek(0), Some(partition));
                assert!(partitions.contains(partition));
            }
            1 => {
                let before = sticky.current();
                let previous = i64::from(a) - 1;
                let settled = sticky.keeps(previous);
                sticky.next(previous, &partitions, &mut random);
                let after = sticky.current().expect("chosen by now");
                let stale = before.is_some_and(|before| i64::from(before) != previous);
                assert_eq!(settled, stale);
                match partitions.available() {
                    _ if stale => assert_eq!(Some(after), before),
                    [] => assert!(partitions.contains(after)),
                    [only] => assert_eq!(after, *only),
                    several => assert!(several.contains(&after) && Some(after) != before),
                }
            }
            2 => {
                let size = u64::from(a) << (b % 64);
                let partition =
                    adaptive.peek(size).unwrap_or_else(|| adaptive.partition(size, &partitions, &mut random));
                assert!(partitions.contains(partition));
            }
            3 => {
                let previous = i64::from(a) - 1;
                if !adaptive.keeps(previous) {
                    adaptive.next(previous, &partitions, &mut random);
                }
                if b == 0 {
                    adaptive.keyed();
                }
            }
            4 => {
                partitions = topic(a, b);
                sticky.refresh(&partitions);
                adaptive.refresh(&partitions);
            }
            _ => {
                let queues = [(u32::from(a), u32::MAX), (u32::from(b), u32::from(draw)), (2, u32::from(a))];
                let load = Load::new(queues.to_vec(), vec![u32::from(draw) % 16, u32::from(b)]);
                let weights: Vec<_> = load.weights(partitions.available()).collect();
                assert!(weights.iter().all(|&(partition, weight)| weight > 0 && partitions.contains(partition)));
                adaptive.update_load((b != 7).then_some(load));
            }
        }
    }
    let offsets: Vec<i32> = bytes.iter().map(|&byte| i32::from(byte as i8)).collect();
    let mut hashes = 0;
    let done = column::keys(&offsets, bytes, |row| bytes[row] == 0, |_| hashes += 1);
    assert_eq!(hashes, done.map_or_else(|error| error.row, |()| offsets.len().saturating_sub(1)));
}
