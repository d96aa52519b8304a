//! A record of `__consumer_offsets`: each list has as many items as its count, and bytes after the fields have no
//! effect.

use kafka_assignors_core::offsets_topic::{Key, TopicIdPartitions, TopicList, Value, read};

fn names(topics: &TopicList<'_>, bytes: usize) {
    assert_eq!(topics.iter().count(), topics.len());
    assert_eq!(topics.is_empty(), topics.iter().next().is_none());
    assert!(topics.len() <= bytes);
}

fn partitions(given: &TopicIdPartitions<'_>, bytes: usize) {
    let numbers: usize = given.iter().map(|(_, numbers)| numbers.iter().count()).sum();
    assert!(18 * given.iter().count() + 4 * numbers <= bytes);
}

fn held(value: &Value<'_>, bytes: usize) {
    match value {
        Value::Group(group) => {
            let lent = |member: &kafka_assignors_core::offsets_topic::GroupMetadataMember<'_>| {
                member.member_id.len() + member.subscription.len() + member.assignment.len()
            };
            assert!(9 * group.members.len() + group.members.iter().map(lent).sum::<usize>() <= bytes + 9);
        }
        Value::Member(member) => {
            names(&member.topics, bytes);
            if let Some(classic) = member.classic {
                let lent = classic.iter().map(|(name, metadata)| 3 + name.len() + metadata.len());
                assert!(lent.sum::<usize>() <= bytes);
            }
        }
        Value::Target(target) => partitions(target, bytes),
        Value::Current(current) => {
            partitions(&current.assigned, bytes);
            partitions(&current.pending_revocation, bytes);
        }
        Value::Matches(topics) => names(topics, bytes),
        Value::OffsetCommit(commit) => assert!(commit.metadata.len() <= bytes),
        Value::Tombstone | Value::GroupEpoch(_) | Value::TargetEpoch(_) | Value::Other => {}
    }
}

/// Byte 0 is the length of the key, 255 for no key. Byte 1 is even for no value. Then follow the key and the value.
pub(crate) fn check(bytes: &[u8]) {
    let [length, has_value, rest @ ..] = bytes else { return };
    let (key, value) = rest.split_at(usize::from(*length).min(rest.len()));
    let key = (*length != u8::MAX).then_some(key);
    let value = (has_value % 2 == 1).then_some(value);
    let (subject, said) = match read(key, value) {
        Ok(record) => record,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let other = matches!(subject, Key::Other(_));
    assert_eq!(said == Value::Tombstone, value.is_none() && !other);
    assert_eq!((said == Value::Other, subject.group().is_none()), (other, other));
    held(&said, value.unwrap_or_default().len());
    let longer = |bytes: &[u8]| [bytes, &[0x7f, 0xff, 0]].concat();
    let (key, value) = (key.map(longer), value.map(longer));
    assert_eq!(read(key.as_deref(), value.as_deref()), Ok((subject, said)));
}
