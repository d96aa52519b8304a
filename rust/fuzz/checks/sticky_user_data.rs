//! Sticky user data: the fast reader and the full reader agree, and the canonical form has the same content.

use crate::encode::encode_sticky;
use kafka_assignors_core::protocol::topic_partitions::CanonicalPartitions;
use kafka_assignors_core::protocol::user_data::StickyUserData;

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
