//! A subscription borrows only from its bytes, and its canonical form has the same content.

use crate::encode::SubscriptionFields;
use kafka_assignors_core::protocol::subscription::Subscription;
use kafka_assignors_core::protocol::topic_partitions::CanonicalPartitions;

pub(crate) fn check(bytes: &[u8]) {
    let Ok(subscription) = Subscription::read(bytes) else { return };
    assert!(subscription.generation >= -1);
    assert!(2 * subscription.topics.len() + 6 <= bytes.len());
    assert!(6 * subscription.owned.topics() + 4 * subscription.owned.partitions() <= bytes.len());
    assert_eq!(subscription.topics.iter().count(), subscription.topics.len());
    assert_eq!(Subscription::read_known(bytes, &[subscription.topics]), Ok((subscription, Some(0))));

    let topics: Option<Vec<&str>> = subscription.topics.iter().map(|name| std::str::from_utf8(name).ok()).collect();
    let rack = subscription.rack.map(std::str::from_utf8).transpose();
    let (Some(topics), Ok(owned), Ok(rack)) = (topics, CanonicalPartitions::of(subscription.owned), rack) else {
        return;
    };
    let user_data = subscription.user_data;
    let fields =
        SubscriptionFields { topics: &topics, user_data, owned, generation: Some(subscription.generation), rack };
    let written = fields.encode().expect("what fitted its bytes fits again");
    let again = Subscription::read(&written).expect("what is written can be read");
    assert_eq!((again.version, again.fault), (3, None));
    assert_eq!(
        (again.user_data, again.generation, again.rack),
        (user_data, subscription.generation, subscription.rack)
    );
    let mut sorted = topics.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert!(again.topics.iter().eq(sorted.iter().map(|name| name.as_bytes())));
    assert_eq!(CanonicalPartitions::of(again.owned), Ok(fields.owned));
}
