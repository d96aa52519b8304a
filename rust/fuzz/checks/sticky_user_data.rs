//! Sticky user data: the short way to read it and the long way agree, and the canonical form reads as the same.

use kafka_assignors_core::wire::topic_partitions::CanonicalPartitions;
use kafka_assignors_core::wire::user_data::{StickyUserData, encode_sticky};

pub(crate) fn check(bytes: &[u8]) {
    let mut visited = Vec::new();
    let short = StickyUserData::visit_bare(bytes, |elements| visited.extend(elements));
    let Ok(data) = StickyUserData::read(Some(bytes)) else {
        assert_eq!(short, None);
        return;
    };
    if short.is_some() {
        assert_eq!(short, Some(data.generation));
        assert!(data.partitions.iter().eq(visited));
    }
    assert!(data.generation >= -1);
    assert!(6 * data.partitions.topics() + 4 * data.partitions.partitions() <= bytes.len());
    let Ok(partitions) = CanonicalPartitions::of(data.partitions) else { return };
    let written = encode_sticky(&partitions, Some(data.generation)).expect("what fitted its bytes fits again");
    let again = StickyUserData::read(Some(&written)).expect("what is written can be read");
    assert_eq!((CanonicalPartitions::of(again.partitions), again.generation), (Ok(partitions), data.generation));
}
