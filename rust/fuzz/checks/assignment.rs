//! An assignment borrows only from its bytes, and its canonical form has the same content.

use kafka_assignors_core::protocol::assignment::{self, Assignment};
use kafka_assignors_core::protocol::topic_partitions::CanonicalPartitions;

pub(crate) fn check(bytes: &[u8]) {
    let Ok(read) = Assignment::read(bytes) else { return };
    assert!(6 * read.partitions.topics() + 4 * read.partitions.partitions() <= bytes.len());
    assert_eq!(read.partitions.iter().map(|(_, numbers)| numbers.len()).sum::<usize>(), read.partitions.partitions());
    let Ok(partitions) = CanonicalPartitions::of(read.partitions) else { return };
    let written = assignment::encode(&partitions, read.generation()).expect("what fitted its bytes fits again");
    let again = Assignment::read(&written).expect("what is written can be read");
    assert_eq!(again.generation(), read.generation());
    assert_eq!(CanonicalPartitions::of(again.partitions), Ok(partitions));
}
